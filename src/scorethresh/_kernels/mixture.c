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
#include "nonnegative.h"
#include "vectors.h"

/* Columns from one to the next in the first guess, and its number of turns. From 2 to 4 columns and from 3 to 20 turns
   take the same time within 10%; all columns take four times as long, as most of them then start in use. */
#define COARSE 3
#define GUESS_TURNS 5

/* A fit: its data, the columns that may be used (the first one, and those from `clear` on), and scratch memory. Arrays
   of rows are padded to `end` entries, where counts are 0. */
struct fit {
    int64_t rows, end, columns, clear, stride;
    const double *likelihood, *counts;
    double total;
    const double *rival; /* the mixture of another fit, NULL for none; a fit that stays `close` below is given up */
    double close;
    double *f, *weights, *change, *roots, *gradient, *step; /* rows four times, columns twice */
    int64_t *used;                                          /* columns */
    double *scaled;
    struct least_squares model;
};

/* Sets the number of rows. */
static void set_rows(struct fit *m, int64_t rows) { m->rows = rows, m->end = padded(rows); }

/* Sets out to the likelihood times p, and to 1 in the padding. */
static void mix(const struct fit *m, const double *restrict p, double *restrict out) {
    for (int64_t i = 0; i < m->end; i++) out[i] = 0;
    for (int64_t j = 0; j < m->columns; j++)
        if (p[j] != 0) subtract(0, m->end, -p[j], m->likelihood + j * m->stride, out);
    for (int64_t i = m->rows; i < m->end; i++) out[i] = 1;
}

/* Entries that need not be aligned. */
typedef double vector __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
#define AT(a) (*(const vector *)&(a))
/* Columns whose sums run side by side. */
#define COLUMNS 8

/* Sets out[c] to the sum of products of b with column c of a, for COLUMNS columns. */
INLINE void column_dots(int64_t n, const double *restrict a, int64_t stride, const double *restrict b,
                        double *restrict out) {
    vector sums[COLUMNS] = {{0}};
    for (int64_t i = 0; i < n; i += DOUBLE_LANES) {
        const vector some = AT(b[i]);
        UNROLL
        for (int c = 0; c < COLUMNS; c++) sums[c] += AT(a[c * stride + i]) * some;
    }
    UNROLL
    for (int c = 0; c < COLUMNS; c++) {
        double sum = 0;
        for (int k = 0; k < DOUBLE_LANES; k++) sum += sums[c][k];
        out[c] = sum;
    }
}

/* Sets out[j], first <= j < last, to the sum of products of b with column j of a. */
static void dots(int64_t n, const double *restrict a, int64_t stride, int64_t first, int64_t last,
                 const double *restrict b, double *restrict out) {
    int64_t j = first;
    for (; j + COLUMNS <= last; j += COLUMNS) column_dots(n, a + j * stride, stride, b, out + j);
    for (; j < last; j++) out[j] = dot(n, a + j * stride, b);
}

/* Sets f to the likelihood times p, and `gradient` to that of the log-likelihood. */
static void differentiate(const struct fit *m, const double *restrict p) {
    mix(m, p, m->f);
    for (int64_t i = 0; i < m->end; i++) m->weights[i] = m->counts[i] / m->f[i];
    const int64_t first = most(m->clear, 1);
    for (int64_t j = 1; j < first; j++) m->gradient[j] = 0;
    dots(m->end, m->likelihood, m->stride, 0, 1, m->weights, m->gradient);
    dots(m->end, m->likelihood, m->stride, first, m->columns, m->weights, m->gradient);
}

