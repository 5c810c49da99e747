/* Bilinear interpolation: along each axis every new pixel is a weighted mean of two old ones.
 *
 * Sizes: images (of all samples and channels), old rows, old columns, new rows, new columns, whether the outermost pixels
 * lie on the edge (1) or in the middle of equal cells (0).
 */
#include "checking.h"
#include "vector.h"

enum { RESAMPLED_IMAGES, OLD_ROWS, OLD_COLUMNS, NEW_ROWS, NEW_COLUMNS, ALIGNED, RESAMPLED_BLOCK = 128 };

/* The two old pixels of a new one, and the second one's share. */
typedef struct {
    int64_t lower, upper;
    float share;
} between;

static inline between place_of(int64_t at, int64_t old, int64_t made, bool aligned) {
    double last = (double)(old - 1);
    double place = aligned ? (double)at * (last / (double)most(made - 1, 1))
                           : ((double)at + 0.5) * ((double)old / (double)made) - 0.5;
    place = place < 0 ? 0 : place > last ? last : place;
    int64_t lower = (int64_t)place;
    return (between){lower, least(lower + 1, old - 1), (float)(place - (double)lower)};
}

typedef struct {
    int64_t old, made; /* elements */
} resampled_sizes;

static resampled_sizes check_resampling(checker *check) {
    for (int at = OLD_ROWS; at <= NEW_COLUMNS; at++)
        refuse_unless(check, positive(check, at) < 1 << 20, HEDGEROW_WRONG_SIZES);
    const int64_t *s = check->record->sizes;
    refuse_unless(check, s[ALIGNED] <= 1, HEDGEROW_WRONG_SIZES);
    int64_t images = positive(check, RESAMPLED_IMAGES);
    int64_t old = times(check, s[OLD_ROWS], s[OLD_COLUMNS]), made = times(check, s[NEW_ROWS], s[NEW_COLUMNS]);
    return (resampled_sizes){times(check, images, old), times(check, images, made)};
}

/* Operands: images, images of the new size. Cut by rows of all new images. */
static hedgerow_verdict check_resample(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    resampled_sizes sizes = check_resampling(&check);
    needs_floats(&check, 0, sizes.old);
    needs_floats(&check, 1, sizes.made);
    *units = times(&check, record->sizes[RESAMPLED_IMAGES], record->sizes[NEW_ROWS]);
    return check.verdict;
}

static int64_t places_across(const int64_t *sizes, int64_t from, between *places) {
    int64_t count = least(RESAMPLED_BLOCK, sizes[NEW_COLUMNS] - from);
    for (int64_t at = 0; at < count; at++)
        places[at] = place_of(from + at, sizes[OLD_COLUMNS], sizes[NEW_COLUMNS], sizes[ALIGNED]);
    return count;
}

static void run_resample(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes, old = s[OLD_ROWS] * s[OLD_COLUMNS];
    between across[RESAMPLED_BLOCK];
    for (int64_t from = 0; from < s[NEW_COLUMNS]; from += RESAMPLED_BLOCK) {
        int64_t count = places_across(s, from, across);
        for (int64_t row = first; row < end; row++) {
            between down = place_of(row % s[NEW_ROWS], s[OLD_ROWS], s[NEW_ROWS], s[ALIGNED]);
            const float *image = (const float *)call->at[0] + row / s[NEW_ROWS] * old;
            const float *above = image + down.lower * s[OLD_COLUMNS], *below = image + down.upper * s[OLD_COLUMNS];
            float *out = (float *)call->at[1] + row * s[NEW_COLUMNS] + from;
            for (int64_t at = 0; at < count; at++) {
                const between *place = &across[at];
                float high = above[place->lower] * (1 - place->share) + above[place->upper] * place->share;
                float low = below[place->lower] * (1 - place->share) + below[place->upper] * place->share;
                out[at] = high * (1 - down.share) + low * down.share;
            }
        }
    }
    (void)part;
}

