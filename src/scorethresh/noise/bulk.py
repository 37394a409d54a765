"""The singular values of a matrix of white noise, and the noise level read off those of a noisy matrix.

A matrix of m x n independent entries of variance 1 has singular values between ``|sqrt(m) - sqrt(n)|`` and
``sqrt(m) + sqrt(n)``, distributed by the law of Marchenko and Pastur: the bulk. Complex entries count as of variance 1
if their real and imaginary parts have variance 1/2.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from .._validate import Array

__all__ = ["BulkFit", "bulk_edge", "bulk_quantiles", "fit_bulk", "spike_root"]

# Which of the values below the edge the level is fitted to, from the smallest: the very smallest are known least, and
# the largest may hold signal. Between 40 and 80% for the upper end the level changes by less than 1%.
FITTED_SHARE = (0.05, 0.60)
# Points of the tabulated distribution function. Its error is below 1e-5 of the edge.
TABLE_SIZE = 513
# Bounds the iteration, which usually ends after 3 rounds: it could jump between two ranks for ever.
MAX_ROUNDS = 50
# Beyond these the level is doubted. Of matrices of noise, 1% have a larger misfit. True ranks of a quarter were read
# 1% too low or high in the mean, while spectra that fall like 1/i, of the same apparent rank, were read 8 to 34% high.
MIN_VALUES = 10
MAX_RANK_SHARE = 0.2
MAX_MISFIT = 2.2


def bulk_edge(m: Any, n: Any) -> Any:
    """Return the largest singular value of noise of level 1, in the limit: ``sqrt(m) + sqrt(n)``."""
    return np.sqrt(m) + np.sqrt(n)


def spike_root(s: Any, m: Any, n: Any) -> Any:
    """Return ``sqrt((s^2 - m - n)^2 - 4 m n)``, 0 below the edge: s times the singular value's best shrinkage.

    Notes
    -----
    The Stieltjes transform of the bulk is ``2 sum_j s^2/(s^2 - s_j^2) = s^2 - |m - n| - root``.
    """
    s = np.asarray(s, dtype=np.float64)
    a, b = np.sqrt(m) + np.sqrt(n), np.sqrt(m) - np.sqrt(n)
    # The product of four factors does not cancel near the edge.
    return np.sqrt(np.maximum((s - a) * (s + a), 0.0) * np.maximum((s - b) * (s + b), 0.0))


@functools.lru_cache(maxsize=4096)
def _table(small: int, large: int) -> tuple[Array, Array]:
    """Return singular values across the bulk, and the law's distribution function there."""
    low, high = np.sqrt(large) - np.sqrt(small), np.sqrt(large) + np.sqrt(small)
    # s = middle - half cos(angle): the density times ds/dangle is smooth, and vanishes at both ends.
    angle = np.linspace(0.0, np.pi, TABLE_SIZE)
    s = (high + low) / 2 - (high - low) / 2 * np.cos(angle)
    with np.errstate(invalid="ignore", divide="ignore"):
        density = np.sqrt(np.maximum((s + high) * (s + low), 0.0)) * np.sin(angle) ** 2 / s
    density[0] = 2 * density[1] - density[2] if low == 0 else 0.0
    steps = (density[1:] + density[:-1]) / 2
    cdf = np.append(0.0, np.cumsum(steps))
    return s, cdf / cdf[-1]


def bulk_quantiles(m: int, n: int, shares: Any) -> Array:
    """Return quantiles of the singular values of an m x n matrix of noise of level 1.

    Parameters
    ----------
    m, n : int
        The shape.
    shares : array_like
        Probabilities.

    Returns
    -------
    ndarray
        The singular values below which these shares lie, by the law of Marchenko and Pastur.
    """
    s, cdf = _table(min(m, n), max(m, n))
    return np.asarray(np.interp(shares, cdf, s))


class BulkFit(NamedTuple):
    """What a bulk says of the noise.

    Attributes
    ----------
    sigma : float
        The noise level; of a complex entry, both parts together.
    rank : int
        The number of values above the edge.
    misfit : float
        The mean distance of the upper 40% of the bulk, which the fit does not use, from where they should be, in
        mean spacings of the bulk.
    reason : str
        Why the level cannot be trusted; empty if it can.
    """

    sigma: float
    rank: int
    misfit: float
    reason: str = ""


