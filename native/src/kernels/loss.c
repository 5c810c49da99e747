/* Cross entropy of samples with labels; cut by samples. */
#include <math.h>

#include "checking.h"
#include "exponential.h"
#include "vector.h"

/* Sizes: samples, classes. Operands: logits, labels, losses and, if they are wanted, probabilities. */
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
