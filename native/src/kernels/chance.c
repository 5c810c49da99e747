/* What chance decides: words made of counters and keys, the very ones that numpy's kernels make.
 *
 * A key is 64 bits mixed from the seed and the step, which stand in an operand that changes from step to step, and from
 * what a record or a sample adds; a word is the element's number mixed with both halves of it. So the same elements are
 * meant however work is cut, and when a layer is computed again.
 */
#include "checking.h"
#include "vector.h"

/* One round of splitmix64. */
static inline uint64_t stirred(uint64_t word, uint64_t number) {
    word += number + UINT64_C(0x9E3779B97F4A7C15);
    word = (word ^ word >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ word >> 27) * UINT64_C(0x94D049BB133111EB);
    return word ^ word >> 31;
}

static inline uint64_t key_of(uint64_t seed, uint64_t stream, uint64_t step, uint64_t number) {
    return stirred(stirred(stirred(stirred(0, seed), stream), step), number);
}

static inline uint32_t folded(uint32_t word, int shift, uint32_t factor) { return (word ^ word >> shift) * factor; }

/* x factor, or 0 where it is dropped. Sizes: samples, elements of one, the layer's seed, below which word an element is
 * dropped. Operands: x, result, seed and step, how many samples there are and their numbers. Numbers: factor. Cut
 * anywhere. */
enum { DROPPED_SAMPLES, DROPPED_WIDTH, DROPPED_SEED, DROPPED_BELOW };

static hedgerow_verdict check_dropout(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t samples = positive(&check, DROPPED_SAMPLES);
    *units = times(&check, samples, positive(&check, DROPPED_WIDTH));
    refuse_unless(&check, record->sizes[DROPPED_BELOW] >> 32 == 0, HEDGEROW_WRONG_SIZES);
    needs_floats(&check, 0, *units);
    needs_floats(&check, 1, *units);
    needs(&check, 2, 2, sizeof(uint64_t));
    needs(&check, 3, 1 + samples, sizeof(uint64_t));
    return check.verdict;
}

static void drop(const float *restrict x, float *restrict y, int64_t first, int64_t end, float factor, uint64_t key,
                 uint32_t below) {
    for (int64_t at = first; at < end; at++) {
        uint32_t word = (uint32_t)at + (uint32_t)(key >> 32);
        word = folded(folded(word, 16, 0x7FEB352DU), 15, 0x846CA68BU) ^ (uint32_t)key;
        word = folded(folded(word, 16, 0x9E3779B1U), 15, 0x85EBCA6BU);
        y[at] = (word ^ word >> 16) < below ? 0 : x[at] * factor;
    }
}

static void run_dropout(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes, width = s[DROPPED_WIDTH];
    const uint64_t *now = call->at[2], *rows = call->at[3];
    const float factor = (float)call->record.numbers[0];
    for (int64_t sample = first / width; sample * width < end; sample++) {
        const float *x = (const float *)call->at[0] + sample * width;
        float *y = (float *)call->at[1] + sample * width;
        bool known = (uint64_t)sample < rows[0]; /* of fewer samples than there is room for, the rest is kept whole */
        uint64_t key = key_of(now[0], (uint64_t)s[DROPPED_SEED], now[1], known ? rows[1 + sample] : 0);
        drop(x, y, most(first - sample * width, 0), least(end - sample * width, width), factor, key,
             known ? (uint32_t)s[DROPPED_BELOW] : 0);
    }
    (void)part;
}

/* A random direction, -1 or 1 for each element of a parameter. Sizes: elements, the parameter's key. */
enum { MOVED_ELEMENTS, MOVED_KEY, MOVED_STREAM = 0x4D655A4F };

static inline uint64_t direction_key(const hedgerow_call *call, int now) {
    const uint64_t *words = call->at[now];
    return key_of(words[0], MOVED_STREAM, words[1], (uint64_t)call->record.sizes[MOVED_KEY]);
}

/* A distance, or the same backwards where the direction is -1. */
static inline float along(float distance, int64_t element, uint64_t key) {
    uint32_t word = folded((uint32_t)element + (uint32_t)(key >> 32), 16, 0x7FEB352DU);
    word = folded(folded(word + (uint32_t)key, 15, 0x846CA68BU), 16, 0x9E3779B1U);
    uint32_t bits;
    memcpy(&bits, &distance, sizeof bits);
    bits ^= word & 0x80000000U;
    memcpy(&distance, &bits, sizeof bits);
    return distance;
}

/* A parameter moved along the direction. Operands: parameter, result, seed and step. Numbers: distance. Cut anywhere. */
static hedgerow_verdict check_perturbed(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    *units = positive(&check, MOVED_ELEMENTS);
    needs_floats(&check, 0, *units);
    needs_floats(&check, 1, *units);
    needs(&check, 2, 2, sizeof(uint64_t));
    return check.verdict;
}

static void run_perturbed(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const float *restrict parameter = call->at[0], distance = (float)call->record.numbers[0];
    float *restrict out = call->at[1];
    const uint64_t key = direction_key(call, 2);
    for (int64_t at = first; at < end; at++)
        out[at] = parameter[at] + along(distance, at, key);
    (void)part;
}

/* p -= rate (slope z + decay p), z the direction. Operands: slope, parameter, rate, seed and step. Numbers: decay. Cut
 * anywhere. */
static hedgerow_verdict check_descend(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    *units = positive(&check, MOVED_ELEMENTS);
    needs_floats(&check, 0, 1);
    needs_floats(&check, 1, *units);
    needs_floats(&check, 2, 1);
    needs(&check, 3, 2, sizeof(uint64_t));
    return check.verdict;
}

static void run_descend(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    float *parameter = call->at[1];
    const double rate = *(const float *)call->at[2];
    const float step = (float)(rate * *(const float *)call->at[0]), kept = (float)(1 - rate * call->record.numbers[0]);
    const uint64_t key = direction_key(call, 3);
    for (int64_t at = first; at < end; at++)
        parameter[at] = parameter[at] * kept - along(step, at, key);
    (void)part;
}

/* Add what two losses of each sample say of the slope: factor times the sum of their differences. Sizes: 1, samples.
 * Operands: losses ahead, losses behind, total. Numbers: factor. */
static hedgerow_verdict check_accumulate_slope(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t samples = positive(&check, 1);
    refuse_unless(&check, record->sizes[0] == 1, HEDGEROW_WRONG_SIZES);
    needs_floats(&check, 0, samples);
    needs_floats(&check, 1, samples);
    needs_floats(&check, 2, 1);
    *units = 1;
    return check.verdict;
}

static void run_accumulate_slope(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const float *ahead = call->at[0], *behind = call->at[1];
    double sum = 0;
    for (int64_t sample = 0; sample < call->record.sizes[1]; sample++)
        sum += (double)ahead[sample] - behind[sample];
    *(float *)call->at[2] += (float)(call->record.numbers[0] * sum);
    (void)first, (void)end, (void)part;
}
