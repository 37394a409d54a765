/* Non-negative least squares by active sets (Lawson and Hanson), for few variables. Rows of matrices are padded to a
   multiple of BLOCK entries, so that loops over them have no rest. A factor is kept while variables join or leave. */
#ifndef SCORETHRESH_NONNEGATIVE_H
#define SCORETHRESH_NONNEGATIVE_H

#include <math.h>

#include "loops.h"

#define BLOCK 8

INLINE int64_t padded(int64_t n) { return (n + BLOCK - 1) / BLOCK * BLOCK; }

/* A problem of n variables: the x >= 0 that minimises d' gram d / 2 - slope' d with d = x - start. Rows of all matrices
   are `row` = padded(n) entries long; what is beyond n is 0 in `gram`, `slope` and `start`. The rest is scratch memory:
   `lower` and `upper` hold the Cholesky factor of the active variables and its transpose without their diagonals,
   `inverse` one over these. */
struct least_squares {
    int64_t n, row;
    double *gram, *slope, *start, *x;
    double *lower, *upper, *inverse, *s, *left, *right;
    int64_t *order, *active; /* the active variables in the order of the factor; whether each variable is active */
};

/* Subtracts factor times b from a, from the block that holds entry `first` to that before `end`. */
INLINE void subtract(int64_t first, int64_t end, double factor, const double *restrict b, double *restrict a) {
    for (int64_t i = first / BLOCK * BLOCK; i < end; i += BLOCK)
        for (int k = 0; k < BLOCK; k++) a[i + k] -= factor * b[i + k];
}

/* Adds rows of the Cholesky factor of the first `count` active variables, of which `known` have theirs. */
static void factorise(const struct least_squares *m, int64_t known, int64_t count, double ridge) {
    for (int64_t a = known; a < count; a++) {
        double *restrict r = m->lower + a * m->row, *restrict u = m->upper + a * m->row;
        const double *restrict from = m->gram + m->order[a] * m->row;
        for (int64_t b = 0; b < m->row; b++) u[b] = 0;
        for (int64_t b = 0; b <= a; b++) r[b] = from[m->order[b]];
        for (int64_t b = 0; b < a; b++) {
            r[b] *= m->inverse[b];
            m->upper[b * m->row + a] = r[b];
            subtract(b + 1, a + 1, r[b], m->upper + b * m->row, r);
        }
        /* Rounding must not take a pivot below the ridge. */
        m->inverse[a] = 1 / sqrt(r[a] > 0 ? r[a] + ridge : ridge);
        for (int64_t b = a; b < m->row; b++) r[b] = 0;
    }
}

/* Sets s to the minimum over the active variables, given their factor; others are 0. */
static void solve_active(const struct least_squares *m, int64_t count) {
    double *restrict v = m->left, *restrict fixed = m->right;
    int any = 0;
    for (int64_t i = 0; i < m->row; i++) {
        m->s[i] = v[i] = 0;
        fixed[i] = i < m->n && !m->active[i] ? m->start[i] : 0; /* what such a variable loses */
        any |= fixed[i] != 0;
    }
    for (int64_t a = 0; a < count; a++) {
        const int64_t i = m->order[a];
        v[a] = m->slope[i] + (any ? dot(m->row, m->gram + i * m->row, fixed) : 0);
    }
    for (int64_t a = 0; a < count; a++) {
        v[a] *= m->inverse[a];
        subtract(a + 1, count, v[a], m->upper + a * m->row, v);
    }
    for (int64_t a = count - 1; a >= 0; a--) {
        v[a] *= m->inverse[a];
        subtract(0, a, v[a], m->lower + a * m->row, v);
        m->s[m->order[a]] = m->start[m->order[a]] + v[a];
    }
}

/* Removes the variables that are no longer positive from the list of active ones, of which `count` are left. Returns
   how many rows of the factor stay right. */
static int64_t drop_inactive(const struct least_squares *m, int64_t *count) {
    int64_t kept = 0, known = *count;
    for (int64_t a = 0; a < *count; a++) {
        const int64_t i = m->order[a];
        if (m->x[i] > 1e-14) {
            m->order[kept++] = i;
            continue;
        }
        known = least(known, a);
        m->active[i] = 0;
        m->x[i] = 0;
    }
    *count = kept;
    return known;
}

/* Solves the problem: sets x. */
static void solve_nonnegative(const struct least_squares *m) {
    double *x = m->x, *s = m->s, trace = 0;
    int64_t count = 0, known = 0;
    for (int64_t i = 0; i < m->row; i++) x[i] = 0;
    for (int64_t i = 0; i < m->n; i++) {
        trace += m->gram[i * m->row + i];
        if ((m->active[i] = m->start[i] > 0)) m->order[count++] = i;
    }
    for (int64_t turn = 0; turn < 3 * m->n; turn++) {
        while (count) {
            factorise(m, known, count, 1e-13 * trace);
            known = count;
            solve_active(m, count);
            double rate = 2;
            for (int64_t a = 0; a < count; a++) {
                const int64_t i = m->order[a];
                const double fall = x[i] - s[i], most_rate = x[i] / (fall > 1e-300 ? fall : 1e-300);
                if (s[i] <= 0 && most_rate < rate) rate = most_rate;
            }
            for (int64_t i = 0; i < m->n; i++) x[i] = rate > 1 ? s[i] : x[i] + rate * (s[i] - x[i]);
            if (rate > 1) break;
            known = drop_inactive(m, &count);
        }
        for (int64_t i = 0; i < m->row; i++) m->right[i] = x[i] - m->start[i];
        double steepest = 1e-10;
        int64_t next = -1;
        for (int64_t i = 0; i < m->n; i++) {
            if (m->active[i]) continue;
            const double left = m->slope[i] - dot(m->row, m->gram + i * m->row, m->right);
            if (left > steepest) steepest = left, next = i;
        }
        if (next < 0) return;
        m->active[next] = 1;
        m->order[count++] = next;
    }
}

#endif
