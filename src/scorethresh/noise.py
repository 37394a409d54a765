"""The noise: its level or spectrum, estimated, and the variance behind a filter."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _validate
from ._validate import Array
from .transforms import along, cropped, dct_matrix

__all__ = ["Spectrum", "White", "estimate_sigma"]

# Daubechies' high-pass filter of four taps: unit energy, and blind to constants and slopes.
_HIGH_PASS = np.array([1 - 3**0.5, -(3 - 3**0.5), 3 + 3**0.5, -(1 + 3**0.5)]) / 32**0.5

# The median of |N(0, 1)|.
_MEDIAN = 0.6744897501960817

# Whether a transform is needed.
_DOMAINS = {"coefficients": False, "samples": True}

# Entries of a window along each of so many axes; how many windows are enough, and how many are too few.
_BLOCK = {1: 16, 2: 8, 3: 4}
_ENOUGH = 40_000
_FEW = 300

# The part of the windows that is looked at: the flattest.
_FLAT = 0.2

# To take some noise for signal costs more than the converse: the factor on estimated spectra that was best on camera,
# coins and brick with noise blurred to three widths.
_CAUTION = 1.15

# The least noise variance of a band, over that of white noise of the same level.
_LEAST = 1e-8

# A value that so large a part of the entries shares at the end of the range is taken for a limit of the device.
_CLIPPED = 1e-3


@dataclass(frozen=True)
class White:
    """Noise that is independent from entry to entry, of one level."""

    sigma: float

    def variances(self, filters: Sequence[Array]) -> Array:
        """Return the variance behind every combination of filters: one row of `filters[axis]` per axis."""
        energy: list[Array] = [(rows**2).sum(axis=1) for rows in filters]
        return self.sigma**2 * functools.reduce(np.multiply.outer, energy)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw noise."""
        return self.sigma * rng.normal(size=shape)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Stationary noise; `power` is ``E |fftn(w)|^2 / w.size`` on the grid of `numpy.fft.fftn`."""

    power: Array

    def variances(self, filters: Sequence[Array]) -> Array:
        """Return the variance behind every combination of filters: one row of `filters[axis]` per axis."""
        out = self.power
        for rows in filters:  # each turns the first axis into one of filters, and puts it last
            n = out.shape[0]
            wrapped = np.zeros((len(rows), n))
            for k in range(0, rows.shape[1], n):
                wrapped[:, : rows.shape[1] - k] += rows[:, k : k + n]
            gain = np.abs(np.fft.fft(wrapped, axis=1)) ** 2 / n
            out = np.tensordot(out, gain, axes=([0], [1]))
        # Where there is no noise at all, a little is taken to be, about as much as single precision adds.
        out = np.maximum(out, _LEAST * White(math.sqrt(self.power.mean())).variances(filters))
        return out

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw noise; of leading axes beyond those of `power`, each entry is a draw of its own."""
        axes = range(-self.power.ndim, 0)
        lead = shape[: -self.power.ndim]
        white = rng.normal(size=lead + self.power.shape)
        drawn = np.fft.ifftn(np.fft.fftn(white, axes=axes) * np.sqrt(self.power), axes=axes).real
        return np.ascontiguousarray(cropped(drawn, map(slice, shape[len(lead) :])))


Noise = White | Spectrum


def mirrored_energy(rows: Array, n: int) -> Array:
    """Return the mean variance behind filters of n entries of white noise of level 1, continued by reflection.

    An entry comes again every 2 n, and mirrored: over all positions, that is at every odd distance once.
    """
    size = rows.shape[1]
    out = []
    for row in rows:
        full = np.fft.rfft(row, 2 * size)
        lags = np.fft.irfft(np.abs(full) ** 2, 2 * size)  # from 0 up, then from below 0
        out.append(lags[0] + 2 * lags[2 * n : size : 2 * n].sum() + 2 * lags[1:size:2].sum() / n)
    energy: Array = np.maximum(np.array(out), 0.0)
    return energy