/* Hand each new pixel's gradient to the old ones in their shares. Operands: gradient, result. Cut by images. */
static hedgerow_verdict check_resample_grad(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    resampled_sizes sizes = check_resampling(&check);
    needs_floats(&check, 0, sizes.made);
    needs_floats(&check, 1, sizes.old);
    *units = record->sizes[RESAMPLED_IMAGES];
    return check.verdict;
}

/* Some columns of an image's gradient, and where they go. */
typedef struct {
    const int64_t *sizes;
    const float *gradient;
    float *result;
    const between *across;
    int64_t count;
} resampled_block;

static inline void share_out(float *row, const between *place, float gradient) {
    row[place->lower] += gradient * (1 - place->share);
    row[place->upper] += gradient * place->share;
}

/* Old pixels that lie far apart get few gradients each, which are added where they belong. */
static void scatter_resampled(const resampled_block *b) {
    const int64_t *s = b->sizes;
    for (int64_t line = 0; line < s[NEW_ROWS]; line++) {
        between down = place_of(line, s[OLD_ROWS], s[NEW_ROWS], s[ALIGNED]);
        const float *gradient = b->gradient + line * s[NEW_COLUMNS];
        for (int64_t at = 0; at < b->count; at++) {
            share_out(b->result + down.lower * s[OLD_COLUMNS], &b->across[at], gradient[at] * (1 - down.share));
            share_out(b->result + down.upper * s[OLD_COLUMNS], &b->across[at], gradient[at] * down.share);
        }
    }
}

enum { RESAMPLED_SPAN = RESAMPLED_BLOCK + 2 };

static void settle_resampled(float *row, double *sums, int64_t span) {
    for (int64_t at = 0; at < span; at++) {
        row[at] += (float)sums[at];
        sums[at] = 0;
    }
}

/* Old pixels that lie close together get many gradients each: they are added up in 64 bits while the rows of the image
 * stay the same. */
static void gather_resampled(const resampled_block *b, int64_t span) {
    const int64_t *s = b->sizes, base = b->across[0].lower;
    double above[RESAMPLED_SPAN] = {0}, below[RESAMPLED_SPAN] = {0};
    between before = place_of(0, s[OLD_ROWS], s[NEW_ROWS], s[ALIGNED]);
    for (int64_t line = 0; line <= s[NEW_ROWS]; line++) {
        between down = place_of(least(line, s[NEW_ROWS] - 1), s[OLD_ROWS], s[NEW_ROWS], s[ALIGNED]);
        if (line == s[NEW_ROWS] || down.lower != before.lower) {
            settle_resampled(b->result + before.lower * s[OLD_COLUMNS] + base, above, span);
            settle_resampled(b->result + before.upper * s[OLD_COLUMNS] + base, below, span);
            before = down;
        }
        const float *gradient = b->gradient + line * s[NEW_COLUMNS];
        for (int64_t at = 0; at < b->count && line < s[NEW_ROWS]; at++) {
            int64_t lower = b->across[at].lower - base, upper = b->across[at].upper - base;
            double right = (double)gradient[at] * b->across[at].share, left = (double)gradient[at] - right;
            above[lower] += left * (1 - down.share);
            above[upper] += right * (1 - down.share);
            below[lower] += left * down.share;
            below[upper] += right * down.share;
        }
    }
}

static void run_resample_grad(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes, old = s[OLD_ROWS] * s[OLD_COLUMNS], made = s[NEW_ROWS] * s[NEW_COLUMNS];
    between across[RESAMPLED_BLOCK];
    memset((float *)call->at[1] + first * old, 0, (size_t)((end - first) * old) * sizeof(float));
    for (int64_t from = 0; from < s[NEW_COLUMNS]; from += RESAMPLED_BLOCK) {
        int64_t count = places_across(s, from, across), span = across[count - 1].upper - across[0].lower + 1;
        for (int64_t image = first; image < end; image++) {
            const resampled_block block = {s, (const float *)call->at[0] + image * made + from,
                                           (float *)call->at[1] + image * old, across, count};
            if (span > RESAMPLED_SPAN)
                scatter_resampled(&block);
            else
                gather_resampled(&block, span);
        }
    }
    (void)part;
}
