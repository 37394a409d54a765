/* The sums of Stein's formula at one threshold, in one pass over the entries. The wrapper is `stein_sums` in stein.py. */
#ifndef real

#include <math.h>

#include "exp2.h"
#include "loops.h"

/* Entries of a block are evaluated, then added up. */
enum { BLOCK = 256, MOST_PIECES = 4 };

/* A kernel value 2^x; 0 below the smallest normal double. */
INLINE double kernel_value(double x) {
    const double value = power_of_2(x > -1020.0 ? x : -1020.0);
    return x > -1020.0 ? value : 0.0;
}

#define LOOP "stein_sums.c"
#include "both_precisions.h"

#else

/* The number of pieces is a constant of the caller. */
INLINE void NAME(sum_pieces)(const int pieces, int64_t n, const real *restrict y, double sigma,
                             const double *restrict starts, const double *restrict terms, double position, double c,
                             double *restrict out) {
    double ones[BLOCK], slopes[BLOCK], risks[BLOCK], kernels[BLOCK];
    for (int i = 0; i < BLOCK; i++) ones[i] = 1;
    for (int64_t first = 0; first < n; first += BLOCK) {
        const int64_t count = least(BLOCK, n - first);
        for (int64_t i = 0; i < count; i++) {
            const double v = fabs((double)y[first + i]), z = v / sigma, below = z - position, above = z + position;
            double slope = terms[0], c0 = terms[1], c1 = terms[2], c2 = terms[3];
            UNROLL
            for (int p = 1; p < pieces; p++) {
                /* Read before the choice, which the compiler then turns into a blend. */
                const double a = terms[4 * p], b0 = terms[4 * p + 1], b1 = terms[4 * p + 2], b2 = terms[4 * p + 3];
                const int on = v > starts[p - 1];
                slope = on ? a : slope;
                c0 = on ? b0 : c0;
                c1 = on ? b1 : c1;
                c2 = on ? b2 : c2;
            }
            slopes[i] = slope;
            risks[i] = c0 + z * (c1 + z * c2);
            kernels[i] = kernel_value(c * below * below) + kernel_value(c * above * above);
        }
        out[0] += dot(count, ones, slopes);
        out[1] += dot(count, ones, risks);
        out[2] += dot(count, risks, risks);
        out[3] += dot(count, ones, kernels);
        out[4] += dot(count, kernels, kernels);
        out[5] += dot(count, kernels, risks);
    }
}

/* Adds to out, for one threshold, the sums over the entries of slope, s, s^2, K, K^2 and K s; returns how many entries
   are not below `limit`, or not a number.

   On piece p, starts[p - 1] < |y| <= starts[p], the rule has the slope terms[p, 0] and the risk of an entry is
   s = terms[p, 1] + terms[p, 2] z + terms[p, 3] z^2, with z = |y| / sigma. K = 2^(c (z - a)^2) + 2^(c (z + a)^2) with
   a = `position` and c < 0. There are 2 to MOST_PIECES pieces. */
EXPORT int64_t NAME(stein_sums)(int64_t n, const real *restrict y, double sigma, double limit, int64_t pieces,
                                const double *restrict starts, const double *restrict terms, double position, double c,
                                double *restrict out) {
    int64_t bad = 0;
    for (int64_t i = 0; i < n; i++) bad += !(fabs((double)y[i]) < limit);
    if (bad) return bad;
    if (pieces == 2) {
        NAME(sum_pieces)(2, n, y, sigma, starts, terms, position, c, out);
    } else if (pieces == 3) {
        NAME(sum_pieces)(3, n, y, sigma, starts, terms, position, c, out);
    } else {
        NAME(sum_pieces)(MOST_PIECES, n, y, sigma, starts, terms, position, c, out);
    }
    return 0;
}

#endif
