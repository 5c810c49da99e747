/* Which instruction set and which BLAS are in use, and operators by their names. */
#include <string.h>

#include "kernel.h"
#include "processor.h"

extern const hedgerow_table hedgerow_table_baseline;

/* A second table, for machines that have more than the least that a wheel promises to run on. */
#if defined(HEDGEROW_WITH_AVX2)
extern const hedgerow_table hedgerow_table_avx2;
#define RICHER (&hedgerow_table_avx2)
#elif defined(HEDGEROW_WITH_NEON)
extern const hedgerow_table hedgerow_table_neon;
#define RICHER (&hedgerow_table_neon)
#else
#define RICHER (&hedgerow_table_baseline)
#endif

static const hedgerow_table *current;

const hedgerow_table *hedgerow_current_table(void) {
    if (current == NULL)
        current = hedgerow_has_richer_set() ? RICHER : &hedgerow_table_baseline;
    return current;
}

int32_t hedgerow_abi_version(void) { return HEDGEROW_ABI; }

const char *hedgerow_instruction_set(void) { return hedgerow_current_table()->instruction_set; }

int32_t hedgerow_use_instruction_set(const char *name) {
    bool richer = hedgerow_has_richer_set() && strcmp(name, RICHER->instruction_set) == 0;
    if (!richer && strcmp(name, hedgerow_table_baseline.instruction_set) != 0)
        return -1;
    current = richer ? RICHER : &hedgerow_table_baseline;
    return 0;
}

int32_t hedgerow_operator_count(void) { return hedgerow_table_baseline.count; }

const char *hedgerow_operator_name(int32_t op) {
    return op >= 0 && op < hedgerow_operator_count() ? hedgerow_table_baseline.kernels[op].name : NULL;
}

int32_t hedgerow_operator(const char *name) {
    for (int32_t op = 0; op < hedgerow_operator_count(); op++)
        if (strcmp(hedgerow_table_baseline.kernels[op].name, name) == 0)
            return op;
    return -1;
}

/* The values of CBLAS's enumerations. */
enum { ROW_MAJOR = 101, NOT_TURNED = 111, TURNED = 112 };

typedef void (*sgemm32)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void (*sgemm64)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t,
                        float, float *, int64_t);

static sgemm32 product32;
static sgemm64 product64;

void hedgerow_use_blas(void *cblas_sgemm, int32_t integer_bits) {
    product32 = NULL;
    product64 = NULL;
    /* C has no cast between data and code; copying the bits is what dlsym's users do. */
    if (integer_bits == 64)
        memcpy(&product64, &cblas_sgemm, sizeof cblas_sgemm);
    else
        memcpy(&product32, &cblas_sgemm, sizeof cblas_sgemm);
}

/* Terms that a BLAS adds up one after the other: each sum is rounded, so that a long one is off by the root of its length.
 * Longer ones are cut, and their parts are added to what is there. Gradients of weights, where A is turned, are left
 * whole: nothing is computed from them, and where they are small, cutting is slow. */
enum { MOST_TERMS = 128 };

static void blas_part(const hedgerow_product *p, float alpha, float beta) {
    int turn_a = p->turn_a ? TURNED : NOT_TURNED, turn_b = p->turn_b ? TURNED : NOT_TURNED;
    if (product64 != NULL)
        product64(ROW_MAJOR, turn_a, turn_b, p->m, p->n, p->k, alpha, p->a, p->lda, p->b, p->ldb, beta, p->c, p->ldc);
    else
        product32(ROW_MAJOR, turn_a, turn_b, (int)p->m, (int)p->n, (int)p->k, alpha, p->a, (int)p->lda, p->b,
                  (int)p->ldb, beta, p->c, (int)p->ldc);
}

bool hedgerow_blas_product(const hedgerow_product *p) {
    if (product64 == NULL && product32 == NULL)
        return false;
    float alpha = p->taken != 0 ? -p->taken : 1.0F, beta = p->taken != 0 ? 1.0F : p->beta;
    int64_t terms = p->terms > 0 ? p->terms : MOST_TERMS, parts = p->turn_a ? 1 : (p->k + terms - 1) / terms;
    for (int64_t part = 0; part < parts; part++) {
        hedgerow_product own = *p;
        int64_t first = p->k * part / parts;
        own.k = p->k * (part + 1) / parts - first;
        own.a += p->turn_a ? first * p->lda : first;
        own.b += p->turn_b ? first : first * p->ldb;
        blas_part(&own, alpha, part > 0 ? 1.0F : beta);
    }
    return true;
}
