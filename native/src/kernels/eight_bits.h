/* Optimisers' state in eight bits: blocks of codes that share a scale, which is the largest size in the block.
 *
 * A code runs over a power of the value: squares for values of either sign (codes -127 to 127), fourth powers for those
 * that are none below zero (codes 1 to 255). So small values keep their order of magnitude beside large ones, and a
 * second moment never becomes zero beside others. A value that is not a number makes its block's scale so.
 */
#ifndef HEDGEROW_EIGHT_BITS_H
#define HEDGEROW_EIGHT_BITS_H

#include "vector.h"

enum { STATE_BLOCK = 256 };

static inline void unpack_signed(const int8_t *restrict codes, float scale, int64_t count, float *restrict values) {
    for (int64_t at = 0; at < count; at++) {
        float share = (float)codes[at] * (1.0F / 127);
        values[at] = share * __builtin_fabsf(share) * scale;
    }
}

static inline void unpack_positive(const uint8_t *restrict codes, float scale, int64_t count, float *restrict values) {
    for (int64_t at = 0; at < count; at++) {
        float share = (float)codes[at] * (1.0F / 255), square = share * share;
        values[at] = square * square * scale;
    }
}

static inline float larger_of(float largest, float size) { return size > largest || size != size ? size : largest; }

/* At least the smallest normal number, by which a block of zeros can be divided. */
static inline float scale_of(const float *values, int64_t count) {
    const ivec sign = (ivec)spread(-0.0F);
    vec largest = spread(1.2e-38F);
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES) {
        vec size = (vec)((ivec)load(values + at) & ~sign);
        largest = choose((ivec)(size > largest) | (ivec)(size != size), size, largest);
    }
    float scale = largest[0];
    for (int lane = 1; lane < LANES; lane++)
        scale = larger_of(scale, largest[lane]);
    for (; at < count; at++)
        scale = larger_of(scale, __builtin_fabsf(values[at]));
    return scale;
}

/* The nearest whole number: adding 1.5 * 2^23 leaves it in the low bits, whatever those of no number mean. */
static inline int32_t nearest(float value) {
    const float shifted = value + 12582912.0F;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return (int32_t)(bits - 0x4B400000U);
}

/* Write codes of values, and return their scale. */
static inline float pack_signed(const float *restrict values, int64_t count, int8_t *restrict codes) {
    const float scale = scale_of(values, count);
    for (int64_t at = 0; at < count; at++) {
        int32_t code = nearest(__builtin_sqrtf(__builtin_fabsf(values[at]) / scale) * 127);
        codes[at] = (int8_t)(values[at] < 0 ? -code : code);
    }
    return scale;
}

static inline float pack_positive(const float *restrict values, int64_t count, uint8_t *restrict codes) {
    const float scale = scale_of(values, count);
    for (int64_t at = 0; at < count; at++) {
        int32_t code = nearest(__builtin_sqrtf(__builtin_sqrtf(values[at] / scale)) * 255);
        codes[at] = (uint8_t)(code < 1 ? 1 : code > 255 ? 255 : code);
    }
    return scale;
}

#endif
