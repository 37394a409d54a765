/* Shrinkage of the DCT of overlapping windows. The wrapper is `sliding_dct` in frame.py.

   Windows are treated in strips: neighbours in a row of an image, STRIP of them at once, from the top of the image to
   its bottom. A strip keeps, of the last `by` rows, the DCT across of every window (a ring of rows). Every `step`-th
   row these rows are transformed down, shrunk and transformed back, and added to a second ring. A row of the second
   ring that no window reaches any more is transformed back across and leaves for the image. */
#ifndef real

#include <stdlib.h>
#include <string.h>

#include "loops.h"
#include "vectors.h"

/* Windows in a strip. The five blocks of a strip of 8 x 8 windows in single precision fill 160 kB, a part of the second
   cache; 64 and 256 windows take within 15% of the time. */
enum { STRIP = 128, LONGEST = 64 };

#define LOOP "sliding_dct.c"
#include "both_precisions.h"

#else

#include "lanes.h"

/* The strip at hand, and its scratch memory.

   `lines` and `sums` are rings of rows of images: (image, row, frequency across, window). A row is longer than it needs
   to be, so that rows do not compete for the same lines of the cache. `coefficients` and `models` are
   (image, frequency across, frequency down, window). */
struct NAME(strip) {
    int64_t parts, planes, by, bx, step, guided;
    int64_t count; /* windows */
    int64_t width; /* entries across that the windows cover */
    int64_t phase; /* entries across of one phase: every step-th */
    int64_t row;   /* from one row of a ring to the next */
    int64_t even;  /* whether all traces across are 1 */
    real *lines[2], *sums, *coefficients, *models;
    real *kept, *slope, *below, *squares, *phases, *ones;
    real *slopes, *belows; /* of one frequency across */
    real *traced;          /* as the variance */
};

/* Sets the rows of the coefficients across of one row of the image. */
static void NAME(across)(const struct NAME(strip) *s, const real *restrict in, const real *restrict dx,
                         real *restrict out) {
    int64_t at[LONGEST];
    /* Entries of one phase lie side by side, so that windows `step` apart are read in a straight line. */
    for (int64_t k = 0; k < s->bx; k++) at[k] = k % s->step * s->phase + k / s->step;
    if (s->step > 1) {
        real *restrict phases = s->phases;
        for (int64_t k = 0; k < s->step; k++)
            for (int64_t x = 0; x < s->phase; x++) phases[k * s->phase + x] = in[x * s->step + k];
        in = phases;
    }
    NAME(forward)(s->bx, dx, in, at, s->count, out, s->count);
}

/* Adds the windows of a row of coefficients across to a row of the image, and clears the coefficients. */
static void NAME(back_across)(const struct NAME(strip) *s, real *restrict in, const real *restrict dx,
                              real *restrict out) {
    int64_t at[LONGEST];
    real *restrict columns = s->squares, *restrict phases = s->phases;
    for (int64_t k = 0; k < s->bx; k++) at[k] = k * s->count;
    for (int64_t x = 0; x < s->bx * s->count; x++) columns[x] = 0;
    for (int64_t x = 0; x < s->width; x++) phases[x] = 0;
    NAME(backward)(s->bx, dx, in, s->count, s->count, s->ones, columns, at);
    for (int64_t k = 0; k < s->bx; k++) {
        real *restrict to = phases + k % s->step * s->phase + k / s->step;
        for (int64_t x = 0; x < s->count; x++) to[x] += columns[k * s->count + x];
    }
    for (int64_t k = 0; k < s->step; k++)
        for (int64_t x = 0; x < s->phase; x++) out[x * s->step + k] += phases[k * s->phase + x];
    for (int64_t x = 0; x < s->bx * s->count; x++) in[x] = 0;
}

/* Four rows of squared norms turn into factors, or into shrunk coefficients: with a single part, `from` are the
   coefficients that decide and `to` those that are shrunk; with more, both are the squared norms. The noise let through
   is added up, and the derivatives times `trace`, which is `var` if `even`. */
