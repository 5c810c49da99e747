/* What a kernel is: how a record of its operator is checked, and how part of its work is done. */
#ifndef HEDGEROW_KERNEL_H
#define HEDGEROW_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hedgerow.h"

/* A record whose operands have become addresses; absent ones are NULL. */
typedef struct {
    hedgerow_record record;
    void *at[HEDGEROW_OPERANDS];
} hedgerow_call;

typedef struct {
    const char *name;
    unsigned written; /* a bit for each operand that the kernel writes */
    /* Judge sizes and operands of a record; `units` becomes how many pieces of work its ranges are cut from. */
    hedgerow_verdict (*check)(const hedgerow_record *record, int64_t *units);
    /* Do the units from `first` to before `end`, as part number `part` of the record's. */
    void (*run)(const hedgerow_call *call, int64_t first, int64_t end, int part);
} hedgerow_kernel;

/* The kernels as one instruction set computes them; the same names in the same order in every table. */
typedef struct {
    const char *instruction_set;
    const hedgerow_kernel *kernels;
    int32_t count;
} hedgerow_table;

const hedgerow_table *hedgerow_current_table(void);

/* Row-major C (m x n) = A B + beta C, or C - taken A B where `taken` is not 0; a transposed operand is stored as its
 * transpose. At most `terms` are added up one after the other, or as many as is fast where that is 0. */
typedef struct {
    bool turn_a, turn_b;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc;
    float beta, taken;
    int64_t terms;
} hedgerow_product;

/* Hand a product to the BLAS in use; false if there is none. */
bool hedgerow_blas_product(const hedgerow_product *product);

#endif
