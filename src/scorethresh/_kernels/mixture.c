/* The most likely distribution of means, given binned magnitudes. The wrapper is `fit_mixture` in mixture.py.

   Column j of the likelihood holds phi(z - g) + phi(z + g) for all rows (bins) z, with g = j spacing. Columns lie one
   after the other. Every fit maximises sum_i counts_i log(sum_j p_j likelihood_ij) over probabilities p: some steps of
   expectation-maximisation, then the constrained Newton method of Wang (2007), whose quadratic models are solved by
   non-negative least squares (Lawson and Hanson). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exp2.h"
#include "loops.h"

/* A fit: its data, the columns that may be used (the first one, and those from `clear` on), and scratch memory. */
struct fit {
    int64_t rows, columns, clear, stride;
    const double *likelihood, *counts;
    double total;
    double *f, *weights, *change, *gradient, *step; /* rows, rows, rows, columns, columns */
    int64_t *used, *active;                         /* columns */
    double *scaled, *gram, *factor, *x, *s, *start, *slope, *left;
};

static int is_allowed(const struct fit *m, int64_t j) { return j == 0 || j >= m->clear; }

/* Sets out to the likelihood times p. */
static void mix(const struct fit *m, const double *restrict p, double *restrict out) {
    for (int64_t i = 0; i < m->rows; i++) out[i] = 0;
    for (int64_t j = 0; j < m->columns; j++) {
        const double *restrict column = m->likelihood + j * m->stride;
        if (p[j] != 0)
            for (int64_t i = 0; i < m->rows; i++) out[i] += p[j] * column[i];
    }
}

/* Sets f to the likelihood times p, and `gradient` to that of the log-likelihood. */
static void differentiate(const struct fit *m, const double *restrict p) {
    mix(m, p, m->f);
    for (int64_t i = 0; i < m->rows; i++) m->weights[i] = m->counts[i] / m->f[i];
    for (int64_t j = 0; j < m->columns; j++)
        m->gradient[j] = is_allowed(m, j) ? dot(m->rows, m->likelihood + j * m->stride, m->weights) : 0;
}

/* Returns the log-likelihood at f + length change, less that at f; minus infinity where there is none. */
static double gain(const struct fit *m, double length) {
    double sum = 0;
    for (int64_t i = 0; i < m->rows; i++) {
        const double ratio = 1 + length * m->change[i] / m->f[i];
        if (!(ratio > 0)) return -INFINITY;
        sum += m->counts[i] * log(ratio);
    }
    return sum;
}

static void normalise(const struct fit *m, double *p, double least_mass) {
    double sum = 0;
    for (int64_t j = 0; j < m->columns; j++) {
        if (!(p[j] >= least_mass)) p[j] = 0;
        sum += p[j];
    }
    for (int64_t j = 0; j < m->columns; j++) p[j] /= sum;
}

/* Solves the equations of the active variables by a Cholesky factor: s = start + gram^-1 (slope + pull). */
static void solve_active(const struct fit *m, int64_t n, double ridge) {
    int64_t k = 0, *at = m->used + m->columns;
    for (int64_t i = 0; i < n; i++) {
        m->s[i] = 0;
        if (m->active[i]) at[k++] = i;
    }
    double *restrict l = m->factor, *restrict v = m->left;
    for (int64_t a = 0; a < k; a++) {
        const double *row = m->gram + at[a] * n;
        double pull = m->slope[at[a]];
        for (int64_t j = 0; j < n; j++)
            if (!m->active[j]) pull += row[j] * m->start[j];
        for (int64_t b = 0; b <= a; b++) {
            double sum = row[at[b]] + (a == b ? ridge : 0);
            for (int64_t c = 0; c < b; c++) sum -= l[a * n + c] * l[b * n + c];
            /* Rounding must not take a pivot below the ridge. */
            l[a * n + b] = a == b ? sqrt(sum > ridge ? sum : ridge) : sum / l[b * n + b];
        }
        for (int64_t c = 0; c < a; c++) pull -= l[a * n + c] * v[c];
        v[a] = pull / l[a * n + a];
    }
    for (int64_t a = k - 1; a >= 0; a--) {
        for (int64_t c = a + 1; c < k; c++) v[a] -= l[c * n + a] * v[c];
        v[a] /= l[a * n + a];
        m->s[at[a]] = m->start[at[a]] + v[a];
    }
}

