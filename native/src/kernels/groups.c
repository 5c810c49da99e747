/* Norms of groups of channels within a sample; rows of a weight are groups of one channel.
 *
 * Images are (sample, group, channel, pixel). Sizes: samples, groups, channels of a group, pixels. Statistics are the
 * mean and the inverse deviation of each group of each sample.
 */
#include <math.h>

#include "checking.h"
#include "sums.h"

enum { GROUP_SAMPLES, GROUP_COUNT, GROUP_CHANNELS, GROUP_PIXELS };

typedef struct {
    int64_t groups, channels, elements; /* groups of all samples, channels of one sample */
} group_sizes;

static group_sizes check_groups(checker *check) {
    int64_t count = positive(check, GROUP_COUNT), groups = times(check, positive(check, GROUP_SAMPLES), count);
    int64_t channels = positive(check, GROUP_CHANNELS);
    int64_t width = times(check, channels, positive(check, GROUP_PIXELS));
    return (group_sizes){groups, times(check, count, channels), times(check, groups, width)};
}

/* Each group with mean 0 and deviation 1, times weight plus bias of the channel. Operands: x, weight and bias if there
 * are any, result, statistics if they are wanted. Numbers: epsilon. Cut by groups of all samples. */
static hedgerow_verdict check_group_norm(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    group_sizes sizes = check_groups(&check);
    needs_floats(&check, 0, sizes.elements);
    may_have_floats(&check, 1, sizes.channels);
    may_have_floats(&check, 2, sizes.channels);
    needs_floats(&check, 3, sizes.elements);
    may_have_floats(&check, 4, times(&check, 2, sizes.groups));
    *units = sizes.groups;
    return check.verdict;
}

static inline float of_channel(const float *values, int64_t channel, float otherwise) {
    return values == NULL ? otherwise : values[channel];
}

static void run_group_norm(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes, pixels = s[GROUP_PIXELS], width = s[GROUP_CHANNELS] * pixels;
    for (int64_t group = first; group < end; group++) {
        const float *restrict x = (const float *)call->at[0] + group * width;
        float *restrict y = (float *)call->at[3] + group * width;
        const float mean = (float)(long_sum(x, width) / (double)width);
        const double lacking = sum_around(x, mean, width) / (double)width; /* seen in the result if that is far from zero */
        const double variance = squares_around(x, mean, width) / (double)width;
        const float inverse = (float)(1 / sqrt(variance + call->record.numbers[0]));
        for (int64_t channel = 0; channel < s[GROUP_CHANNELS]; channel++) {
            int64_t number = group % s[GROUP_COUNT] * s[GROUP_CHANNELS] + channel;
            const float factor = inverse * of_channel(call->at[1], number, 1);
            const float shift = (float)(of_channel(call->at[2], number, 0) - lacking * factor);
            for (int64_t at = channel * pixels; at < (channel + 1) * pixels; at++)
                y[at] = (x[at] - mean) * factor + shift;
        }
        if (call->at[4] != NULL) {
            float *statistics = (float *)call->at[4] + 2 * group;
            statistics[0] = mean;
            statistics[1] = inverse;
        }
    }
    (void)part;
}

/* With g = dy weight and c = x - mean: dx = inverse (g - mean(g) - c inverse^2 mean(g c)). Operands: gradient, x,
 * statistics, weight if there is one, result. Cut by groups of all samples. */
static hedgerow_verdict check_group_norm_grad(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    group_sizes sizes = check_groups(&check);
    needs_floats(&check, 0, sizes.elements);
    needs_floats(&check, 1, sizes.elements);
    needs_floats(&check, 2, times(&check, 2, sizes.groups));
    may_have_floats(&check, 3, sizes.channels);
    needs_floats(&check, 4, sizes.elements);
    *units = sizes.groups;
    return check.verdict;
}

static void run_group_norm_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes, pixels = s[GROUP_PIXELS], width = s[GROUP_CHANNELS] * pixels;
    for (int64_t group = first; group < end; group++) {
        const float *restrict gradient = (const float *)call->at[0] + group * width;
        const float *restrict x = (const float *)call->at[1] + group * width;
        const float *statistics = (const float *)call->at[2] + 2 * group;
        float *restrict out = (float *)call->at[4] + group * width;
        const float mean = statistics[0], inverse = statistics[1];
        const int64_t number = group % s[GROUP_COUNT] * s[GROUP_CHANNELS];
        double along = 0, level = 0;
        for (int64_t channel = 0; channel < s[GROUP_CHANNELS]; channel++) {
            const double weight = of_channel(call->at[3], number + channel, 1);
            const float *arriving = gradient + channel * pixels;
            along += weight * products_around(arriving, x + channel * pixels, mean, pixels);
            level += weight * long_sum(arriving, pixels);
        }
        const float slope = (float)(along / (double)width * inverse * inverse), base = (float)(level / (double)width);
        for (int64_t channel = 0; channel < s[GROUP_CHANNELS]; channel++) {
            const float weight = of_channel(call->at[3], number + channel, 1);
            for (int64_t at = channel * pixels; at < (channel + 1) * pixels; at++)
                out[at] = (gradient[at] * weight - (x[at] - mean) * slope - base) * inverse;
        }
    }
    (void)part;
}

/* For each channel the sum over samples and pixels of dy (x - mean) inverse, or of dy alone. Operands: gradient, x and
 * statistics if there are any, result. Cut by channels. */
static hedgerow_verdict check_group_products(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    group_sizes sizes = check_groups(&check);
    needs_floats(&check, 0, sizes.elements);
    may_have_floats(&check, 1, sizes.elements);
    may_have_floats(&check, 2, times(&check, 2, sizes.groups));
    refuse_unless(&check, is_there(record, 1) == is_there(record, 2), HEDGEROW_OPERAND_MISSING);
    needs_floats(&check, 3, sizes.channels);
    *units = sizes.channels;
    return check.verdict;
}

static void run_group_products(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes, pixels = s[GROUP_PIXELS], channels = s[GROUP_COUNT] * s[GROUP_CHANNELS];
    const float *gradient = call->at[0], *x = call->at[1], *statistics = call->at[2];
    for (int64_t channel = first; channel < end; channel++) {
        double sum = 0;
        for (int64_t sample = 0; sample < s[GROUP_SAMPLES]; sample++) {
            int64_t from = (sample * channels + channel) * pixels;
            if (x == NULL) {
                sum += long_sum(gradient + from, pixels);
                continue;
            }
            const float *own = statistics + 2 * (sample * s[GROUP_COUNT] + channel / s[GROUP_CHANNELS]);
            sum += products_around(gradient + from, x + from, own[0], pixels) * own[1];
        }
        ((float *)call->at[3])[channel] = (float)sum;
    }
    (void)part;
}