INLINE void NAME(pilot_factors)(const struct NAME(strip) *s, const int single, const int even, const real *from,
                                real *to, const real *restrict cut, const real *restrict var,
                                const real *restrict trace) {
    real *restrict kept = s->kept, *restrict slope = s->slopes;
    const int64_t count = s->count;
    const real parts = (real)s->parts, tiny = (real)1e-30; /* keeps 0 / 0 away */
    INDEPENDENT
    for (int64_t x = 0; x < count; x++) {
        real noise = kept[x], derivative = slope[x];
        UNROLL
        for (int i = 0; i < 4; i++) {
            const real value = from[i * count + x], g = (single ? value * value : value) + tiny;
            const real a = g / (g + cut[i] * parts);
            to[i * count + x] = single ? a * to[i * count + x] : a;
            noise += var[i] * a * a;
            derivative += (even ? var[i] : trace[i]) * parts * a;
        }
        kept[x] = noise;
        slope[x] = derivative;
    }
}

/* The same for hard thresholding. At a jump the derivative is a boxcar of half width `jump`, relative to the threshold.
   What lies just below the threshold is added up apart: if it were kept, its window would weigh less. */
INLINE void NAME(hard_factors)(const struct NAME(strip) *s, const int single, const int even, const real *from,
                               real *to, const real *restrict cut, const real *restrict var,
                               const real *restrict trace, double jump) {
    real *restrict kept = s->kept, *restrict slope = s->slopes, *restrict below = s->belows;
    const int64_t count = s->count;
    const real parts = (real)s->parts, height = (real)(0.5 / jump);
    const real inner = (real)((1 - jump) * (1 - jump)), outer = (real)((1 + jump) * (1 + jump));
    INDEPENDENT
    for (int64_t x = 0; x < count; x++) {
        real noise = kept[x], derivative = slope[x], missed = below[x];
        UNROLL
        for (int i = 0; i < 4; i++) {
            const real value = from[i * count + x], g = single ? value * value : value;
            const real limit = cut[i] * cut[i], t = even ? var[i] : trace[i];
            const real above = g >= limit ? t : (real)0, under = t - above;
            to[i * count + x] = g >= limit ? (single ? value : (real)1) : (real)0;
            noise += even ? above : g >= limit ? var[i] : (real)0;
            derivative += above * (g < limit * outer ? parts + height : parts);
            missed += g > limit * inner ? under * height : (real)0;
        }
        kept[x] = noise;
        slope[x] = derivative;
        below[x] = missed;
    }
}

/* Either of the two above. Flags are constants where it matters, so that loops are made for each. */
INLINE void NAME(factors)(const struct NAME(strip) *s, const int single, const int64_t even, const real *from, real *to,
                          const real *cut, const real *var, const real *trace, double jump) {
    if (s->guided && even) NAME(pilot_factors)(s, single, 1, from, to, cut, var, trace);
    if (s->guided && !even) NAME(pilot_factors)(s, single, 0, from, to, cut, var, trace);
    if (!s->guided && even) NAME(hard_factors)(s, single, 1, from, to, cut, var, trace, jump);
    if (!s->guided && !even) NAME(hard_factors)(s, single, 0, from, to, cut, var, trace, jump);
}

/* Adds the sums of one frequency across to those of all, times the traces across of every window; clears the former. */
static void NAME(add_traces)(const struct NAME(strip) *s, const real *restrict across) {
    real *restrict slope = s->slope, *restrict below = s->below, *restrict slopes = s->slopes;
    real *restrict belows = s->belows;
    for (int64_t x = 0; x < s->count; x++) {
        slope[x] += across[x] * slopes[x];
        below[x] += across[x] * belows[x];
        slopes[x] = belows[x] = 0;
    }
}

/* Multiplies the coefficients of the windows by factors that the norms over the parts decide. Traces are those of one
   row of windows down, and of every frequency and window across, `windows` of them. */
