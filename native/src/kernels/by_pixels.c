/* Convolutions of images by pixels (rows, columns, samples, channels): for each position of the window, a product of
 * the pixels where it meets the image with a matrix of the weight. Rows of the product are found by a list, so that
 * nothing is unfolded or copied; what hangs over the edge is never computed. The weight goes through four panels of
 * sixteen columns, a thread's own 64 KiB on its stack, so that whole cache lines are read of each of its rows.
 *
 * Sizes: samples, channels, outputs, the window, whether the weight lies by positions (position, channel, output) or
 * as its shape says (output, channel, position).
 */
#include "products.h"
#include "windows.h"

enum { CONV_SAMPLES, CONV_CHANNELS, CONV_OUTPUTS, CONV_WINDOW, CONV_BY_TAPS = CONV_WINDOW + WINDOW_SIZES };
enum { LIST_ROWS = 252, BLOCK_PANELS = 4, BLOCK_DEPTH = 256, BLOCK_COLUMNS = BLOCK_PANELS * TILE_COLUMNS };
enum { ROWS_AHEAD = 12 };

typedef struct {
    int64_t image, weight, result; /* elements */
} conv_sizes;

static conv_sizes check_convolution(checker *check, window *w) {
    int64_t samples = positive(check, CONV_SAMPLES), channels = positive(check, CONV_CHANNELS);
    int64_t outputs = positive(check, CONV_OUTPUTS);
    *w = check_window(check, CONV_WINDOW);
    refuse_unless(check, samples < 1 << 20, HEDGEROW_WRONG_SIZES);
    refuse_unless(check, times(check, samples, w->h * w->w) < INT32_MAX, HEDGEROW_WRONG_SIZES);
    refuse_unless(check, times(check, samples, w->oh * w->ow) < INT32_MAX, HEDGEROW_WRONG_SIZES);
    return (conv_sizes){times(check, times(check, samples, w->h * w->w), channels),
                        times(check, times(check, channels, outputs), w->kh * w->kw),
                        times(check, times(check, samples, w->oh * w->ow), outputs)};
}

/* From one number of the weight to the next along each of its axes. */
typedef struct {
    int64_t tap, channel, output;
} weight_steps;

static weight_steps steps_of(const int64_t *sizes, const window *w) {
    int64_t taps = w->kh * w->kw;
    if (sizes[CONV_BY_TAPS])
        return (weight_steps){sizes[CONV_CHANNELS] * sizes[CONV_OUTPUTS], sizes[CONV_OUTPUTS], 1};
    return (weight_steps){1, taps, sizes[CONV_CHANNELS] * taps};
}

/* Pixels of the image and of the result that a position of the window brings together, some at a time. */
typedef struct {
    const window *w;
    int64_t samples, tap;
    extent down, across;
    int64_t row, column, sample; /* of the result, the next one */
    int32_t image[LIST_ROWS], result[LIST_ROWS];
} pairs;

static void pairs_begin(pairs *p, const window *w, int64_t samples, int64_t tap) {
    p->w = w;
    p->samples = samples;
    p->tap = tap;
    p->down = met(w->h, w->oh, tap / w->kw, w->sh, w->ph);
    p->across = met(w->w, w->ow, tap % w->kw, w->sw, w->pw);
    p->row = p->across.first < p->across.end ? p->down.first : p->down.end;
    p->column = p->across.first;
    p->sample = 0;
}

/* List the next pairs and return how many they are. */
static int64_t pairs_next(pairs *p) {
    const window *w = p->w;
    int64_t count = 0;
    while (p->row < p->down.end && count < LIST_ROWS) {
        int64_t down = p->row * w->sh + p->tap / w->kw - w->ph, across = p->column * w->sw + p->tap % w->kw - w->pw;
        int64_t image = (down * w->w + across) * p->samples, result = (p->row * w->ow + p->column) * p->samples;
        for (; p->sample < p->samples && count < LIST_ROWS; p->sample++, count++) {
            p->image[count] = (int32_t)(image + p->sample);
            p->result[count] = (int32_t)(result + p->sample);
        }
        if (p->sample < p->samples)
            break;
        p->sample = 0;
        if (++p->column == p->across.end) {
            p->column = p->across.first;
            p->row++;
        }
    }
    return count;
}

