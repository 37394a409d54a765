/* Ridge regression within one group of patches. Included by ridge_groups.c, once per precision of the images (`real`)
   and of the algebra (`wide`). A patch is made of rows of `px` neighbouring entries, a constant of the caller. */

/* Sets y[k] to the entries of patch k less their mean over the group, and returns the mean. All are taken relative to
   the first one, so that large values do not cost digits. */
INLINE real ALGEBRA(gather)(const int64_t px, const real *restrict image, const int32_t *restrict at,
                            const int64_t *restrict rows, wide y[MEMBERS][SIZE]) {
    const real base = image[at[0]];
    wide sums[SIZE] = {0}, mean = 0;
    for (int k = 0; k < MEMBERS; k++) {
        for (int64_t i = 0; i < SIZE / px; i++) {
            const real *restrict from = image + at[k] + rows[i];
            for (int64_t j = 0; j < px; j++) y[k][i * px + j] = (wide)(from[j] - base);
        }
        for (int p = 0; p < SIZE; p++) sums[p] += y[k][p];
    }
    for (int p = 0; p < SIZE; p++) mean += sums[p];
    mean /= SIZE * MEMBERS;
    for (int k = 0; k < MEMBERS; k++)
        for (int p = 0; p < SIZE; p++) y[k][p] -= mean;
    return base + (real)mean;
}

/* Adds factor times the products of all pairs of patches to a. */
INLINE void ALGEBRA(add_products)(wide y[MEMBERS][SIZE], wide factor, wide a[MEMBERS][MEMBERS]) {
    wide x[SIZE][MEMBERS];
    for (int p = 0; p < SIZE; p++)
        for (int k = 0; k < MEMBERS; k++) x[p][k] = y[k][p];
    /* Products are symmetric: the lower left quarter is the upper right one. */
    for (int quarter = 0; quarter < 3; quarter++) {
        const int top = quarter == 2 ? HALF : 0, left = quarter == 0 ? 0 : HALF;
        for (int i = top; i < top + HALF; i += ROWS) {
            wide sums[ROWS][HALF] = {{0}};
            for (int p = 0; p < SIZE; p++)
                UNROLL
                for (int r = 0; r < ROWS; r++)
                    for (int k = 0; k < HALF; k++) sums[r][k] += x[p][i + r] * x[p][left + k];
            for (int r = 0; r < ROWS; r++)
                for (int k = 0; k < HALF; k++) a[i + r][left + k] += factor * sums[r][k];
        }
    }
    for (int i = HALF; i < MEMBERS; i++)
        for (int k = 0; k < HALF; k++) a[i][k] = a[k][i];
}

/* Replaces a positive definite matrix by its inverse (Gauss and Jordan; no pivots are needed). */
INLINE void ALGEBRA(invert)(wide a[MEMBERS][MEMBERS]) {
    for (int k = 0; k < MEMBERS; k++) {
        const wide inverse = 1 / a[k][k];
        wide row[MEMBERS];
        for (int j = 0; j < MEMBERS; j++) row[j] = a[k][j] * inverse;
        for (int i = 0; i < MEMBERS; i++) {
            const wide factor = a[i][k];
            for (int j = 0; j < MEMBERS; j++) a[i][j] -= factor * row[j];
            a[i][k] = -factor * inverse;
        }
        for (int j = 0; j < MEMBERS; j++) a[k][j] = row[j];
        a[k][k] = inverse;
    }
}

