/* Convolutions of each channel with itself, images by pixels (rows, columns, samples, channels).
 *
 * Sizes: samples, channels, the window. The window's numbers lie turned, (position, channel), in scratch.
 */
#include "windows.h"

enum { DEPTH_SAMPLES, DEPTH_CHANNELS, DEPTH_WINDOW };

typedef struct {
    int64_t image, result, numbers;
} depth_sizes;

static depth_sizes check_depthwise(checker *check, window *w) {
    int64_t pixel = times(check, positive(check, DEPTH_SAMPLES), positive(check, DEPTH_CHANNELS));
    *w = check_window(check, DEPTH_WINDOW);
    return (depth_sizes){times(check, pixel, w->h * w->w), times(check, pixel, w->oh * w->ow),
                         times(check, check->record->sizes[DEPTH_CHANNELS], w->kh * w->kw)};
}

/* One pixel of all samples: the sum of some pixels, each times its own numbers. */
static inline __attribute__((always_inline)) void weigh_known(const float *const *pixels, const float *const *numbers,
                                                              int found, int64_t samples, int64_t channels, float *out) {
    int64_t channel = 0;
    for (; channel + LANES <= channels; channel += LANES) {
        vec factors[9];
        for (int at = 0; at < found; at++)
            factors[at] = load(numbers[at] + channel);
        for (int64_t sample = 0; sample < samples; sample++) {
            int64_t place = sample * channels + channel;
            vec sum = load(pixels[0] + place) * factors[0];
            for (int at = 1; at < (found < 3 ? found : 3); at++)
                sum += load(pixels[at] + place) * factors[at];
            for (int from = 3; from < found; from += 3) { /* short sums: every addition to a long one is rounded */
                vec next = load(pixels[from] + place) * factors[from];
                for (int at = from + 1; at < (found < from + 3 ? found : from + 3); at++)
                    next += load(pixels[at] + place) * factors[at];
                sum += next;
            }
            store(out + place, sum);
        }
    }
    for (; channel < channels; channel++)
        for (int64_t sample = 0; sample < samples; sample++) {
            float sum = 0;
            for (int at = 0; at < found; at++)
                sum += pixels[at][sample * channels + channel] * numbers[at][channel];
            out[sample * channels + channel] = sum;
        }
}

static void weigh_any(const float *const *pixels, const float *const *numbers, int found, int64_t samples,
                      int64_t channels, float *out) {
    for (int64_t sample = 0; sample < samples; sample++)
        for (int64_t channel = 0; channel < channels; channel++) {
            float sum = 0;
            for (int at = 0; at < found; at++)
                sum += pixels[at][sample * channels + channel] * numbers[at][channel];
            out[sample * channels + channel] = sum;
        }
}

static void weigh(const float *const *pixels, const float *const *numbers, int found, int64_t samples,
                  int64_t channels, float *out) {
    switch (found) {
    case 1:
        weigh_known(pixels, numbers, 1, samples, channels, out);
        break;
    case 2:
        weigh_known(pixels, numbers, 2, samples, channels, out);
        break;
    case 4:
        weigh_known(pixels, numbers, 4, samples, channels, out);
        break;
    case 6:
        weigh_known(pixels, numbers, 6, samples, channels, out);
        break;
    case 9:
        weigh_known(pixels, numbers, 9, samples, channels, out);
        break;
    default:
        weigh_any(pixels, numbers, found, samples, channels, out);
    }
}

/* Operands: image, numbers, result. Cut by rows of the result. */
static hedgerow_verdict check_depthwise_forward(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    window w;
    depth_sizes sizes = check_depthwise(&check, &w);
    needs_floats(&check, 0, sizes.image);
    needs_floats(&check, 1, sizes.numbers);
    needs_floats(&check, 2, sizes.result);
    *units = w.oh;
    return check.verdict;
}

