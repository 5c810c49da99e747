/* Kernels of losses, norms and updates, against plain loops in double precision. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

static double largest_distance(const float *found, const double *wanted, int64_t count) {
    double worst = 0;
    for (int64_t at = 0; at < count; at++)
        worst = fmax(worst, isfinite(found[at]) ? fabs(found[at] - wanted[at]) / fmax(1, fabs(wanted[at])) : INFINITY);
    return worst;
}

static void test_losses(int logits) {
    enum { SAMPLES = 5, WIDTH = 1037 };
    bench *b = bench_new();
    float *x = bench_floats(b, 0, SAMPLES * WIDTH), *t = bench_floats(b, 1, SAMPLES * WIDTH);
    float *found = bench_floats(b, 2, SAMPLES);
    double wanted[SAMPLES] = {0};
    for (int at = 0; at < SAMPLES * WIDTH; at++) {
        x[at] *= 20;
        double z = x[at], loss = log1p(exp(-fabs(z))) + fmax(z, 0) - z * t[at];
        wanted[at / WIDTH] += (logits ? loss : (z - t[at]) * (z - t[at])) / WIDTH;
    }
    bench_sizes(b, 2, SAMPLES, WIDTH);
    bench_run(b, logits ? "bce" : "mse", SAMPLES);
    double worst = largest_distance(found, wanted, SAMPLES);
    expect(worst <= 1e-6, "%s: off by %g", logits ? "bce" : "mse", worst);
    bench_free(b);
}

static void test_squares(int64_t elements) {
    bench *b = bench_new();
    float *x = bench_floats(b, 0, elements);
    double *partial = bench_bytes(b, 1, 8 * (int64_t)sizeof(double)), sum = 0, found = 0;
    for (int64_t at = 0; at < elements; at++)
        sum += (double)x[at] * x[at];
    bench_sizes(b, 2, (int)elements, 8);
    bench_run(b, "strand_squares", 8);
    for (int strand = 0; strand < 8; strand++)
        found += partial[strand];
    expect(fabs(found - sum) <= 1e-6 * sum, "strand_squares of %d: %g instead of %g", (int)elements, found, sum);
    bench_free(b);
}

static void test_group_norm(void) {
    enum { SAMPLES = 3, GROUPS = 2, CHANNELS = 3, PIXELS = 35, WIDTH = CHANNELS * PIXELS, ROWS = SAMPLES * GROUPS };
    bench *b = bench_new();
    float *x = bench_floats(b, 0, ROWS * WIDTH), *weight = bench_floats(b, 1, GROUPS * CHANNELS);
    float *bias = bench_floats(b, 2, GROUPS * CHANNELS), *found = bench_floats(b, 3, ROWS * WIDTH);
    static double wanted[ROWS * WIDTH];
    for (int row = 0; row < ROWS; row++) {
        double mean = 0, squares = 0;
        for (int at = 0; at < WIDTH; at++)
            mean += x[row * WIDTH + at] / (double)WIDTH;
        for (int at = 0; at < WIDTH; at++)
            squares += pow(x[row * WIDTH + at] - mean, 2) / WIDTH;
        for (int at = 0; at < WIDTH; at++) {
            int channel = row % GROUPS * CHANNELS + at / PIXELS;
            double one = (x[row * WIDTH + at] - mean) / sqrt(squares + 1e-5);
            wanted[row * WIDTH + at] = one * weight[channel] + bias[channel];
        }
    }
    bench_sizes(b, 4, SAMPLES, GROUPS, CHANNELS, PIXELS);
    b->record.numbers[0] = 1e-5;
    bench_run(b, "group_norm", ROWS);
    double worst = largest_distance(found, wanted, ROWS * WIDTH);
    expect(worst <= 2e-6, "group_norm: off by %g", worst);
    bench_free(b);
}

/* The largest size in a block of values. */
static double scale_of_block(const double *values, int count) {
    double scale = 1.2e-38;
    for (int at = 0; at < count; at++)
        scale = fmax(scale, fabs(values[at]));
    return scale;
}

