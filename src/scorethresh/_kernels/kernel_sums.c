/* Sums of a Gaussian kernel over a sample, for all points at once. The wrapper is `kernel_sums` in sample.py. */
#include "exp2.h"
#include "loops.h"

/* The recursion along an even grid goes back LAG points, so that the processor can overlap the products. It restarts
   after a block, before its rounding errors add up. */
enum { LAG = 16, BLOCK = 512 };

/* Sets e[k] to 2^(-c (z - points[k])^2) for low <= k < high.

   On an even grid a value is the one LAG points before times a ratio, which itself falls by a constant factor: two
   products in place of an exponential, for a relative error of some 1e-13. A step of 0 means no such grid. */
INLINE void gaussians(double z, int64_t low, int64_t high, const double *restrict points, double c, double step,
                      double decay, double *restrict e) {
    const double lag = LAG * step;
    if (!(step > 0.0)) {
        for (int64_t k = low; k < high; k++) {
            const double d = z - points[k];
            e[k] = power_of_2(-c * d * d);
        }
        return;
    }
    for (int64_t start = low; start < high; start += BLOCK) {
        const int64_t stop = least(start + BLOCK, high);
        double value[LAG], ratio[LAG];
        for (int i = 0; i < LAG; i++) {
            const double d = z - (points[start] + (double)i * step);
            value[i] = power_of_2(-c * d * d);
            ratio[i] = power_of_2(c * lag * (2.0 * d - lag));
        }
        int64_t first = start;
        for (; first + LAG <= stop; first += LAG)
            for (int i = 0; i < LAG; i++) {
                e[first + i] = value[i];
                value[i] *= ratio[i];
                ratio[i] *= decay;
            }
        for (int64_t k = first; k < stop; k++) e[k] = value[k - first];
    }
}

/* Adds to `out`, per point a, the sums over z of w K, w K^2 and w K s, with w the weight of z.

   K = 2^(-c (z-a)^2) + 2^(-c (z+a)^2). Entry i touches points spans[i, 0] to spans[i, 2]; the second power counts only
   before spans[i, 1]. s is the polynomial smooth[p, :, k] in z at point k, piece p being the one with
   bounds[p + 1, i] <= k < bounds[p, i]. `step` is that of even points, 0 for others. `scratch` has two rows. */
EXPORT void kernel_sums(int64_t n, const double *restrict z, const double *restrict weights,
                        const int64_t *restrict spans, int64_t pieces, const int64_t *restrict bounds, int64_t count,
                        const double *restrict points, double step, double c, const double *restrict smooth,
                        double *restrict scratch, double *restrict out) {
    double *restrict kernel = scratch, *restrict mirrored = scratch + count;
    const double decay = power_of_2(-2.0 * c * (LAG * step) * (LAG * step));
    for (int64_t i = 0; i < n; i++) {
        const double zi = z[i], wi = weights[i];
        const int64_t low = spans[3 * i], both = spans[3 * i + 1], high = spans[3 * i + 2];
        gaussians(zi, low, high, points, c, step, decay, kernel);
        gaussians(-zi, low, both, points, c, step, decay, mirrored);
        for (int64_t k = low; k < both; k++) kernel[k] += mirrored[k];
        for (int64_t k = low; k < high; k++) {
            const double e = kernel[k], we = wi * e;
            out[k] += we;
            out[count + k] += we * e;
        }
        for (int64_t p = 0; p < pieces; p++) {
            const double *restrict s = smooth + 3 * p * count;
            const int64_t first = most(low, bounds[(p + 1) * n + i]), last = least(high, bounds[p * n + i]);
            for (int64_t k = first; k < last; k++) {
                const double value = s[k] + zi * (s[count + k] + zi * s[2 * count + k]);
                out[2 * count + k] += wi * kernel[k] * value;
            }
        }
    }
}
