"""Whether data vary less than their noise alone would: then the noise model is wrong.

Whatever the signal is, adding noise to it spreads the data. A symmetric interval catches no larger share of a linear
combination of entries than it catches of the noise alone. So a noise model that says more than the data show is
refuted, by any linear combination: differences of neighbours, where many are equal (drawings, bits, spikes), or
coefficients of windows, where few hold everything (waves).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, cropped
from .._validate import Array
from .covariance import Covariance, White
from .repeats import rounding_steps
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

    All have one row per sample; the first and the last one column per set of combinations.
    """

    caught: Array
    noise: Array
    size: Array

    @property
    def is_too_large(self) -> NDArray[np.bool_]:
        """Whether the difference is more than margin and chance, in any set of a sample."""
        most = np.minimum(MOST_RATIO * self.noise, 1.0)
        beyond = self.caught - most > CAUTION * np.sqrt(most * (1 - most) / np.maximum(self.size, 1))
        out: NDArray[np.bool_] = beyond.any(axis=1)
        return out


def varies_too_little(y: Floats, covariance: Covariance) -> bool:
    """Return whether a signal, image or volume varies less than its noise alone would; see `vary_too_little`."""
    return bool(vary_too_little(y[None], covariance)[0])


def vary_too_little(y: Floats, covariance: Covariance) -> NDArray[np.bool_]:
    """Return which of some signals, images or volumes vary less than their noise alone would.

    Parameters
    ----------
    y : ndarray
        The data, (samples, *shape); NaN marks missing entries.
    covariance : Covariance
        Of the noise. It is refuted where the result is True.

    References
    ----------
    T. W. Anderson, The integral of a symmetric unimodal function over a symmetric convex set and some probability
    inequalities, Proceedings of the American Mathematical Society 6 (1955) 170-176, doi:10.2307/2032333.
    """
    y = cropped(y, middle(y.shape[1:]))
    found = np.zeros(len(y), bool)
    for share in _of_windows(y, covariance):
        found |= share.is_too_large
    steps = rounding_steps(y)
    even = ~np.isnan(steps)  # where values do not repeat at uneven steps
    if even.any():
        some, steps = (y, steps) if even.all() else (y[even], steps[even])
        for axis, lag in itertools.product(range(y.ndim - 1), LAGS):
            for share in _of_differences(some, axis, lag, covariance, steps):
                found[even] |= share.is_too_large
    return found


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


def _of_differences(y: Floats, axis: int, lag: int, covariance: Covariance, steps: Array) -> Iterator[_Share]:
    """Yield the shares of small differences of neighbours. Rounding leaves multiples of a step of every sample."""
    along = np.moveaxis(y, axis + 1, 1)
    distances = np.abs(along[:, lag:] - along[:, :-lag]).reshape(len(y), -1)
    sizes = distances.shape[1] - np.count_nonzero(np.isnan(distances), axis=1)
    level = kept(_difference_level, covariance)(y.ndim - 1, axis, lag, covariance)
    for half_width in HALF_WIDTHS:
        widths = np.full(len(y), half_width * level)
        rounded = steps > 0
        widths[rounded] = (np.floor(widths[rounded] / steps[rounded]) + 0.5) * steps[rounded]
        caught = np.count_nonzero(distances <= widths[:, None], axis=1) / np.maximum(sizes, 1)
        noise = np.array([_normal_share(width / level) for width in widths])
        yield _Share(caught[:, None], noise[:, None], sizes[:, None] / 1.5)


def _of_windows(y: Floats, covariance: Covariance) -> Iterator[_Share]:
    """Yield the shares of small coefficients of tapered windows, weighted by their variances; none if too few."""
    shape = y.shape[1:]
    sides = tuple(min(BLOCK_SIDES[len(shape)], n) for n in shape)
    if max(sides) == 1:  # such windows hold no frequency but 0
        return
    cut = overlapping(y[0], range(len(shape)), sides)
    size = cut.windows(y[0]).size
    overlap = max(size / math.prod(shape), 1.0)
    if size < MIN_WINDOWS * overlap * math.prod(sides):
        return
    read = kept(_tapered_windows, covariance)(sides, covariance, y.dtype)
    windows = np.zeros(len(y), np.int64)
    caught = np.zeros((len(read.limits), len(y), read.limits[0].size), np.int64)
    for coefficients in _coefficients(y, cut, read.filters):
        windows += np.count_nonzero(~np.isnan(coefficients[..., 0]), axis=1)
        magnitudes = np.abs(coefficients, out=coefficients)
        for out, limit in zip(caught, read.limits, strict=True):
            out += np.add.reduce(magnitudes <= limit, axis=1, dtype=np.int32)
    enough = windows >= MIN_WINDOWS * overlap
    # A taper makes neighbouring coefficients depend on each other: about 3/2 per axis count as one.
    independent = windows / overlap / 1.5 ** len(shape)
    for sums, half_width in zip(caught @ read.chosen.T, HALF_WIDTHS, strict=True):
        shares = np.where(enough[:, None], sums / np.maximum(windows, 1)[:, None], 0.0)
        noise = np.full((len(y), 1), _normal_share(half_width))
        yield _Share(shares, noise, independent[:, None] * read.effective)


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
    """Yield what separable filters make of windows, (samples, windows, filters), the filters of the first axis side by
    side.

    Windows that start in the same row come together: they share work, and fit into the cache. A NaN fills its windows.
    """
    first, *others = filters
    if not others:
        windows = Cut((1,), cut.block, cut.steps).windows(y)
        yield (windows.reshape(-1, windows.shape[-1]) @ first.T).reshape(*windows.shape[:2], -1)
        return
    for start in range(0, y.shape[1] - cut.block[0] + 1, cut.steps[0]):
        out = np.tensordot(y[:, start : start + cut.block[0]], first, axes=(1, 1))
        for axis, (rows, step) in enumerate(zip(others, cut.steps[1:], strict=True), 1):
            windows = Cut((axis,), rows.shape[1:], (step,)).windows(out)
            out = (rows @ windows.swapaxes(-1, -2)).reshape(*windows.shape[:-2], -1)
        yield out.reshape(len(y), -1, out.shape[-1])


def _normal_share(half_width: float) -> float:
    """Return the share of normal noise within so many standard deviations."""
    return math.erf(half_width / math.sqrt(2))
