/* Eigenvalues and eigenvectors of many small symmetric matrices, for which LAPACK is not made. The wrapper is `symmetric_eigen` in eigen.py.

   Householder reflections make a matrix tridiagonal, and QL steps with implicit shifts make that diagonal: J. H.
   Wilkinson, C. Reinsch, "Linear Algebra" (1971), contributions II/2 and II/3. Vectors are rows, so that reflections and
   rotations are sums of rows, whose length is padded to whole registers. */
#include <math.h>
#include <string.h>

#include "loops.h"
#include "vectors.h"

/* The same as in eigen.py. */
#define MOST_SIDE 48
/* QL steps per eigenvalue. Two suffice on average. */
#define MOST_STEPS 60
/* Rows are padded to a multiple of this. */
#define PAD 8
/* Matrices whose rotations take turns. Each one waits for the last of its own, and the others fill the time. */
#define TURNS 4

typedef VECTOR(double, VECTOR_BYTES) vector;
#define LANES DOUBLE_LANES
/* The vector at the place of entry a. */
#define AT(a) (*(vector *)&(a))

/* Sets p to the sum of the rows from `first` to `last` of a, times v. */
INLINE void sum_rows(const int row, const int first, const int last, const double *restrict a,
                     const double *restrict v, double *restrict p) {
    vector sums[MOST_SIDE / LANES];
    UNROLL
    for (int j = 0; j < row / LANES; j++) sums[j] = (vector){0};
    for (int i = first; i < last; i++)
        UNROLL
        for (int j = 0; j < row / LANES; j++) sums[j] += v[i] * AT(a[i * row + j * LANES]);
    UNROLL
    for (int j = 0; j < row / LANES; j++) AT(p[j * LANES]) = sums[j];
}

/* Makes a, n x n with rows of length `row`, tridiagonal: d is its diagonal, e[i] what is right of d[i]. The rows of u
   become the basis in which it is. Padding must be zero. */
INLINE void reduce(const int row, const int n, double *restrict a, double *restrict d, double *restrict e,
                   double *restrict u) {
    ALIGNED double v[MOST_SIDE], w[MOST_SIDE], p[MOST_SIDE];
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < row; j++) u[i * row + j] = 0;
        u[i * row + i] = 1;
    }
    for (int k = 0; k + 2 < n; k++) {
        for (int j = 0; j < row; j++) v[j] = j > k ? a[k * row + j] : 0;
        const double norm = dot(row, v, v);
        d[k] = a[k * row + k];
        e[k] = v[k + 1] > 0 ? -sqrt(norm) : sqrt(norm);
        if (norm == 0) continue;
        const double beta = 1 / (norm - e[k] * v[k + 1]);
        v[k + 1] -= e[k];
        sum_rows(row, k + 1, n, a, v, p);
        sum_rows(row, k + 1, n, u, v, w);
        const double product = beta / 2 * dot(row, p, v);
        for (int j = 0; j < row; j++) {
            p[j] = j > k ? beta * (p[j] - product * v[j]) : 0;
            w[j] *= beta;
        }
        for (int i = k + 1; i < n; i++)
            UNROLL
            for (int j = 0; j < row; j += LANES) {
                AT(a[i * row + j]) -= v[i] * AT(p[j]) + p[i] * AT(v[j]);
                AT(u[i * row + j]) -= v[i] * AT(w[j]);
            }
    }
    for (int k = n > 2 ? n - 2 : 0; k < n; k++) {
        d[k] = a[k * row + k];
        e[k] = k + 1 < n ? a[k * row + k + 1] : 0;
    }
}

/* A tridiagonal matrix on its way to a diagonal one: d its diagonal, e[i] what is right of d[i], u the rows of its basis.
   Rotations chase an entry from row `last` up to row `first`, and have come to row i. */
struct chase {
    int first, last, i, steps;
    double s, c, p, g, d[MOST_SIDE], e[MOST_SIDE];
    ALIGNED double u[MOST_SIDE * MOST_SIDE];
};

/* Begins the next QL step. Returns 0 if there is none: the matrix is diagonal, or does not converge, as with NaN. */
INLINE int begin(const int n, struct chase *restrict job) {
    double *restrict d = job->d, *restrict e = job->e;
    for (; job->first < n; job->first++, job->steps = 0) {
        const int l = job->first;
        int m = l;
        for (; m + 1 < n; m++)
            if (fabs(e[m]) <= 0x1p-53 * (fabs(d[m]) + fabs(d[m + 1]))) break;
        if (m == l) continue;
        if (job->steps++ == MOST_STEPS) return 0;
        const double half = (d[l + 1] - d[l]) / (2 * e[l]), root = sqrt(half * half + 1);
        job->g = d[m] - d[l] + e[l] / (half + (half < 0 ? -root : root));
        job->s = job->c = 1;
        job->p = 0;
        job->last = m;
        job->i = m - 1;
        return 1;
    }
    return 0;
}

