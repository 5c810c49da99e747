/* Pooling of images (outer, rows, columns, inner): inner is what lies together, of which each number is pooled alone.
 *
 * Sizes: outer, inner, the window. Cut by rows of what is written, all outer ones counted.
 */
#include "row_pooling.h"
#include "windows.h"

enum { POOL_OUTER, POOL_INNER, POOL_WINDOW };

typedef struct {
    int64_t image, pooled; /* elements */
} pool_sizes;

static pool_sizes check_pool(checker *check, window *w) {
    int64_t outer = positive(check, POOL_OUTER), inner = positive(check, POOL_INNER);
    *w = check_window_with(check, POOL_WINDOW, 1); /* one more where the number of windows is rounded up */
    int64_t across = times(check, outer, inner);
    return (pool_sizes){times(check, across, w->h * w->w), times(check, across, w->oh * w->ow)};
}

/* Operands: image, result and, if they are wanted, positions: the first one that is largest. */
static hedgerow_verdict check_max_pool(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    window w;
    pool_sizes sizes = check_pool(&check, &w);
    needs_floats(&check, 0, sizes.image);
    needs_floats(&check, 1, sizes.pooled);
    if (is_there(record, 2))
        needs(&check, 2, sizes.pooled, 1);
    *units = times(&check, record->sizes[POOL_OUTER], w.oh);
    return check.verdict;
}

/* One window of `count` numbers that lie together. */
static void largest_of(const float *const *pixels, const int *positions, int found, int64_t count, float *y,
                       uint8_t *index) {
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES) {
        vec best = spread(-__builtin_inff());
        ivec place = {0};
        for (int pixel = 0; pixel < found; pixel++) {
            vec x = load(pixels[pixel] + at);
            ivec larger = (ivec)(x > best) | ((ivec)(x != x) & (ivec)(best == best));
            best = choose(larger, x, best);
            place = (larger & positions[pixel]) | (~larger & place);
        }
        store(y + at, best);
        if (index != NULL) {
            typedef uint8_t bytes __attribute__((vector_size(LANES)));
            bytes narrow = __builtin_convertvector(place, bytes);
            memcpy(index + at, &narrow, LANES);
        }
    }
    for (; at < count; at++) {
        float best = -__builtin_inff();
        int place = 0;
        for (int pixel = 0; pixel < found; pixel++) {
            float x = pixels[pixel][at];
            if (x > best || (x != x && best == best)) {
                best = x;
                place = positions[pixel];
            }
        }
        y[at] = best;
        if (index != NULL)
            index[at] = (uint8_t)place;
    }
}

/* Find the pixels of a window; returns how many there are. */
static int pixels_of(const float *image, const window *w, int64_t inner, int64_t row, int64_t column,
                     const float **pixels, int *positions) {
    int found = 0;
    for (int64_t kh = 0; kh < w->kh; kh++)
        for (int64_t kw = 0; kw < w->kw; kw++) {
            int64_t down = row * w->sh + kh - w->ph, across = column * w->sw + kw - w->pw;
            if (down < 0 || down >= w->h || across < 0 || across >= w->w)
                continue;
            pixels[found] = image + (down * w->w + across) * inner;
            positions[found++] = (int)(kh * w->kw + kw);
        }
    return found;
}

static void run_max_pool(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    window w = window_at(call->record.sizes + POOL_WINDOW);
    int64_t inner = call->record.sizes[POOL_INNER];
    const float *pixels[MOST_POSITIONS];
    int positions[MOST_POSITIONS];
    if (inner == 1 && is_in_pairs(&w)) {
        largest_of_pairs(&w, call->at[0], first, end, call->at[1], call->at[2]);
        return;
    }
    if (inner == 1) {
        largest_of_rows(call->record.sizes + POOL_WINDOW, call->at[0], first, end, call->at[1], call->at[2]);
        return;
    }
    for (int64_t unit = first; unit < end; unit++) {
        const float *image = (const float *)call->at[0] + unit / w.oh * w.h * w.w * inner;
        for (int64_t column = 0; column < w.ow; column++) {
            int64_t place = (unit * w.ow + column) * inner;
            int found = pixels_of(image, &w, inner, unit % w.oh, column, pixels, positions);
            largest_of(pixels, positions, found, inner, (float *)call->at[1] + place,
                       call->at[2] == NULL ? NULL : (uint8_t *)call->at[2] + place);
        }
    }
    (void)part;
}

