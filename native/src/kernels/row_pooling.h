/* Pooling where nothing but one number lies inside a pixel: images as their shapes say, plane by plane. A row of windows
 * is gone over once for each position of the window, so that neighbours are compared and added up together. Rows are
 * counted through all planes.
 */
#ifndef HEDGEROW_ROW_POOLING_H
#define HEDGEROW_ROW_POOLING_H

#include "windows.h"

enum { COLUMNS_AT_ONCE = 256 };

/* Windows, and the columns of the result that each column of a window meets the image for. */
typedef struct {
    window w;
    extent across[MOST_POSITIONS];
} pooled_rows;

static void pooled_rows_of(const int64_t *sizes, pooled_rows *p) {
    p->w = window_at(sizes);
    for (int64_t kw = 0; kw < p->w.kw; kw++)
        p->across[kw] = met(p->w.w, p->w.ow, kw, p->w.sw, p->w.pw);
}

/* Some neighbouring windows of one row: what was found in them so far. */
typedef struct {
    int64_t first, count;
    float best[COLUMNS_AT_ONCE];
    int32_t places[COLUMNS_AT_ONCE];
} window_row;

/* `count` neighbouring numbers, `step` apart, and the best of their windows so far. */
static inline __attribute__((always_inline)) void take_larger(const float *from, int64_t step, int64_t count,
                                                              int32_t position, float *best, int32_t *places) {
    for (int64_t at = 0; at < count; at++) {
        float x = from[at * step], old = best[at];
        bool larger = (x > old) | ((x != x) & (old == old));
        best[at] = larger ? x : old;
        places[at] = larger ? position : places[at];
    }
}

static void take_position(const float *from, int64_t step, int64_t count, int32_t position, float *best,
                          int32_t *places) {
    if (step == 1)
        take_larger(from, 1, count, position, best, places);
    else if (step == 2)
        take_larger(from, 2, count, position, best, places);
    else
        take_larger(from, step, count, position, best, places);
}

/* Go over the positions of the windows of row `down` of a plane's result, for the largest or for the sum. */
static void look_through(const pooled_rows *p, const float *plane, int64_t down, window_row *r, bool largest) {
    const window *w = &p->w;
    for (int64_t kh = 0; kh < w->kh; kh++) {
        int64_t row = down * w->sh + kh - w->ph;
        if (row < 0 || row >= w->h)
            continue;
        for (int64_t kw = 0; kw < w->kw; kw++) {
            int64_t first = most(p->across[kw].first, r->first), end = least(p->across[kw].end, r->first + r->count);
            if (first >= end)
                continue;
            const float *from = plane + row * w->w + first * w->sw + kw - w->pw;
            int64_t at = first - r->first, count = end - first;
            if (largest)
                take_position(from, w->sw, count, (int32_t)(kh * w->kw + kw), r->best + at, r->places + at);
            else
                for (int64_t number = 0; number < count; number++)
                    r->best[at + number] += from[number * w->sw];
        }
    }
}

/* Largest numbers, and their positions if they are wanted. */
static void largest_of_rows(const int64_t *sizes, const float *images, int64_t first, int64_t end, float *y,
                            uint8_t *index) {
    pooled_rows p;
    window_row r;
    pooled_rows_of(sizes, &p);
    for (int64_t unit = first; unit < end; unit++)
        for (r.first = 0; r.first < p.w.ow; r.first += r.count) {
            int64_t place = unit * p.w.ow + r.first;
            r.count = least(COLUMNS_AT_ONCE, p.w.ow - r.first);
            for (int64_t at = 0; at < r.count; at++) {
                r.best[at] = -__builtin_inff();
                r.places[at] = 0;
            }
            look_through(&p, images + unit / p.w.oh * p.w.h * p.w.w, unit % p.w.oh, &r, true);
            memcpy(y + place, r.best, (size_t)r.count * sizeof *y);
            for (int64_t at = 0; index != NULL && at < r.count; at++)
                index[place + at] = (uint8_t)r.places[at];
        }
}

static void means_of_rows(const int64_t *sizes, const float *images, int64_t first, int64_t end, float share,
                          float *y) {
    pooled_rows p;
    window_row r;
    pooled_rows_of(sizes, &p);
    for (int64_t unit = first; unit < end; unit++)
        for (r.first = 0; r.first < p.w.ow; r.first += r.count) {
            r.count = least(COLUMNS_AT_ONCE, p.w.ow - r.first);
            memset(r.best, 0, (size_t)r.count * sizeof r.best[0]);
            look_through(&p, images + unit / p.w.oh * p.w.h * p.w.w, unit % p.w.oh, &r, false);
            for (int64_t at = 0; at < r.count; at++)
                y[unit * p.w.ow + r.first + at] = r.best[at] * share;
        }
}

/* What one row of windows gives back to a row of the image that is row `kh` of them: to the pixels that won. */
static void give_to_winners(const window *w, const float *gradient, const uint8_t *index, int64_t kh, float *out) {
    for (int64_t column = 0; column < w->ow; column++) {
        int64_t beside = index[column] - kh * w->kw, across = column * w->sw + beside - w->pw;
        if (beside >= 0 && beside < w->kw && across >= 0 && across < w->w)
            out[across] += gradient[column];
    }
}

