/* Eight floats at a time, in whatever registers the machine has: one of 256 bits, or two of 128. */
#ifndef HEDGEROW_VECTOR_H
#define HEDGEROW_VECTOR_H

#include <stdint.h>
#include <string.h>

#define LANES 8

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
/* The same at any address; only ever used through a pointer. */
typedef float loose_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static inline vec load(const float *at) { return *(const loose_vec *)at; }
static inline void store(float *at, vec value) { *(loose_vec *)at = value; }
static inline vec spread(float value) { return value - (vec){0}; }
static inline vec zeros(void) { return (vec){0}; }

/* Add up the lanes, pair by pair. */
static inline float lanes_sum(vec v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* Keep the compiler from loading a value again for every use of it. */
#if defined(__x86_64__) && defined(__AVX__)
#define KEEP(v) __asm__("" : "+x"(v))
#else
#define KEEP(v) ((void)0)
#endif

static inline vec choose(ivec mask, vec yes, vec no) {
    return (vec)((mask & (ivec)yes) | (~mask & (ivec)no));
}

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