static void run_depthwise_forward(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    window w = window_at(call->record.sizes + DEPTH_WINDOW);
    int64_t samples = call->record.sizes[DEPTH_SAMPLES], channels = call->record.sizes[DEPTH_CHANNELS];
    const float *pixels[MOST_POSITIONS], *numbers[MOST_POSITIONS];
    int positions[MOST_POSITIONS];
    for (int64_t row = first; row < end; row++)
        for (int64_t column = 0; column < w.ow; column++) {
            int found = pixels_of(call->at[0], &w, samples * channels, row, column, pixels, positions);
            for (int at = 0; at < found; at++)
                numbers[at] = (const float *)call->at[1] + positions[at] * channels;
            weigh(pixels, numbers, found, samples, channels,
                  (float *)call->at[2] + (row * w.ow + column) * samples * channels);
        }
    (void)part;
}

/* Operands: gradient, numbers, gradient of the image. Cut by rows of the image. */
static hedgerow_verdict check_depthwise_grad_input(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    window w;
    depth_sizes sizes = check_depthwise(&check, &w);
    needs_floats(&check, 0, sizes.result);
    needs_floats(&check, 1, sizes.numbers);
    needs_floats(&check, 2, sizes.image);
    *units = w.h;
    return check.verdict;
}

static void run_depthwise_grad_input(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    window w = window_at(call->record.sizes + DEPTH_WINDOW);
    int64_t samples = call->record.sizes[DEPTH_SAMPLES], channels = call->record.sizes[DEPTH_CHANNELS];
    int64_t windows[MOST_POSITIONS];
    const float *gradients[MOST_POSITIONS], *numbers[MOST_POSITIONS];
    int positions[MOST_POSITIONS];
    for (int64_t row = first; row < end; row++)
        for (int64_t column = 0; column < w.w; column++) {
            int found = windows_of(&w, row, column, windows, positions);
            for (int at = 0; at < found; at++) {
                gradients[at] = (const float *)call->at[0] + windows[at] * samples * channels;
                numbers[at] = (const float *)call->at[1] + positions[at] * channels;
            }
            weigh(gradients, numbers, found, samples, channels,
                  (float *)call->at[2] + (row * w.w + column) * samples * channels);
        }
    (void)part;
}

/* Partial gradients of the numbers, (strand, position, channel), a strand being some rows of the result.
 * Operands: gradient, image, partial gradients. Sizes: also strands, after the window. Cut by strands. */
enum { DEPTH_STRANDS = DEPTH_WINDOW + WINDOW_SIZES };

static hedgerow_verdict check_depthwise_grad_weight(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    window w;
    depth_sizes sizes = check_depthwise(&check, &w);
    int64_t strands = positive(&check, DEPTH_STRANDS);
    needs_floats(&check, 0, sizes.result);
    needs_floats(&check, 1, sizes.image);
    needs_floats(&check, 2, times(&check, strands, sizes.numbers));
    *units = strands;
    return check.verdict;
}

/* Add to `sums` the products of `count` gradients with `positions` neighbours each; steps in floats. */
static inline __attribute__((always_inline)) void dot_columns(const float *gradient, const float *image, int64_t step,
                                                              int64_t columns, int64_t samples, int64_t channels,
                                                              int positions, float *sums) {
    int64_t pixel = samples * channels;
    vec low[3] = {zeros(), zeros(), zeros()}, high[3] = {zeros(), zeros(), zeros()};
    for (int64_t column = 0; column < columns; column++) {
        const float *arrives = gradient + column * pixel, *met_by = image + column * step;
        int64_t sample = 0;
        for (; sample + 2 <= samples; sample += 2, arrives += 2 * channels, met_by += 2 * channels) {
            vec one = load(arrives), two = load(arrives + channels);
            for (int at = 0; at < positions; at++) {
                low[at] += one * load(met_by + at * pixel);
                high[at] += two * load(met_by + at * pixel + channels);
            }
        }
        if (sample < samples)
            for (int at = 0; at < positions; at++)
                low[at] += load(arrives) * load(met_by + at * pixel);
    }
    for (int at = 0; at < positions; at++)
        store(sums + at * channels, load(sums + at * channels) + (low[at] + high[at]));
}