/* Sets e[k] to the sum over l of theta[l][k] y[l]. */
INLINE void ALGEBRA(combine)(wide theta[MEMBERS][MEMBERS], wide y[MEMBERS][SIZE], wide e[MEMBERS][SIZE]) {
    for (int k = 0; k < MEMBERS; k += ROWS)
        for (int part = 0; part < SIZE; part += HALF) {
            wide sums[ROWS][HALF] = {{0}};
            for (int l = 0; l < MEMBERS; l++)
                UNROLL
                for (int r = 0; r < ROWS; r++)
                    for (int p = 0; p < HALF; p++) sums[r][p] += theta[l][k + r] * y[l][part + p];
            for (int r = 0; r < ROWS; r++)
                for (int p = 0; p < HALF; p++) e[k + r][part + p] = sums[r][p];
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

/* Estimates a group and adds it up: see `ridge_groups`. Returns 0, and adds nothing, if the energy of the patches over
   that of the noise exceeds `limit`, and another precision is left to try. */
INLINE int ALGEBRA(group)(const int64_t px, const double limit, const int another, const struct NAME(ridge) *restrict job,
                          const int32_t *restrict at) {
    wide y[MEMBERS][SIZE], e[MEMBERS][SIZE], theta[MEMBERS][MEMBERS] = {{0}};
    const wide share = (wide)job->share, noise = (wide)((double)(SIZE * job->parts) * job->level * job->level);
    wide energy = 0;
    for (int64_t q = 0; q < job->parts; q++) {
        ALGEBRA(gather)(px, job->pilot + q * job->size, at, job->rows, y);
        ALGEBRA(add_products)(y, 1 - share, theta);
    }
    for (int k = 0; k < MEMBERS; k++) energy += theta[k][k];
    const int resolved = energy <= (wide)limit * noise;
    if (another && !resolved) return 0;
    if (share > 0)
        for (int64_t q = 0; q < job->parts; q++) {
            ALGEBRA(gather)(px, job->data + q * job->size, at, job->rows, y);
            ALGEBRA(add_products)(y, share, theta);
        }
    /* The products of the data hold the noise already. */
    for (int k = 0; k < MEMBERS; k++) theta[k][k] += (1 - share + share * (wide)LEAST_RIDGE) * noise;
    /* Where not even this precision sees the noise beside the patches, these stay as they are. */
    if (resolved)
        ALGEBRA(invert)(theta);
    else
        for (int k = 0; k < MEMBERS * MEMBERS; k++) theta[k / MEMBERS][k % MEMBERS] = 0;
    wide powers[MEMBERS] = {0}, sums[MEMBERS] = {0}, shares[MEMBERS];
    for (int l = 0; l < MEMBERS; l++) {
        for (int k = 0; k < MEMBERS; k++) theta[l][k] *= -noise;
        theta[l][l] += 1;
        for (int k = 0; k < MEMBERS; k++) powers[k] += theta[l][k] * theta[l][k], sums[k] += theta[l][k];
    }
    ALGEBRA(mean_shares)(job, at, shares);
    real weights[MEMBERS];
    for (int k = 0; k < MEMBERS; k++) {
        weights[k] = 1 / (real)(powers[k] > (wide)job->least_power ? powers[k] : (wide)job->least_power);
        /* By the entry itself, also in copies of the patch, and through the mean. */
        wide derivative = (1 - sums[k]) * shares[k];
        for (int l = 0; l < MEMBERS; l++) derivative += at[l] == at[k] ? theta[l][k] : 0;
        const real term = weights[k] * (real)(derivative * (wide)job->parts);
        real *restrict weight = job->weight + at[k] - job->first;
        real *restrict divergence = job->divergence + at[k] - job->first;
        for (int64_t j = 0; j < px; j++) weight[j] += weights[k], divergence[j] += term;
    }
    for (int64_t q = 0; q < job->parts; q++) {
        const real mean = ALGEBRA(gather)(px, job->data + q * job->size, at, job->rows, y);
        ALGEBRA(combine)(theta, y, e);
        for (int k = 0; k < MEMBERS; k++)
            for (int64_t i = 0; i < SIZE / px; i++) {
                real *restrict to = job->total + q * job->length + at[k] - job->first + job->rows[i];
                for (int64_t j = 0; j < px; j++) to[j] += weights[k] * ((real)e[k][i * px + j] + mean);
            }
    }
    return 1;
}