static void NAME(shrink)(const struct NAME(strip) *s, const real *restrict cut, const real *restrict var,
                         const real *restrict trace, const real *restrict down, const real *restrict across,
                         int64_t windows, double jump) {
    const int64_t size = s->planes * s->by * s->bx, count = s->count, four = 4 * count;
    const real *source = s->guided ? s->models : s->coefficients;
    real *squares = s->squares;
    for (int64_t x = 0; x < count; x++) s->kept[x] = s->slope[x] = s->below[x] = s->slopes[x] = s->belows[x] = 0;
    int64_t even = 1;
    for (int64_t j = 0; j < size; j++) {
        s->traced[j] = trace[j] * down[j % s->by];
        even &= s->traced[j] == var[j];
    }
    for (int64_t j = 0; j < size; j += 4) {
        const real *from = source + j * count, *traced = s->traced + j;
        real *to = s->coefficients + j * count;
        if (j && j % s->by == 0 && !s->even) NAME(add_traces)(s, across + (j / s->by - 1) % s->bx * windows);
        if (s->parts > 1) {
            for (int64_t x = 0; x < four; x++) squares[x] = from[x] * from[x];
            for (int64_t part = 1; part < s->parts; part++)
                for (int64_t x = 0; x < four; x++)
                    squares[x] += from[part * size * count + x] * from[part * size * count + x];
            NAME(factors)(s, 0, even, squares, squares, cut + j, var + j, traced, jump);
            for (int64_t part = 0; part < s->parts; part++)
                for (int64_t x = 0; x < four; x++) to[part * size * count + x] *= squares[x];
        } else {
            NAME(factors)(s, 1, even, from, to, cut + j, var + j, traced, jump);
        }
    }
    NAME(add_traces)(s, s->even ? s->ones : across + (s->bx - 1) * windows);
}

/* Turns the noise let through into weights, and adds weights and divergences to all entries of the windows. */
static void NAME(spread)(const struct NAME(strip) *s, real mean_variance, real *restrict weight,
                         real *restrict divergence, int64_t pitch) {
    const real share = (real)1 / (real)(s->planes * s->by * s->bx);
    real *restrict kept = s->kept, *restrict slope = s->slope, *restrict below = s->below;
    for (int64_t x = 0; x < s->count; x++) {
        const real a = 1 / kept[x], more = 1 / (kept[x] + mean_variance);
        kept[x] = a;
        slope[x] = (a * slope[x] + more * below[x]) * share;
    }
    const real *const values[2] = {kept, slope};
    real *const images[2] = {weight, divergence};
    for (int which = 0; which < 2; which++) {
        const real *restrict value = values[which];
        real *restrict image = images[which], *restrict phases = s->phases, *restrict line = s->squares;
        for (int64_t x = 0; x < s->width; x++) phases[x] = 0;
        for (int64_t k = 0; k < s->bx; k++) {
            real *restrict to = phases + k % s->step * s->phase + k / s->step;
            for (int64_t x = 0; x < s->count; x++) to[x] += value[x];
        }
        for (int64_t k = 0; k < s->step; k++)
            for (int64_t x = 0; x < s->phase; x++) line[x * s->step + k] = phases[k * s->phase + x];
        for (int64_t k = 0; k < s->by; k++)
            for (int64_t x = 0; x < s->width; x++) image[k * pitch + x] += line[x];
    }
}

/* Treats one strip of images with rows of `pitch` entries; pointers are to its first entry. */
static void NAME(treat_strip)(const struct NAME(strip) *s, int64_t height, int64_t pitch, const real *const inputs[2],
                        const real *restrict dy, const real *restrict dx, const real *restrict cut,
                        const real *restrict var, const real *restrict trace, const real *restrict down,
                        const real *restrict across, int64_t windows, double jump, real *restrict out,
                        real *restrict weight, real *restrict divergence) {
    const int64_t by = s->by, row = s->row, depth = s->parts * s->planes, block = by * row;
    real *const outputs[2] = {s->coefficients, s->models};
    int64_t at[LONGEST];
    real mean_variance = 0;
    for (int64_t i = 0; i < s->planes * by * s->bx; i++) mean_variance += var[i];
    mean_variance /= (real)(s->planes * by * s->bx);
    for (int64_t x = 0; x < depth * block; x++) s->sums[x] = 0;
    for (int64_t r = 0; r < height; r++) {
        for (int64_t which = 0; which <= s->guided; which++)
            for (int64_t q = 0; q < depth; q++)
                NAME(across)(s, inputs[which] + (q * height + r) * pitch, dx,
                             s->lines[which] + q * block + r % by * row);
        const int64_t top = r - by + 1;
        if (top < 0 || top % s->step) continue;
        for (int64_t k = 0; k < by; k++) at[k] = (top + k) % by * row;
        for (int64_t which = 0; which <= s->guided; which++)
            for (int64_t q = 0; q < depth; q++)
                for (int64_t f = 0; f < s->bx; f++)
                    NAME(forward)(by, dy, s->lines[which] + q * block + f * s->count, at, s->count,
                                  outputs[which] + (q * s->bx + f) * by * s->count, s->count);
        NAME(shrink)(s, cut, var, trace, down + top / s->step * by, across, windows, jump);
        NAME(spread)(s, mean_variance, weight + top * pitch, divergence + top * pitch, pitch);
        for (int64_t q = 0; q < depth; q++)
            for (int64_t f = 0; f < s->bx; f++)
                NAME(backward)(by, dy, s->coefficients + (q * s->bx + f) * by * s->count, s->count, s->count, s->kept,
                               s->sums + q * block + f * s->count, at);
        for (int64_t k = 0; k < (r == height - 1 ? by : s->step); k++)
            for (int64_t q = 0; q < depth; q++)
                NAME(back_across)(s, s->sums + q * block + at[k], dx, out + (q * height + top + k) * pitch);
    }
}

