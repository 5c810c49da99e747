/* Convolutions of images as their shapes say, against plain loops in double precision. */
#include <math.h>

#include "testing.h"

enum { N, C, O, H, W, KH, KW, SH, SW, PH, PW, G, ROOM, SHAPE_SIZES };

typedef struct {
    int s[SHAPE_SIZES];
    int oh, ow;
} shape;

/* Rooms are as large as the planner makes them, too small for all channels at once, and not there. */
static const int SHAPES[][SHAPE_SIZES] = {
    {3, 1, 8, 28, 28, 3, 3, 1, 1, 1, 1, 1, 7056},  {2, 5, 7, 9, 10, 3, 3, 1, 1, 1, 1, 1, 900},
    {2, 6, 9, 11, 8, 3, 2, 2, 1, 1, 0, 3, 4000},   {4, 1, 6, 13, 10, 10, 4, 2, 2, 5, 1, 1, 3000},
    {2, 12, 12, 7, 5, 3, 3, 2, 2, 1, 1, 12, 1500}, {3, 4, 5, 6, 6, 1, 1, 2, 2, 0, 0, 1, 100},
    {2, 2, 3, 5, 4, 2, 2, 3, 3, 0, 1, 1, 0},       {5, 3, 4, 2, 2, 3, 3, 1, 1, 2, 2, 1, 60},
};

static shape shape_of(const int *s) {
    shape one;
    for (int at = 0; at < SHAPE_SIZES; at++)
        one.s[at] = s[at];
    one.oh = (s[H] + 2 * s[PH] - s[KH]) / s[SH] + 1;
    one.ow = (s[W] + 2 * s[PW] - s[KW]) / s[SW] + 1;
    return one;
}

static int image_floats(const shape *a) { return a->s[N] * a->s[C] * a->s[H] * a->s[W]; }
static int weight_floats(const shape *a) { return a->s[O] * (a->s[C] / a->s[G]) * a->s[KH] * a->s[KW]; }
static int result_floats(const shape *a) { return a->s[N] * a->s[O] * a->oh * a->ow; }

/* Go over every product of a convolution, and add it to the sum that `which` of image, weight and result wants. */
static void add_up(const shape *a, const double *image, const double *weight, const double *result, int which,
                   double *sums) {
    const int *s = a->s, c = s[C] / s[G], o = s[O] / s[G], taps = s[KH] * s[KW], pixels = a->oh * a->ow;
    for (int n = 0; n < s[N]; n++)
        for (int output = 0; output < s[O]; output++)
            for (int term = 0; term < c * taps * pixels; term++) {
                int pixel = term % pixels, tap = term / pixels % taps, channel = term / pixels / taps;
                int down = pixel / a->ow * s[SH] + tap / s[KW] - s[PH];
                int across = pixel % a->ow * s[SW] + tap % s[KW] - s[PW];
                if (down < 0 || down >= s[H] || across < 0 || across >= s[W])
                    continue;
                int x = ((n * s[C] + output / o * c + channel) * s[H] + down) * s[W] + across;
                int w = (output * c + channel) * taps + tap, y = (n * s[O] + output) * pixels + pixel;
                if (which == 0)
                    sums[x] += weight[w] * result[y];
                else if (which == 1)
                    sums[w] += image[x] * result[y];
                else
                    sums[y] += image[x] * weight[w];
            }
}

static double *doubles(const float *from, int count) {
    static double room[3][200000];
    static int next;
    double *to = room[next++ % 3];
    for (int at = 0; at < count; at++)
        to[at] = from == 0 ? 0 : from[at];
    return to;
}

static double largest_apart(const double *wanted, const float *found, int count) {
    double worst = 0;
    for (int at = 0; at < count; at++)
        worst = fmax(worst, fabs(wanted[at] - found[at]));
    return worst;
}

static bench *laid_out(const shape *a, const int *floats, int room) {
    const int *s = a->s;
    bench *b = bench_new();
    for (int at = 0; at < 3; at++)
        bench_floats(b, at, floats[at]);
    if (room)
        bench_floats(b, 4, room);
    bench_sizes(b, 14, s[N], s[C], s[O], s[H], s[W], a->oh, a->ow, s[KH], s[KW], s[SH], s[SW], s[PH], s[PW], s[G]);
    return b;
}