def fit_bulk(singular_values: Array, m: int, n: int) -> BulkFit:
    """Estimate the noise level from the singular values of an m x n matrix of low rank plus white noise.

    Parameters
    ----------
    singular_values : ndarray
        All ``min(m, n)`` of them, descending.
    m, n : int
        The shape.

    Returns
    -------
    BulkFit
        Level, number of values above the edge, and how well the bulk fits.

    Notes
    -----
    The rank k is the number of values above ``(sqrt(m - k) + sqrt(n - k)) sigma``, plus what chance adds to the
    largest value of noise in 5% of all draws. Of the others, the lower ones are regressed on the quantiles of the law
    of Marchenko and Pastur for the shape (m - k) x (n - k); k and sigma alternate until both stay. The level of a
    square matrix whose rank is not low cannot be known: a rest of smaller noise looks alike.

    References
    ----------
    V. A. Marchenko and L. A. Pastur, "Distribution of eigenvalues for some sets of random matrices", Mathematics of
    the USSR-Sbornik 1 (1967), doi:10.1070/SM1967v001n04ABEH001994.
    """
    s = np.asarray(singular_values, dtype=np.float64)
    rank, seen = 0, set()
    for _ in range(MAX_ROUNDS):
        sigma = _regress(s, rank, m, n)
        ranks = np.arange(s.size)
        edges = (bulk_edge(m - ranks, n - ranks) + _edge_spread(m - ranks, n - ranks)) * sigma
        # The smallest k that is consistent: k values above the edge that belongs to k.
        consistent = s <= edges
        found = int(np.argmax(consistent)) if consistent.any() else s.size - 1
        if found in seen or found == rank:
            rank = found
            break
        seen.add(rank)
        rank = found
    sigma = _regress(s, rank, m, n)
    misfit = _misfit(s, rank, m, n, sigma)
    return BulkFit(sigma, rank, misfit, _doubt(s.size, rank, misfit))


def _edge_spread(m: Any, n: Any) -> Any:
    """Return how far beyond the edge the largest value of noise may lie: it does so in 5% of all draws.

    This is the quantile 0.98 of the law of Tracy and Widom, scaled to singular values: I. M. Johnstone (2001),
    doi:10.1214/aos/1009210544.
    """
    return 0.98 / 2 * np.cbrt(1 / np.sqrt(m) + 1 / np.sqrt(n))


def _doubt(size: int, rank: int, misfit: float) -> str:
    """Return why a level cannot be trusted, or an empty string."""
    if size < MIN_VALUES:
        return f"{size} singular values are too few to tell signal from noise; {MIN_VALUES} are needed"
    if rank > MAX_RANK_SHARE * size:
        return f"{rank} of {size} singular values stand out, so the rank is not low"
    if misfit > MAX_MISFIT:
        return f"the smaller singular values are not spread as those of white noise (by {misfit:.1f} spacings)"
    return ""


def _rest(s: Array, rank: int, m: int, n: int) -> tuple[Array, Array]:
    """Return the values beyond the rank, ascending, and the quantiles at which they are expected."""
    rest = s[rank:][::-1]
    shares = (np.arange(rest.size) + 0.5) / rest.size
    return rest, bulk_quantiles(m - rank, n - rank, shares)


def _regress(s: Array, rank: int, m: int, n: int) -> float:
    rest, expected = _rest(s, rank, m, n)
    low, high = (int(np.floor(share * rest.size)) for share in FITTED_SHARE)
    high = max(high, low + 1)
    return float(rest[low:high] @ expected[low:high] / (expected[low:high] @ expected[low:high]))


def _misfit(s: Array, rank: int, m: int, n: int, sigma: float) -> float:
    rest, expected = _rest(s, rank, m, n)
    upper = slice(int(np.floor(FITTED_SHARE[1] * rest.size)), None)
    if not sigma > 0:
        return 0.0
    off = rest[upper] / sigma - expected[upper]
    spacing = 2 * np.sqrt(min(m, n)) / min(m, n)
    return float(np.abs(off).mean() / spacing)
