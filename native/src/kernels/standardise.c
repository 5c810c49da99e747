/* Features standardised with the mean and variance of all samples seen so far. Sizes: samples, features. */
#include <math.h>

#include "checking.h"
#include "vector.h"

enum { FEATURE_SAMPLES, FEATURE_COUNT, FEATURE_BLOCK = 256 };

/* (x - mean) / sqrt(variance + epsilon). Operands: x, mean if there is one, variance, result. Numbers: epsilon. Cut by
 * samples. */
static hedgerow_verdict check_standardise(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t samples = positive(&check, FEATURE_SAMPLES), features = positive(&check, FEATURE_COUNT);
    needs_floats(&check, 0, times(&check, samples, features));
    may_have_floats(&check, 1, features);
    needs_floats(&check, 2, features);
    needs_floats(&check, 3, times(&check, samples, features));
    *units = samples;
    return check.verdict;
}

static void run_standardise(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t features = call->record.sizes[FEATURE_COUNT];
    const float *mean = call->at[1], *variance = call->at[2], epsilon = (float)call->record.numbers[0];
    for (int64_t from = 0; from < features; from += FEATURE_BLOCK) {
        int64_t count = least(FEATURE_BLOCK, features - from);
        float centre[FEATURE_BLOCK], inverse[FEATURE_BLOCK];
        for (int64_t at = 0; at < count; at++) {
            centre[at] = mean == NULL ? 0 : mean[from + at];
            inverse[at] = 1 / __builtin_sqrtf(variance[from + at] + epsilon);
        }
        for (int64_t sample = first; sample < end; sample++) {
            const float *restrict x = (const float *)call->at[0] + sample * features + from;
            float *restrict y = (float *)call->at[3] + sample * features + from;
            for (int64_t at = 0; at < count; at++)
                y[at] = (x[at] - centre[at]) * inverse[at];
        }
    }
    (void)part;
}

/* Take samples into mean and variance one by one (Welford). Operands: x, mean, variance, how many samples these stand
 * for, which stays as it is. Cut by features. */
static hedgerow_verdict check_take_in(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t features = positive(&check, FEATURE_COUNT);
    needs_floats(&check, 0, times(&check, positive(&check, FEATURE_SAMPLES), features));
    needs_floats(&check, 1, features);
    needs_floats(&check, 2, features);
    needs_floats(&check, 3, 1);
    *units = features;
    return check.verdict;
}

static void run_take_in(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t features = call->record.sizes[FEATURE_COUNT];
    float *restrict mean = call->at[1], *restrict variance = call->at[2];
    for (int64_t sample = 0; sample < call->record.sizes[FEATURE_SAMPLES]; sample++) {
        const float *restrict x = (const float *)call->at[0] + sample * features;
        const double before = *(const float *)call->at[3] + (double)sample;
        const float seen = (float)before, after = (float)(before + 1);
        for (int64_t at = first; at < end; at++) {
            float apart = x[at] - mean[at];
            mean[at] += apart / after;
            variance[at] = (variance[at] * seen + apart * (x[at] - mean[at])) / after;
        }
    }
    (void)part;
}
