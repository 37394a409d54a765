"""The power spectrum of stationary noise, estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import along
from .._validate import Array
from .covariance import Stationary
from .texture import FLAT_SHARE, excess_variability, split_texture
from .windows import (
    MEDIAN_OF_NORMAL,
    dct_filters,
    dct_of_windows,
    frequency_sums,
    is_constant,
    normalise,
    overlapping,
    relative_frequencies,
    usable_windows,
)

# Entries along the longest axis below which nothing tells noise from signal.
MIN_LENGTH = 4
# Sides of the windows by the number of axes. Longer windows resolve the spectrum better, and fewer of them are flat.
BLOCK_SIDES = {1: 64, 2: 16, 3: 8}
# Fewest flat windows, if there are as many: fewer make the median too noisy.
MIN_FLAT_WINDOWS = 32
# How windows that overlap count: their number times this power of the share that would not overlap. On white noise of
# nine shapes, 64 entries to 100 x 100, the mean power is 0.92 to 1.09 times the truth, with 1 instead 0.92 to 1.05; but
# with 1, large data come out too low, which costs more than too high.
OVERLAP_EXPONENT = 0.8

# Relative frequencies below the first are filled by signal in nearly all windows. There the power is at most
# `LOW_FREQUENCY_SLACK` times that of the frequencies up to the second, continued. A smaller factor removes more signal,
# a larger one keeps noise that grows towards low frequencies. Cat, on which the README reports, had a say in this rule.
LOW_FREQUENCIES = 0.1, 0.2
LOW_FREQUENCY_SLACK = 1.5

# When texture is removed from the power of flat windows. That assumes blurred white noise, so all three must hold.
# Smallest excess variability of flat windows: smaller values take other noise for blurred noise and texture.
MIN_EXCESS = 2.5
# Largest misfit of the two together. Seven development images and synthetic textures come out the same at 0.06 and
# 0.1; grass, on which the README reports, does not.
MAX_MISFIT = 0.1
# Range of the noise's share of the power. Below, the fit is a matter of chance, and power that is too low costs more
# than power that is too high; above, there is little to remove.
NOISE_SHARE = 0.125, 0.8

# Largest binary exponent of y, 1e151, so that sums of squares stay finite, and smallest, 1e-151.
MAX_EXPONENT = 502

# Range of the factor by which `spectrum_from_dct` undoes the smoothing by windows, so that steep spectra stay positive.
SMOOTHING_FACTORS = 0.5, 2.0

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class _WindowEnergy:
    """Squared DCT coefficients of all windows, (windows, *block), and the indices of usable ones.

    Windows lie on a `grid`, `steps` entries apart.
    """

    energy: Array
    usable: NDArray[np.int64]
    grid: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def block(self) -> tuple[int, ...]:
        """The shape of a window."""
        return self.energy.shape[1:]


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
    other frequencies of the window do, and the same frequencies of windows that are two windows away, whose noise is
    nearly independent. Low frequencies are bounded by their neighbours, because few windows are without signal there.

    If texture is everywhere, the power of flat windows is too large. It is split into texture and blurred white noise
    if they explain it well, see `split_texture`.
    """
    if max(y.shape) < MIN_LENGTH:
        msg = f"y is too small to tell noise from signal, with shape {y.shape}. Pass the power spectrum of the noise."
        raise ValueError(msg)
    if is_constant(y):
        return np.zeros(y.shape)
    unit, exponent = normalise(y)
    if abs(exponent) > MAX_EXPONENT:
        size = f"1e{round(exponent * math.log10(2))}"
        msg = f"y varies by about {size}, and the square of its noise would overflow or vanish. Rescale y."
        raise ValueError(msg)
    power = spectrum_from_dct(_noise_power(_window_energy(unit)), y.shape)
    power *= 4.0**exponent
    return power


def _window_energy(y: Array) -> _WindowEnergy:
    """Cut windows that overlap by half, or fewer if y is large; raise ValueError if none is usable."""
    block = tuple(min(BLOCK_SIDES[y.ndim], n) for n in y.shape)
    cut = overlapping(y, range(y.ndim), block)
    view = cut.windows(y)
    windows = view.reshape(-1, *block)
    usable = np.flatnonzero(usable_windows(y, cut))
    if not usable.size:
        sides = " x ".join(map(str, block))
        msg = (
            f"y has no window of {sides} entries without NaN and constant parts. Pass the power spectrum of the noise, "
            "or noise='white' and sigma."
        )
        raise ValueError(msg)
    return _WindowEnergy(np.square(dct_of_windows(windows)), usable, view.shape[: y.ndim], cut.steps)


