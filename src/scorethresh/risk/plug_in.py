"""The risk of keeping singular values, from the leading ones alone: what noise does to a spike of known height.

A model of the bulk says, for a singular value s above the noise, how large the signal's was and how far the singular
vectors still point its way. The risk of any rule follows. White noise has closed formulas. For noise of unknown
covariance the formulas are taken from the smaller singular values themselves.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import numpy as np

from .._validate import Array
from ..noise.bulk import bulk_edge, spike_root

__all__ = ["BulkModel", "EmpiricalBulk", "WhiteBulk", "empirical_bulk", "plug_in_risk"]

# Largest share of the singular values that may be signal if the noise is unknown. More leave too little bulk.
MAX_SIGNAL_SHARE = 0.25
# The bound on the rank is this many times the number of values that stand out, and at least so large. Chosen on noise
# that is white or autoregressive (0.5, 0.8), 40 to 300 rows and columns, ranks 0 to 10, 1/i and exponential. With 1.25
# or 2 the mean excess error was 16 and 33% higher, with the fixed bound of a quarter 41%.
BOUND_RATIO = 1.5
MIN_BOUND = 3


class BulkModel(abc.ABC):
    """What noise does to spikes."""

    @property
    @abc.abstractmethod
    def edge(self) -> float:
        """The largest singular value of the noise."""

    @abc.abstractmethod
    def energy(self, s: Array) -> Array:
        """Return the squared singular value of the signal behind s; 0 at or below the edge."""

    @abc.abstractmethod
    def overlap(self, s: Array) -> Array:
        """Return ``<X, u v'>``, X the signal and u, v the singular vectors of s: the best that s can be shrunk to."""


@dataclass(frozen=True)
class WhiteBulk(BulkModel):
    """White noise of level 1 in a matrix of m x n.

    Notes
    -----
    ``x^2 = (s^2 - m - n + root)/2`` and the overlap is ``root/s``, with ``root^2 = (s^2 - m - n)^2 - 4 m n``: Gavish
    and Donoho (2017), doi:10.1109/TIT.2017.2653801.
    """

    m: int
    n: int

    @property
    def edge(self) -> float:
        """The square roots of m and n, added."""
        return float(bulk_edge(self.m, self.n))

    def energy(self, s: Array) -> Array:
        """Return the signal's squared singular value."""
        return np.where(s > self.edge, (s**2 - self.m - self.n + spike_root(s, self.m, self.n)) / 2, 0.0)

    def overlap(self, s: Array) -> Array:
        """Return the best value for s."""
        return np.where(s > self.edge, spike_root(s, self.m, self.n) / np.maximum(s, 1e-300), 0.0)


@dataclass(frozen=True, eq=False)
class EmpiricalBulk(BulkModel):
    """Noise of any covariance, known by singular values of its own.

    Attributes
    ----------
    values : ndarray
        The singular values of the noise, ``min(m, n)`` of them.
    m, n : int
        The shape of the matrix.

    Notes
    -----
    With ``f = sum_j s/(s^2 - s_j^2)`` and g the same with ``|m - n|`` zeros more, the D-transform is ``D = f g``. Then
    ``x^2 = m n/D`` and the overlap is ``-2 D/D'``. A value is worth keeping if the overlap exceeds s/2.

    References
    ----------
    R. R. Nadakuditi, "OptShrink: an algorithm for improved low-rank signal matrix denoising by optimal, data-driven
    singular value shrinkage", IEEE Transactions on Information Theory 60 (2014), arXiv:1306.6042.
    D. L. Donoho, M. Gavish and E. Romanov, "ScreeNOT: exact MSE-optimal singular value thresholding in correlated
    noise", Annals of Statistics 51 (2023), arXiv:2009.12297.
    """

    values: Array
    m: int
    n: int

    @property
    def edge(self) -> float:
        """The largest of the values."""
        return float(self.values.max(initial=0.0))

    def energy(self, s: Array) -> Array:
        """Return the signal's squared singular value."""
        return np.where(s > self.edge, self.m * self.n / self._transform(s)[0], 0.0)

    def overlap(self, s: Array) -> Array:
        """Return the best value for s."""
        d, slope = self._transform(s)
        return np.where(s > self.edge, np.clip(-2 * d / slope, 0.0, s), 0.0)

    def _transform(self, s: Array) -> tuple[Array, Array]:
        # At or below the edge any positive number will do: it is replaced by 0.
        s = np.where(s > self.edge, s, 2 * self.edge + 1.0)[:, None]
        gap = (s - self.values) * (s + self.values)
        f, f_slope = (s / gap).sum(axis=1), (-(s**2 + self.values**2) / gap**2).sum(axis=1)
        excess = abs(self.m - self.n)
        g, g_slope = f + excess / s[:, 0], f_slope - excess / s[:, 0] ** 2
        return f * g, f_slope * g + f * g_slope


def empirical_bulk(s: Array, m: int, n: int, bound: int | None = None) -> EmpiricalBulk:
    """Return the noise behind singular values of which an unknown few are signal.

    Parameters
    ----------
    s : ndarray
        All ``min(m, n)`` singular values, descending.
    m, n : int
        The shape.
    bound : int, optional
        The largest number that may be signal. By default a quarter.

    Returns
    -------
    EmpiricalBulk
        The bulk. The values that may be signal, and as many as there may be, are replaced by a continuation of the
        others.

    Notes
    -----
    The k leading values are replaced by ``s_{k+1} + (1 - ((i - 1)/k)^{2/3}) (s_{k+1} - s_{2k+1})``, which is how an
    edge that falls like a square root goes on: Donoho, Gavish and Romanov (2023). They take a bound k from the user.
    Here k starts at a quarter, or at the user's bound, and falls to one and a half times the number of values that
    stand out, until it stays. A bound that is too low takes signal for noise; one that is too high lowers the edge
    where the spectrum of the noise falls slowly.
    """
    k = max(int(MAX_SIGNAL_SHARE * s.size), min(1, (s.size - 1) // 2))
    k = k if bound is None else min(bound, s.size - 1)
    while True:
        bulk = EmpiricalBulk(_continued(s, k), m, n)
        found = int(np.count_nonzero(bulk.overlap(s) > s / 2))
        smaller = max(found + 2, int(np.ceil(BOUND_RATIO * found)), MIN_BOUND)
        if smaller >= k:
            return bulk
        k = smaller


def _continued(s: Array, k: int) -> Array:
    if not k:
        return s
    i = np.arange(k) / k
    last = min(2 * k, s.size - 1)
    return np.concatenate([s[k] + (1 - i ** (2 / 3)) * (s[k] - s[last]), s[k:]])


def plug_in_risk(s: Array, values: Array, bulk: BulkModel, total: float) -> float:
    """Return the risk of replacing leading singular values, in units of the noise level of an entry squared.

    Parameters
    ----------
    s : ndarray
        Leading singular values, descending.
    values : ndarray
        What they are replaced by.
    bulk : BulkModel
        The noise.
    total : float
        The energy of the signal: ``||Y||^2`` minus that of the noise.

    Returns
    -------
    float
        ``total + sum_i a_i^2 - 2 a_i overlap_i``.
    """
    return total + float((values**2 - 2 * values * bulk.overlap(s)).sum())
