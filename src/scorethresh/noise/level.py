"""The noise in data: its level or its spectrum, estimated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._validate import Array
from .clipping import find_clip_limits
from .windows import MAX_WINDOW_ENTRIES, MEDIAN_OF_NORMAL, dct_of_windows, is_discrete, usable_windows, variability

__all__ = ["estimate_sigma"]

# Daubechies' high-pass filter of four taps: unit energy, and blind to constants and slopes.
_HIGH_PASS = np.array([1 - 3**0.5, -(3 - 3**0.5), 3 + 3**0.5, -(1 + 3**0.5)]) / 32**0.5

# Whether a transform is needed.
_DOMAINS = {"coefficients": False, "samples": True}

# By the number of long axes: windows, as entries along each, and which of their coefficients are looked at, as the part
# of the windows (the flattest) and the least sum of frequencies, over the largest.
_READINGS: dict[int, dict[int, list[tuple[float, float]]]] = {
    1: {block: [(1.0, 0.1), (1.0, 0.5)] for block in (16, 32, 128, 512)},
    2: {8: [(0.2, 0.7), (0.05, 0.7), (0.05, 0.85), (0.02, 0.85)]},
    3: {4: [(0.2, 0.7), (0.05, 0.7), (0.05, 0.85), (0.02, 0.85)]},
}
# Where no window is flat: bands of middle frequencies, and the least of the high ones, over the largest sum. The first
# pair tells texture from noise more sharply, in the second the two grow and fall together more nearly.
_PAIRS = [((0.2, 0.65), 0.75), ((0.6, 0.8), 0.85)]
# The part of the windows that are the flat ones, the least part of the power in them that may be noise, and how many
# times their standard deviation the power of texture may be there.
_FLAT, _NOISE, _TEXTURE = 0.1, 0.35, 1.5

# How many windows are too few.
_FEW = {1: 25, 2: 300, 3: 300}
# Details that differ from 0 in so small a part of the data are signal.
_RARE = 0.05


def estimate_sigma(y: Any, *, domain: str | None = None) -> float:
    """Estimate the standard deviation of white noise, robustly against the signal under it.

    Parameters
    ----------
    y : array_like
        Noisy coefficients, or a noisy signal, image or volume.
    domain : {"coefficients", "samples"}, optional
        ``"coefficients"``: most entries are noise around zero, and the estimate is the median of ``|y|`` over 0.6745.
        ``"samples"``: median magnitudes of high frequencies are read in windows and the lowest is taken, unless it
        is so by chance. In images and volumes (8 by 8, 4 by 4 by 4) they are read in the flattest fifth of the
        windows and in fewer, flat by their low frequencies, which say nothing about the noise in the high ones; in
        signals in all windows, tapered, of 16 to 512 entries, long ones being best for oscillations. Where texture is
        everywhere, images and volumes are also read where it would vanish: from flat windows to others its power grows
        at high frequencies as at middle ones, in which white noise is alike. Windows with
        constant parts, and those near the end of a range that cuts noise off, are left out. Arrays too small for
        windows are judged by their finest wavelet band. By default a vector is taken to hold coefficients, an array
        of two or more dimensions samples: for a one-dimensional signal say ``domain="samples"``.

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
    sigma = sample_level(y) if _validate.choice("domain", domain, _DOMAINS) else _mad(y)
    if not sigma > 0:
        msg = (
            "the noise level of y comes out as 0: at least half of the entries looked at are 0. Pass sigma, or "
            "leave constant regions out of y."
        )
        raise ValueError(msg)
    return sigma


def _mad(y: Array) -> float:
    return float(np.median(np.abs(y))) / MEDIAN_OF_NORMAL if y.size else 0.0


def sample_level(y: Array) -> float:
    """Return the noise level of a signal, image or volume; 0 if it is constant. NaN marks missing entries."""
    if max(y.shape) < _HIGH_PASS.size:
        msg = f"y is too small to tell noise from signal, with shape {y.shape}. Pass sigma."
        raise ValueError(msg)
    low, high = float(np.nanmin(y)), float(np.nanmax(y))
    if low == high:
        return 0.0
    unit = (y - low) / (high - low)
    spectra = list(_spectra(unit))
    level = _lowest(spectra, [], 0.0)
    # Where the range of a device ends, noise is cut off. Windows near it are told by their means: to leave out those
    # that reach the end would leave those in which there is little noise.
    ends = [end for end in find_clip_limits(unit) if math.isfinite(end)]
    if level is not None:
        farther = (_lowest(spectra, ends, times * level) for times in (3, 2, 1) if ends)
        return next(filter(None, farther), level) * (high - low)
    detail = y
    for axis in range(y.ndim):
        if y.shape[axis] >= _HIGH_PASS.size:
            detail = _detail(detail, axis)
    values = detail[~np.isnan(detail)]
    if values.size < min(_FEW[1], detail.size):  # gaps nearly everywhere
        steps = [np.diff(y, axis=axis).ravel() / math.sqrt(2) for axis in range(y.ndim)]
        values = np.concatenate([step[~np.isnan(step)] for step in steps])
    if not values.size:
        msg = f"y has no two entries side by side, with shape {y.shape}, that are known. Pass sigma."
        raise ValueError(msg)
    noisy = values[values != 0]
    return _mad(noisy) if noisy.size >= _RARE * values.size else 0.0


