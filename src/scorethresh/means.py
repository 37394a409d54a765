"""The distribution of the means, by maximum likelihood (Kiefer and Wolfowitz), from a sample of magnitudes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._validate import Array
from .gaussian import phi
from .magnitudes import Magnitudes

# In units of sigma: the width of the histogram's bins, and the spacing of the means that are tried.
_BIN = 1 / 20
_SPACING = 1 / 10
# Entries this far beyond the last threshold are set aside: every rule leaves them as they are.
_MARGIN = 6.0


@dataclass(frozen=True, eq=False)
class Means:
    """A distribution of |x0|, fitted to the magnitudes up to a limit.

    Attributes
    ----------
    atoms, masses
        Means, in units of y, and how many entries have each. The last is where the entries beyond the limit are, on
        average; they take no part in the fit.
    gap
        Bound on how much more the logarithm of the likelihood could be (the duality gap).
    """

    atoms: Array
    masses: Array
    gap: float

    def density(self, points: Array, sigma: float) -> Array:
        """Return the density of |Y| at the points, times the number of entries."""
        u = points[:, None] / sigma
        pairs = phi(u - self.atoms / sigma) + phi(u + self.atoms / sigma)
        total: Array = pairs @ self.masses / sigma
        return total


def fit_means(sample: Magnitudes, *, sigma: float, largest: float, null: float = 10.0) -> Means:
    """Return the distribution of the means that makes the magnitudes up to `largest` and 6 sigma most likely.

    The data enter as a histogram with bins of sigma/20, each at the mean of its entries; the means lie on a grid of
    sigma/10. Each step solves a quadratic model of the likelihood over the means in use and those at which its
    gradient peaks, by non-negative least squares (the constrained Newton method of Wang, 2007).

    `null` more entries are taken to have mean 0 for certain. Without them the fit splits the zeros of a sparse signal
    into small means, and the risk comes out too high; ten are enough against that, and few enough to do no harm.
    """
    z, counts, far = _histogram(sample, sigma, largest / sigma + _MARGIN)
    if z.size == 0:
        return Means(far[:1] * sigma, far[1:], 0.0)
    grid = np.arange(0.0, z.max() + 2 * _SPACING, _SPACING)
    likelihood = phi(z[:, None] - grid) + phi(z[:, None] + grid)
    if null > 0:
        likelihood = np.vstack([likelihood, np.eye(1, grid.size)])
        counts = np.append(counts, null)
    total = counts.sum()
    p = np.full(grid.size, 1 / grid.size)
    for _ in range(20):  # expectation-maximisation: slow at the end, robust at the start
        p *= likelihood.T @ (counts / (likelihood @ p)) / total
    p[p < 1e-3 / total] = 0  # a thousandth of an entry
    p /= p.sum()

    gap = np.inf
    for _ in range(100):
        f = likelihood @ p
        gradient = likelihood.T @ (counts / f) - total
        gap = float(gradient.max())
        if gap < max(1e-4, 1e-9 * total):
            break
        padded = np.concatenate([[-np.inf], gradient, [-np.inf]])
        peaks = (gradient > 0) & (gradient >= padded[:-2]) & (gradient >= padded[2:])
        used = np.flatnonzero((p > 0) | peaks)
        # Minimise sum_i counts_i (S q - 2)_i^2 over q >= 0 with sum 1; homogeneous in q but for the last equation.
        s = (likelihood[:, used] / f[:, None] - 2) * np.sqrt(counts / total)[:, None]
        q = _nnls(s.T @ s + 1, np.ones(used.size), start=p[used] > 0)
        step = np.zeros_like(p)
        step[used] = q / q.sum()
        step -= p
        old, slope = counts @ np.log(f), float(gradient @ step)
        length = 1.0
        change = likelihood @ step
        with np.errstate(divide="ignore"):
            while length > 1e-10 and not counts @ np.log(f + length * change) >= old + 1e-4 * length * slope:
                length /= 2
        p = np.maximum(p + length * step, 0)
        p[p < 1e-12] = 0
        p /= p.sum()
    if gap > max(0.01, 1e-7 * total):
        warnings.warn(f"the fit of the means stopped {gap:.3g} short of the largest log-likelihood", stacklevel=2)
    used = np.flatnonzero(p)
    return Means(np.append(grid[used], far[0]) * sigma, np.append(p[used] * (total - null), far[1]), gap)


def _histogram(sample: Magnitudes, sigma: float, limit: float) -> tuple[Array, Array, Array]:
    """Return positions and counts of the bins up to the limit, and of all entries beyond; in units of sigma."""
    if sample.cells is None or sample.moments is None:
        z, counts = sample.nodes / sigma, sample.weights
    else:
        counts = sample.moments[:, 0]
        used = counts > 0
        counts = counts[used]
        mean = sample.moments[used, 1] / counts
        z = (sample.cells.middle[used] + sample.cells.half[used] * mean) / sigma
    inside = z <= limit
    bins, where = np.unique(np.floor(z[inside] / _BIN), return_inverse=True)
    totals = np.bincount(where, counts[inside], minlength=bins.size).astype(np.float64)
    positions = np.bincount(where, counts[inside] * z[inside], minlength=bins.size) / totals
    beyond = counts[~inside].sum()
    far = np.array([counts[~inside] @ z[~inside] / beyond if beyond else 0.0, beyond])
    return positions, totals, far


def _nnls(gram: Array, target: Array, start: NDArray[np.bool_]) -> Array:
    """Return the x >= 0 that minimises x' gram x / 2 - target' x, by active sets (Lawson and Hanson).

    SciPy has one, but importing its optimisers takes half a second, more than all else that a first call does.
    """
    x = np.zeros(target.size)
    active = start.copy()
    for _ in range(3 * target.size):
        while active.any():
            s = np.zeros_like(x)
            block = gram[np.ix_(active, active)]
            s[active] = np.linalg.solve(block + 1e-13 * np.trace(block) * np.eye(block.shape[0]), target[active])
            falling = active & (s <= 0)
            if not falling.any():
                x = s
                break
            rate = x[falling] / np.maximum(x[falling] - s[falling], 1e-300)
            x += rate.min() * (s - x)
            active &= x > 1e-14
            x[~active] = 0
        slope = target - gram @ x
        slope[active] = -np.inf
        if slope.max(initial=-np.inf) <= 1e-10:
            break
        active[int(slope.argmax())] = True
    return x
