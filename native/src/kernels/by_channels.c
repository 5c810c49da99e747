/* Convolutions of images by channels (channels, rows, columns, samples): a row of one channel is one run over columns
 * and samples. Patches of 24 numbers of a row at a time are packed near, (window, 24), and every output goes over
 * them. Sizes and the weight as by_pixels has them; the weight lies as its shape says.
 *
 * The panel is a thread's own, 48 KiB on its stack.
 */
#include "products.h"
#include "windows.h"

enum { WIDE = 3 * LANES, WIDE_ROWS = 4, WIDE_DEPTH = 512 };
enum { ENTRY_LINES = 64, ENTRY_NUMBERS = 2048 /* lines and outputs of what is added up in 64 bits */ };

/* Copy `count` numbers of a row that begins at `start`, which may hang over either end; beyond them are zeros. */
static void copy_run(const float *row, int64_t start, int64_t length, int64_t count, float *to) {
    int64_t first = least(count, most(0, -start)), end = most(first, least(count, length - start));
    for (int64_t at = 0; at < first; at++)
        to[at] = 0;
    if (end > first)
        memcpy(to + first, row + start + first, (size_t)(end - first) * sizeof *to);
    for (int64_t at = end; at < count; at++)
        to[at] = 0;
}

static inline void copy_few(float *restrict to, const float *restrict from, int64_t count) {
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        store(to + at, load(from + at));
    for (; at < count; at++)
        to[at] = from[at];
}

static inline void clear_few(float *to, int64_t count) {
    for (int64_t at = 0; at < count; at++)
        to[at] = 0;
}

/* Where a run of numbers of a row begins: its column and its sample. */
typedef struct {
    int64_t column, sample;
} place;

/* One line of a patch panel: `count` numbers of a row of the result, seen through one position of the window; `row` is
 * the image's row that it meets. */
static void patch_line(const window *w, int64_t samples, const float *row, int64_t kw, place from, int64_t count,
                       float *to) {
    int64_t across = from.column * w->sw + kw - w->pw, sample = from.sample;
    if (w->sw == 1 && across >= 0 && across * samples + sample + count <= w->w * samples) {
        copy_few(to, row + across * samples + sample, count);
        return;
    }
    for (int64_t at = 0, run; at < count; at += run, across += w->sw, sample = 0) {
        run = least(samples - sample, count - at);
        if (across < 0 || across >= w->w)
            clear_few(to + at, run);
        else
            copy_few(to + at, row + across * samples + sample, run);
    }
}

/* The lines `first` to before `end` of the window (channel, position) for a row of the result. */
static void pack_patches(const window *w, int64_t samples, const float *image, int64_t row, int64_t first,
                         int64_t count, extent lines, int64_t line_step, float *panel) {
    int64_t taps = w->kh * w->kw, image_row = w->w * samples, channel = lines.first / taps;
    int64_t kh = lines.first % taps / w->kw, kw = lines.first % taps % w->kw;
    place from = {first / samples, first % samples};
    for (int64_t line = lines.first; line < lines.end; line++, panel += line_step) {
        int64_t down = row * w->sh + kh - w->ph;
        if (down < 0 || down >= w->h)
            clear_few(panel, count);
        else
            patch_line(w, samples, image + (channel * w->h + down) * image_row, kw, from, count, panel);
        if (count < line_step && line_step == WIDE)
            clear_few(panel + count, line_step - count);
        if (++kw == w->kw) {
            kw = 0;
            if (++kh == w->kh) {
                kh = 0;
                channel++;
            }
        }
    }
}

