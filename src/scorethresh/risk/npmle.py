"""The distribution of the means by maximum likelihood (Kiefer and Wolfowitz), from a sample of magnitudes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._normal import phi
from .._validate import Array
from ..sample.magnitudes import Magnitudes
from .gaussian import row_blocks

# In units of sigma: the width of the histogram's bins and the spacing of the means. Smaller ones lose less of the shape
# of the data and cost time and memory.
_BIN = 1 / 20
_SPACING = 1 / 10
# Entries this far beyond the last threshold are set aside: every rule leaves them as they are.
_MARGIN = 6.0
# Up to this threshold, and the margin, means are fitted. It bounds the time and memory of the fit; the default
# thresholds end below 9.
_LARGEST_FITTED = 20.0
# Beyond, magnitudes within this fraction of each other share a mean: less than sigma up to 100 sigma.
_FAR_BIN = 0.01
# A mean this far beyond the universal threshold shows: hardly any such entry is lost at a threshold that one would use.
_CLEAR = 3.0
# Fits this close in log-likelihood are not told apart: 2 bounds a 95% interval of one parameter.
_CLOSE = 2.0
# Means are cut off at this many sigma, so that their differences are finite.
_HUGE = 1e300


@dataclass(frozen=True, eq=False)
class Means:
    """A distribution of ``|x0|``, estimated from magnitudes.

    Attributes
    ----------
    atoms, masses
        Means, in units of y, and the number of entries that have each.
    gap
        Bound on how much larger the log-likelihood could be (the duality gap). If several fits were averaged, the
        largest of their gaps.

    Notes
    -----
    Magnitudes up to 6 sigma beyond the last threshold, but at most 26 sigma, are fitted by maximum likelihood. Larger
    ones are far above the noise, and each tells its mean to within sigma. So they are taken as means themselves, those
    within 1% of each other together. Entries more than 6 sigma beyond the last threshold form the last atom, at their
    average: every rule leaves them as they are. This bounds the time and the memory, whatever the thresholds.
    """

    atoms: Array
    masses: Array
    gap: float

    def density(self, points: Array, sigma: float) -> Array:
        """Return the density of ``|Y|`` at the points, times the number of entries."""
        with np.errstate(over="ignore"):
            u, means = np.minimum(points / sigma, _HUGE), np.minimum(self.atoms / sigma, _HUGE)
        total = np.empty(points.size)
        for part in row_blocks(points.size, means.size):
            pairs = phi(u[part, None] - means) + phi(u[part, None] + means)
            total[part] = pairs @ self.masses / sigma
        return total


class _Binned(NamedTuple):
    """Bins of magnitudes: the averages of their entries, and how many there are."""

    averages: Array
    counts: Array


def fit_means(sample: Magnitudes, *, sigma: float, largest: float, null: float = 100.0) -> Means:
    """Return a likely distribution of the means, for thresholds up to `largest`.

    The data enter as a histogram with bins of sigma/20, each at the mean of its entries; the means lie on a grid of
    sigma/10. Of entries beyond 26 sigma see `Means`.

    With ``null=0`` it is the most likely one. That splits the zeros of a sparse signal into small means, and takes the
    largest entries of the noise for means. So two sparser fits are tried: one with `null` more entries that are zero
    for certain, one with means that are either zero or so large that they show. Each, if its log-likelihood is within
    2 of the largest, is averaged with what there is. The log-likelihood is concave, so that of the average is within
    2, too.
    """
    near, far = _histogram(sample, sigma, largest / sigma)
    if near.counts.size == 0:
        return Means(far.averages, far.counts, 0.0)
    grid = np.arange(0.0, near.averages.max() + 2 * _SPACING, _SPACING)
    p, gap = _averaged_fit(near, grid, null, np.sqrt(2 * np.log(sample.size)) + _CLEAR)
    used = np.flatnonzero(p)
    atoms, masses = grid[used] * sigma, p[used] * near.counts.sum()
    return Means(np.append(atoms, far.averages), np.append(masses, far.counts), gap)


def _averaged_fit(near: _Binned, grid: Array, null: float, clear: float) -> tuple[Array, float]:
    """Return probabilities of the means on the grid, and the duality gap; see `fit_means`."""
    z, counts = near.averages[:, None], near.counts
    likelihood = phi(z - grid) + phi(z + grid)
    p, gap = _most_likely(likelihood, counts)
    enough = counts @ np.log(likelihood @ p) - _CLOSE
    if null > 0:
        for sparser, worst in (
            _most_likely(np.vstack([likelihood, np.eye(1, grid.size)]), np.append(counts, null)),
            _most_likely(np.where((grid >= clear) | (grid == 0), likelihood, 0.0), counts),
        ):
            if counts @ np.log(likelihood @ sparser) >= enough:
                p, gap = (p + sparser) / 2, max(gap, worst)
    return p, gap


def _most_likely(likelihood: Array, counts: Array) -> tuple[Array, float]:
    """Return the probabilities of the columns that make the counts of the rows most likely, and the duality gap.

    Each step solves a quadratic model of the likelihood over the columns in use and those at which its gradient peaks,
    by non-negative least squares (the constrained Newton method of Wang, 2007, doi:10.1111/j.1467-9868.2007.00583.x).
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
        # Minimise sum_i counts_i (S q - 2)_i^2 over q >= 0 with sum 1; homogeneous in q but for the last equation.
        # Start at p/2, where the slope is half the gradient: the gain may be far below the rounding of the rest.
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


def _histogram(sample: Magnitudes, sigma: float, largest: float) -> tuple[_Binned, _Binned]:
    """Return the bins to which means are fitted, in units of sigma, and those beyond, in units of y.

    The last of the bins beyond holds all entries that no rule changes, and may be empty.
    """
    if sample.cells is None or sample.moments is None:
        magnitudes, counts = sample.nodes, sample.weights
    else:
        counts = sample.moments[:, 0]
        used = counts > 0
        counts = counts[used]
        magnitudes = sample.cells.middle[used] + sample.cells.half[used] * (sample.moments[used, 1] / counts)
    with np.errstate(over="ignore"):  # averages of entries near the largest double may be infinite
        z = magnitudes / sigma
        fitted = z <= min(largest, _LARGEST_FITTED) + _MARGIN
        unchanged = z > largest + _MARGIN
        between = ~fitted & ~unchanged
        near = _binned(np.floor(z[fitted] / _BIN), z[fitted], counts[fitted])
        far = _Binned(np.empty(0), np.empty(0))
        if between.any():
            far = _binned(np.floor(np.log(z[between]) / np.log1p(_FAR_BIN)), magnitudes[between], counts[between])
        rest = counts[unchanged].sum()
        average = (counts[unchanged] / rest) @ magnitudes[unchanged] if rest else 0.0
    return near, _Binned(np.append(far.averages, average), np.append(far.counts, rest))


def _binned(keys: Array, values: Array, counts: Array) -> _Binned:
    """Return the bins of values with the same key."""
    bins, where = np.unique(keys, return_inverse=True)
    totals = np.bincount(where, counts, minlength=bins.size).astype(np.float64)
    averages: Array = np.bincount(where, counts * values, minlength=bins.size) / totals
    return _Binned(averages, totals)


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
