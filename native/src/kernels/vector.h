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

/* Eight numbers in 64 bits: what blocks of a long sum come to is added up in them. */
typedef double wide_vec __attribute__((vector_size(8 * LANES)));
static inline wide_vec widen(vec v) { return __builtin_convertvector(v, wide_vec); }
static inline vec narrow(wide_vec v) { return __builtin_convertvector(v, vec); }

/* Four of them: what one register has. */
typedef double four __attribute__((vector_size(4 * LANES), may_alias));

/* Keep the compiler from loading a value again for every use of it. */
#if defined(__x86_64__) && defined(__AVX__)
#define KEEP(v) __asm__("" : "+x"(v))
#else
#define KEEP(v) ((void)0)
#endif

static inline vec choose(ivec mask, vec yes, vec no) {
    return (vec)((mask & (ivec)yes) | (~mask & (ivec)no));
}

/* Write eight rows of eight numbers as columns; steps in floats. */
static inline void turn_block(const float *from, int64_t from_step, float *to, int64_t to_step) {
#if defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
    vec r[8], s[8];
    for (int at = 0; at < 8; at++)
        r[at] = load(from + at * from_step);
    for (int at = 0; at < 8; at += 2) {
        s[at] = __builtin_shufflevector(r[at], r[at + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[at + 1] = __builtin_shufflevector(r[at], r[at + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int at = 0; at < 8; at += 4)
        for (int half = 0; half < 2; half++) {
            r[at + 2 * half] = __builtin_shufflevector(s[at + half], s[at + 2 + half], 0, 1, 8, 9, 4, 5, 12, 13);
            r[at + 2 * half + 1] = __builtin_shufflevector(s[at + half], s[at + 2 + half], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int at = 0; at < 4; at++) {
        store(to + at * to_step, __builtin_shufflevector(r[at], r[at + 4], 0, 1, 2, 3, 8, 9, 10, 11));
        store(to + (at + 4) * to_step, __builtin_shufflevector(r[at], r[at + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    }
#else
    for (int row = 0; row < 8; row++)
        for (int column = 0; column < 8; column++)
            to[column * to_step + row] = from[row * from_step + column];
#endif
}

/* Sixteen numbers: every other one, and those between them. */
static inline void draw_apart(const float *from, vec *even, vec *odd) {
#if defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
    vec low = load(from), high = load(from + LANES);
    *even = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
    *odd = __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    for (int at = 0; at < LANES; at++) {
        (*even)[at] = from[2 * at];
        (*odd)[at] = from[2 * at + 1];
    }
#endif
}

static inline void put_between(vec even, vec odd, float *to) {
#if defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
    store(to, __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11));
    store(to + LANES, __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15));
#else
    for (int at = 0; at < LANES; at++) {
        to[2 * at] = even[at];
        to[2 * at + 1] = odd[at];
    }
#endif
}

/* Write a matrix (rows, columns) turned. */
static inline void turn_matrix(const float *from, int64_t from_step, int64_t rows, int64_t columns, float *to,
                               int64_t to_step) {
    int64_t whole_rows = rows / LANES * LANES, whole_columns = columns / LANES * LANES;
    for (int64_t row = 0; row < whole_rows; row += LANES)
        for (int64_t column = 0; column < whole_columns; column += LANES)
            turn_block(from + row * from_step + column, from_step, to + column * to_step + row, to_step);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = row < whole_rows ? whole_columns : 0; column < columns; column++)
            to[column * to_step + row] = from[row * from_step + column];
}

static inline int64_t whole_vectors(int64_t count) { return (count + LANES - 1) / LANES * LANES; }
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
