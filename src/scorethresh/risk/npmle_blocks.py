"""The distribution of the norms of block means by maximum likelihood, from a sample of norms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._normal import phi
from .._validate import Array
from ..sample.magnitudes import Magnitudes
from .npmle import BIN, CLOSE, SPACING

__all__ = ["BlockMeans", "fit_block_means"]

# Norms this far beyond the last threshold take no part in the fit: every rule treats them as it treats their means.
MARGIN = 6.0
# Norms beyond the noise by more than this, and the margin, take no part either. It bounds time and memory.
LARGEST_FITTED = 20.0
# From this order on Bessel functions are evaluated by their expansion for large orders, exact to 1e-10 there.
LARGE_ORDER = 40.0
# Blocks that a mean has at least, or none.
LEAST_MASS = 0.02
# Newton steps of the fit at most. It takes 15 to 30.
MAX_STEPS = 100
# Beyond this many sigma a normal density is below rounding.
REACH = 9.0
# A mean this far beyond the largest norm of noise shows.
CLEAR = 3.0


@dataclass(frozen=True, eq=False)
class BlockMeans:
    """A distribution of the norms of the means of blocks, estimated from norms.

    Attributes
    ----------
    atoms, masses : ndarray
        Norms of means, in units of sigma, and the number of blocks that have each.
    far, far_counts : ndarray
        Norms of the data that took no part in the fit, in units of sigma, and how many blocks have each.
    block_size : int
        The number d of entries in a block.
    gap : float
        Bound on how much larger the log-likelihood could be. If fits were averaged, the largest of their gaps.
    """

    atoms: Array
    masses: Array
    far: Array
    far_counts: Array
    block_size: int
    gap: float

    def density(self, norms: Array) -> Array:
        """Return the density of the norms, times the number of blocks, at norms in units of sigma.

        Blocks far beyond the noise count as normal around their norm.
        """
        out: Array = block_density(norms, self.atoms, self.block_size) @ self.masses + self.far_density(norms)
        return out

    def far_density(self, norms: Array) -> Array:
        """Return the part of the density that is due to norms which took no part in the fit."""
        out = np.zeros(norms.size)
        close = self.far < norms.max(initial=0.0) + REACH
        for norm, count in zip(self.far[close], self.far_counts[close], strict=True):
            out += count * phi(np.clip(norms - norm, -50, 50))
        return out


def block_density(norms: Array, means: Array, d: int) -> Array:
    """Return the density of the norm of a block of d entries (rows) with each mean (columns), in units of sigma."""
    if not means.size:
        return np.zeros((norms.size, 0))
    return np.exp(log_chi(norms, d)[:, None] + log_likelihood(norms, means, d))


class Histogram(NamedTuple):
    """Bins of norms, in units of sigma: the averages of their blocks, and how many there are."""

    averages: Array
    counts: Array


def fit_block_means(
    sample: Magnitudes, *, sigma: float, block_size: int, largest: float, null: float = 100.0
) -> BlockMeans:
    """Return a likely distribution of the norms of the means, for thresholds up to `largest`.

    A block of d entries with a mean of norm m has a norm of noncentral chi law. The norms enter as a histogram with
    bins of sigma/10; the means lie on a grid of sigma/5. As for entries, the most likely distribution is averaged
    with two sparser ones that are nearly as likely: one with `null` more blocks of mean zero, one with means that are
    zero or show clearly. With ``null=0`` there are none.
    """
    near, far = histogram(sample, sigma, fitted_limit(largest / sigma, block_size))
    if near.counts.size == 0:
        return BlockMeans(np.empty(0), np.empty(0), far.averages, far.counts, block_size, 0.0)
    grid = np.arange(0.0, near.averages.max() + 2 * SPACING, SPACING)
    logs = log_likelihood(near.averages, grid, block_size)
    # A factor per row changes no fit. This one keeps the largest entry of each row at 1.
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    clear = math.sqrt(2 * math.log(max(sample.size, 2))) + math.sqrt(block_size) + CLEAR
    p, gap = _averaged_fit(likelihood, near.counts, grid, null, clear)
    used = np.flatnonzero(p)
    masses = p[used] * near.counts.sum()
    return BlockMeans(grid[used], masses, far.averages, far.counts, block_size, gap)


def fitted_limit(largest: float, block_size: int) -> float:
    """Return up to which norm means are fitted, for thresholds up to `largest`; in units of sigma."""
    return min(largest, LARGEST_FITTED + math.sqrt(block_size)) + MARGIN


def log_chi(norms: Array, d: int) -> Array:
    """Return the logarithm of the density of the norm of d standard normals."""
    with np.errstate(divide="ignore"):
        power = (d - 1) * np.log(norms) if d > 1 else np.zeros(norms.shape)
    out: Array = (1 - d / 2) * math.log(2) - math.lgamma(d / 2) + power - norms**2 / 2
    return out


def log_likelihood(norms: Array, means: Array, d: int) -> Array:
    """Return the logarithm of the density of a norm at each mean (columns) over that at mean zero.

    It is ``-m^2/2 + log 0F1(; d/2; (r m / 2)^2)``, and ``0F1(; v+1; (x/2)^2) = Gamma(v+1) (2/x)^v I_v(x)``.
    """
    from scipy.special import i0e, ive

    v = d / 2 - 1
    x = np.multiply.outer(norms, means)
    tiny = x**2 < 4e-8 * (v + 1)
    safe = np.where(tiny, 1.0, x)
    if d == 1:
        series = x + np.log1p(np.exp(-2 * x)) - math.log(2)
    elif d == 2:  # complex numbers; this function takes a twentieth of the time of the next
        series = np.log(i0e(safe)) + safe
    elif v < LARGE_ORDER:
        series = math.lgamma(v + 1) - v * np.log(safe / 2) + np.log(ive(v, safe)) + safe
    else:
        series = math.lgamma(v + 1) - v * np.log(safe / 2) + _log_bessel(v, safe)
    out: Array = np.where(tiny, np.log1p(x**2 / (4 * (v + 1))), series) - means**2 / 2
    return out


def _log_bessel(v: float, x: Array) -> Array:
    """Return ``log I_v(x)`` for a large order v, by Debye's expansion (DLMF 10.41.3)."""
    z = x / v
    root = np.sqrt(1 + z**2)
    t = 1 / root
    terms = 1 + (3 * t - 5 * t**3) / (24 * v)
    terms += (81 * t**2 - 462 * t**4 + 385 * t**6) / (1152 * v**2)
    terms += (30375 * t**3 - 369603 * t**5 + 765765 * t**7 - 425425 * t**9) / (414720 * v**3)
    eta = root + np.log(z / (1 + root))
    out: Array = v * eta - 0.5 * math.log(2 * math.pi * v) - 0.5 * np.log(root) + np.log(terms)
    return out


