/* Rectifiers whose backward needs one bit per element, the first element in a byte's highest bit.
 *
 * Sizes: rows, elements of a row, bytes of a row's mask (what is left over is zero). Cut by bytes of the mask.
 */
#include "checking.h"
#include "vector.h"

enum { MASK_ROWS, MASK_ELEMENTS, MASK_BYTES };

static hedgerow_verdict check_mask(const hedgerow_record *record, int64_t *units, int values, int mask, int also) {
    checker check = look_at(record);
    int64_t rows = positive(&check, MASK_ROWS), elements = positive(&check, MASK_ELEMENTS);
    int64_t bytes = positive(&check, MASK_BYTES), all = times(&check, rows, elements);
    refuse_unless(&check, bytes >= (elements + 7) / 8, HEDGEROW_WRONG_SIZES);
    needs_floats(&check, values, all);
    needs_floats(&check, also, all);
    *units = times(&check, rows, bytes);
    needs(&check, mask, *units, 1);
    return check.verdict;
}

/* Operands: x, result, mask. Numbers: the upper limit of what goes through, or infinity. */
static hedgerow_verdict check_rectify(const hedgerow_record *record, int64_t *units) {
    return check_mask(record, units, 0, 2, 1);
}

static uint8_t rectify_few(const float *x, float *y, int64_t count, float limit) {
    unsigned bits = 0;
    for (int64_t at = 0; at < count; at++) {
        bits |= (unsigned)(x[at] > 0 && x[at] < limit) << (7 - at);
        y[at] = x[at] < 0 ? 0 : x[at] > limit ? limit : x[at];
    }
    return (uint8_t)bits;
}

static void run_rectify(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    const float limit = (float)call->record.numbers[0];
    const ivec places = {128, 64, 32, 16, 8, 4, 2, 1};
    uint8_t *mask = call->at[2];
    for (int64_t at = first; at < end; at++) {
        int64_t row = at / sizes[MASK_BYTES], element = at % sizes[MASK_BYTES] * 8;
        int64_t count = least(8, sizes[MASK_ELEMENTS] - element);
        const float *x = (const float *)call->at[0] + row * sizes[MASK_ELEMENTS] + element;
        float *y = (float *)call->at[1] + row * sizes[MASK_ELEMENTS] + element;
        if (count < 8) {
            mask[at] = count > 0 ? rectify_few(x, y, count, limit) : 0;
            continue;
        }
        vec v = load(x);
        ivec bits = (ivec)(v > zeros()) & (ivec)(v < spread(limit)) & places;
        mask[at] = (uint8_t)(((bits[0] + bits[4]) + (bits[2] + bits[6])) + ((bits[1] + bits[5]) + (bits[3] + bits[7])));
        v = choose((ivec)(v < zeros()), zeros(), v);
        store(y, choose((ivec)(v > spread(limit)), spread(limit), v));
    }
    (void)part;
}

/* The gradient where a bit is set. Operands: gradient, mask, result. */
static hedgerow_verdict check_let_through(const hedgerow_record *record, int64_t *units) {
    return check_mask(record, units, 0, 1, 2);
}

static void run_let_through(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    const ivec places = {128, 64, 32, 16, 8, 4, 2, 1};
    const uint8_t *mask = call->at[1];
    for (int64_t at = first; at < end; at++) {
        int64_t row = at / sizes[MASK_BYTES], element = at % sizes[MASK_BYTES] * 8;
        int64_t count = least(8, sizes[MASK_ELEMENTS] - element);
        const float *gradient = (const float *)call->at[0] + row * sizes[MASK_ELEMENTS] + element;
        float *out = (float *)call->at[2] + row * sizes[MASK_ELEMENTS] + element;
        if (count >= 8) {
            ivec set = ((mask[at] - (ivec){0}) & places) != 0;
            store(out, (vec)((ivec)load(gradient) & set));
        }
        for (int64_t few = 0; count < 8 && few < count; few++)
            out[few] = mask[at] >> (7 - few) & 1 ? gradient[few] : 0;
    }
    (void)part;
}
