/* Pooling where nothing but one number lies inside a pixel: images as their shapes say. A row of windows is gone over
 * once for each position of the window, so that neighbours are compared and added up together.
 */
#ifndef HEDGEROW_ROW_POOLING_H
#define HEDGEROW_ROW_POOLING_H

#include "windows.h"

enum { COLUMNS_AT_ONCE = 256 };

/* Some neighbouring windows of one row. */
typedef struct {
    int64_t first, count;
    float best[COLUMNS_AT_ONCE];
    int32_t places[COLUMNS_AT_ONCE];
} window_row;

static inline extent met_between(const window *w, int64_t kw, const window_row *r) {
    extent all = met(w->w, w->ow, kw, w->sw, w->pw);
    int64_t first = most(all.first, r->first);
    return (extent){first, most(first, least(all.end, r->first + r->count))};
}

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
static void look_through(const window *w, const float *plane, int64_t down, window_row *r, bool largest) {
    for (int64_t kh = 0; kh < w->kh; kh++) {
        int64_t row = down * w->sh + kh - w->ph;
        if (row < 0 || row >= w->h)
            continue;
        for (int64_t kw = 0; kw < w->kw; kw++) {
            extent own = met_between(w, kw, r);
            if (own.first == own.end)
                continue;
            const float *from = plane + row * w->w + own.first * w->sw + kw - w->pw;
            int64_t at = own.first - r->first, count = own.end - own.first;
            if (largest)
                take_position(from, w->sw, count, (int32_t)(kh * w->kw + kw), r->best + at, r->places + at);
            else
                for (int64_t number = 0; number < count; number++)
                    r->best[at + number] += from[number * w->sw];
        }
    }
}

/* Row `unit` of all results. */
static void largest_of_row(const window *w, const float *images, int64_t unit, float *y, uint8_t *index) {
    window_row r;
    for (r.first = 0; r.first < w->ow; r.first += r.count) {
        r.count = least(COLUMNS_AT_ONCE, w->ow - r.first);
        for (int64_t at = 0; at < r.count; at++) {
            r.best[at] = -__builtin_inff();
            r.places[at] = 0;
        }
        look_through(w, images + unit / w->oh * w->h * w->w, unit % w->oh, &r, true);
        memcpy(y + unit * w->ow + r.first, r.best, (size_t)r.count * sizeof *y);
        for (int64_t at = 0; index != NULL && at < r.count; at++)
            index[unit * w->ow + r.first + at] = (uint8_t)r.places[at];
    }
}

static void mean_of_row(const window *w, const float *images, int64_t unit, float share, float *y) {
    window_row r;
    for (r.first = 0; r.first < w->ow; r.first += r.count) {
        r.count = least(COLUMNS_AT_ONCE, w->ow - r.first);
        memset(r.best, 0, (size_t)r.count * sizeof r.best[0]);
        look_through(w, images + unit / w->oh * w->h * w->w, unit % w->oh, &r, false);
        for (int64_t at = 0; at < r.count; at++)
            y[unit * w->ow + r.first + at] = r.best[at] * share;
    }
}

/* Row `unit` of all images' gradients: what windows give back, to the pixel that won or to all of them. */
static void give_back_row(const window *w, const float *gradient, const uint8_t *index, int64_t unit, float share,
                          float *dx) {
    float *out = dx + unit * w->w;
    memset(out, 0, (size_t)w->w * sizeof *out);
    for (int64_t kh = 0; kh < w->kh; kh++) {
        int64_t down = unit % w->h + w->ph - kh;
        if (down < 0 || down % w->sh != 0 || down / w->sh >= w->oh)
            continue;
        int64_t first = (unit / w->h * w->oh + down / w->sh) * w->ow;
        if (index != NULL) {
            for (int64_t column = 0; column < w->ow; column++) {
                int64_t beyond = index[first + column] - kh * w->kw, across = column * w->sw + beyond - w->pw;
                if (beyond >= 0 && beyond < w->kw && across >= 0 && across < w->w)
                    out[across] += gradient[first + column];
            }
            continue;
        }
        for (int64_t kw = 0; kw < w->kw; kw++) {
            extent own = met(w->w, w->ow, kw, w->sw, w->pw);
            for (int64_t column = own.first; column < own.end; column++)
                out[column * w->sw + kw - w->pw] += gradient[first + column] * share;
        }
    }
}

#endif
