/* Ridge regression within one group of patches. Included by ridge_groups.c, once per precision of the images (`real`)
   and of the algebra (`wide`, LANES of which make a vector, with `whole` for integers of that size). A patch is made of
   rows of `px` neighbouring entries, a constant of the caller. Matrices are products of blocks that the registers hold:
   all time goes into these products. */

typedef VECTOR(wide, VECTOR_BYTES) ALGEBRA(vector);
typedef VECTOR(whole, VECTOR_BYTES) ALGEBRA(indices);
typedef VECTOR(real, LANES * sizeof(real)) ALGEBRA(images);

/* The vector at the place of entry a. */
#define AT(a) (*(ALGEBRA(vector) *)&(a))

/* Sets y[k] to the entries of patch k less their mean over the group, and returns the mean. All are taken relative to
   the first one, so that large values do not cost digits. */
INLINE real ALGEBRA(gather)(const int64_t px, const real *restrict image, const int32_t *restrict at,
                            const int64_t *restrict rows, wide y[MEMBERS][SIZE]) {
    const real base = image[at[0]];
    ALIGNED real raw[MEMBERS][SIZE];
    for (int k = 0; k < MEMBERS; k++)
        for (int64_t i = 0; i < SIZE / px; i++)
            memcpy(&raw[k][i * px], image + at[k] + rows[i], (size_t)px * sizeof(real));
    ALGEBRA(vector) sums[4] = {{0}};
    for (int k = 0; k < MEMBERS; k++)
        for (int p = 0; p < SIZE; p += 4 * LANES)
            UNROLL
            for (int s = 0; s < 4; s++) {
                const ALGEBRA(images) some = *(ALGEBRA(images) *)&raw[k][p + s * LANES] - base;
                AT(y[k][p + s * LANES]) = __builtin_convertvector(some, ALGEBRA(vector));
                sums[s] += AT(y[k][p + s * LANES]);
            }
    wide mean = 0;
    sums[0] += sums[1] + (sums[2] + sums[3]);
    for (int i = 0; i < LANES; i++) mean += sums[0][i];
    mean /= SIZE * MEMBERS;
    for (int k = 0; k < MEMBERS; k++)
        for (int p = 0; p < SIZE; p += LANES) AT(y[k][p]) -= mean;
    return base + (real)mean;
}

/* Sets the LANES x LANES entries at b to the transpose of those at a; rows are so many entries apart. */
INLINE void ALGEBRA(transpose)(const wide *restrict a, const int a_row, wide *restrict b, const int b_row) {
    ALGEBRA(vector) v[LANES], w[LANES];
    UNROLL
    for (int i = 0; i < LANES; i++) v[i] = AT(a[i * a_row]);
    /* Each time, the rows of the upper half are interleaved with those of the lower half. */
    UNROLL
    for (int size = 1; size < LANES; size *= 2) {
        UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            w[2 * i] = INTERLEAVE(LOW, LANES, ALGEBRA(indices), v[i], v[i + LANES / 2]);
            w[2 * i + 1] = INTERLEAVE(HIGH, LANES, ALGEBRA(indices), v[i], v[i + LANES / 2]);
        }
        UNROLL
        for (int i = 0; i < LANES; i++) v[i] = w[i];
    }
    UNROLL
    for (int i = 0; i < LANES; i++) AT(b[i * b_row]) = v[i];
}

/* Adds factor times the products of all pairs of patches to a, of which entries left of the blocks on the diagonal need
   not be right. */