/* Hand each gradient to the pixel that won; a pixel collects from all windows that it is in. Operands: gradient,
 * positions, gradient of the image. */
static hedgerow_verdict check_max_pool_grad(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    window w;
    pool_sizes sizes = check_pool(&check, &w);
    needs_floats(&check, 0, sizes.pooled);
    needs(&check, 1, sizes.pooled, 1);
    needs_floats(&check, 2, sizes.image);
    *units = times(&check, record->sizes[POOL_OUTER], w.h);
    return check.verdict;
}

static void collect(const float *const *gradients, const uint8_t *const *indices, const int *positions, int found,
                    int64_t count, float *out) {
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES) {
        vec sum = zeros();
        for (int from = 0; from < found; from++) {
            typedef uint8_t bytes __attribute__((vector_size(LANES)));
            bytes narrow;
            memcpy(&narrow, indices[from] + at, LANES);
            ivec won = __builtin_convertvector(narrow, ivec) == positions[from];
            sum += (vec)((ivec)load(gradients[from] + at) & won);
        }
        store(out + at, sum);
    }
    for (; at < count; at++) {
        float sum = 0;
        for (int from = 0; from < found; from++)
            sum += indices[from][at] == positions[from] ? gradients[from][at] : 0;
        out[at] = sum;
    }
}

/* The windows a pixel is in, and its position in each, by rising position; returns how many there are. */
static int windows_of(const window *w, int64_t row, int64_t column, int64_t *windows, int *positions) {
    int found = 0;
    for (int64_t kh = 0; kh < w->kh; kh++) {
        int64_t down = row + w->ph - kh;
        if (down < 0 || down % w->sh != 0 || down / w->sh >= w->oh)
            continue;
        for (int64_t kw = 0; kw < w->kw; kw++) {
            int64_t across = column + w->pw - kw;
            if (across < 0 || across % w->sw != 0 || across / w->sw >= w->ow)
                continue;
            windows[found] = down / w->sh * w->ow + across / w->sw;
            positions[found++] = (int)(kh * w->kw + kw);
        }
    }
    return found;
}

/* One row of the image where every pixel is in one window: 0, or the gradient of its window. */
static void hand_over_row(const hedgerow_call *call, const window *w, int64_t unit) {
    typedef uint8_t bytes __attribute__((vector_size(LANES)));
    int64_t inner = call->record.sizes[POOL_INNER], row = unit % w->h;
    int64_t pooled = (unit / w->h * w->oh + row / w->sh) * w->ow;
    const int32_t position = (int32_t)(row % w->sh * w->kw);
    for (int64_t across = 0; across < w->ow; across++) {
        const float *gradient = (const float *)call->at[0] + (pooled + across) * inner;
        const uint8_t *index = (const uint8_t *)call->at[1] + (pooled + across) * inner;
        float *out = (float *)call->at[2] + (unit * w->w + across * w->kw) * inner;
        int64_t at = 0;
        for (; at + LANES <= inner; at += LANES) {
            bytes narrow;
            memcpy(&narrow, index + at, LANES);
            ivec winner = __builtin_convertvector(narrow, ivec) - position, arriving = (ivec)load(gradient + at);
            for (int32_t kw = 0; kw < (int32_t)w->kw; kw++)
                store(out + kw * inner + at, (vec)(arriving & (winner == kw)));
        }
        for (; at < inner; at++)
            for (int64_t kw = 0; kw < w->kw; kw++)
                out[kw * inner + at] = index[at] == position + kw ? gradient[at] : 0;
    }
}

static bool every_pixel_in_one_window(const window *w) {
    return w->sh == w->kh && w->sw == w->kw && w->ph == 0 && w->pw == 0 && w->oh * w->kh == w->h && w->ow * w->kw == w->w;
}