static int blocks(int channels, int groups) { return groups * ((channels / groups + 3) / 4); }

static void test_forward(const shape *a) {
    bench *b = laid_out(a, (int[]){image_floats(a), weight_floats(a), result_floats(a)}, a->s[ROOM]);
    double *image = doubles(b->regions[0].base, image_floats(a));
    double *weight = doubles(b->regions[1].base, weight_floats(a));
    const float *bias = bench_floats(b, 3, a->s[O]);
    bench_run(b, "plain_forward", a->s[N] * blocks(a->s[O], a->s[G]));
    double *wanted = doubles(0, result_floats(a));
    add_up(a, image, weight, 0, 2, wanted);
    for (int at = 0; at < result_floats(a); at++)
        wanted[at] += bias[at / (a->oh * a->ow) % a->s[O]];
    double worst = largest_apart(wanted, b->regions[2].base, result_floats(a));
    expect(worst <= 1e-5, "plain_forward of %d channels: off by %g", a->s[C], worst);
    bench_free(b);
}

static void test_grad_input(const shape *a) {
    bench *b = laid_out(a, (int[]){result_floats(a), weight_floats(a), image_floats(a)}, a->s[ROOM]);
    double *gradient = doubles(b->regions[0].base, result_floats(a));
    double *weight = doubles(b->regions[1].base, weight_floats(a));
    bench_run(b, "plain_grad_input", a->s[N] * blocks(a->s[C], a->s[G]));
    double *wanted = doubles(0, image_floats(a));
    add_up(a, 0, weight, gradient, 0, wanted);
    double worst = largest_apart(wanted, b->regions[2].base, image_floats(a));
    expect(worst <= 1e-5, "plain_grad_input of %d channels: off by %g", a->s[C], worst);
    bench_free(b);
}

static void test_grad_weight(const shape *a) {
    bench *b = laid_out(a, (int[]){result_floats(a), image_floats(a), weight_floats(a)}, a->s[ROOM]);
    double *gradient = doubles(b->regions[0].base, result_floats(a));
    double *image = doubles(b->regions[1].base, image_floats(a));
    bench_run(b, "plain_grad_weight", blocks(a->s[O], a->s[G]) * (a->s[C] / a->s[G]));
    double *wanted = doubles(0, weight_floats(a));
    add_up(a, image, 0, gradient, 1, wanted);
    double worst = largest_apart(wanted, b->regions[2].base, weight_floats(a));
    expect(worst <= 1e-4, "plain_grad_weight of %d channels: off by %g", a->s[C], worst);
    bench_free(b);
}

static void test_spots(int samples, int rows, int terms, int pixels, int groups, int turned) {
    bench *b = bench_new();
    float *x = bench_floats(b, 0, samples * groups * terms * pixels), *w = bench_floats(b, 1, groups * rows * terms);
    float *y = bench_floats(b, 2, samples * groups * rows * pixels), *bias = bench_floats(b, 3, groups * rows);
    bench_sizes(b, 6, samples, rows, terms, pixels, groups, turned);
    bench_run(b, "spots", samples * groups * rows);
    double worst = 0;
    for (int at = 0; at < samples * groups * rows * pixels; at++) {
        int pixel = at % pixels, row = at / pixels % rows, pair = at / pixels / rows, group = pair % groups;
        double sum = bias[group * rows + row];
        for (int term = 0; term < terms; term++)
            sum += (double)w[group * rows * terms + (turned ? term * rows + row : row * terms + term)] *
                   x[(pair * terms + term) * pixels + pixel];
        worst = fmax(worst, fabs(sum - y[at]));
    }
    expect(worst <= 1e-6 * terms + 1e-6, "spots of %d terms, turned %d: off by %g", terms, turned, worst);
    bench_free(b);
}

void test_by_samples(void) {
    for (unsigned at = 0; at < sizeof SHAPES / sizeof SHAPES[0]; at++) {
        shape one = shape_of(SHAPES[at]);
        test_forward(&one);
        test_grad_input(&one);
        test_grad_weight(&one);
    }
    for (int turned = 0; turned < 2; turned++) {
        test_spots(3, 7, 13, 25, 1, turned);
        test_spots(2, 4, 5, 16, 3, turned);
        test_spots(1, 9, 600, 50, 1, turned);
    }
}
