"""Outliers of images and volumes: dead pixels, salt and pepper, cosmic rays."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, slabs
from .clipping import PILE_UP
from .medians import MEDIAN_OF_NORMAL

# How far from the median of its neighbourhood an entry must lie, over the local noise. Normal noise of 1e9 entries
# reaches 6.1; one below 8 is hard to tell from a faint star, and does little harm.
MIN_DISTANCE = 8.0
# The same over the spread in that neighbourhood, where structure counts as noise. With 8, a tenth fewer grains of salt
# and pepper are found in development photographs.
LOCAL_DISTANCE = 5.0
# Largest distance of the direct neighbours from that median, in the mean, over that of the entry. A point of light that
# a lens has spread over 1.5 pixels gives 0.3, a line at least 0.5, an outlier 0 plus noise.
MOST_SHARED = 0.15
# Smallest share of outliers among all entries that lie as far from the median. In pictures with points and lines as
# fine as a pixel most are structure, and then all may be: on clean development photographs at most 0.4 look like
# outliers, with 1% of salt and pepper at least 0.6.
MIN_SHARE = 0.5
# Standard errors that are taken off the number of outliers before: a few, up to 15, may as well be sparkles. To leave
# a dead pixel does less harm than to remove a star.
CAUTION = 2.0
# Outliers side by side, at most.
MOST_TOGETHER = 2
# Side of the neighbourhood: 3 would let two outliers side by side count for much, 7 is slower and blurs structure.
SIDE = 5
# Grains of salt are alike, and so are those of pepper. If some of either are found, all values are tried that so many
# entries which stand out by ALIKE_DISTANCE noise levels share: this share of the number found, or of so many if there
# are fewer. Entries of a value that is clearly more frequent than those next to it count if most of them lie alone,
# though not so far from the median. Without this, salt in bright pictures stays: two of 22 development crops with 1% of
# salt and pepper are 2.3 dB worse. A distance of 3 gains 0.04 dB in the mean.
MIN_ALIKE = 0.2
MIN_COUNT = 20
ALIKE_DISTANCE = 4.0
# Outliers of one value side by side, at most.
MOST_ALIKE = 4
# Largest share of entries that stand out from their neighbours. If there are more, they are structure.
MOST_CANDIDATES = 0.2


def find_outliers(y: Floats, level: float) -> NDArray[np.bool_]:
    """Return which entries of an image or a volume are outliers.

    Parameters
    ----------
    y : ndarray
        An image or a volume, with at least 5 entries along each axis; NaN marks missing entries.
    level : float
        Its noise level.

    Returns
    -------
    ndarray of bool
        True at outliers.

    Notes
    -----
    An outlier differs from the median of its neighbourhood, `SIDE` entries wide, by `MIN_DISTANCE` times the noise,
    and so does at most one of its neighbours. The noise is the larger of the level and of the median distance from the
    median in that neighbourhood, so texture is noise here. Structure is spread over several entries: a star by the
    lens, a line along its length. So the direct neighbours of an outlier lie, in the mean, near the median. Fewer than
    16 outliers are not told from structure, and none is returned.
    """
    from scipy.ndimage import label

    candidates = _candidates(y, MIN_DISTANCE * (1 - MOST_SHARED) * level)
    count = np.count_nonzero(candidates)
    outliers = np.zeros(y.shape, bool)
    if not 0 < count < MOST_CANDIDATES * y.size:
        return outliers
    around = np.pad(y, SIDE // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(around, (SIDE,) * y.ndim)[candidates].reshape(count, -1)
    median = np.nanmedian(windows, axis=1)
    local = np.nanmedian(np.abs(windows - median[:, None]), axis=1) / MEDIAN_OF_NORMAL
    distance = y[candidates] - median
    is_far = np.abs(distance) > np.maximum(LOCAL_DISTANCE * local, MIN_DISTANCE * level)
    far = outliers.copy()
    far[candidates] = is_far
    groups, _ = label(far, np.ones((3,) * y.ndim, bool))
    small = np.bincount(groups[far], minlength=1)[groups[candidates]] <= MOST_TOGETHER
    shared = _neighbour_mean(around, far, candidates) - median
    outliers[candidates] = is_far & small & (shared * np.sign(distance) < MOST_SHARED * np.abs(distance))
    found = int(np.count_nonzero(outliers))
    if found - CAUTION * math.sqrt(found) < MIN_SHARE * np.count_nonzero(is_far):
        outliers[...] = False
    if not outliers.any():
        return outliers
    values, times = np.unique(y[_candidates(y, ALIKE_DISTANCE * level)], return_counts=True)
    for value in values[times > MIN_ALIKE * max(found, MIN_COUNT)]:
        if _is_pile(y, value):
            outliers |= _grains(y == value, around, ALIKE_DISTANCE * level)
    return outliers


def _is_pile(y: Floats, value: float) -> bool:
    """Tell whether a value is clearly more frequent than those next to it: whole numbers repeat by chance as well."""
    below, above = y[y < value], y[y > value]
    beside = [np.count_nonzero(some == end(some)) for some, end in ((below, np.max), (above, np.min)) if some.size]
    return bool(np.count_nonzero(y == value) > PILE_UP * max(beside, default=0))


def _grains(alike: NDArray[np.bool_], around: Floats, distance: float) -> NDArray[np.bool_]:
    """Return which entries of one value lie apart from the median around them, if most of these lie alone."""
    from scipy.ndimage import label

    found = np.zeros(alike.shape, bool)
    groups, _ = label(alike, np.ones((3,) * alike.ndim, bool))
    few = np.bincount(groups[alike], minlength=1) <= MOST_ALIKE
    alike = alike & few[groups]
    if not alike.any():
        return found
    windows = np.lib.stride_tricks.sliding_window_view(around, (SIDE,) * alike.ndim)[alike]
    values = windows.reshape(len(windows), -1)
    median = np.nanmedian(values, axis=1)
    from_median = values[:, values.shape[1] // 2] - median
    shared = (_neighbour_mean(around, alike, alike) - median) * np.sign(from_median)
    apart = np.abs(from_median) > distance
    alone = apart & (shared < MOST_SHARED * np.abs(from_median))
    if np.count_nonzero(alone) >= max(MIN_SHARE * np.count_nonzero(apart), MIN_ALIKE * MIN_COUNT):
        found[alike] = apart
    return found


def _candidates(y: Floats, distance: float) -> NDArray[np.bool_]:
    """Return which entries differ from the mean of their direct neighbours, the extreme two left out, by a distance."""
    found = np.empty(y.shape, bool)
    for rows in slabs(y.shape):
        first, last = rows.start == 0, rows.stop == len(y)
        ends = ((int(first), int(last)), *((1, 1),) * (y.ndim - 1))
        around = np.pad(y[rows.start - (not first) : rows.stop + (not last)], ends, mode="reflect")
        found[rows] = _apart_from_neighbours(around, distance)
    return found


def _apart_from_neighbours(around: Floats, distance: float) -> NDArray[np.bool_]:
    """Return what `_candidates` does, for data with one more entry at each end."""
    inside = (slice(1, -1),) * around.ndim
    y = around[inside]
    total, least, largest = np.zeros_like(y), np.full_like(y, np.inf), np.full_like(y, -np.inf)
    for axis in range(y.ndim):
        for shift in (slice(None, -2), slice(2, None)):
            neighbour = around[(*inside[:axis], shift, *inside[axis + 1 :])]
            total += neighbour
            np.minimum(least, neighbour, out=least)
            np.maximum(largest, neighbour, out=largest)
    mean = (total - least - largest) / (2 * y.ndim - 2)
    found: NDArray[np.bool_] = np.abs(y - mean) > distance
    return found


def _neighbour_mean(around: Floats, far: NDArray[np.bool_], candidates: NDArray[np.bool_]) -> Floats:
    """Return the mean of the direct neighbours of the candidates that are not far themselves."""
    known = np.pad(~far, SIDE // 2, mode="reflect")
    places = np.array(np.nonzero(candidates)) + SIDE // 2
    total, count = np.zeros((2, places.shape[1]))
    for axis in range(far.ndim):
        for step in (-1, 1):
            there = places.copy()
            there[axis] += step
            use = known[tuple(there)]
            total += np.where(use, around[tuple(there)], 0.0)
            count += use
    out: Floats = total / np.maximum(count, 1)
    return out
