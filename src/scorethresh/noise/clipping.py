"""Clipped noise: the limits at which data were clipped, and the means before clipping."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, slabs
from .._normal import phi
from .._validate import Array

# The smallest or largest value is a clip limit if the share of entries that have it lies between these two. Fewer
# are chance. Noise around a limit puts half of the entries there; more are a background that holds no noise.
CLIPPED_SHARE = 1e-3, 0.6
# A limit is met by more entries than this, so that a few equal extremes of a short signal are not taken for one.
MIN_CLIPPED = 3
# A limit is met by this many times as many entries as the value next to it. Clipping piles up all that lay beyond;
# counts also have a smallest value, but without such a pile.
PILE_UP = 1.5

# Noise levels between a mean and a limit beyond which clipping is neglected: there it moves the mean by 7e-6 levels.
NEGLIGIBLE_DISTANCE = 4.0
# Entries of the table of clipped moments. Linear interpolation is right to 1e-6.
TABLE_SIZE = 3001

# Noise levels between a local mean and a limit within which noise is called clipped, by `near_clip_limits` and in the
# windows of `estimate_sigma`. At 2.5, clipping takes 0.6% of the level. With 2 or 3 the levels of 8-bit development
# images come out the same in the mean.
NEAR_DISTANCE = 2.5
# Side of the box of local means. Larger boxes blur edges of the intensity, smaller ones follow the noise.
MEAN_BOX = 9


class _ClippedNormal(NamedTuple):
    """Mean and variance of ``max(t + Z, 0)``, Z standard normal, one entry per t."""

    t: Array
    mean: Array
    variance: Array


def find_clip_limits(y: NDArray[Any], excluded: NDArray[np.bool_] | None = None) -> tuple[float, float]:
    """Find the values at which data were clipped.

    Parameters
    ----------
    y : ndarray
        Data; NaN marks missing entries.
    excluded : ndarray of bool, optional
        Entries that do not count. Its axes are the last ones of y.

    Returns
    -------
    low, high : float
        The limits; infinite where nothing was clipped.
    """
    return _clip_limit(y, excluded, np.min, -math.inf), _clip_limit(y, excluded, np.max, math.inf)


def _clip_limit(
    y: NDArray[Any], excluded: NDArray[np.bool_] | None, extreme: Callable[[Any], Any], none: float
) -> float:
    """Return the smallest or largest value if it is a clip limit, else `none`."""
    ends = [extreme(part) for part in _counted(y, excluded) if part.size]
    if not ends:
        return none
    value = extreme(ends)
    size = y.size if excluded is None else y.size // excluded.size * int(np.count_nonzero(~excluded))
    count = sum(int(np.count_nonzero(part == value)) for part in _counted(y, excluded))
    if not is_pile(count, 0, size):
        return none
    next_value, next_to_it = None, 0
    for part in _counted(y, excluded):
        rest = part[part != value]
        end = extreme(rest) if rest.size else next_value
        if end is None:
            continue
        best = end if next_value is None else extreme([end, next_value])
        next_to_it = (next_to_it if best == next_value else 0) + int(np.count_nonzero(rest == best))
        next_value = best
    return float(value) if is_pile(count, next_to_it, size) else none


def _counted(y: NDArray[Any], excluded: NDArray[np.bool_] | None) -> Iterator[NDArray[Any]]:
    """Yield the entries of y that are known and not excluded, part by part."""
    shape = y.shape if excluded is None else excluded.shape
    if not y.size:
        return
    for channel in y.reshape(-1, *shape):
        for rows in slabs(shape):
            part = channel[rows]
            known = ~np.isnan(part)
            if excluded is not None:
                known &= ~excluded[rows]
            yield part[known]


def is_pile(count: int, next_to_it: int, size: int) -> bool:
    """Tell whether an extreme value is a clip limit, by how many of `size` entries have it and the value next to it."""
    low, high = CLIPPED_SHARE
    return max(low * size, MIN_CLIPPED) < count < high * size and count > PILE_UP * next_to_it


def near_clip_limits(y: NDArray[Any], sigma: Array, limits: tuple[float, float]) -> NDArray[np.bool_]:
    """Return where the noise of at least one channel is clipped: its local mean is near a limit.

    Data are (channels, 1, *shape) and the result is (*shape); `sigma` broadcasts against the data. Missing entries,
    marked by NaN, are replaced by the mean of their channel.
    """
    from scipy.ndimage import uniform_filter

    near = np.zeros(y.shape[2:], bool)
    for channel, level in zip(y[:, 0], np.broadcast_to(sigma, y.shape)[:, 0], strict=True):
        known = channel.astype(np.result_type(channel.dtype, np.float32))
        mean = uniform_filter(np.nan_to_num(known, copy=False, nan=float(np.nanmean(known))), MEAN_BOX)
        near |= (mean - limits[0] < NEAR_DISTANCE * level) | (limits[1] - mean < NEAR_DISTANCE * level)
    return near


def share_left(means: Floats, level: float, limits: Sequence[float]) -> Floats:
    """Return the share of the variance of noise of a level that clipping leaves where clipped data have these means.

    To 1e-3, which is the width of a cell of the table.
    """
    lost = _lost_by_mean()
    left = np.ones_like(means)
    for rows in slabs(means.shape):
        for limit in limits:
            cell = np.abs(means[rows] - limit)
            cell *= lost.size / NEGLIGIBLE_DISTANCE / level
            left[rows] -= lost.take(cell.astype(np.intp), mode="clip").astype(left.dtype)
    return left


class Unclipped(NamedTuple):
    """Means before clipping; the noise variance that clipping took from valid entries, and that of them all.

    Both are sums over `unit` squared.
    """

    means: Floats
    lost: float
    total: float


def unclip(
    means: Floats, sigma: Array, limits: tuple[float, float], valid: NDArray[np.bool_] | None = None
) -> tuple[Floats, float]:
    """Return the means of the noise before clipping, given those after it.

    Parameters
    ----------
    means : ndarray, shape (channels, 1, *shape)
        Means of clipped data. They are not changed.
    sigma : ndarray
        Noise level before clipping; broadcasts against the means.
    limits : (float, float)
        The values at which data were clipped; infinite for none.
    valid : ndarray of bool, shape (*shape), optional
        The entries over which the second result is averaged; all by default.

    Returns
    -------
    means : ndarray
        Means before clipping, within the limits; the argument itself if both limits are infinite.
    share_left : float
        The variance of the clipped noise over that of the noise, averaged over valid entries.

    Notes
    -----
    The mean of ``max(x + sigma Z, 0)``, Z standard normal and ``t = x / sigma``, is ``sigma (t Phi(t) + phi(t))``,
    which grows with t and is inverted by a table. Each limit is treated as if the other were far away.
    """
    if not any(map(math.isfinite, limits)):
        return means, 1.0
    found = unclip_part(means, sigma, limits, valid, float(np.max(sigma)))
    return found.means, max(1 - found.lost / found.total, 0.0) if found.total else 1.0


def unclip_part(
    means: Floats, sigma: Array, limits: tuple[float, float], valid: NDArray[np.bool_] | None, unit: float
) -> Unclipped:
    """Return what `unclip` does for a part of the data; sums of parts add up.

    `unit` is a typical noise level: squares of small or large ones would leave the range of floats.
    """
    clipped = _clipped_normal()
    out = means.copy()
    lost = total = 0.0
    for values, level in zip(out[:, 0], np.broadcast_to(sigma, means.shape)[:, 0], strict=True):
        weight = np.square(level / unit) if valid is None else np.square(level / unit) * valid
        total += float(weight.sum())
        shifts = []
        for limit, sign in zip(limits, (1, -1), strict=True):
            if math.isfinite(limit):
                near = sign * (values - limit) < NEGLIGIBLE_DISTANCE * level
                t = np.interp(sign * (values[near] - limit) / level[near], clipped.mean, clipped.t)
                lost += float(weight[near] @ (1 - np.interp(t, clipped.t, clipped.variance)))
                shifts.append((near, sign * level[near] * (t - np.interp(t, clipped.t, clipped.mean))))
        for near, shift in shifts:
            values[near] += shift
        np.clip(values, *limits, out=values)
    return Unclipped(out, lost, total)


@functools.cache
def _clipped_normal() -> _ClippedNormal:
    """Tabulate ``t Phi(t) + phi(t)`` and ``(t^2 + 1) Phi(t) + t phi(t)`` minus its square."""
    t = np.linspace(0, NEGLIGIBLE_DISTANCE, TABLE_SIZE)
    cdf = np.array([math.erfc(-u / math.sqrt(2)) / 2 for u in t])
    mean = t * cdf + phi(t)
    return _ClippedNormal(t, mean, (t**2 + 1) * cdf + t * phi(t) - mean**2)


@functools.cache
def _lost_by_mean() -> Array:
    """Tabulate the share of the variance that clipping takes against the mean after it; in the last cell it is 0."""
    clipped = _clipped_normal()
    means = (np.arange(TABLE_SIZE + 1) + 0.5) * (NEGLIGIBLE_DISTANCE / (TABLE_SIZE + 1))
    lost: Array = 1 - np.interp(means, clipped.mean, clipped.variance)
    lost[-1] = 0.0
    return lost