/* Up to four panels of the weight: `depth` rows of up to sixteen columns each. */
static void pack_weight(const float *from, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns,
                        float *panels) {
    if (columns % TILE_COLUMNS != 0)
        memset(panels + columns / TILE_COLUMNS * BLOCK_DEPTH * TILE_COLUMNS, 0,
               (size_t)(depth * TILE_COLUMNS) * sizeof *panels);
    if (column_step == 1) {
        for (int64_t row = 0; row < depth; row++)
            for (int64_t column = 0; column < columns; column += TILE_COLUMNS) {
                /* Rows are too far apart for the machine to see where this leads. */
                __builtin_prefetch(from + least(row + ROWS_AHEAD, depth - 1) * row_step + column);
                memcpy(panels + column * BLOCK_DEPTH + row * TILE_COLUMNS, from + row * row_step + column,
                       (size_t)least(TILE_COLUMNS, columns - column) * sizeof *panels);
            }
        return;
    }
    for (int64_t column = 0; column < columns; column += TILE_COLUMNS) {
        float *panel = panels + column * BLOCK_DEPTH;
        int64_t width = least(TILE_COLUMNS, columns - column);
        if (row_step == 1)
            turn_matrix(from + column * column_step, column_step, width, depth, panel, TILE_COLUMNS);
        else
            for (int64_t row = 0; row < depth; row++)
                for (int64_t at = 0; at < width; at++)
                    panel[row * TILE_COLUMNS + at] = from[row * row_step + (column + at) * column_step];
    }
}

#define LISTED_TILE(rows)                                                                                              \
    static void listed_tile_of_##rows(const float *a, int64_t lda, const int32_t *from, const float *panel,            \
                                      int64_t depth, float *c, int64_t ldc, const int32_t *to, int64_t columns) {      \
        const float *at[rows];                                                                                         \
        vec low[rows], high[rows];                                                                                     \
        for (int row = 0; row < (rows); row++) {                                                                       \
            at[row] = a + from[row] * lda;                                                                             \
            low[row] = high[row] = zeros();                                                                            \
        }                                                                                                              \
        for (int64_t step = 0; step < depth; step++) {                                                                 \
            vec left = load(panel + step * TILE_COLUMNS), right = load(panel + step * TILE_COLUMNS + LANES);           \
            for (int row = 0; row < (rows); row++) {                                                                   \
                vec factor = spread(at[row][step]);                                                                    \
                low[row] += factor * left;                                                                             \
                high[row] += factor * right;                                                                           \
            }                                                                                                          \
        }                                                                                                              \
        for (int row = 0; row < (rows); row++)                                                                         \
            put_row(c + to[row] * ldc, low[row], high[row], columns, true);                                            \
    }

LISTED_TILE(1)
LISTED_TILE(2)
LISTED_TILE(3)
LISTED_TILE(4)
LISTED_TILE(5)
LISTED_TILE(6)

typedef void (*listed_function)(const float *, int64_t, const int32_t *, const float *, int64_t, float *, int64_t,
                                const int32_t *, int64_t);
static const listed_function LISTED_TILES[TILE_ROWS + 1] = {
    NULL, listed_tile_of_1, listed_tile_of_2, listed_tile_of_3, listed_tile_of_4, listed_tile_of_5, listed_tile_of_6};

/* One side of a convolution: a matrix of pixels. */
typedef struct {
    float *at;
    int64_t width; /* channels, or outputs */
    bool is_image;
} side;

/* Add to some columns of `to` the products of `from` with every matrix of the weight. */
static void add_products(const hedgerow_call *call, const float *weight, side from, side to, extent columns) {
    _Alignas(64) float panels[BLOCK_DEPTH * BLOCK_COLUMNS];
    const int64_t *sizes = call->record.sizes;
    window w = window_at(sizes + CONV_WINDOW);
    weight_steps steps = steps_of(sizes, &w);
    int64_t depth_step = from.is_image ? steps.channel : steps.output;
    int64_t column_step = from.is_image ? steps.output : steps.channel;
    pairs list;
    for (int64_t column = columns.first; column < columns.end; column += BLOCK_COLUMNS)
        for (int64_t tap = 0; tap < w.kh * w.kw; tap++)
            for (int64_t first = 0; first < from.width; first += BLOCK_DEPTH) {
                int64_t width = least(BLOCK_COLUMNS, columns.end - column);
                int64_t depth = least(BLOCK_DEPTH, from.width - first), count;
                pairs_begin(&list, &w, sizes[CONV_SAMPLES], tap);
                if (list.row == list.down.end)
                    break;
                pack_weight(weight + tap * steps.tap + first * depth_step + column * column_step, depth_step,
                            column_step, depth, width, panels);
                const int32_t *source = from.is_image ? list.image : list.result;
                const int32_t *target = from.is_image ? list.result : list.image;
                while ((count = pairs_next(&list)) > 0)
                    for (int64_t panel = 0; panel < width; panel += TILE_COLUMNS)
                        for (int64_t row = 0, rows; rows = tile_rows(count - row), row < count; row += rows)
                            LISTED_TILES[rows](
                                from.at + first, from.width, source + row, panels + panel * BLOCK_DEPTH, depth,
                                to.at + column + panel, to.width, target + row, least(TILE_COLUMNS, width - panel));
            }
}