/* Sets x to the x >= 0 that minimises d' gram d / 2 - slope' d with d = x - start, by active sets. */
static void nonnegative(const struct fit *m, int64_t n) {
    double *x = m->x, *s = m->s, trace = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = 0;
        trace += m->gram[i * n + i];
        count += m->active[i] = m->start[i] > 0;
    }
    for (int64_t turn = 0; turn < 3 * n; turn++) {
        while (count) {
            solve_active(m, n, 1e-13 * trace);
            double rate = 2;
            for (int64_t i = 0; i < n; i++) {
                const double fall = x[i] - s[i];
                if (m->active[i] && s[i] <= 0) rate = fmin(rate, x[i] / (fall > 1e-300 ? fall : 1e-300));
            }
            for (int64_t i = 0; i < n; i++) x[i] = rate > 1 ? s[i] : x[i] + rate * (s[i] - x[i]);
            if (rate > 1) break;
            count = 0;
            for (int64_t i = 0; i < n; i++) {
                m->active[i] = m->active[i] && x[i] > 1e-14;
                if (!m->active[i]) x[i] = 0;
                count += m->active[i];
            }
        }
        double steepest = 1e-10;
        int64_t next = -1;
        for (int64_t i = 0; i < n; i++) {
            double left = m->slope[i];
            for (int64_t j = 0; j < n; j++) left -= m->gram[i * n + j] * (x[j] - m->start[j]);
            if (!m->active[i] && left > steepest) steepest = left, next = i;
        }
        if (next < 0) return;
        m->active[next] = 1;
        count++;
    }
}

/* Lists the columns in use and those at which the gradient peaks; returns how many there are. */
static int64_t candidates(const struct fit *m, const double *p) {
    int64_t n = 0;
    for (int64_t j = 0; j < m->columns; j++) {
        const double g = m->gradient[j], before = j ? m->gradient[j - 1] : -INFINITY;
        const double after = j + 1 < m->columns ? m->gradient[j + 1] : -INFINITY;
        if (p[j] > 0 || (g > 0 && g >= before && g >= after)) m->used[n++] = j;
    }
    return n;
}

/* Sets `step` to that of the constrained Newton method: towards the least sum_i counts_i (S q - 2)_i^2 over q >= 0 with
   sum 1, S = likelihood / f. It starts at p/2, where the slope is half the gradient: the gain may be far below the
   rounding of the rest. */
static void newton_step(const struct fit *m, const double *p) {
    const int64_t n = candidates(m, p);
    for (int64_t a = 0; a < n; a++) {
        const double *restrict column = m->likelihood + m->used[a] * m->stride;
        double *restrict to = m->scaled + a * m->rows;
        for (int64_t i = 0; i < m->rows; i++) to[i] = (column[i] / m->f[i] - 2) * sqrt(m->counts[i] / m->total);
        for (int64_t b = 0; b <= a; b++)
            m->gram[a * n + b] = m->gram[b * n + a] = 1 + dot(m->rows, to, m->scaled + b * m->rows);
        m->start[a] = p[m->used[a]] / 2;
        m->slope[a] = m->gradient[m->used[a]] / (2 * m->total);
    }
    nonnegative(m, n);
    double sum = 0;
    for (int64_t a = 0; a < n; a++) sum += m->x[a];
    for (int64_t j = 0; j < m->columns; j++) m->step[j] = -p[j];
    for (int64_t a = 0; a < n; a++) m->step[m->used[a]] += m->x[a] / sum;
}

/* Sets p to the most likely probabilities; returns the duality gap. */
static double most_likely(struct fit *m, double *p) {
    double gap = INFINITY;
    m->total = 0;
    for (int64_t i = 0; i < m->rows; i++) m->total += m->counts[i];
    for (int64_t j = 0; j < m->columns; j++) p[j] = is_allowed(m, j) ? 1.0 / (double)m->columns : 0.0;
    for (int turn = 0; turn < 20; turn++) { /* expectation-maximisation: slow at the end, robust at the start */
        differentiate(m, p);
        for (int64_t j = 0; j < m->columns; j++) p[j] *= m->gradient[j] / m->total;
    }
    normalise(m, p, 1e-3 / m->total); /* a thousandth of an entry */
    for (int turn = 0; turn < 100; turn++) {
        differentiate(m, p);
        gap = -INFINITY;
        for (int64_t j = 0; j < m->columns; j++) gap = fmax(gap, m->gradient[j] -= m->total);
        if (gap < fmax(1e-4, 1e-9 * m->total)) break;
        newton_step(m, p);
        mix(m, m->step, m->change);
        const double slope = dot(m->columns, m->gradient, m->step);
        double length = 1;
        while (length > 1e-10 && !(gain(m, length) >= 1e-4 * length * slope)) length /= 2;
        for (int64_t j = 0; j < m->columns; j++) p[j] += length * m->step[j];
        normalise(m, p, 1e-12);
    }
    return gap;
}

