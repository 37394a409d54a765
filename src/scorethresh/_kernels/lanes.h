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

/* Columns of long windows are transformed a vector at once. The last ones of a row may be fewer. */
typedef VECTOR(real, VECTOR_BYTES) NAME(vector);
enum { NAME(LANES) = VECTOR_BYTES / sizeof(real) };

INLINE NAME(vector) NAME(load)(const real *from, int64_t columns) {
    NAME(vector) v = {0};
    if (columns == NAME(LANES))
        memcpy(&v, from, sizeof v);
    else
        for (int64_t x = 0; x < columns; x++) v[x] = from[x];
    return v;
}

INLINE void NAME(store)(NAME(vector) v, real *to, int64_t columns) {
    if (columns == NAME(LANES))
        memcpy(to, &v, sizeof v);
    else
        for (int64_t x = 0; x < columns; x++) to[x] = v[x];
}

/* Sets sums[i] to the sum over k of m[i m_row + k m_step] a[k a_step], for eight rows i. */
INLINE void NAME(eight_sums)(const int count, const real *restrict m, const int m_row, const int m_step,
                             const NAME(vector) *restrict a, const int a_step, NAME(vector) *restrict sums) {
    NAME(vector) some[8] = {{0}};
    for (int k = 0; k < count; k++)
        UNROLL
        for (int i = 0; i < 8; i++) some[i] += m[i * m_row + k * m_step] * a[k * a_step];
    UNROLL
    for (int i = 0; i < 8; i++) sums[i] = some[i];
}

/* The same as `forward_fixed` for n = 32 and 64. */
INLINE void NAME(forward_folded)(const int n, const real *restrict m, const real *restrict in,
                                 const int64_t *restrict at, int64_t count, real *restrict out, int64_t stride) {
    for (int64_t x = 0; x < count; x += NAME(LANES)) {
        const int64_t columns = least(NAME(LANES), count - x);
        NAME(vector) folded[64], c[64];
        for (int k = 0; k < n / 4; k++) {
            const NAME(vector) first = NAME(load)(in + at[k] + x, columns);
            const NAME(vector) second = NAME(load)(in + at[n / 2 - 1 - k] + x, columns);
            const NAME(vector) third = NAME(load)(in + at[n / 2 + k] + x, columns);
            const NAME(vector) fourth = NAME(load)(in + at[n - 1 - k] + x, columns);
            folded[k] = (first + fourth) + (second + third);
            folded[n / 4 + k] = (first + fourth) - (second + third);
            folded[n / 2 + k] = first - fourth;
            folded[n - 1 - k] = second - third;
        }
        /* Frequencies 0, 4, ..., then 2, 6, ..., then 1, 3, ... */
        for (int i = 0; i < n / 4; i += 8) {
            NAME(eight_sums)(n / 4, m + 4 * i * n, 4 * n, 1, folded, 1, c + i);
            NAME(eight_sums)(n / 4, m + (4 * i + 2) * n, 4 * n, 1, folded + n / 4, 1, c + n / 4 + i);
        }
        for (int i = 0; i < n / 2; i += 8)
            NAME(eight_sums)(n / 2, m + (2 * i + 1) * n, 2 * n, 1, folded + n / 2, 1, c + n / 2 + i);
        for (int i = 0; i < n / 4; i++) {
            NAME(store)(c[i], out + 4 * i * stride + x, columns);
            NAME(store)(c[n / 4 + i], out + (4 * i + 2) * stride + x, columns);
        }
        for (int i = 0; i < n / 2; i++) NAME(store)(c[n / 2 + i], out + (2 * i + 1) * stride + x, columns);
    }
}

/* Sets out[u stride + x] to coefficient u of column x. */
static void NAME(forward)(int64_t n, const real *restrict m, const real *restrict in, const int64_t *restrict at,
                          int64_t count, real *restrict out, int64_t stride) {
    if (n == 4) {
        NAME(forward_fixed)(4, m, in, at, count, out, stride);
    } else if (n == 8) {
        NAME(forward_fixed)(8, m, in, at, count, out, stride);
    } else if (n == 16) {
        NAME(forward_fixed)(16, m, in, at, count, out, stride);
    } else if (n == 32) {
        NAME(forward_folded)(32, m, in, at, count, out, stride);
    } else if (n == 64) {
        NAME(forward_folded)(64, m, in, at, count, out, stride);
    } else {
        for (int64_t x = 0; x < count; x++) {
            out[x] = m[0] * (in[at[0] + x] + in[at[1] + x]);
            out[stride + x] = m[2] * (in[at[0] + x] - in[at[1] + x]);
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

/* The same as `backward_fixed` for n = 32 and 64. */
INLINE void NAME(backward_folded)(const int n, const real *restrict m, const real *restrict in, int64_t stride,
                                  int64_t count, const real *restrict weights, real *restrict out,
                                  const int64_t *restrict at) {
    for (int64_t x = 0; x < count; x += NAME(LANES)) {
        const int64_t columns = least(NAME(LANES), count - x);
        const NAME(vector) w = NAME(load)(weights + x, columns);
        NAME(vector) c[64], folded[64];
        for (int u = 0; u < n; u++) c[u] = NAME(load)(in + u * stride + x, columns);
        for (int k = 0; k < n / 4; k += 8) {
            NAME(eight_sums)(n / 4, m + k, 1, 4 * n, c, 4, folded + k);
            NAME(eight_sums)(n / 4, m + 2 * n + k, 1, 4 * n, c + 2, 4, folded + n / 4 + k);
        }
        for (int k = 0; k < n / 2; k += 8)
            NAME(eight_sums)(n / 2, m + n + k, 1, 2 * n, c + 1, 2, folded + n / 2 + k);
        for (int k = 0; k < n / 4; k++) {
            const NAME(vector) outer = folded[k] + folded[n / 4 + k], inner = folded[k] - folded[n / 4 + k];
            const NAME(vector) values[4] = {outer + folded[n / 2 + k], inner + folded[n - 1 - k],
                                            inner - folded[n - 1 - k], outer - folded[n / 2 + k]};
            const int rows[4] = {k, n / 2 - 1 - k, n / 2 + k, n - 1 - k};
            for (int i = 0; i < 4; i++) {
                real *to = out + at[rows[i]] + x;
                NAME(store)(NAME(load)(to, columns) + w * values[i], to, columns);
            }
        }
    }
}

/* Adds weights[x] times the columns whose coefficients are in[u stride + x] to out[at[k] + x], k < n. */
static void NAME(backward)(int64_t n, const real *restrict m, const real *restrict in, int64_t stride, int64_t count,
                           const real *restrict weights, real *restrict out, const int64_t *restrict at) {
    if (n == 4) {
        NAME(backward_fixed)(4, m, in, stride, count, weights, out, at);
    } else if (n == 8) {
        NAME(backward_fixed)(8, m, in, stride, count, weights, out, at);
    } else if (n == 16) {
        NAME(backward_fixed)(16, m, in, stride, count, weights, out, at);
    } else if (n == 32) {
        NAME(backward_folded)(32, m, in, stride, count, weights, out, at);
    } else if (n == 64) {
        NAME(backward_folded)(64, m, in, stride, count, weights, out, at);
    } else {
        for (int64_t x = 0; x < count; x++) {
            out[at[0] + x] += weights[x] * (m[0] * in[x] + m[2] * in[stride + x]);
            out[at[1] + x] += weights[x] * (m[0] * in[x] - m[2] * in[stride + x]);
        }
    }
}
