/* What every loop needs: fixed-width types, names of both precisions, and the differences between compilers. */
#ifndef SCORETHRESH_LOOPS_H
#define SCORETHRESH_LOOPS_H

#include <stdint.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* Sizes that are constants of the caller become constants of the loop. */
#if defined(__GNUC__) || defined(__clang__)
#define INLINE static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define INLINE static __forceinline
#else
#define INLINE static inline
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define restrict __restrict
#endif

/* Before a loop: no turn of it reads what another one writes. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#define UNROLL _Pragma("GCC unroll 16")
#elif defined(_MSC_VER)
#define INDEPENDENT __pragma(loop(ivdep))
#define UNROLL
#else
#define INDEPENDENT
#define UNROLL
#endif

/* In a loop: it is not vectorised. Processors gather entries from memory more slowly than they read one by one. */
#if defined(__GNUC__) || defined(__clang__)
#define ONE_BY_ONE __asm__ volatile("")
#else
#define ONE_BY_ONE
#endif

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Returns the sum of products. Eight sums run side by side, so that it can be vectorised. */
INLINE double dot(int64_t n, const double *restrict a, const double *restrict b) {
    double sums[8] = {0}, rest = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) sums[k] += a[i + k] * b[i + k];
    for (; i < n; i++) rest += a[i] * b[i];
    return rest + (((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])));
}

#endif
