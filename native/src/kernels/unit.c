/* All kernels as one instruction set computes them: this file is compiled once for each, with HEDGEROW_SET its name. */
#include "products.c"

#include "dense.c"
#include "elementwise.c"
#include "loss.c"

#define TEXT_OF(word) #word
#define TEXT(word) TEXT_OF(word)
#define NAMED_OF(name, set) name##set
#define NAMED(name, set) NAMED_OF(name, set)

#ifndef HEDGEROW_SET
#error "Name the instruction set: -DHEDGEROW_SET=baseline or avx2."
#endif

#ifndef HEDGEROW_SET_NAME
#if defined(__aarch64__) || defined(__ARM_NEON)
#define HEDGEROW_SET_NAME "neon"
#elif defined(__x86_64__)
#define HEDGEROW_SET_NAME "sse2"
#else
#define HEDGEROW_SET_NAME "generic"
#endif
#endif

#define WRITES(at) (1U << (at))

static const hedgerow_kernel KERNELS[] = {
    {"product", WRITES(2), check_product, run_product},
    {"column_sums", WRITES(1), check_column_sums, run_column_sums},
    {"relu", WRITES(1), check_one_to_one, run_relu},
    {"relu_grad_from_result", WRITES(2), check_two_to_one, run_relu_grad_from_result},
    {"sgd", WRITES(1) | WRITES(3), check_sgd, run_sgd},
    {"cross_entropy", WRITES(2) | WRITES(3), check_cross_entropy, run_cross_entropy},
    {"cross_entropy_grad", WRITES(2), check_cross_entropy_grad, run_cross_entropy_grad},
};

const hedgerow_table NAMED(hedgerow_table_, HEDGEROW_SET) = {HEDGEROW_SET_NAME, KERNELS,
                                                             (int32_t)(sizeof KERNELS / sizeof KERNELS[0])};
