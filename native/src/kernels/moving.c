/* Copies between arrays that are cut or turned: up to five axes, strides in elements, times a number if it is not 1.
 *
 * Sizes: five lengths, five strides of the source, five of the target (a stride of the source may be 0), where the
 * source and where the target begins. Operands: source, target. Cut by the outermost axis.
 */
#include "checking.h"
#include "vector.h"

enum { COPY_AXES = 5, COPY_FROM = 5, COPY_TO = 10, COPY_FROM_START = 15, COPY_TO_START = 16 };

static hedgerow_verdict check_copy(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t from = record->sizes[COPY_FROM_START], to = record->sizes[COPY_TO_START], all = 1;
    for (int axis = 0; axis < COPY_AXES; axis++) {
        int64_t length = positive(&check, axis);
        all = times(&check, all, length);
        from += times(&check, length - 1, record->sizes[COPY_FROM + axis]);
        to += times(&check, length - 1, record->sizes[COPY_TO + axis]);
    }
    needs_floats(&check, 0, from + 1);
    needs_floats(&check, 1, most(to + 1, all)); /* no number is written twice, so work is bounded by memory */
    *units = record->sizes[0];
    return check.verdict;
}

static void copy_row(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t count, float factor) {
    if (from_step == 1 && to_step == 1 && factor == 1)
        memcpy(to, from, (size_t)count * sizeof *to);
    else if (from_step == 1 && to_step == 1)
        for (int64_t at = 0; at < count; at++)
            to[at] = from[at] * factor;
    else
        for (int64_t at = 0; at < count; at++)
            to[at * to_step] = from[at * from_step] * factor;
}

static void run_copy(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *n = call->record.sizes, *f = n + COPY_FROM, *t = n + COPY_TO;
    const float *from = (const float *)call->at[0] + n[COPY_FROM_START], factor = (float)call->record.numbers[0];
    float *to = (float *)call->at[1] + n[COPY_TO_START];
    for (int64_t a = first; a < end; a++)
        for (int64_t b = 0; b < n[1]; b++)
            for (int64_t c = 0; c < n[2]; c++)
                for (int64_t d = 0; d < n[3]; d++)
                    copy_row(from + a * f[0] + b * f[1] + c * f[2] + d * f[3], f[4],
                             to + a * t[0] + b * t[1] + c * t[2] + d * t[3], t[4], n[4], factor);
    (void)part;
}

/* Means over a middle axis, turned: y[inner][outer] = factor times the sum over x[outer][middle][inner].
 * Sizes: outer, middle, inner. Operands: x, y. Cut by the outer axis. */
static hedgerow_verdict check_middle_sums(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t outer = positive(&check, 0), middle = positive(&check, 1), inner = positive(&check, 2);
    needs_floats(&check, 0, times(&check, times(&check, outer, middle), inner));
    needs_floats(&check, 1, times(&check, outer, inner));
    *units = outer;
    return check.verdict;
}

static void run_middle_sums(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    int64_t outer = call->record.sizes[0], middle = call->record.sizes[1], inner = call->record.sizes[2];
    const float factor = (float)call->record.numbers[0];
    float *y = call->at[1];
    for (int64_t row = first; row < end; row++)
        for (int64_t at = 0; at < inner; at += LANES) {
            int64_t count = least(LANES, inner - at);
            vec sum = zeros();
            for (int64_t turn = 0; turn < middle; turn++)
                sum += load_upto((const float *)call->at[0] + (row * middle + turn) * inner + at, count);
            for (int64_t lane = 0; lane < count; lane++)
                y[(at + lane) * outer + row] = sum[lane] * factor;
        }
    (void)part;
}
