/* Norms of images as their shapes say, against plain loops in double precision. */
#include <math.h>

#include "testing.h"

/* One channel's numbers of a norm, in double precision. */
typedef struct {
    double mean, variance, sum, along; /* the last two of dy and of dy (x - mean) */
} moments;

typedef struct {
    int samples, channels, pixels;
} runs_shape;

static int place_of(const runs_shape *r, int channel, int at) {
    return (at / r->pixels * r->channels + channel) * r->pixels + at % r->pixels;
}

static moments moments_of_channel(const runs_shape *r, const float *x, const float *dy, int channel) {
    moments m = {0, 0, 0, 0};
    int count = r->samples * r->pixels;
    for (int at = 0; at < count; at++)
        m.mean += x[place_of(r, channel, at)] / (double)count;
    for (int at = 0; at < count; at++) {
        double apart = x[place_of(r, channel, at)] - m.mean;
        m.variance += apart * apart / count;
        m.sum += dy[place_of(r, channel, at)];
        m.along += dy[place_of(r, channel, at)] * apart;
    }
    return m;
}

static bench *norm_bench(const runs_shape *r, int operands, unsigned images) {
    bench *b = bench_new();
    for (int at = 0; at < operands; at++)
        bench_floats(b, at, images >> at & 1 ? r->samples * r->channels * r->pixels : 2 * r->channels);
    bench_sizes(b, 3, r->samples, r->channels, r->pixels);
    b->record.numbers[0] = 1e-5;
    return b;
}

static void test_norm(const runs_shape *r) {
    bench *b = norm_bench(r, 6, 0x21);
    const float *x = b->regions[0].base, *weight = b->regions[1].base, *bias = b->regions[2].base;
    const float *y = b->regions[5].base;
    double worst = 0;
    bench_run(b, "runs_norm", r->channels);
    for (int channel = 0; channel < r->channels; channel++) {
        moments m = moments_of_channel(r, x, x, channel);
        for (int at = 0; at < r->samples * r->pixels; at++) {
            int place = place_of(r, channel, at);
            double wanted = (x[place] - m.mean) / sqrt(m.variance + 1e-5) * weight[channel] + bias[channel];
            worst = fmax(worst, fabs(wanted - y[place]));
        }
    }
    expect(worst <= 1e-5, "runs_norm of %d channels of %d pixels: off by %g", r->channels, r->pixels, worst);
    bench_free(b);
}

/* The gradient of x, once from sums that the kernel takes and once from given ones, and that of the weight. */
static void test_norm_grad(const runs_shape *r, int given) {
    bench *b = norm_bench(r, 8, 0x83);
    const float *dy = b->regions[0].base, *x = b->regions[1].base, *weight = b->regions[3].base;
    float *statistics = b->regions[2].base, *along = b->regions[4].base, *level = b->regions[5].base;
    const float *dx = b->regions[7].base;
    double worst = 0, count = (double)r->samples * r->pixels;
    for (int channel = 0; channel < r->channels; channel++) {
        moments m = moments_of_channel(r, x, dy, channel);
        statistics[channel] = (float)m.mean;
        statistics[r->channels + channel] = (float)m.variance;
        along[channel] = (float)(m.along / sqrt(m.variance + 1e-5));
        level[channel] = (float)m.sum;
    }
    if (!given)
        b->record.operands[4].region = b->record.operands[5].region = -1;
    bench_run(b, "runs_norm_grad", r->channels);
    for (int channel = 0; channel < r->channels; channel++) {
        moments m = moments_of_channel(r, x, dy, channel);
        double deviation = sqrt(m.variance + 1e-5);
        for (int at = 0; at < r->samples * r->pixels; at++) {
            int place = place_of(r, channel, at);
            double slope = (x[place] - m.mean) * m.along / (m.variance + 1e-5) / count;
            worst = fmax(worst, fabs(weight[channel] / deviation * (dy[place] - m.sum / count - slope) - dx[place]));
        }
    }
    expect(worst <= 1e-5, "runs_norm_grad of %d channels, sums given %d: off by %g", r->channels, given, worst);
    bench_free(b);
}

static void test_norm_grad_weight(const runs_shape *r) {
    bench *b = norm_bench(r, 6, 0x03);
    const float *dy = b->regions[0].base, *x = b->regions[1].base, *found = b->regions[5].base;
    float *mean = b->regions[2].base, *variance = b->regions[3].base;
    double worst = 0;
    for (int channel = 0; channel < r->channels; channel++) {
        moments m = moments_of_channel(r, x, dy, channel);
        mean[channel] = (float)m.mean;
        variance[channel] = (float)m.variance;
    }
    bench_run(b, "runs_norm_grad_weight", r->channels);
    for (int channel = 0; channel < r->channels; channel++) {
        moments m = moments_of_channel(r, x, dy, channel);
        worst = fmax(worst, fabs(m.along / sqrt(m.variance + 1e-5) - found[channel]));
    }
    expect(worst <= 1e-4, "runs_norm_grad_weight of %d channels: off by %g", r->channels, worst);
    bench_free(b);
}

/* Running statistics, with bias and mean, and without: the gradient. */
static void test_stretch(const runs_shape *r, int shifted) {
    bench *b = norm_bench(r, 7, 0x41);
    const float *x = b->regions[0].base, *weight = b->regions[1].base, *bias = b->regions[2].base;
    const float *mean = b->regions[3].base, *y = b->regions[6].base;
    float *variance = b->regions[4].base;
    double worst = 0;
    for (int channel = 0; channel < r->channels; channel++)
        variance[channel] = 0.5F + variance[channel] * variance[channel];
    if (!shifted)
        b->record.operands[2].region = b->record.operands[3].region = -1;
    bench_run(b, "runs_stretch", r->channels);
    for (int channel = 0; channel < r->channels; channel++)
        for (int at = 0; at < r->samples * r->pixels; at++) {
            double apart = x[place_of(r, channel, at)] - (shifted ? mean[channel] : 0.0);
            double wanted = apart * weight[channel] / sqrt(variance[channel] + 1e-5) + (shifted ? bias[channel] : 0.0);
            worst = fmax(worst, fabs(wanted - y[place_of(r, channel, at)]));
        }
    expect(worst <= 1e-5, "runs_stretch of %d channels, shifted %d: off by %g", r->channels, shifted, worst);
    bench_free(b);
}

void test_sample_norms(void) {
    static const runs_shape shapes[] = {{4, 5, 49}, {3, 2, 784}, {2, 9, 7}};
    for (unsigned at = 0; at < sizeof shapes / sizeof shapes[0]; at++) {
        test_norm(&shapes[at]);
        test_norm_grad_weight(&shapes[at]);
        for (int which = 0; which < 2; which++) {
            test_norm_grad(&shapes[at], which);
            test_stretch(&shapes[at], which);
        }
    }
}
