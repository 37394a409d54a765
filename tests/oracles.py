"""Slow definitions: direct sums, mpmath and quadrature. They share no code with the package."""

import itertools
import math

import mpmath as mp
import numpy as np
from scipy import fft, integrate, optimize, stats

mp.mp.dps = 40


def score_mp(y, lam, sigma, h):
    """DOF (4) and SCORE of the paper, and the sum of the absolute terms of SCORE, in 40 digits."""
    y, lam, sigma, h = [mp.mpf(float(v)) for v in np.ravel(y)], mp.mpf(lam), mp.mpf(sigma), mp.mpf(h)
    n1 = sum(abs(v) > lam for v in y)
    kernel = mp.fsum(mp.exp(-((v + lam) ** 2) / (2 * h**2)) + mp.exp(-((v - lam) ** 2) / (2 * h**2)) for v in y)
    jump = lam * mp.sqrt(sigma**2 + h**2) / (mp.sqrt(2 * mp.pi) * sigma * h) * kernel
    smooth = [v**2 - sigma**2 + (2 * sigma**2 - v**2 if abs(v) > lam else 0) for v in y]
    size = mp.fsum(v**2 for v in y if abs(v) <= lam) + (len(y) + 2 * n1) * sigma**2 + 2 * sigma**2 * jump
    return n1 + jump, mp.fsum(smooth) + 2 * sigma**2 * jump, size


def score_sum(y, lam, sigma, h):
    """The same by correctly rounded sums of doubles, for large P; in units of sigma."""
    z = [abs(float(v)) / sigma for v in np.ravel(y)]
    t, k = lam / sigma, h / sigma
    n1 = sum(abs(float(v)) > lam for v in np.ravel(y))
    kernel = math.fsum(math.exp(-0.5 * ((v + t) / k) ** 2) + math.exp(-0.5 * ((v - t) / k) ** 2) for v in z)
    jump = t * math.sqrt(1 + k * k) / (math.sqrt(2 * math.pi) * k) * kernel
    killed = math.fsum(v * v for v in z if v <= t)
    return n1 + jump, killed - len(z) + 2 * n1 + 2 * jump, killed + len(z) + 2 * n1 + 2 * jump


def terms(y, threshold, sigma, rule, h):
    """Each entry's term of SCORE and of its DOF, for any rule, by the definition."""
    y = np.abs(np.ravel(y)).astype(float)
    dof = np.array([float(rule.derivative(v, threshold)) for v in y])
    for position, height in rule.jumps(threshold) if h else ():
        e = [math.exp(-0.5 * ((v - position) / h) ** 2) + math.exp(-0.5 * ((v + position) / h) ** 2) for v in y]
        dof += height * math.sqrt(sigma**2 + h**2) / (math.sqrt(2 * math.pi) * sigma * h) * np.array(e)
    value = np.array([float(rule(v, threshold)) for v in y])
    return (y - value) ** 2 - sigma**2 + 2 * sigma**2 * dof, dof


def block_terms(norms, threshold, sigma, rule, size, h):
    """Risk, DOF and the blocks' terms of the risk by block SCORE, for the rule on the norm and a Gaussian kernel."""
    risk, dof = [], []
    for r in map(float, norms):
        value = float(rule(r, threshold))
        divergence = float(rule.derivative(r, threshold)) + (size - 1) * (value / r if r > 0 else 0.0)
        for at, height in rule.jumps(threshold):
            divergence += height * math.exp(-0.5 * ((r - at) / h) ** 2) / (math.sqrt(2 * math.pi) * h)
        risk.append((r - value) ** 2 - size * sigma**2 + 2 * sigma**2 * divergence)
        dof.append(divergence)
    return math.fsum(risk), math.fsum(dof), risk


def block_hard_exact(size, threshold, mean_norm):
    """Risk and DOF of keeping a block whose norm is at least the threshold, at sigma = 1, by noncentral chi-squares."""
    t2, delta = threshold**2, mean_norm**2

    def cdf(k):
        return stats.ncx2.cdf(t2, k, delta) if delta > 0 else stats.chi2.cdf(t2, k)

    density = 2 * threshold * (stats.ncx2.pdf(t2, size, delta) if delta > 0 else stats.chi2.pdf(t2, size))
    risk = size - size * cdf(size + 2) - delta * cdf(size + 4) + 2 * delta * cdf(size + 2)
    return risk, size * (1 - cdf(size)) + threshold * density


