/* Convolutions of images as their shapes say (samples, channels, rows, columns), in any number of groups.
 *
 * Channels lie near as planes: results are runs over a plane, 24 numbers at a time, whatever window and image, and the
 * few that stand between two rows are dropped. The gradient of the image is the same with the window turned round, one
 * lattice of pixels after the other.
 */
#include "planes.h"

enum { BAND = 22 * WIDE };

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

/* Set a row of results, or add to it. Where rows follow each other and are set in their order, `left` is how many
 * numbers the target has from there, and whole vectors are set; else it is 0. */
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
                stretch_of_rows some = {{row, least(l->rows, row + rows)},
                                        {column, least(l->columns, column + columns)}};
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
