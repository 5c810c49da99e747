/* Channels of images as their shapes say, copied near with the zeros around them, as planes in which every position of a
 * window is a shift. Where windows move by more than one, a channel becomes several planes, so that neighbours in a plane
 * are as far apart as windows are.
 *
 * Planes lie at the end of a part's share of the scratch, or on its stack where that is too little for one channel, as
 * of images of a few pixels. Sizes as by_pixels has them, and groups.
 */
#ifndef HEDGEROW_PLANES_H
#define HEDGEROW_PLANES_H

#include "windows.h"

enum { PLAIN_GROUPS = CONV_WINDOW + WINDOW_SIZES, PLAIN_ROOM = 4 /* an operand */ };
enum { PLAIN_ROWS = 4 /* outputs at once */, STACK_FLOATS = 10240, PLANE_GAP = WIDE };

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

#endif
