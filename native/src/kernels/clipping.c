/* Clipping by the norm of all gradients.
 *
 * Squares are added up in strands that are the same however many threads there are, so that a norm has the same bits on
 * any number of them.
 */
#include <math.h>

#include "checking.h"
#include "sums.h"

enum { SQUARES_ELEMENTS, SQUARES_STRANDS, MOST_STRANDS = 64 };

/* Sizes: elements, strands. Operands: gradient, partial sums in 64 bits. Cut by strands. */
static hedgerow_verdict check_strand_squares(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t elements = positive(&check, SQUARES_ELEMENTS), strands = positive(&check, SQUARES_STRANDS);
    refuse_unless(&check, strands <= MOST_STRANDS, HEDGEROW_WRONG_SIZES);
    needs_floats(&check, 0, elements);
    needs(&check, 1, strands, sizeof(double));
    *units = strands;
    return check.verdict;
}

static void run_strand_squares(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t elements = call->record.sizes[SQUARES_ELEMENTS], strands = call->record.sizes[SQUARES_STRANDS];
    for (int64_t strand = first; strand < end; strand++) {
        int64_t from = elements * strand / strands, to = elements * (strand + 1) / strands;
        ((double *)call->at[1])[strand] = squares_around((const float *)call->at[0] + from, 0, to - from);
    }
    (void)part;
}

/* Sizes: 1, strands. Operands: partial sums, the sum so far if there is one, the sum. */
static hedgerow_verdict check_join_squares(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t strands = positive(&check, SQUARES_STRANDS);
    refuse_unless(&check, record->sizes[0] == 1 && strands <= MOST_STRANDS, HEDGEROW_WRONG_SIZES);
    needs(&check, 0, strands, sizeof(double));
    may_have_floats(&check, 1, 1);
    needs_floats(&check, 2, 1);
    *units = 1;
    return check.verdict;
}

static void run_join_squares(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    double sum = call->at[1] == NULL ? 0 : *(const float *)call->at[1];
    for (int64_t strand = 0; strand < call->record.sizes[SQUARES_STRANDS]; strand++)
        sum += ((const double *)call->at[0])[strand];
    *(float *)call->at[2] = (float)sum;
    (void)first, (void)end, (void)part;
}

/* limit / norm, or 1 where the norm is within the limit. Sizes: 1. Operands: sum of squares, factor. Numbers: limit. */
static hedgerow_verdict check_clip_factor(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    refuse_unless(&check, record->sizes[0] == 1, HEDGEROW_WRONG_SIZES);
    needs_floats(&check, 0, 1);
    needs_floats(&check, 1, 1);
    *units = 1;
    return check.verdict;
}

static void run_clip_factor(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    double norm = sqrt(*(const float *)call->at[0]), limit = call->record.numbers[0];
    *(float *)call->at[1] = (float)(norm > limit ? limit / norm : norm <= limit ? 1 : (double)__builtin_nanf(""));
    (void)first, (void)end, (void)part;
}
