"""The distribution of the means, by maximum likelihood (Kiefer and Wolfowitz), from a sample of magnitudes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from .._normal import phi
from .._validate import Array
from ..sample.magnitudes import Magnitudes

# In units of sigma: the width of the histogram's bins, and the spacing of the means that are tried.
_BIN = 1 / 20
_SPACING = 1 / 10
# Entries this far beyond the last threshold are set aside: every rule leaves them as they are.
_MARGIN = 6.0
# A mean this far beyond the universal threshold shows: hardly any such entry is lost at a threshold that one would use.
_CLEAR = 3.0
# Fits this close in log-likelihood are not told apart: 2 bounds a 95% interval of one parameter.
_CLOSE = 2.0


@dataclass(frozen=True, eq=False)
class Means:
    """A distribution of ``|x0|``, fitted to the magnitudes up to a limit.

    Attributes
    ----------
    atoms, masses
        Means, in units of y, and how many entries have each. The last is where the entries beyond the limit are, on
        average; they take no part in the fit.
    gap
        Bound on how much more the logarithm of the likelihood could be (the duality gap); with several fits averaged,
        the largest of theirs, each against its own kind.
    """

    atoms: Array
    masses: Array
    gap: float

    def density(self, points: Array, sigma: float) -> Array:
        """Return the density of ``|Y|`` at the points, times the number of entries."""
        u = points[:, None] / sigma
        pairs = phi(u - self.atoms / sigma) + phi(u + self.atoms / sigma)
        total: Array = pairs @ self.masses / sigma
        return total


def fit_means(sample: Magnitudes, *, sigma: float, largest: float, null: float = 100.0) -> Means:
    """Return a likely distribution of the means, given the magnitudes up to `largest` and 6 sigma.

    The data enter as a histogram with bins of sigma/20, each at the mean of its entries; the means lie on a grid of
    sigma/10.

    With ``null=0`` it is the most likely one. That splits the zeros of a sparse signal into small means, and makes a
    mean of the largest of the noise. So two sparser fits are tried: one with `null` more entries that are zero for
    certain, one with means that are either zero or so large that they show. Each, if within 2 of the largest
    log-likelihood, is averaged with what there is. The log-likelihood is concave: that of the average is within 2, too.
    """
    z, counts, far = _histogram(sample, sigma, largest / sigma + _MARGIN)
    if z.size == 0:
        return Means(far[:1] * sigma, far[1:], 0.0)
    grid = np.arange(0.0, z.max() + 2 * _SPACING, _SPACING)
    likelihood = phi(z[:, None] - grid) + phi(z[:, None] + grid)
    p, gap = _most_likely(likelihood, counts)
    enough = counts @ np.log(likelihood @ p) - _CLOSE
    if null > 0:
        zeros, shows = np.eye(1, grid.size), grid >= np.sqrt(2 * np.log(sample.size)) + _CLEAR
        for sparser, worst in (
            _most_likely(np.vstack([likelihood, zeros]), np.append(counts, null)),
            _most_likely(np.where(shows | (grid == 0), likelihood, 0.0), counts),
        ):
            if counts @ np.log(likelihood @ sparser) >= enough:
                p, gap = (p + sparser) / 2, max(gap, worst)
    used = np.flatnonzero(p)
    masses = np.append(p[used] * counts.sum(), far[1])
    return Means(np.append(grid[used], far[0]) * sigma, masses, gap)


def _most_likely(likelihood: Array, counts: Array) -> tuple[Array, float]:
    """Return the probabilities of the columns that make the counts of the rows most likely, and the duality gap.

    Each step solves a quadratic model of the likelihood over the columns in use and those at which its gradient peaks,
    by non-negative least squares (the constrained Newton method of Wang, 2007).
    """
    total = counts.sum()
    p = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
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
        # Minimise sum_i counts_i (S q - 2)_i^2 over q >= 0 with sum 1; homogeneous in q but for the last equation. From
        # p/2 on, where the slope is half the gradient: what is left to gain may be far below the rounding of the rest.
        s = (likelihood[:, used] / f[:, None] - 2) * np.sqrt(counts / total)[:, None]
        q = _nnls(s.T @ s + 1, p[used] / 2, gradient[used] / (2 * total))
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
    return p, gap


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


def _nnls(gram: Array, start: Array, slope: Array) -> Array:
    """Return the x >= 0 that minimises d' gram d / 2 - slope' d with d = x - start, by active sets (Lawson and Hanson).

    SciPy has one, but importing its optimisers takes half a second, more than all else that a first call does.
    """
    x = np.zeros_like(start)
    active = start > 0
    for _ in range(3 * x.size):
        while active.any():
            s = np.zeros_like(x)
            block = gram[np.ix_(active, active)] + 1e-13 * np.trace(gram) * np.eye(int(active.sum()))
            pull = slope + gram[:, ~active] @ start[~active]
            s[active] = start[active] + np.linalg.solve(block, pull[active])
            falling = active & (s <= 0)
            if not falling.any():
                x = s
                break
            rate = x[falling] / np.maximum(x[falling] - s[falling], 1e-300)
            x += rate.min() * (s - x)
            active &= x > 1e-14
            x[~active] = 0
        left = slope - gram @ (x - start)
        left[active] = -np.inf
        if left.max(initial=-np.inf) <= 1e-10:
            break
        active[int(left.argmax())] = True
    return x
