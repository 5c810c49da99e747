/* exp of eight numbers: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2]; off by at most 2 units in the last place. */
#ifndef HEDGEROW_EXPONENTIAL_H
#define HEDGEROW_EXPONENTIAL_H

#include "vector.h"

static inline vec exponential(vec x) {
    const vec highest = spread(88.3762626647949F), lowest = spread(-87.3365447504019F);
    vec inside = choose((ivec)(x < highest), x, highest);
    inside = choose((ivec)(inside > lowest), inside, lowest);
    /* Adding 1.5 * 2^23 rounds to the nearest whole number, which the low bits then hold. */
    const vec magic = spread(12582912.0F);
    vec shifted = inside * spread(1.44269504088896341F) + magic;
    ivec whole = (ivec)shifted - (ivec)magic;
    vec n = shifted - magic;
    vec r = inside - n * spread(0.693359375F);
    r = r - n * spread(-2.12194440e-4F);
    vec p = spread(1.9875691500e-4F);
    p = p * r + spread(1.3981999507e-3F);
    p = p * r + spread(8.3334519073e-3F);
    p = p * r + spread(4.1665795894e-2F);
    p = p * r + spread(1.6666665459e-1F);
    p = p * r + spread(5.0000001201e-1F);
    p = p * (r * r) + r + spread(1.0F);
    vec result = p * (vec)((whole + 127) << 23);
    result = choose((ivec)(x > highest), spread(__builtin_inff()), result);
    result = choose((ivec)(x < lowest), zeros(), result);
    return choose((ivec)(x == x), result, x);
}

/* The same for a few numbers that fill no vector. */
static inline vec load_some(const float *at, int64_t count) {
    vec v = zeros();
    memcpy(&v, at, (size_t)count * sizeof *at);
    return v;
}

static inline void store_some(float *at, vec v, int64_t count) { memcpy(at, &v, (size_t)count * sizeof *at); }

#endif
