/* Convolutions of images as their shapes say (samples, channels, rows, columns), in any number of groups.
 *
 * Some channels of an image at a time are copied near, with the zeros around them, as planes in which every position of
 * the window is a shift: results are then runs over a plane, 24 numbers at a time, whatever window and image, and the
 * few that lie between two rows are dropped. Where windows move by more than one, a channel becomes several planes, so
 * that neighbours in a plane are as far apart as windows are. The gradient of the image is the same with the window
 * turned round, one lattice of pixels after the other.
 *
 * Planes lie at the end of a part's share of the scratch, or on its stack where that is too little for one channel, as
 * of images of a few pixels. Sizes as by_pixels has them, and groups.
 */
#include "products.h"
#include "windows.h"

enum { PLAIN_GROUPS = CONV_WINDOW + WINDOW_SIZES };
enum { PLAIN_ROWS = 4, STACK_FLOATS = 10240, PLANE_GAP = WIDE, BAND = 22 * WIDE, POSITIONS_AT_ONCE = 512 };

typedef struct {
    window w;
    int64_t samples, groups, channels, outputs; /* the last two of one group */
    int64_t taps;
} plain_shape;

static plain_shape plain_shape_of(const int64_t *sizes) {
    window w = window_at(sizes + CONV_WINDOW);
    int64_t groups = sizes[PLAIN_GROUPS];
    return (plain_shape){w, sizes[CONV_SAMPLES], groups, sizes[CONV_CHANNELS] / groups, sizes[CONV_OUTPUTS] / groups,
                         w.kh * w.kw};
}

static conv_sizes check_plain(checker *check) {
    int64_t samples = positive(check, CONV_SAMPLES), channels = positive(check, CONV_CHANNELS);
    int64_t outputs = positive(check, CONV_OUTPUTS), groups = positive(check, PLAIN_GROUPS);
    window w = check_window(check, CONV_WINDOW);
    refuse_unless(check, channels % groups == 0 && outputs % groups == 0, HEDGEROW_WRONG_SIZES);
    return (conv_sizes){times(check, times(check, samples, w.h * w.w), channels),
                        times(check, times(check, channels / groups, outputs), w.kh * w.kw),
                        times(check, times(check, samples, w.oh * w.ow), outputs)};
}

/* How a channel is copied near: planes whose neighbours stand `down` and `across` apart in the channel, of which `top`
 * rows and `left` columns lie before it. */
typedef struct {
    int64_t height, width, down, across, planes_down, planes_across, top, left;
    int64_t rows, columns; /* of a plane */
} near_shape;

static near_shape near_image(const window *w) {
    return (near_shape){w->h,  w->w,  w->sh, w->sw, least(w->sh, w->kh), least(w->sw, w->kw),
                        w->ph, w->pw, w->oh + (w->kh - 1) / w->sh, w->ow + (w->kw - 1) / w->sw};
}

static near_shape near_gradient(const window *w) {
    int64_t top = (w->kh - 1) / w->sh, left = (w->kw - 1) / w->sw;
    return (near_shape){w->oh, w->ow, 1, 1, 1, 1, top, left, top + (w->h - 1 + w->ph) / w->sh + 1,
                        left + (w->w - 1 + w->pw) / w->sw + 1};
}

static int64_t near_floats(const near_shape *s) { return s->planes_down * s->planes_across * s->rows * s->columns; }

