"""Covariances of Gaussian noise: white, or stationary with a power spectrum; the noise variance behind a filter."""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._arrays import Floats, cropped, reflect_index
from .._validate import Array

# Smallest noise variance behind a filter, over that of white noise of the same level. It stands for the rounding of
# single precision, whose relative error is 6e-8, and keeps divisions by the variance finite.
MIN_RELATIVE_VARIANCE = 1e-8


class Covariance(abc.ABC):
    """The covariance of noise with mean zero. A subclass states all five members."""

    @property
    @abc.abstractmethod
    def variance(self) -> float:
        """The variance of an entry: the mean of the power over all frequencies."""

    @property
    @abc.abstractmethod
    def mean_squared_power(self) -> float:
        """The mean of the squared power over all frequencies; ``sigma^4`` if the noise is white.

        The squared norm of n entries of such noise has the variance ``2 n mean_squared_power``.
        """

    @abc.abstractmethod
    def filter_variances(self, filters: Sequence[Array]) -> Array:
        """Return the variance of the noise behind separable filters.

        `filters[axis]` holds the filters of one axis as rows. Entry ``[i, j, ...]`` of the result belongs to the
        product of row i along the first axis, row j along the second, and so on.
        """

    @abc.abstractmethod
    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw noise. Axes in front of those of the noise hold independent draws."""

    @abc.abstractmethod
    def times(self, values: Floats) -> Floats:
        """Return the covariance matrix times `values`, real or complex, on the grid of the noise."""


@dataclass(frozen=True)
class White(Covariance):
    """Noise that is independent from entry to entry, with standard deviation `sigma`."""

    sigma: float

    @property
    def variance(self) -> float:
        """The variance of an entry."""
        return self.sigma**2

    @property
    def mean_squared_power(self) -> float:
        """The squared power, which is the same at all frequencies."""
        return self.sigma**4

    def filter_variances(self, filters: Sequence[Array]) -> Array:
        """Return ``sigma^2`` times the energy of each product of filters."""
        energy: list[Array] = [np.square(rows).sum(axis=1) for rows in filters]
        return self.sigma**2 * functools.reduce(np.multiply.outer, energy)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw noise."""
        return self.sigma * rng.normal(size=shape)

    def times(self, values: Floats) -> Floats:
        """Return ``sigma^2 values``."""
        out: Floats = self.sigma**2 * values
        return out


@dataclass(frozen=True, eq=False)
class Stationary(Covariance):
    """Noise whose covariance depends on the distance of two entries only.

    `power` is ``E |fftn(w)|^2 / w.size`` on the grid of `numpy.fft.fftn`. The covariance of two entries is its inverse
    Fourier transform at their distance, which is taken modulo the size of the grid.
    """

    power: Array

    @property
    def variance(self) -> float:
        """The variance of an entry: the mean power."""
        return float(self.power.mean())

    @property
    def mean_squared_power(self) -> float:
        """The mean of the squared power."""
        return float(np.square(self.power).mean())

    def filter_variances(self, filters: Sequence[Array]) -> Array:
        """Return the variance behind each product of filters: ``sum_d covariance(d) autocorrelation(d)``.

        The sum over the distances d is separable, so it is taken axis by axis. Only distances within a filter occur.
        """
        out = self.power
        for rows in filters:  # replace the first axis, of frequencies, by a last one, of filters
            n, size = out.shape[0], rows.shape[1]
            distance = np.arange(size) % n
            covariance = np.fft.rfft(out, axis=0).real[np.minimum(distance, n - distance)] / n
            weights = _autocorrelations(rows)
            weights[:, 1:] *= 2  # distances of either sign
            out = np.tensordot(covariance, weights, axes=([0], [1]))
        white = White(1.0).filter_variances(filters)
        return np.maximum(out, MIN_RELATIVE_VARIANCE * self.variance * white)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw noise on the whole grid and crop it to `shape`."""
        axes = range(-self.power.ndim, 0)
        lead = shape[: -self.power.ndim]
        white = rng.normal(size=lead + self.power.shape)
        drawn = np.fft.ifftn(np.fft.fftn(white, axes=axes) * np.sqrt(self.power), axes=axes).real
        return np.ascontiguousarray(cropped(drawn, map(slice, shape[len(lead) :])))

    def times(self, values: Floats) -> Floats:
        """Return the circular convolution of `values` with the covariance."""
        out: Floats = np.fft.ifftn(np.fft.fftn(values) * self.power)
        return out if np.iscomplexobj(values) else out.real


def reflected_variance(rows: Array, n: int) -> Array:
    """Return the mean variance behind filters of white noise of level 1, n entries extended by reflection.

    The mean is over all positions of the period ``2 n``. Two entries at distance d are the same one if d is a multiple
    of ``2 n``; if d is odd, they are the same one at 2 of the ``2 n`` positions. With the autocorrelation r of a
    filter,

        mean variance = r(0) + 2 sum_k r(2 n k) + (2 / n) sum_{d odd} r(d).
    """
    r = _autocorrelations(rows)
    variance: Array = r[:, 0] + 2 * r[:, 2 * n :: 2 * n].sum(axis=1) + 2 * r[:, 1::2].sum(axis=1) / n
    return np.maximum(variance, 0.0)


def reflected_variances(row: Array, n: int) -> Array:
    """Return the variance behind a filter at each of n entries of white noise of level 1, extended by reflection.

    Taps that meet the same entry are added up before they are squared.
    """
    entries = reflect_index(np.arange(n)[:, None] - np.arange(row.size), n)
    taps = np.zeros((n, n))
    np.add.at(taps, (np.arange(n)[:, None], entries), row)
    out: Array = np.square(taps).sum(axis=1)
    return out


def _autocorrelations(rows: Array) -> Array:
    """Return ``r(d) = sum_k f(k) f(k + d)`` for d = 0, 1, ... and every row f."""
    size = rows.shape[1]
    return np.stack([np.fft.irfft(np.abs(np.fft.rfft(row, 2 * size)) ** 2, 2 * size)[:size] for row in rows])