static void dot_one(const float *gradient, const float *image, int64_t step, int64_t columns, int64_t samples,
                    int64_t channels, int64_t width, float *sums) {
    if (width == LANES) {
        dot_columns(gradient, image, step, columns, samples, channels, 1, sums);
        return;
    }
    for (int64_t column = 0; column < columns; column++)
        for (int64_t sample = 0; sample < samples; sample++)
            for (int64_t at = 0; at < width; at++)
                sums[at] += gradient[(column * samples + sample) * channels + at] *
                            image[column * step + sample * channels + at];
}

/* One row of the result and one row of the window, some channels. */
static void dot_row(const window *w, const float *gradient, const float *image, int64_t samples, int64_t channels,
                    int64_t width, float *sums) {
    int64_t pixel = samples * channels, step = w->sw * pixel;
    extent all = {0, w->ow};
    for (int64_t kw = 0; kw < w->kw; kw++) {
        extent own = met(w->w, w->ow, kw, w->sw, w->pw);
        all = (extent){most(all.first, own.first), least(all.end, own.end)};
    }
    bool together = w->kw == 3 && width == LANES && all.first < all.end;
    if (together)
        dot_columns(gradient + all.first * pixel, image + (all.first * w->sw - w->pw) * pixel, step,
                    all.end - all.first, samples, channels, 3, sums);
    for (int64_t kw = 0; kw < w->kw; kw++) {
        extent own = met(w->w, w->ow, kw, w->sw, w->pw);
        extent rests[2] = {{own.first, together ? all.first : own.end}, {together ? all.end : own.end, own.end}};
        for (int rest = 0; rest < 2; rest++)
            if (rests[rest].first < rests[rest].end)
                dot_one(gradient + rests[rest].first * pixel,
                        image + (rests[rest].first * w->sw + kw - w->pw) * pixel, step,
                        rests[rest].end - rests[rest].first, samples, channels, width, sums + kw * channels);
    }
}

static void run_depthwise_grad_weight(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    window w = window_at(sizes + DEPTH_WINDOW);
    int64_t samples = sizes[DEPTH_SAMPLES], channels = sizes[DEPTH_CHANNELS], strands = sizes[DEPTH_STRANDS];
    int64_t pixel = samples * channels;
    for (int64_t strand = first; strand < end; strand++) {
        float *sums = (float *)call->at[2] + strand * w.kh * w.kw * channels;
        memset(sums, 0, (size_t)(w.kh * w.kw * channels) * sizeof *sums);
        for (int64_t row = w.oh * strand / strands; row < w.oh * (strand + 1) / strands; row++)
            for (int64_t kh = 0; kh < w.kh; kh++) {
                int64_t down = row * w.sh + kh - w.ph;
                if (down < 0 || down >= w.h)
                    continue;
                for (int64_t channel = 0; channel < channels; channel += LANES)
                    dot_row(&w, (const float *)call->at[0] + row * w.ow * pixel + channel,
                            (const float *)call->at[1] + down * w.w * pixel + channel, samples, channels,
                            least(LANES, channels - channel), sums + kh * w.kw * channels + channel);
            }
    }
    (void)part;
}

/* Add up partial gradients (strand, position, channel) into (channel, position). Sizes: positions, channels, strands.
 * Operands: partial gradients, gradient. Cut by channels. */
static hedgerow_verdict check_join_turned(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t all = times(&check, positive(&check, 0), positive(&check, 1));
    needs_floats(&check, 0, times(&check, all, positive(&check, 2)));
    needs_floats(&check, 1, all);
    *units = record->sizes[1];
    return check.verdict;
}

static void run_join_turned(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t positions = call->record.sizes[0], channels = call->record.sizes[1], strands = call->record.sizes[2];
    const float *partial = call->at[0];
    for (int64_t position = 0; position < positions; position++)
        for (int64_t channel = first; channel < end; channel++) {
            double sum = 0;
            for (int64_t strand = 0; strand < strands; strand++)
                sum += partial[(strand * positions + position) * channels + channel];
            ((float *)call->at[1])[channel * positions + position] = (float)sum;
        }
    (void)part;
}
