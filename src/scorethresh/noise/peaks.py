"""The noise level by a peak: of the differences of neighbours around 0, and of the entries beside a clip limit.

Line art, steps, bits and spikes have few flat windows. But many of their neighbours are equal, however far the others
are apart. Differences of these form a peak around 0 with the width of the noise. If paper is white and ink is black,
most of the noise is clipped. What is left beside a limit is one half of such a peak.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, slabs
from .._normal import phi
from .._validate import Array
from .texture import MEDIAN_ERROR, Reading

# Smallest share of the values that make up the peak. A smaller one would find small regions of less noise; a larger one
# misses peaks of data that are busy almost everywhere.
MIN_PEAK_SHARE = 0.05
# Fewest values of a peak. Fewer tell the level with an error of more than 10%.
MIN_PEAK_COUNT = 200
# Widths of the peak that are tried, from `MIN_PEAK_SHARE` to all values. With twice as many the levels are the same.
TRIED = 24
# Standard errors of the mean square that are allowed for. Within narrow limits any density is even, and says nothing.
# With 3, chance makes 5% of the levels of white noise too low, by a factor.
CONFIDENCE = 4.0
# Entries at a clip limit over those of the half peak beside it, at most; at least the inverse. They are as many if
# means are at the limit. More come from means beyond it, whose peak is narrower than the noise; fewer from means inside
# of it, whose peak is wider.
MAX_AT_LIMIT = 1.25


class _Truncated(NamedTuple):
    """Noise of level 1 within ``|z| < u``: the mean of ``z^2 / u^2``, its relative deviation, and the share inside."""

    u: Array
    ratio: Array
    deviation: Array
    share: Array


class _Peak(NamedTuple):
    """The reading of a peak, and the number of values of a noise of that level that it stands for."""

    reading: Reading
    size: float


def difference_readings(y: Floats, limits: Sequence[float], distance: float, step: float) -> list[Reading]:
    """Return the noise level by differences of neighbours along all axes, if they have a peak; NaN marks missing ones.

    Values were rounded to multiples of `step`; 0 for no rounding.

    Neighbours count if their mean is farther than `distance` from all clip limits. Differences that share an entry
    depend on each other; their number is divided by the sum of squared correlations, 0.5 + ndim.
    """
    peak = _peak(_rounded(_distances(y, limits, distance), step), 0.5 + y.ndim)
    if peak is None:
        return []
    return [Reading(peak.reading.level / math.sqrt(2), peak.reading.effective_count)]


def limit_readings(y: Floats, limits: Sequence[float], step: float) -> list[Reading]:
    """Return the noise level by the entries beside each clip limit, if their means are at the limit.

    Values were rounded to multiples of `step`; 0 for no rounding.
    """
    out = []
    for limit in limits:
        away = np.abs(y - limit).ravel()
        at_limit = np.count_nonzero(away == 0)
        away = away[away > 0]
        peak = _peak(_rounded(away, step), 1.0)
        if peak is not None and 1 / MAX_AT_LIMIT <= at_limit / peak.size <= MAX_AT_LIMIT:
            out.append(peak.reading)
    return out


def _rounded(magnitudes: Floats, step: float) -> Floats:
    """Round magnitudes, in place, to multiples of the step: errors of floats would split equal ones."""
    if step:
        magnitudes /= step
        np.rint(magnitudes, out=magnitudes)
        magnitudes *= step
    return magnitudes


def _distances(y: Floats, limits: Sequence[float], distance: float) -> Floats:
    """Return the distances of neighbours along all axes whose means are farther than `distance` from all limits."""
    out = np.empty(sum(y.size - y.size // n for n in y.shape), y.dtype)
    count = 0
    for axis in range(y.ndim):
        for rows in slabs(y.shape, overlap=int(axis == 0)):
            along = np.moveaxis(y[rows], axis, 0)
            step = np.abs(along[1:] - along[:-1])
            used = ~np.isnan(step)
            for limit in limits:
                used &= np.abs(along[1:] + along[:-1] - 2 * limit) > 2 * distance
            some = step[used]
            out[count : count + some.size] = some
            count += some.size
    return out[:count]


def _peak(magnitudes: Floats, dependence: float) -> _Peak | None:
    """Return the level of noise of which the smallest magnitudes are made; None if there is no peak at 0.

    The magnitudes are sorted in place. See `_peaks`.
    """
    magnitudes.sort()
    tried = _tried(magnitudes.size)
    if tried is None:
        return None
    counts = np.searchsorted(magnitudes, magnitudes[tried])
    counts = np.unique(counts[counts >= tried[0]])
    if not counts.size:
        return None
    level, count, size = (float(v[0]) for v in _peaks(magnitudes[None], counts, dependence))
    return None if math.isnan(level) else _Peak(Reading(level, count), size)


class RowPeaks(NamedTuple):
    """Of every row the level and the effective count of a `Reading`; NaN if there is no peak.

    Rows are `clear` if no equal differences are in the way, so that this is right.
    """

    levels: Array
    effective_counts: Array
    clear: NDArray[np.bool_]


def row_difference_readings(y: Floats) -> RowPeaks | None:
    """Return what `difference_readings` does of signals that were not clipped and whose values do not repeat.

    Signals are (rows, size). None if they are too short.
    """
    ordered = np.sort(np.abs(np.diff(y, axis=1)), axis=1)
    counts = _tried(ordered.shape[1])
    if counts is None:
        return None
    levels, effective_counts, _ = _peaks(ordered, counts, 0.5 + 1)
    clear = np.all(ordered[:, counts] > ordered[:, counts - 1], axis=1)
    return RowPeaks(levels / math.sqrt(2), effective_counts, clear)


def _peaks(ordered: Floats, counts: NDArray[np.int64], dependence: float) -> tuple[Array, Array, Array]:
    """Return of every row of magnitudes in ascending order what `_Peak` holds of its peak at 0; NaN if it has none.

    `counts` are the numbers of values that are tried.

    Notes
    -----
    Values are normal around means that are symmetric about 0, or all on the side on which magnitudes are taken. Then
    their density is that of noise with mean 0, times a function that grows with the magnitude. So their mean square
    within any limit is at least that of noise, and so is the level that explains it. Limits are tried; one that
    excludes most of the signal gives the level.

    Rounded values stand for cells of the width of a rounding step, which adds its square over 12 to the mean square.
    """
    inside, outside = (ordered[:, at].astype(np.float64) for at in (counts - 1, counts))
    limit, gap = (inside + outside) / 2, outside - inside
    table = _truncated_normal()
    # Part by part, so that no squares of all values are held.
    parts = np.split(ordered, counts, axis=1)[:-1]
    sums = np.cumsum([np.square(part, dtype=np.float64).sum(axis=1) for part in parts], axis=0).T
    with np.errstate(invalid="ignore", divide="ignore"):  # of rows without a peak, anything may come out
        ratio = (sums / counts + gap**2 / 12) / limit**2
        error = np.interp(ratio, table.ratio, table.deviation) * np.sqrt(dependence / counts)
        upper = ratio * (1 + CONFIDENCE * error)
        u, wider = (np.interp(r, table.ratio, table.u) for r in (ratio, upper))
        told = upper < table.ratio[-1]
        best = np.arange(len(ordered)), np.argmin(np.where(told, limit / wider, math.inf), axis=1)
        level = np.where(told[best], np.sqrt((limit[best] / u[best]) ** 2 - gap[best] ** 2 / 12), math.nan)
        relative = (u[best] / wider[best] - 1) / CONFIDENCE
        share = np.interp(ratio[best], table.ratio, table.share)
        return level, (MEDIAN_ERROR / relative) ** 2, counts[best[1]] / share


@functools.lru_cache(maxsize=16)
def _tried(size: int) -> NDArray[np.int64] | None:
    """Return the numbers of values, of so many, that are tried as a peak; None if these are too few."""
    least = max(MIN_PEAK_COUNT, math.ceil(MIN_PEAK_SHARE * size))
    return None if size <= least else np.unique(np.geomspace(least, size - 1, TRIED).astype(np.int64))


@functools.cache
def _truncated_normal() -> _Truncated:
    """Tabulate from wide limits to narrow ones, so that the ratio grows."""
    u = np.concatenate([np.geomspace(1e6, 6.1, 1000), np.linspace(6.0, 0.25, 500)])
    share = np.array([math.erf(v / math.sqrt(2)) for v in u])
    edge = 2 * u * phi(u) / share
    second = 1 - edge
    fourth = 3 * second - u**2 * edge
    return _Truncated(u, second / u**2, np.sqrt(fourth / second**2 - 1), share)