/* Whole vectors are moved where rows follow each other: what goes beyond a row is written again by the next one. */
static inline int64_t whole_vectors(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

static inline void clear_beyond(float *to, int64_t count) {
    if (count > 0)
        store(to, zeros()); /* most often enough, and then no call */
    for (int64_t at = LANES; at < count; at += LANES)
        store(to + at, zeros());
}

/* Copy `count` numbers that stand `step` apart; `left` is how many of the source there are. */
static inline void copy_beyond(const float *from, int64_t step, int64_t count, int64_t left, float *to) {
    if (step > 2 || step * whole_vectors(count) > left)
        for (int64_t at = 0; at < count; at++)
            to[at] = from[at * step];
    else if (step == 1)
        for (int64_t at = 0; at < count; at += LANES)
            store(to + at, load(from + at));
    else
        for (int64_t at = 0; at < count; at += LANES) {
            vec even, odd;
            draw_apart(from + 2 * at, &even, &odd);
            store(to + at, even);
        }
}

/* Planes are copied in the order in which they lie; up to seven floats behind the last one are written. */
static void copy_near(const near_shape *s, const float *channel, float *to) {
    for (int64_t plane = 0; plane < s->planes_down * s->planes_across; plane++) {
        int64_t below = plane / s->planes_across - s->top, beside = plane % s->planes_across - s->left;
        extent inside = met(s->width, s->columns, plane % s->planes_across, s->across, s->left);
        int64_t first = least(inside.first, s->columns), end = most(first, least(inside.end, s->columns));
        for (int64_t row = 0; row < s->rows; row++, to += s->columns) {
            int64_t from = row * s->down + below;
            if (from < 0 || from >= s->height || first == end) {
                clear_beyond(to, s->columns);
                continue;
            }
            int64_t start = from * s->width + first * s->across + beside;
            clear_beyond(to, first);
            copy_beyond(channel + start, s->across, end - first, s->height * s->width - start, to + first);
            clear_beyond(to + end, s->columns - end);
        }
    }
}

/* A part's room for planes. */
typedef struct {
    float *at;
    int64_t channels; /* at once; 0: not even one fits */
    int64_t images;
    bool on_stack;
} plane_room;

/* Floats of the scratch that a part may use. Parts are judged after the operands, so that any number may be asked. */
static int64_t share_of(const hedgerow_record *record, int operand) {
    int64_t parts = most(1, least(HEDGEROW_PARTS, record->parts));
    return is_there(record, operand) ? record->operands[operand].bytes / (int64_t)sizeof(float) / parts : 0;
}

static plane_room room_for(const hedgerow_record *record, int operand, int64_t each, int64_t channels) {
    int64_t fit = (share_of(record, operand) - PLANE_GAP) / each, on_stack = (STACK_FLOATS - PLANE_GAP) / each;
    return (plane_room){NULL, most(0, least(channels, fit > 0 ? fit : on_stack)), 1, fit <= 0};
}

/* Where `floats` of a part begin: its share is used from its end, so that the last byte of the scratch is. */
static float *room_at(const hedgerow_call *call, int operand, int part, int64_t floats, float *stack, bool on_stack) {
    if (on_stack)
        return stack;
    int64_t all = call->record.operands[operand].bytes / (int64_t)sizeof(float);
    int64_t after = (call->record.parts - 1 - part) * share_of(&call->record, operand);
    return (float *)call->at[operand] + all - after - floats;
}

/* Results that look at a plane in the same way: every one, or every so many rows and columns of the target. */
typedef struct {
    int64_t base, rows, columns;          /* where in a plane the first one looks; how many there are */
    int64_t start, row_step, column_step; /* in the target */
    int taps;
    int64_t offset[MOST_POSITIONS], number[MOST_POSITIONS]; /* in the planes, in the window */
} lattice;

static void add_tap(lattice *l, int64_t offset, int64_t number) {
    l->offset[l->taps] = offset;
    l->number[l->taps++] = number;
}

static void lattice_of_results(const window *w, const near_shape *s, lattice *l) {
    *l = (lattice){.rows = w->oh, .columns = w->ow, .row_step = w->ow, .column_step = 1};
    for (int64_t kh = 0; kh < w->kh; kh++)
        for (int64_t kw = 0; kw < w->kw; kw++) {
            int64_t plane = kh % w->sh * s->planes_across + kw % w->sw;
            add_tap(l, (plane * s->rows + kh / w->sh) * s->columns + kw / w->sw, kh * w->kw + kw);
        }
}

/* The pixels of the image whose first one is given: the same positions of the window reach all of them. */
static void lattice_of_pixels(const window *w, const near_shape *s, int64_t row, int64_t column, lattice *l) {
    int64_t down = row + w->ph, across = column + w->pw;
    *l = (lattice){.base = down / w->sh * s->columns + across / w->sw, .rows = (w->h - 1 - row) / w->sh + 1,
                   .columns = (w->w - 1 - column) / w->sw + 1, .start = row * w->w + column,
                   .row_step = w->sh * w->w, .column_step = w->sw};
    for (int64_t kh = down % w->sh; kh < w->kh; kh += w->sh)
        for (int64_t kw = across % w->sw; kw < w->kw; kw += w->sw)
            add_tap(l, (s->top - kh / w->sh) * s->columns + s->left - kw / w->sw, kh * w->kw + kw);
}

/* The weight as a pass goes over it. */
typedef struct {
    const float *at;
    int64_t row, depth; /* from one channel of the target, and of the source, to the next */
} plain_weight;

#define PLAIN_TILE(rows)                                                                                               \
    static void plain_tile_of_##rows(const lattice *l, const float *near, int64_t near_step, int64_t depth,            \
                                     plain_weight weight, float *band) {                                               \
        vec sums[rows][3];                                                                                             \
        for (int row = 0; row < (rows); row++)                                                                         \
            sums[row][0] = sums[row][1] = sums[row][2] = zeros();                                                      \
        for (int64_t channel = 0; channel < depth; channel++, near += near_step, weight.at += weight.depth)            \
            for (int tap = 0; tap < l->taps; tap++) {                                                                  \
                const float *at = near + l->offset[tap], *factors = weight.at + l->number[tap];                        \
                vec one = load(at), two = load(at + LANES), three = load(at + 2 * LANES);                              \
                KEEP(one);                                                                                             \
                KEEP(two);                                                                                             \
                KEEP(three);                                                                                           \
                for (int row = 0; row < (rows); row++) {                                                               \
                    vec factor = spread(factors[row * weight.row]);                                                    \
                    sums[row][0] += factor * one;                                                                      \
                    sums[row][1] += factor * two;                                                                      \
                    sums[row][2] += factor * three;                                                                    \
                }                                                                                                      \
            }                                                                                                          \
        for (int row = 0; row < (rows); row++)                                                                         \
            for (int at = 0; at < 3; at++)                                                                             \
                store(band + row * BAND + at * LANES, sums[row][at]);                                                  \
    }