INLINE void ALGEBRA(add_products)(wide y[MEMBERS][SIZE], wide factor, wide a[MEMBERS][MEMBERS]) {
    ALIGNED wide x[SIZE][MEMBERS];
    for (int k = 0; k < MEMBERS; k += LANES)
        for (int p = 0; p < SIZE; p += LANES) ALGEBRA(transpose)(&y[k][p], SIZE, &x[p][k], MEMBERS);
    for (int left = 0; left < MEMBERS; left += LANES)
        for (int top = 0; top < left + LANES; top += ROWS) {
            ALGEBRA(vector) sums[ROWS] = {{0}};
            for (int p = 0; p < SIZE; p++) {
                const ALGEBRA(vector) v = AT(x[p][left]);
                UNROLL
                for (int r = 0; r < ROWS; r++) sums[r] += x[p][top + r] * v;
            }
            UNROLL
            for (int r = 0; r < ROWS; r++) AT(a[top + r][left]) += factor * sums[r];
        }
}

/* Makes a matrix symmetric, given the blocks on the diagonal and right of them. */
INLINE void ALGEBRA(mirror)(wide a[MEMBERS][MEMBERS]) {
    for (int top = LANES; top < MEMBERS; top += LANES)
        for (int left = 0; left < top; left += LANES)
            ALGEBRA(transpose)(&a[left][top], MEMBERS, &a[top][left], MEMBERS);
}

/* Replaces a block of a matrix by its inverse (Gauss and Jordan; a positive definite matrix needs no pivots). */
INLINE void ALGEBRA(invert_block)(wide *a) {
    ALGEBRA(vector) v[LANES];
    UNROLL
    for (int i = 0; i < LANES; i++) v[i] = AT(a[i * MEMBERS]);
    UNROLL
    for (int k = 0; k < LANES; k++) {
        const wide inverse = 1 / v[k][k];
        v[k][k] = 1;
        v[k] *= inverse;
        UNROLL
        for (int i = 0; i < LANES; i++) {
            if (i == k) continue;
            const wide factor = v[i][k];
            v[i][k] = 0;
            v[i] -= factor * v[k];
        }
    }
    UNROLL
    for (int i = 0; i < LANES; i++) AT(a[i * MEMBERS]) = v[i];
}

/* Sets block c to a b. */
INLINE void ALGEBRA(multiply_blocks)(const wide *restrict a, const wide *restrict b, wide *restrict c) {
    ALGEBRA(vector) sums[LANES] = {{0}};
    for (int l = 0; l < LANES; l++)
        UNROLL
        for (int r = 0; r < LANES; r++) sums[r] += a[r * MEMBERS + l] * AT(b[l * MEMBERS]);
    UNROLL
    for (int r = 0; r < LANES; r++) AT(c[r * MEMBERS]) = sums[r];
}

/* Subtracts a' b from block c. */
INLINE void ALGEBRA(subtract_blocks)(const wide *restrict a, const wide *restrict b, wide *restrict c) {
    ALGEBRA(vector) sums[LANES];
    UNROLL
    for (int r = 0; r < LANES; r++) sums[r] = AT(c[r * MEMBERS]);
    for (int l = 0; l < LANES; l++)
        UNROLL
        for (int r = 0; r < LANES; r++) sums[r] -= a[l * MEMBERS + r] * AT(b[l * MEMBERS]);
    UNROLL
    for (int r = 0; r < LANES; r++) AT(c[r * MEMBERS]) = sums[r];
}

/* Replaces a positive definite matrix by minus its inverse. Of both, only the blocks on the diagonal and right of it
   are used: every step of this order of Gauss and Jordan's steps (a sweep) leaves a symmetric matrix. */