def _lowest(spectra: Sequence[_Spectra], ends: Sequence[float], margin: float) -> float | None:
    """Return the lowest reading of windows whose means are farther than a margin from the ends of a range."""
    readings = [reading for some in spectra for reading in some.readings(ends, margin)]
    # All are too large where they meet signal: the lowest is best, unless it is so by chance.
    return min(readings, key=lambda r: r[0] * (1 + 2 / math.sqrt(r[1])))[0] if readings else None


@dataclass(frozen=True, eq=False)
class _Spectra:
    """Windows of one size: their means, their DCT, and the entries of the data that there are per window."""

    middle: Array
    coefficients: Array
    order: NDArray[np.int64]
    entries: int

    def readings(self, ends: Sequence[float], margin: float) -> Iterator[tuple[float, float]]:
        """Yield noise levels, each with the number of independent entries behind it."""
        free = np.all([np.abs(self.middle - end) > margin for end in ends], axis=0) if ends else slice(None)
        coefficients, height = self.coefficients[free], self.order / self.order.max()
        few = _FEW[self.order.ndim]
        if len(coefficients) < few:
            return
        flatness = (coefficients[:, (height > 0) & (height <= 0.45)] ** 2).sum(axis=1)
        ranked = np.argsort(flatness)
        for part, lowest in _READINGS[self.order.ndim][len(self.order)]:
            flat = ranked[: max(int(part * len(coefficients)), few)]
            values = coefficients[flat][:, height >= lowest]
            count = min(values.size, len(flat) * self.entries * np.mean(height >= lowest))
            # The lowest of the many readings of a signal is too low in the mean, by so much on white noise.
            yield _mad(values) * (1 + 0.4 / math.sqrt(count) if self.order.ndim == 1 else 1.0), count
        if self.order.ndim > 1 and _FLAT * len(coefficients) >= few:
            yield from self._without_texture(coefficients.reshape(len(coefficients), -1))

    def _without_texture(self, coefficients: Array) -> Iterator[tuple[float, float]]:
        """Yield noise levels, each with the number of entries that would tell as much, where texture is everywhere.

        From flat windows to others the power of texture grows, at middle frequencies and at high ones in proportion,
        and that of white noise is the same at both: it is where the line through the two means meets the diagonal.
        Windows are told by other frequencies, for these would favour those in which there is little noise. Fringes and
        what is out of focus have middle frequencies only, everywhere: how much texture there may be at high ones is
        told by how flat windows differ in them.
        """
        order, magnitude, energy = self.order.ravel(), np.abs(coefficients), coefficients**2
        height, usual = order / order.max(), np.sqrt(energy.mean(axis=0)) + np.finfo(float).tiny
        few, parities = int(_FLAT * len(energy)), [order % 2 == parity for parity in (0, 1)]
        tells = [(told & (height > 0) & (height < _PAIRS[0][1])) / usual for told in parities]
        ranks = [np.argsort(magnitude @ weights) for weights in tells]
        for (lowest, highest), high in _PAIRS:
            top, each = energy[:, height >= high].mean(axis=1), int(np.sum(height >= high))
            uneven = min(variability(top[ranked[:few]], each) for ranked in ranks)
            least = max(1 - _TEXTURE * math.sqrt(max(uneven - 1, 0.0) * 2 / each), _NOISE)
            for told, ranked in zip(parities, ranks, strict=True):
                middle = energy[:, ~told & (height > lowest) & (height < highest)].mean(axis=1)
                flat, rest = np.split(np.array([middle, top])[:, ranked], [few], axis=1)
                (m, h), (more, higher) = (group.mean(axis=1).tolist() for group in (flat, rest))
                away = (more - higher) - (m - h)
                if away <= 0:
                    continue
                noise = (h * more - m * higher) / away
                variances = [values.var() / values.size for values in (*flat, *rest)]
                slopes = np.array([higher - noise, more - noise, h - noise, m - noise]) / away
                variance = float(slopes**2 @ variances) * self.order.size / self.entries
                noise = max(noise, least * h)
                if noise**2 > 0:  # 8, so that 2 / sqrt(count) is 1.4 standard errors of the level
                    yield math.sqrt(noise), 8 * noise**2 / max(variance, np.finfo(float).tiny)


def _spectra(y: Array) -> Iterator[_Spectra]:
    """Yield the windows of y along its long axes, of every size, that fit, with neither constant parts nor NaN."""
    long = tuple(axis for axis in range(y.ndim) if y.shape[axis] >= 16)[-3:]
    discrete = is_discrete(y)
    for block in _READINGS.get(len(long), {}):
        if any(y.shape[axis] < block for axis in long):
            continue
        least = block // 8 if len(long) == 1 else 3
        step = max(least, math.ceil((y.size * block ** len(long) / MAX_WINDOW_ENTRIES) ** (1 / len(long))))
        view = np.lib.stride_tricks.sliding_window_view(y, (block,) * len(long), axis=long)
        view = view[tuple(slice(None, None, step if axis in long else 1) for axis in range(y.ndim))]
        view = view.reshape(-1, *(block,) * len(long))
        windows = view[usable_windows(view, discrete)]
        middle = windows.mean(axis=tuple(range(1, windows.ndim)))
        if len(long) == 1:  # tapered, oscillations stay at their frequency
            taper = np.sin(np.pi * (np.arange(block) + 0.5) / block) ** 2
            windows = windows * (taper / math.sqrt((taper**2).mean()))
        yield _Spectra(middle, *dct_of_windows(windows), step ** len(long))


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