PLAIN_TILE(1)
PLAIN_TILE(2)
PLAIN_TILE(3)
PLAIN_TILE(4)

typedef void (*plain_function)(const lattice *, const float *, int64_t, int64_t, plain_weight, float *);
static const plain_function PLAIN_TILES[PLAIN_ROWS + 1] = {NULL, plain_tile_of_1, plain_tile_of_2, plain_tile_of_3,
                                                           plain_tile_of_4};

/* Set a row of results, or add to it. Where rows follow each other and are set in their order, `left` is how many numbers
 * the target has from there, and whole vectors are set; else it is 0. */
static inline void put_results(const float *from, int64_t count, float *to, int64_t step, int64_t left, float bias,
                               bool add) {
    if (whole_vectors(count) <= left)
        for (int64_t at = 0; at < count; at += LANES)
            store(to + at, load(from + at) + spread(bias));
    else
        for (int64_t at = 0; at < count; at++)
            to[at * step] = from[at] + (add ? to[at * step] : bias);
}

/* One pass: the source is read in planes, the target is written. */
typedef struct {
    near_shape near;
    const float *source, *weight, *bias; /* no bias: NULL */
    float *target;
    int64_t depth, outputs, groups;   /* channels of the source and of the target, of one group */
    int64_t source_step, target_step; /* floats of a channel */
    int64_t row_step, depth_step;     /* of the weight */
    int64_t lattices_down, lattices_across;
    plane_room room;
} passage;

/* Whole rows of a lattice, or a part of one. */
typedef struct {
    extent rows, columns;
} stretch_of_rows;

