"""Noise that the ends of a range cut off: where they are, what is left of it, and the mean behind what was cut."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._normal import phi
from .._validate import Array

# A value that so large a part of the entries shares, at the end of the range, is taken for a limit of the device. Noise
# around it puts half of them there; where there are more, that is what the data are, not what was done to them.
_CLIPPED = 1e-3, 0.6

# Beyond so many noise levels from an end, nothing is cut.
_FAR = 4.0


def find_clip_limits(y: NDArray[Any]) -> tuple[float, float]:
    """Return the ends of the range at which values were cut off, infinite where none were. NaN is passed over."""

    def end(least: Callable[[NDArray[Any]], Any], otherwise: float) -> float:
        value = least(y)
        there = y == value
        count = np.count_nonzero(there)
        if not max(_CLIPPED[0] * y.size, 3) < count < _CLIPPED[1] * y.size:
            return otherwise
        # What was beyond comes on top. Counts, too, have an end, but hardly more entries there than beside it.
        beside = np.count_nonzero(y == least(y[~there]))
        return float(value) if count > 1.5 * beside else otherwise

    return end(np.nanmin, -math.inf), end(np.nanmax, math.inf)


def near_clip_limits(y: NDArray[Any], sigma: Array, ends: tuple[float, float]) -> NDArray[np.bool_]:
    """Return where noise is cut off in any channel: its mean around there is within three levels of an end.

    Data are (channels, 1, *shape), `sigma` broadcasts against them. NaN counts as the mean of the channel.
    """
    from scipy.ndimage import uniform_filter

    near = np.zeros(y.shape[2:], bool)
    for channel, level in zip(y[:, 0], np.broadcast_to(sigma, y.shape)[:, 0], strict=True):
        known = channel.astype(np.result_type(channel.dtype, np.float32))
        middle = uniform_filter(np.nan_to_num(known, copy=False, nan=float(np.nanmean(known))), 8)
        near |= (middle - ends[0] < 3 * level) | (ends[1] - middle < 3 * level)
    return near


@functools.cache
def _table() -> tuple[Array, Array, Array]:
    """Return t, and the mean and the variance of max(t + Z, 0), Z of normal law."""
    t = np.linspace(0, _FAR, 3001)
    kept = np.array([math.erfc(-u / math.sqrt(2)) / 2 for u in t])
    mean = t * kept + phi(t)
    return t, mean, (t**2 + 1) * kept + t * phi(t) - mean**2


def unclip(
    means: Floats, sigma: Array, limits: tuple[float, float], valid: NDArray[np.bool_] | None = None
) -> tuple[Floats, float]:
    """Return the means before clipping, and the share of the noise variance that clipping left in valid entries."""
    if not any(map(math.isfinite, limits)):
        return means, 1.0
    t, cut, variance = _table()
    out = means.copy()
    lost = total = 0.0
    for values, level in zip(out[:, 0], np.broadcast_to(sigma, means.shape)[:, 0], strict=True):
        weight = np.square(level) if valid is None else np.square(level) * valid
        total += float(weight.sum())
        moves = []
        for end, sign in zip(limits, (1, -1), strict=True):
            if math.isfinite(end):
                near = sign * (values - end) < _FAR * level
                found = np.interp(sign * (values[near] - end) / level[near], cut, t)
                lost += float(weight[near] @ (1 - np.interp(found, t, variance)))
                moves.append((near, sign * level[near] * (found - np.interp(found, t, cut))))
        for near, move in moves:
            values[near] += move
        np.clip(values, *limits, out=values)
    return out, max(1 - lost / total, 0.0)
