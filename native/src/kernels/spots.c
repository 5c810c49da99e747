/* Convolutions of images as their shapes say with windows of one pixel that move by one: a product for each group of each
 * sample.
 */
#include "checking.h"
#include "products.h"
#include "vector.h"

/* Sizes: samples, rows and terms of a product (of one group), pixels, groups, whether the weight is turned. Operands:
 * images, weight, result, bias if there is one. Cut by rows of the products. */
enum { SPOT_SAMPLES, SPOT_ROWS, SPOT_TERMS, SPOT_PIXELS, SPOT_GROUPS, SPOT_TURNED };
enum { NEAR_TERMS = 512 };

static hedgerow_verdict check_spots(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t pairs = times(&check, positive(&check, SPOT_SAMPLES), positive(&check, SPOT_GROUPS));
    int64_t rows = positive(&check, SPOT_ROWS), terms = positive(&check, SPOT_TERMS);
    int64_t pixels = positive(&check, SPOT_PIXELS);
    refuse_unless(&check, record->sizes[SPOT_TURNED] <= 1, HEDGEROW_WRONG_SIZES);
    needs_floats(&check, 0, times(&check, times(&check, pairs, terms), pixels));
    needs_floats(&check, 1, times(&check, times(&check, record->sizes[SPOT_GROUPS], rows), terms));
    needs_floats(&check, 2, times(&check, times(&check, pairs, rows), pixels));
    may_have_floats(&check, 3, times(&check, record->sizes[SPOT_GROUPS], rows));
    *units = times(&check, pairs, rows);
    return check.verdict;
}

static void run_spots(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes;
    int64_t rows = s[SPOT_ROWS], terms = s[SPOT_TERMS], pixels = s[SPOT_PIXELS];
    const float *bias = call->at[3];
    for (int64_t unit = first, some; unit < end; unit += some) {
        int64_t pair = unit / rows, row = unit % rows, group = pair % s[SPOT_GROUPS];
        some = least(rows - row, end - unit);
        const float *weight = (const float *)call->at[1] + group * rows * terms;
        hedgerow_product p = {.turn_a = s[SPOT_TURNED], .m = some, .n = pixels, .k = terms, .ldb = pixels, .ldc = pixels,
                              .lda = s[SPOT_TURNED] ? rows : terms,
                              .a = weight + (s[SPOT_TURNED] ? row : row * terms),
                              .b = (const float *)call->at[0] + pair * terms * pixels,
                              .c = (float *)call->at[2] + unit * pixels};
        if (terms <= NEAR_TERMS)
            near_product(&p);
        else
            multiply(&p);
        for (int64_t at = 0; bias != NULL && at < some; at++) {
            const float level = bias[group * rows + row + at];
            for (int64_t pixel = 0; pixel < pixels; pixel++)
                p.c[at * pixels + pixel] += level;
        }
    }
    (void)part;
}