/* Moments in eight bits: three blocks, the last one not full. */
static void test_eight_bits(void) {
    enum { ELEMENTS = 2 * 256 + 77, BLOCKS = 3 };
    bench *b = bench_new();
    float *g = bench_floats(b, 0, ELEMENTS), *p = bench_floats(b, 1, ELEMENTS), *rate = bench_floats(b, 2, 1);
    int8_t *m = bench_bytes(b, 3, ELEMENTS);
    float *m_scale = bench_floats(b, 4, BLOCKS);
    uint8_t *v = bench_bytes(b, 5, ELEMENTS);
    float *v_scale = bench_floats(b, 6, BLOCKS);
    *(int32_t *)bench_bytes(b, 7, 4) = 4;
    *rate = 0.01F;
    static double first[ELEMENTS], second[ELEMENTS], moved[ELEMENTS];
    for (int at = 0; at < ELEMENTS; at++) {
        double scale1 = m_scale[at / 256] = 0.5F, scale2 = v_scale[at / 256] = 0.25F;
        m[at] = (int8_t)(random_word() % 255 - 127);
        v[at] = (uint8_t)(1 + random_word() % 255);
        first[at] = 0.9 * m[at] / 127.0 * abs(m[at]) / 127.0 * scale1 + 0.1 * g[at];
        second[at] = 0.999 * pow(v[at] / 255.0, 4) * scale2 + 0.001 * g[at] * g[at];
        double apart = sqrt(second[at] / (1 - pow(0.999, 5))) + 1e-8;
        moved[at] = p[at] - *rate * first[at] / (1 - pow(0.9, 5)) / apart;
    }
    bench_sizes(b, 2, ELEMENTS, 1);
    memcpy(b->record.numbers, (double[]){0.9, 0.999, 1e-8, 0}, sizeof b->record.numbers);
    bench_run(b, "adam8bit", BLOCKS);
    double worst = largest_distance(p, moved, ELEMENTS), off = 0;
    expect(worst <= 1e-6, "adam8bit: parameters are off by %g", worst);
    for (int at = 0; at < ELEMENTS; at++) {
        int from = at / 256 * 256, count = from + 256 < ELEMENTS ? 256 : ELEMENTS - from;
        double one = first[at] / scale_of_block(first + from, count);
        off = fmax(off, fabs(copysign(sqrt(fabs(one)) * 127, one) - m[at]));
        off = fmax(off, fabs(fmax(1, pow(second[at] / scale_of_block(second + from, count), 0.25) * 255) - v[at]));
    }
    expect(off <= 0.505, "adam8bit: a code is off by %g", off);
    bench_free(b);
}

/* Half of a thousand elements are dropped, the same ones whoever does it, and others in the next step. */
static void test_dropout(void) {
    enum { SAMPLES = 3, WIDTH = 1000 };
    uint8_t kept[2][SAMPLES * WIDTH];
    for (int step = 0; step < 2; step++) {
        bench *b = bench_new();
        float *x = bench_floats(b, 0, SAMPLES * WIDTH), *y = bench_floats(b, 1, SAMPLES * WIDTH);
        uint64_t *now = bench_bytes(b, 2, 16), *rows = bench_bytes(b, 3, 8 * (1 + SAMPLES));
        now[1] = (uint64_t)step;
        rows[0] = SAMPLES;
        for (int sample = 0; sample < SAMPLES; sample++)
            rows[1 + sample] = (uint64_t)(sample + 7);
        bench_sizes(b, 3, SAMPLES, WIDTH, 3);
        b->record.sizes[3] = INT64_C(1) << 31;
        b->record.numbers[0] = 2;
        bench_run(b, "dropout", SAMPLES * WIDTH);
        for (int at = 0; at < SAMPLES * WIDTH; at++) {
            kept[step][at] = y[at] != 0;
            expect(y[at] == 0 || y[at] == 2 * x[at], "dropout: %g of %g", y[at], x[at]);
        }
        bench_free(b);
    }
    int first = 0, both = 0;
    for (int at = 0; at < SAMPLES * WIDTH; at++) {
        first += kept[0][at];
        both += kept[0][at] && kept[1][at];
    }
    expect(first > 1350 && first < 1650, "dropout kept %d of 3000", first);
    expect(both > 600 && both < 900, "dropout kept %d of 3000 twice", both);
}

void test_training_kernels(void) {
    test_losses(0);
    test_losses(1);
    for (int64_t elements = 1; elements < 100000; elements = elements * 9 + 2)
        test_squares(elements);
    test_group_norm();
    test_eight_bits();
    test_dropout();
}