def estimate_sigma(y: Any, *, domain: str | None = None) -> float:
    """Estimate the standard deviation of white noise, robustly against the signal under it.

    Parameters
    ----------
    y : array_like
        Noisy coefficients, or a noisy signal, image or volume.
    domain : {"coefficients", "samples"}, optional
        ``"coefficients"``: most entries are noise around zero, and the estimate is the median of ``|y|`` over 0.6745.
        ``"samples"``: the estimate is the median magnitude of the high frequencies in the flattest fifth of all
        windows (8 by 8 in an image), flat by their low frequencies, which say nothing about the noise in the high
        ones. Constant windows and those with clipped entries are left out. Arrays too small for windows are judged
        by their finest wavelet band. By default a vector is taken to hold coefficients, an array of two or more
        dimensions samples: for a one-dimensional signal say ``domain="samples"``.

    Returns
    -------
    float
        In units of y. Signal in the entries used makes it too large: by 6% if 5% of them are far from zero.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> print(round(estimate_sigma(rng.normal(0.0, 3.0, 10_000)), 1))
    3.0
    >>> image = np.add.outer(np.arange(128.0), np.arange(128.0))
    >>> print(round(estimate_sigma(image + rng.normal(0.0, 3.0, image.shape)), 1))
    3.0
    """
    y = _validate.data(y)
    _validate.finite(y)
    if domain is None:
        domain = "coefficients" if y.ndim == 1 else "samples"
    y = y.astype(np.float64)
    sigma = level_of_samples(y) if _validate.choice("domain", domain, _DOMAINS) else _mad(y)
    if not sigma > 0:
        msg = (
            "the noise level of y comes out as 0: at least half of the entries looked at are 0. Pass sigma, or "
            "leave constant regions out of y."
        )
        raise ValueError(msg)
    return sigma


def _mad(y: Array) -> float:
    return float(np.median(np.abs(y))) / _MEDIAN if y.size else 0.0


def level_of_samples(y: Array) -> float:
    """Return the noise level of a signal, image or volume; 0 if it is constant. NaN marks missing entries."""
    if max(y.shape) < _HIGH_PASS.size:
        msg = f"y is too small to tell noise from signal, with shape {y.shape}. Pass sigma."
        raise ValueError(msg)
    low, high = float(np.nanmin(y)), float(np.nanmax(y))
    if low == high:
        return 0.0
    discrete = bool(((y == np.rint(y)) | np.isnan(y)).all())
    windows = _windows((y - low) / (high - low), discrete)
    if len(windows) < _FEW:
        for axis in range(y.ndim):
            if y.shape[axis] >= _HIGH_PASS.size:
                y = _detail(y, axis)
        return _mad(y[(y != 0) & ~np.isnan(y)])
    coefficients, order = _transformed(windows)
    top = order.max()
    slow = (order > 0) & (order <= 0.45 * top)
    flat = np.argsort((coefficients[:, slow] ** 2).sum(axis=1))[: max(int(_FLAT * len(windows)), _FEW)]
    return _mad(coefficients[flat][:, order >= 0.7 * top]) * (high - low)


def _windows(y: Array, discrete: bool) -> Array:
    """Return a sample of the windows of y, of values from 0 to 1: whole, neither constant nor clipped."""
    long = [axis for axis in range(y.ndim) if y.shape[axis] >= 16][-3:]
    if not long:
        return np.empty((0, 1))
    block = _BLOCK[len(long)]
    step = max(3, math.ceil((y.size / _ENOUGH) ** (1 / len(long))))
    view = np.lib.stride_tricks.sliding_window_view(y, (block,) * len(long), axis=tuple(long))
    view = view[tuple(slice(None, None, step if axis in long else 1) for axis in range(y.ndim))]
    view = view.reshape(-1, *(block,) * len(long))
    inside = tuple(range(1, view.ndim))
    # Integers meet their neighbours by chance, other numbers only where there is no noise.
    equal = (view[..., 1:] == view[..., :-1]).mean(axis=inside)
    free = (equal <= (0.5 if discrete else 0.0)) & ~np.isnan(view).any(axis=inside)
    for bound, ends in ((0.0, view.min(axis=inside)), (1.0, view.max(axis=inside))):
        if np.mean(y == bound) > _CLIPPED:
            free &= ends != bound
    out: Array = view[free]
    return out


