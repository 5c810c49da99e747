/* What is done number by number, in whatever order tensors lie; cut anywhere. */
#include "checking.h"
#include "exponential.h"
#include "vector.h"

/* Sizes: elements. Operands: inputs, then the output. */
static hedgerow_verdict check_elements(const hedgerow_record *record, int64_t *units, int operands) {
    checker check = look_at(record);
    *units = positive(&check, 0);
    for (int at = 0; at < operands; at++)
        needs_floats(&check, at, *units);
    return check.verdict;
}

static hedgerow_verdict check_in_place(const hedgerow_record *record, int64_t *units) {
    return check_elements(record, units, 1);
}

static hedgerow_verdict check_one_to_one(const hedgerow_record *record, int64_t *units) {
    return check_elements(record, units, 2);
}

static hedgerow_verdict check_two_to_one(const hedgerow_record *record, int64_t *units) {
    return check_elements(record, units, 3);
}

/* A kernel that makes each number of one or of two. */
#define FROM_ONE(name, result)                                                                                         \
    static void name(const hedgerow_call *call, int64_t first, int64_t end, int part) {                                \
        const float *restrict in = call->at[0];                                                                        \
        float *restrict out = call->at[1];                                                                             \
        const float number = (float)call->record.numbers[0];                                                           \
        for (int64_t at = first; at < end; at++) {                                                                     \
            const float x = in[at];                                                                                    \
            out[at] = (result);                                                                                        \
        }                                                                                                              \
        (void)number, (void)part;                                                                                      \
    }

#define FROM_TWO(name, result)                                                                                         \
    static void name(const hedgerow_call *call, int64_t first, int64_t end, int part) {                                \
        const float *in = call->at[0], *also = call->at[1];                                                            \
        float *out = call->at[2];                                                                                      \
        const float number = (float)call->record.numbers[0];                                                           \
        _Pragma("GCC ivdep") for (int64_t at = first; at < end; at++) {                                                \
            const float x = in[at], y = also[at];                                                                      \
            out[at] = (result);                                                                                        \
        }                                                                                                              \
        (void)number, (void)part;                                                                                      \
    }

/* Rectifiers keep NaN. */
FROM_ONE(run_relu, x < 0 ? 0 : x)
FROM_ONE(run_relu6, x < 0 ? 0 : x > 6 ? 6 : x)
FROM_ONE(run_scale, number *x)
FROM_ONE(run_copy_floats, x)
FROM_ONE(run_hswish, x *(x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3) / 6)
FROM_TWO(run_relu_grad_from_result, y > 0 ? x : 0)
FROM_TWO(run_relu6_grad_from_result, y > 0 && y < 6 ? x : 0)
FROM_TWO(run_add, x + number * y)
FROM_TWO(run_mul, x *y)
FROM_TWO(run_tanh_grad, x *(1 - y * y))
FROM_TWO(run_sigmoid_grad, x *y *(1 - y))
FROM_TWO(run_hswish_grad, y <= -3 ? 0 : y >= 3 ? x : x * (y / 3 + 0.5F))

static void run_zero(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    memset((float *)call->at[0] + first, 0, (size_t)(end - first) * sizeof(float));
    (void)part;
}

static void run_fill(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    float *out = call->at[0];
    for (int64_t at = first; at < end; at++)
        out[at] = (float)call->record.numbers[0];
    (void)part;
}

/* Add a gradient to its accumulator. Operands: gradient, accumulator. */
static void run_accumulate(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const float *restrict gradient = call->at[0];
    float *restrict total = call->at[1];
    for (int64_t at = first; at < end; at++)
        total[at] += gradient[at];
    (void)part;
}

/* Walk over vectors, and over what is left as a vector that is filled up with zeros. */
#define BY_VECTORS(first, end, at, count)                                                                              \
    for (int64_t at = (first), count = (end)-at; count > 0; at += LANES, count -= LANES)

static inline vec load_upto(const float *at, int64_t count) { return count >= LANES ? load(at) : load_some(at, count); }

static inline void store_upto(float *at, vec value, int64_t count) {
    if (count >= LANES)
        store(at, value);
    else
        store_some(at, value, count);
}

static inline vec sigmoid(vec x) { return spread(1) / (spread(1) + exponential(-x)); }

/* tanh: odd polynomial where it is small, so that no digits cancel; elsewhere by exp. */
static inline vec hyperbolic_tangent(vec x) {
    const ivec sign = (ivec)spread(-0.0F);
    vec size = (vec)((ivec)x & ~sign), square = x * x;
    vec p = spread(-5.70498872745e-3F);
    p = p * square + spread(2.06390887954e-2F);
    p = p * square + spread(-5.37397155531e-2F);
    p = p * square + spread(1.33314422036e-1F);
    p = p * square + spread(-3.33332819422e-1F);
    vec small = x + x * square * p;
    vec large = spread(1) - spread(2) / (exponential(size + size) + spread(1));
    large = (vec)((ivec)large | ((ivec)x & sign));
    return choose((ivec)(size < spread(0.625F)), small, choose((ivec)(x == x), large, x));
}

