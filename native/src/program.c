/* Programs: records are checked and bound once, then walked. */
#include <stdlib.h>
#include <string.h>

#include "crew.h"
#include "kernel.h"

struct hedgerow_program {
    const hedgerow_kernel *kernels;
    int64_t count;
    hedgerow_call calls[];
};

static hedgerow_verdict check_operand(const hedgerow_operand *operand, const hedgerow_region *regions,
                                      int64_t region_count, bool written) {
    if (operand->region == -1)
        return HEDGEROW_FINE;
    if (operand->region < 0 || operand->region >= region_count)
        return HEDGEROW_OPERAND_OUTSIDE;
    const hedgerow_region *region = &regions[operand->region];
    if (operand->offset < 0 || operand->bytes < 0 || operand->bytes > region->bytes ||
        operand->offset > region->bytes - operand->bytes)
        return HEDGEROW_OPERAND_OUTSIDE;
    return written && !region->writable ? HEDGEROW_OPERAND_READ_ONLY : HEDGEROW_FINE;
}

static hedgerow_verdict check_cuts(const hedgerow_record *record, int64_t units) {
    if (record->parts < 1 || record->parts > HEDGEROW_PARTS)
        return HEDGEROW_WRONG_RANGES;
    if (record->cuts[0] != 0 || record->cuts[record->parts] != units)
        return HEDGEROW_WRONG_RANGES;
    for (int part = 0; part < record->parts; part++)
        if (record->cuts[part] > record->cuts[part + 1])
            return HEDGEROW_WRONG_RANGES;
    return HEDGEROW_FINE;
}

static hedgerow_verdict check_sizes(const hedgerow_record *record) {
    /* No kernel needs larger ones, and with them no product of three overflows. */
    for (int at = 0; at < HEDGEROW_SIZES; at++)
        if (record->sizes[at] < 0 || record->sizes[at] > INT64_C(1) << 40)
            return HEDGEROW_WRONG_SIZES;
    return HEDGEROW_FINE;
}

static hedgerow_verdict check(const hedgerow_record *record, const hedgerow_table *table,
                              const hedgerow_region *regions, int64_t region_count) {
    if (record->op < 0 || record->op >= table->count)
        return HEDGEROW_UNKNOWN_OPERATOR;
    const hedgerow_kernel *kernel = &table->kernels[record->op];
    hedgerow_verdict verdict = check_sizes(record);
    for (int at = 0; at < HEDGEROW_OPERANDS && verdict == HEDGEROW_FINE; at++)
        verdict = check_operand(&record->operands[at], regions, region_count, kernel->written >> at & 1);
    int64_t units = 0;
    if (verdict == HEDGEROW_FINE)
        verdict = kernel->check(record, &units);
    return verdict == HEDGEROW_FINE ? check_cuts(record, units) : verdict;
}

static void bind(hedgerow_call *call, const hedgerow_record *record, const hedgerow_region *regions) {
    call->record = *record;
    for (int at = 0; at < HEDGEROW_OPERANDS; at++) {
        const hedgerow_operand *operand = &record->operands[at];
        call->at[at] = operand->region < 0 ? NULL : (char *)regions[operand->region].base + operand->offset;
    }
}

static hedgerow_program *refuse(hedgerow_refusal *refusal, int64_t record, hedgerow_verdict verdict) {
    refusal->record = record;
    refusal->verdict = verdict;
    return NULL;
}

hedgerow_program *hedgerow_open(const hedgerow_record *records, int64_t record_count, const hedgerow_region *regions,
                                int64_t region_count, hedgerow_refusal *refusal) {
    const hedgerow_table *table = hedgerow_current_table();
    for (int64_t at = 0; at < record_count; at++) {
        hedgerow_verdict verdict = check(&records[at], table, regions, region_count);
        if (verdict != HEDGEROW_FINE)
            return refuse(refusal, at, verdict);
    }
    hedgerow_program *program = malloc(sizeof *program + (size_t)record_count * sizeof program->calls[0]);
    if (program == NULL)
        return refuse(refusal, 0, HEDGEROW_NO_MEMORY);
    program->kernels = table->kernels;
    program->count = record_count;
    for (int64_t at = 0; at < record_count; at++)
        bind(&program->calls[at], &records[at], regions);
    *refusal = (hedgerow_refusal){0, HEDGEROW_FINE};
    return program;
}

void hedgerow_close(hedgerow_program *program) { free(program); }

static int parts(const void *work, int64_t at) {
    const hedgerow_program *program = work;
    return program->calls[at].record.parts;
}

static void run_part(const void *work, int64_t at, int part) {
    const hedgerow_program *program = work;
    const hedgerow_call *call = &program->calls[at];
    int64_t first = call->record.cuts[part], end = call->record.cuts[part + 1];
    if (first < end)
        program->kernels[call->record.op].run(call, first, end, part);
}

void hedgerow_run(hedgerow_program *program, int32_t threads) {
    if (threads > HEDGEROW_PARTS)
        threads = HEDGEROW_PARTS;
    const hedgerow_tasks tasks = {program->count, program, parts, run_part};
    if (threads > 1 && hedgerow_together(&tasks, threads))
        return;
    for (int64_t at = 0; at < program->count; at++)
        for (int part = 0; part < program->calls[at].record.parts; part++)
            run_part(program, at, part);
}
