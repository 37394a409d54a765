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
    real *lines[2], *sums, *coefficients, *models;
    real *kept, *slope, *below, *squares, *phases, *ones;
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
   and the derivatives are added up. */
INLINE void NAME(pilot_factors)(const struct NAME(strip) *s, const int single, const real *from, real *to,
                                const real *restrict cut, const real *restrict var) {
    real *restrict kept = s->kept, *restrict slope = s->slope;
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
            derivative += var[i] * parts * a;
        }
        kept[x] = noise;
        slope[x] = derivative;
    }
}

/* The same for hard thresholding. At a jump the derivative is a boxcar of half width `jump`, relative to the threshold.
   What lies just below the threshold is added up apart: if it were kept, its window would weigh less. */
INLINE void NAME(hard_factors)(const struct NAME(strip) *s, const int single, const real *from, real *to,
                               const real *restrict cut, const real *restrict var, double jump) {
    real *restrict kept = s->kept, *restrict slope = s->slope, *restrict below = s->below;
    const int64_t count = s->count;
    const real parts = (real)s->parts, height = (real)(0.5 / jump);
    const real inner = (real)((1 - jump) * (1 - jump)), outer = (real)((1 + jump) * (1 + jump));
    INDEPENDENT
    for (int64_t x = 0; x < count; x++) {
        real noise = kept[x], derivative = slope[x], missed = below[x];
        UNROLL
        for (int i = 0; i < 4; i++) {
            const real value = from[i * count + x], g = single ? value * value : value;
            const real limit = cut[i] * cut[i], above = g >= limit ? var[i] : (real)0, under = var[i] - above;
            to[i * count + x] = g >= limit ? (single ? value : (real)1) : (real)0;
            noise += above;
            derivative += above * (g < limit * outer ? parts + height : parts);
            missed += g > limit * inner ? under * height : (real)0;
        }
        kept[x] = noise;
        slope[x] = derivative;
        below[x] = missed;
    }
}

/* Multiplies the coefficients of the windows by factors that the norms over the parts decide. */
static void NAME(shrink)(const struct NAME(strip) *s, const real *restrict cut, const real *restrict var,
                         double jump) {
    const int64_t size = s->planes * s->by * s->bx, count = s->count, four = 4 * count;
    const real *source = s->guided ? s->models : s->coefficients;
    real *squares = s->squares;
    for (int64_t x = 0; x < count; x++) s->kept[x] = s->slope[x] = s->below[x] = 0;
    for (int64_t j = 0; j < size; j += 4) {
        const real *from = source + j * count;
        real *to = s->coefficients + j * count;
        if (s->parts == 1) {
            if (s->guided) {
                NAME(pilot_factors)(s, 1, from, to, cut + j, var + j);
            } else {
                NAME(hard_factors)(s, 1, from, to, cut + j, var + j, jump);
            }
            continue;
        }
        for (int64_t x = 0; x < four; x++) squares[x] = from[x] * from[x];
        for (int64_t part = 1; part < s->parts; part++)
            for (int64_t x = 0; x < four; x++) squares[x] += from[part * size * count + x] * from[part * size * count + x];
        if (s->guided) {
            NAME(pilot_factors)(s, 0, squares, squares, cut + j, var + j);
        } else {
            NAME(hard_factors)(s, 0, squares, squares, cut + j, var + j, jump);
        }
        for (int64_t part = 0; part < s->parts; part++)
            for (int64_t x = 0; x < four; x++) to[part * size * count + x] *= squares[x];
    }
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
                        const real *restrict var, double jump, real *restrict out, real *restrict weight,
                        real *restrict divergence) {
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
        NAME(shrink)(s, cut, var, jump);
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
   both; by and bx are powers of 2 up to LONGEST. `cut` and `var` are (plane, frequency across, frequency down). */
EXPORT int64_t NAME(sliding_dct)(int64_t parts, int64_t planes, int64_t height, int64_t pitch, int64_t by, int64_t bx,
                                 int64_t step, int64_t guided, const real *y, const real *pilot, const real *dy,
                                 const real *dx, const real *cut, const real *var, double jump, real *out,
                                 real *weight, real *divergence) {
    const int64_t windows = (pitch - bx) / step + 1, strip = least(windows, STRIP), line = 64 / sizeof(real);
    const int64_t width = (strip - 1) * step + bx, row = (bx * strip + line) / line * line + line;
    const int64_t ring = parts * planes * by * row, wide = most(most(bx * strip, 4 * strip), width);
    const int64_t sizes[] = {ring, ring, ring, guided * ring, guided * ring, strip, strip, strip, strip, wide, width};
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
        const struct NAME(strip) s = {
            .parts = parts, .planes = planes, .by = by, .bx = bx, .step = step, .guided = guided,
            .count = count, .width = (count - 1) * step + bx, .phase = (count - 1) + bx / step, .row = row,
            .lines = {buffers[0], buffers[3]}, .sums = buffers[1], .coefficients = buffers[2], .models = buffers[4],
            .kept = buffers[5], .slope = buffers[6], .below = buffers[7], .ones = buffers[8], .squares = buffers[9],
            .phases = buffers[10],
        };
        for (int64_t x = 0; x < count; x++) s.ones[x] = 1;
        const real *const inputs[2] = {y + at, pilot + at};
        NAME(treat_strip)(&s, height, pitch, inputs, dy, dx, cut, var, jump, out + at, weight + at, divergence + at);
    }
    free(memory);
    return 0;
}

#endif