/* Up to four outputs: their results as they stand in a plane, then row by row to where they belong. */
static void put_band(const passage *p, const lattice *l, stretch_of_rows some, plain_weight weight, int64_t depth,
                     int64_t outputs, float *target, const float *bias, bool add) {
    _Alignas(64) float band[PLAIN_ROWS * BAND + LANES];
    int64_t columns = p->near.columns, width = some.columns.end - some.columns.first, each = near_floats(&p->near);
    int64_t all = (some.rows.end - some.rows.first - 1) * columns + width;
    const float *near = p->room.at + l->base + some.rows.first * columns + some.columns.first;
    for (int64_t at = 0; at < all; at += WIDE)
        PLAIN_TILES[outputs](l, near + at, each, depth, weight, band + at);
    memset(band + PLAIN_ROWS * BAND, 0, LANES * sizeof *band);
    bool in_order = !add && l->column_step == 1 && l->row_step == l->columns;
    for (int64_t output = 0; output < outputs; output++)
        for (int64_t row = some.rows.first; row < some.rows.end; row++) {
            int64_t to = l->start + row * l->row_step + some.columns.first * l->column_step;
            put_results(band + output * BAND + (row - some.rows.first) * columns, width,
                        target + output * p->target_step + to, l->column_step, in_order ? p->target_step - to : 0,
                        bias == NULL ? 0 : bias[output], add);
        }
}

/* Some outputs of one image and group, from some channels that lie near. */
static void put_lattice(const passage *p, const lattice *l, plain_weight weight, int64_t depth, float *target,
                        const float *bias, extent outputs, bool add) {
    int64_t rows = most(1, BAND / p->near.columns), columns = least(BAND, l->columns);
    for (int64_t row = 0; row < l->rows; row += rows)
        for (int64_t column = 0; column < l->columns; column += columns)
            for (int64_t output = outputs.first; output < outputs.end; output += PLAIN_ROWS) {
                plain_weight own = {weight.at + output * weight.row, weight.row, weight.depth};
                stretch_of_rows some = {{row, least(l->rows, row + rows)}, {column, least(l->columns, column + columns)}};
                put_band(p, l, some, own, depth, least(PLAIN_ROWS, outputs.end - output),
                         target + output * p->target_step, bias == NULL ? NULL : bias + output, add);
            }
}

/* Some outputs of one image and group. */
static void pass_image(const passage *p, const window *w, int64_t pair, extent outputs, lattice *l, bool ready) {
    int64_t group = pair % p->groups, each = near_floats(&p->near);
    const float *source = p->source + pair * p->depth * p->source_step;
    const float *weight = p->weight + group * p->depth * p->outputs * w->kh * w->kw;
    float *target = p->target + pair * p->outputs * p->target_step;
    const float *bias = p->bias == NULL ? NULL : p->bias + group * p->outputs;
    for (int64_t first = 0; first < p->depth; first += p->room.channels) {
        int64_t depth = least(p->room.channels, p->depth - first);
        for (int64_t channel = 0; channel < depth; channel++)
            copy_near(&p->near, source + (first + channel) * p->source_step, p->room.at + channel * each);
        plain_weight own = {weight + first * p->depth_step, p->row_step, p->depth_step};
        for (int64_t turn = 0; turn < p->lattices_down * p->lattices_across; turn++) {
            if (!ready)
                lattice_of_pixels(w, &p->near, turn / p->lattices_across, turn % p->lattices_across, l);
            put_lattice(p, l, own, depth, target, bias, outputs, first > 0);
        }
    }
}

static void pass_images(const passage *p, const window *w, bool turned, int64_t first, int64_t end) {
    lattice l;
    int64_t blocks = (p->outputs + PLAIN_ROWS - 1) / PLAIN_ROWS;
    bool ready = p->lattices_down * p->lattices_across == 1;
    if (turned)
        lattice_of_pixels(w, &p->near, 0, 0, &l);
    else
        lattice_of_results(w, &p->near, &l);
    memset(p->room.at + p->room.channels * near_floats(&p->near), 0, PLANE_GAP * sizeof *p->room.at);
    for (int64_t unit = first, some; unit < end; unit += some) {
        int64_t block = unit % blocks;
        some = least(blocks - block, end - unit);
        extent outputs = {block * PLAIN_ROWS, least(p->outputs, (block + some) * PLAIN_ROWS)};
        pass_image(p, w, unit / blocks, outputs, &l, ready);
    }
}

