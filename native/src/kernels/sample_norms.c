/* Norms of channels of images as their shapes say (samples, channels, pixels).
 *
 * A channel is a run of pixels in each sample; whoever has a channel goes over all of its runs, so that sums need no
 * joining and have the same bits on any number of threads. What a channel is multiplied by is left in scratch. Sizes:
 * samples, channels, pixels. All are cut by channels.
 */
#include <math.h>

#include "checking.h"
#include "vector.h"

enum { RUNS_SAMPLES, RUNS_CHANNELS, RUNS_PIXELS };

typedef struct {
    int64_t samples, channels, pixels;
} runs;

static runs runs_of(const int64_t *sizes) {
    return (runs){sizes[RUNS_SAMPLES], sizes[RUNS_CHANNELS], sizes[RUNS_PIXELS]};
}

/* Judge sizes; return the elements of the images. */
static int64_t check_runs(checker *check, int64_t *units) {
    int64_t samples = positive(check, RUNS_SAMPLES), channels = positive(check, RUNS_CHANNELS);
    *units = channels;
    return times(check, times(check, samples, channels), positive(check, RUNS_PIXELS));
}

static double number_of_pixels(runs r) { return (double)r.samples * (double)r.pixels; }

static inline const float *run_at(const float *images, runs r, int64_t sample, int64_t channel) {
    return images + (sample * r.channels + channel) * r.pixels;
}

/* What four sums come to, in 64 bits: of a short run this is most of its additions. */
static inline double four_sums(const vec *sums) {
    wide_vec all = (widen(sums[0]) + widen(sums[1])) + (widen(sums[2]) + widen(sums[3]));
    return ((all[0] + all[4]) + (all[2] + all[6])) + ((all[1] + all[5]) + (all[3] + all[7]));
}

static double sum_run(const float *x, int64_t count) {
    vec sums[4] = {zeros(), zeros(), zeros(), zeros()};
    int64_t at = 0;
    for (; at + 4 * LANES <= count; at += 4 * LANES)
        for (int lane = 0; lane < 4; lane++)
            sums[lane] += load(x + at + lane * LANES);
    for (; at + LANES <= count; at += LANES)
        sums[0] += load(x + at);
    double rest = 0;
    for (; at < count; at++)
        rest += x[at];
    return four_sums(sums) + rest;
}

/* The sum of y (x - mean). */
static double product_run(const float *y, const float *x, float mean, int64_t count) {
    const vec centre = spread(mean);
    vec sums[4] = {zeros(), zeros(), zeros(), zeros()};
    int64_t at = 0;
    for (; at + 4 * LANES <= count; at += 4 * LANES)
        for (int lane = 0; lane < 4; lane++)
            sums[lane] += load(y + at + lane * LANES) * (load(x + at + lane * LANES) - centre);
    for (; at + LANES <= count; at += LANES)
        sums[0] += load(y + at) * (load(x + at) - centre);
    double rest = 0;
    for (; at < count; at++)
        rest += (double)y[at] * (x[at] - mean);
    return four_sums(sums) + rest;
}

static double square_run(const float *x, float mean, int64_t count) {
    const vec centre = spread(mean);
    vec sums[4] = {zeros(), zeros(), zeros(), zeros()};
    int64_t at = 0;
    for (; at + 4 * LANES <= count; at += 4 * LANES)
        for (int lane = 0; lane < 4; lane++) {
            vec apart = load(x + at + lane * LANES) - centre;
            sums[lane] += apart * apart;
        }
    for (; at + LANES <= count; at += LANES) {
        vec apart = load(x + at) - centre;
        sums[0] += apart * apart;
    }
    double rest = 0;
    for (; at < count; at++)
        rest += (x[at] - mean) * (x[at] - mean);
    return four_sums(sums) + rest;
}

static double sum_channel(const float *images, runs r, int64_t channel) {
    double sum = 0;
    for (int64_t sample = 0; sample < r.samples; sample++)
        sum += sum_run(run_at(images, r, sample, channel), r.pixels);
    return sum;
}

static double product_channel(const float *gradient, const float *images, float mean, runs r, int64_t channel) {
    double sum = 0;
    for (int64_t sample = 0; sample < r.samples; sample++)
        sum += product_run(run_at(gradient, r, sample, channel), run_at(images, r, sample, channel), mean, r.pixels);
    return sum;
}

/* (x - mean) * factor + level, all runs of a channel. */
static void stretch_channel(const float *images, float *out, runs r, int64_t channel, float mean, float factor,
                            float level) {
    for (int64_t sample = 0; sample < r.samples; sample++) {
        const float *restrict x = run_at(images, r, sample, channel);
        float *restrict y = out + (x - images);
        for (int64_t at = 0; at < r.pixels; at++)
            y[at] = (x[at] - mean) * factor + level;
    }
}

/* With the batch's statistics. Operands: x, weight, bias, mean and variance (2, channel), factor, result. Numbers:
 * epsilon. */
static hedgerow_verdict check_runs_norm(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t elements = check_runs(&check, units);
    needs_floats(&check, 0, elements);
    for (int at = 1; at < 5; at++)
        needs_floats(&check, at, at == 3 ? 2 * *units : *units);
    needs_floats(&check, 5, elements);
    return check.verdict;
}