INLINE void ALGEBRA(invert)(wide a[MEMBERS][MEMBERS]) {
    ALIGNED wide row[LANES][MEMBERS], swept[LANES][MEMBERS];
    for (int k = 0; k < MEMBERS; k += LANES) {
        ALGEBRA(invert_block)(&a[k][k]);
        for (int j = 0; j < MEMBERS; j += LANES) {
            if (j < k) ALGEBRA(transpose)(&a[j][k], MEMBERS, &row[0][j], MEMBERS);
            for (int i = 0; i < LANES && j > k; i++) AT(row[i][j]) = AT(a[k + i][j]);
            if (j != k) ALGEBRA(multiply_blocks)(&a[k][k], &row[0][j], &swept[0][j]);
        }
        for (int j = 0; j < MEMBERS; j += LANES)
            for (int i = 0; i <= j && j != k; i += LANES)
                if (i != k) ALGEBRA(subtract_blocks)(&row[0][i], &swept[0][j], &a[i][j]);
        for (int i = 0; i < LANES; i++) AT(swept[i][k]) = -AT(a[k + i][k]);
        for (int j = 0; j < k; j += LANES) ALGEBRA(transpose)(&swept[0][j], MEMBERS, &a[j][k], MEMBERS);
        for (int j = k; j < MEMBERS; j += LANES)
            for (int i = 0; i < LANES; i++) AT(a[k + i][j]) = AT(swept[i][j]);
    }
}

/* Sets e[k] to the sum over l of theta[l][k] y[l]. */
INLINE void ALGEBRA(combine)(wide theta[MEMBERS][MEMBERS], wide y[MEMBERS][SIZE], wide e[MEMBERS][SIZE]) {
    for (int k = 0; k < MEMBERS; k += ROWS / 2)
        for (int p = 0; p < SIZE; p += 2 * LANES) {
            ALGEBRA(vector) left[ROWS / 2] = {{0}}, right[ROWS / 2] = {{0}};
            for (int l = 0; l < MEMBERS; l++)
                UNROLL
                for (int r = 0; r < ROWS / 2; r++) {
                    left[r] += theta[l][k + r] * AT(y[l][p]);
                    right[r] += theta[l][k + r] * AT(y[l][p + LANES]);
                }
            UNROLL
            for (int r = 0; r < ROWS / 2; r++) AT(e[k + r][p]) = left[r], AT(e[k + r][p + LANES]) = right[r];
        }
}

/* Sets shares[k] to the mean derivative of the group's mean by an entry of patch k: the number of patches that hold the
   entry, over the number of all entries. */
INLINE void ALGEBRA(mean_shares)(const struct NAME(ridge) *restrict job, const int32_t *restrict at,
                                 wide shares[MEMBERS]) {
    int32_t z[MEMBERS], y[MEMBERS], x[MEMBERS];
    const int32_t pz = (int32_t)job->patch[0], py = (int32_t)job->patch[1], px = (int32_t)job->patch[2];
    for (int k = 0; k < MEMBERS; k++) {
        const int32_t row = at[k] / (int32_t)job->nx;
        x[k] = at[k] % (int32_t)job->nx;
        y[k] = row % (int32_t)job->ny;
        z[k] = row / (int32_t)job->ny;
    }
    for (int k = 0; k < MEMBERS; k++) {
        int32_t overlap = 0;
        for (int l = 0; l < MEMBERS; l++) {
            int32_t dz = z[k] - z[l], dy = y[k] - y[l], dx = x[k] - x[l];
            dz = pz - (dz < 0 ? -dz : dz), dy = py - (dy < 0 ? -dy : dy), dx = px - (dx < 0 ? -dx : dx);
            overlap += (dz > 0 ? dz : 0) * (dy > 0 ? dy : 0) * (dx > 0 ? dx : 0);
        }
        shares[k] = (wide)overlap / ((wide)SIZE * SIZE * MEMBERS);
    }
}

/* Sets theta to the combinations of a group. Returns 0 if the energy of the patches over that of the noise exceeds
   `limit`, and another precision is left to try. */
