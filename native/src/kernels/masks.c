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

/* One row's part of a range of bytes. */
typedef struct {
    int64_t row, first, end;
} stretch_of_bytes;

static stretch_of_bytes next_bytes(const int64_t *sizes, int64_t at, int64_t end) {
    int64_t row = at / sizes[MASK_BYTES], first = at - row * sizes[MASK_BYTES];
    return (stretch_of_bytes){row, first, least(sizes[MASK_BYTES], first + end - at)};
}

static void rectify_row(const float *x, float *y, uint8_t *mask, int64_t elements, stretch_of_bytes own, float limit) {
    const ivec places = {128, 64, 32, 16, 8, 4, 2, 1};
    for (int64_t at = own.first; at < own.end; at++) {
        int64_t count = elements - 8 * at;
        if (count < 8) {
            mask[at] = count > 0 ? rectify_few(x + 8 * at, y + 8 * at, count, limit) : 0;
            continue;
        }
        vec v = load(x + 8 * at);
        ivec bits = (ivec)(v > zeros()) & (ivec)(v < spread(limit)) & places;
        mask[at] = (uint8_t)(((bits[0] + bits[4]) + (bits[2] + bits[6])) + ((bits[1] + bits[5]) + (bits[3] + bits[7])));
        v = choose((ivec)(v < zeros()), zeros(), v);
        store(y + 8 * at, choose((ivec)(v > spread(limit)), spread(limit), v));
    }
}

static void run_rectify(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    while (first < end) {
        stretch_of_bytes own = next_bytes(sizes, first, end);
        rectify_row((const float *)call->at[0] + own.row * sizes[MASK_ELEMENTS],
                    (float *)call->at[1] + own.row * sizes[MASK_ELEMENTS],
                    (uint8_t *)call->at[2] + own.row * sizes[MASK_BYTES], sizes[MASK_ELEMENTS], own,
                    (float)call->record.numbers[0]);
        first += own.end - own.first;
    }
    (void)part;
}

/* The gradient where a bit is set. Operands: gradient, mask, result. */
static hedgerow_verdict check_let_through(const hedgerow_record *record, int64_t *units) {
    return check_mask(record, units, 0, 1, 2);
}

static void let_through_row(const float *gradient, const uint8_t *mask, float *out, int64_t elements,
                            stretch_of_bytes own) {
    const ivec places = {128, 64, 32, 16, 8, 4, 2, 1};
    for (int64_t at = own.first; at < own.end; at++) {
        int64_t count = elements - 8 * at;
        if (count >= 8) {
            ivec set = ((mask[at] - (ivec){0}) & places) != 0;
            store(out + 8 * at, (vec)((ivec)load(gradient + 8 * at) & set));
        }
        for (int64_t few = 0; count < 8 && few < count; few++)
            out[8 * at + few] = mask[at] >> (7 - few) & 1 ? gradient[8 * at + few] : 0;
    }
}

static void run_let_through(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *sizes = call->record.sizes;
    while (first < end) {
        stretch_of_bytes own = next_bytes(sizes, first, end);
        let_through_row((const float *)call->at[0] + own.row * sizes[MASK_ELEMENTS],
                        (const uint8_t *)call->at[1] + own.row * sizes[MASK_BYTES],
                        (float *)call->at[2] + own.row * sizes[MASK_ELEMENTS], sizes[MASK_ELEMENTS], own);
        first += own.end - own.first;
    }
    (void)part;
}