def _averaged_fit(likelihood: Array, counts: Array, grid: Array, null: float, clear: float) -> tuple[Array, float]:
    """Return probabilities of the means on the grid, and the duality gap; see `fit_block_means`."""
    p, gap = most_likely(likelihood, counts)
    enough = counts @ np.log(likelihood @ p) - CLOSE
    if null > 0:
        sparse = np.where((grid >= clear) | (grid == 0), likelihood, 0.0)
        fits = [most_likely(np.vstack([likelihood, np.eye(1, grid.size)]), np.append(counts, null))]
        if (sparse.max(axis=1) > 0).all():
            fits.append(most_likely(sparse, counts))
        for sparser, worst in fits:
            with np.errstate(divide="ignore"):
                close = counts @ np.log(likelihood @ sparser) >= enough
            if close:
                p, gap = (p + sparser) / 2, max(gap, worst)
    return p, gap


def most_likely(likelihood: Array, counts: Array) -> tuple[Array, float]:
    """Return the probabilities of the columns that make the counts of the rows most likely, and the duality gap.

    An interior-point method: Newton steps for the minimum of ``-sum_i c_i log (L p)_i + sum_j p_j`` over p >= 0, with
    counts that sum to 1. At the minimum the p sum to 1, and the slopes ``s = 1 - L' (c / L p)`` are at least 0 with
    ``p s = 0``; each step aims at products ``p s`` that are a fraction of the present ones.
    """
    total = counts.sum()
    c = counts / total
    used = likelihood.max(axis=0) > 0
    part = likelihood[:, used]
    p = np.full(part.shape[1], 1 / part.shape[1])
    s = np.ones_like(p)
    gap = np.inf
    for _ in range(MAX_STEPS):
        f = part @ p
        slope = 1 - part.T @ (c / f)
        gap = max(float(-slope.min()), 0.0) * total
        if gap < max(1e-4, 1e-9 * total) and float(p @ s) * total < 1e-3:
            break
        target = 0.1 * float(p @ s) / p.size
        scaled = part * (np.sqrt(c) / f)[:, None]
        matrix = scaled.T @ scaled
        matrix[np.diag_indices_from(matrix)] += s / p
        step = np.linalg.solve(matrix, target / p - slope)
        turn = target / p - s - s / p * step
        length = min(1.0, 0.995 / max(float((-step / p).max()), 1e-300))
        dual = min(1.0, 0.995 / max(float((-turn / s).max()), 1e-300))
        p, s = p + length * step, s + dual * turn
    # What is left of columns that are not in use would link neighbours. All of it changes the log-likelihood by less
    # than 1e-3, the bound on p @ s.
    p = np.where(p < LEAST_MASS / total, 0.0, p)
    out = np.zeros(likelihood.shape[1])
    out[used] = p / p.sum()
    return out, gap


def histogram(sample: Magnitudes, sigma: float, limit: float) -> tuple[Histogram, Histogram]:
    """Return the bins of norms up to a limit, and the norms beyond; all in units of sigma."""
    norms, counts = sample.points()
    z = norms / sigma
    near = z <= limit
    bins, where = np.unique(np.floor(z[near] / BIN), return_inverse=True)
    totals = np.bincount(where, counts[near], minlength=bins.size).astype(np.float64)
    averages = np.bincount(where, counts[near] * z[near], minlength=bins.size) / np.maximum(totals, 1e-300)
    return Histogram(averages, totals), Histogram(z[~near], counts[~near])
