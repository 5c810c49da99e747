/* Images by pixels as a matrix (pixels of all samples, channels): sums and norms of channels.
 *
 * Sums over pixels are taken in strands, runs of pixels that are the same however many threads there are; each has a
 * row of its own in scratch, and the rows are added up in their order. So a sum has the same bits on any number of
 * threads, and no two of them write to neighbouring channels of one pixel.
 */
#include <math.h>

#include "checking.h"
#include "sums.h"
#include "vector.h"

enum { CHANNELS_PIXELS, CHANNELS_COUNT, CHANNELS_STRANDS };
enum { MOMENT_BLOCK = 4 * LANES, MOMENT_PIXELS = 64, PRODUCT_BLOCK = 512 };

typedef struct {
    int64_t first, end;
} span;

static inline span strand_of(int64_t pixels, int64_t strands, int64_t strand) {
    return (span){pixels * strand / strands, pixels * (strand + 1) / strands};
}

static hedgerow_verdict check_strands(const hedgerow_record *record, int64_t *units, const int *images, int count,
                                      int partial, int64_t rows) {
    checker check = look_at(record);
    int64_t pixels = positive(&check, CHANNELS_PIXELS), channels = positive(&check, CHANNELS_COUNT);
    int64_t strands = positive(&check, CHANNELS_STRANDS);
    refuse_unless(&check, strands <= 64, HEDGEROW_WRONG_SIZES);
    for (int at = 0; at < count; at++)
        needs_floats(&check, images[at], times(&check, pixels, channels));
    needs_floats(&check, partial, times(&check, times(&check, strands, rows), channels));
    *units = strands;
    return check.verdict;
}

/* Sums of some pixels of up to 32 channels. */
static void add_up_block(const float *x, int64_t pixels, int64_t channels, int64_t width, float *sums) {
    if (width == 4 * LANES) {
        vec s[8];
        for (int at = 0; at < 8; at++)
            s[at] = zeros();
        int64_t pixel = 0;
        for (; pixel + 2 <= pixels; pixel += 2)
            for (int at = 0; at < 4; at++) {
                s[at] += load(x + pixel * channels + at * LANES);
                s[4 + at] += load(x + (pixel + 1) * channels + at * LANES);
            }
        for (; pixel < pixels; pixel++)
            for (int at = 0; at < 4; at++)
                s[at] += load(x + pixel * channels + at * LANES);
        for (int at = 0; at < 4; at++)
            store(sums + at * LANES, s[at] + s[4 + at]);
        return;
    }
    float s[2][4 * LANES] = {{0}};
    if (width == LANES || width == 2 * LANES || width == 3 * LANES) {
        for (int64_t channel = 0; channel < width; channel += LANES) {
            vec v[4] = {zeros(), zeros(), zeros(), zeros()};
            int64_t pixel = 0;
            for (; pixel + 4 <= pixels; pixel += 4)
                for (int at = 0; at < 4; at++)
                    v[at] += load(x + (pixel + at) * channels + channel);
            for (; pixel < pixels; pixel++)
                v[0] += load(x + pixel * channels + channel);
            store(sums + channel, (v[0] + v[1]) + (v[2] + v[3]));
        }
        return;
    }
    for (int64_t pixel = 0; pixel < pixels; pixel++)
        for (int64_t channel = 0; channel < width; channel++)
            s[pixel & 1][channel] += x[pixel * channels + channel];
    for (int64_t channel = 0; channel < width; channel++)
        sums[channel] = s[0][channel] + s[1][channel];
}

/* Sums of some pixels of one block of channels: what blocks of pixels come to is added up in 64 bits. */
static void sums_of(const float *x, int64_t pixels, int64_t channels, int64_t width, float *sums) {
    double total[MOMENT_BLOCK] = {0};
    float sum[MOMENT_BLOCK];
    for (int64_t done = 0; done < pixels; done += MOMENT_PIXELS) {
        add_up_block(x + done * channels, least(MOMENT_PIXELS, pixels - done), channels, width, sum);
        for (int64_t at = 0; at < width; at++)
            total[at] += sum[at];
    }
    for (int64_t at = 0; at < width; at++)
        sums[at] = (float)total[at];
}

