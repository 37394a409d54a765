/* The most likely distribution of means, given binned magnitudes. The wrapper is `fit_mixture` in mixture.py.

   Column j of the likelihood holds phi(z - g) + phi(z + g) for all rows (bins) z, with g = j spacing. Columns lie one
   after the other. Every fit maximises sum_i counts_i log(sum_j p_j likelihood_ij) over probabilities p: some steps of
   expectation-maximisation on few of the columns, then the constrained Newton method of Wang (2007), whose quadratic
   models are solved by non-negative least squares (Lawson and Hanson). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exp2.h"
#include "loops.h"

/* Columns from one to the next in the first guess, and its number of turns. From 3 to 8 columns and from 3 to 20 turns
   take the same time within 10%; all columns take four times as long, as most of them then start in use. */
#define COARSE 6
#define GUESS_TURNS 5

/* A fit: its data, the columns that may be used (the first one, and those from `clear` on), and scratch memory. */
struct fit {
    int64_t rows, columns, clear, stride;
    const double *likelihood, *counts;
    double total;
    double *f, *weights, *change, *roots, *gradient, *step; /* rows four times, columns twice */
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
    for (int64_t i = 0; i < m->rows; i++) m->weights[i] = m->roots[i] / m->f[i];
    for (int64_t a = 0; a < n; a++) {
        const double *restrict column = m->likelihood + m->used[a] * m->stride;
        double *restrict to = m->scaled + a * m->rows;
        for (int64_t i = 0; i < m->rows; i++) to[i] = column[i] * m->weights[i] - 2 * m->roots[i];
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

/* Sets p to a first guess, on every COARSE-th column: expectation-maximisation is slow at the end, robust at the start.
   Columns are a tenth of a noise level apart, so that few of them fit nearly as well as all. */
static void guess(const struct fit *m, double *p) {
    for (int64_t j = 0; j < m->columns; j++)
        p[j] = is_allowed(m, j) && (j % COARSE == 0 || j + 1 == m->columns) ? 1.0 : 0.0;
    normalise(m, p, 0);
    for (int turn = 0; turn < GUESS_TURNS; turn++) {
        mix(m, p, m->f);
        for (int64_t i = 0; i < m->rows; i++) m->weights[i] = m->counts[i] / m->f[i];
        for (int64_t j = 0; j < m->columns; j++)
            if (p[j] > 0) p[j] *= dot(m->rows, m->likelihood + j * m->stride, m->weights) / m->total;
    }
    normalise(m, p, 1e-3 / m->total); /* a thousandth of an entry */
}

/* Moves p, a guess, to the most likely probabilities; returns the duality gap. */
static double most_likely(struct fit *m, double *p) {
    double gap = INFINITY;
    for (int64_t i = 0; i < m->rows; i++) m->roots[i] = sqrt(m->counts[i] / m->total);
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

/* Sets p to the average of the fits that `fit_mixture` describes, in memory that `m` has. */
static void average_fits(struct fit *m, int64_t rows, const double *counts, double *extended, double null,
                         int64_t clear, double close, double *best, double *sparser, double *p, double *gaps,
                         int64_t *taken) {
    double total = 0;
    for (int64_t i = 0; i < rows; i++) total += extended[i] = counts[i];
    extended[rows] = null;
    m->counts = counts, m->total = total, m->clear = 0;
    guess(m, p);
    gaps[0] = most_likely(m, p);
    taken[0] = 1;
    mix(m, p, best);
    for (int which = 1; which < 3; which++) {
        gaps[which] = 0;
        taken[which] = 0;
        if (!(null > 0)) continue;
        m->rows = which == 1 ? rows + 1 : rows;
        m->counts = which == 1 ? extended : counts;
        m->clear = which == 1 ? 0 : clear;
        m->total = which == 1 ? total + null : total;
        if (which == 1) { /* what is most likely without these entries is a good guess */
            for (int64_t j = 0; j < m->columns; j++) sparser[j] = p[j] * total / m->total;
            sparser[0] += null / m->total;
        } else {
            guess(m, sparser);
        }
        gaps[which] = most_likely(m, sparser);
        m->rows = rows;
        mix(m, sparser, m->f);
        double lost = 0;
        for (int64_t i = 0; i < rows; i++) lost += counts[i] * log(best[i] / m->f[i]);
        if (!(lost <= close)) continue;
        taken[which] = 1;
        for (int64_t j = 0; j < m->columns; j++) p[j] = (p[j] + sparser[j]) / 2;
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
    const int64_t doubles = columns * stride + 6 * stride + columns * stride + 2 * square + 9 * columns;
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
    m.f = next += stride, m.weights = next += stride, m.change = next += stride, m.roots = next += stride;
    m.scaled = next += stride, m.gram = next += columns * stride, m.factor = next += square;
    m.gradient = next += square, m.step = next += columns, m.x = next += columns, m.s = next += columns;
    m.start = next += columns, m.slope = next += columns, m.left = next += columns;
    double *const sparser = next += columns;
    m.used = places, m.active = places + 2 * columns;
    fill_likelihood(rows, z, columns, spacing, stride, likelihood);
    average_fits(&m, rows, counts, extended, null, clear, close, best, sparser, p, gaps, taken);
    free(memory);
    free(places);
    return 0;
}

/* Fits probabilities to each of `samples` rows of `size` values with noise of level 1, and returns 0; 1 if there is no
   memory.

   The magnitudes of a row up to `last` enter as a histogram of bins of width `bin`, each at the mean of its entries.
   Means lie at multiples of `spacing` up to two steps beyond the last of these, `columns` at most. `masses`, samples x
   columns, is set to the probabilities times the number of entries. `counts` and `sums` are scratch memory of `bins`
   entries. Others are as in `fit_mixture`; `clear` is a mean here, and `gaps` holds the largest gap of each row. */
EXPORT int64_t fit_mixture_rows(int64_t samples, int64_t size, const double *z, double last, int64_t bins, double bin,
                                int64_t columns, double spacing, double null, double clear, double close,
                                double *counts, double *sums, double *masses, double *gaps) {
    for (int64_t k = 0; k < samples; k++) {
        double *p = masses + k * columns, total = 0, each[3];
        int64_t used = 0, taken[3], first = 1;
        for (int64_t j = 0; j < columns; j++) p[j] = 0;
        for (int64_t i = 0; i < bins; i++) counts[i] = sums[i] = 0;
        gaps[k] = 0;
        for (int64_t i = 0; i < size; i++) {
            const double a = fabs(z[k * size + i]);
            if (!(a <= last)) continue;
            const int64_t at = least((int64_t)(a / bin), bins - 1);
            counts[at] += 1;
            sums[at] += a;
        }
        for (int64_t i = 0; i < bins; i++)
            if (counts[i] > 0) {
                sums[used] = sums[i] / counts[i];
                total += counts[used++] = counts[i];
            }
        if (!used) continue;
        const int64_t wide = least((int64_t)ceil((sums[used - 1] + 2 * spacing) / spacing), columns);
        while (first < wide && (double)first * spacing < clear) first++;
        if (fit_mixture(used, sums, counts, wide, spacing, null, first, close, p, each, taken)) return 1;
        for (int64_t j = 0; j < wide; j++) p[j] *= total;
        gaps[k] = fmax(each[0], fmax(each[1], each[2]));
    }
    return 0;
}
