/* The compiled backend of the training core: programs of fixed-size records, checked once and replayed without Python.
 *
 * A record is one kernel on operands that are byte ranges of regions: the arena, a small block that changes from step
 * to step, and arrays outside. `hedgerow_open` looks at every record before the first one runs: operators it knows,
 * operands inside their regions and as large as the kernel's own sizes say, ranges that cover the work exactly. What
 * it refuses is never run; what it accepts never touches a byte outside its operands.
 */
#ifndef HEDGEROW_H
#define HEDGEROW_H

#include <stdint.h>

/* Raised whenever a record's layout or the meaning of an operator's operands, sizes or numbers changes. */
#define HEDGEROW_ABI 2

enum {
    HEDGEROW_PARTS = 4,     /* ranges that a record's work may be cut into: threads that share it */
    HEDGEROW_OPERANDS = 10, /* byte ranges a record may name */
    HEDGEROW_SIZES = 24,    /* whole numbers a record may bring */
    HEDGEROW_NUMBERS = 4    /* real numbers a record may bring */
};

/* A byte range of a region; a region of -1 means that the operand is not there. */
typedef struct {
    int64_t region;
    int64_t offset;
    int64_t bytes;
} hedgerow_operand;

typedef struct {
    int32_t op;    /* as `hedgerow_operator` names it */
    int32_t parts; /* how many ranges the work is cut into, 1 to HEDGEROW_PARTS */
    int64_t cuts[HEDGEROW_PARTS + 1];
    hedgerow_operand operands[HEDGEROW_OPERANDS];
    int64_t sizes[HEDGEROW_SIZES];
    double numbers[HEDGEROW_NUMBERS];
} hedgerow_record;

typedef struct {
    void *base;
    int64_t bytes;
    int64_t writable; /* 0 or 1 */
} hedgerow_region;

/* Why a record was refused. */
typedef enum {
    HEDGEROW_FINE = 0,
    HEDGEROW_UNKNOWN_OPERATOR,
    HEDGEROW_OPERAND_OUTSIDE,   /* of its region, or of a region that is not there */
    HEDGEROW_OPERAND_MISSING,   /* one that the operator needs */
    HEDGEROW_OPERAND_READ_ONLY, /* one that the operator writes */
    HEDGEROW_OPERAND_CROOKED,   /* not aligned to its elements */
    HEDGEROW_WRONG_SIZES,       /* that contradict each other or the operands */
    HEDGEROW_WRONG_RANGES,      /* that do not cover the work */
    HEDGEROW_NO_MEMORY
} hedgerow_verdict;

typedef struct {
    int64_t record; /* the first one refused */
    int64_t verdict;
} hedgerow_refusal;

typedef struct hedgerow_program hedgerow_program;

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

int32_t hedgerow_abi_version(void);

/* The instruction set in use ("avx2", "sse2", "neon", ...). Another one may be asked for by its name before programs are
 * opened; returns 0 if this machine has it. */
const char *hedgerow_instruction_set(void);
int32_t hedgerow_use_instruction_set(const char *name);

/* The number of an operator in records, or -1. */
int32_t hedgerow_operator(const char *name);
int32_t hedgerow_operator_count(void);
const char *hedgerow_operator_name(int32_t op);

/* Let large matrix products go to a `cblas_sgemm` whose integers have 32 or 64 bits; NULL for our own. */
void hedgerow_use_blas(void *cblas_sgemm, int32_t integer_bits);

/* Check records and bind them to regions; NULL if one is refused. Nothing of what is passed needs to live on, apart
 * from the regions' bytes. */
hedgerow_program *hedgerow_open(const hedgerow_record *records, int64_t record_count, const hedgerow_region *regions,
                                int64_t region_count, hedgerow_refusal *refusal);

/* Run every record once, on up to HEDGEROW_PARTS threads; the bits do not depend on how many. One caller at a time. */
void hedgerow_run(hedgerow_program *program, int32_t threads);

void hedgerow_close(hedgerow_program *program);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
