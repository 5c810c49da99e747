/* Replays kernels that another machine has recorded, on the very inputs it had, and compares what they write.
 *
 * A file is a count and so many cases. A case is the operator's name (32 bytes), its record, and a count of regions,
 * each with its bytes, the bytes of one real number in it (0: they are none), and its content before and after. Numbers
 * are little-endian, as every machine that a wheel is built for has them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

static void take(FILE *file, void *to, size_t bytes) {
    if (fread(to, 1, bytes, file) != bytes) {
        printf("The recorded cases end too early.\n");
        exit(2);
    }
}

static int64_t take_number(FILE *file) {
    int64_t number;
    take(file, &number, sizeof number);
    return number;
}

static double real_number(const void *numbers, int64_t at, int64_t bytes) {
    return bytes == sizeof(double) ? ((const double *)numbers)[at] : (double)((const float *)numbers)[at];
}

/* How far real numbers are from what was recorded, as a share of the largest of them. */
static double distance(const char *found, const char *recorded, int64_t count, int64_t bytes) {
    double worst = 0, largest = 1e-30;
    for (int64_t at = 0; at < count; at++) {
        if (memcmp(found + at * bytes, recorded + at * bytes, (size_t)bytes) == 0)
            continue;
        double mine = real_number(found, at, bytes), theirs = real_number(recorded, at, bytes);
        worst = fmax(worst, isfinite(mine) ? fabs(mine - theirs) : INFINITY);
        largest = fmax(largest, fabs(theirs));
    }
    return worst / largest;
}

static void run_case(FILE *file) {
    char name[32];
    hedgerow_record record;
    hedgerow_region regions[HEDGEROW_OPERANDS];
    hedgerow_refusal refusal;
    void *after[HEDGEROW_OPERANDS];
    int64_t real[HEDGEROW_OPERANDS];
    take(file, name, sizeof name);
    take(file, &record, sizeof record);
    int64_t count = take_number(file);
    for (int64_t at = 0; at < count; at++) {
        int64_t bytes = take_number(file);
        real[at] = take_number(file);
        regions[at] = (hedgerow_region){malloc((size_t)bytes), bytes, 1};
        after[at] = malloc((size_t)bytes);
        take(file, regions[at].base, (size_t)bytes);
        take(file, after[at], (size_t)bytes);
    }
    record.op = hedgerow_operator(name);
    hedgerow_program *program = hedgerow_open(&record, 1, regions, count, &refusal);
    expect(program != NULL, "recorded %s was refused: verdict %d", name, program == NULL ? (int)refusal.verdict : 0);
    if (program != NULL)
        hedgerow_run(program, 2);
    for (int64_t at = 0; at < count; at++) {
        if (program != NULL && real[at]) {
            double off = distance(regions[at].base, after[at], regions[at].bytes / real[at], real[at]);
            expect(off <= 1e-4, "recorded %s: region %d is off by %g of its largest", name, (int)at, off);
        } else if (program != NULL)
            expect(memcmp(regions[at].base, after[at], (size_t)regions[at].bytes) == 0,
                   "recorded %s: region %d has other bytes", name, (int)at);
        free(regions[at].base);
        free(after[at]);
    }
    hedgerow_close(program);
}

void test_recorded_cases(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        printf("The recorded cases %s cannot be read.\n", path);
        exit(2);
    }
    for (int64_t left = take_number(file); left > 0; left--)
        run_case(file);
    fclose(file);
}