/* Adds to `out`, `weight` and `divergence`, and returns 0; 1 if there is no memory.

   y and the pilot hold parts x planes images. Height and pitch are by and bx plus multiples of `step`, which divides
   both; by and bx are powers of 2 from 4 up to LONGEST. `cut`, `var` and `trace` are (plane, frequency across, frequency
   down). A coefficient counts in the divergence by its trace, times that of its row of windows, `down`, (row, frequency
   down), and of its column, `across`, (frequency across, column). */
EXPORT int64_t NAME(sliding_dct)(int64_t parts, int64_t planes, int64_t height, int64_t pitch, int64_t by, int64_t bx,
                                 int64_t step, int64_t guided, const real *y, const real *pilot, const real *dy,
                                 const real *dx, const real *cut, const real *var, const real *trace,
                                 const real *down, const real *across, double jump, real *out, real *weight,
                                 real *divergence) {
    const int64_t windows = (pitch - bx) / step + 1, strip = least(windows, STRIP), line = 64 / sizeof(real);
    const int64_t width = (strip - 1) * step + bx, row = (bx * strip + line) / line * line + line;
    const int64_t ring = parts * planes * by * row, wide = most(most(bx * strip, 4 * strip), width);
    const int64_t sizes[] = {ring,  ring,  ring, guided * ring, guided * ring, strip, strip, strip, strip, wide, width,
                             strip, strip, planes * by * bx};
    enum { BUFFERS = sizeof sizes / sizeof *sizes };
    int64_t total = line;
    for (int i = 0; i < BUFFERS; i++) total += (sizes[i] + line - 1) / line * line;
    real *const memory = malloc((size_t)total * sizeof(real));
    if (!memory) return 1;
    /* Every buffer starts at a line of the cache. */
    real *buffers[BUFFERS], *next = memory + (64 - (uintptr_t)memory % 64) / sizeof(real);
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = next;
        next += (sizes[i] + line - 1) / line * line;
    }
    for (int64_t first = 0; first < windows; first += STRIP) {
        const int64_t count = least(STRIP, windows - first), at = first * step;
        struct NAME(strip) s = {
            .parts = parts, .planes = planes, .by = by, .bx = bx, .step = step, .guided = guided,
            .count = count, .width = (count - 1) * step + bx, .phase = (count - 1) + bx / step, .row = row, .even = 1,
            .lines = {buffers[0], buffers[3]}, .sums = buffers[1], .coefficients = buffers[2], .models = buffers[4],
            .kept = buffers[5], .slope = buffers[6], .below = buffers[7], .ones = buffers[8], .squares = buffers[9],
            .phases = buffers[10], .slopes = buffers[11], .belows = buffers[12], .traced = buffers[13],
        };
        for (int64_t x = 0; x < count; x++) s.ones[x] = 1;
        for (int64_t f = 0; f < bx; f++)
            for (int64_t x = 0; x < count; x++) s.even &= across[f * windows + first + x] == 1;
        const real *const inputs[2] = {y + at, pilot + at};
        NAME(treat_strip)(&s, height, pitch, inputs, dy, dx, cut, var, trace, down, across + first, windows, jump, out + at,
                          weight + at, divergence + at);
    }
    free(memory);
    return 0;
}

#endif