def estimate_spectrum(y: Array) -> Array:
    """Return the power spectrum of stationary noise, on the grid of `numpy.fft.fftn`. NaN marks missing entries.

    Windows without overlap are judged flat by those two steps away, whose noise is not theirs; in the flatter half the
    median of the squared DCT coefficients gives the power at every frequency.
    """
    if max(y.shape) < _HIGH_PASS.size:
        msg = f"y is too small to tell noise from signal, with shape {y.shape}. Pass the power spectrum of the noise."
        raise ValueError(msg)
    if np.nanmin(y) == np.nanmax(y):
        return np.zeros(y.shape)
    block = [min({1: 64, 2: 16, 3: 8}[y.ndim], n) for n in y.shape]
    counts = [n // b for n, b in zip(y.shape, block, strict=True)]
    view = y[tuple(slice(c * b) for c, b in zip(counts, block, strict=True))]
    view = view.reshape([n for pair in zip(counts, block, strict=True) for n in pair])
    view = np.moveaxis(view, range(0, 2 * y.ndim, 2), range(y.ndim))
    coefficients, order = _transformed(view.reshape(-1, *block))
    energy = np.where(order > 0, coefficients**2, 0.0).reshape(*counts, -1).sum(axis=-1)
    energy = np.where(np.isnan(energy), np.inf, energy)
    around = np.zeros(energy.shape)
    for axis, shift in itertools.product(range(y.ndim), (2, -2)):
        around += np.roll(energy, shift, axis) if counts[axis] > 2 else energy
    whole = np.flatnonzero(np.isfinite(energy))
    if not whole.size:
        sides = " x ".join(map(str, block))
        msg = f"y has no whole window of {sides} entries. Pass the power spectrum of the noise, or sigma."
        raise ValueError(msg)
    flat = whole[np.argsort(around.ravel()[whole])[: max(whole.size // 2, min(whole.size, 32))]]
    power = _CAUTION * np.median(coefficients[flat] ** 2, axis=0) / _MEDIAN**2
    near = tuple(zip(*np.argwhere(order == 1), strict=True))
    power[(0,) * y.ndim] = power[near].mean()  # the mean of a window is signal
    for axis, n in enumerate(y.shape):
        k = np.minimum(2 * block[axis] * np.abs(np.fft.fftfreq(n)), block[axis] - 1)
        low = np.minimum(k.astype(int), block[axis] - 2)
        share = along(k - low, axis, y.ndim)
        power = np.take(power, low, axis) * (1 - share) + np.take(power, low + 1, axis) * share
    out: Array = np.maximum(power, np.finfo(float).tiny)
    return out


def _transformed(windows: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return the DCT of every window, and the sum of frequencies of every coefficient."""
    out = windows
    for _ in range(windows.ndim - 1):
        out = np.moveaxis(out, 1, -1) @ dct_matrix(out.shape[1]).T
    return out, np.indices(windows.shape[1:]).sum(axis=0)


def _detail(y: Array, axis: int) -> Array:
    """Return the finest detail along an axis, every other entry, where the filter lies inside of y.

    The filter is applied to differences, so that the detail of constant regions is exactly 0.
    """
    y = np.moveaxis(y, axis, -1)
    step = y[..., 1:] - y[..., :-1]
    count = (y.shape[-1] - _HIGH_PASS.size) // 2 + 1
    a, b, c = (step[..., j : j + 2 * count - 1 : 2] for j in range(3))
    # The taps add up to 0: g0 y0 + ... + g3 y3 = -g0 (y1 - y0) - (g0 + g1)(y2 - y1) + g3 (y3 - y2).
    out: Array = -_HIGH_PASS[0] * a - (_HIGH_PASS[0] + _HIGH_PASS[1]) * b + _HIGH_PASS[3] * c
    return np.moveaxis(out, -1, axis)