/* Operands: images, partial sums (strand, channel). */
static hedgerow_verdict check_strand_sums(const hedgerow_record *record, int64_t *units) {
    return check_strands(record, units, (const int[]){0}, 1, 1, 1);
}

static void run_strand_sums(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t pixels = call->record.sizes[CHANNELS_PIXELS], channels = call->record.sizes[CHANNELS_COUNT];
    for (int64_t strand = first; strand < end; strand++) {
        span own = strand_of(pixels, call->record.sizes[CHANNELS_STRANDS], strand);
        const float *x = (const float *)call->at[0] + own.first * channels;
        float *sums = (float *)call->at[1] + strand * channels;
        for (int64_t channel = 0; channel < channels; channel += MOMENT_BLOCK)
            sums_of(x + channel, own.end - own.first, channels, least(MOMENT_BLOCK, channels - channel), sums + channel);
    }
    (void)part;
}

/* Add up partial sums and multiply. Sizes: -, channels, strands. Operands: partial sums, sums, variances if each is
 * divided by its root. Numbers: factor, epsilon. Cut by channels. */
static hedgerow_verdict check_join(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t channels = positive(&check, CHANNELS_COUNT), strands = positive(&check, CHANNELS_STRANDS);
    needs_floats(&check, 0, times(&check, strands, channels));
    needs_floats(&check, 1, channels);
    may_have_floats(&check, 2, channels);
    *units = channels;
    return check.verdict;
}

static void run_join(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t channels = call->record.sizes[CHANNELS_COUNT], strands = call->record.sizes[CHANNELS_STRANDS];
    const float *partial = call->at[0], *variance = call->at[2];
    float *sums = call->at[1];
    for (int64_t channel = first; channel < end; channel++) {
        double sum = 0;
        for (int64_t strand = 0; strand < strands; strand++)
            sum += partial[strand * channels + channel];
        sum *= call->record.numbers[0];
        sums[channel] = (float)(variance == NULL ? sum : sum / sqrt(variance[channel] + call->record.numbers[1]));
    }
    (void)part;
}

/* Sums of squares around a centre of some pixels of one block of channels. */
static void squares_of_block(const float *x, int64_t pixels, int64_t channels, int64_t width, const float *centres,
                             float *squares) {
    if (width % LANES != 0) {
        memset(squares, 0, (size_t)width * sizeof *squares);
        for (int64_t pixel = 0; pixel < pixels; pixel++)
            for (int64_t at = 0; at < width; at++) {
                float apart = x[pixel * channels + at] - centres[at];
                squares[at] += apart * apart;
            }
        return;
    }
    for (int64_t at = 0; at < width; at += LANES) {
        vec centre = load(centres + at), low = zeros(), high = zeros();
        int64_t pixel = 0;
        for (; pixel + 2 <= pixels; pixel += 2) {
            vec one = load(x + pixel * channels + at) - centre;
            vec two = load(x + (pixel + 1) * channels + at) - centre;
            low += one * one;
            high += two * two;
        }
        if (pixel < pixels) {
            vec one = load(x + pixel * channels + at) - centre;
            low += one * one;
        }
        store(squares + at, low + high);
    }
}

/* Mean and sum of squares around it of some pixels of one block of channels: blocks of pixels are near enough to be
 * looked at twice, and are joined as Chan, Golub and LeVeque do, in 64 bits. A mean that is off moves every pixel of its
 * channel, and with them the rectifiers behind it. */
