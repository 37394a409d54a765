/* Patches that look alike: for every reference, the nearest ones in a neighbourhood. The wrapper is `match_patches` in
   patches.py. */
#ifndef real

#include <math.h>
#include <string.h>

#include "loops.h"
#include "vectors.h"

/* The same as in patches.py. */
#define MEMBERS 32
/* References that are tested together first: most often, none has found a nearer patch. */
#define TESTED 16
/* Entries from one reference in a signal to the next, half a patch; and blocks of as many that vectors may read beyond a
   signal. The same as in patches.py. */
#define APART 32
#define FOLDED_MARGIN 40

#define LOOP "match_patches.c"
#include "both_precisions.h"

#else

/* The arguments of `match_patches`. */
struct NAME(match) {
    int64_t parts;
    const int64_t *shape, *patch;
    const real *x;
    int64_t rows;
    const int64_t *starts;
    int64_t columns;
    const int64_t *xs;
    int64_t even; /* so many of xs, from the first on, are 4 apart */
};

/* Differences in the upper and the lower half of patches and in both, and distances, of one row of references; of all
   references the sorted distances of the nearest patches, and the last one of these. */
struct NAME(scratch) {
    real *upper, *lower, *sums, *distances, *nearest, *farthest;
};

/* Inserts a patch into the list of the nearest ones, after those that are as near. The farthest one leaves. */
INLINE void NAME(insert)(real distance, int32_t place, real *restrict nearest, int32_t *restrict places) {
    /* What comes before each member. Those that are nearer stay, the first of the others becomes the new one. */
    real before[MEMBERS];
    int32_t previous[MEMBERS];
    before[0] = distance, previous[0] = place;
    memcpy(before + 1, nearest, (MEMBERS - 1) * sizeof(real));
    memcpy(previous + 1, places, (MEMBERS - 1) * sizeof(int32_t));
    for (int k = 0; k < MEMBERS; k++) {
        const int first = before[k] <= distance;
        places[k] = nearest[k] <= distance ? places[k] : first ? place : previous[k];
        nearest[k] = nearest[k] <= distance ? nearest[k] : first ? distance : before[k];
    }
}

/* Sets sums[c] to the squared differences at column c between two rows of patches, summed over the parts and over the
   rows from `first` to `last` of a patch. a and b are their first entries at column 0. */
static void NAME(differences)(const struct NAME(match) *restrict job, int64_t a, int64_t b, int64_t first, int64_t last,
                              int64_t low, int64_t high, real *restrict sums) {
    const int64_t nx = job->shape[2], plane = job->shape[1] * nx, size = job->shape[0] * plane;
    for (int64_t c = low; c < high; c++) sums[c] = 0;
    for (int64_t q = 0; q < job->parts; q++)
        for (int64_t i = 0; i < job->patch[0]; i++) {
            const real *restrict from = job->x + q * size + i * plane + a, *restrict to = from + (b - a);
            int64_t j = first;
            for (; j + 4 <= last; j += 4)
                for (int64_t c = low; c < high; c++) {
                    real sum = sums[c];
                    UNROLL
                    for (int k = 0; k < 4; k++) {
                        const real d = from[(j + k) * nx + c] - to[(j + k) * nx + c];
                        sum += d * d;
                    }
                    sums[c] = sum;
                }
            for (; j < last; j++)
                for (int64_t c = low; c < high; c++) {
                    const real d = from[j * nx + c] - to[j * nx + c];
                    sums[c] += d * d;
                }
        }
}

/* Sets out[r] to the sum of the px entries from a[xs[r]] on, px being a power of 2; the first `even` of xs are 4 apart.
   All are added in the same order: neighbours first. Overwrites a. */
static void NAME(sums_along)(int64_t px, int64_t count, const int64_t *restrict xs, int64_t even, real *restrict a,
                             real *restrict out) {
    int64_t r = 0;
    if (px == 8 && even > 0) {
        /* Sums of 4 entries serve two references. */
        const real *restrict from = a + xs[0], *restrict end = from + 4 * even;
        for (int64_t i = 0; i < even; i++)
            out[i] = (from[4 * i] + from[4 * i + 1]) + (from[4 * i + 2] + from[4 * i + 3]);
        for (int64_t i = 0; i + 1 < even; i++) out[i] += out[i + 1];
        out[even - 1] += (end[0] + end[1]) + (end[2] + end[3]);
        r = even;
        if (r == count) return;
    }
    const int64_t low = xs[r], high = xs[count - 1] + px;
    for (int64_t s = 1; s < px; s *= 2)
        for (int64_t c = low; c < high - s; c++) a[c] += a[c + s];
    for (; r < count; r++) out[r] = a[xs[r]];
}

/* Puts patches into the lists of references, if they are near enough. `farthest` holds the largest distance of each
   list. */