def hard_mp(x0, lam, sigma):
    """Risk and DOF (Lemma) of hard thresholding at the means x0, in enough digits to lose 200 of them."""
    with mp.workdps(240):
        return _hard_mp(x0, mp.mpf(lam), mp.mpf(sigma))


def _hard_mp(x0, lam, sigma):
    risk = dof = mp.mpf(0)
    for value in np.ravel(x0):
        x = mp.mpf(float(value))
        a, b = (-lam - x) / sigma, (lam - x) / sigma
        p0 = mp.ncdf(b) - mp.ncdf(a)
        risk += sigma**2 * (1 - p0 + b * mp.npdf(b) - a * mp.npdf(a)) + x**2 * p0
        plus, minus = (x + lam) / (mp.sqrt(2) * sigma), (x - lam) / (mp.sqrt(2) * sigma)
        dof += 1 - (mp.erf(plus) - mp.erf(minus)) / 2
        dof += lam / (mp.sqrt(2 * mp.pi) * sigma) * (mp.exp(-(plus**2)) + mp.exp(-(minus**2)))
    return risk, dof


def expect(f, x0, sigma, kinks):
    """E f(Y) for Y ~ N(x0, sigma^2), by quadrature between the kinks and their mirror images."""
    breaks = np.sort(np.concatenate([kinks, np.negative(kinks)]))
    marks = np.concatenate([[x0 - 12 * sigma], breaks[np.abs(breaks - x0) < 12 * sigma], [x0 + 12 * sigma]])

    def density(v):
        return f(v) * math.exp(-0.5 * ((v - x0) / sigma) ** 2) / (math.sqrt(2 * math.pi) * sigma)

    # A hair inside each piece, so that the value at a jump itself is never used.
    return math.fsum(
        integrate.quad(density, a + 1e-13 * sigma, b - 1e-13 * sigma, epsabs=1e-14, epsrel=1e-13, limit=200)[0]
        for a, b in itertools.pairwise(marks)
    )


def by_quadrature(rule, x0, threshold, sigma, kinks):
    """Risk E (x(Y) - x0)^2 and DOF cov(Y, x(Y)) / sigma^2 of one mean, for any rule, from their definitions."""
    risk = expect(lambda v: (float(rule(v, threshold)) - x0) ** 2, x0, sigma, kinks)
    dof = expect(lambda v: (v - x0) * float(rule(v, threshold)), x0, sigma, kinks) / sigma**2
    return risk, dof


def kernel_moments_mp(x0, a, sigma, h):
    """Mean and variance of the paper's A(Y, a) by the paper's formulas, in enough digits to lose most of them."""
    with mp.workdps(80):
        d2, sigma2, h2 = (mp.mpf(x0) - mp.mpf(a)) ** 2, mp.mpf(sigma) ** 2, mp.mpf(h) ** 2
        s2 = sigma2 + h2
        mean = mp.exp(-d2 / (2 * s2))
        second = s2 / (mp.sqrt(h2) * mp.sqrt(2 * sigma2 + h2)) * mp.exp(-d2 / (2 * sigma2 + h2))
        return mean, second - mp.exp(-d2 / s2)


def kernel_moments_quad(x0, a, sigma, h):
    """The same from the definition, by quadrature."""
    edges = np.linspace(min(x0, a) - 10 * sigma, max(x0, a) + 10 * sigma, 60)

    def kernel(v):
        return math.sqrt(sigma**2 + h**2) / h * math.exp(-0.5 * ((v - a) / h) ** 2)

    mean = expect(kernel, x0, sigma, edges)
    return mean, expect(lambda v: (kernel(v) - mean) ** 2, x0, sigma, edges)