static void moments_of(const float *x, int64_t pixels, int64_t channels, int64_t width, float *means, float *squares) {
    double mean[MOMENT_BLOCK] = {0}, square[MOMENT_BLOCK] = {0};
    float sum[MOMENT_BLOCK], centre[MOMENT_BLOCK], around[MOMENT_BLOCK];
    for (int64_t done = 0; done < pixels; done += MOMENT_PIXELS) {
        int64_t count = least(MOMENT_PIXELS, pixels - done);
        const float *block = x + done * channels;
        double share = 1.0 / (double)count, part = (double)count / (double)(done + count), weight = part * (double)done;
        add_up_block(block, count, channels, width, sum);
        for (int64_t at = 0; at < width; at++)
            centre[at] = sum[at] * (float)share;
        squares_of_block(block, count, channels, width, centre, around);
        for (int64_t at = 0; at < width; at++) {
            double apart = sum[at] * share - mean[at];
            mean[at] += apart * part;
            square[at] += around[at] + apart * apart * weight;
        }
    }
    for (int64_t at = 0; at < width; at++) {
        means[at] = (float)mean[at];
        squares[at] = (float)square[at];
    }
}

/* Operands: images, partial moments (strand, mean or squares, channel). */
static hedgerow_verdict check_strand_moments(const hedgerow_record *record, int64_t *units) {
    return check_strands(record, units, (const int[]){0}, 1, 1, 2);
}

static void run_strand_moments(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t pixels = call->record.sizes[CHANNELS_PIXELS], channels = call->record.sizes[CHANNELS_COUNT];
    for (int64_t strand = first; strand < end; strand++) {
        span own = strand_of(pixels, call->record.sizes[CHANNELS_STRANDS], strand);
        const float *x = (const float *)call->at[0] + own.first * channels;
        float *means = (float *)call->at[1] + 2 * strand * channels;
        for (int64_t channel = 0; channel < channels; channel += MOMENT_BLOCK)
            moments_of(x + channel, own.end - own.first, channels, least(MOMENT_BLOCK, channels - channel),
                       means + channel, means + channels + channel);
    }
    (void)part;
}

/* From partial moments to mean and variance, and to what each channel is multiplied by and shifted.
 * Operands: partial moments, mean and variance (2, channel), weight, bias, factor, shift. Numbers: epsilon. */
static hedgerow_verdict check_settle_norm(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t channels = positive(&check, CHANNELS_COUNT), strands = positive(&check, CHANNELS_STRANDS);
    positive(&check, CHANNELS_PIXELS);
    needs_floats(&check, 0, times(&check, 2 * strands, channels));
    needs_floats(&check, 1, 2 * channels);
    for (int at = 2; at < 6; at++)
        needs_floats(&check, at, channels);
    *units = channels;
    return check.verdict;
}

static void run_settle_norm(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    int64_t pixels = sizes[CHANNELS_PIXELS], channels = sizes[CHANNELS_COUNT], strands = sizes[CHANNELS_STRANDS];
    const float *partial = call->at[0], *weight = call->at[2], *bias = call->at[3];
    float *mean = call->at[1], *variance = mean + channels, *factor = call->at[4], *shift = call->at[5];
    for (int64_t channel = first; channel < end; channel++) {
        double middle = 0, squares = 0;
        for (int64_t strand = 0; strand < strands; strand++) {
            span own = strand_of(pixels, strands, strand);
            double count = (double)(own.end - own.first), before = (double)own.first;
            if (count == 0)
                continue;
            double apart = partial[2 * strand * channels + channel] - middle;
            middle += apart * count / (before + count);
            squares += partial[(2 * strand + 1) * channels + channel] + apart * apart * before * count / (before + count);
        }
        mean[channel] = (float)middle;
        variance[channel] = (float)(squares / (double)pixels);
        double scale = weight[channel] / sqrt(squares / (double)pixels + call->record.numbers[0]);
        factor[channel] = (float)scale;
        shift[channel] = (float)(bias[channel] - middle * scale);
    }
    (void)part;
}

