/* Which of the libraries this processor can run. */
#include "loops.h"

#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))

#include <cpuid.h>

static int has(unsigned value, unsigned bits) { return (value & bits) == bits; }

/* Returns 4 or 3 if processor and system support that level of x86-64, else 1. */
EXPORT int64_t cpu_level(void) {
    unsigned a, b, c, d, enabled, unused;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 1;
    /* FMA, MOVBE, OSXSAVE, AVX, F16C */
    if (!has(c, 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29)) return 1;
    __asm__ volatile("xgetbv" : "=a"(enabled), "=d"(unused) : "c"(0));
    /* The system saves the registers of SSE and AVX. */
    if (!has(enabled, 0x6)) return 1;
    /* LZCNT */
    if (!__get_cpuid(0x80000001u, &a, &b, &c, &d) || !has(c, 1u << 5)) return 1;
    /* BMI1, AVX2, BMI2 */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, 1u << 3 | 1u << 5 | 1u << 8)) return 1;
    /* AVX512: F, DQ, CD, BW, VL, and the system saves their registers. */
    return has(b, 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31) && has(enabled, 0xe6) ? 4 : 3;
}

#else

EXPORT int64_t cpu_level(void) { return 1; }

#endif