INLINE int ALGEBRA(fit)(const int64_t px, const double limit, const int another, const struct NAME(ridge) *restrict job,
                        const int32_t *restrict at, wide theta[MEMBERS][MEMBERS]) {
    ALIGNED wide y[MEMBERS][SIZE];
    const wide share = (wide)job->share, noise = (wide)((double)(SIZE * job->parts) * job->level * job->level);
    wide energy = 0;
    for (int l = 0; l < MEMBERS; l++)
        for (int k = 0; k < MEMBERS; k++) theta[l][k] = 0;
    for (int64_t q = 0; q < job->parts; q++) {
        ALGEBRA(gather)(px, job->pilot + q * job->size, at, job->rows, y);
        ALGEBRA(add_products)(y, 1 - share, theta);
    }
    for (int k = 0; k < MEMBERS; k++) energy += theta[k][k];
    const int resolved = energy <= (wide)limit * noise;
    if (another && !resolved) return 0;
    for (int64_t q = 0; q < job->parts && share > 0; q++) {
        ALGEBRA(gather)(px, job->data + q * job->size, at, job->rows, y);
        ALGEBRA(add_products)(y, share, theta);
    }
    /* The products of the data hold the noise already. */
    for (int k = 0; k < MEMBERS; k++) theta[k][k] += (1 - share + share * (wide)LEAST_RIDGE) * noise;
    /* Where not even this precision sees the noise beside the patches, these stay as they are. */
    if (resolved) ALGEBRA(invert)(theta);
    const wide factor = resolved ? noise : 0;
    for (int l = 0; l < MEMBERS; l++) {
        for (int k = 0; k < MEMBERS; k++) theta[l][k] *= factor;
        theta[l][l] += 1;
    }
    ALGEBRA(mirror)(theta);
    return 1;
}

/* Estimates a group and adds it up: see `ridge_groups`. Returns what `fit` does, and adds nothing if that is 0. */
INLINE int ALGEBRA(group)(const int64_t px, const double limit, const int another,
                          const struct NAME(ridge) *restrict job, const int32_t *restrict at) {
    ALIGNED wide y[MEMBERS][SIZE], e[MEMBERS][SIZE], theta[MEMBERS][MEMBERS];
    if (!ALGEBRA(fit)(px, limit, another, job, at, theta)) return 0;
    wide powers[MEMBERS] = {0}, sums[MEMBERS] = {0}, copies[MEMBERS] = {0}, shares[MEMBERS];
    for (int l = 0; l < MEMBERS; l++)
        for (int k = 0; k < MEMBERS; k++) {
            powers[k] += theta[l][k] * theta[l][k];
            sums[k] += theta[l][k];
            copies[k] += at[l] == at[k] ? theta[l][k] : 0;
        }
    ALGEBRA(mean_shares)(job, at, shares);
    real weights[MEMBERS];
    for (int k = 0; k < MEMBERS; k++) {
        weights[k] = 1 / (real)(powers[k] > (wide)job->least_power ? powers[k] : (wide)job->least_power);
        /* By the entry itself, also in copies of the patch, and through the mean. */
        const wide derivative = copies[k] + (1 - sums[k]) * shares[k];
        const real term = weights[k] * (real)(derivative * (wide)job->parts);
        real *restrict weight = job->weight + at[k] - job->first;
        real *restrict divergence = job->divergence + at[k] - job->first;
        /* Of long rows the first entry only: see `spread`. */
        for (int64_t j = 0; j < (px == SIZE ? 1 : px); j++) weight[j] += weights[k], divergence[j] += term;
    }
    for (int64_t q = 0; q < job->parts + job->followers; q++) {
        const real mean = ALGEBRA(gather)(px, job->data + q * job->size, at, job->rows, y);
        ALGEBRA(combine)(theta, y, e);
        for (int k = 0; k < MEMBERS; k++)
            for (int64_t i = 0; i < SIZE / px; i++) {
                real *to = job->total + q * job->length + at[k] - job->first + job->rows[i], sums[SIZE];
                memcpy(sums, to, (size_t)px * sizeof(real));
                for (int64_t j = 0; j < px; j++) sums[j] += weights[k] * ((real)e[k][i * px + j] + mean);
                memcpy(to, sums, (size_t)px * sizeof(real));
            }
    }
    return 1;
}

#undef AT
