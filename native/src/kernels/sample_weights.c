/* Gradients of the weights of convolutions of images as their shapes say: products of planes of the image with the
 * gradient, whose rows are spread out as those of planes are.
 */
#include "planes.h"

enum { POSITIONS_AT_ONCE = 512 };

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
    int64_t images = 1;
    if (shape.channels <= share / each) /* else there is no room for all channels of one image */
        images = least(POSITIONS_AT_ONCE / g.length, share / (shape.channels * each + g.outputs * g.length));
    images = most(1, least(shape.samples, images));
    int64_t fit = (share - images * g.outputs * g.length) / (images * each);
    g.room = (plane_room){NULL, most(0, least(shape.channels, fit)), images, false};
    if (g.room.channels == 0) {
        fit = (STACK_FLOATS - PLANE_GAP - g.outputs * g.length) / each;
        g.room = (plane_room){NULL, most(0, least(shape.channels, fit)), 1, true};
    }
    return g;
}

/* Operands: gradient, image, gradient of the weight, -, room. Cut by channels of four outputs of a group. */
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
    *units = g.shape.groups * ((g.shape.outputs + PLAIN_ROWS - 1) / PLAIN_ROWS) * g.shape.channels;
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
        /* Whole vectors look beyond the last plane, and what they find there is multiplied by zeros: it must be a number. */
        store(g->room.at + (channels.end - channels.first) * g->room.images * plane, zeros());
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
    for (int64_t unit = first, all = g.shape.channels, some; unit < end; unit += some) {
        int64_t turn = unit / all, block = turn % blocks, channel = unit % all;
        /* Blocks whose channels are all of this part share planes. */
        int64_t whole = channel > 0 ? 0 : least(blocks - block, (end - unit) / all);
        extent channels = {channel, least(all, channel + end - unit)};
        extent outputs = {block * PLAIN_ROWS, least(g.shape.outputs, (block + most(1, whole)) * PLAIN_ROWS)};
        for (; channel < channels.end; channel += g.room.channels)
            weigh_channels(call, &g, &l, turn / blocks, outputs,
                           (extent){channel, least(channels.end, channel + g.room.channels)});
        some = whole > 0 ? whole * all : channels.end - channels.first;
    }
}
