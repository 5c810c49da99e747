/* The fully connected layer: one product each, cut by rows or by columns of the result. */
#include "checking.h"
#include "products.h"
#include "vector.h"

/* Sizes of a product C = A B: rows and columns of C, terms of the sum, how A and B are turned, and whether the ranges
 * are of columns. Operands: A, B, C and, if there is one, a row that is added to each. */
enum { PRODUCT_M, PRODUCT_N, PRODUCT_K, PRODUCT_TURN_A, PRODUCT_TURN_B, PRODUCT_BY_COLUMNS };

static checker check_factors(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t m = positive(&check, PRODUCT_M), n = positive(&check, PRODUCT_N), k = positive(&check, PRODUCT_K);
    for (int at = PRODUCT_TURN_A; at <= PRODUCT_BY_COLUMNS; at++)
        refuse_unless(&check, record->sizes[at] <= 1, HEDGEROW_WRONG_SIZES);
    needs_floats(&check, 0, times(&check, m, k));
    needs_floats(&check, 1, times(&check, k, n));
    needs_floats(&check, 2, times(&check, m, n));
    *units = record->sizes[PRODUCT_BY_COLUMNS] ? n : m;
    return check;
}

static hedgerow_verdict check_product(const hedgerow_record *record, int64_t *units) {
    checker check = check_factors(record, units);
    may_have_floats(&check, 3, record->sizes[PRODUCT_N]);
    return check.verdict;
}

static void add_row(float *c, const float *row, int64_t rows, int64_t columns, int64_t ldc) {
    for (int64_t at = 0; at < rows; at++)
        for (int64_t column = 0; column < columns; column++)
            c[at * ldc + column] += row[column];
}

/* The part of a product that a range is about. */
static hedgerow_product product_of(const hedgerow_call *call, int64_t first, int64_t end) {
    const int64_t *sizes = call->record.sizes;
    int64_t m = sizes[PRODUCT_M], n = sizes[PRODUCT_N], k = sizes[PRODUCT_K];
    hedgerow_product p = {.turn_a = sizes[PRODUCT_TURN_A], .turn_b = sizes[PRODUCT_TURN_B], .k = k, .ldc = n};
    p.lda = p.turn_a ? m : k;
    p.ldb = p.turn_b ? k : n;
    int64_t row = sizes[PRODUCT_BY_COLUMNS] ? 0 : first, column = sizes[PRODUCT_BY_COLUMNS] ? first : 0;
    p.m = sizes[PRODUCT_BY_COLUMNS] ? m : end - first;
    p.n = sizes[PRODUCT_BY_COLUMNS] ? end - first : n;
    p.a = (const float *)call->at[0] + (p.turn_a ? row : row * p.lda);
    p.b = (const float *)call->at[1] + (p.turn_b ? column * p.ldb : column);
    p.c = (float *)call->at[2] + row * n + column;
    return p;
}

/* What is off in a result is off in all that is computed from it. So sums are short where that costs little: those of a
 * small weight, and those of very few rows, such as one token of each sample, through which all of a gradient comes. With
 * some more rows a BLAS is busy with the weight, and cutting it is dear. */
enum { DEPTH_OF_SMALL = 96, NUMBERS_OF_SMALL = 8192, TERMS_OF_SMALL = 16 };
enum { VERY_FEW_ROWS = 32, FEW_ROWS = 128, TERMS_OF_FEW = 64 };

static int64_t terms_of_product(const int64_t *sizes) {
    int64_t m = sizes[PRODUCT_M], k = sizes[PRODUCT_K];
    if (sizes[PRODUCT_TURN_B] && k <= DEPTH_OF_SMALL && k * sizes[PRODUCT_N] <= NUMBERS_OF_SMALL)
        return TERMS_OF_SMALL;
    return m <= VERY_FEW_ROWS ? TERMS_OF_FEW : m < FEW_ROWS ? k : 0;
}

static void run_product(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    hedgerow_product p = product_of(call, first, end);
    p.terms = terms_of_product(call->record.sizes);
    multiply(&p);
    if (call->at[3] != NULL)
        add_row(p.c, (const float *)call->at[3] + (call->record.sizes[PRODUCT_BY_COLUMNS] ? first : 0), p.m, p.n, p.ldc);
    (void)part;
}

/* The same with a rate instead of a row: C -= rate A B, how a weight is updated by a gradient that never exists. */
static hedgerow_verdict check_take_product(const hedgerow_record *record, int64_t *units) {
    checker check = check_factors(record, units);
    needs_floats(&check, 3, 1);
    return check.verdict;
}

static void run_take_product(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    hedgerow_product p = product_of(call, first, end);
    p.taken = *(const float *)call->at[3];
    if (p.taken != 0)
        multiply(&p);
    (void)part;
}

/* Sums of the columns of a matrix (rows, columns): cut by columns. */
static hedgerow_verdict check_column_sums(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t rows = positive(&check, 0), columns = positive(&check, 1);
    needs_floats(&check, 0, times(&check, rows, columns));
    needs_floats(&check, 1, columns);
    *units = columns;
    return check.verdict;
}

enum { SUM_ROWS = 128 };

/* Add up some columns, in four sums that are added at the end, so that additions need not wait for each other; what blocks
 * of rows come to is added up in 64 bits. */
static void sum_columns(const float *matrix, int64_t rows, int64_t columns, int64_t first, int64_t end, double factor,
                        float *sums) {
    int64_t column = first;
    for (; column + 2 * LANES <= end; column += 2 * LANES) {
        wide_vec left = {0}, right = {0};
        for (int64_t from = 0, to; from < rows; from = to) {
            vec low[4] = {zeros(), zeros(), zeros(), zeros()}, high[4] = {zeros(), zeros(), zeros(), zeros()};
            const float *at = matrix + column;
            int64_t row = from;
            to = least(rows, from + SUM_ROWS);
            for (; row + 4 <= to; row += 4)
                for (int lane = 0; lane < 4; lane++) {
                    low[lane] += load(at + (row + lane) * columns);
                    high[lane] += load(at + (row + lane) * columns + LANES);
                }
            for (; row < to; row++) {
                low[0] += load(at + row * columns);
                high[0] += load(at + row * columns + LANES);
            }
            left += widen((low[0] + low[1]) + (low[2] + low[3]));
            right += widen((high[0] + high[1]) + (high[2] + high[3]));
        }
        store(sums + column, narrow(left * factor));
        store(sums + column + LANES, narrow(right * factor));
    }
    for (; column < end; column++) {
        double sum = 0;
        for (int64_t row = 0; row < rows; row++)
            sum += matrix[row * columns + column];
        sums[column] = (float)(sum * factor);
    }
}

static void run_column_sums(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    sum_columns(call->at[0], call->record.sizes[0], call->record.sizes[1], first, end,
                call->record.numbers[0], call->at[1]);
    (void)part;
}
