/* A bench on which one record is tried: operands of exactly their size in memory of their own, so that a sanitizer
 * sees every step beyond them.
 */
#ifndef HEDGEROW_TESTING_H
#define HEDGEROW_TESTING_H

#include <stdint.h>

#include "hedgerow.h"

typedef struct {
    hedgerow_record record;
    hedgerow_region regions[HEDGEROW_OPERANDS];
} bench;

bench *bench_new(void);
void bench_free(bench *b);
/* An operand of random floats between -1 and 1. */
float *bench_floats(bench *b, int at, int64_t elements);
/* An operand of zero bytes. */
void *bench_bytes(bench *b, int at, int64_t bytes);
void bench_sizes(bench *b, int count, ...);
/* Run the record in two parts on one thread, then on two, and expect the same bits. */
void bench_run(bench *b, const char *name, int64_t units);

/* Run the record once, on random floats, for whatever ranges it takes, if it is accepted at all; say whether. */
int bench_try(bench *b, int op);

/* Run the kernels that a file tells of, and expect what it says they wrote. */
void test_recorded_cases(const char *path);

/* Try the kernels of losses, norms and updates. */
void test_training_kernels(void);

uint32_t random_word(void);
float random_float(void);
void expect(int fine, const char *sentence, ...) __attribute__((format(printf, 2, 3)));
int finish(void);

/* Try convolutions and norms of images as their shapes say. */
void test_by_samples(void);
void test_sample_norms(void);

#endif
