/* Sums of a Gaussian kernel over a sample, for all points at once. The wrapper is `kernel_sums` in sample.py. */
#include <math.h>

#include "exp2.h"
#include "loops.h"
#include "moments.h"

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

/* The arguments of `kernel_sums`, and room for K at every point. */
typedef struct {
    int64_t n, pieces, count;
    const double *z, *weights, *points, *smooth;
    const int64_t *bounds;
    double step, c, decay, cut, mirrored_cut;
    double *kernel, *mirrored, *out;
} sums;

/* The points low <= k < high that an entry reaches; before `both` it also reaches them from the other side of 0. */
typedef struct {
    int64_t low, both, high;
} reach;

/* Returns how many of the ascending points are below x. */
INLINE int64_t count_below(const sums *all, double x) {
    int64_t low = 0, high = all->count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (all->points[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the points that entries from `first` to `last` reach. The mirrored kernel is exp(-2 z a / h^2) of the direct
   one: below 1e-17 of it, it adds nothing. */
INLINE reach reach_of(const sums *all, double first, double last) {
    const int64_t low = count_below(all, first - all->cut), high = count_below(all, last + all->cut);
    const int64_t both = count_below(all, fmin(all->cut - first, all->mirrored_cut / first));
    return (reach){low, most(low, least(both, high)), high};
}

/* The nodes of a cell from -1 to 1, and the matrix (moments, nodes) that takes moments to the weights of the nodes. */
typedef struct {
    const double *at, *weights;
} cell_nodes;

/* Sets the weights of nodes: sums over them are those over the entries with these moments, for all polynomials of degree
   below ORDER. */
INLINE void node_weights(const cell_nodes *nodes, const double *restrict moments, double *restrict w) {
    double sums[ORDER] = {0};
    for (int q = 0; q < ORDER; q++)
        for (int p = 0; p < ORDER; p++) sums[p] += nodes->weights[ORDER * q + p] * moments[q];
    memcpy(w, sums, sizeof sums);
}

/* Adds w K and w K^2 of one entry, and leaves K in `kernel`. */
INLINE void add_kernels(const sums *all, double z, double w, reach at) {
    double *restrict kernel = all->kernel, *restrict mirrored = all->mirrored;
    double *restrict first = all->out, *restrict second = all->out + all->count;
    gaussians(z, at.low, at.high, all->points, all->c, all->step, all->decay, kernel);
    gaussians(-z, at.low, at.both, all->points, all->c, all->step, all->decay, mirrored);
    for (int64_t k = at.low; k < at.both; k++) kernel[k] += mirrored[k];
    for (int64_t k = at.low; k < at.high; k++) {
        const double e = kernel[k], we = w * e;
        first[k] += we;
        second[k] += we * e;
    }
}

/* Adds w K s of one entry at points where it is on one piece; `kernel` holds K. */
INLINE void add_smooth(const sums *all, double z, double w, int64_t piece, int64_t first, int64_t last) {
    const int64_t count = all->count;
    const double *restrict s = all->smooth + 3 * piece * count, *restrict kernel = all->kernel;
    double *restrict third = all->out + 2 * count;
    for (int64_t k = first; k < last; k++)
        third[k] += w * kernel[k] * (s[k] + z * (s[count + k] + z * s[2 * count + k]));
}

/* Adds one entry. */
INLINE void add_entry(const sums *all, int64_t i) {
    const int64_t n = all->n;
    const reach at = reach_of(all, all->z[i], all->z[i]);
    add_kernels(all, all->z[i], all->weights[i], at);
    for (int64_t p = 0; p < all->pieces; p++)
        add_smooth(all, all->z[i], all->weights[i], p, most(at.low, all->bounds[(p + 1) * n + i]),
                   least(at.high, all->bounds[p * n + i]));
}

/* Returns the sum over nodes of w K (t - s) at one point; s and t are the polynomials of two neighbouring pieces. */
INLINE double step_down(const sums *all, int64_t piece, int64_t k, const double *restrict z, const double *restrict w) {
    const int64_t count = all->count;
    const double *restrict s = all->smooth + 3 * piece * count + k, *restrict t = s - 3 * count, a = all->points[k];
    double terms[ORDER], sum = 0.0;
    for (int q = 0; q < ORDER; q++) {
        const double d = z[q] - a, m = z[q] + a;
        const double e = power_of_2(-all->c * d * d) + power_of_2(fmax(-all->c * m * m, -1000.0));
        const double c0 = t[0] - s[0], c1 = t[count] - s[count], c2 = t[2 * count] - s[2 * count];
        terms[q] = w[q] * e * (c0 + z[q] * (c1 + z[q] * c2));
    }
    for (int q = 0; q < ORDER; q++) sum += terms[q];
    return sum;
}

/* Adds the entries from start to stop, which lie in one cell: ORDER nodes take their place. At a point that parts them
   into different pieces, all are taken to be on the piece of the last one. Then those before are put right. */
static void add_cell(const sums *all, const cell_nodes *nodes, int64_t start, int64_t stop, double low, double width) {
    const int64_t n = all->n, end = stop - 1, *restrict bounds = all->bounds;
    const reach at = reach_of(all, all->z[start], all->z[end]);
    const double scale = 2.0 / width;
    double moments[ORDER] = {0}, z[ORDER], w[ORDER];
    for (int64_t i = start; i < stop; i++)
        add_products(all->weights[i], factors_of((all->z[i] - low) * scale - 1.0), moments);
    node_weights(nodes, moments, w);
    for (int q = 0; q < ORDER; q++) {
        z[q] = low + 0.5 * width * (1.0 + nodes->at[q]);
        add_kernels(all, z[q], w[q], at);
        for (int64_t p = 0; p < all->pieces; p++)
            add_smooth(all, z[q], w[q], p, most(at.low, bounds[(p + 1) * n + end]), least(at.high, bounds[p * n + end]));
    }
    for (int64_t p = 1; p < all->pieces; p++) {
        const int64_t last = least(at.high, bounds[p * n + end]);
        int64_t i = start;
        for (int q = 0; q < ORDER; q++) moments[q] = 0.0;
        for (int64_t k = most(at.low, bounds[p * n + start]); k < last; k++) {
            for (; i < stop && bounds[p * n + i] <= k; i++)
                add_products(all->weights[i], factors_of((all->z[i] - low) * scale - 1.0), moments);
            node_weights(nodes, moments, w);
            all->out[2 * all->count + k] += step_down(all, p, k, z, w);
        }
    }
}

/* Adds to `out`, per point a, the sums over z of w K, w K^2 and w K s, with w the weight of z.

   K = 2^(-c (z-a)^2) + 2^(-c (z+a)^2). Both powers are left out where |z-a| or z+a exceeds `cut`, and the second one
   where z a exceeds `mirrored_cut`. s is the polynomial smooth[p, :, k] in z at point k, piece p being the one with
   bounds[p + 1, i] <= k < bounds[p, i]. `step` is that of even points, 0 for others. `scratch` has two rows.

   If `width` is positive, entries in cells of that width may be replaced by the nodes of the cells. Entries and
   bounds ascend. */
EXPORT void kernel_sums(int64_t n, const double *restrict z, const double *restrict weights,
                        double cut, double mirrored_cut, int64_t pieces, const int64_t *restrict bounds, int64_t count,
                        const double *restrict points, double step, double c, double width,
                        const double *restrict node, const double *restrict node_weight, const double *restrict smooth,
                        double *restrict scratch, double *restrict out) {
    const double decay = power_of_2(-2.0 * c * (LAG * step) * (LAG * step));
    const sums all = {n,    pieces, count, z,   weights,      points,  smooth,          bounds,
                      step, c,      decay, cut, mirrored_cut, scratch, scratch + count, out};
    const cell_nodes nodes = {node, node_weight};
    for (int64_t start = 0, stop; start < n; start = stop) {
        const double cell = width > 0.0 ? floor(z[start] / width) : 0.0;
        stop = start + 1;
        while (stop < n && width > 0.0 && floor(z[stop] / width) == cell) stop++;
        if (stop - start > ORDER)
            add_cell(&all, &nodes, start, stop, cell * width, width);
        else
            for (int64_t i = start; i < stop; i++) add_entry(&all, i);
    }
}
