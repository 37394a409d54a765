"""The distribution of the means by maximum likelihood (Kiefer and Wolfowitz), from a sample of magnitudes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import _validate
from .._kernels import fit_mixture
from .._normal import phi
from .._validate import Array
from ..sample.magnitudes import Magnitudes
from .gaussian import row_blocks

# In units of sigma: the width of the histogram's bins and the spacing of the means. Noise blurs all that is finer. At
# half of both, fits take twice the time, and what is lost by thresholds for 60 two-point mixtures (64 to 4096 entries)
# is the same within 0.1% in the mean and 1% at most.
BIN = 1 / 10
SPACING = 1 / 5
# Entries this far beyond the last threshold are set aside: every rule leaves them as they are.
FITTED_BEYOND = 6.0
# Up to this threshold, and the margin, means are fitted. It bounds the time and memory of the fit; the default
# thresholds end below 9.
_LARGEST_FITTED = 20.0
# Beyond, magnitudes within this fraction of each other share a mean: less than sigma up to 100 sigma.
_FAR_BIN = 0.01
# A mean this far beyond the universal threshold shows: hardly any such entry is lost at a threshold that one would use.
CLEAR = 3.0
# Fits this close in log-likelihood are not told apart: 2 bounds a 95% interval of one parameter.
CLOSE = 2.0
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
    far
        The number of atoms at the end that were not fitted; see the notes.
    misfit
        ``sqrt(n) (F_n - F)`` where it is largest in size, F_n the distribution of the n magnitudes that were fitted, F
        the fitted one. See `Selection`.

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
    far: int = 1
    misfit: float = 0.0

    @property
    def fitted(self) -> int:
        """The number of atoms that were fitted; they come first."""
        return self.atoms.size - self.far

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

    The data enter as a histogram with bins of sigma/10, each at the mean of its entries; the means lie on a grid of
    sigma/5. Of entries beyond 26 sigma see `Means`.

    With ``null=0`` it is the most likely one. That splits the zeros of a sparse signal into small means, and takes the
    largest entries of the noise for means. So two sparser fits are tried: one with `null` more entries that are zero
    for certain, one with means that are either zero or so large that they show. Each, if its log-likelihood is within
    2 of the largest, is averaged with what there is. The log-likelihood is concave, so that of the average is within
    2, too.
    """
    near, far = _histogram(sample, sigma, largest / sigma)
    if near.counts.size == 0:
        return Means(far.averages, far.counts, 0.0, far.counts.size)
    grid = np.arange(0.0, near.averages.max() + 2 * SPACING, SPACING)
    p, gap = _averaged_fit(near, grid, null, np.sqrt(2 * np.log(sample.size)) + CLEAR)
    used = np.flatnonzero(p)
    atoms, masses = grid[used] * sigma, p[used] * near.counts.sum()
    misfit = distribution_misfit(*near, grid[used], masses)
    return Means(np.append(atoms, far.averages), np.append(masses, far.counts), gap, far.counts.size, misfit)


def distribution_misfit(averages: Array, counts: Array, atoms: Array, masses: Array) -> float:
    """Return the largest difference between the distributions of n magnitudes and of the fit, times the root of n.

    They are compared at the averages of the bins, where half of a bin's entries count as below. So data on a
    lattice, such as transforms of whole numbers, do not differ from smooth ones.
    """
    from scipy.special import ndtr

    at = averages[:, None]
    fitted = (ndtr(at - atoms) - ndtr(-at - atoms)) @ masses
    return largest_difference(averages, counts, fitted)


def largest_difference(averages: Array, counts: Array, fitted: Array) -> float:
    """Return the largest difference between the numbers of entries up to each bin, over the root of their total.

    Half of a bin's entries count as below its average. None do at 0, where no magnitude lies below.
    """
    below = np.where(averages > 1e-9, np.cumsum(counts) - counts / 2, 0.0)
    excess = below - fitted
    return float(excess[np.argmax(np.abs(excess))] / np.sqrt(counts.sum()))


def _averaged_fit(near: _Binned, grid: Array, null: float, clear: float) -> tuple[Array, float]:
    """Return probabilities of the means on the grid, and the duality gap; see `fit_means`."""
    first_clear = max(int(np.searchsorted(grid, clear)), 1)
    fit = fit_mixture(*near, columns=grid.size, spacing=SPACING, null=null, clear=first_clear, close=CLOSE)
    worst = fit.gaps.max()
    if worst > max(0.01, 1e-7 * near.counts.sum()):
        _validate.warn(f"the fit of the means stopped {worst:.3g} short of the largest log-likelihood", UserWarning)
    return fit.probabilities, float(fit.gaps[fit.taken == 1].max())


def _histogram(sample: Magnitudes, sigma: float, largest: float) -> tuple[_Binned, _Binned]:
    """Return the bins to which means are fitted, in units of sigma, and those beyond, in units of y.

    The last of the bins beyond holds all entries that no rule changes, and may be empty.
    """
    magnitudes, counts = sample.points()
    with np.errstate(over="ignore"):  # averages of entries near the largest double may be infinite
        z = magnitudes / sigma
        fitted = z <= min(largest, _LARGEST_FITTED) + FITTED_BEYOND
        unchanged = z > largest + FITTED_BEYOND
        between = ~fitted & ~unchanged
        near = _binned(np.floor(z[fitted] / BIN), z[fitted], counts[fitted])
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