/* Factor and shift by running statistics. Sizes: -, channels. Operands: weight, bias, mean, variance, factor, shift.
 * Without bias and mean, the factor alone. Numbers: epsilon. */
static hedgerow_verdict check_settle_running(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t channels = positive(&check, CHANNELS_COUNT);
    needs_floats(&check, 0, channels);
    may_have_floats(&check, 1, channels);
    may_have_floats(&check, 2, channels);
    refuse_unless(&check, is_there(record, 1) == is_there(record, 2), HEDGEROW_OPERAND_MISSING);
    refuse_unless(&check, is_there(record, 1) == is_there(record, 5), HEDGEROW_OPERAND_MISSING);
    needs_floats(&check, 3, channels);
    needs_floats(&check, 4, channels);
    may_have_floats(&check, 5, channels);
    *units = channels;
    return check.verdict;
}

static void run_settle_running(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const float *weight = call->at[0], *bias = call->at[1], *mean = call->at[2], *variance = call->at[3];
    float *factor = call->at[4], *shift = call->at[5];
    for (int64_t channel = first; channel < end; channel++) {
        double scale = weight[channel] / sqrt(variance[channel] + call->record.numbers[0]);
        factor[channel] = (float)scale;
        if (shift != NULL)
            shift[channel] = (float)(bias[channel] - mean[channel] * scale);
    }
    (void)part;
}

/* x * factor + shift for each channel. Sizes: pixels, channels. Operands: x, factor, shift or nothing, result.
 * Cut by pixels. */
static hedgerow_verdict check_stretch(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t pixels = positive(&check, CHANNELS_PIXELS), channels = positive(&check, CHANNELS_COUNT);
    needs_floats(&check, 0, times(&check, pixels, channels));
    needs_floats(&check, 1, channels);
    may_have_floats(&check, 2, channels);
    needs_floats(&check, 3, times(&check, pixels, channels));
    *units = pixels;
    return check.verdict;
}

static void run_stretch(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t channels = call->record.sizes[CHANNELS_COUNT];
    const float *restrict factor = call->at[1], *restrict shift = call->at[2];
    for (int64_t pixel = first; pixel < end; pixel++) {
        const float *restrict x = (const float *)call->at[0] + pixel * channels;
        float *restrict y = (float *)call->at[3] + pixel * channels;
        if (shift != NULL)
            for (int64_t at = 0; at < channels; at++)
                y[at] = x[at] * factor[at] + shift[at];
        else
            for (int64_t at = 0; at < channels; at++)
                y[at] = x[at] * factor[at];
    }
    (void)part;
}

/* Partial sums of dy and of dy (x - mean). Operands: gradient, x, mean, partial sums (strand, channel) of the second
 * and, if wanted, of the first. */
static hedgerow_verdict check_strand_products(const hedgerow_record *record, int64_t *units) {
    hedgerow_verdict verdict = check_strands(record, units, (const int[]){0, 1}, 2, 3, 1);
    checker check = look_at(record);
    needs_floats(&check, 2, record->sizes[CHANNELS_COUNT]);
    if (verdict == HEDGEROW_FINE)
        may_have_floats(&check, 4, times(&check, record->sizes[CHANNELS_STRANDS], record->sizes[CHANNELS_COUNT]));
    return verdict == HEDGEROW_FINE ? check.verdict : verdict;
}