def penalised(y, penalty):
    """The minimiser of (x - y)^2 / 2 + penalty(x), by a grid and a local search around its best point."""
    grid = np.linspace(0, abs(y) + 1, 20001)
    cost = [(x - abs(y)) ** 2 / 2 + penalty(x) for x in grid]
    k = int(np.argmin(cost))
    if k == 0:
        return 0.0
    around = grid[max(k - 1, 0)], grid[min(k + 1, grid.size - 1)]
    best = optimize.minimize_scalar(
        lambda x: (x - abs(y)) ** 2 / 2 + penalty(x), bounds=around, method="bounded", options={"xatol": 1e-12}
    )
    return math.copysign(best.x, y)


def npmle(z, counts, grid, steps=20_000):
    """The largest log-likelihood of a mixture of folded unit normals on a grid of means, by plain EM, run for long."""
    u = np.abs(np.asarray(z))[:, None]
    likelihood = (np.exp(-0.5 * (u - grid) ** 2) + np.exp(-0.5 * (u + grid) ** 2)) / math.sqrt(2 * math.pi)
    p = np.full(grid.size, 1 / grid.size)
    for _ in range(steps):
        p *= likelihood.T @ (counts / (likelihood @ p)) / np.sum(counts)
    return counts @ np.log(likelihood @ p), p


def product_moments(y, edges, order):
    """Per cell (edges[j], edges[j + 1]], the sums over its magnitudes of products of Chebyshev polynomials.

    Moment q is the sum of the product of T_1, T_2, T_4, ... that the bits of q name.
    """
    a = np.abs(np.asarray(y, dtype=np.float64))
    out = np.zeros((len(edges) - 1, order))
    for v in a[a <= edges[-1]]:
        j = max(int(np.searchsorted(edges, v)) - 1, 0)
        t = (v - (edges[j] + edges[j + 1]) / 2) / ((edges[j + 1] - edges[j]) / 2)
        chebyshev = np.polynomial.chebyshev.chebvander(t, order)[0]
        for q in range(order):
            out[j, q] += math.prod(chebyshev[1 << bit] for bit in range(q.bit_length()) if q >> bit & 1)
    return out


def kernel_sums_direct(z, weights, points, h, reach, factor):
    """Per point a, the weighted sums over z of K, K^2 and K factor(z, k), K a Gaussian at a and -a cut at the reach."""
    out = np.zeros((3, len(points)))
    for k, a in enumerate(points):
        direct = np.where(np.abs(z - a) <= reach * h, np.exp(-0.5 * ((z - a) / h) ** 2), 0.0)
        mirrored = np.where(z + a <= reach * h, np.exp(-0.5 * ((z + a) / h) ** 2), 0.0)
        total = direct + mirrored
        values = np.array([factor(v, i, k) for i, v in enumerate(z)])
        out[:, k] = weights @ total, weights @ total**2, weights @ (total * values)
    return out


def filter_direct(x, taps, axis, step, shift):
    """The circular sum over k of taps[k] x[i + shift - k step], by rolling the array."""
    return sum(t * np.roll(np.asarray(x, dtype=np.float64), k * step - shift, axis) for k, t in enumerate(taps))


def window_trace(side, start, size):
    """By what every frequency counts in the divergence of a window; the axis is extended by reflection.

    Entry by entry: those inside change with all that repeat them. Spread over all of the window.
    """
    source = [i % (2 * size) for i in range(start, start + side)]
    source = [i if i < size else 2 * size - 1 - i for i in source]
    inside = [i for i in range(side) if 0 <= i + start < size]
    rows = fft.dct(np.eye(side), norm="ortho", axis=0)
    pairs = [(i, j) for i in inside for j in range(side) if source[j] == source[i]]
    return sum(rows[:, i] * rows[:, j] for i, j in pairs) * side / len(inside) if inside else np.ones(side)


