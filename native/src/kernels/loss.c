/* Losses of samples and their gradients: of classes with labels, and of numbers with numbers. */
#include <math.h>

#include "checking.h"
#include "exponential.h"
#include "sums.h"
#include "vector.h"

/* Sizes: samples, classes. Operands: logits, labels, losses and, if they are wanted, probabilities. Cut by samples. */
static hedgerow_verdict check_cross_entropy(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t samples = positive(&check, 0), classes = positive(&check, 1), all = times(&check, samples, classes);
    needs_floats(&check, 0, all);
    needs(&check, 1, samples, sizeof(int32_t));
    needs_floats(&check, 2, samples);
    may_have_floats(&check, 3, all);
    *units = samples;
    return check.verdict;
}

static float highest_of(const float *row, int64_t count) {
    float highest = row[0];
    for (int64_t at = 1; at < count; at++)
        highest = row[at] > highest || row[at] != row[at] ? row[at] : highest;
    return highest;
}

/* A label outside the classes was refused when samples were chosen; here it only must not reach beyond the row. */
static int64_t inside(int32_t label, int64_t classes) { return label < 0 ? 0 : least(label, classes - 1); }

static void run_cross_entropy(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t classes = call->record.sizes[1];
    const int32_t *labels = call->at[1];
    float *losses = call->at[2];
    for (int64_t sample = first; sample < end; sample++) {
        const float *row = (const float *)call->at[0] + sample * classes;
        float *chances = call->at[3] == NULL ? NULL : (float *)call->at[3] + sample * classes;
        vec highest = spread(highest_of(row, classes)), sums = zeros();
        for (int64_t at = 0; at < classes; at += LANES) {
            int64_t count = least(LANES, classes - at);
            vec power = exponential(load_some(row + at, count) - highest);
            for (int64_t lane = count; lane < LANES; lane++)
                power[lane] = 0;
            sums += power;
            if (chances != NULL)
                store_some(chances + at, power, count);
        }
        float sum = lanes_sum(sums);
        for (int64_t at = 0; chances != NULL && at < classes; at++)
            chances[at] /= sum;
        losses[sample] = logf(sum) - (row[inside(labels[sample], classes)] - highest[0]);
    }
    (void)part;
}

/* (probabilities - one-hot labels) / batch size. Operands: probabilities, labels, gradient. Numbers: batch size. */
static hedgerow_verdict check_cross_entropy_grad(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t samples = positive(&check, 0), classes = positive(&check, 1), all = times(&check, samples, classes);
    needs_floats(&check, 0, all);
    needs(&check, 1, samples, sizeof(int32_t));
    needs_floats(&check, 2, all);
    *units = samples;
    return check.verdict;
}

static void run_cross_entropy_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t classes = call->record.sizes[1];
    const int32_t *labels = call->at[1];
    float batch_size = (float)call->record.numbers[0];
    for (int64_t sample = first; sample < end; sample++) {
        const float *chances = (const float *)call->at[0] + sample * classes;
        float *gradient = (float *)call->at[2] + sample * classes;
        int64_t label = inside(labels[sample], classes);
        for (int64_t at = 0; at < classes; at++)
            gradient[at] = (chances[at] - (at == label ? 1.0F : 0.0F)) / batch_size;
    }
    (void)part;
}

/* What compares number by number. Sizes: samples, numbers of one. Operands: predictions, targets, losses. Cut by
 * samples. */
static hedgerow_verdict check_compared(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t samples = positive(&check, 0), all = times(&check, samples, positive(&check, 1));
    needs_floats(&check, 0, all);
    needs_floats(&check, 1, all);
    needs_floats(&check, 2, samples);
    *units = samples;
    return check.verdict;
}

/* The mean of (prediction - target)^2. */
static void run_mse(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t width = call->record.sizes[1];
    for (int64_t sample = first; sample < end; sample++)
        ((float *)call->at[2])[sample] =
            (float)(squares_between((const float *)call->at[0] + sample * width,
                                    (const float *)call->at[1] + sample * width, width) /
                    (double)width);
    (void)part;
}

/* Operands: predictions, targets, gradient. Numbers: factor. Cut anywhere, as that of the next one. */
FROM_TWO(run_mse_grad, (x - y) * number)

/* (sigmoid(z) - target) factor. */
static void run_bce_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const float *logits = call->at[0], *targets = call->at[1];
    float *out = call->at[2];
    const vec factor = spread((float)call->record.numbers[0]);
    BY_VECTORS(first, end, at, count) {
        vec chance = sigmoid(load_upto(logits + at, count));
        store_upto(out + at, (chance - load_upto(targets + at, count)) * factor, count);
    }
    (void)part;
}

/* log(1 + e) for e from 0 to 1: twice the series of artanh at e / (2 + e), which is at most a third. */
static inline vec log_of_one_and(vec e) {
    vec s = e / (spread(2) + e), square = s * s;
    vec p = spread(1.0F / 13);
    p = p * square + spread(1.0F / 11);
    p = p * square + spread(1.0F / 9);
    p = p * square + spread(1.0F / 7);
    p = p * square + spread(1.0F / 5);
    p = p * square + spread(1.0F / 3);
    return spread(2) * (s + s * square * p);
}

/* log(1 + exp(z)) - z target, without ever taking exp of a large number. */
static inline vec bce_of(vec z, vec target) {
    vec size = (vec)((ivec)z & ~(ivec)spread(-0.0F)), above = choose((ivec)(z < zeros()), zeros(), z);
    return log_of_one_and(exponential(-size)) + (above - z * target);
}

/* The mean of it over the numbers of a sample. */
static void run_bce(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t width = call->record.sizes[1];
    for (int64_t sample = first; sample < end; sample++) {
        const float *logits = (const float *)call->at[0] + sample * width;
        const float *targets = (const float *)call->at[1] + sample * width;
        double sum = 0;
        int64_t at = 0;
        for (; at + LANES <= width; at += LANES)
            sum += lanes_sum(bce_of(load(logits + at), load(targets + at)));
        vec rest = bce_of(load_upto(logits + at, width - at), load_upto(targets + at, width - at));
        for (int64_t lane = 0; lane < width - at; lane++)
            sum += rest[lane];
        ((float *)call->at[2])[sample] = (float)(sum / (double)width);
    }
    (void)part;
}