/* Sums of some pixels of one block of channels. */
static void products_of_block(const float *gradient, const float *x, const float *mean, int64_t pixels,
                              int64_t channels, int64_t width, float *along, float *level) {
    int64_t at = 0;
    for (; at + 2 * LANES <= width; at += 2 * LANES) {
        vec centre[2] = {load(mean + at), load(mean + at + LANES)};
        vec sums[4] = {zeros(), zeros(), zeros(), zeros()}, levels[4] = {zeros(), zeros(), zeros(), zeros()};
        int64_t pixel = 0;
        for (; pixel + 2 <= pixels; pixel += 2)
            for (int lane = 0; lane < 4; lane++) {
                int64_t place = (pixel + (lane >> 1)) * channels + at + (lane & 1) * LANES;
                vec arriving = load(gradient + place);
                sums[lane] += arriving * (load(x + place) - centre[lane & 1]);
                levels[lane] += arriving;
            }
        for (; pixel < pixels; pixel++)
            for (int lane = 0; lane < 2; lane++) {
                vec arriving = load(gradient + pixel * channels + at + lane * LANES);
                sums[lane] += arriving * (load(x + pixel * channels + at + lane * LANES) - centre[lane]);
                levels[lane] += arriving;
            }
        for (int lane = 0; lane < 2; lane++) {
            store(along + at + lane * LANES, sums[lane] + sums[lane + 2]);
            store(level + at + lane * LANES, levels[lane] + levels[lane + 2]);
        }
    }
    for (; at + LANES <= width; at += LANES) {
        vec centre = load(mean + at), sum = zeros(), total = zeros();
        for (int64_t pixel = 0; pixel < pixels; pixel++) {
            vec arriving = load(gradient + pixel * channels + at);
            sum += arriving * (load(x + pixel * channels + at) - centre);
            total += arriving;
        }
        store(along + at, sum);
        store(level + at, total);
    }
    for (; at < width; at++) {
        along[at] = level[at] = 0;
        for (int64_t pixel = 0; pixel < pixels; pixel++) {
            float arriving = gradient[pixel * channels + at];
            along[at] += arriving * (x[pixel * channels + at] - mean[at]);
            level[at] += arriving;
        }
    }
}

/* The same of many pixels: what blocks of them come to is added up in 64 bits. */
static void products_of(const float *gradient, const float *x, const float *mean, int64_t pixels, int64_t channels,
                        int64_t width, float *along, float *level) {
    double products[PRODUCT_BLOCK] = {0}, levels[PRODUCT_BLOCK] = {0};
    float product[PRODUCT_BLOCK], sum[PRODUCT_BLOCK];
    for (int64_t done = 0; done < pixels; done += MOMENT_PIXELS) {
        products_of_block(gradient + done * channels, x + done * channels, mean, least(MOMENT_PIXELS, pixels - done),
                          channels, width, product, sum);
        for (int64_t at = 0; at < width; at++) {
            products[at] += product[at];
            levels[at] += sum[at];
        }
    }
    for (int64_t at = 0; at < width; at++)
        along[at] = (float)products[at];
    for (int64_t at = 0; level != NULL && at < width; at++)
        level[at] = (float)levels[at];
}

static void run_strand_products(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t pixels = call->record.sizes[CHANNELS_PIXELS], channels = call->record.sizes[CHANNELS_COUNT];
    for (int64_t strand = first; strand < end; strand++) {
        span own = strand_of(pixels, call->record.sizes[CHANNELS_STRANDS], strand);
        const float *gradient = (const float *)call->at[0] + own.first * channels;
        const float *x = (const float *)call->at[1] + own.first * channels, *mean = call->at[2];
        float *level = call->at[4] == NULL ? NULL : (float *)call->at[4] + strand * channels;
        float *along = (float *)call->at[3] + strand * channels;
        for (int64_t channel = 0; channel < channels; channel += PRODUCT_BLOCK)
            products_of(gradient + channel, x + channel, mean + channel, own.end - own.first, channels,
                        least(PRODUCT_BLOCK, channels - channel), along + channel, level == NULL ? NULL : level + channel);
    }
    (void)part;
}

/* What dx is made of: dx = factor dy + slope x + shift. Sizes: pixels, channels. Operands: mean and variance (2,
 * channel), weight, sums of dy (x - mean) / deviation, sums of dy, factor, slope, shift. Numbers: epsilon. */