/* Outputs of one panel: a.at[row * a.row + group * a.depth + position], groups of `inner` terms of the sum. */
#define WIDE_TILE(rows)                                                                                                \
    static void wide_tile_of_##rows(left_side a, int64_t inner, int64_t groups, const float *panel, float *c,          \
                                    int64_t ldc, int64_t columns, bool add) {                                          \
        vec sums[rows][3];                                                                                             \
        for (int row = 0; row < (rows); row++)                                                                         \
            sums[row][0] = sums[row][1] = sums[row][2] = zeros();                                                      \
        for (int64_t group = 0; group < groups; group++) {                                                             \
            const float *factors = a.at + group * a.depth;                                                             \
            for (int64_t step = 0; step < inner; step++, panel += WIDE) {                                              \
                vec one = load(panel), two = load(panel + LANES), three = load(panel + 2 * LANES);                     \
                KEEP(one);                                                                                             \
                KEEP(two);                                                                                             \
                KEEP(three);                                                                                           \
                for (int row = 0; row < (rows); row++) {                                                               \
                    vec factor = spread(factors[row * a.row + step]);                                                  \
                    sums[row][0] += factor * one;                                                                      \
                    sums[row][1] += factor * two;                                                                      \
                    sums[row][2] += factor * three;                                                                    \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        for (int row = 0; row < (rows); row++)                                                                         \
            put_wide(c + row * ldc, sums[row], columns, add);                                                          \
    }

static inline void put_wide(float *c, const vec *sums, int64_t columns, bool add) {
    for (int at = 0; at < 3; at++) {
        int64_t count = columns - at * LANES;
        if (count >= LANES)
            store(c + at * LANES, add ? load(c + at * LANES) + sums[at] : sums[at]);
        else
            for (int64_t lane = 0; lane < count; lane++)
                c[at * LANES + lane] = add ? c[at * LANES + lane] + sums[at][lane] : sums[at][lane];
    }
}

WIDE_TILE(1)
WIDE_TILE(2)
WIDE_TILE(3)
WIDE_TILE(4)

typedef void (*wide_function)(left_side, int64_t, int64_t, const float *, float *, int64_t, int64_t, bool);
static const wide_function WIDE_TILES[WIDE_ROWS + 1] = {NULL, wide_tile_of_1, wide_tile_of_2, wide_tile_of_3,
                                                        wide_tile_of_4};

/* Where windows move by one, rows of the source are copied once into a ring of as many rows as the window has, with
 * zeros at both ends and gaps that keep channels from sharing cache lines; they are then read where they are, shifted
 * by columns. The ring is scratch, cut evenly between parts; it holds as many channels at once as there is room for. */
typedef struct {
    const float *source, *weight;
    float *target, *ring;
    int64_t depth, outputs;             /* channels of the source and of the target */
    int64_t source_rows, source_length; /* rows, and numbers of a row */
    int64_t rows, length;               /* of the target */
    int64_t kh, kw, samples;
    int64_t top, left;                  /* rows, and numbers, of zeros before the source */
    int64_t row_step, depth_step;       /* of the weight */
    bool turned;                        /* whether the window is read from its end */
    int64_t padded, chunk;              /* numbers of a row of the ring, channels in it */
} direct;

static int64_t padded_length(int64_t length, int64_t kw, int64_t samples) {
    int64_t whole = (length + WIDE - 1) / WIDE * WIDE + (kw - 1) * samples;
    return (whole + 31) / 32 * 32 + 16;
}

static void fill_row(const direct *d, int64_t first, int64_t channels, int64_t row, float *to) {
    for (int64_t channel = 0; channel < channels; channel++, to += d->padded) {
        bool inside = row >= 0 && row < d->source_rows;
        memset(to, 0, (size_t)d->left * sizeof *to);
        if (inside)
            memcpy(to + d->left, d->source + ((first + channel) * d->source_rows + row) * d->source_length,
                   (size_t)d->source_length * sizeof *to);
        int64_t filled = d->left + (inside ? d->source_length : 0);
        memset(to + filled, 0, (size_t)(d->padded - filled) * sizeof *to);
    }
}

/* The window as the compiler may know it. */
typedef struct {
    int64_t kh, kw;
    bool turned;
} shape_of_window;

#define DIRECT_TILE(rows)                                                                                              \
    static inline __attribute__((always_inline)) void direct_tile_of_##rows(                                           \
        const direct *d, shape_of_window w, const float *const *lines, const float *weight, int64_t depth, float *c,   \
        int64_t ldc, int64_t columns, bool add) {                                                                      \
        vec sums[rows][3];                                                                                             \
        const int64_t samples = d->samples, row_step = d->row_step, last = w.kh * w.kw - 1;                            \
        for (int row = 0; row < (rows); row++)                                                                         \
            sums[row][0] = sums[row][1] = sums[row][2] = zeros();                                                      \
        for (int64_t channel = 0; channel < depth; channel++) {                                                        \
            const float *factors = weight + channel * d->depth_step;                                                   \
            _Pragma("GCC unroll 3") for (int64_t kh = 0; kh < w.kh; kh++) {                                            \
                const float *line = lines[kh] + channel * d->padded;                                                   \
                _Pragma("GCC unroll 3") for (int64_t kw = 0; kw < w.kw; kw++) {                                        \
                    const float *at = line + kw * samples;                                                             \
                    vec one = load(at), two = load(at + LANES), three = load(at + 2 * LANES);                          \
                    KEEP(one);                                                                                         \
                    KEEP(two);                                                                                         \
                    KEEP(three);                                                                                       \
                    const int64_t tap = kh * w.kw + kw;                                                                \
                    for (int row = 0; row < (rows); row++) {                                                           \
                        vec factor = spread(factors[row * row_step + (w.turned ? last - tap : tap)]);                  \
                        sums[row][0] += factor * one;                                                                  \
                        sums[row][1] += factor * two;                                                                  \
                        sums[row][2] += factor * three;                                                                \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        for (int row = 0; row < (rows); row++)                                                                         \
            put_wide(c + row * ldc, sums[row], columns, add);                                                          \
    }

DIRECT_TILE(1)
DIRECT_TILE(4)

static inline __attribute__((always_inline)) void direct_outputs(const direct *d, shape_of_window w,
                                                                 const float *const *lines, const float *weight,
                                                                 int64_t depth, float *c, int64_t columns, bool add) {
    int64_t ldc = d->rows * d->length, output = 0;
    for (; output + WIDE_ROWS <= d->outputs; output += WIDE_ROWS)
        direct_tile_of_4(d, w, lines, weight + output * d->row_step, depth, c + output * ldc, ldc, columns, add);
    for (; output < d->outputs; output++)
        direct_tile_of_1(d, w, lines, weight + output * d->row_step, depth, c + output * ldc, ldc, columns, add);
}

static void direct_row(const direct *d, int64_t row, int64_t first, int64_t depth) {
    const float *lines[MOST_POSITIONS], *weight = d->weight + first * d->depth_step;
    for (int64_t column = 0; column < d->length; column += WIDE) {
        float *c = d->target + row * d->length + column;
        int64_t columns = least(WIDE, d->length - column);
        for (int64_t kh = 0; kh < d->kh; kh++)
            lines[kh] = d->ring + (row + kh) % d->kh * d->chunk * d->padded + column;
        if (d->kh == 3 && d->kw == 3 && d->turned)
            direct_outputs(d, (shape_of_window){3, 3, true}, lines, weight, depth, c, columns, first > 0);
        else if (d->kh == 3 && d->kw == 3)
            direct_outputs(d, (shape_of_window){3, 3, false}, lines, weight, depth, c, columns, first > 0);
        else
            direct_outputs(d, (shape_of_window){d->kh, d->kw, d->turned}, lines, weight, depth, c, columns, first > 0);
    }
}

static void direct_rows(const direct *d, extent rows) {
    for (int64_t first = 0; first < d->depth; first += d->chunk) {
        int64_t depth = least(d->chunk, d->depth - first);
        for (int64_t row = rows.first; row < rows.end; row++) {
            for (int64_t kh = row == rows.first ? 0 : d->kh - 1; kh < d->kh; kh++)
                fill_row(d, first, depth, row + kh - d->top, d->ring + (row + kh) % d->kh * d->chunk * d->padded);
            direct_row(d, row, first, depth);
        }
    }
}

/* How a convolution, or the gradient of its images, is done directly; false if windows do not move by one, or there is
 * no room for the ring (operand 4). */
static bool plan_direct(const hedgerow_call *call, bool back, int part, direct *d) {
    const int64_t *sizes = call->record.sizes;
    window w = window_at(sizes + CONV_WINDOW);
    int64_t samples = sizes[CONV_SAMPLES], taps = w.kh * w.kw, channels = sizes[CONV_CHANNELS];
    if (w.sh != 1 || w.sw != 1 || w.ph >= w.kh || w.pw >= w.kw || call->at[4] == NULL)
        return false;
    *d = (direct){.source = call->at[0], .weight = call->at[1], .target = call->at[2], .samples = samples,
                  .kh = w.kh, .kw = w.kw, .turned = back, .top = back ? w.kh - 1 - w.ph : w.ph,
                  .left = (back ? w.kw - 1 - w.pw : w.pw) * samples,
                  .depth = back ? sizes[CONV_OUTPUTS] : channels, .outputs = back ? channels : sizes[CONV_OUTPUTS],
                  .source_rows = back ? w.oh : w.h, .source_length = (back ? w.ow : w.w) * samples,
                  .rows = back ? w.h : w.oh, .length = (back ? w.w : w.ow) * samples,
                  .row_step = back ? taps : channels * taps, .depth_step = back ? channels * taps : taps};
    d->padded = padded_length(d->length, w.kw, samples);
    int64_t floats = call->record.operands[4].bytes / (int64_t)sizeof(float) / call->record.parts;
    d->chunk = least(d->depth, floats / (w.kh * d->padded));
    d->ring = (float *)call->at[4] + part * floats;
    return d->chunk > 0;
}

/* Weights lie as their shape says, and room, which may be of any size, holds floats. */
static hedgerow_verdict check_room(const hedgerow_record *record) {
    checker check = look_at(record);
    refuse_unless(&check, record->sizes[CONV_BY_TAPS] == 0, HEDGEROW_WRONG_SIZES);
    may_have_floats(&check, 4, 0);
    return check.verdict;
}

/* Image and result by channels. Operands: image, weight, result, bias if there is one, room for the ring. Cut by rows
 * of the result. */
static hedgerow_verdict check_channels_forward(const hedgerow_record *record, int64_t *units) {
    hedgerow_verdict verdict = check_conv_forward(record, units);
    *units = record->sizes[CONV_WINDOW + WINDOW_OH];
    return verdict != HEDGEROW_FINE ? verdict : check_room(record);
}

static void add_bias(const hedgerow_call *call, int64_t first, int64_t end) {
    const int64_t *sizes = call->record.sizes;
    window w = window_at(sizes + CONV_WINDOW);
    int64_t length = w.ow * sizes[CONV_SAMPLES];
    const float *bias = call->at[3];
    for (int64_t output = 0; bias != NULL && output < sizes[CONV_OUTPUTS]; output++) {
        float *result = (float *)call->at[2] + output * w.oh * length;
        for (int64_t at = first * length; at < end * length; at++)
            result[at] += bias[output];
    }
}

static void run_channels_forward(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    _Alignas(64) float panel[WIDE_DEPTH * WIDE];
    const int64_t *sizes = call->record.sizes;
    int64_t samples = sizes[CONV_SAMPLES], outputs = sizes[CONV_OUTPUTS];
    window w = window_at(sizes + CONV_WINDOW);
    int64_t lines = sizes[CONV_CHANNELS] * w.kh * w.kw, row_numbers = w.ow * samples;
    const float *weight = call->at[1];
    direct d;
    if (plan_direct(call, false, part, &d)) {
        direct_rows(&d, (extent){first, end});
        add_bias(call, first, end);
        return;
    }
    for (int64_t row = first; row < end; row++)
        for (int64_t column = 0; column < row_numbers; column += WIDE) {
            int64_t columns = least(WIDE, row_numbers - column);
            float *result = (float *)call->at[2] + row * row_numbers + column;
            for (int64_t line = 0; line < lines; line += WIDE_DEPTH) {
                int64_t depth = least(WIDE_DEPTH, lines - line);
                pack_patches(&w, samples, call->at[0], row, column, columns, (extent){line, line + depth}, WIDE, panel);
                for (int64_t output = 0; output < outputs; output += WIDE_ROWS) {
                    left_side a = {weight + output * lines + line, lines, 0};
                    WIDE_TILES[least(WIDE_ROWS, outputs - output)](a, depth, 1, panel,
                                                                   result + output * w.oh * row_numbers,
                                                                   w.oh * row_numbers, columns, line > 0);
                }
            }
        }
    add_bias(call, first, end);
}

/* Operands: gradient, weight, gradient of the image, -, room for the ring. Cut by rows of the image. */
static hedgerow_verdict check_channels_grad_input(const hedgerow_record *record, int64_t *units) {
    hedgerow_verdict verdict = check_conv_grad_input(record, units);
    *units = record->sizes[CONV_WINDOW + WINDOW_H];
    return verdict != HEDGEROW_FINE ? verdict : check_room(record);
}

/* Gradients that numbers `first` to `first + count` of a row of the image are made of, through one position. */
static void gradient_line(const window *w, int64_t samples, const float *row, int64_t kw, int64_t first, int64_t count,
                          float *to) {
    if (w->sw == 1) {
        copy_run(row, first + (w->pw - kw) * samples, w->ow * samples, count, to);
        return;
    }
    for (int64_t at = 0; at < count;) {
        int64_t column = (first + at) / samples, sample = (first + at) % samples, run = least(samples - sample, count - at);
        int64_t across = column + w->pw - kw;
        if (across < 0 || across % w->sw != 0 || across / w->sw >= w->ow)
            memset(to + at, 0, (size_t)run * sizeof *to);
        else
            memcpy(to + at, row + across / w->sw * samples + sample, (size_t)run * sizeof *to);
        at += run;
    }
}

static void pack_gradients(const window *w, int64_t samples, const float *gradient, int64_t row, int64_t first,
                           int64_t count, extent outputs, float *panel) {
    for (int64_t output = outputs.first; output < outputs.end; output++)
        for (int64_t tap = 0; tap < w->kh * w->kw; tap++, panel += WIDE) {
            int64_t down = row + w->ph - tap / w->kw;
            if (down < 0 || down % w->sh != 0 || down / w->sh >= w->oh)
                memset(panel, 0, WIDE * sizeof *panel);
            else
                gradient_line(w, samples, gradient + (output * w->oh + down / w->sh) * w->ow * samples, tap % w->kw,
                              first, count, panel);
            if (count < WIDE)
                memset(panel + count, 0, (size_t)(WIDE - count) * sizeof *panel);
        }
}

static void run_channels_grad_input(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    _Alignas(64) float panel[WIDE_DEPTH * WIDE];
    const int64_t *sizes = call->record.sizes;
    int64_t samples = sizes[CONV_SAMPLES], outputs = sizes[CONV_OUTPUTS], channels = sizes[CONV_CHANNELS];
    window w = window_at(sizes + CONV_WINDOW);
    int64_t taps = w.kh * w.kw, row_numbers = w.w * samples, per_panel = WIDE_DEPTH / taps;
    const float *weight = call->at[1];
    direct d;
    if (plan_direct(call, true, part, &d)) {
        direct_rows(&d, (extent){first, end});
        return;
    }
    for (int64_t row = first; row < end; row++)
        for (int64_t column = 0; column < row_numbers; column += WIDE) {
            int64_t columns = least(WIDE, row_numbers - column);
            float *result = (float *)call->at[2] + row * row_numbers + column;
            for (int64_t output = 0; output < outputs; output += per_panel) {
                extent some = {output, least(outputs, output + per_panel)};
                pack_gradients(&w, samples, call->at[0], row, column, columns, some, panel);
                for (int64_t channel = 0; channel < channels; channel += WIDE_ROWS) {
                    left_side a = {weight + (output * channels + channel) * taps, taps, channels * taps};
                    WIDE_TILES[least(WIDE_ROWS, channels - channel)](a, taps, some.end - some.first, panel,
                                                                     result + channel * w.h * row_numbers,
                                                                     w.h * row_numbers, columns, output > 0);
                }
            }
        }
}

/* Operands: gradient, image, gradient of the weight, -, room for some rows. Cut by outputs. */
static hedgerow_verdict check_channels_grad_weight(const hedgerow_record *record, int64_t *units) {
    hedgerow_verdict verdict = check_conv_grad_weight(record, units);
    return verdict != HEDGEROW_FINE ? verdict : check_room(record);
}

static float dot(const float *a, const float *b, int64_t count) {
    vec sum = zeros();
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        sum += load(a + at) * load(b + at);
    float rest = 0;
    for (; at < count; at++)
        rest += a[at] * b[at];
    return lanes_sum(sum) + rest;
}

/* Products of four outputs' rows with one channel's rows at three neighbouring positions; all lie within their rows. */
static void dot_four_by_three(const float *gradient, int64_t gradient_step, const float *image, int64_t image_step,
                              int64_t count, int64_t rows, int64_t row_step, int64_t image_row_step, float *out,
                              int64_t out_step) {
    vec sums[4][3];
    float rests[4][3] = {{0}};
    for (int at = 0; at < 4; at++)
        sums[at][0] = sums[at][1] = sums[at][2] = zeros();
    for (int64_t row = 0; row < rows; row++, gradient += row_step, image += image_row_step) {
        int64_t at = 0;
        for (; at + LANES <= count; at += LANES) {
            vec one = load(image + at), two = load(image + image_step + at), three = load(image + 2 * image_step + at);
            KEEP(one);
            KEEP(two);
            KEEP(three);
            for (int output = 0; output < 4; output++) {
                vec arriving = load(gradient + output * gradient_step + at);
                KEEP(arriving);
                sums[output][0] += arriving * one;
                sums[output][1] += arriving * two;
                sums[output][2] += arriving * three;
            }
        }
        for (; at < count; at++)
            for (int output = 0; output < 4; output++)
                for (int position = 0; position < 3; position++)
                    rests[output][position] += gradient[output * gradient_step + at] * image[position * image_step + at];
    }
    for (int output = 0; output < 4; output++)
        for (int position = 0; position < 3; position++)
            out[output * out_step + position] += lanes_sum(sums[output][position]) + rests[output][position];
}

/* One row of the result of up to four outputs, one channel, one row of the window. */
static void weigh_row(const window *w, int64_t samples, const float *gradient, int64_t gradient_step, int64_t outputs,
                      const float *image, float *out, int64_t out_step) {
    extent all = {w->pw, least(w->ow, w->w - 2 + w->pw)};
    bool together = outputs == 4 && w->kw == 3 && w->sw == 1 && w->pw <= 2 && all.first < all.end;
    if (together)
        dot_four_by_three(gradient + all.first * samples, gradient_step, image + (all.first - w->pw) * samples, samples,
                          (all.end - all.first) * samples, 1, 0, 0, out, out_step);
    for (int64_t kw = 0; kw < w->kw; kw++) {
        extent own = met(w->w, w->ow, kw, w->sw, w->pw);
        extent rests[2] = {{own.first, together ? all.first : own.end}, {together ? all.end : own.end, own.end}};
        for (int64_t output = 0; output < outputs; output++)
            for (int rest = 0; rest < 2; rest++) {
                int64_t run = w->sw == 1 ? most(0, rests[rest].end - rests[rest].first) : 1;
                for (int64_t column = rests[rest].first; column < rests[rest].end; column += run)
                    out[output * out_step + kw] += dot(gradient + output * gradient_step + column * samples,
                                                       image + (column * w->sw + kw - w->pw) * samples, run * samples);
            }
    }
}

enum { NUMBERS_AT_ONCE = 1024, MOST_ROWS_AT_ONCE = 4 };

/* The same where windows move by one: some rows of the image are copied near, with zeros at both ends. */
typedef struct {
    direct d; /* its ring holds rows of the image for `rows` of the gradient */
    int64_t rows;
} direct_weight;

static bool plan_direct_weight(const hedgerow_call *call, int part, direct_weight *plan) {
    const int64_t *sizes = call->record.sizes;
    window w = window_at(sizes + CONV_WINDOW);
    int64_t samples = sizes[CONV_SAMPLES], channels = sizes[CONV_CHANNELS], length = w.ow * samples;
    if (w.sh != 1 || w.sw != 1 || w.ph >= w.kh || w.kw != 3 || w.pw >= w.kw || call->at[4] == NULL)
        return false;
    plan->d = (direct){.source = call->at[1], .source_rows = w.h, .source_length = w.w * samples, .depth = channels,
                       .left = w.pw * samples, .padded = padded_length(length, w.kw, samples)};
    int64_t floats = call->record.operands[4].bytes / (int64_t)sizeof(float) / call->record.parts;
    plan->rows = most(1, least(least(w.oh, MOST_ROWS_AT_ONCE), NUMBERS_AT_ONCE / length));
    while (plan->rows > 1 && floats < channels * (plan->rows + w.kh - 1) * plan->d.padded)
        plan->rows--;
    plan->d.chunk = least(channels, floats / ((plan->rows + w.kh - 1) * plan->d.padded));
    plan->d.ring = (float *)call->at[4] + part * floats;
    return plan->d.chunk > 0;
}

/* Four outputs, or one of them four times. */
static void weigh_rows(const hedgerow_call *call, const direct_weight *plan, const window *w, int64_t output,
                       int64_t outputs, int64_t row, int64_t rows, extent channels) {
    int64_t taps = w->kh * w->kw, length = w->ow * call->record.sizes[CONV_SAMPLES], step = w->oh * length;
    int64_t all = call->record.sizes[CONV_CHANNELS], across = plan->d.chunk * plan->d.padded;
    for (int64_t channel = channels.first; channel < channels.end; channel++)
        for (int64_t kh = 0; kh < w->kh; kh++) {
            float *out = (float *)call->at[2] + (output * all + channel) * taps + kh * w->kw, spare[12] = {0};
            const float *gradient = (const float *)call->at[0] + output * step + row * length;
            const float *image = plan->d.ring + kh * across + (channel - channels.first) * plan->d.padded;
            dot_four_by_three(gradient, outputs == 4 ? step : 0, image, call->record.sizes[CONV_SAMPLES], length, rows,
                              length, across, outputs == 4 ? out : spare, outputs == 4 ? all * taps : 3);
            for (int position = 0; outputs != 4 && position < 3; position++)
                out[position] += spare[position];
        }
}

static void direct_weights(const hedgerow_call *call, const direct_weight *plan, extent outputs) {
    window w = window_at(call->record.sizes + CONV_WINDOW);
    for (int64_t channel = 0; channel < plan->d.depth; channel += plan->d.chunk) {
        extent some = {channel, least(plan->d.depth, channel + plan->d.chunk)};
        for (int64_t row = 0; row < w.oh; row += plan->rows) {
            int64_t rows = least(plan->rows, w.oh - row), output = outputs.first;
            for (int64_t line = 0; line < rows + w.kh - 1; line++)
                fill_row(&plan->d, channel, some.end - some.first, row + line - w.ph,
                         plan->d.ring + line * plan->d.chunk * plan->d.padded);
            for (; output + 4 <= outputs.end; output += 4)
                weigh_rows(call, plan, &w, output, 4, row, rows, some);
            for (; output < outputs.end; output++)
                weigh_rows(call, plan, &w, output, 1, row, rows, some);
        }
    }
}

static void run_channels_grad_weight(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    int64_t samples = sizes[CONV_SAMPLES], channels = sizes[CONV_CHANNELS];
    window w = window_at(sizes + CONV_WINDOW);
    int64_t taps = w.kh * w.kw, step = w.oh * w.ow * samples;
    float *out = call->at[2];
    memset(out + first * channels * taps, 0, (size_t)((end - first) * channels * taps) * sizeof *out);
    direct_weight plan;
    if (plan_direct_weight(call, part, &plan)) {
        direct_weights(call, &plan, (extent){first, end});
        return;
    }
    for (int64_t row = 0; row < w.oh; row++)
        for (int64_t output = first; output < end; output += WIDE_ROWS) {
            const float *gradient = (const float *)call->at[0] + output * step + row * w.ow * samples;
            for (int64_t channel = 0; channel < channels; channel++)
                for (int64_t kh = 0; kh < w.kh; kh++) {
                    int64_t down = row * w.sh + kh - w.ph;
                    if (down >= 0 && down < w.h)
                        weigh_row(&w, samples, gradient, step, least(WIDE_ROWS, end - output),
                                  (const float *)call->at[1] + (channel * w.h + down) * w.w * samples,
                                  out + (output * channels + channel) * taps + kh * w.kw, channels * taps);
                }
        }
}

/* Image by channels, result by pixels. Operands: image, weight turned (window, output), result, bias if there is one.
 * Cut by rows of the result. */
static hedgerow_verdict check_entry_forward(const hedgerow_record *record, int64_t *units) {
    return check_channels_forward(record, units);
}

/* Eight outputs, or the last ones, of four columns of a panel, in 64 bits. */
static void entry_outputs(const double *panel, const double *factors, int64_t lines, int64_t columns, int64_t outputs,
                          int64_t count, float *result) {
    four low[4] = {{0}, {0}, {0}, {0}}, high[4] = {{0}, {0}, {0}, {0}};
    for (int64_t line = 0; line < lines; line++) {
        four first = *(const four *)(factors + line * LANES), second = *(const four *)(factors + line * LANES + 4);
        for (int at = 0; at < 4; at++) {
            double number = panel[line * WIDE + at];
            low[at] += first * number;
            high[at] += second * number;
        }
    }
    for (int at = 0; at < 4 && at < columns; at++) {
        float numbers[LANES];
        for (int output = 0; output < 4; output++) {
            numbers[output] = (float)low[at][output];
            numbers[output + 4] = (float)high[at][output];
        }
        store_upto(result + at * outputs, load(numbers), count);
    }
}

/* Small windows: what comes first is added up in 64 bits, because all that follows is computed from it. */
static void enter_small(const hedgerow_call *call, const window *w, extent rows) {
    _Alignas(64) double factors[ENTRY_NUMBERS], wide[ENTRY_LINES * WIDE];
    float panel[ENTRY_LINES * WIDE];
    const int64_t *sizes = call->record.sizes, lines = sizes[CONV_CHANNELS] * w->kh * w->kw;
    const int64_t outputs = sizes[CONV_OUTPUTS], row_numbers = w->ow * sizes[CONV_SAMPLES];
    const float *weight = call->at[1];
    for (int64_t output = 0; output < whole_vectors(outputs); output++)
        for (int64_t line = 0; line < lines; line++)
            factors[(output / LANES * lines + line) * LANES + output % LANES] =
                output < outputs ? weight[line * outputs + output] : 0;
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t from = 0; from < row_numbers; from += WIDE) {
            int64_t columns = least(WIDE, row_numbers - from);
            float *result = (float *)call->at[2] + (row * row_numbers + from) * outputs;
            pack_patches(w, sizes[CONV_SAMPLES], call->at[0], row, from, columns, (extent){0, lines}, WIDE, panel);
            for (int64_t at = 0; at < lines * WIDE; at++)
                wide[at] = panel[at];
            for (int64_t output = 0; output < outputs; output += LANES)
                for (int64_t column = 0; column < columns; column += 4)
                    entry_outputs(wide + column, factors + output * lines, lines, columns - column, outputs,
                                  least(LANES, outputs - output), result + column * outputs + output);
        }
}

static void enter_large(const hedgerow_call *call, const window *w, extent rows) {
    _Alignas(64) float panel[WIDE_DEPTH * WIDE];
    const int64_t *sizes = call->record.sizes, lines = sizes[CONV_CHANNELS] * w->kh * w->kw;
    const int64_t samples = sizes[CONV_SAMPLES], outputs = sizes[CONV_OUTPUTS], row_numbers = w->ow * samples;
    const float *weight = call->at[1];
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t column = 0; column < row_numbers; column += WIDE) {
            int64_t columns = least(WIDE, row_numbers - column);
            float *result = (float *)call->at[2] + (row * row_numbers + column) * outputs;
            for (int64_t line = 0; line < lines; line += WIDE_DEPTH) {
                int64_t depth = least(WIDE_DEPTH, lines - line);
                pack_patches(w, samples, call->at[0], row, column, columns, (extent){line, line + depth}, WIDE, panel);
                hedgerow_product p = {.turn_a = true, .m = columns, .n = outputs, .k = depth, .a = panel, .lda = WIDE,
                                      .b = weight + line * outputs, .ldb = outputs, .c = result, .ldc = outputs,
                                      .beta = line > 0};
                near_product(&p);
            }
        }
}

static void run_entry_forward(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes, outputs = sizes[CONV_OUTPUTS];
    window w = window_at(sizes + CONV_WINDOW);
    int64_t lines = sizes[CONV_CHANNELS] * w.kh * w.kw, row_numbers = w.ow * sizes[CONV_SAMPLES];
    const float *bias = call->at[3];
    if (lines <= ENTRY_LINES && lines * whole_vectors(outputs) <= ENTRY_NUMBERS)
        enter_small(call, &w, (extent){first, end});
    else
        enter_large(call, &w, (extent){first, end});
    for (int64_t pixel = first * row_numbers; bias != NULL && pixel < end * row_numbers; pixel++)
        for (int64_t output = 0; output < outputs; output++)
            ((float *)call->at[2])[pixel * outputs + output] += bias[output];
    (void)part;
}

/* Gradient by pixels, image by channels. Operands: gradient, image, gradient of the weight, turned (window, output).
 * Cut by lines of the window. */
static hedgerow_verdict check_entry_grad_weight(const hedgerow_record *record, int64_t *units) {
    hedgerow_verdict verdict = check_channels_grad_weight(record, units);
    const int64_t *w = record->sizes + CONV_WINDOW;
    if (verdict == HEDGEROW_FINE)
        *units = record->sizes[CONV_CHANNELS] * w[WINDOW_KH] * w[WINDOW_KW];
    return verdict;
}

static void run_entry_grad_weight(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    _Alignas(64) float panel[WIDE_DEPTH * WIDE];
    const int64_t *sizes = call->record.sizes;
    int64_t samples = sizes[CONV_SAMPLES], outputs = sizes[CONV_OUTPUTS];
    window w = window_at(sizes + CONV_WINDOW);
    int64_t row_numbers = w.ow * samples;
    for (int64_t line = first; line < end; line += WIDE_DEPTH) {
        extent lines = {line, least(end, line + WIDE_DEPTH)};
        int64_t step = least(row_numbers, WIDE_DEPTH * WIDE / (lines.end - lines.first));
        float *out = (float *)call->at[2] + line * outputs;
        for (int64_t row = 0; row < w.oh; row++)
            for (int64_t column = 0; column < row_numbers; column += step) {
                int64_t count = least(step, row_numbers - column);
                pack_patches(&w, samples, call->at[1], row, column, count, lines, count, panel);
                hedgerow_product p = {.m = lines.end - lines.first, .n = outputs, .k = count, .a = panel, .lda = count,
                                      .b = (const float *)call->at[0] + (row * row_numbers + column) * outputs,
                                      .ldb = outputs, .c = out, .ldc = outputs, .beta = row > 0 || column > 0};
                near_product(&p);
            }
    }
    (void)part;
}