static int64_t pass_units(const hedgerow_record *record, int64_t outputs) {
    return record->sizes[CONV_SAMPLES] * record->sizes[PLAIN_GROUPS] * ((outputs + PLAIN_ROWS - 1) / PLAIN_ROWS);
}

enum { PLAIN_ROOM = 4 };

/* Operands: image, weight, result, bias if there is one, room. Cut by four outputs of a group of a sample. */
static hedgerow_verdict check_plain_forward(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    conv_sizes sizes = check_plain(&check);
    needs_floats(&check, 0, sizes.image);
    needs_floats(&check, 1, sizes.weight);
    needs_floats(&check, 2, sizes.result);
    may_have_floats(&check, 3, record->sizes[CONV_OUTPUTS]);
    may_have_floats(&check, PLAIN_ROOM, 0);
    if (check.verdict != HEDGEROW_FINE)
        return check.verdict;
    plain_shape shape = plain_shape_of(record->sizes);
    near_shape near = near_image(&shape.w);
    plane_room room = room_for(record, PLAIN_ROOM, near_floats(&near), shape.channels);
    refuse_unless(&check, room.channels > 0, HEDGEROW_WRONG_SIZES);
    *units = pass_units(record, shape.outputs);
    return check.verdict;
}

static void run_plain_forward(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    _Alignas(64) float stack[STACK_FLOATS];
    plain_shape shape = plain_shape_of(call->record.sizes);
    window w = shape.w;
    passage p = {.near = near_image(&w), .source = call->at[0], .weight = call->at[1], .bias = call->at[3],
                 .target = call->at[2], .depth = shape.channels, .outputs = shape.outputs, .groups = shape.groups,
                 .source_step = w.h * w.w, .target_step = w.oh * w.ow, .row_step = shape.channels * shape.taps,
                 .depth_step = shape.taps, .lattices_down = 1, .lattices_across = 1};
    p.room = room_for(&call->record, PLAIN_ROOM, near_floats(&p.near), p.depth);
    p.room.at = room_at(call, PLAIN_ROOM, part, p.room.channels * near_floats(&p.near) + PLANE_GAP, stack,
                        p.room.on_stack);
    pass_images(&p, &w, false, first, end);
}

/* Operands: gradient, weight, gradient of the image, -, room. Cut by four channels of a group of a sample. */
static hedgerow_verdict check_plain_grad_input(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    conv_sizes sizes = check_plain(&check);
    needs_floats(&check, 0, sizes.result);
    needs_floats(&check, 1, sizes.weight);
    needs_floats(&check, 2, sizes.image);
    may_have_floats(&check, PLAIN_ROOM, 0);
    if (check.verdict != HEDGEROW_FINE)
        return check.verdict;
    plain_shape shape = plain_shape_of(record->sizes);
    near_shape near = near_gradient(&shape.w);
    plane_room room = room_for(record, PLAIN_ROOM, near_floats(&near), shape.outputs);
    refuse_unless(&check, room.channels > 0, HEDGEROW_WRONG_SIZES);
    *units = pass_units(record, shape.channels);
    return check.verdict;
}

static void run_plain_grad_input(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    _Alignas(64) float stack[STACK_FLOATS];
    plain_shape shape = plain_shape_of(call->record.sizes);
    window w = shape.w;
    passage p = {.near = near_gradient(&w), .source = call->at[0], .weight = call->at[1], .target = call->at[2],
                 .depth = shape.outputs, .outputs = shape.channels, .groups = shape.groups,
                 .source_step = w.oh * w.ow, .target_step = w.h * w.w, .row_step = shape.taps,
                 .depth_step = shape.channels * shape.taps, .lattices_down = least(w.sh, w.h),
                 .lattices_across = least(w.sw, w.w)};
    p.room = room_for(&call->record, PLAIN_ROOM, near_floats(&p.near), p.depth);
    p.room.at = room_at(call, PLAIN_ROOM, part, p.room.channels * near_floats(&p.near) + PLANE_GAP, stack,
                        p.room.on_stack);
    pass_images(&p, &w, true, first, end);
}