static void NAME(compare)(int64_t count, const real *restrict distances, const int64_t *restrict xs, int64_t place,
                          real *restrict farthest, real *restrict nearest, int32_t *restrict places) {
    for (int64_t start = 0; start < count; start += TESTED) {
        const int64_t stop = least(start + TESTED, count);
        int any = 0;
        for (int64_t r = start; r < stop; r++) any |= distances[r] < farthest[r];
        for (int64_t r = start; r < stop && any; r++)
            if (distances[r] < farthest[r]) {
                NAME(insert)(distances[r], (int32_t)(place + xs[r]), nearest + r * MEMBERS, places + r * MEMBERS);
                farthest[r] = nearest[r * MEMBERS + MEMBERS - 1];
            }
    }
}

/* Compares all references with the patches at one offset. */
static void NAME(match_offset)(const struct NAME(match) *restrict job, const int64_t *restrict offset,
                               struct NAME(scratch) some, int32_t *restrict places) {
    const int64_t nz = job->shape[0], ny = job->shape[1], nx = job->shape[2], *restrict patch = job->patch;
    const int64_t dx = offset[2], half = patch[1] / 2;
    /* References whose counterpart exists along x. */
    int64_t first = 0, last = job->columns;
    while (first < last && job->xs[first] + dx < 0) first++;
    while (first < last && job->xs[last - 1] + dx > nx - patch[2]) last--;
    if (first == last) return;
    const int64_t low = job->xs[first], high = job->xs[last - 1] + patch[2];
    int64_t known = -1; /* where the rows start whose differences are in `some.lower` */
    for (int64_t r = 0; r < job->rows; r++) {
        const int64_t z = job->starts[2 * r], y = job->starts[2 * r + 1], cz = z + offset[0], cy = y + offset[1];
        if (cz < 0 || cz > nz - patch[0] || cy < 0 || cy > ny - patch[1]) continue;
        const int64_t a = (z * ny + y) * nx, b = (cz * ny + cy) * nx + dx;
        /* The lower half of one reference is often the upper half of the next. */
        if (half && known == a) {
            real *swapped = some.upper;
            some.upper = some.lower, some.lower = swapped;
        } else {
            NAME(differences)(job, a, b, 0, half, low, high, some.upper);
        }
        NAME(differences)(job, a, b, half, patch[1], low, high, some.lower);
        known = a + half * nx;
        for (int64_t c = low; c < high; c++) some.sums[c] = some.upper[c] + some.lower[c];
        NAME(sums_along)(patch[2], last - first, job->xs + first, least(job->even, last) - first, some.sums,
                         some.distances);
        const int64_t list = r * job->columns + first;
        NAME(compare)(last - first, some.distances, job->xs + first, b, some.farthest + list,
                      some.nearest + list * MEMBERS, places + list * MEMBERS);
    }
}

#define LANES (VECTOR_BYTES / (int)sizeof(real))
/* Entries that need not be aligned. */
typedef real NAME(lanes) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));
#define AT(a) (*(NAME(lanes) *)&(a))

/* A signal, folded: entry i of part q is at ((q APART + i' % APART) `blocks` + i' / APART), i' = i + APART - phase. So
   that blocks of APART entries are side by side, as are the references, which are as far apart. */
struct NAME(folded) {
    int64_t blocks, phase;
    real *x;
};

/* Folds the signal whose first entry is `from`, so that references from `phase` on start a block. */
static void NAME(fold)(const struct NAME(match) *restrict job, int64_t from, const struct NAME(folded) *restrict to) {
    const int64_t nx = job->shape[2], size = job->shape[0] * job->shape[1] * nx;
    for (int64_t q = 0; q < job->parts; q++)
        for (int64_t j = 0; j < APART; j++) {
            real *restrict line = to->x + (q * APART + j) * to->blocks;
            for (int64_t b = 0; b < to->blocks; b++) {
                const int64_t i = (b - 1) * APART + j + to->phase;
                line[b] = i >= 0 && i < nx ? job->x[q * size + from + i] : 0;
            }
        }
}

/* Sets sums[b] to the squared differences between block `first` + b and what lies `offset` entries after it. Beyond
   `count` blocks, up to two vectors of sums are set to anything. */
static void NAME(block_differences)(const struct NAME(folded) *restrict signal, int64_t parts, int64_t first,
                                    int64_t count, int64_t offset, real *restrict sums) {
    for (int64_t b = 0; b < count; b += 2 * LANES) {
        NAME(lanes) all[4] = {{0}}; /* two vectors, of both halves of the blocks: sums that run side by side */
        for (int64_t q = 0; q < parts; q++)
            for (int64_t i = 0; i < APART / 2; i++)
                UNROLL
                for (int c = 0; c < 4; c++) {
                    const int64_t j = i + c / 2 * (APART / 2);
                    const int64_t there = j + offset + APART * signal->blocks; /* not negative */
                    const real *from = signal->x + (q * APART + j) * signal->blocks + first + b;
                    const real *to = signal->x + (q * APART + there % APART) * signal->blocks + first + b +
                                     (there / APART - signal->blocks);
                    const NAME(lanes) d = AT(from[c % 2 * LANES]) - AT(to[c % 2 * LANES]);
                    all[c] += d * d;
                }
        UNROLL
        for (int c = 0; c < 2; c++) AT(sums[b + c * LANES]) = all[c] + all[c + 2];
    }
}