def _noise_power(windows: _WindowEnergy) -> Array:
    """Return the power of the noise at every DCT coefficient of a window."""
    sums = frequency_sums(windows.block)
    low, even, varying = relative_frequencies(windows.block) <= LOW_FREQUENCIES[1], sums % 2 == 0, sums > 0
    typical = np.median(windows.energy[windows.usable], axis=0)
    contrast = np.log1p(windows.energy / np.maximum(typical, _TINY))
    median, mean, growth = np.zeros((3, *windows.block))
    excess = []
    for read, judging in ((low, ~low), (~low & even, varying & ~even), (~low & ~even, varying & even)):
        score = contrast[:, judging].mean(axis=1)
        if (read & varying).any():
            score += _mean_two_windows_away(contrast[:, read & varying].mean(axis=1), windows)
        found = _flat_power(windows, read, score)
        median[read], mean[read], growth[read] = found.median, found.mean, found.growth
        if read is not low:
            excess.append(found.excess)
    power = _bounded_at_low_frequencies(median, sums)
    if len(windows.block) > 1 and np.mean(excess) > MIN_EXCESS:
        noise, misfit = split_texture(mean, growth, sums > 1)
        if misfit < MAX_MISFIT and NOISE_SHARE[0] < noise.mean() / power.mean() < NOISE_SHARE[1]:
            return noise
    return power


def _flat_power(windows: _WindowEnergy, read: NDArray[np.bool_], score: Array) -> _FlatPower:
    """Return the power of coefficients `read` in the windows with the lowest score."""
    usable = windows.usable
    count = max(int(FLAT_SHARE * usable.size), min(usable.size, MIN_FLAT_WINDOWS))
    flat, rest = np.split(usable[np.argsort(score[usable])], [count])
    # Windows overlap: along an axis, this share of them would cover the data without overlap.
    shares = [
        min(((n - 1) * step + side) / (n * side), 1.0)
        for n, step, side in zip(windows.grid, windows.steps, windows.block, strict=True)
    ]
    independent = flat.size * math.prod(shares) ** OVERLAP_EXPONENT
    energy = windows.energy[flat][:, read]
    # The mean of the median of k squares is too large by 1 + 2 / k, and by 1 / 0.6745^2 if k is 1.
    bias = min(1 + 2 / independent, 1 / MEDIAN_OF_NORMAL**2)
    median = np.median(energy, axis=0) / (MEDIAN_OF_NORMAL**2 * bias)
    mean = energy.mean(axis=0)
    growth = np.maximum(windows.energy[rest][:, read].mean(axis=0) - mean, 0.0) if rest.size else np.zeros(mean.shape)
    relative = (energy / np.maximum(mean, _TINY)).mean(axis=1)
    return _FlatPower(median, mean, growth, excess_variability(relative, mean.size) if mean.size else 1.0)


def _bounded_at_low_frequencies(power: Array, sums: NDArray[np.int64]) -> Array:
    """Bound the power at low frequencies by that of the frequencies next to them.

    The bound continues ``log(power)`` as a line in the squared frequency, which never grows.
    """
    power = np.where(sums > 0, power, power[sums == 1].mean())  # the mean of a window is signal
    power = np.maximum(power, _TINY)
    frequency = sums / sums.max()
    squared = np.square(np.indices(power.shape)).sum(axis=0)
    lowest, highest = LOW_FREQUENCIES
    known = (frequency >= lowest) & (frequency <= highest)
    if np.unique(squared[known]).size < 2:
        return power
    slope, start = np.polyfit(squared[known], np.log(power[known]), 1)
    bound = LOW_FREQUENCY_SLACK * np.exp(start + min(slope, 0.0) * squared)
    return np.where(frequency < lowest, np.minimum(power, bound), power)


def _mean_two_windows_away(values: Array, windows: _WindowEnergy) -> Array:
    """Return the mean of the values of the windows two sides away, on both sides along every axis.

    At the border both are taken from the inner side. NaN counts as the largest value.
    """
    values = np.where(np.isnan(values), np.nanmax(values), values).reshape(windows.grid)
    out, count = np.zeros(values.shape), 0
    for axis, (side, step) in enumerate(zip(windows.block, windows.steps, strict=True)):
        n, distance = values.shape[axis], math.ceil(2 * side / step)
        if n > distance:
            before, after = np.arange(n) - distance, np.arange(n) + distance
            for index in (np.where(before < 0, after, before), np.where(after >= n, before, after)):
                out += np.take(values, np.clip(index, 0, n - 1), axis)
                count += 1
    return out.ravel() / max(count, 1)


def spectrum_from_dct(power: Array, shape: Sequence[int]) -> Array:
    """Return the spectrum, on the grid of `numpy.fft.fftn`, that windows see as `power` per DCT coefficient.

    Windows smooth the spectrum. The smoothing of the interpolated power is computed, and divided out once.
    """
    seen = Stationary(_interpolated(power, shape)).filter_variances(dct_filters(power.shape))
    return _interpolated(power * np.clip(power / seen, *SMOOTHING_FACTORS), shape)


def _interpolated(power: Array, shape: Sequence[int]) -> Array:
    """Interpolate linearly from the frequencies of the DCT to the grid of `numpy.fft.fftn`."""
    for axis, (side, n) in enumerate(zip(power.shape, shape, strict=True)):
        k = np.minimum(2 * side * np.abs(np.fft.fftfreq(n)), side - 1)
        lower = np.maximum(np.minimum(k.astype(int), side - 2), 0)
        upper = np.minimum(lower + 1, side - 1)
        share = along(k - lower, axis, len(shape))
        power = np.take(power, lower, axis) * (1 - share) + np.take(power, upper, axis) * share
    return power
