"""Whether data vary less than their noise alone would: then the noise model is wrong.

Whatever the signal is, adding noise to it spreads the data. A symmetric interval catches no larger share of a linear
combination of entries than it catches of the noise alone. So a noise model that says more than the data show is
refuted, by any linear combination: differences of neighbours, where many are equal (drawings, bits, spikes), or
coefficients of windows, where few hold everything (waves).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Floats
from .._validate import Array
from .covariance import Covariance, White
from .repeats import rounding_step
from .windows import Cut, dct_filters, overlapping, relative_frequencies, squared_sine

# Half the widths of the intervals, in standard deviations. They catch 0.20 and 0.38 of the noise. Wider ones leave less
# room for more; narrower ones catch less of data that are equal but for noise.
HALF_WIDTHS = 0.25, 0.5
# What the share may be over that of noise, besides chance. White noise whose level is called 1.3 times too high reaches
# that.
MOST_RATIO = 1.25
# Distances of neighbours. A fine pattern of dots has alike ones at 2 rather than at 1.
LAGS = 1, 2
# Standard errors of a share that are allowed for.
CAUTION = 4.0
# Sides of tapered windows, by the number of axes, and the lowest relative frequency that is read.
BLOCK_SIDES = {1: 128, 2: 32, 3: 16}
MIN_FREQUENCY = 0.125
# Bands of relative frequencies that are also read one by one, and the least power of one over the mean power. Waves
# that fill one band leave others empty. Where there is little noise, spectra are read too high, and it does not matter.
BANDS = 8
MIN_BAND_POWER = 0.25
# Fewest windows, if they did not overlap.
MIN_WINDOWS = 4
# Entries of a crop that is read, at most: more take time and tell the same.
MOST_ENTRIES = 1 << 18


class _Share(NamedTuple):
    """The share that the interval catches, that of noise alone, and the number of independent combinations.

    The first and the last may be arrays, of one entry per set of combinations.
    """

    caught: Any
    noise: float
    size: Any

    @property
    def is_too_large(self) -> bool:
        """Whether the difference is more than margin and chance, in any set."""
        most = min(MOST_RATIO * self.noise, 1.0)
        return bool(np.any(self.caught - most > CAUTION * np.sqrt(most * (1 - most) / np.maximum(self.size, 1))))


def varies_too_little(y: Floats, covariance: Covariance) -> bool:
    """Return whether a signal, image or volume varies less than its noise alone would.

    Parameters
    ----------
    y : ndarray
        The data; NaN marks missing entries.
    covariance : Covariance
        Of the noise. It is refuted if the result is True.

    References
    ----------
    T. W. Anderson, The integral of a symmetric unimodal function over a symmetric convex set and some probability
    inequalities, Proceedings of the American Mathematical Society 6 (1955) 170-176, doi:10.2307/2032333.
    """
    y = y[middle(y.shape)]
    step = rounding_step(y)
    shares = [*_of_windows(y, covariance)]
    if not math.isnan(step):  # values do not repeat at uneven steps
        shares += [s for axis in range(y.ndim) for lag in LAGS for s in _of_differences(y, axis, lag, covariance, step)]
    return any(share.is_too_large for share in shares)


def middle(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the place of a crop of at most MOST_ENTRIES in the middle of data of a shape."""
    side = round(MOST_ENTRIES ** (1 / len(shape)))
    starts = [max(n - side, 0) // 2 for n in shape]
    return tuple(slice(start, min(start + side, n)) for start, n in zip(starts, shape, strict=True))


def _difference_level(ndim: int, axis: int, lag: int, covariance: Covariance) -> float:
    """Return the noise level of differences of neighbours."""
    difference = np.zeros((1, lag + 1))
    difference[0, [0, -1]] = 1.0, -1.0
    filters = [difference if k == axis else np.ones((1, 1)) for k in range(ndim)]
    return math.sqrt(float(covariance.filter_variances(filters).item()))


def _of_differences(y: Floats, axis: int, lag: int, covariance: Covariance, step: float) -> Iterator[_Share]:
    """Yield the shares of small differences of neighbours. Rounding leaves multiples of a step."""
    along = np.moveaxis(y, axis, 0)
    distances = np.abs(along[lag:] - along[:-lag])
    size = distances.size - np.count_nonzero(np.isnan(distances))
    if not size:
        return
    level = kept(_difference_level, covariance)(y.ndim, axis, lag, covariance)
    for half_width in HALF_WIDTHS:
        width = half_width * level
        if step:
            width = (math.floor(width / step) + 0.5) * step
        yield _Share(np.count_nonzero(distances <= width) / size, _normal_share(width / level), size / 1.5)


def _of_windows(y: Floats, covariance: Covariance) -> Iterator[_Share]:
    """Yield the shares of small coefficients of tapered windows, weighted by their variances; none if too few."""
    sides = tuple(min(BLOCK_SIDES[y.ndim], n) for n in y.shape)
    if max(sides) == 1:  # such windows hold no frequency but 0
        return
    cut = overlapping(y, range(y.ndim), sides)
    all_windows = cut.windows(y)
    overlap = max(all_windows.size / y.size, 1.0)
    if all_windows.size < MIN_WINDOWS * overlap * math.prod(sides):
        return
    read = kept(_tapered_windows, covariance)(sides, covariance, y.dtype)
    windows, caught = 0, np.zeros((len(read.limits), read.limits[0].size), np.int64)
    for coefficients in _coefficients(y, cut, read.filters):
        windows += int(np.count_nonzero(~np.isnan(coefficients[:, 0])))
        magnitudes = np.abs(coefficients, out=coefficients)
        for out, limit in zip(caught, read.limits, strict=True):
            out += np.add.reduce(magnitudes <= limit, axis=0, dtype=np.int32)
    if windows < MIN_WINDOWS * overlap:
        return
    # A taper makes neighbouring coefficients depend on each other: about 3/2 per axis count as one.
    independent = windows / overlap / 1.5**y.ndim
    for shares, half_width in zip(caught @ read.chosen.T / windows, HALF_WIDTHS, strict=True):
        yield _Share(shares, _normal_share(half_width), independent * read.effective)


class _TaperedWindows(NamedTuple):
    """Filters of every axis, limits of coefficients by half width, and which coefficients are read together.

    `chosen` holds weights of sum 1 in its rows, `effective` how many coefficients count as much as equal ones.
    """

    filters: list[Floats]
    limits: list[Floats]
    chosen: Array
    effective: Array


def _tapered_windows(sides: tuple[int, ...], covariance: Covariance, dtype: np.dtype[Any]) -> _TaperedWindows:
    """Return what is read in windows of noise."""
    filters = [rows * squared_sine(side) for rows, side in zip(dct_filters(sides), sides, strict=True)]
    variance = covariance.filter_variances(filters).T.ravel()
    limits = [(half_width * np.sqrt(variance)).astype(dtype) for half_width in HALF_WIDTHS]
    frequency = relative_frequencies(sides).T.ravel()
    weight = np.where(frequency >= MIN_FREQUENCY, variance, 0.0)
    chosen = np.stack([weight, *_bands(frequency, weight)])
    chosen /= chosen.sum(axis=1, keepdims=True)
    return _TaperedWindows([rows.astype(dtype) for rows in filters], limits, chosen, 1 / np.square(chosen).sum(axis=1))


def kept(function: Callable[..., Any], covariance: Covariance) -> Callable[..., Any]:
    """Return a function of a covariance that remembers its results, if the covariance is white; else the function."""
    return _remembered(function) if isinstance(covariance, White) else function


@functools.cache
def _remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    return functools.lru_cache(maxsize=32)(function)


def _bands(frequency: Array, weight: Array) -> Iterator[Array]:
    """Yield equal weights of the coefficients of each band of frequencies that holds a fair part of the noise."""
    least = MIN_BAND_POWER * weight[weight > 0].mean()
    for k in range(int(MIN_FREQUENCY * BANDS), BANDS):
        band = (frequency >= k / BANDS) & (frequency < (k + 1) / BANDS) & (weight > 0)
        if band.any() and weight[band].mean() >= least:
            yield band.astype(float)


def _coefficients(y: Floats, cut: Cut, filters: list[Floats]) -> Iterator[Floats]:
    """Yield what separable filters make of windows, (windows, filters), the filters of the first axis side by side.

    Windows that start in the same row come together: they share work, and fit into the cache. A NaN fills its windows.
    """
    first, *others = filters
    if not others:
        yield cut.windows(y) @ first.T
        return
    for start in range(0, len(y) - cut.block[0] + 1, cut.steps[0]):
        out = np.tensordot(y[start : start + cut.block[0]], first, axes=(0, 1))
        for axis, (rows, step) in enumerate(zip(others, cut.steps[1:], strict=True)):
            windows = Cut((axis,), rows.shape[1:], (step,)).windows(out)
            out = (rows @ windows.swapaxes(-1, -2)).reshape(*windows.shape[:-2], -1)
        yield out.reshape(-1, out.shape[-1])


def _normal_share(half_width: float) -> float:
    """Return the share of normal noise within so many standard deviations."""
    return math.erf(half_width / math.sqrt(2))
