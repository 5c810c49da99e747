/* Optimisers' updates in place; cut anywhere, apart from rows that tokens choose. */
#include <math.h>

#include "checking.h"
#include "eight_bits.h"
#include "vector.h"

/* A gradient as updates read it: clipped to a limit, or times a factor, or as it is. */
typedef struct {
    const float *at;
    float limit, factor;
} clipped;

static inline float clip(clipped gradient, int64_t at) {
    float value = gradient.at[at] * gradient.factor;
    return value > gradient.limit ? gradient.limit : value < -gradient.limit ? -gradient.limit : value;
}

static clipped clipped_gradient(const hedgerow_call *call, int factor) {
    float limit = (float)call->record.numbers[3];
    return (clipped){call->at[0], limit > 0 ? limit : __builtin_inff(),
                     call->at[factor] == NULL ? 1.0F : *(const float *)call->at[factor]};
}

/* v = momentum v + g + decay p; p -= rate v. Operands: gradient, parameter, rate and, if there are any, the velocity
 * and a factor of the gradient. Numbers: momentum, decay, -, limit of the gradient (0: none). */
static hedgerow_verdict check_sgd(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    *units = positive(&check, 0);
    needs_floats(&check, 0, *units);
    needs_floats(&check, 1, *units);
    needs_floats(&check, 2, 1);
    may_have_floats(&check, 3, *units);
    may_have_floats(&check, 4, 1);
    return check.verdict;
}

static void run_sgd(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const double *numbers = call->record.numbers;
    const float *restrict gradient = call->at[0];
    float *restrict parameter = call->at[1], *restrict velocity = call->at[3];
    const float rate = *(const float *)call->at[2], momentum = (float)numbers[0], decay = (float)numbers[1];
    (void)part;
    if (velocity == NULL && decay == 0 && call->at[4] == NULL && numbers[3] == 0) {
        for (int64_t at = first; at < end; at++)
            parameter[at] -= rate * gradient[at];
        return;
    }
    clipped source = clipped_gradient(call, 4);
    for (int64_t at = first; at < end; at++) {
        float direction = clip(source, at) + decay * parameter[at];
        if (velocity != NULL)
            direction = velocity[at] = momentum * velocity[at] + direction;
        parameter[at] -= rate * direction;
    }
}

/* Count one more step. Operand: the count, a 32-bit whole number or a float. Sizes: 1, whether it is whole. */
static hedgerow_verdict check_count(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    refuse_unless(&check, record->sizes[0] == 1, HEDGEROW_WRONG_SIZES);
    needs(&check, 0, 1, 4);
    *units = 1;
    return check.verdict;
}

static void run_count(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    if (call->record.sizes[1])
        *(int32_t *)call->at[0] += 1;
    else
        *(float *)call->at[0] += 1;
    (void)first, (void)end, (void)part;
}

/* Adam. Sizes: elements, whether the count of steps is whole. Operands: gradient, parameter, rate, first and second
 * moment, count of steps, factor of the gradient if there is one. Numbers: the betas, epsilon, limit. The decay of
 * weights is the operand 7, a float, if there is one. */
static hedgerow_verdict check_adam(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    *units = positive(&check, 0);
    needs_floats(&check, 2, 1);
    needs(&check, 5, 1, 4);
    may_have_floats(&check, 6, 1);
    may_have_floats(&check, 7, 1);
    for (int at = 0; at < 5; at++)
        if (at != 2)
            needs_floats(&check, at, *units);
    return check.verdict;
}

/* What a step of Adam multiplies by; steps are counted from 1. */
typedef struct {
    float beta1, beta2, rest1, rest2, epsilon, kept, widen, pace;
} adam_step;

static adam_step adam_step_of(const hedgerow_call *call, int count, int decayed) {
    const double *numbers = call->record.numbers;
    double steps = 1 + (call->record.sizes[1] ? (double)*(const int32_t *)call->at[count] : *(const float *)call->at[count]);
    double rate = *(const float *)call->at[2], decay = call->at[decayed] == NULL ? 0 : *(const float *)call->at[decayed];
    return (adam_step){(float)numbers[0],
                       (float)numbers[1],
                       (float)(1 - numbers[0]),
                       (float)(1 - numbers[1]),
                       (float)numbers[2],
                       (float)(1 - rate * decay),
                       (float)(1 / sqrt(1 - pow(numbers[1], steps))),
                       (float)(rate / (1 - pow(numbers[0], steps)))};
}

static inline void take_adam_step(adam_step step, clipped source, float *restrict parameter, float *restrict one,
                                  float *restrict two, int64_t first, int64_t end) {
    for (int64_t at = first; at < end; at++) {
        float gradient = clip(source, at);
        one[at] = one[at] * step.beta1 + gradient * step.rest1;
        two[at] = two[at] * step.beta2 + gradient * gradient * step.rest2;
        float apart = __builtin_sqrtf(two[at]) * step.widen + step.epsilon;
        parameter[at] = parameter[at] * step.kept - one[at] / apart * step.pace;
    }
}

static void run_adam(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    take_adam_step(adam_step_of(call, 5, 7), clipped_gradient(call, 6), call->at[1], call->at[3], call->at[4], first, end);
    (void)part;
}

