/* Moments of magnitudes, cell by cell. The wrapper is `deposit` in sample.py. */
#ifndef real

#include <math.h>
#include <string.h>

#include "loops.h"
#include "moments.h"

/* The shifts that make a key of a double's bits are those of sample.py. A key keeps the exponent and the first 9 (or 2)
   bits of the mantissa: it is monotone. */
enum { FINE = 43, COARSE = 50 };

/* Entries are treated in short blocks, pass by pass: some passes are vectorised, in the others the processor waits for
   many cells at once. Blocks of 32 to 128 entries take the same time, single entries half as much again. */
enum { BLOCK = 64 };

/* Of non-negative numbers: key_of(v, FINE) fits into 21 bits. */
INLINE int32_t key_of(double v, int shift) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (int32_t)(bits >> shift);
}

/* How cells are found: see `CellTable` in sample.py. */
typedef struct {
    int64_t cells, tail_cell;
    const double *edges, *middle, *scale;
    const int32_t *table;
    double unit;
    int32_t first_key, last, tail_key;
} search;

/* Sets the cells of the entries beyond the table, closes up where some are beyond all cells, and returns how many are
   left. */
static int64_t place_far(const search *in, int64_t n, double *restrict v, int32_t *restrict cell) {
    const double top = in->edges[in->tail_cell], largest = in->edges[in->cells];
    int64_t left = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t j = cell[i];
        if (!(v[i] <= largest)) continue;
        if (v[i] > top) {
            j = least(in->tail_cell + key_of(v[i], COARSE) - in->tail_key, in->cells - 1);
            j -= in->edges[j] >= v[i]; /* an edge belongs to the cell below it */
        }
        cell[left] = (int32_t)j;
        v[left++] = v[i];
    }
    return left;
}

#define LOOP "deposit.c"
#include "both_precisions.h"

#else

/* Sets the magnitudes of up to BLOCK entries and their cells, or cells a little before; returns how many are left. */
INLINE int64_t NAME(place)(const search *in, int64_t n, const real *restrict y, double *restrict v,
                           int32_t *restrict cell) {
    const double top = in->edges[in->tail_cell];
    int32_t far = 0;
    for (int64_t i = 0; i < n; i++) {
        v[i] = fabs((double)y[i]);
        const int32_t key = key_of(v[i] * in->unit, FINE) - in->first_key, above = key > 0 ? key : 0;
        cell[i] = above < in->last ? above : in->last;
        far += !(v[i] <= top);
    }
    for (int64_t i = 0; i < n; i++) {
        ONE_BY_ONE;
        cell[i] = in->table[cell[i]];
    }
    return far ? place_far(in, n, v, cell) : n;
}

/* Adds the moments of every |y| to the row of its cell; returns how many entries are not finite or beyond the cells.

   Cell j holds edges[j] < |y| <= edges[j + 1]. Up to edges[tail_cell] it is looked up in `table` by the fine key of
   |y| * unit; beyond, the edges are the values at which the coarse key changes. */
EXPORT int64_t NAME(deposit)(int64_t n, const real *restrict y, int64_t cells, const double *restrict edges,
                             const double *restrict middle, const double *restrict scale, int64_t keys,
                             const int32_t *restrict table, double unit, int64_t first_key, int64_t tail_cell,
                             int64_t tail_key, double *restrict moments) {
    const search in = {cells, tail_cell, edges, middle, scale, table, unit, (int32_t)first_key, (int32_t)(keys - 1),
                       (int32_t)tail_key};
    int64_t left_out = 0;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t size = least(BLOCK, n - start);
        int32_t cell[BLOCK];
        double t[BLOCK], first[BLOCK], second[BLOCK], fourth[BLOCK], eighth[BLOCK];
        const int64_t found = NAME(place)(&in, size, y + start, t, cell);
        left_out += size - found;
        for (int64_t k = 0; k < found; k++) {
            ONE_BY_ONE;
            const double v = t[k];
            int64_t j = cell[k];
            j += edges[j + 1] < v; /* a step without a branch costs less than a branch that is taken by chance */
            while (edges[j + 1] < v) j++;
            cell[k] = (int32_t)j;
            t[k] = (v - middle[j]) * scale[j];
        }
        for (int64_t k = 0; k < found; k++) {
            const factors of = factors_of(t[k]);
            first[k] = of.first_less_1;
            second[k] = of.second_less_1;
            fourth[k] = of.fourth;
            eighth[k] = of.eighth;
        }
        for (int64_t k = 0; k < found; k++)
            add_products(1.0, (factors){first[k], second[k], fourth[k], eighth[k]}, moments + ORDER * (int64_t)cell[k]);
    }
    return left_out;
}

#endif