static void run_runs_norm(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    runs r = runs_of(call->record.sizes);
    const float *x = call->at[0], *weight = call->at[1], *bias = call->at[2];
    float *means = call->at[3], *variances = means + r.channels, *factors = call->at[4];
    for (int64_t channel = first; channel < end; channel++) {
        float mean = (float)(sum_channel(x, r, channel) / number_of_pixels(r));
        double squares = 0;
        for (int64_t sample = 0; sample < r.samples; sample++)
            squares += square_run(run_at(x, r, sample, channel), mean, r.pixels);
        double variance = squares / number_of_pixels(r);
        means[channel] = mean;
        variances[channel] = (float)variance;
        factors[channel] = (float)(weight[channel] / sqrt(variance + call->record.numbers[0]));
        stretch_channel(x, call->at[5], r, channel, mean, factors[channel], bias[channel]);
    }
    (void)part;
}

/* With running statistics. Operands: x, weight, bias, mean, variance, factor, result; without bias and mean, only
 * stretched: the gradient. Numbers: epsilon. */
static hedgerow_verdict check_runs_stretch(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t elements = check_runs(&check, units);
    needs_floats(&check, 0, elements);
    needs_floats(&check, 1, *units);
    may_have_floats(&check, 2, *units);
    may_have_floats(&check, 3, *units);
    refuse_unless(&check, is_there(record, 2) == is_there(record, 3), HEDGEROW_OPERAND_MISSING);
    needs_floats(&check, 4, *units);
    needs_floats(&check, 5, *units);
    needs_floats(&check, 6, elements);
    return check.verdict;
}

static void run_runs_stretch(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    runs r = runs_of(call->record.sizes);
    const float *weight = call->at[1], *bias = call->at[2], *mean = call->at[3], *variance = call->at[4];
    float *factors = call->at[5];
    for (int64_t channel = first; channel < end; channel++) {
        factors[channel] = (float)(weight[channel] / sqrt(variance[channel] + call->record.numbers[0]));
        stretch_channel(call->at[0], call->at[6], r, channel, mean == NULL ? 0 : mean[channel], factors[channel],
                        bias == NULL ? 0 : bias[channel]);
    }
    (void)part;
}

/* Operands: gradient, x, mean and variance (2, channel), weight, sums of dy (x - mean) / deviation and of dy if they
 * are known, factor, gradient of x. Numbers: epsilon. */
static hedgerow_verdict check_runs_norm_grad(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t elements = check_runs(&check, units);
    needs_floats(&check, 0, elements);
    needs_floats(&check, 1, elements);
    needs_floats(&check, 2, 2 * *units);
    needs_floats(&check, 3, *units);
    may_have_floats(&check, 4, *units);
    may_have_floats(&check, 5, *units);
    refuse_unless(&check, is_there(record, 4) == is_there(record, 5), HEDGEROW_OPERAND_MISSING);
    needs_floats(&check, 6, *units);
    needs_floats(&check, 7, elements);
    return check.verdict;
}

/* ((dy - level) - (x - mean) slope) factor, all runs of a channel. */
static void lean_channel(const float *gradients, const float *images, float *out, runs r, int64_t channel, float mean,
                         float slope, float level, float factor) {
    for (int64_t sample = 0; sample < r.samples; sample++) {
        const float *restrict x = run_at(images, r, sample, channel);
        const float *restrict gradient = run_at(gradients, r, sample, channel);
        float *restrict dx = out + (x - images);
        for (int64_t at = 0; at < r.pixels; at++)
            dx[at] = ((gradient[at] - level) - (x[at] - mean) * slope) * factor;
    }
}

static void run_runs_norm_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    runs r = runs_of(call->record.sizes);
    const float *gradient = call->at[0], *x = call->at[1], *mean = call->at[2], *variance = mean + r.channels;
    const float *weight = call->at[3], *along = call->at[4], *level = call->at[5];
    float *factors = call->at[6];
    for (int64_t channel = first; channel < end; channel++) {
        double deviation = sqrt(variance[channel] + call->record.numbers[0]), count = number_of_pixels(r);
        double sum = along != NULL ? along[channel] * deviation
                                   : product_channel(gradient, x, mean[channel], r, channel);
        double all = level != NULL ? level[channel] : sum_channel(gradient, r, channel);
        factors[channel] = (float)(weight[channel] / deviation);
        lean_channel(gradient, x, call->at[7], r, channel, mean[channel],
                     (float)(sum / (deviation * deviation) / count), (float)(all / count), factors[channel]);
    }
    (void)part;
}

/* Sums of dy (x - mean) / deviation. Operands: gradient, x, mean, variance, deviation, sums. Numbers: epsilon. */
static hedgerow_verdict check_runs_norm_grad_weight(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t elements = check_runs(&check, units);
    needs_floats(&check, 0, elements);
    needs_floats(&check, 1, elements);
    for (int at = 2; at < 6; at++)
        needs_floats(&check, at, *units);
    return check.verdict;
}

static void run_runs_norm_grad_weight(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    runs r = runs_of(call->record.sizes);
    const float *mean = call->at[2], *variance = call->at[3];
    float *deviations = call->at[4], *sums = call->at[5];
    for (int64_t channel = first; channel < end; channel++) {
        double deviation = sqrt(variance[channel] + call->record.numbers[0]);
        deviations[channel] = (float)deviation;
        sums[channel] = (float)(product_channel(call->at[0], call->at[1], mean[channel], r, channel) / deviation);
    }
    (void)part;
}