#define FROM_ONE_VECTOR(name, result)                                                                                  \
    static void name(const hedgerow_call *call, int64_t first, int64_t end, int part) {                                \
        const float *in = call->at[0];                                                                                 \
        float *out = call->at[1];                                                                                      \
        BY_VECTORS(first, end, at, count) {                                                                            \
            vec x = load_upto(in + at, count);                                                                         \
            store_upto(out + at, (result), count);                                                                     \
        }                                                                                                              \
        (void)part;                                                                                                    \
    }

FROM_ONE_VECTOR(run_sigmoid, sigmoid(x))
FROM_ONE_VECTOR(run_tanh, hyperbolic_tangent(x))
FROM_ONE_VECTOR(run_silu, x *sigmoid(x))

/* dy s (1 + x (1 - s)), with s = sigmoid(x). Operands: gradient, x, result. */
static void run_silu_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const float *gradient = call->at[0], *in = call->at[1];
    float *out = call->at[2];
    BY_VECTORS(first, end, at, count) {
        vec x = load_upto(in + at, count), s = sigmoid(x);
        store_upto(out + at, load_upto(gradient + at, count) * s * (spread(1) + x * (spread(1) - s)), count);
    }
    (void)part;
}

/* x F(x), F the normal distribution function, and, if it is wanted, the slope F(x) + x f(x). Where |x| is below 1, F is
 * a half and an odd polynomial, so that what most numbers are is off by its last rounding alone; elsewhere what lies
 * beyond |x| is t P(t) exp(-x^2 / 2) with t = 1 / (1 + c |x|). Operands: x, result, slope. */
static hedgerow_verdict check_gelu(const hedgerow_record *record, int64_t *units) {
    hedgerow_verdict verdict = check_elements(record, units, 2);
    checker check = look_at(record);
    may_have_floats(&check, 2, *units);
    return verdict == HEDGEROW_FINE ? check.verdict : verdict;
}

static void run_gelu(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const float *in = call->at[0];
    float *out = call->at[1], *slope = call->at[2];
    const ivec sign = (ivec)spread(-0.0F);
    BY_VECTORS(first, end, at, count) {
        vec x = load_upto(in + at, count), size = (vec)((ivec)x & ~sign);
        vec t = spread(1) / (spread(1) + spread(0.36F) * size), square = x * x;
        vec p = spread(-0.1042497372F);
        p = p * t + spread(0.2668282411F);
        p = p * t + spread(0.02647568091F);
        p = p * t + spread(0.1700506085F);
        p = p * t + spread(0.140792789F);
        vec q = spread(-7.654178743e-6F);
        q = q * square + spread(1.134863033e-4F);
        q = q * square + spread(-1.186329886e-3F);
        q = q * square + spread(9.973323391e-3F);
        q = q * square + spread(-6.649035992e-2F);
        q = q * square + spread(0.3989422801F);
        vec power = exponential(spread(-0.5F) * square);
        vec half = spread(0.5F) - p * t * power;
        half = choose((ivec)(size < spread(1)), q * x, (vec)((ivec)half | ((ivec)x & sign)));
        vec distribution = spread(0.5F) + half;
        store_upto(out + at, x * distribution, count);
        if (slope != NULL)
            store_upto(slope + at, distribution + x * spread(0.398942280401432678F) * power, count);
    }
    (void)part;
}

/* x + p, p repeated. Sizes: repetitions, elements of p. Operands: x, p, result. Cut by repetitions. */
static hedgerow_verdict check_add_repeated(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t times_repeated = positive(&check, 0), elements = positive(&check, 1);
    int64_t all = times(&check, times_repeated, elements);
    needs_floats(&check, 0, all);
    needs_floats(&check, 1, elements);
    needs_floats(&check, 2, all);
    *units = times_repeated;
    return check.verdict;
}

static void run_add_repeated(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t elements = call->record.sizes[1];
    const float *added = call->at[1];
    for (int64_t turn = first; turn < end; turn++) {
        const float *in = (const float *)call->at[0] + turn * elements;
        float *out = (float *)call->at[2] + turn * elements; /* may be the same */
        int64_t at = 0;
        for (; at + LANES <= elements; at += LANES)
            store(out + at, load(in + at) + load(added + at));
        for (; at < elements; at++)
            out[at] = in[at] + added[at];
    }
    (void)part;
}
