"""The power spectrum of stationary noise, estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._arrays import along
from .._validate import Array
from .covariance import Stationary
from .windows import (
    MAX_WINDOW_ENTRIES,
    MEDIAN_OF_NORMAL,
    dct_matrix,
    dct_of_windows,
    is_discrete,
    usable_windows,
    variability,
)

# Spectra: frequencies below the first part of the largest are where signal is nearly everywhere; those from there up to
# the second part tell how much noise there may be below.
_LOW = 0.1, 0.2

# Spectra under texture: how much more than that of noise the power of flat windows has to vary from one to the next;
# widths of the blur that the noise may have; how far, in mean square, the power may be from what such noise and texture
# make, over how much it varies, up to a limit; and between which parts of it the noise may then be.
_UNEVEN = 2.5
_WIDTHS = np.array([0.0, *np.geomspace(0.15, 3.0, 25)])
_MISFIT, _PARTS = (0.025, 0.1), (0.125, 0.8)


def estimate_spectrum(y: Array) -> Array:
    """Return the power spectrum of stationary noise, on the grid of `numpy.fft.fftn`. NaN marks missing entries.

    At every frequency it is the median of the squared DCT coefficients in the flattest tenth of all windows: flat by
    other frequencies of theirs, and by the same ones two windows away, where the noise is another. The lowest, where
    hardly a window is without signal, may not exceed the others, continued, by much. Where texture is everywhere, that
    is too much: if flat windows differ by more than noise would, and their power is well explained by texture and white
    noise that was blurred, the latter is returned.
    """
    if max(y.shape) < 4:
        msg = f"y is too small to tell noise from signal, with shape {y.shape}. Pass the power spectrum of the noise."
        raise ValueError(msg)
    if np.nanmin(y) == np.nanmax(y):
        return np.zeros(y.shape)
    block = [min({1: 64, 2: 16, 3: 8}[y.ndim], n) for n in y.shape]
    least = math.ceil((y.size * math.prod(block) / MAX_WINDOW_ENTRIES) ** (1 / y.ndim))
    steps = [max(b // 2, least) for b in block]
    view = np.lib.stride_tricks.sliding_window_view(y, block)[tuple(slice(None, None, s) for s in steps)]
    grid, view = view.shape[: y.ndim], view.reshape(-1, *block)
    whole = np.flatnonzero(usable_windows(view, is_discrete(y)))
    if not whole.size:
        sides = " x ".join(map(str, block))
        msg = (
            f"y has no window of {sides} entries without NaN and constant parts. Pass the power spectrum of the noise, "
            "or noise='white' and sigma."
        )
        raise ValueError(msg)
    coefficients, order = dct_of_windows(view)
    energy = coefficients**2
    usual = np.median(energy[whole], axis=0)
    contrast = np.log1p(energy / np.maximum(usual, np.finfo(float).tiny))
    height, even, varies = order / order.max(), order % 2 == 0, order > 0
    low = height <= _LOW[1]
    away = [math.ceil(2 * b / s) for b, s in zip(block, steps, strict=True)]
    # How far windows are independent, for they overlap.
    shares = [min(((g - 1) * s + b) / (g * b), 1.0) for g, s, b in zip(grid, steps, block, strict=True)]
    (power, quiet, growth), uneven = np.zeros((3, *block)), 0.0
    for read, others in ((low, ~low), (~low & even, varies & ~even), (~low & ~even, varies & even)):
        score = contrast[:, others].mean(axis=1)
        if (read & varies).any():
            same = contrast[:, read & varies].mean(axis=1).reshape(grid)
            score += _around(same, away).ravel()
        flat, rest = np.split(whole[np.argsort(score[whole])], [max(whole.size // 10, min(whole.size, 32))])
        # The median of few squares is too large in the mean.
        count = flat.size * math.prod(shares) ** 0.8
        seen = energy[flat][:, read]
        power[read] = np.median(seen, axis=0) / (MEDIAN_OF_NORMAL**2 * min(1 + 2 / count, 2.2))
        quiet[read] = seen.mean(axis=0)
        if read is not low:
            relative = seen / np.maximum(quiet[read], np.finfo(float).tiny)
            uneven += variability(relative.mean(axis=1), seen.shape[1]) / 2
        if rest.size:
            growth[read] = np.maximum(energy[rest][:, read].mean(axis=0) - quiet[read], 0.0)
    power[~varies] = power[order == 1].mean()  # the mean of a window is signal
    power = np.maximum(power, np.finfo(float).tiny)
    square = (np.indices(block) ** 2).sum(axis=0)
    known = (height >= _LOW[0]) & low
    if np.unique(square[known]).size > 1:
        slope, start = np.polyfit(square[known], np.log(power[known]), 1)
        most = 1.5 * np.exp(start + min(slope, 0.0) * square)
        power = np.where(height < _LOW[0], np.minimum(power, most), power)
    if y.ndim > 1 and uneven > _UNEVEN:
        blurred, misfit = _under_texture(quiet, growth, order > 1)
        if misfit < min(_MISFIT[0] * uneven, _MISFIT[1]) and _PARTS[0] < blurred.mean() / power.mean() < _PARTS[1]:
            power = blurred
    return spectrum_from_dct(power, y.shape)


def _under_texture(quiet: Array, growth: Array, used: NDArray[np.bool_]) -> tuple[Array, float]:
    """Return the power of blurred white noise that, with texture, best explains that of flat windows, and the misfit.

    The power of texture in flat windows is taken to be in proportion to its growth from there to others.
    """
    frequencies = np.meshgrid(*(np.arange(n) * (math.pi / n) for n in quiet.shape), indexing="ij")
    shapes = np.exp(-np.multiply.outer(_WIDTHS**2, np.square(frequencies).sum(axis=0)))
    scale = np.maximum(quiet[used], np.finfo(float).tiny)
    noise, texture = shapes[:, used] / scale, growth[used] / scale
    # Least squares of 1 = level * noise + times * texture, neither of the two negative, at every width.
    nn, nt, tt = (noise**2).sum(axis=1), noise @ texture, texture @ texture
    n, t = noise.sum(axis=1), texture.sum()
    times = np.maximum((nn * t - nt * n) / np.maximum(nn * tt - nt**2, np.finfo(float).tiny), 0.0)
    level = np.maximum((n - nt * times) / nn, 0.0)
    misfit = ((1 - level[:, None] * noise - times[:, None] * texture) ** 2).mean(axis=1)
    best = int(np.argmin(misfit))
    return level[best] * shapes[best], float(misfit[best])


def _around(values: Array, steps: Sequence[int]) -> Array:
    """Return the mean of the values so many steps away, on both sides along every axis; NaN counts as the largest."""
    values = np.where(np.isnan(values), np.nanmax(values), values)
    out, count = np.zeros(values.shape), 0
    for axis, step in enumerate(steps):
        n = values.shape[axis]
        if n > step:
            near, far = np.arange(n) - step, np.arange(n) + step
            for at in (np.where(near < 0, far, near), np.where(far >= n, near, far)):
                out += np.take(values, np.clip(at, 0, n - 1), axis)
                count += 1
    return out / max(count, 1)


def spectrum_from_dct(power: Array, shape: Sequence[int]) -> Array:
    """Return the spectrum, on the grid of `numpy.fft.fftn`, of which the DCT of windows sees this power.

    Windows see it smoothed; what that takes from the power, put on the grid, is given back, once.
    """
    seen = Stationary(_between(power, shape)).filter_variances([dct_matrix(b) for b in power.shape])
    return _between(power * np.clip(power / seen, 0.5, 2.0), shape)


def _between(power: Array, shape: Sequence[int]) -> Array:
    """Return a spectrum that is known at the frequencies of the DCT on the grid of `numpy.fft.fftn`."""
    for axis, (block, n) in enumerate(zip(power.shape, shape, strict=True)):
        k = np.minimum(2 * block * np.abs(np.fft.fftfreq(n)), block - 1)
        low = np.maximum(np.minimum(k.astype(int), block - 2), 0)
        share = along(k - low, axis, len(shape))
        power = np.take(power, low, axis) * (1 - share) + np.take(power, np.minimum(low + 1, block - 1), axis) * share
    return power