static void set_columns(float *at, int64_t rows, int64_t width, extent columns, const float *row) {
    for (int64_t turn = 0; turn < rows; turn++)
        if (row != NULL)
            memcpy(at + turn * width + columns.first, row + columns.first,
                   (size_t)(columns.end - columns.first) * sizeof *at);
        else
            memset(at + turn * width + columns.first, 0, (size_t)(columns.end - columns.first) * sizeof *at);
}

/* Operands: image, weight, result, bias if there is one. Cut by outputs. */
static hedgerow_verdict check_conv_forward(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    window w;
    conv_sizes sizes = check_convolution(&check, &w);
    needs_floats(&check, 0, sizes.image);
    needs_floats(&check, 1, sizes.weight);
    needs_floats(&check, 2, sizes.result);
    may_have_floats(&check, 3, record->sizes[CONV_OUTPUTS]);
    *units = record->sizes[CONV_OUTPUTS];
    return check.verdict;
}

static void run_conv_forward(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    window w = window_at(sizes + CONV_WINDOW);
    side image = {call->at[0], sizes[CONV_CHANNELS], true}, result = {call->at[2], sizes[CONV_OUTPUTS], false};
    set_columns(result.at, w.oh * w.ow * sizes[CONV_SAMPLES], result.width, (extent){first, end}, call->at[3]);
    add_products(call, call->at[1], image, result, (extent){first, end});
    (void)part;
}

/* Operands: gradient, weight, gradient of the image. Cut by channels. */
static hedgerow_verdict check_conv_grad_input(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    window w;
    conv_sizes sizes = check_convolution(&check, &w);
    needs_floats(&check, 0, sizes.result);
    needs_floats(&check, 1, sizes.weight);
    needs_floats(&check, 2, sizes.image);
    *units = record->sizes[CONV_CHANNELS];
    return check.verdict;
}

static void run_conv_grad_input(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    window w = window_at(sizes + CONV_WINDOW);
    side image = {call->at[2], sizes[CONV_CHANNELS], true}, result = {call->at[0], sizes[CONV_OUTPUTS], false};
    set_columns(image.at, w.h * w.w * sizes[CONV_SAMPLES], image.width, (extent){first, end}, NULL);
    add_products(call, call->at[1], result, image, (extent){first, end});
    (void)part;
}

/* How sums come into the weight: times a number, and whether they are added to what is there. */
typedef struct {
    float factor;
    bool add;
} way_in;

#define WEIGHT_TILE(rows)                                                                                              \
    static void weight_tile_of_##rows(const float *x, int64_t ldx, const int32_t *list, const float *panel,            \
                                      int64_t depth, float *out, weight_steps steps, int64_t columns, way_in in) {     \
        vec low[rows], high[rows];                                                                                     \
        for (int row = 0; row < (rows); row++)                                                                         \
            low[row] = high[row] = zeros();                                                                            \
        for (int64_t step = 0; step < depth; step++) {                                                                 \
            const float *pixel = x + list[step] * ldx;                                                                 \
            vec left = load(panel + step * TILE_COLUMNS), right = load(panel + step * TILE_COLUMNS + LANES);           \
            for (int row = 0; row < (rows); row++) {                                                                   \
                vec factor = spread(pixel[row]);                                                                       \
                low[row] += factor * left;                                                                             \
                high[row] += factor * right;                                                                           \
            }                                                                                                          \
        }                                                                                                              \
        for (int row = 0; row < (rows); row++)                                                                         \
            put_weights(out + row * steps.channel, steps.output, low[row] * in.factor, high[row] * in.factor, columns, \
                        in.add);                                                                                       \
    }

static void put_weights(float *out, int64_t step, vec low, vec high, int64_t columns, bool add) {
    if (step == 1) {
        put_row(out, low, high, columns, add);
        return;
    }
    for (int64_t column = 0; column < columns; column++) {
        float value = column < LANES ? low[column] : high[column - LANES];
        out[column * step] = add ? out[column * step] + value : value;
    }
}

