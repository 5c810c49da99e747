/* How records are judged: sizes first, then whether each operand holds what they say. */
#ifndef HEDGEROW_CHECKING_H
#define HEDGEROW_CHECKING_H

#include "../kernel.h"

typedef struct {
    const hedgerow_record *record;
    hedgerow_verdict verdict;
} checker;

static inline checker look_at(const hedgerow_record *record) { return (checker){record, HEDGEROW_FINE}; }

static inline void refuse_unless(checker *check, bool fine, hedgerow_verdict verdict) {
    if (!fine && check->verdict == HEDGEROW_FINE)
        check->verdict = verdict;
}

/* A size of the record, at least one. */
static inline int64_t positive(checker *check, int at) {
    int64_t size = check->record->sizes[at];
    refuse_unless(check, size > 0, HEDGEROW_WRONG_SIZES);
    return size > 0 ? size : 1;
}

/* A product that is refused, and becomes 1, where it is larger than any memory. */
static inline int64_t times(checker *check, int64_t a, int64_t b) {
    int64_t product;
    bool fits = !__builtin_mul_overflow(a, b, &product) && product <= INT64_C(1) << 46;
    refuse_unless(check, fits, HEDGEROW_WRONG_SIZES);
    return fits ? product : 1;
}

static inline bool is_there(const hedgerow_record *record, int at) { return record->operands[at].region >= 0; }

static inline void needs(checker *check, int at, int64_t elements, int64_t element_bytes) {
    const hedgerow_operand *operand = &check->record->operands[at];
    refuse_unless(check, operand->region >= 0, HEDGEROW_OPERAND_MISSING);
    refuse_unless(check, operand->offset % element_bytes == 0, HEDGEROW_OPERAND_CROOKED);
    refuse_unless(check, operand->bytes / element_bytes >= elements, HEDGEROW_WRONG_SIZES);
}

static inline void needs_floats(checker *check, int at, int64_t elements) { needs(check, at, elements, 4); }

static inline void may_have_floats(checker *check, int at, int64_t elements) {
    if (is_there(check->record, at))
        needs(check, at, elements, 4);
}

#endif