/* Makes one rotation, and ends the QL step with the last one. Returns what `begin` does. */
INLINE int rotate(const int row, const int n, struct chase *restrict job) {
    double *restrict d = job->d, *restrict e = job->e;
    const int i = job->i--;
    const double f = job->s * e[i], b = job->c * e[i], r = sqrt(f * f + job->g * job->g);
    e[i + 1] = r;
    if (r == 0) { /* the matrix has come apart here */
        d[i + 1] -= job->p;
        e[job->last] = 0;
        return begin(n, job);
    }
    const double s = f / r, c = job->g / r, h = d[i + 1] - job->p, q = (d[i] - h) * s + 2 * c * b;
    job->s = s;
    job->c = c;
    job->p = s * q;
    d[i + 1] = h + job->p;
    job->g = c * q - b;
    double *restrict low = job->u + i * row, *restrict high = low + row;
    UNROLL
    for (int j = 0; j < row; j += LANES) {
        const vector x = AT(low[j]), y = AT(high[j]);
        AT(low[j]) = c * x - s * y;
        AT(high[j]) = s * x + c * y;
    }
    if (i > job->first) return 1;
    d[i] -= job->p;
    e[i] = job->g;
    e[job->last] = 0;
    return begin(n, job);
}

/* Begins to solve for a matrix, n x n. Returns the exponent of the power of two that it was divided by, so that squares
   stay in range: nothing is rounded. */
INLINE int start(const int row, const int n, const double *restrict matrix, struct chase *restrict job) {
    ALIGNED double a[MOST_SIDE * MOST_SIDE];
    double largest = 0;
    for (int i = 0; i < n * n; i++) largest = fabs(matrix[i]) > largest ? fabs(matrix[i]) : largest;
    const int power = largest > 0 && isfinite(largest) ? ilogb(largest) : 0;
    const double half = ldexp(1, -(power / 2)), rest = ldexp(1, power / 2 - power);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < row; j++) a[i * row + j] = j < n ? matrix[i * n + j] * half * rest : 0;
    reduce(row, n, a, job->d, job->e, job->u);
    job->first = job->steps = 0;
    return power;
}

/* Copies the eigenvalues, descending, and their vectors. Returns whether there are some. */
INLINE int finish(const int row, const int n, const struct chase *restrict job, int power, double *restrict values,
                  double *restrict vectors) {
    int order[MOST_SIDE];
    for (int i = 0; i < n; i++) {
        int place = i;
        for (; place > 0 && job->d[order[place - 1]] < job->d[i]; place--) order[place] = order[place - 1];
        order[place] = i;
    }
    for (int i = 0; i < n; i++) {
        values[i] = ldexp(job->d[order[i]], power);
        memcpy(vectors + i * n, job->u + order[i] * row, (size_t)n * sizeof(double));
    }
    return job->first == n && isfinite(job->d[0]);
}

INLINE int64_t solve_all(const int row, int64_t count, const int n, const double *restrict matrices,
                         double *restrict values, double *restrict vectors) {
    struct chase jobs[TURNS];
    int64_t failed = 0;
    for (int64_t number = 0; number < count; number += TURNS) {
        const int some = (int)least(TURNS, count - number);
        int powers[TURNS], busy[TURNS] = {0}, any = 1;
        for (int t = 0; t < some; t++) {
            powers[t] = start(row, n, matrices + (number + t) * n * n, &jobs[t]);
            busy[t] = begin(n, &jobs[t]);
        }
        while (any) {
            any = 0;
            for (int t = 0; t < TURNS; t++) {
                if (busy[t]) busy[t] = rotate(row, n, &jobs[t]);
                any |= busy[t];
            }
        }
        for (int t = 0; t < some; t++) {
            const int64_t at = number + t;
            failed += !finish(row, n, &jobs[t], powers[t], values + at * n, vectors + at * n * n);
        }
    }
    return failed;
}

/* Sets values, count x n, to the eigenvalues of symmetric matrices, count x n x n with n up to MOST_SIDE, descending,
   and row i of vectors[number] to the eigenvector of value i. Returns how many matrices failed. */
EXPORT int64_t symmetric_eigen(int64_t count, int64_t n, const double *matrices, double *values, double *vectors) {
    const int side = (int)n;
    switch ((side + PAD - 1) / PAD) {
    case 1: return solve_all(8, count, side, matrices, values, vectors);
    case 2: return solve_all(16, count, side, matrices, values, vectors);
    case 3: return solve_all(24, count, side, matrices, values, vectors);
    case 4: return solve_all(32, count, side, matrices, values, vectors);
    case 5: return solve_all(40, count, side, matrices, values, vectors);
    default: return solve_all(48, count, side, matrices, values, vectors);
    }
}
