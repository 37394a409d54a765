/* Moments of entries t in [-1, 1]: sums of products of Chebyshev polynomials.

   Moment q is the sum of the product of T_1, T_2, T_4 and T_8 that the bits of q name: T_1 T_4 for q = 5. These span the
   polynomials of degree below ORDER as well as T_0, T_1, ... do, and four of them cost two products. */
#ifndef SCORETHRESH_MOMENTS_H
#define SCORETHRESH_MOMENTS_H

#include <string.h>

#include "loops.h"
#include "vectors.h"

/* Moments of a cell, and its nodes: that of moments.py. */
enum { ORDER = 12 };

typedef VECTOR(double, 32) four;

/* The factors of the products, T_1 and T_2 less 1. */
typedef struct {
    double first_less_1, second_less_1, fourth, eighth;
} factors;

INLINE factors factors_of(double t) {
    const double second = 2.0 * t * t - 1.0, fourth = 2.0 * second * second - 1.0;
    return (factors){t - 1.0, second - 1.0, fourth, 2.0 * fourth * fourth - 1.0};
}

/* Adds the products of an entry, times its weight, to a row of moments. */
INLINE void add_products(double weight, factors of, double *restrict row) {
    const four one = {1.0, 1.0, 1.0, 1.0}, odd = {0.0, 1.0, 0.0, 1.0}, upper = {0.0, 0.0, 1.0, 1.0};
    const four low = weight * (one + odd * of.first_less_1) * (one + upper * of.second_less_1);
    const four products[3] = {low, low * of.fourth, low * of.eighth};
    UNROLL
    for (int q = 0; q < 3; q++) {
        four sums;
        memcpy(&sums, row + 4 * q, sizeof sums);
        sums += products[q];
        memcpy(row + 4 * q, &sums, sizeof sums);
    }
}

#endif