static void give_to_all(const pooled_rows *p, const float *gradient, float share, float *out) {
    for (int64_t kw = 0; kw < p->w.kw; kw++)
        for (int64_t column = p->across[kw].first; column < p->across[kw].end; column++)
            out[column * p->w.sw + kw - p->w.pw] += gradient[column] * share;
}

/* Rows of the images' gradients: what windows give back to the pixels that won or, without positions, to all. */
static void give_back_rows(const int64_t *sizes, const float *gradient, const uint8_t *index, int64_t first,
                           int64_t end, float share, float *dx) {
    pooled_rows p;
    pooled_rows_of(sizes, &p);
    const window *w = &p.w;
    for (int64_t unit = first; unit < end; unit++) {
        memset(dx + unit * w->w, 0, (size_t)w->w * sizeof *dx);
        for (int64_t kh = 0; kh < w->kh; kh++) {
            int64_t down = unit % w->h + w->ph - kh;
            if (down < 0 || down % w->sh != 0 || down / w->sh >= w->oh)
                continue;
            int64_t from = (unit / w->h * w->oh + down / w->sh) * w->ow;
            if (index != NULL)
                give_to_winners(w, gradient + from, index + from, kh, dx + unit * w->w);
            else
                give_to_all(&p, gradient + from, share, dx + unit * w->w);
        }
    }
}

/* Windows of 2x2 that move by two over images of even sides, so that every pixel is in one: eight windows at a time. */
static bool is_in_pairs(const window *w) {
    return w->kh == 2 && w->kw == 2 && w->sh == 2 && w->sw == 2 && w->ph == 0 && w->pw == 0 && 2 * w->oh == w->h &&
           2 * w->ow == w->w;
}

typedef uint8_t places_of_eight __attribute__((vector_size(LANES)));

static inline void largest_of_eight(const float *upper, const float *lower, float *y, uint8_t *index) {
    vec x[4], best = spread(-__builtin_inff());
    ivec place = {0};
    draw_apart(upper, &x[0], &x[1]);
    draw_apart(lower, &x[2], &x[3]);
    for (int at = 0; at < 4; at++) {
        ivec larger = (ivec)(x[at] > best) | ((ivec)(x[at] != x[at]) & (ivec)(best == best));
        best = choose(larger, x[at], best);
        place = (larger & at) | (~larger & place);
    }
    store(y, best);
    places_of_eight narrow = __builtin_convertvector(place, places_of_eight);
    memcpy(index, &narrow, LANES);
}

static void largest_of_pairs(const window *w, const float *images, int64_t first, int64_t end, float *y,
                             uint8_t *index) {
    float upper[2 * LANES] = {0}, lower[2 * LANES] = {0}, best[LANES];
    uint8_t places[LANES];
    for (int64_t unit = first; unit < end; unit++) {
        const float *row = images + 2 * unit * w->w;
        for (int64_t column = 0; column < w->ow; column += LANES) {
            int64_t count = least(LANES, w->ow - column), place = unit * w->ow + column;
            if (count == LANES) {
                largest_of_eight(row + 2 * column, row + w->w + 2 * column, y + place, places);
            } else {
                memcpy(upper, row + 2 * column, (size_t)(2 * count) * sizeof *upper);
                memcpy(lower, row + w->w + 2 * column, (size_t)(2 * count) * sizeof *lower);
                largest_of_eight(upper, lower, best, places);
                memcpy(y + place, best, (size_t)count * sizeof *y);
            }
            if (index != NULL)
                memcpy(index + place, places, (size_t)count);
        }
    }
}

static inline void give_back_eight(const float *gradient, const uint8_t *index, int32_t left, float *out) {
    places_of_eight narrow;
    memcpy(&narrow, index, LANES);
    ivec place = __builtin_convertvector(narrow, ivec), given = (ivec)load(gradient);
    put_between((vec)(given & (place == left)), (vec)(given & (place == left + 1)), out);
}

static void give_back_pairs(const window *w, const float *gradient, const uint8_t *index, int64_t first, int64_t end,
                            float *dx) {
    float given[LANES] = {0}, out[2 * LANES];
    uint8_t places[LANES] = {0};
    for (int64_t unit = first; unit < end; unit++)
        for (int64_t column = 0; column < w->ow; column += LANES) {
            int64_t count = least(LANES, w->ow - column), from = unit / 2 * w->ow + column;
            int32_t left = (int32_t)(unit % 2 * 2);
            if (count == LANES) {
                give_back_eight(gradient + from, index + from, left, dx + unit * w->w + 2 * column);
                continue;
            }
            memcpy(given, gradient + from, (size_t)count * sizeof *given);
            memcpy(places, index + from, (size_t)count);
            give_back_eight(given, places, left, out);
            memcpy(dx + unit * w->w + 2 * column, out, (size_t)(2 * count) * sizeof *dx);
        }
}

#endif
