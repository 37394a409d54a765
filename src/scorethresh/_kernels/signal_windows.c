/* Coefficients of the windows of signals: shrunk, and the windows averaged. The wrappers are `shrink_windows` and
   `average_windows` in signal_windows.py. */
#ifndef real

#include <string.h>

#include "loops.h"

/* Sums that run side by side, so that loops over a window can be vectorised. The sides are multiples of it. */
#define SUMS 16

#define LOOP "signal_windows.c"
#include "both_precisions.h"

#else

INLINE real NAME(sum_of)(const real *restrict sums) {
    real out = 0;
    for (int k = 0; k < SUMS; k++) out += sums[k];
    return out;
}

/* Keeps the coefficients of a window that reach their cut. `low` and `high` are the squares of the ends of the kernel at
   the jump, `limit` that of the cut. */
INLINE void NAME(keep_window)(int64_t side, const real *restrict from, const real *restrict low,
                              const real *restrict limit, const real *restrict high, const real *restrict variance,
                              const real *restrict trace, real mean_variance, real kernel, real *restrict to,
                              real *restrict weight, real *restrict divergence) {
    real kept[SUMS] = {0}, above[SUMS] = {0}, below[SUMS] = {0};
    for (int64_t i = 0; i < side; i += SUMS)
        for (int k = 0; k < SUMS; k++) {
            const real c = from[i + k], square = c * c, t = trace[i + k];
            /* Products in place of branches, so that it is vectorised. */
            const real in = square >= limit[i + k] ? 1 : 0, under = square < high[i + k] ? 1 + kernel : 1;
            const real over = square > low[i + k] ? kernel : 0;
            to[i + k] = in * c;
            kept[k] += in * variance[i + k];
            above[k] += in * under * t;
            below[k] += (1 - in) * over * t;
        }
    const real all = NAME(sum_of)(kept);
    *weight = 1 / all;
    *divergence = NAME(sum_of)(above) / all + NAME(sum_of)(below) / (all + mean_variance);
    for (int64_t i = 0; i < side; i++) to[i] *= *weight;
}

/* Multiplies the coefficients of a window by g^2 / (g^2 + cut), g those of the pilot. */
INLINE void NAME(guide_window)(int64_t side, const real *restrict from, const real *restrict pilot,
                               const real *restrict cut, const real *restrict variance,
                               const real *restrict trace, real *restrict to, real *restrict weight,
                               real *restrict divergence) {
    real kept[SUMS] = {0}, through[SUMS] = {0};
    for (int64_t i = 0; i < side; i += SUMS)
        for (int k = 0; k < SUMS; k++) {
            const real square = pilot[i + k] * pilot[i + k] + (real)1e-30, factor = square / (square + cut[i + k]);
            to[i + k] = from[i + k] * factor;
            kept[k] += factor * factor * variance[i + k];
            through[k] += factor * trace[i + k];
        }
    const real all = NAME(sum_of)(kept);
    *weight = 1 / all;
    *divergence = NAME(sum_of)(through) / all;
    for (int64_t i = 0; i < side; i++) to[i] *= *weight;
}

/* Sets `to`, windows x side, to shrunk coefficients times the weight of their window: one over the noise variance that
   it lets through. `divergence` is set to the divergence of a window times its weight.

   Data repeat after `cycle` windows, and `trace`, by which coefficients count in the divergence, after `row`. With a
   pilot, `cut` holds what is added to its squares; without one, the squares of the lower end of the kernel at the jump,
   of the threshold, and of the upper end, 3 x side. `kernel` is the height of the kernel. */
EXPORT void NAME(shrink_windows)(int64_t windows, int64_t side, int64_t cycle, int64_t row, const real *data,
                                 int64_t guided, const real *pilot, const real *cut, const real *variance,
                                 const real *trace, double kernel, real *to, real *weight, real *divergence) {
    real mean = 0;
    for (int64_t i = 0; i < side; i++) mean += variance[i] / (real)side;
    for (int64_t w = 0; w < windows; w++) {
        const real *from = data + w % cycle * side, *counts = trace + w % row * side;
        if (guided)
            NAME(guide_window)(side, from, pilot + w * side, cut, variance, counts, to + w * side, weight + w,
                               divergence + w);
        else
            NAME(keep_window)(side, from, cut, cut + side, cut + 2 * side, variance, counts, mean, (real)kernel,
                              to + w * side, weight + w, divergence + w);
    }
}

/* Averages windows of `side` entries, `step` apart, `count` per row: sets value and divergence, rows x size, from entry
   side - 1 of the first window on. Windows hold their values times their weights. The divergence of a window is spread
   evenly. Scratch: three times (count - 1) step + side entries. */
EXPORT void NAME(average_windows)(int64_t rows, int64_t count, int64_t side, int64_t step, int64_t size,
                                  const real *windows, const real *weight, const real *divergence, real *scratch,
                                  real *value, real *spread) {
    const int64_t width = (count - 1) * step + side;
    real *restrict total = scratch, *restrict weights = scratch + width, *restrict through = scratch + 2 * width;
    for (int64_t r = 0; r < rows; r++) {
        memset(scratch, 0, (size_t)(3 * width) * sizeof(real));
        for (int64_t w = 0; w < count; w++) {
            const real *restrict from = windows + (r * count + w) * side;
            for (int64_t i = 0; i < side; i++) total[w * step + i] += from[i];
            /* Weights are the same for every entry of a step, so the first one is enough. */
            for (int64_t i = 0; i < side; i += step) {
                weights[w * step + i] += weight[r * count + w];
                through[w * step + i] += divergence[r * count + w] / (real)side;
            }
        }
        for (int64_t i = 0; i < size; i++) {
            const int64_t at = side - 1 + i, block = at / step * step;
            value[r * size + i] = total[at] / weights[block];
            spread[r * size + i] = through[block] / weights[block];
        }
    }
}

#endif
