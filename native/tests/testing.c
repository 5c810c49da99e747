#include "testing.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int expectations, disappointments;
static uint32_t state = 1;

uint32_t random_word(void) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

float random_float(void) { return (float)(random_word() >> 8) / 8388608.0F - 1; }

bench *bench_new(void) {
    bench *b = calloc(1, sizeof *b);
    for (int at = 0; at < HEDGEROW_OPERANDS; at++)
        b->record.operands[at].region = -1;
    return b;
}

void bench_free(bench *b) {
    for (int at = 0; at < HEDGEROW_OPERANDS; at++)
        free(b->regions[at].base);
    free(b);
}

void *bench_bytes(bench *b, int at, int64_t bytes) {
    b->regions[at] = (hedgerow_region){calloc(1, (size_t)bytes), bytes, 1};
    b->record.operands[at] = (hedgerow_operand){at, 0, bytes};
    return b->regions[at].base;
}

static float *randomise(float *floats, int64_t elements) {
    for (int64_t number = 0; number < elements; number++)
        floats[number] = random_float();
    return floats;
}

float *bench_floats(bench *b, int at, int64_t elements) {
    return randomise(bench_bytes(b, at, 4 * elements), elements);
}

void bench_sizes(bench *b, int count, ...) {
    va_list sizes;
    va_start(sizes, count);
    for (int at = 0; at < count; at++)
        b->record.sizes[at] = va_arg(sizes, int);
    va_end(sizes);
}

static void keep(bench *b, char *copies[], int back) {
    for (int at = 0; at < HEDGEROW_OPERANDS; at++) {
        size_t bytes = (size_t)b->regions[at].bytes;
        if (bytes == 0)
            continue;
        if (!back)
            copies[at] = malloc(bytes);
        memcpy(back ? b->regions[at].base : copies[at], back ? copies[at] : b->regions[at].base, bytes);
    }
}

void bench_run(bench *b, const char *name, int64_t units) {
    char *before[HEDGEROW_OPERANDS] = {0}, *after[HEDGEROW_OPERANDS] = {0};
    hedgerow_refusal refusal;
    b->record.op = hedgerow_operator(name);
    b->record.parts = 2;
    b->record.cuts[1] = units / 2;
    b->record.cuts[2] = units;
    hedgerow_program *program = hedgerow_open(&b->record, 1, b->regions, HEDGEROW_OPERANDS, &refusal);
    expect(program != NULL, "%s was refused: verdict %d", name, (int)refusal.verdict);
    if (program == NULL)
        return;
    keep(b, before, 0);
    hedgerow_run(program, 2);
    keep(b, after, 0);
    keep(b, before, 1);
    hedgerow_run(program, 1);
    for (int at = 0; at < HEDGEROW_OPERANDS; at++)
        if (after[at] != NULL)
            expect(memcmp(after[at], b->regions[at].base, (size_t)b->regions[at].bytes) == 0,
                   "%s: two threads gave other bits than one in operand %d", name, at);
    for (int at = 0; at < HEDGEROW_OPERANDS; at++) {
        free(before[at]);
        free(after[at]);
    }
    hedgerow_close(program);
}

int bench_try(bench *b, int op) {
    hedgerow_refusal refusal;
    hedgerow_program *program = NULL;
    b->record.op = op;
    b->record.parts = 2;
    /* Work is cut at one and at its end, which only the library knows: so ends are tried. */
    for (int64_t end = 0; end <= 2500 && program == NULL; end += end < 16 ? 1 : 17) {
        b->record.cuts[1] = end > 0;
        b->record.cuts[2] = end;
        program = hedgerow_open(&b->record, 1, b->regions, HEDGEROW_OPERANDS, &refusal);
        if (program == NULL && refusal.verdict != HEDGEROW_WRONG_RANGES)
            return 0;
    }
    if (program == NULL)
        return 0;
    /* Only now: most records are refused, and an emulated processor takes long for random numbers. */
    for (int at = 0; at < HEDGEROW_OPERANDS; at++)
        randomise(b->regions[at].base, b->regions[at].bytes / 4);
    hedgerow_run(program, 1);
    hedgerow_close(program);
    return 1;
}

void expect(int fine, const char *sentence, ...) {
    expectations++;
    if (fine)
        return;
    disappointments++;
    va_list values;
    va_start(values, sentence);
    vprintf(sentence, values);
    va_end(values);
    printf("\n");
}

int finish(void) {
    printf("%d of %d expectations met\n", expectations - disappointments, expectations);
    return disappointments != 0;
}
