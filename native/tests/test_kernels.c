/* Tests the kernels alone, against plain loops in double precision: for machines without Python, and for sanitizers.
 * Names of files as arguments: cases that were recorded elsewhere. Prints what it did; ends with 0 if everything is within its bound.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

static void test_products(void) {
    static const int shapes[][3] = {{1, 1, 1}, {6, 16, 8}, {7, 17, 5}, {64, 10, 33}, {13, 40, 700}};
    for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++)
        for (int turned = 0; turned < 4; turned++) {
            int m = shapes[shape][0], n = shapes[shape][1], k = shapes[shape][2];
            bench *b = bench_new();
            float *a = bench_floats(b, 0, m * k), *w = bench_floats(b, 1, k * n), *c = bench_floats(b, 2, m * n);
            bench_sizes(b, 6, m, n, k, turned & 1, turned >> 1, 0);
            bench_run(b, "product", m);
            double worst = 0;
            for (int row = 0; row < m; row++)
                for (int column = 0; column < n; column++) {
                    double sum = 0;
                    for (int at = 0; at < k; at++)
                        sum += (double)(turned & 1 ? a[at * m + row] : a[row * k + at]) *
                               (turned & 2 ? w[column * k + at] : w[at * n + column]);
                    worst = fmax(worst, fabs(sum - c[row * n + column]));
                }
            expect(worst <= 1e-6 * k + 1e-6, "product %d x %d x %d, turned %d: off by %g", m, n, k, turned, worst);
            bench_free(b);
        }
}

static void test_hostile_programs(void) {
    char memory[1024];
    hedgerow_region region = {memory, sizeof memory, 1};
    hedgerow_record record;
    hedgerow_refusal refusal;
    int refused = 0;
    for (int number = 0; number < 20000; number++) {
        for (size_t at = 0; at < sizeof record; at += 4) {
            uint32_t word = random_word();
            memcpy((char *)&record + at, &word, 4);
        }
        record.op = (int32_t)(random_word() % (uint32_t)(hedgerow_operator_count() + 1));
        record.parts = 1;
        hedgerow_program *program = hedgerow_open(&record, 1, &region, 1, &refusal);
        refused += program == NULL;
        if (program != NULL)
            hedgerow_run(program, 1);
        hedgerow_close(program);
    }
    expect(refused == 20000, "of 20000 random records %d were refused", refused);
}

/* Let the sizes of a window, which begin at `first`, go together. */
static void agree(int64_t *sizes, int first) {
    int64_t *w = sizes + first;
    for (int axis = 0; axis < 2; axis++) {
        w[axis] += 1 + w[4 + axis];
        w[4 + axis] += 1;
        w[6 + axis] += 1;
        w[2 + axis] = (w[axis] + 2 * w[8 + axis] - w[4 + axis]) / w[6 + axis] + 1;
    }
}

/* Records with small numbers, of which many are accepted: what is accepted is run, and a sanitizer watches. */
static void test_small_random_programs(void) {
    int accepted[256] = {0}, count = hedgerow_operator_count();
    for (int number = 0; number < 60000; number++) {
        bench *b = bench_new();
        int op = (int)(random_word() % (uint32_t)count), operands = 2 + (int)(random_word() % 7);
        for (int at = 0; at < HEDGEROW_SIZES; at++)
            b->record.sizes[at] = random_word() % 3 == 0 ? 1 : random_word() % 5;
        if (random_word() % 2)
            agree(b->record.sizes, 2 + (int)(random_word() % 2));
        for (int at = 0; at < operands; at++)
            bench_bytes(b, at, 4 * (int64_t)(random_word() % 4 == 0 ? random_word() % 64 : 1500));
        b->record.numbers[0] = 1;
        accepted[op] += bench_try(b, op);
        bench_free(b);
    }
    for (int op = 0; op < count; op++)
        expect(accepted[op] > 0, "%s was never accepted", hedgerow_operator_name(op));
}

int main(int count, char **words) {
    static const char *const sets[] = {"avx2", "sse2", "neon", "generic"};
    for (size_t at = 0; at < sizeof sets / sizeof sets[0]; at++) {
        if (hedgerow_use_instruction_set(sets[at]) != 0)
            continue;
        printf("instruction set %s\n", hedgerow_instruction_set());
        test_by_samples();
        test_sample_norms();
        test_products();
        test_training_kernels();
        test_hostile_programs();
        test_small_random_programs();
        for (int at = 1; at < count; at++)
            test_recorded_cases(words[at]);
    }
    return finish();
}