/* Returns the log-likelihood of the mixture a + length b, less that of f; minus infinity where there is none. */
static double gain(const struct fit *m, const double *restrict a, double length, const double *restrict b,
                   const double *restrict f) {
    double sums[BLOCK] = {0}, smallest[BLOCK], sum = 0;
    for (int k = 0; k < BLOCK; k++) smallest[k] = 1;
    for (int64_t i = 0; i < m->end; i += BLOCK)
        for (int k = 0; k < BLOCK; k++) {
            const double ratio = (a[i + k] + length * b[i + k]) / f[i + k];
            smallest[k] = ratio < smallest[k] ? ratio : smallest[k];
            sums[k] += m->counts[i + k] * logarithm(ratio);
        }
    for (int k = 0; k < BLOCK; k++) {
        if (!(smallest[k] > 1e-300)) return -INFINITY;
        sum += sums[k];
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
static void newton_step(struct fit *m, const double *p) {
    struct least_squares *const q = &m->model;
    const int64_t n = candidates(m, p);
    q->n = n, q->row = padded(n);
    for (int64_t i = 0; i < m->end; i++) m->weights[i] = m->roots[i] / m->f[i];
    for (int64_t a = 0; a < q->row; a++) q->start[a] = q->slope[a] = 0;
    for (int64_t a = 0; a < n; a++) {
        const double *restrict column = m->likelihood + m->used[a] * m->stride;
        double *restrict to = m->scaled + a * m->stride, *row = q->gram + a * q->row;
        for (int64_t i = 0; i < m->end; i++) to[i] = column[i] * m->weights[i] - 2 * m->roots[i];
        for (int64_t b = n; b < q->row; b++) row[b] = 0;
        dots(m->end, m->scaled, m->stride, 0, a + 1, to, row);
        for (int64_t b = 0; b <= a; b++) q->gram[b * q->row + a] = row[b] += 1;
        q->start[a] = p[m->used[a]] / 2;
        q->slope[a] = m->gradient[m->used[a]] / (2 * m->total);
    }
    solve_nonnegative(q);
    double sum = 0;
    for (int64_t a = 0; a < n; a++) sum += q->x[a];
    for (int64_t j = 0; j < m->columns; j++) m->step[j] = -p[j];
    for (int64_t a = 0; a < n; a++) m->step[m->used[a]] += q->x[a] / sum;
}

/* Sets p to a first guess, on every COARSE-th column: expectation-maximisation is slow at the end, robust at the start.
   Columns are a fifth of a noise level apart, so that few of them fit nearly as well as all. */
static void guess(const struct fit *m, double *p) {
    for (int64_t j = 0; j < m->columns; j++)
        p[j] = (j == 0 || j >= m->clear) && (j % COARSE == 0 || j + 1 == m->columns) ? 1.0 : 0.0;
    normalise(m, p, 0);
    for (int turn = 0; turn < GUESS_TURNS; turn++) {
        mix(m, p, m->f);
        for (int64_t i = 0; i < m->end; i++) m->weights[i] = m->counts[i] / m->f[i];
        for (int64_t j = 0; j < m->columns; j++)
            if (p[j] > 0) p[j] *= dot(m->end, m->likelihood + j * m->stride, m->weights) / m->total;
    }
    normalise(m, p, 1e-3 / m->total); /* a thousandth of an entry */
}

/* Moves p, a guess, to the most likely probabilities; returns the duality gap, or 0 if the fit was given up. */
static double most_likely(struct fit *m, double *p) {
    double gap = INFINITY;
    for (int64_t i = 0; i < m->end; i++) m->roots[i] = sqrt(m->counts[i] / m->total);
    for (int turn = 0; turn < 100; turn++) {
        differentiate(m, p);
        gap = -INFINITY;
        for (int64_t j = 0; j < m->columns; j++) {
            m->gradient[j] -= m->total;
            gap = m->gradient[j] > gap ? m->gradient[j] : gap;
        }
        if (gap < fmax(1e-4, 1e-9 * m->total)) break;
        /* The log-likelihood is concave: it grows by no more than the gap. */
        if (m->rival && gain(m, m->f, 0, m->f, m->rival) + gap < -m->close) return 0;
        newton_step(m, p);
        mix(m, m->step, m->change);
        const double slope = dot(m->columns, m->gradient, m->step);
        double length = 1;
        while (length > 1e-10 && !(gain(m, m->f, length, m->change, m->f) >= 1e-4 * length * slope)) length /= 2;
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
        for (int64_t i = rows; i < stride; i++) to[i] = 0;
        to[rows] = j == 0; /* an entry whose mean is 0 for certain */
    }
}

/* Sets p to the average of the fits that `fit_mixture` describes, in memory that `m` has. `counts` and `extended` are
   padded; the latter has one more row, which is set. */
static void average_fits(struct fit *m, int64_t rows, const double *counts, double *extended, double null,
                         int64_t clear, double close, double *best, double *sparser, double *p, double *gaps,
                         int64_t *taken) {
    double total = 0;
    for (int64_t i = 0; i < rows; i++) total += counts[i];
    extended[rows] = null;
    m->counts = counts, m->total = total, m->clear = 0, m->rival = NULL, m->close = close;
    guess(m, p);
    gaps[0] = most_likely(m, p);
    taken[0] = 1;
    mix(m, p, best);
    for (int which = 1; which < 3; which++) {
        gaps[which] = 0;
        taken[which] = 0;
        if (!(null > 0)) continue;
        set_rows(m, which == 1 ? rows + 1 : rows);
        m->counts = which == 1 ? extended : counts;
        m->clear = which == 1 ? 0 : clear;
        m->rival = which == 1 ? NULL : best; /* with more entries, it has another likelihood */
        m->total = which == 1 ? total + null : total;
        if (which == 1) { /* what is most likely without these entries is a good guess */
            for (int64_t j = 0; j < m->columns; j++) sparser[j] = p[j] * total / m->total;
            sparser[0] += null / m->total;
        } else {
            guess(m, sparser);
        }
        gaps[which] = most_likely(m, sparser);
        set_rows(m, rows);
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
    const int64_t stride = padded(rows + 1), wide = padded(columns), square = columns * wide;
    const int64_t doubles = 2 * columns * stride + 7 * stride + 3 * square + 10 * wide;
    double *const memory = malloc((size_t)(doubles + BLOCK) * sizeof(double));
    int64_t *const places = malloc((size_t)columns * 3 * sizeof(int64_t));
    if (!memory || !places) {
        free(memory);
        free(places);
        return 1;
    }
    /* All arrays start at a line of the cache: vectors that lie in two of them take twice as long to read. */
    double *next = memory + (BLOCK - (uintptr_t)memory / sizeof(double) % BLOCK);
    double *const likelihood = next, *const extended = next += columns * stride, *const best = next += stride;
    double *const known = next += stride;
    struct fit m = {.columns = columns, .clear = 0, .stride = stride, .likelihood = likelihood};
    m.f = next += stride, m.weights = next += stride, m.change = next += stride, m.roots = next += stride;
    m.scaled = next += stride, m.model.gram = next += columns * stride, m.model.lower = next += square;
    m.model.upper = next += square, m.gradient = next += square, m.step = next += wide, m.model.x = next += wide;
    m.model.s = next += wide, m.model.start = next += wide, m.model.slope = next += wide, m.model.left = next += wide;
    m.model.right = next += wide, m.model.inverse = next += wide;
    double *const sparser = next += wide;
    m.used = places, m.model.active = places + columns, m.model.order = places + 2 * columns;
    for (int64_t i = 0; i < stride; i++) known[i] = extended[i] = i < rows ? counts[i] : 0;
    set_rows(&m, rows);
    fill_likelihood(rows, z, columns, spacing, stride, likelihood);
    average_fits(&m, rows, known, extended, null, clear, close, best, sparser, p, gaps, taken);
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
