/* Chebyshev moments of magnitudes, cell by cell. The wrapper is `deposit` in sample.py. */
#ifndef real

#include <math.h>
#include <string.h>

#include "chebyshev.h"
#include "loops.h"

/* The shifts that make a key of a double's bits are those of sample.py. A key keeps the exponent and the first 9 (or 2)
   bits of the mantissa: it is monotone. */
enum { FINE = 43, COARSE = 50 };

/* Entries are treated in short blocks, pass by pass, so that the processor waits for many cells at once. Blocks of 32 to
   128 entries take the same time, single entries half as much again. */
enum { BLOCK = 32 };

INLINE int64_t key_of(double v, int shift) {
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits >> shift;
}

#define LOOP "deposit.c"
#include "both_precisions.h"

#else

/* Adds the moments of every |y| to the row of its cell; returns how many entries are not finite or beyond the cells.

   Cell j holds edges[j] < |y| <= edges[j + 1]. Up to edges[tail_cell] it is looked up in `table` by the fine key of
   |y| * unit; beyond, the edges are the values at which the coarse key changes. */
EXPORT int64_t NAME(deposit)(int64_t n, const real *restrict y, int64_t cells, const double *restrict edges,
                             const double *restrict middle, const double *restrict scale, int64_t keys,
                             const int32_t *restrict table, double unit, int64_t first_key, int64_t tail_cell,
                             int64_t tail_key, double *restrict moments) {
    int64_t left_out = 0;
    const double top = edges[tail_cell], largest = edges[cells];
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t stop = least(start + BLOCK, n);
        int64_t cell[BLOCK], found = 0;
        double t[BLOCK];
        for (int64_t i = start; i < stop; i++) {
            const double v = fabs((double)y[i]);
            if (v <= top) {
                cell[found] = table[least(most(key_of(v * unit, FINE) - first_key, 0), keys - 1)];
            } else if (v <= largest) {
                cell[found] = least(tail_cell + key_of(v, COARSE) - tail_key, cells - 1);
            } else {
                left_out++;
                continue;
            }
            t[found++] = v;
        }
        for (int64_t k = 0; k < found; k++) {
            const double v = t[k];
            int64_t j = cell[k];
            /* Often one of the next two. Steps without a branch cost less than a branch that is taken by chance. */
            j += edges[j + 1] < v;
            j += edges[j + 1] < v;
            while (edges[j + 1] < v) j++;
            while (j > 0 && edges[j] >= v) j--;
            cell[k] = j;
            t[k] = (v - middle[j]) * scale[j];
        }
        for (int64_t k = 0; k < found; k++) add_moments(1.0, t[k], moments + ORDER * cell[k]);
    }
    return left_out;
}

#endif