/* Adam with moments in eight bits, unpacked, used and packed again block by block. Sizes as Adam's. Operands: gradient,
 * parameter, rate, codes and scales of the first moment, those of the second, count of steps, factor of the gradient if
 * there is one, decay of weights if there is one. Numbers as Adam's. Cut by blocks. */
static hedgerow_verdict check_adam8bit(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t elements = positive(&check, 0), blocks = (elements + STATE_BLOCK - 1) / STATE_BLOCK;
    needs_floats(&check, 0, elements);
    needs_floats(&check, 1, elements);
    needs_floats(&check, 2, 1);
    needs(&check, 3, elements, 1);
    needs_floats(&check, 4, blocks);
    needs(&check, 5, elements, 1);
    needs_floats(&check, 6, blocks);
    needs(&check, 7, 1, 4);
    may_have_floats(&check, 8, 1);
    may_have_floats(&check, 9, 1);
    *units = blocks;
    return check.verdict;
}

static void run_adam8bit(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const adam_step step = adam_step_of(call, 7, 9);
    const clipped source = clipped_gradient(call, 8);
    float *scales1 = call->at[4], *scales2 = call->at[6], one[STATE_BLOCK], two[STATE_BLOCK];
    for (int64_t block = first; block < end; block++) {
        int64_t from = block * STATE_BLOCK, count = least(STATE_BLOCK, call->record.sizes[0] - from);
        int8_t *codes1 = (int8_t *)call->at[3] + from;
        uint8_t *codes2 = (uint8_t *)call->at[5] + from;
        clipped own = {source.at + from, source.limit, source.factor};
        unpack_signed(codes1, scales1[block], count, one);
        unpack_positive(codes2, scales2[block], count, two);
        take_adam_step(step, own, (float *)call->at[1] + from, one, two, 0, count);
        scales1[block] = pack_signed(one, count, codes1);
        scales2[block] = pack_positive(two, count, codes2);
    }
    (void)part;
}

/* Rows of a table that tokens choose. Sizes: tokens, width, rows of the table. Cut by columns, so that equal tokens
 * are taken in their order by everybody. A token beyond the table was refused when samples were chosen; here it only
 * must not reach beyond it. */
enum { ROWS_TOKENS, ROWS_WIDTH, ROWS_TABLE };

static inline int64_t chosen_row(const int32_t *tokens, int64_t at, int64_t rows) {
    return tokens[at] < 0 ? 0 : least(tokens[at], rows - 1);
}

static hedgerow_verdict check_rows(const hedgerow_record *record, int64_t *units, int values, int tokens, int table) {
    checker check = look_at(record);
    int64_t count = positive(&check, ROWS_TOKENS), width = positive(&check, ROWS_WIDTH);
    needs_floats(&check, values, times(&check, count, width));
    needs(&check, tokens, count, sizeof(int32_t));
    needs_floats(&check, table, times(&check, positive(&check, ROWS_TABLE), width));
    *units = width;
    return check.verdict;
}

/* Operands: tokens, table, result. */
static hedgerow_verdict check_embedding(const hedgerow_record *record, int64_t *units) {
    return check_rows(record, units, 2, 0, 1);
}

static void run_embedding(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    const float *table = call->at[1];
    float *out = call->at[2];
    for (int64_t token = 0; token < sizes[ROWS_TOKENS]; token++) {
        int64_t row = chosen_row(call->at[0], token, sizes[ROWS_TABLE]);
        memcpy(out + token * sizes[ROWS_WIDTH] + first, table + row * sizes[ROWS_WIDTH] + first,
               (size_t)(end - first) * sizeof *out);
    }
    (void)part;
}

/* Operands: gradient, tokens, table, rate; the table is changed by -rate times the gradient of each token. */
static hedgerow_verdict check_sgd_rows(const hedgerow_record *record, int64_t *units) {
    hedgerow_verdict verdict = check_rows(record, units, 0, 1, 2);
    checker check = look_at(record);
    needs_floats(&check, 3, 1);
    return verdict == HEDGEROW_FINE ? check.verdict : verdict;
}

static void add_rows(const hedgerow_call *call, int64_t first, int64_t end, float factor) {
    const int64_t *sizes = call->record.sizes;
    for (int64_t token = 0; token < sizes[ROWS_TOKENS]; token++) {
        int64_t row = chosen_row(call->at[1], token, sizes[ROWS_TABLE]);
        const float *restrict gradient = (const float *)call->at[0] + token * sizes[ROWS_WIDTH];
        float *restrict target = (float *)call->at[2] + row * sizes[ROWS_WIDTH];
        for (int64_t at = first; at < end; at++)
            target[at] += factor * gradient[at];
    }
}

static void run_sgd_rows(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    add_rows(call, first, end, -*(const float *)call->at[3]);
    (void)part;
}

/* Operands: gradient, tokens, gradient of the table. */
static hedgerow_verdict check_embedding_grad(const hedgerow_record *record, int64_t *units) {
    return check_rows(record, units, 0, 1, 2);
}

static void run_embedding_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    for (int64_t row = 0; row < sizes[ROWS_TABLE]; row++)
        memset((float *)call->at[2] + row * sizes[ROWS_WIDTH] + first, 0, (size_t)(end - first) * sizeof(float));
    add_rows(call, first, end, 1);
    (void)part;
}
