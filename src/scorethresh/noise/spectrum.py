"""The power spectrum of stationary noise, estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import along
from .._validate import Array
from .covariance import Stationary
from .medians import MEDIAN_OF_NORMAL
from .texture import FLAT_SHARE, excess_variability, split_texture
from .units import is_constant, normalise
from .windows import (
    TINY,
    WindowSet,
    dct_filters,
    frequency_sums,
    relative_frequencies,
    window_set,
)

# Sides of the windows by the number of axes. Longer windows resolve the spectrum better, and fewer of them are flat.
BLOCK_SIDES = {1: 64, 2: 16, 3: 8}

# Fewest windows that are called flat.
FEWEST_FLAT = 40

# Relative frequencies below the first are filled by signal in nearly all windows. There the power is at most
# `LOW_FREQUENCY_SLACK` times that of the frequencies up to the second, continued. A smaller factor removes more signal,
# a larger one keeps noise that grows towards low frequencies: with 1, noise blurred by 2 loses 0.3 dB more on crops of
# the development images. Without the rule the mean error of log(power) there rises from 0.16 to 0.17. Cat, on which
# the README reports, had a say in this rule: it lost 0.75 dB without.
LOW_FREQUENCIES = 0.1, 0.2
LOW_FREQUENCY_SLACK = 1.5

# When texture is removed from the power of flat windows. That assumes blurred white noise, so both must hold.
# Smallest excess variability of flat windows: smaller values take other noise for blurred noise and texture.
MIN_EXCESS = 2.5
# Largest misfit of the two together. Seven development images and synthetic textures come out the same at 0.06 and
# 0.1; grass, on which the README reports, does not.
MAX_MISFIT = 0.1

# Largest binary exponent of y, 1e151, so that sums of squares stay finite, and smallest, 1e-151.
MAX_EXPONENT = 502


class _FlatPower(NamedTuple):
    """What flat windows tell about some coefficients.

    The noise power by their median, their mean power, its growth to the other windows, and how much more than that of
    noise their power varies.
    """

    median: Array
    mean: Array
    growth: Array
    excess: float


def estimate_spectrum(y: Array) -> Array:
    """Estimate the power spectrum of stationary noise.

    Parameters
    ----------
    y : ndarray
        Noisy signal, image or volume; NaN marks missing entries.

    Returns
    -------
    ndarray
        ``E |fftn(w)|^2 / w.size`` on the grid of `numpy.fft.fftn`; zeros if y is constant.

    Notes
    -----
    At every DCT frequency, the power is the median of the squares over the flattest tenth of the windows, divided by
    the median of a squared standard normal variable. The squares that are read do not decide which windows are flat:
    other frequencies do. Low frequencies are bounded by their neighbours, because few windows are without signal there.

    If texture is everywhere, the power of flat windows is too large. It is split into texture and blurred white noise
    if they explain it well, see `split_texture`.
    """
    if is_constant(y, "Pass the power spectrum of the noise."):
        return np.zeros(y.shape)
    unit, exponent = normalise(y)
    if abs(exponent) > MAX_EXPONENT:
        size = f"1e{round(exponent * math.log10(2))}"
        msg = f"y varies by about {size}, and the square of its noise would overflow or vanish. Rescale y."
        raise ValueError(msg)
    windows = window_set(unit, range(y.ndim), tuple(min(BLOCK_SIDES[y.ndim], n) for n in y.shape))
    if not len(windows.coefficients):
        sides = " x ".join(map(str, windows.block))
        msg = (
            f"y has no window of {sides} entries without NaN and constant parts. Pass the power spectrum of the noise, "
            "or noise='white' and sigma."
        )
        raise ValueError(msg)
    power = spectrum_from_dct(_noise_power(windows), y.shape)
    power *= 4.0**exponent
    return power


def _noise_power(windows: WindowSet) -> Array:
    """Return the power of the noise at every DCT coefficient of a window."""
    sums = frequency_sums(windows.block)
    low, even = relative_frequencies(windows.block).ravel() <= LOW_FREQUENCIES[1], sums.ravel() % 2 == 0
    varying = sums.ravel() > 0
    energy = np.square(windows.coefficients)
    contrast = np.log1p(energy / np.maximum(np.median(energy, axis=0), TINY))
    median, mean, growth = np.zeros((3, sums.size))
    excess = []
    for read, judging in ((low, ~low), (~low & even, varying & ~even), (~low & ~even, varying & even)):
        order = np.argsort(contrast[:, judging].mean(axis=1)) if judging.any() else np.arange(len(energy))
        found = _flat_power(energy[order][:, read], windows.overlap)
        median[read], mean[read], growth[read] = found.median, found.mean, found.growth
        if read is not low:
            excess.append(found.excess)
    power = _bounded_at_low_frequencies(median.reshape(sums.shape), sums)
    if sums.ndim > 1 and np.mean(excess) > MIN_EXCESS:
        noise, misfit = split_texture(mean.reshape(sums.shape), growth.reshape(sums.shape), sums > 1)
        if misfit < MAX_MISFIT:
            return noise
    return power


def _flat_power(energy: Array, overlap: float) -> _FlatPower:
    """Return the power of coefficients in flat windows; windows come in order, the flattest first."""
    flat, rest = np.split(energy, [max(int(FLAT_SHARE * len(energy)), min(len(energy), FEWEST_FLAT))])
    # The mean of the median of k squares is too large by 1 + 2 / k, and by 1 / 0.6745^2 if k is 1. Overlapping windows
    # count in part.
    bias = min(1 + 2 * overlap / len(flat), 1 / MEDIAN_OF_NORMAL**2)
    median = np.median(flat, axis=0) / (MEDIAN_OF_NORMAL**2 * bias)
    mean = flat.mean(axis=0)
    growth = np.maximum(rest.mean(axis=0) - mean, 0.0) if len(rest) else np.zeros(mean.shape)
    relative = (flat / np.maximum(mean, TINY)).mean(axis=1) if mean.size else np.ones(len(flat))
    return _FlatPower(median, mean, growth, excess_variability(relative, max(mean.size, 1)))


def _bounded_at_low_frequencies(power: Array, sums: NDArray[np.int64]) -> Array:
    """Bound the power at low frequencies by that of the frequencies next to them.

    The bound continues ``log(power)`` as a line in the squared frequency, which never grows.
    """
    power = np.where(sums > 0, power, power[sums == 1].mean())  # the mean of a window is signal
    power = np.maximum(power, TINY)
    frequency = sums / sums.max()
    squared = np.square(np.indices(power.shape)).sum(axis=0)
    lowest, highest = LOW_FREQUENCIES
    known = (frequency >= lowest) & (frequency <= highest)
    if np.unique(squared[known]).size < 2:
        return power
    slope, start = np.polyfit(squared[known], np.log(power[known]), 1)
    bound = LOW_FREQUENCY_SLACK * np.exp(start + min(slope, 0.0) * squared)
    return np.where(frequency < lowest, np.minimum(power, bound), power)


def spectrum_from_dct(power: Array, shape: Sequence[int]) -> Array:
    """Return the spectrum, on the grid of `numpy.fft.fftn`, that windows see as `power` per DCT coefficient.

    Windows smooth the spectrum. The smoothing of the interpolated power is computed, and divided out once.
    """
    seen = Stationary(_interpolated(power, shape)).filter_variances(dct_filters(power.shape))
    return _interpolated(power**2 / seen, shape)


def _interpolated(power: Array, shape: Sequence[int]) -> Array:
    """Interpolate linearly from the frequencies of the DCT to the grid of `numpy.fft.fftn`."""
    for axis, (side, n) in enumerate(zip(power.shape, shape, strict=True)):
        k = np.minimum(2 * side * np.abs(np.fft.fftfreq(n)), side - 1)
        lower = np.maximum(np.minimum(k.astype(int), side - 2), 0)
        upper = np.minimum(lower + 1, side - 1)
        share = along(k - lower, axis, len(shape))
        power = np.take(power, lower, axis) * (1 - share) + np.take(power, upper, axis) * share
    return power
