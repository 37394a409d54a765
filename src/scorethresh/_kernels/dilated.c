/* A filter with taps far apart, along one axis and in a circle. The wrapper is `dilated` in frame.py. */
#ifndef real

#include "loops.h"

/* Returns i modulo n, for i from -n to n - 1. Divisions would take as long as rows of some hundred entries. */
INLINE int64_t wrapped(int64_t i, int64_t n) { return i < 0 ? i + n : i; }

#define LOOP "dilated.c"
#include "both_precisions.h"

#else

/* Sets out to a x + b z, or adds it there. */
INLINE void NAME(two_taps)(int64_t width, real a, const real *restrict x, real b, const real *restrict z, int64_t add,
                           real *restrict out) {
    if (add) {
        for (int64_t k = 0; k < width; k++) out[k] += a * x[k] + b * z[k];
    } else {
        for (int64_t k = 0; k < width; k++) out[k] = a * x[k] + b * z[k];
    }
}

/* Filters along the middle of three axes: out[i] = sum over k of taps[k] x[i + shift - k step], indices modulo n.

   `size` is even; step and shift lie between 0 and n - 1. If `add`, the result is added to `out`. */
EXPORT void NAME(dilated)(int64_t outer, int64_t n, int64_t inner, int64_t size, int64_t step, int64_t shift,
                          int64_t add, const real *restrict taps, const real *restrict x, real *restrict out) {
    for (int64_t o = 0; o < outer; o++) { /* a short row stays in the cache while all taps are added up */
        const real *restrict from = x + o * n * inner;
        real *restrict to = out + o * n * inner;
        int64_t first = shift, second; /* where the two taps of the first entry lie, in the circle */
        for (int64_t k = 0; k < size; k += 2, first = wrapped(second - step, n)) {
            second = wrapped(first - step, n);
            /* Between the positions at which one of the two wraps around, both are read in a straight line. */
            const int64_t low = n - most(first, second), high = n - least(first, second);
            const int64_t starts[4] = {0, low, high, n};
            for (int piece = 0; piece < 3; piece++) {
                const int64_t r = starts[piece];
                const int64_t i = wrapped(r + first - n, n), j = wrapped(r + second - n, n);
                NAME(two_taps)((starts[piece + 1] - r) * inner, taps[k], from + i * inner, taps[k + 1],
                               from + j * inner, add || k > 0, to + r * inner);
            }
        }
    }
}

#endif
