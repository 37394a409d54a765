/* The orthonormal DCT of many columns at once. Included once per precision, by sliding_dct.c.

   Column x holds the entries in[at[0] + x], in[at[1] + x], ... Cosines are even or odd about their middle: half of the
   frequencies need only sums of opposite entries, half only differences. Even frequencies are a DCT of half the length,
   so the same holds for them once more. `m` is the matrix of the DCT, one frequency per row. */

/* Sets c to the DCT of the n entries a; n is 4, 8 or 16, a constant of the caller. */
INLINE void NAME(analyse)(const int n, const real *restrict m, const real *restrict a, real *restrict c) {
    real sums[8], inner[8], odd[8];
    UNROLL
    for (int k = 0; k < n / 2; k++) {
        sums[k] = a[k] + a[n - 1 - k];
        odd[k] = a[k] - a[n - 1 - k];
    }
    UNROLL
    for (int k = 0; k < n / 4; k++) {
        inner[k] = sums[k] + sums[n / 2 - 1 - k];
        inner[n / 4 + k] = sums[k] - sums[n / 2 - 1 - k];
    }
    UNROLL
    for (int u = 0; u < n; u += 2) {
        real even_sum = m[u * n] * inner[u % 4 / 2 * (n / 4)], odd_sum = m[(u + 1) * n] * odd[0];
        UNROLL
        for (int k = 1; k < n / 4; k++) even_sum += m[u * n + k] * inner[u % 4 / 2 * (n / 4) + k];
        UNROLL
        for (int k = 1; k < n / 2; k++) odd_sum += m[(u + 1) * n + k] * odd[k];
        c[u] = even_sum;
        c[u + 1] = odd_sum;
    }
}

/* The inverse of `analyse`. */
INLINE void NAME(synthesise)(const int n, const real *restrict m, const real *restrict c, real *restrict a) {
    real even[8];
    UNROLL
    for (int k = 0; k < n / 4; k++) {
        real sum = m[k] * c[0], difference = m[2 * n + k] * c[2];
        UNROLL
        for (int u = 4; u < n; u += 4) {
            sum += m[u * n + k] * c[u];
            difference += m[(u + 2) * n + k] * c[u + 2];
        }
        even[k] = sum + difference;
        even[n / 2 - 1 - k] = sum - difference;
    }
    UNROLL
    for (int k = 0; k < n / 2; k++) {
        real odd = m[n + k] * c[1];
        UNROLL
        for (int u = 3; u < n; u += 2) odd += m[u * n + k] * c[u];
        a[k] = even[k] + odd;
        a[n - 1 - k] = even[k] - odd;
    }
}

INLINE void NAME(forward_fixed)(const int n, const real *restrict m, const real *restrict in,
                                const int64_t *restrict at, int64_t count, real *restrict out, int64_t stride) {
    INDEPENDENT
    for (int64_t x = 0; x < count; x++) {
        real a[16], c[16];
        UNROLL
        for (int k = 0; k < n; k++) a[k] = in[at[k] + x];
        NAME(analyse)(n, m, a, c);
        UNROLL
        for (int u = 0; u < n; u++) out[u * stride + x] = c[u];
    }
}

/* Sets out[u stride + x] to coefficient u of column x. `scratch` holds n rows of `count` entries. */
static void NAME(forward)(int64_t n, const real *restrict m, const real *restrict in, const int64_t *restrict at,
                          int64_t count, real *restrict out, int64_t stride, real *restrict scratch) {
    if (n == 4) {
        NAME(forward_fixed)(4, m, in, at, count, out, stride);
    } else if (n == 8) {
        NAME(forward_fixed)(8, m, in, at, count, out, stride);
    } else if (n == 16) {
        NAME(forward_fixed)(16, m, in, at, count, out, stride);
    } else {
        for (int64_t k = 0; k < n / 2; k++) {
            const real *restrict a = in + at[k], *restrict b = in + at[n - 1 - k];
            real *restrict sum = scratch + k * count, *restrict difference = scratch + (n / 2 + k) * count;
            for (int64_t x = 0; x < count; x++) {
                sum[x] = a[x] + b[x];
                difference[x] = a[x] - b[x];
            }
        }
        for (int64_t u = 0; u < n; u++) {
            const real *restrict folded = scratch + u % 2 * (n / 2) * count;
            real *restrict to = out + u * stride;
            for (int64_t x = 0; x < count; x++) to[x] = m[u * n] * folded[x];
            for (int64_t k = 1; k < n / 2; k++)
                for (int64_t x = 0; x < count; x++) to[x] += m[u * n + k] * folded[k * count + x];
        }
    }
}

INLINE void NAME(backward_fixed)(const int n, const real *restrict m, const real *restrict in, int64_t stride,
                                 int64_t count, const real *restrict weights, real *restrict out,
                                 const int64_t *restrict at) {
    INDEPENDENT
    for (int64_t x = 0; x < count; x++) {
        real a[16], c[16];
        UNROLL
        for (int u = 0; u < n; u++) c[u] = in[u * stride + x];
        NAME(synthesise)(n, m, c, a);
        UNROLL
        for (int k = 0; k < n; k++) out[at[k] + x] += weights[x] * a[k];
    }
}

/* Adds weights[x] times the columns whose coefficients are in[u stride + x] to out[at[k] + x], k < n. */
static void NAME(backward)(int64_t n, const real *restrict m, const real *restrict in, int64_t stride, int64_t count,
                           const real *restrict weights, real *restrict out, const int64_t *restrict at,
                           real *restrict scratch) {
    if (n == 4) {
        NAME(backward_fixed)(4, m, in, stride, count, weights, out, at);
    } else if (n == 8) {
        NAME(backward_fixed)(8, m, in, stride, count, weights, out, at);
    } else if (n == 16) {
        NAME(backward_fixed)(16, m, in, stride, count, weights, out, at);
    } else {
        real *restrict even = scratch, *restrict odd = scratch + count;
        for (int64_t k = 0; k < n / 2; k++) {
            for (int64_t x = 0; x < 2 * count; x++) scratch[x] = 0;
            for (int64_t u = 0; u < n; u += 2)
                for (int64_t x = 0; x < count; x++) {
                    even[x] += m[u * n + k] * in[u * stride + x];
                    odd[x] += m[(u + 1) * n + k] * in[(u + 1) * stride + x];
                }
            real *restrict a = out + at[k], *restrict b = out + at[n - 1 - k];
            for (int64_t x = 0; x < count; x++) {
                a[x] += weights[x] * (even[x] + odd[x]);
                b[x] += weights[x] * (even[x] - odd[x]);
            }
        }
    }
}