def window_dct_direct(y, pilot, shrinkage, step):
    """Sums over windows, one window at a time: weighted estimates, weights and weighted divergences.

    y and pilot are (parts, planes, height, width), the DCT along planes already taken. A coefficient is kept if its
    norm over the parts reaches the cut, or is multiplied by g^2 / (g^2 + parts cut), g the norm in the pilot. Weights
    are one over the noise variance let through. At a jump the derivative is the threshold times a boxcar of half width
    jump times the threshold; a coefficient just below it, if kept, would add the mean variance to the noise.
    Derivatives count by their traces.
    """
    cut, variance, jump, traces, down, across = shrinkage
    parts, _, height, width = y.shape
    by, bx = cut.shape[1:]
    total, weight, divergence = np.zeros(y.shape), np.zeros((height, width)), np.zeros((height, width))
    for top, left in itertools.product(range(0, height - by + 1, step), range(0, width - bx + 1, step)):
        at = np.s_[..., top : top + by, left : left + bx]
        c = fft.dctn(y[at], norm="ortho", axes=(-2, -1))
        below = 0.0
        trace = traces * down[top // step][:, None] * across[left // step]
        if pilot is None:
            norm = np.sqrt((c**2).sum(axis=0))
            factor = np.where(norm >= cut, 1.0, 0.0)
            slope = parts * factor + np.where((norm >= cut) & (norm < (1 + jump) * cut), 0.5 / jump, 0.0)
            below = (trace * np.where((norm < cut) & (norm > (1 - jump) * cut), 0.5 / jump, 0.0)).sum()
        else:
            square = (fft.dctn(pilot[at], norm="ortho", axes=(-2, -1)) ** 2).sum(axis=0)
            factor = square / (square + parts * cut)
            slope = parts * factor
        kept = (variance * factor**2).sum()
        total[at] += fft.idctn(c * factor, norm="ortho", axes=(-2, -1)) / kept
        weight[at] += 1 / kept
        divergence[at] += ((trace * slope).sum() / kept + below / (kept + variance.mean())) / cut.size
    return total, weight, divergence


def level_by_median(y):
    """The noise level of coefficients: the middle magnitude over the median of |Z|, by root finding."""
    ordered, n = sorted(abs(float(v)) for v in np.ravel(y)), np.size(y)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return middle / float(mp.findroot(lambda u: mp.erf(u / mp.sqrt(2)) - mp.mpf(1) / 2, 0.7))


def covariance_matrix(power):
    """The covariance of all pairs of entries, the grid being periodic: the Fourier sum over all frequencies."""
    shape = power.shape
    places = np.array(list(itertools.product(*map(range, shape))))
    distance = places[:, None, :] - places[None, :, :]
    out = np.zeros((power.size, power.size))
    for k in itertools.product(*map(range, shape)):
        phase = sum(2 * np.pi * frequency * distance[..., axis] / shape[axis] for axis, frequency in enumerate(k))
        out += power[k] * np.cos(phase) / power.size
    return out


def filtered_variance(power, taps):
    """The variance of sum_i taps_i w_i: the double sum over the covariance matrix; taps beyond the grid wrap around."""
    folded = np.zeros(power.shape)
    for place, tap in np.ndenumerate(taps):
        folded[tuple(i % n for i, n in zip(place, power.shape, strict=True))] += tap
    return folded.ravel() @ covariance_matrix(power) @ folded.ravel()


def reflected_filter_variances(row, n):
    """The variance of sum_k row_k w(i - k) at i = 0, ..., 2 n - 1, white noise of n entries reflected at both ends."""
    period = [*range(n), *reversed(range(n))]
    out = []
    for i in range(2 * n):
        taps = [0.0] * n
        for k, tap in enumerate(row):
            taps[period[(i - k) % (2 * n)]] += float(tap)
        out.append(math.fsum(tap**2 for tap in taps))
    return np.array(out)


def clipped_moments(mean, sigma, low):
    """Mean and variance of max(Y, low), Y of law N(mean, sigma^2), by quadrature of the tail and the density."""
    mean, sigma, low = mp.mpf(mean), mp.mpf(sigma), mp.mpf(low)
    marks = [low, *(m for m in (mean - 4 * sigma, mean, mean + 4 * sigma, mean + 12 * sigma) if m > low)]
    mass = mp.ncdf((low - mean) / sigma)
    first, second = (mp.quad(lambda x, k=k: (x - low) ** k * mp.npdf(x, mean, sigma), [*marks, mp.inf]) for k in (1, 2))
    assert abs(mass + mp.quad(lambda x: mp.npdf(x, mean, sigma), [*marks, mp.inf]) - 1) < mp.mpf(10) ** -20
    return float(low + first), float(second - first**2)


def anscombe_moments(mean):
    """Mean and variance of 2 sqrt(Y + 3/8), Y of Poisson law, by the sum over its counts."""
    mean = mp.mpf(mean)
    spread = 14 * mp.sqrt(mean) + 40
    counts = range(max(0, int(mean - spread)), int(mean + spread))
    law = [mp.exp(k * mp.log(mean) - mean - mp.loggamma(k + 1)) for k in counts]
    roots = [2 * mp.sqrt(k + mp.mpf(3) / 8) for k in counts]
    first = mp.fsum(p * z for p, z in zip(law, roots, strict=True))
    return first, mp.fsum(p * (z - first) ** 2 for p, z in zip(law, roots, strict=True))


# Mixtures of means.


def sparse_fits(z, counts, grid, null, clear):
    """The most likely mixture; one with `null` more entries of mean 0; one of means that are 0 or at least `clear`."""
    u = np.abs(np.asarray(z))[:, None]
    likelihood = (np.exp(-0.5 * (u - grid) ** 2) + np.exp(-0.5 * (u + grid) ** 2)) / math.sqrt(2 * math.pi)
    extended = np.vstack([likelihood, np.eye(1, grid.size)])
    shown = np.where((grid >= clear) | (grid == 0), likelihood, 0.0)
    fits = []
    for table, n in ((likelihood, counts), (extended, np.append(counts, null)), (shown, counts)):
        p = np.full(grid.size, 1 / grid.size)
        for _ in range(20_000):
            p *= table.T @ (n / (table @ p)) / n.sum()
        fits.append(p)
    return fits


# Patches that look alike.


def nearest_patches(x, patch, start, offsets):
    """Squared distances of the patch at `start` to all candidates in x (parts, nz, ny, nx), and where they start."""
    here = x[(slice(None), *(slice(s, s + b) for s, b in zip(start, patch, strict=True)))]
    found = []
    for offset in offsets:
        at = [int(s + o) for s, o in zip(start, offset, strict=True)]
        if all(0 <= a <= n - b for a, n, b in zip(at, x.shape[1:], patch, strict=True)):
            there = x[(slice(None), *(slice(a, a + b) for a, b in zip(at, patch, strict=True)))]
            found.append((((here - there) ** 2).sum(), int(np.ravel_multi_index(at, x.shape[1:]))))
    return found


def ridge_operator(pilot, patch, group, level, share, data):
    """Of one group: the matrix that maps the flat data of one part to its patches, (members, entries, size of a part).

    The combination is that of least risk if the pilot were the truth: ridge regression, patches less their mean.
    """
    parts, size = len(pilot), pilot[0].size
    cells = np.array([np.ravel_multi_index(c, pilot.shape[1:]) for c in np.ndindex(*patch)])
    index = np.asarray(group)[:, None] + cells  # (members, entries)
    select = np.eye(size)[index]
    centred = select - select.mean(axis=(0, 1))

    def products(values):
        columns = np.concatenate([(centred @ part.ravel()).T for part in values])
        return columns.T @ columns

    noise = parts * index.shape[1] * level**2
    mixed = (1 - share) * (products(pilot) + noise * np.eye(len(group))) + share * products(data)
    theta = np.eye(len(group)) - noise * np.linalg.inv(mixed)
    estimate = np.einsum("lk,lpi->kpi", theta, centred) + select.mean(axis=(0, 1))
    return index, theta, estimate


def ridge_estimate(pilot, data, patch, groups, level, share, least_power):
    """The weighted average of all patches of all groups, and its divergence per entry for given weights."""
    size = data[0].size
    total, weight, divergence = np.zeros((len(data), size)), np.zeros(size), np.zeros(size)
    for group in groups:
        index, theta, estimate = ridge_operator(pilot, patch, group, level, share, data)
        for k, cells in enumerate(index):
            w = 1 / max((theta[:, k] ** 2).sum(), least_power)
            for q, part in enumerate(data):
                total[q, cells] += w * (estimate[k] @ part.ravel())
            weight[cells] += w
            divergence[cells] += w * len(data) * np.mean([row[c] for row, c in zip(estimate[k], cells, strict=True)])
    return (total / weight).reshape(data.shape), (divergence / weight).reshape(data.shape[1:])


# Sums at one threshold.


def stein_sums_direct(y, sigma, starts, terms, position, bandwidth):
    """The sums over the entries of slope, s, s^2, K, K^2 and K s, entry by entry."""
    out = np.zeros(6)
    for v in np.abs(np.asarray(y, dtype=np.float64)):
        slope, c0, c1, c2 = terms[sum(v > start for start in starts)]
        z = v / sigma
        s = c0 + c1 * z + c2 * z * z
        k = sum(math.exp(-0.5 * (d / bandwidth) ** 2) for d in (z - position, z + position))
        out += [slope, s, s * s, k, k * k, k * s]
    return out


# Blocks.


def noncentral_chi_mp(r, mean_norm, size):
    """The density of the norm of a block of normals of level 1 around a mean of that norm, by its Bessel function."""
    r, m, v = mp.mpf(r), mp.mpf(mean_norm), mp.mpf(size) / 2 - 1
    if m == 0:
        return r ** (size - 1) * mp.exp(-(r**2) / 2) / (mp.mpf(2) ** v * mp.gamma(v + 1))
    return r * (r / m) ** v * mp.exp(-(r**2 + m**2) / 2) * mp.besseli(v, r * m)


def block_risk_quad(rule, size, threshold, mean_norm, kinks):
    """Risk and DOF of a rule on the norm at one mean, sigma = 1: Stein's formula by quadrature over the norm."""
    edges = sorted({0.0, *(k for k in kinks if k > 0), mean_norm + math.sqrt(size) + 10})

    def expect_norm(f):
        return math.fsum(
            integrate.quad(
                lambda r: f(r) * float(noncentral_chi_mp(r, mean_norm, size)), a + 1e-12, b - 1e-12, epsabs=1e-11
            )[0]
            for a, b in itertools.pairwise(edges)
        )

    dof = expect_norm(lambda r: float(rule.derivative(r, threshold)) + (size - 1) * float(rule(r, threshold)) / r)
    dof += sum(height * float(noncentral_chi_mp(at, mean_norm, size)) for at, height in rule.jumps(threshold))
    return expect_norm(lambda r: (r - float(rule(r, threshold))) ** 2) - size + 2 * dof, dof


# Singular values.


def jacobian_trace(estimator, y, weight=None, step=1e-6):
    """The divergence of a smooth estimator of matrices by central differences, entry by entry and part by part.

    With `weight`, a pair of covariances between rows and columns, it is ``tr(Sigma J)``.
    """
    total = 0.0
    row, column = (np.eye(y.shape[0]), np.eye(y.shape[1])) if weight is None else weight
    for i, j in np.ndindex(*y.shape):
        for part in (1.0, 1j) if np.iscomplexobj(y) else (1.0,):
            # The response of the whole to one entry, times the covariance of that entry with every other.
            e = np.zeros_like(y)
            e[i, j] = part * step
            response = (estimator(y + e) - estimator(y - e)) / (2 * step)
            total += float((np.outer(row[:, i], column[:, j]) * response * np.conj(part)).sum().real)
    return total


def spectral(y, replace):
    """A matrix whose singular values are replaced."""
    u, s, vh = np.linalg.svd(y, full_matrices=False)
    return (u * replace(s)) @ vh


def marchenko_pastur_cdf(s, m, n):
    """The share of singular values below s in a large m x n matrix of unit noise, by quadrature of the density."""
    low, high = abs(math.sqrt(m) - math.sqrt(n)), math.sqrt(m) + math.sqrt(n)

    def density(x):
        return math.sqrt(max((high**2 - x**2) * (x**2 - low**2), 0.0)) / (math.pi * min(m, n) * max(x, 1e-300))

    return integrate.quad(density, low, min(max(s, low), high), limit=200)[0]


def finite_size_shrinkage(s, rank, m, n):
    """What the leading singular values become: each less the degrees of freedom that it costs, over itself."""
    out = []
    low, high = (abs(math.sqrt(n - rank) + sign * math.sqrt(m - rank)) for sign in (-1, 1))
    for i in range(rank):

        def share(x, i=i):
            density = math.sqrt(max((high**2 - x**2) * (x**2 - low**2), 0.0)) / (math.pi * x)
            return density * s[i] ** 2 / (s[i] ** 2 - x**2)

        bulk = integrate.quad(share, low, high, limit=200)[0]
        spikes = 0.0
        for j in range(rank):
            x = s[i] ** 2 - s[j] ** 2
            spikes += s[i] ** 2 * x / (x**2 + (2 * math.sqrt(s[i] * s[j])) ** 2)
        cost = 1 + abs(m - n) + 2 * bulk + 2 * spikes
        out.append(min(max(s[i] - cost / s[i], 0.0), s[i]))
    return out


# The posterior mean.


def posterior_mp(y, sigma, atoms, masses):
    """Posterior mean and variance at one y of the symmetric mixture of means, in 40 digits, by Bayes' formula."""
    y, sigma = mp.mpf(float(y)), mp.mpf(float(sigma))
    means = [mp.mpf(s * float(m)) for m in atoms for s in (1, -1)]
    prior = [mp.mpf(float(g)) / 2 for g in masses for _ in (1, -1)]
    weights = [g * mp.exp(-(((y - m) / sigma) ** 2) / 2) for g, m in zip(prior, means, strict=True)]
    total = mp.fsum(weights)
    mean = mp.fsum(w * m for w, m in zip(weights, means, strict=True)) / total
    return mean, mp.fsum(w * (m - mean) ** 2 for w, m in zip(weights, means, strict=True)) / total


def hindsight_hard_loss(y, x):
    """The least loss of any hard threshold, by trying the number of entries kept, largest first."""
    order = sorted(range(len(y)), key=lambda i: -abs(y[i]))
    loss = best = math.fsum(v * v for v in x)
    for i in order:
        loss += (y[i] - x[i]) ** 2 - x[i] ** 2
        best = min(best, loss)
    return best


# Noise that depends on the signal


def camera_root(electrons, read):
    """The generalised Anscombe transform of electrons, by its tangent from half a read noise below 0 on."""
    start = -read / 2
    if electrons >= start:
        return 2 * np.sqrt(electrons + 0.375 + read**2)
    at = start + 0.375 + read**2
    return 2 * np.sqrt(at) + (electrons - start) / np.sqrt(at)


def camera_moments(mean, read, floor=-np.inf):
    """Mean and variance of the root of max(P + read Z, floor): adaptive quadrature over Z, a sum over P."""
    from scipy.integrate import quad
    from scipy.stats import norm, poisson

    def expected(power):
        total = 0.0
        for count in range(int(mean + 12 * np.sqrt(mean) + 20)):
            if read == 0:
                inner = camera_root(max(count, floor), read) ** power
            else:
                kinks = [z for z in ((floor - count) / read, -0.5 - count / read) if -9 < z < 9]
                inner = quad(
                    lambda z, n=count: norm.pdf(z) * camera_root(max(n + read * z, floor), read) ** power,
                    -9, 9, points=kinks or None, epsabs=1e-12, limit=200,
                )[0]  # fmt: skip
            total += poisson.pmf(count, mean) * inner
        return total

    first = expected(1)
    return first, expected(2) - first**2


def magnitude_density(y, signal, coils):
    """The noncentral chi density with 2 coils degrees of freedom, by SciPy's noncentral chi-square."""
    from scipy.stats import chi2, ncx2

    squared = chi2(2 * coils) if signal == 0 else ncx2(2 * coils, signal**2)
    return 2 * y * squared.pdf(y**2)


# Inverse problems: operators as dense matrices, entry by entry.


def blur_matrix(shape, psf, centre, step, *, periodic):
    """The matrix of samples of a blur: y_i = sum_j psf_j x_(step i + centre - j).

    Periodic, x has the given shape. Else x is as large as samples of that shape need, and starts where they look first.
    """
    psf = np.asarray(psf, float)
    if periodic:
        domain = tuple(shape)
        samples = tuple(n // s for n, s in zip(shape, step, strict=True))
    else:
        samples = tuple(shape)
        domain = tuple(s * (n - 1) + k for n, s, k in zip(shape, step, psf.shape, strict=True))
    out = np.zeros((*samples, *domain))
    for i in np.ndindex(samples):
        for j in np.ndindex(psf.shape):
            if periodic:
                at = tuple((s * a + c - b) % n for a, b, c, s, n in zip(i, j, centre, step, domain, strict=True))
            else:
                at = tuple(s * a + k - 1 - b for a, b, s, k in zip(i, j, step, psf.shape, strict=True))
            out[(*i, *at)] += psf[j]
    return out.reshape(math.prod(samples), math.prod(domain))


def fourier_matrix(shape):
    """The matrix of the unitary discrete Fourier transform of arrays of a shape, by its sum."""
    out = np.ones((1, 1))
    for n in shape:
        k = np.arange(n)
        out = np.kron(out, np.exp(-2j * np.pi * np.outer(k, k) / n) / math.sqrt(n))
    return out


def proximal_step(matrix, y, z, penalty):
    """The minimum of ||y - A x||^2 + penalty ||x - z||^2, by the normal equations."""
    left = matrix.conj().T @ matrix + penalty * np.eye(matrix.shape[1])
    return np.linalg.solve(left, matrix.conj().T @ y + penalty * z)


def line_lengths(length, angle, reach):
    """The share of a centred line that lies in every pixel, by cutting it where it leaves a pixel."""
    c, s = math.cos(math.radians(angle)), -math.sin(math.radians(angle))
    cuts = [-length / 2, length / 2]
    for part in (c, s):
        if abs(part) > 1e-12:
            cuts += [(k + 0.5) / part for k in range(-reach - 1, reach + 1) if abs(k + 0.5) < abs(part) * length / 2]
    cuts.sort()
    out = np.zeros((2 * reach + 1, 2 * reach + 1))
    for a, b in itertools.pairwise(cuts):
        middle = (a + b) / 2
        out[round(middle * s) + reach, round(middle * c) + reach] += (b - a) / length
    return out


def disk_shares(radius, reach):
    """The share of a centred disk that lies in every pixel, by quadrature of its height."""
    from scipy.integrate import quad

    def height(x, low, high):
        half = math.sqrt(max(radius**2 - x**2, 0.0))
        return max(min(half, high) - max(-half, low), 0.0)

    n = 2 * reach + 1
    out = np.zeros((n, n))
    for i, j in np.ndindex(n, n):
        low, left = i - reach - 0.5, j - reach - 0.5
        points = [t for t in (-radius, radius) if left < t < left + 1] or None
        out[i, j] = quad(height, left, left + 1, args=(low, low + 1), points=points, limit=200)[0]
    return out / (math.pi * radius**2)


def filtered_window(y, psf, window, prior_power):
    """What the best linear filter of a blur gives for windowed data: A x and its divergence, by dense matrices.

    x has independent Fourier coefficients of this power, in units of the noise, on the grid of the data.
    """
    shape = y.shape
    blur = blur_matrix(shape, psf, [n // 2 for n in psf.shape], (1,) * psf.ndim, periodic=True)
    transform = fourier_matrix(shape)
    prior = (transform.conj().T * prior_power.ravel()) @ transform
    kept = blur @ prior @ blur.T @ np.linalg.inv(blur @ prior @ blur.T + np.eye(y.size))
    centred = y - (y * window).sum() / window.sum()
    return (kept @ (window * centred).ravel()).real.reshape(shape), float(np.trace(kept).real)


def error_given_risk(mean, stderr, risk, risk_error):
    """Mean and standard deviation of an error of lognormal law, given a reading with normal noise, by quadrature.

    `mean` and `stderr` are those of the law, `risk_error` is the standard deviation of the reading.
    """
    mean, stderr, risk, risk_error = map(mp.mpf, (mean, stderr, risk, risk_error))
    variance = mp.log(1 + (stderr / mean) ** 2)
    centre = mp.log(mean) - variance / 2

    def density(log_error):
        of_law = (log_error - centre) ** 2 / variance
        return mp.exp(-(of_law + ((mp.exp(log_error) - risk) / risk_error) ** 2) / 2)

    width = 12 * mp.sqrt(variance)
    marks = [mp.log(risk + k * risk_error) for k in range(-8, 9) if risk + k * risk_error > 0]
    ends = sorted({centre - width, centre, centre + width, *marks})
    moments = [mp.quad(lambda x, k=k: mp.exp(k * x) * density(x), ends) for k in range(3)]
    first, second = (moment / moments[0] for moment in moments[1:])
    return float(first), float(mp.sqrt(second - first**2))