/* Sums of products of up to four outputs' gradients with three lines of the window, over some images. */
#define DOT_TILE(rows)                                                                                                 \
    static void dot_tile_of_##rows(const float *gradient, int64_t gradient_step, const float *const *lines,            \
                                   int64_t line_step, int64_t images, int64_t length, float *sums) {                   \
        vec s[rows][3];                                                                                                \
        for (int row = 0; row < (rows); row++)                                                                         \
            s[row][0] = s[row][1] = s[row][2] = zeros();                                                               \
        for (int64_t image = 0; image < images; image++, gradient += length) {                                         \
            const float *first = lines[0] + image * line_step, *second = lines[1] + image * line_step;                 \
            const float *third = lines[2] + image * line_step;                                                         \
            for (int64_t at = 0; at < length; at += LANES) {                                                           \
                vec one = load(first + at), two = load(second + at), three = load(third + at);                         \
                KEEP(one);                                                                                             \
                KEEP(two);                                                                                             \
                KEEP(three);                                                                                           \
                for (int row = 0; row < (rows); row++) {                                                               \
                    vec arriving = load(gradient + row * gradient_step + at);                                          \
                    KEEP(arriving);                                                                                    \
                    s[row][0] += arriving * one;                                                                       \
                    s[row][1] += arriving * two;                                                                       \
                    s[row][2] += arriving * three;                                                                     \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        for (int row = 0; row < (rows); row++)                                                                         \
            for (int line = 0; line < 3; line++)                                                                       \
                sums[3 * row + line] = lanes_sum(s[row][line]);                                                        \
    }

DOT_TILE(1)
DOT_TILE(2)
DOT_TILE(3)
DOT_TILE(4)

typedef void (*dot_function)(const float *, int64_t, const float *const *, int64_t, int64_t, int64_t, float *);
static const dot_function DOT_TILES[PLAIN_ROWS + 1] = {NULL, dot_tile_of_1, dot_tile_of_2, dot_tile_of_3,
                                                       dot_tile_of_4};

/* The gradient of a weight: planes of some images, and the gradients of four outputs spread out as planes are. */
typedef struct {
    plain_shape shape;
    near_shape near;
    int64_t length, outputs; /* of a spread gradient, a multiple of eight; at once */
    plane_room room;
} weighing;

static weighing weighing_of(const hedgerow_record *record) {
    plain_shape shape = plain_shape_of(record->sizes);
    weighing g = {.shape = shape, .near = near_image(&shape.w), .outputs = least(PLAIN_ROWS, shape.outputs)};
    int64_t each = near_floats(&g.near), share = share_of(record, PLAIN_ROOM) - PLANE_GAP;
    int64_t whole = (shape.w.oh - 1) * g.near.columns + shape.w.ow;
    g.length = (whole + LANES - 1) / LANES * LANES;
    int64_t all = shape.channels * each + g.outputs * g.length, images = POSITIONS_AT_ONCE / g.length;
    images = most(1, least(least(shape.samples, images), share / all));
    int64_t fit = (share - images * g.outputs * g.length) / (images * each);
    g.room = (plane_room){NULL, most(0, least(shape.channels, fit)), images, false};
    if (g.room.channels == 0) {
        fit = (STACK_FLOATS - PLANE_GAP - g.outputs * g.length) / each;
        g.room = (plane_room){NULL, most(0, least(shape.channels, fit)), 1, true};
    }
    return g;
}

/* Operands: gradient, image, gradient of the weight, -, room. Cut by four outputs of a group. */
static hedgerow_verdict check_plain_grad_weight(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    conv_sizes sizes = check_plain(&check);
    needs_floats(&check, 0, sizes.result);
    needs_floats(&check, 1, sizes.image);
    needs_floats(&check, 2, sizes.weight);
    may_have_floats(&check, PLAIN_ROOM, 0);
    if (check.verdict != HEDGEROW_FINE)
        return check.verdict;
    weighing g = weighing_of(record);
    refuse_unless(&check, g.room.channels > 0, HEDGEROW_WRONG_SIZES);
    *units = g.shape.groups * ((g.shape.outputs + PLAIN_ROWS - 1) / PLAIN_ROWS);
    return check.verdict;
}

/* Rows of a gradient as far apart as those of a plane, zeros between them and up to the length. */
static void spread_gradient(const weighing *g, const float *gradient, float *to) {
    int64_t columns = g->near.columns, width = g->shape.w.ow, last = g->shape.w.oh - 1;
    for (int64_t row = 0; row <= last; row++) {
        int64_t end = row < last ? columns : g->length - last * columns;
        copy_beyond(gradient + row * width, 1, width, (last + 1 - row) * width, to + row * columns);
        clear_beyond(to + row * columns + width, end - width);
    }
}

/* Three lines of the window, (channel, position), where they lie near; the last ones may be one and the same. */
static void lines_from(const weighing *g, const lattice *l, int64_t line, int64_t end, const float **lines) {
    int64_t step = g->room.images * near_floats(&g->near);
    for (int64_t at = 0; at < 3; at++) {
        int64_t own = least(line + at, end - 1);
        lines[at] = g->room.at + own / g->shape.taps * step + l->offset[own % g->shape.taps];
    }
}

/* Some outputs of a group, all lines that lie near. */
static void weigh_block(const weighing *g, const lattice *l, const float *spread_out, int64_t images, int64_t rows,
                        int64_t depth, float *out, bool add) {
    int64_t lines = depth * g->shape.taps, row_step = g->shape.channels * g->shape.taps;
    const float *from[3];
    float sums[3 * PLAIN_ROWS];
    for (int64_t line = 0; line < lines; line += 3) {
        lines_from(g, l, line, lines, from);
        DOT_TILES[rows](spread_out, g->room.images * g->length, from, near_floats(&g->near), images, g->length, sums);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t at = 0; at < least(3, lines - line); at++) {
                float *to = out + row * row_step + line + at;
                *to = add ? *to + sums[3 * row + at] : sums[3 * row + at];
            }
    }
}

/* Some outputs of a group, some of its channels, all images. */
static void weigh_channels(const hedgerow_call *call, const weighing *g, const lattice *l, int64_t group,
                           extent outputs, extent channels) {
    const plain_shape *s = &g->shape;
    int64_t plane = near_floats(&g->near), image = s->w.h * s->w.w, result = s->w.oh * s->w.ow;
    float *spread_out = g->room.at + g->room.channels * g->room.images * plane;
    for (int64_t first = 0; first < s->samples; first += g->room.images) {
        int64_t images = least(g->room.images, s->samples - first);
        for (int64_t channel = channels.first; channel < channels.end; channel++)
            for (int64_t at = 0; at < images; at++)
                copy_near(&g->near,
                          (const float *)call->at[1] + (((first + at) * s->groups + group) * s->channels + channel) * image,
                          g->room.at + ((channel - channels.first) * g->room.images + at) * plane);
        for (int64_t output = outputs.first; output < outputs.end; output += PLAIN_ROWS) {
            int64_t rows = least(PLAIN_ROWS, outputs.end - output);
            for (int64_t turn = 0; turn < rows * images; turn++) {
                int64_t row = turn / images, at = turn % images;
                spread_gradient(g,
                                (const float *)call->at[0] +
                                    (((first + at) * s->groups + group) * s->outputs + output + row) * result,
                                spread_out + (row * g->room.images + at) * g->length);
            }
            float *out = (float *)call->at[2] +
                         ((group * s->outputs + output) * s->channels + channels.first) * s->taps;
            weigh_block(g, l, spread_out, images, rows, channels.end - channels.first, out, first > 0);
        }
    }
}

static void run_plain_grad_weight(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    _Alignas(64) float stack[STACK_FLOATS];
    weighing g = weighing_of(&call->record);
    int64_t blocks = (g.shape.outputs + PLAIN_ROWS - 1) / PLAIN_ROWS;
    int64_t floats = g.room.images * (g.room.channels * near_floats(&g.near) + g.outputs * g.length) + PLANE_GAP;
    lattice l;
    lattice_of_results(&g.shape.w, &g.near, &l);
    g.room.at = room_at(call, PLAIN_ROOM, part, floats, stack, g.room.on_stack);
    memset(g.room.at + floats - PLANE_GAP, 0, PLANE_GAP * sizeof *g.room.at);
    for (int64_t unit = first, some; unit < end; unit += some) {
        int64_t block = unit % blocks;
        some = least(blocks - block, end - unit);
        extent outputs = {block * PLAIN_ROWS, least(g.shape.outputs, (block + some) * PLAIN_ROWS)};
        for (int64_t channel = 0; channel < g.shape.channels; channel += g.room.channels)
            weigh_channels(call, &g, &l, unit / blocks, outputs,
                           (extent){channel, least(g.shape.channels, channel + g.room.channels)});
    }
}

/* Windows of one pixel that move by one: a product for each group of each sample. Sizes: samples, rows and terms of a
 * product (of one group), pixels, groups, whether the weight is turned. Operands: images, weight, result, bias if there
 * is one. Cut by rows of the products. */
enum { SPOT_SAMPLES, SPOT_ROWS, SPOT_TERMS, SPOT_PIXELS, SPOT_GROUPS, SPOT_TURNED };
enum { NEAR_TERMS = 512 };

static hedgerow_verdict check_spots(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t pairs = times(&check, positive(&check, SPOT_SAMPLES), positive(&check, SPOT_GROUPS));
    int64_t rows = positive(&check, SPOT_ROWS), terms = positive(&check, SPOT_TERMS);
    int64_t pixels = positive(&check, SPOT_PIXELS);
    refuse_unless(&check, record->sizes[SPOT_TURNED] <= 1, HEDGEROW_WRONG_SIZES);
    needs_floats(&check, 0, times(&check, times(&check, pairs, terms), pixels));
    needs_floats(&check, 1, times(&check, times(&check, record->sizes[SPOT_GROUPS], rows), terms));
    needs_floats(&check, 2, times(&check, times(&check, pairs, rows), pixels));
    may_have_floats(&check, 3, times(&check, record->sizes[SPOT_GROUPS], rows));
    *units = times(&check, pairs, rows);
    return check.verdict;
}

static void run_spots(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes;
    int64_t rows = s[SPOT_ROWS], terms = s[SPOT_TERMS], pixels = s[SPOT_PIXELS];
    const float *bias = call->at[3];
    for (int64_t unit = first, some; unit < end; unit += some) {
        int64_t pair = unit / rows, row = unit % rows, group = pair % s[SPOT_GROUPS];
        some = least(rows - row, end - unit);
        const float *weight = (const float *)call->at[1] + group * rows * terms;
        hedgerow_product p = {.turn_a = s[SPOT_TURNED], .m = some, .n = pixels, .k = terms, .ldb = pixels, .ldc = pixels,
                              .lda = s[SPOT_TURNED] ? rows : terms,
                              .a = weight + (s[SPOT_TURNED] ? row : row * terms),
                              .b = (const float *)call->at[0] + pair * terms * pixels,
                              .c = (float *)call->at[2] + unit * pixels};
        if (terms <= NEAR_TERMS)
            near_product(&p);
        else
            multiply(&p);
        for (int64_t at = 0; bias != NULL && at < some; at++) {
            const float level = bias[group * rows + row + at];
            for (int64_t pixel = 0; pixel < pixels; pixel++)
                p.c[at * pixels + pixel] += level;
        }
    }
    (void)part;
}
