/* The window of a convolution or of pooling, and where its positions meet the image. */
#ifndef HEDGEROW_WINDOWS_H
#define HEDGEROW_WINDOWS_H

#include "checking.h"
#include "vector.h"

/* Where the window's sizes stand in a record. */
enum { WINDOW_H, WINDOW_W, WINDOW_OH, WINDOW_OW, WINDOW_KH, WINDOW_KW, WINDOW_SH, WINDOW_SW, WINDOW_PH, WINDOW_PW };
enum { WINDOW_SIZES = 10, MOST_POSITIONS = 121 };

typedef struct {
    int64_t h, w;   /* of the image */
    int64_t oh, ow; /* of the result */
    int64_t kh, kw, sh, sw, ph, pw;
} window;

static inline window window_at(const int64_t *sizes) {
    return (window){sizes[WINDOW_H],  sizes[WINDOW_W],  sizes[WINDOW_OH], sizes[WINDOW_OW], sizes[WINDOW_KH],
                    sizes[WINDOW_KW], sizes[WINDOW_SH], sizes[WINDOW_SW], sizes[WINDOW_PH], sizes[WINDOW_PW]};
}

/* Judge the window whose sizes begin at `first`; `more` results than fit whole windows may look beyond the image. */
static inline window check_window_with(checker *check, int first, int64_t more) {
    for (int at = 0; at < WINDOW_PH; at++)
        refuse_unless(check, check->record->sizes[first + at] > 0, HEDGEROW_WRONG_SIZES);
    for (int at = 0; at < WINDOW_SIZES; at++)
        refuse_unless(check, check->record->sizes[first + at] < 1 << 20, HEDGEROW_WRONG_SIZES);
    window w = window_at(check->record->sizes + first);
    if (check->verdict != HEDGEROW_FINE)
        return (window){1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
    refuse_unless(check, w.kh * w.kw <= MOST_POSITIONS, HEDGEROW_WRONG_SIZES);
    refuse_unless(check, w.h + 2 * w.ph >= w.kh && w.w + 2 * w.pw >= w.kw, HEDGEROW_WRONG_SIZES);
    int64_t down = w.oh - (w.h + 2 * w.ph - w.kh) / w.sh - 1, across = w.ow - (w.w + 2 * w.pw - w.kw) / w.sw - 1;
    refuse_unless(check, down >= 0 && down <= more && across >= 0 && across <= more, HEDGEROW_WRONG_SIZES);
    return w;
}

static inline window check_window(checker *check, int first) { return check_window_with(check, first, 0); }

typedef struct {
    int64_t first, end;
} extent;

/* The results along one axis that a position of the window meets the image for. */
static inline extent met(int64_t size, int64_t count, int64_t position, int64_t stride, int64_t padding) {
    int64_t before = padding - position, first = before > 0 ? (before + stride - 1) / stride : 0;
    int64_t last = size - 1 + padding - position;
    int64_t end = last < 0 ? 0 : least(count, last / stride + 1);
    return (extent){first, most(first, end)};
}

#endif
