/* Norms, softmax and attention: what is done row by row. */
#include <math.h>

#include "checking.h"
#include "exponential.h"
#include "products.h"
#include "sums.h"
#include "vector.h"

static float dot_of(const float *a, const float *b, int64_t count) {
    vec sums[4] = {zeros(), zeros(), zeros(), zeros()};
    int64_t at = 0;
    for (; at + 4 * LANES <= count; at += 4 * LANES)
        for (int lane = 0; lane < 4; lane++)
            sums[lane] += load(a + at + lane * LANES) * load(b + at + lane * LANES);
    float rest = 0;
    for (; at < count; at++)
        rest += a[at] * b[at];
    return lanes_sum((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

/* Layer norm. Sizes: rows, width, numbers of a row's statistics: 2, mean and inverse deviation, or 1, the inverse of
 * the root mean square. Operands: x, weight, bias if there is one, result, statistics if they are wanted. Numbers:
 * epsilon. Cut by rows. */
enum { NORM_ROWS, NORM_WIDTH, NORM_NUMBERS };

static int64_t check_norm_sizes(checker *check) {
    int64_t all = times(check, positive(check, NORM_ROWS), positive(check, NORM_WIDTH));
    int64_t numbers = check->record->sizes[NORM_NUMBERS];
    refuse_unless(check, numbers == 1 || numbers == 2, HEDGEROW_WRONG_SIZES);
    return all;
}

static hedgerow_verdict check_row_norm(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t all = check_norm_sizes(&check), width = record->sizes[NORM_WIDTH];
    needs_floats(&check, 0, all);
    needs_floats(&check, 1, width);
    may_have_floats(&check, 2, width);
    needs_floats(&check, 3, all);
    *units = record->sizes[NORM_ROWS];
    may_have_floats(&check, 4, times(&check, *units, record->sizes[NORM_NUMBERS]));
    return check.verdict;
}

static void run_row_norm(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t width = call->record.sizes[NORM_WIDTH], numbers = call->record.sizes[NORM_NUMBERS];
    const float *restrict weight = call->at[1], *restrict bias = call->at[2];
    for (int64_t row = first; row < end; row++) {
        const float *restrict x = (const float *)call->at[0] + row * width;
        float *restrict y = (float *)call->at[3] + row * width;
        const float mean = numbers == 2 ? (float)(long_sum(x, width) / (double)width) : 0;
        for (int64_t at = 0; at < width; at++)
            y[at] = x[at] - mean;
        const float inverse = (float)(1 / sqrt(dot_of(y, y, width) / (double)width + call->record.numbers[0]));
        if (bias != NULL)
            for (int64_t at = 0; at < width; at++)
                y[at] = y[at] * inverse * weight[at] + bias[at];
        else
            for (int64_t at = 0; at < width; at++)
                y[at] = y[at] * inverse * weight[at];
        if (call->at[4] != NULL) {
            float *statistics = (float *)call->at[4] + row * numbers;
            statistics[0] = mean;
            statistics[numbers - 1] = inverse;
        }
    }
    (void)part;
}

/* With g = dy weight and c = x - mean: dx = inverse (g - mean(g) - c inverse^2 mean(g c)). Operands: gradient, x,
 * statistics, weight, result. Cut by rows. */
static hedgerow_verdict check_row_norm_grad(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t all = check_norm_sizes(&check);
    *units = record->sizes[NORM_ROWS];
    needs_floats(&check, 0, all);
    needs_floats(&check, 1, all);
    needs_floats(&check, 2, times(&check, *units, record->sizes[NORM_NUMBERS]));
    needs_floats(&check, 3, record->sizes[NORM_WIDTH]);
    needs_floats(&check, 4, all);
    return check.verdict;
}

static void run_row_norm_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t width = call->record.sizes[NORM_WIDTH], numbers = call->record.sizes[NORM_NUMBERS];
    const float *weight = call->at[3];
    for (int64_t row = first; row < end; row++) {
        const float *gradient = (const float *)call->at[0] + row * width, *x = (const float *)call->at[1] + row * width;
        const float *statistics = (const float *)call->at[2] + row * numbers;
        float *out = (float *)call->at[4] + row * width;
        const float mean = numbers == 2 ? statistics[0] : 0, inverse = statistics[numbers - 1];
        vec along = zeros(), level = zeros();
        float along_rest = 0, level_rest = 0;
        int64_t at = 0;
        for (; at + LANES <= width; at += LANES) {
            vec g = load(gradient + at) * load(weight + at);
            level += g;
            along += g * (load(x + at) - spread(mean));
        }
        for (; at < width; at++) {
            level_rest += gradient[at] * weight[at];
            along_rest += gradient[at] * weight[at] * (x[at] - mean);
        }
        const float slope = (lanes_sum(along) + along_rest) / (float)width * inverse * inverse;
        const float base = numbers == 2 ? (lanes_sum(level) + level_rest) / (float)width : 0;
        for (at = 0; at + LANES <= width; at += LANES) {
            vec g = load(gradient + at) * load(weight + at), c = load(x + at) - spread(mean);
            store(out + at, (g - c * spread(slope) - spread(base)) * spread(inverse));
        }
        for (; at < width; at++)
            out[at] = (gradient[at] * weight[at] - (x[at] - mean) * slope - base) * inverse;
    }
    (void)part;
}

/* The sum over rows of dy (x - mean) inverse. Operands: gradient, x, statistics, result. Cut by columns. */
static hedgerow_verdict check_row_norm_grad_weight(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t all = check_norm_sizes(&check);
    needs_floats(&check, 0, all);
    needs_floats(&check, 1, all);
    needs_floats(&check, 2, times(&check, record->sizes[NORM_ROWS], record->sizes[NORM_NUMBERS]));
    needs_floats(&check, 3, record->sizes[NORM_WIDTH]);
    *units = record->sizes[NORM_WIDTH];
    return check.verdict;
}

static void run_row_norm_grad_weight(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t rows = call->record.sizes[NORM_ROWS], width = call->record.sizes[NORM_WIDTH];
    int64_t numbers = call->record.sizes[NORM_NUMBERS];
    const float *gradient = call->at[0], *x = call->at[1], *statistics = call->at[2];
    float *out = call->at[3];
    for (int64_t column = first; column < end; column += LANES) {
        int64_t count = least(LANES, end - column);
        wide_vec total = {0};
        for (int64_t from = 0, to; from < rows; from = to) {
            vec sums[2] = {zeros(), zeros()};
            to = least(rows, from + SUM_ROWS);
            for (int64_t row = from; row < to; row++) {
                const float *own = statistics + row * numbers;
                vec c = load_upto(x + row * width + column, count) - spread(numbers == 2 ? own[0] : 0);
                sums[row & 1] += load_upto(gradient + row * width + column, count) * (c * spread(own[numbers - 1]));
            }
            total += widen(sums[0] + sums[1]);
        }
        store_upto(out + column, narrow(total), count);
    }
    (void)part;
}

/* Softmax of a row times a positive factor; source and result may be the same. */
static void softmax_row(const float *x, float *y, int64_t width, float factor) {
    vec highest = spread(-__builtin_inff()), sum = zeros();
    float largest = -__builtin_inff();
    int64_t at = 0;
    for (; at + LANES <= width; at += LANES) {
        vec v = load(x + at);
        highest = choose((ivec)(v > highest), v, highest);
    }
    for (int lane = 0; lane < LANES; lane++)
        largest = highest[lane] > largest ? highest[lane] : largest;
    for (; at < width; at++)
        largest = x[at] > largest ? x[at] : largest;
    for (at = 0; at < width; at += LANES) {
        int64_t count = width - at;
        vec power = exponential((load_upto(x + at, count) - spread(largest)) * spread(factor));
        for (int64_t lane = count; lane < LANES; lane++)
            power[lane] = 0;
        sum += power;
        store_upto(y + at, power, count);
    }
    const float share = 1 / lanes_sum(sum);
    for (at = 0; at < width; at++)
        y[at] *= share;
}

/* Sizes: rows, width. Operands: x, result. Cut by rows. */
static hedgerow_verdict check_softmax(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t all = times(&check, positive(&check, 0), positive(&check, 1));
    needs_floats(&check, 0, all);
    needs_floats(&check, 1, all);
    *units = record->sizes[0];
    return check.verdict;
}

static void run_softmax(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t width = call->record.sizes[1];
    for (int64_t row = first; row < end; row++)
        softmax_row((const float *)call->at[0] + row * width, (float *)call->at[1] + row * width, width, 1);
    (void)part;
}

/* factor y (dy - sum of dy y); gradient and result may be the same. */
static void softmax_grad_row(const float *gradient, const float *y, float *out, int64_t width, float factor) {
    const float along = dot_of(gradient, y, width);
    for (int64_t at = 0; at < width; at++)
        out[at] = (gradient[at] - along) * y[at] * factor;
}

/* Operands: gradient, probabilities, result. */
static hedgerow_verdict check_softmax_grad(const hedgerow_record *record, int64_t *units) {
    hedgerow_verdict verdict = check_softmax(record, units);
    checker check = look_at(record);
    if (verdict == HEDGEROW_FINE)
        needs_floats(&check, 2, times(&check, record->sizes[0], record->sizes[1]));
    return verdict == HEDGEROW_FINE ? check.verdict : verdict;
}

static void run_softmax_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t width = call->record.sizes[1];
    for (int64_t row = first; row < end; row++)
        softmax_grad_row((const float *)call->at[0] + row * width, (const float *)call->at[1] + row * width,
                         (float *)call->at[2] + row * width, width, 1);
    (void)part;
}

/* Attention. Sizes: samples, heads, tokens of the queries, tokens of the keys, width of a head, scores kept: 1 if
 * there is a place for the scores of every head, 0 if every part has room for those of one. Sequences are (sample,
 * token, head, width). Numbers: factor of the scores. Cut by heads of all samples. */
enum { HEAD_SAMPLES, HEAD_HEADS, HEAD_QUERIES, HEAD_KEYS, HEAD_WIDTH, HEAD_KEPT };

typedef struct {
    int64_t queries, keys, scores, all;
} head_sizes;

static head_sizes check_heads(checker *check) {
    int64_t heads = times(check, positive(check, HEAD_SAMPLES), positive(check, HEAD_HEADS));
    int64_t each = times(check, heads, positive(check, HEAD_WIDTH));
    int64_t queries = positive(check, HEAD_QUERIES), keys = positive(check, HEAD_KEYS);
    int64_t scores = times(check, queries, keys);
    refuse_unless(check, check->record->sizes[HEAD_KEPT] <= 1, HEDGEROW_WRONG_SIZES);
    int64_t places = check->record->sizes[HEAD_KEPT] ? heads : HEDGEROW_PARTS;
    return (head_sizes){times(check, each, queries), times(check, each, keys), times(check, places, scores), heads};
}

/* Operands: queries, keys, values, result, scores. */
static hedgerow_verdict check_attention(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    head_sizes sizes = check_heads(&check);
    needs_floats(&check, 0, sizes.queries);
    needs_floats(&check, 1, sizes.keys);
    needs_floats(&check, 2, sizes.keys);
    needs_floats(&check, 3, sizes.queries);
    needs_floats(&check, 4, sizes.scores);
    *units = sizes.all;
    return check.verdict;
}

/* A head's part of sequences of so many tokens. */
static float *head_of(const hedgerow_call *call, int at, int64_t head, int64_t tokens) {
    const int64_t *s = call->record.sizes;
    int64_t row = s[HEAD_HEADS] * s[HEAD_WIDTH];
    return (float *)call->at[at] + head / s[HEAD_HEADS] * tokens * row + head % s[HEAD_HEADS] * s[HEAD_WIDTH];
}

static void run_attention(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes;
    int64_t queries = s[HEAD_QUERIES], keys = s[HEAD_KEYS], width = s[HEAD_WIDTH], row = s[HEAD_HEADS] * width;
    for (int64_t head = first; head < end; head++) {
        float *scores = (float *)call->at[4] + (s[HEAD_KEPT] ? head : part) * queries * keys;
        hedgerow_product compare = {.turn_b = true, .m = queries, .n = keys, .k = width,
                                    .a = head_of(call, 0, head, queries), .lda = row,
                                    .b = head_of(call, 1, head, keys), .ldb = row, .c = scores, .ldc = keys};
        multiply(&compare);
        for (int64_t query = 0; query < queries; query++)
            softmax_row(scores + query * keys, scores + query * keys, keys, (float)call->record.numbers[0]);
        hedgerow_product mix = {.m = queries, .n = width, .k = keys, .a = scores, .lda = keys,
                                .b = head_of(call, 2, head, keys), .ldb = row,
                                .c = head_of(call, 3, head, queries), .ldc = row};
        multiply(&mix);
    }
}

/* The gradient of queries (or of keys) through the scores' gradient p (dy v' - sum of it p). Operands: gradient,
 * probabilities, values, keys (or queries), result, room for the scores of one head a part. Sizes: HEAD_KEPT says
 * whether it is the keys'. */
enum { HEAD_OF_KEYS = 6 };

static hedgerow_verdict check_attention_grad_scores(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    refuse_unless(&check, record->sizes[HEAD_KEPT] == 0 && record->sizes[HEAD_OF_KEYS] <= 1, HEDGEROW_WRONG_SIZES);
    head_sizes sizes = check_heads(&check);
    bool of_keys = record->sizes[HEAD_OF_KEYS];
    needs_floats(&check, 0, sizes.queries);
    needs_floats(&check, 1, times(&check, sizes.all, sizes.scores / HEDGEROW_PARTS));
    needs_floats(&check, 2, sizes.keys);
    needs_floats(&check, 3, of_keys ? sizes.queries : sizes.keys);
    needs_floats(&check, 4, of_keys ? sizes.keys : sizes.queries);
    needs_floats(&check, 5, times(&check, most(1, least(record->parts, HEDGEROW_PARTS)), sizes.scores / HEDGEROW_PARTS));
    *units = sizes.all;
    return check.verdict;
}

static void run_attention_grad_scores(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes;
    int64_t queries = s[HEAD_QUERIES], keys = s[HEAD_KEYS], width = s[HEAD_WIDTH], row = s[HEAD_HEADS] * width;
    bool of_keys = s[HEAD_OF_KEYS];
    float *scores = (float *)call->at[5] + part * queries * keys;
    for (int64_t head = first; head < end; head++) {
        const float *chances = (const float *)call->at[1] + head * queries * keys;
        hedgerow_product back = {.turn_b = true, .m = queries, .n = keys, .k = width,
                                 .a = head_of(call, 0, head, queries), .lda = row,
                                 .b = head_of(call, 2, head, keys), .ldb = row, .c = scores, .ldc = keys};
        multiply(&back);
        for (int64_t query = 0; query < queries; query++)
            softmax_grad_row(scores + query * keys, chances + query * keys, scores + query * keys, keys,
                             (float)call->record.numbers[0]);
        hedgerow_product out = {.turn_a = of_keys, .m = of_keys ? keys : queries, .n = width,
                                .k = of_keys ? queries : keys, .a = scores, .lda = keys,
                                .b = head_of(call, 3, head, of_keys ? queries : keys), .ldb = row,
                                .c = head_of(call, 4, head, of_keys ? keys : queries), .ldc = row};
        multiply(&out);
    }
}

/* p' dy of every head. Operands: gradient, probabilities, result. */
static hedgerow_verdict check_attention_grad_values(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    refuse_unless(&check, record->sizes[HEAD_KEPT] == 1, HEDGEROW_WRONG_SIZES);
    head_sizes sizes = check_heads(&check);
    needs_floats(&check, 0, sizes.queries);
    needs_floats(&check, 1, sizes.scores);
    needs_floats(&check, 2, sizes.keys);
    *units = sizes.all;
    return check.verdict;
}

static void run_attention_grad_values(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes;
    int64_t queries = s[HEAD_QUERIES], keys = s[HEAD_KEYS], row = s[HEAD_HEADS] * s[HEAD_WIDTH];
    for (int64_t head = first; head < end; head++) {
        hedgerow_product p = {.turn_a = true, .m = keys, .n = s[HEAD_WIDTH], .k = queries,
                              .a = (const float *)call->at[1] + head * queries * keys, .lda = keys,
                              .b = head_of(call, 0, head, queries), .ldb = row,
                              .c = head_of(call, 2, head, keys), .ldc = row};
        multiply(&p);
    }
    (void)part;
}