static hedgerow_verdict check_settle_grad(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t channels = positive(&check, CHANNELS_COUNT);
    positive(&check, CHANNELS_PIXELS);
    needs_floats(&check, 0, 2 * channels);
    for (int at = 1; at < 7; at++)
        needs_floats(&check, at, channels);
    *units = channels;
    return check.verdict;
}

static void run_settle_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t channels = call->record.sizes[CHANNELS_COUNT];
    double count = (double)call->record.sizes[CHANNELS_PIXELS];
    const float *mean = call->at[0], *variance = mean + channels, *weight = call->at[1];
    const float *along = call->at[2], *level = call->at[3];
    float *factor = call->at[4], *slope = call->at[5], *shift = call->at[6];
    for (int64_t channel = first; channel < end; channel++) {
        double deviation = sqrt(variance[channel] + call->record.numbers[0]), scale = weight[channel] / deviation;
        double tilt = -along[channel] / deviation * scale / count;
        factor[channel] = (float)scale;
        slope[channel] = (float)tilt;
        shift[channel] = (float)(-level[channel] * scale / count - tilt * mean[channel]);
    }
    (void)part;
}

/* factor dy + slope x + shift. Sizes: pixels, channels. Operands: dy, x, factor, slope, shift, dx. Cut by pixels. */
static hedgerow_verdict check_blend(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t pixels = positive(&check, CHANNELS_PIXELS), channels = positive(&check, CHANNELS_COUNT);
    for (int at = 0; at < 6; at++)
        needs_floats(&check, at, at >= 2 && at < 5 ? channels : times(&check, pixels, channels));
    *units = pixels;
    return check.verdict;
}

static void run_blend(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t channels = call->record.sizes[CHANNELS_COUNT];
    const float *restrict factor = call->at[2], *restrict slope = call->at[3], *restrict shift = call->at[4];
    for (int64_t pixel = first; pixel < end; pixel++) {
        const float *restrict gradient = (const float *)call->at[0] + pixel * channels;
        const float *restrict x = (const float *)call->at[1] + pixel * channels;
        float *restrict out = (float *)call->at[5] + pixel * channels;
        for (int64_t at = 0; at < channels; at++)
            out[at] = gradient[at] * factor[at] + (x[at] * slope[at] + shift[at]);
    }
    (void)part;
}

/* Move running statistics towards a batch's. Sizes: samples, channels. Operands: mean and variance (2, channel), the
 * running mean, the running variance. Numbers: momentum. */
static hedgerow_verdict check_follow(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t channels = positive(&check, 1);
    refuse_unless(&check, record->sizes[0] > 1, HEDGEROW_WRONG_SIZES);
    needs_floats(&check, 0, 2 * channels);
    needs_floats(&check, 1, channels);
    needs_floats(&check, 2, channels);
    *units = channels;
    return check.verdict;
}

static void run_follow(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t channels = call->record.sizes[1];
    const float count = (float)call->record.sizes[0], widen = count / (count - 1);
    const float momentum = (float)call->record.numbers[0], *statistics = call->at[0];
    float *mean = call->at[1], *variance = call->at[2];
    for (int64_t at = first; at < end; at++) {
        mean[at] += momentum * (statistics[at] - mean[at]);
        variance[at] += momentum * (widen * statistics[channels + at] - variance[at]);
    }
    (void)part;
}

/* Sums of rows of a matrix (rows, columns), times a number: channels that lie outermost. Cut by rows. */
static hedgerow_verdict check_row_sums(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t rows = positive(&check, 0), columns = positive(&check, 1);
    needs_floats(&check, 0, times(&check, rows, columns));
    needs_floats(&check, 1, rows);
    *units = rows;
    return check.verdict;
}

static void run_row_sums(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t columns = call->record.sizes[1];
    for (int64_t row = first; row < end; row++)
        ((float *)call->at[1])[row] =
            (float)(long_sum((const float *)call->at[0] + row * columns, columns) * call->record.numbers[0]);
    (void)part;
}