/* Sets the likelihood of all bins and means. */
static void fill_likelihood(int64_t rows, const double *restrict z, int64_t columns, double spacing, int64_t stride,
                            double *restrict likelihood) {
    const double c = -0.7213475204444817, norm = 0.3989422804014327; /* -log2(e) / 2, 1 / sqrt(2 pi) */
    for (int64_t j = 0; j < columns; j++) {
        const double g = (double)j * spacing;
        double *restrict to = likelihood + j * stride;
        for (int64_t i = 0; i < rows; i++) {
            const double a = c * (z[i] - g) * (z[i] - g), b = c * (z[i] + g) * (z[i] + g);
            to[i] = norm * (power_of_2(a > -1020 ? a : -1020) + power_of_2(b > -1020 ? b : -1020));
        }
        to[rows] = j == 0; /* an entry whose mean is 0 for certain */
    }
}

/* Fits probabilities p of means at multiples of `spacing` to `counts` of entries at z, and returns 0; 1 if there is no
   memory.

   The most likely p is averaged with two sparser fits, each if its log-likelihood is at most `close` below the largest:
   one with `null` more entries whose mean is 0, one with means that are 0 or in a column from `clear` on. `gaps` are
   the duality gaps of the three fits; `taken` tells which are in the average. With `null` = 0 there is one fit. */
EXPORT int64_t fit_mixture(int64_t rows, const double *z, const double *counts, int64_t columns, double spacing,
                           double null, int64_t clear, double close, double *p, double *gaps, int64_t *taken) {
    const int64_t stride = (rows + 8) / 8 * 8 + 8, square = columns * columns;
    const int64_t doubles = columns * stride + 5 * stride + columns * stride + 2 * square + 9 * columns;
    double *const memory = malloc((size_t)doubles * sizeof(double));
    int64_t *const places = malloc((size_t)columns * 3 * sizeof(int64_t));
    if (!memory || !places) {
        free(memory);
        free(places);
        return 1;
    }
    double *next = memory;
    double *const likelihood = next, *const extended = next += columns * stride, *const best = next += stride;
    struct fit m = {.rows = rows, .columns = columns, .clear = 0, .stride = stride, .likelihood = likelihood};
    m.f = next += stride, m.weights = next += stride, m.change = next += stride, m.scaled = next += stride;
    m.gram = next += columns * stride, m.factor = next += square, m.gradient = next += square;
    m.step = next += columns, m.x = next += columns, m.s = next += columns, m.start = next += columns;
    m.slope = next += columns, m.left = next += columns;
    double *const sparser = next += columns;
    m.used = places, m.active = places + 2 * columns;
    fill_likelihood(rows, z, columns, spacing, stride, likelihood);
    memcpy(extended, counts, (size_t)rows * sizeof(double));
    extended[rows] = null;

    m.counts = counts;
    gaps[0] = most_likely(&m, p);
    taken[0] = 1;
    mix(&m, p, best);
    for (int which = 1; which < 3; which++) {
        gaps[which] = 0;
        taken[which] = 0;
        if (!(null > 0)) continue;
        m.rows = which == 1 ? rows + 1 : rows;
        m.counts = which == 1 ? extended : counts;
        m.clear = which == 1 ? 0 : clear;
        gaps[which] = most_likely(&m, sparser);
        m.rows = rows;
        mix(&m, sparser, m.f);
        double lost = 0;
        for (int64_t i = 0; i < rows; i++) lost += counts[i] * log(best[i] / m.f[i]);
        if (!(lost <= close)) continue;
        taken[which] = 1;
        for (int64_t j = 0; j < columns; j++) p[j] = (p[j] + sparser[j]) / 2;
    }
    free(memory);
    free(places);
    return 0;
}