static void run_max_pool_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    window w = window_at(call->record.sizes + POOL_WINDOW);
    int64_t inner = call->record.sizes[POOL_INNER], windows[MOST_POSITIONS];
    if (inner == 1 && is_in_pairs(&w)) {
        give_back_pairs(&w, call->at[0], call->at[1], first, end, call->at[2]);
        return;
    }
    if (inner == 1) {
        give_back_rows(call->record.sizes + POOL_WINDOW, call->at[0], call->at[1], first, end, 1, call->at[2]);
        return;
    }
    if (every_pixel_in_one_window(&w)) {
        for (int64_t unit = first; unit < end; unit++)
            hand_over_row(call, &w, unit);
        return;
    }
    const float *gradients[MOST_POSITIONS];
    const uint8_t *indices[MOST_POSITIONS];
    int positions[MOST_POSITIONS];
    for (int64_t unit = first; unit < end; unit++) {
        int64_t pooled = unit / w.h * w.oh * w.ow;
        for (int64_t column = 0; column < w.w; column++) {
            int found = windows_of(&w, unit % w.h, column, windows, positions);
            for (int from = 0; from < found; from++) {
                gradients[from] = (const float *)call->at[0] + (pooled + windows[from]) * inner;
                indices[from] = (const uint8_t *)call->at[1] + (pooled + windows[from]) * inner;
            }
            collect(gradients, indices, positions, found, inner, (float *)call->at[2] + (unit * w.w + column) * inner);
        }
    }
    (void)part;
}

/* Means of windows, padding counted as zeros. Operands: image, result. */
static hedgerow_verdict check_mean_pool(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    window w;
    pool_sizes sizes = check_pool(&check, &w);
    needs_floats(&check, 0, sizes.image);
    needs_floats(&check, 1, sizes.pooled);
    *units = times(&check, record->sizes[POOL_OUTER], w.oh);
    return check.verdict;
}

static void add_up(const float *const *parts, int found, int64_t count, float factor, float *out) {
    for (int64_t at = 0; at < count; at++) {
        float sum = 0;
        for (int from = 0; from < found; from++)
            sum += parts[from][at];
        out[at] = sum * factor;
    }
}

static void run_mean_pool(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    window w = window_at(call->record.sizes + POOL_WINDOW);
    int64_t inner = call->record.sizes[POOL_INNER];
    const float *pixels[MOST_POSITIONS], share = 1.0F / (float)(w.kh * w.kw);
    int positions[MOST_POSITIONS];
    if (inner == 1) {
        means_of_rows(call->record.sizes + POOL_WINDOW, call->at[0], first, end, share, call->at[1]);
        return;
    }
    for (int64_t unit = first; unit < end; unit++) {
        const float *image = (const float *)call->at[0] + unit / w.oh * w.h * w.w * inner;
        for (int64_t column = 0; column < w.ow; column++) {
            int found = pixels_of(image, &w, inner, unit % w.oh, column, pixels, positions);
            add_up(pixels, found, inner, share, (float *)call->at[1] + (unit * w.ow + column) * inner);
        }
    }
    (void)part;
}

/* Operands: gradient, gradient of the image. */
static hedgerow_verdict check_mean_pool_grad(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    window w;
    pool_sizes sizes = check_pool(&check, &w);
    needs_floats(&check, 0, sizes.pooled);
    needs_floats(&check, 1, sizes.image);
    *units = times(&check, record->sizes[POOL_OUTER], w.h);
    return check.verdict;
}

static void run_mean_pool_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    window w = window_at(call->record.sizes + POOL_WINDOW);
    int64_t inner = call->record.sizes[POOL_INNER], windows[MOST_POSITIONS];
    const float *gradients[MOST_POSITIONS], share = 1.0F / (float)(w.kh * w.kw);
    int positions[MOST_POSITIONS];
    if (inner == 1) {
        give_back_rows(call->record.sizes + POOL_WINDOW, call->at[0], NULL, first, end, share, call->at[1]);
        return;
    }
    for (int64_t unit = first; unit < end; unit++)
        for (int64_t column = 0; column < w.w; column++) {
            int found = windows_of(&w, unit % w.h, column, windows, positions);
            for (int from = 0; from < found; from++)
                gradients[from] = (const float *)call->at[0] + (unit / w.h * w.oh * w.ow + windows[from]) * inner;
            add_up(gradients, found, inner, share, (float *)call->at[1] + (unit * w.w + column) * inner);
        }
    (void)part;
}
