/* Chebyshev moments of entries, and few nodes that stand for many entries in sums of polynomials. */
#ifndef SCORETHRESH_CHEBYSHEV_H
#define SCORETHRESH_CHEBYSHEV_H

#include <math.h>
#include <string.h>

#include "loops.h"
#include "vectors.h"

/* Moments of a cell, and its nodes: that of sample.py. */
enum { ORDER = 12 };

typedef VECTOR(double, 32) four;

/* Adds weight times the Chebyshev polynomials T_0(t), T_1(t), ... to a row, four at once:
   T_(q+4) = 2 T_4 T_q - T_|q-4|. */
INLINE void add_moments(double weight, double t, double *restrict row) {
    const double second = 2.0 * t * t - 1.0, third = 2.0 * t * second - t, fourth = 2.0 * second * second - 1.0;
    four before = {fourth, third, second, t}, last = {1.0, t, second, third};
    UNROLL
    for (int q = 0; q < ORDER; q += 4) {
        four sums;
        memcpy(&sums, row + q, sizeof sums);
        sums += weight * last;
        memcpy(row + q, &sums, sizeof sums);
        const four next = 2.0 * fourth * last - before;
        before = last;
        last = next;
    }
}

/* The nodes on [-1, 1]. Column p of `weights` times the moments is the weight of node p. */
typedef struct {
    double node[ORDER], weights[ORDER][ORDER];
} chebyshev;

INLINE chebyshev chebyshev_basis(void) {
    chebyshev basis;
    for (int p = 0; p < ORDER; p++) {
        const double angle = 3.14159265358979323846 * (p + 0.5) / ORDER;
        basis.node[p] = cos(angle);
        for (int q = 0; q < ORDER; q++) basis.weights[q][p] = (q ? 2.0 : 1.0) / ORDER * cos(q * angle);
    }
    return basis;
}

/* Sets the weights of nodes such that sums over them are those over the entries with these moments, for polynomials of
   degree below ORDER. */
INLINE void node_weights(const chebyshev *restrict basis, const double *restrict moments, double *restrict w) {
    double sums[ORDER] = {0};
    for (int q = 0; q < ORDER; q++)
        for (int p = 0; p < ORDER; p++) sums[p] += basis->weights[q][p] * moments[q];
    memcpy(w, sums, sizeof sums);
}

#endif
