/* Patches that look alike: for every reference, the nearest ones in a neighbourhood. The wrapper is `match_patches` in
   patches.py. */
#ifndef real

#include <math.h>

#include "loops.h"

#define LOOP "match_patches.c"
#include "both_precisions.h"

#else

/* Inserts a patch into the sorted list of the `members` nearest ones. */
INLINE void NAME(insert)(int64_t members, real distance, int32_t place, real *restrict nearest,
                         int32_t *restrict places) {
    int64_t k = members - 1;
    for (; k > 0 && nearest[k - 1] > distance; k--) {
        nearest[k] = nearest[k - 1];
        places[k] = places[k - 1];
    }
    nearest[k] = distance;
    places[k] = place;
}

/* For the references that start at row (z, y) and at the ascending columns xs: sets places[r members + k] to the k-th
   nearest patch, named by the index of its first entry in one part. */
static void NAME(match_row)(int64_t parts, const int64_t *restrict shape, const int64_t *restrict patch,
                            const real *restrict x, int64_t z, int64_t y, int64_t count, const int64_t *restrict xs,
                            int64_t candidates, const int64_t *restrict offsets, int64_t members, real *restrict sums,
                            real *restrict nearest, int32_t *restrict places) {
    const int64_t ny = shape[1], nx = shape[2], px = patch[2], size = shape[0] * ny * nx;
    for (int64_t i = 0; i < count * members; i++) nearest[i] = INFINITY;
    for (int64_t o = 0; o < candidates; o++) {
        const int64_t cz = z + offsets[3 * o], cy = y + offsets[3 * o + 1], dx = offsets[3 * o + 2];
        if (cz < 0 || cz > shape[0] - patch[0] || cy < 0 || cy > ny - patch[1]) continue;
        /* Columns of references whose counterpart exists. */
        const int64_t low = most(xs[0], -dx), high = least(xs[count - 1] + px, nx - dx);
        if (high - low < px) continue;
        for (int64_t i = low; i < high; i++) sums[i] = 0;
        for (int64_t q = 0; q < parts; q++)
            for (int64_t i = 0; i < patch[0]; i++)
                for (int64_t j = 0; j < patch[1]; j++) {
                    const real *restrict a = x + q * size + ((z + i) * ny + y + j) * nx;
                    const real *restrict b = x + q * size + ((cz + i) * ny + cy + j) * nx + dx;
                    for (int64_t c = low; c < high; c++) sums[c] += (a[c] - b[c]) * (a[c] - b[c]);
                }
        /* Sums over 2, 4, ... px columns. */
        for (int64_t s = 1; s < px; s *= 2)
            for (int64_t c = low; c < high - s; c++) sums[c] += sums[c + s];
        for (int64_t r = 0; r < count; r++) {
            if (xs[r] < low || xs[r] > high - px) continue;
            real *restrict list = nearest + r * members;
            if (sums[xs[r]] < list[members - 1])
                NAME(insert)(members, sums[xs[r]], (int32_t)((cz * ny + cy) * nx + xs[r] + dx), list,
                             places + r * members);
        }
    }
    /* Where there are fewer patches than members, the reference itself fills up. */
    for (int64_t r = 0; r < count; r++)
        for (int64_t k = 0; k < members; k++)
            if (nearest[r * members + k] == INFINITY) places[r * members + k] = (int32_t)((z * ny + y) * nx + xs[r]);
}

/* Matches the references at all rows (starts[2 r], starts[2 r + 1]) and columns xs.

   x holds `parts` arrays of shape nz x ny x nx. Distances are sums of squared differences over patches of pz x py x px
   entries in all parts; px is a power of 2. `offsets` holds (dz, dy, dx) per candidate, (0, 0, 0) first; earlier ones win
   ties. `sums` is scratch of nx entries, `nearest` of columns * members. */
EXPORT void NAME(match_patches)(int64_t parts, const int64_t *shape, const int64_t *patch, const real *x, int64_t rows,
                                const int64_t *starts, int64_t columns, const int64_t *xs, int64_t candidates,
                                const int64_t *offsets, int64_t members, real *sums, real *nearest, int32_t *places) {
    for (int64_t r = 0; r < rows; r++)
        NAME(match_row)(parts, shape, patch, x, starts[2 * r], starts[2 * r + 1], columns, xs, candidates, offsets,
                        members, sums, nearest, places + r * columns * members);
}

#endif
