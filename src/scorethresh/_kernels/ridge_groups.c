/* Groups of patches that look alike: every patch becomes a combination of all in its group, with the weights of least
   risk if the truth were the pilot. The wrapper is `ridge_groups` in patches.py. */
#ifndef real

#include <string.h>

#include "loops.h"
#include "vectors.h"

/* The same as in patches.py. */
#define SIZE 64
#define MEMBERS 32
/* Vectors that are summed at once, as many as the registers hold well beside what is added. */
#if defined(__AVX512F__)
#define ROWS 16
#else
#define ROWS 8
#endif
/* The largest energy of a group, over that of the noise in one patch, that a precision serves. Rounding then moves an
   estimate by less than 1e-3 noise levels. */
#define SINGLE_ENERGY 1e4
#define DOUBLE_ENERGY 1e12
/* Keeps the products of the data invertible, over the noise. */
#define LEAST_RIDGE 1e-4

#define LOOP "ridge_groups.c"
#include "both_precisions.h"

#else

/* The arguments of `ridge_groups`. */
struct NAME(ridge) {
    int64_t parts, followers, size, ny, nx;
    const int64_t *patch, *rows;
    const real *pilot, *data;
    double level, share, least_power;
    int64_t first, length;
    real *total, *weight, *divergence;
};

#define wide float
#define whole int32_t
#define LANES FLOAT_LANES
#define ALGEBRA(name) NAME(name##_single)
#include "ridge.h"
#undef wide
#undef whole
#undef LANES
#undef ALGEBRA
#define wide double
#define whole int64_t
#define LANES DOUBLE_LANES
#define ALGEBRA(name) NAME(name##_double)
#include "ridge.h"
#undef wide
#undef whole
#undef LANES
#undef ALGEBRA

INLINE void NAME(groups_of)(const int64_t px, const struct NAME(ridge) *restrict job, int64_t groups,
                            const int32_t *restrict places) {
    for (int64_t g = 0; g < groups; g++) {
        const int32_t *at = places + g * MEMBERS;
        if (!NAME(group_single)(px, SINGLE_ENERGY, 1, job, at)) NAME(group_double)(px, DOUBLE_ENERGY, 0, job, at);
    }
}

/* Adds to every entry the sum of those 1, 2, ... count - 1 strides before it; count is a power of 2. */
static void NAME(spread)(int64_t length, int64_t count, int64_t stride, real *restrict a) {
    for (int64_t s = stride; s < count * stride; s *= 2)
        /* From the end on, in blocks that do not overlap with what is added to them. */
        for (int64_t end = length; end > s; end -= least(s, end - s)) {
            const int64_t block = least(s, end - s);
            real *restrict to = a + end - block;
            const real *restrict from = to - s;
            for (int64_t i = 0; i < block; i++) to[i] += from[i];
        }
}

/* Adds up the weighted estimates of all groups, their weights and weighted divergences.

   pilot and data hold `parts` arrays of shape nz x ny x nx. `followers` more arrays after the data are combined as
   these are, and do not decide. places[g MEMBERS + k] is the first entry of patch k. A patch has the sides pz, py, px,
   SIZE entries in all, px being 4, 8 or 64; its rows start rows[i] entries after the first one. `level` is the noise
   level of the data, `share` that of the data's own products. A weight is one over the noise power that is let through,
   which counts as `least_power` at least. Outputs hold `length` entries per array, from entry `first` on. */
EXPORT void NAME(ridge_groups)(int64_t parts, int64_t followers, const int64_t *shape, const int64_t *patch,
                               const int64_t *rows, const real *pilot, const real *data, double level, double share,
                               double least_power, int64_t groups, const int32_t *places, int64_t first,
                               int64_t length, real *total, real *weight, real *divergence) {
    const struct NAME(ridge) job = {parts, followers, shape[0] * shape[1] * shape[2], shape[1], shape[2], patch, rows,
                                    pilot, data, level, share, least_power, first, length, total, weight, divergence};
    if (patch[2] == 4)
        NAME(groups_of)(4, &job, groups, places);
    else if (patch[2] == 8)
        NAME(groups_of)(8, &job, groups, places);
    else
        NAME(groups_of)(64, &job, groups, places);
    /* So far the weights and divergences of a patch are in its first row, or in its first entry if it has one row. */
    real *sums[2] = {weight, divergence};
    for (int i = 0; i < 2; i++) {
        if (patch[2] == SIZE) NAME(spread)(length, SIZE, 1, sums[i]);
        NAME(spread)(length, patch[1], shape[2], sums[i]);
        NAME(spread)(length, patch[0], shape[1] * shape[2], sums[i]);
    }
}

/* Does the same for `signals` of `size` entries with noise levels of their own. Each has `groups` groups; places are
   indices into all signals. Outputs hold an entry per entry of the data. */
EXPORT void NAME(ridge_signals)(int64_t signals, int64_t size, int64_t followers, const real *pilot, const real *data,
                                const double *levels, double share, double least_power, int64_t groups,
                                const int32_t *places, real *total, real *weight, real *divergence) {
    const int64_t patch[3] = {1, 1, SIZE}, rows[1] = {0}, length = signals * size;
    struct NAME(ridge) job = {1, followers, length, 1, size, patch, rows, pilot, data, 0, share, least_power, 0, length,
                              total, weight, divergence};
    for (int64_t r = 0; r < signals; r++) {
        job.level = levels[r];
        NAME(groups_of)(SIZE, &job, groups, places + r * groups * MEMBERS);
    }
    NAME(spread)(length, SIZE, 1, weight); /* no patch reaches into the next signal */
    NAME(spread)(length, SIZE, 1, divergence);
}

#endif
