/* What the processor can do, asked of itself: the compilers' own questions need libraries that not all of them bring. */
#include "processor.h"

#include <stdint.h>

#if defined(HEDGEROW_WITH_AVX2)
#include <cpuid.h>

/* Bits of CPUID that make up x86-64-v3, by leaf and register. */
enum {
    LEAF_1_ECX = 1 << 12 | 1 << 22 | 1 << 23 | 1 << 27 | 1 << 28 | 1 << 29, /* FMA MOVBE POPCNT OSXSAVE AVX F16C */
    LEAF_7_EBX = 1 << 3 | 1 << 5 | 1 << 8,                                  /* BMI1 AVX2 BMI2 */
    EXTENDED_ECX = 1 << 5,                                                  /* LZCNT */
    KEPT_BY_SYSTEM = 1 << 1 | 1 << 2                                        /* XCR0: SSE and AVX registers */
};

static bool has(uint32_t found, uint32_t wanted) { return (found & wanted) == wanted; }

bool hedgerow_has_richer_set(void) {
    uint32_t a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, LEAF_1_ECX))
        return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, LEAF_7_EBX))
        return false;
    if (!__get_cpuid(0x80000001U, &a, &b, &c, &d) || !has(c, EXTENDED_ECX))
        return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return has(low, KEPT_BY_SYSTEM);
}
#elif defined(HEDGEROW_WITH_NEON)
#include <sys/auxv.h>

enum { HARDWARE_HAS_NEON = 1 << 12 }; /* as Linux tells it on 32-bit ARM */

bool hedgerow_has_richer_set(void) { return (getauxval(AT_HWCAP) & HARDWARE_HAS_NEON) != 0; }
#else
bool hedgerow_has_richer_set(void) { return false; }
#endif
