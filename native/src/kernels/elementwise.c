/* What is done number by number, in whatever order tensors lie; cut anywhere. */
#include "checking.h"
#include "vector.h"

/* Sizes: elements. Operands: inputs, then the output. */
static hedgerow_verdict check_elements(const hedgerow_record *record, int64_t *units, int operands) {
    checker check = look_at(record);
    *units = positive(&check, 0);
    for (int at = 0; at < operands; at++)
        needs_floats(&check, at, *units);
    return check.verdict;
}

static hedgerow_verdict check_one_to_one(const hedgerow_record *record, int64_t *units) {
    return check_elements(record, units, 2);
}

static hedgerow_verdict check_two_to_one(const hedgerow_record *record, int64_t *units) {
    return check_elements(record, units, 3);
}

/* max(x, 0), which keeps NaN. */
static void run_relu(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const float *x = call->at[0];
    float *y = call->at[1];
    for (int64_t at = first; at < end; at++)
        y[at] = x[at] < 0 ? 0 : x[at];
    (void)part;
}

/* The gradient where the result is above zero. */
static void run_relu_grad_from_result(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const float *gradient = call->at[0], *result = call->at[1];
    float *out = call->at[2];
    for (int64_t at = first; at < end; at++)
        out[at] = result[at] > 0 ? gradient[at] : 0;
    (void)part;
}

/* v = momentum v + g + decay p; p -= rate v. Operands: gradient, parameter, rate and, if there is one, the velocity.
 * Numbers: momentum, decay. */
static hedgerow_verdict check_sgd(const hedgerow_record *record, int64_t *units) {
    hedgerow_verdict verdict = check_elements(record, units, 2);
    checker check = look_at(record);
    needs_floats(&check, 2, 1);
    may_have_floats(&check, 3, *units);
    return verdict == HEDGEROW_FINE ? check.verdict : verdict;
}

static void run_sgd(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const float *gradient = call->at[0];
    float *parameter = call->at[1], *velocity = call->at[3];
    float rate = *(const float *)call->at[2];
    float momentum = (float)call->record.numbers[0], decay = (float)call->record.numbers[1];
    if (velocity == NULL && decay == 0) {
        for (int64_t at = first; at < end; at++)
            parameter[at] -= rate * gradient[at];
        return;
    }
    for (int64_t at = first; at < end; at++) {
        float direction = gradient[at] + decay * parameter[at];
        if (velocity != NULL)
            direction = velocity[at] = momentum * velocity[at] + direction;
        parameter[at] -= rate * direction;
    }
    (void)part;
}
