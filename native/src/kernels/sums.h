/* Long sums: blocks in 32 bits, short enough to stay exact, and what the blocks come to in 64. */
#ifndef HEDGEROW_SUMS_H
#define HEDGEROW_SUMS_H

#include "vector.h"

enum { SUM_BLOCK = 1024 };

/* Add to `total` what `vector` says of the eight numbers from `at` on, and of single ones what `number` says. */
#define ADD_UP(total, count, at, vector, number)                                                                       \
    for (int64_t from_ = 0, to_; from_ < (count); from_ = to_) {                                                       \
        vec even_ = zeros(), odd_ = zeros();                                                                           \
        to_ = least((count), from_ + SUM_BLOCK);                                                                       \
        int64_t at = from_;                                                                                            \
        while (at + 2 * LANES <= to_) {                                                                                \
            even_ += (vector);                                                                                         \
            at += LANES;                                                                                               \
            odd_ += (vector);                                                                                          \
            at += LANES;                                                                                               \
        }                                                                                                              \
        (total) += lanes_sum(even_ + odd_);                                                                            \
        for (; at < to_; at++)                                                                                         \
            (total) += (number);                                                                                       \
    }

static inline vec squared(vec x) { return x * x; }
static inline double square_of(float x) { return (double)x * x; }

static inline double long_sum(const float *x, int64_t count) {
    double sum = 0;
    ADD_UP(sum, count, at, load(x + at), x[at])
    return sum;
}

static inline double sum_around(const float *x, float centre, int64_t count) {
    double sum = 0;
    ADD_UP(sum, count, at, load(x + at) - spread(centre), x[at] - centre)
    return sum;
}

static inline double squares_around(const float *x, float centre, int64_t count) {
    double sum = 0;
    ADD_UP(sum, count, at, squared(load(x + at) - spread(centre)), square_of(x[at] - centre))
    return sum;
}

static inline double squares_between(const float *x, const float *y, int64_t count) {
    double sum = 0;
    ADD_UP(sum, count, at, squared(load(x + at) - load(y + at)), square_of(x[at] - y[at]))
    return sum;
}

/* The sum of x (y - centre). */
static inline double products_around(const float *x, const float *y, float centre, int64_t count) {
    double sum = 0;
    ADD_UP(sum, count, at, load(x + at) * (load(y + at) - spread(centre)), (double)x[at] * (y[at] - centre))
    return sum;
}

#endif