/* Finds the nearest patches of `count` references of a signal, APART entries from one to the next, the first of which is
   at column xs[0]. `origin` is the first entry of the signal. */
static void NAME(match_run)(const struct NAME(match) *restrict job, int64_t origin, const struct NAME(folded) *signal,
                            int64_t count, const int64_t *restrict xs, int64_t candidates,
                            const int64_t *restrict offsets, real *restrict sums, real *restrict farthest,
                            real *restrict nearest, int32_t *restrict places) {
    const int64_t room = job->shape[2] - job->patch[2], block = (xs[0] - signal->phase) / APART + 1;
    for (int64_t o = 0; o < candidates; o++) {
        const int64_t dx = offsets[3 * o + 2];
        if (offsets[3 * o] || offsets[3 * o + 1] || dx < -room || dx > room) continue;
        /* References whose counterpart exists. */
        const int64_t first = xs[0] + dx < 0 ? (APART - 1 - xs[0] - dx) / APART : 0;
        const int64_t last = xs[count - 1] + dx > room ? count - (xs[count - 1] + dx - room + APART - 1) / APART : count;
        if (first >= last) continue;
        NAME(block_differences)(signal, job->parts, block + first, last - first + 1, dx, sums);
        for (int64_t r = 0; r < last - first; r++) sums[r] += sums[r + 1];
        NAME(compare)(last - first, sums, xs + first, origin + dx, farthest + first, nearest + first * MEMBERS,
                      places + first * MEMBERS);
    }
}

/* Finds the nearest patches of all references in signals: rows of the data, with patches of 2 APART entries along x. */
static void NAME(match_signals)(const struct NAME(match) *restrict job, int64_t candidates, const int64_t *offsets,
                                real *scratch, struct NAME(scratch) some, int32_t *places) {
    const int64_t nx = job->shape[2];
    for (int64_t r = 0; r < job->rows; r++) {
        const int64_t origin = (job->starts[2 * r] * job->shape[1] + job->starts[2 * r + 1]) * nx;
        for (int64_t first = 0, last; first < job->columns; first = last) {
            for (last = first + 1; last < job->columns && job->xs[last] == job->xs[last - 1] + APART;) last++;
            const struct NAME(folded) signal = {nx / APART + FOLDED_MARGIN, job->xs[first] % APART, scratch};
            NAME(fold)(job, origin, &signal);
            const int64_t list = r * job->columns + first;
            NAME(match_run)(job, origin, &signal, last - first, job->xs + first, candidates, offsets,
                            scratch + job->parts * APART * signal.blocks, some.farthest + list,
                            some.nearest + list * MEMBERS, places + list * MEMBERS);
        }
    }
}

#undef AT
#undef LANES

/* Finds the nearest patches of the references at all rows (starts[2 r], starts[2 r + 1]) and ascending columns xs.

   places[(r columns + c) MEMBERS + k] is set to the k-th nearest patch, named by the index of its first entry in one
   part. x holds `parts` arrays of shape nz x ny x nx. Distances are sums of squared differences over patches of
   pz x py x px entries in all parts; px is a power of 2. `offsets` holds (dz, dy, dx) per candidate, (0, 0, 0) first;
   earlier ones win ties. Scratch: `sums` of 3 nx + columns entries, of patches with px = 64 of (parts + 1) (nx + APART
   FOLDED_MARGIN); `nearest` of rows * columns * (MEMBERS + 1). */
EXPORT void NAME(match_patches)(int64_t parts, const int64_t *shape, const int64_t *patch, const real *x, int64_t rows,
                                const int64_t *starts, int64_t columns, const int64_t *xs, int64_t candidates,
                                const int64_t *offsets, real *sums, real *nearest, int32_t *places) {
    int64_t even = 1;
    while (even < columns && xs[even] == xs[even - 1] + 4) even++;
    const struct NAME(match) job = {parts, shape, patch, x, rows, starts, columns, xs, even};
    const int64_t nx = shape[2], lists = rows * columns;
    const struct NAME(scratch) some = {sums,          sums + nx, sums + 2 * nx,
                                       sums + 3 * nx, nearest,   nearest + lists * MEMBERS};
    /* Where there are fewer patches than members, the reference itself fills up. */
    for (int64_t i = 0; i < lists; i++) {
        const int64_t r = i / columns, at = (starts[2 * r] * shape[1] + starts[2 * r + 1]) * nx + xs[i % columns];
        for (int64_t k = i * MEMBERS; k < (i + 1) * MEMBERS; k++) nearest[k] = INFINITY, places[k] = (int32_t)at;
        some.farthest[i] = INFINITY;
    }
    if (patch[2] == 2 * APART)
        NAME(match_signals)(&job, candidates, offsets, sums, some, places);
    else
        for (int64_t o = 0; o < candidates; o++) NAME(match_offset)(&job, offsets + 3 * o, some, places);
}

#endif