WEIGHT_TILE(1)
WEIGHT_TILE(2)
WEIGHT_TILE(3)
WEIGHT_TILE(4)
WEIGHT_TILE(5)
WEIGHT_TILE(6)

typedef void (*weight_function)(const float *, int64_t, const int32_t *, const float *, int64_t, float *, weight_steps,
                                int64_t, way_in);
static const weight_function WEIGHT_TILES[TILE_ROWS + 1] = {
    NULL, weight_tile_of_1, weight_tile_of_2, weight_tile_of_3, weight_tile_of_4, weight_tile_of_5, weight_tile_of_6};

/* Operands: gradient, image, gradient of the weight. With a rate as the fourth, the third is the weight itself, from
 * which the gradient times the rate is taken. Cut by outputs. */
static hedgerow_verdict check_conv_grad_weight(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    window w;
    conv_sizes sizes = check_convolution(&check, &w);
    needs_floats(&check, 0, sizes.result);
    needs_floats(&check, 1, sizes.image);
    needs_floats(&check, 2, sizes.weight);
    may_have_floats(&check, 3, 1);
    *units = record->sizes[CONV_OUTPUTS];
    return check.verdict;
}

static void clear_weights(float *out, weight_steps steps, int64_t channels, int64_t columns) {
    for (int64_t channel = 0; channel < channels; channel++)
        put_weights(out + channel * steps.channel, steps.output, zeros(), zeros(), columns, false);
}

/* Panels of the gradient: the listed pixels, sixteen outputs each. */
static void pack_gradient(const float *gradient, int64_t outputs, const int32_t *list, int64_t count, int64_t columns,
                          float *panels) {
    if (columns % TILE_COLUMNS != 0)
        memset(panels + columns / TILE_COLUMNS * LIST_ROWS * TILE_COLUMNS, 0,
               (size_t)(count * TILE_COLUMNS) * sizeof *panels);
    for (int64_t row = 0; row < count; row++)
        for (int64_t column = 0; column < columns; column += TILE_COLUMNS)
            memcpy(panels + column * LIST_ROWS + row * TILE_COLUMNS, gradient + list[row] * outputs + column,
                   (size_t)least(TILE_COLUMNS, columns - column) * sizeof *panels);
}

/* Rows of the weight's gradient that come next, for writing. */
static void prefetch_weights(const float *out, weight_steps steps, int64_t width, int64_t rows) {
    for (int64_t row = 0; steps.output == 1 && row < rows - 1; row++)
        for (int64_t column = 0; column < width; column += TILE_COLUMNS)
            __builtin_prefetch(out + row * steps.channel + column, 1);
}

static void run_conv_grad_weight(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    _Alignas(64) float panels[LIST_ROWS * BLOCK_COLUMNS];
    const int64_t *sizes = call->record.sizes;
    int64_t channels = sizes[CONV_CHANNELS], outputs = sizes[CONV_OUTPUTS];
    window w = window_at(sizes + CONV_WINDOW);
    weight_steps steps = steps_of(sizes, &w);
    const float *gradient = call->at[0], *image = call->at[1], *rate = call->at[3];
    pairs list;
    for (int64_t tap = 0; tap < w.kh * w.kw; tap++)
        for (int64_t column = first; column < end; column += BLOCK_COLUMNS) {
            int64_t width = least(BLOCK_COLUMNS, end - column), count;
            float *out = (float *)call->at[2] + tap * steps.tap + column * steps.output;
            way_in in = {rate == NULL ? 1 : -*rate, rate != NULL};
            pairs_begin(&list, &w, sizes[CONV_SAMPLES], tap);
            for (; (count = pairs_next(&list)) > 0; in.add = true) {
                pack_gradient(gradient + column, outputs, list.result, count, width, panels);
                for (int64_t channel = 0; channel < channels; channel += TILE_ROWS) {
                    prefetch_weights(out + least(channel + TILE_ROWS, channels - 1) * steps.channel, steps, width,
                                     least(TILE_ROWS, channels - channel));
                    for (int64_t panel = 0; panel < width; panel += TILE_COLUMNS)
                        WEIGHT_TILES[least(TILE_ROWS, channels - channel)](
                            image + channel, channels, list.image, panels + panel * LIST_ROWS, count,
                            out + channel * steps.channel + panel * steps.output, steps,
                            least(TILE_COLUMNS, width - panel), in);
                }
            }
            for (int64_t panel = 0; !in.add && panel < width; panel += TILE_COLUMNS)
                clear_weights(out + panel * steps.output, steps, channels, least(TILE_COLUMNS, width - panel));
        }
    (void)part;
}
