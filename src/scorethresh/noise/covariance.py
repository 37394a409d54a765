"""Noise by its covariance: white, or stationary with a power spectrum; the variance behind a filter."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._arrays import cropped, reflect_index
from .._validate import Array

# The least noise variance of a band, over that of white noise of the same level.
_LEAST = 1e-8


@dataclass(frozen=True)
class White:
    """Noise that is independent from entry to entry, of one level."""

    sigma: float

    @property
    def variance(self) -> float:
        """The variance of an entry."""
        return self.sigma**2

    @property
    def mean_squared_power(self) -> float:
        """The mean square of the power at a frequency."""
        return self.sigma**4

    def filter_variances(self, filters: Sequence[Array]) -> Array:
        """Return the variance behind every combination of filters: one row of `filters[axis]` per axis."""
        energy: list[Array] = [(rows**2).sum(axis=1) for rows in filters]
        return self.sigma**2 * functools.reduce(np.multiply.outer, energy)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw noise."""
        return self.sigma * rng.normal(size=shape)


@dataclass(frozen=True, eq=False)
class Stationary:
    """Stationary noise; `power` is ``E |fftn(w)|^2 / w.size`` on the grid of `numpy.fft.fftn`."""

    power: Array

    @property
    def variance(self) -> float:
        """The variance of an entry."""
        return float(self.power.mean())

    @property
    def mean_squared_power(self) -> float:
        """The mean square of the power at a frequency."""
        return float(np.square(self.power).mean())

    def filter_variances(self, filters: Sequence[Array]) -> Array:
        """Return the variance behind every combination of filters: one row of `filters[axis]` per axis."""
        out = self.power
        for rows in filters:  # each turns the first axis into one of filters, and puts it last
            n, size = out.shape[0], rows.shape[1]
            distance = np.arange(size) % n
            covariance = np.fft.rfft(out, axis=0).real[np.minimum(distance, n - distance)] / n
            lags = _lags(rows)
            lags[:, 1:] *= 2
            out = np.tensordot(covariance, lags, axes=([0], [1]))
        # Where there is no noise at all, a little is taken to be, about as much as single precision adds.
        out = np.maximum(out, _LEAST * White(math.sqrt(self.power.mean())).filter_variances(filters))
        return out

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw noise; of leading axes beyond those of `power`, each entry is a draw of its own."""
        axes = range(-self.power.ndim, 0)
        lead = shape[: -self.power.ndim]
        white = rng.normal(size=lead + self.power.shape)
        drawn = np.fft.ifftn(np.fft.fftn(white, axes=axes) * np.sqrt(self.power), axes=axes).real
        return np.ascontiguousarray(cropped(drawn, map(slice, shape[len(lead) :])))


Covariance = White | Stationary


def reflected_variance(rows: Array, n: int) -> Array:
    """Return the mean variance behind filters of n entries of white noise of level 1, continued by reflection.

    An entry comes again every 2 n, and mirrored: over all positions, that is at every odd distance once.
    """
    lags = _lags(rows)
    energy: Array = lags[:, 0] + 2 * lags[:, 2 * n :: 2 * n].sum(axis=1) + 2 * lags[:, 1::2].sum(axis=1) / n
    return np.maximum(energy, 0.0)


def reflected_variances(row: Array, n: int) -> Array:
    """Return the variance behind a filter at every position in n entries of white noise, continued by reflection."""
    at = reflect_index(np.arange(n)[:, None] - np.arange(row.size), n)
    folded = np.zeros((n, n))
    np.add.at(folded, (np.arange(n)[:, None], at), row)
    out: Array = np.square(folded).sum(axis=1)
    return out


def _lags(rows: Array) -> Array:
    """Return the sum of the products of the entries of a filter that lie 0, 1, 2, ... apart; filters are rows."""
    size = rows.shape[1]
    return np.stack([np.fft.irfft(np.abs(np.fft.rfft(row, 2 * size)) ** 2, 2 * size)[:size] for row in rows])
