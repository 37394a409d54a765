"""Cells: the intervals of |y| on which a compressed sample keeps its moments."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._kernels import COARSE, FINE, CellTable
from .._validate import Array
from ..rules import Rule, kinks_of

# On a cell of at most this many bandwidths the Gaussian kernel is a polynomial of degree ORDER - 1 to
# 2 (0.61 / 4)^12 / sqrt(12!) = 1.5e-14.
BANDWIDTHS_PER_CELL = 0.61
# Kernels are cut off this many bandwidths away, where they are 1e-17 of their peak.
REACH = 8.9
# Within this distance of a kink, in units of sigma, cells resolve the shape of the noise: the histogram to which
# distributions of means are fitted needs bins of sigma / 20.
_NOISE_REACH = 6.5
_CELLS_PER_SIGMA = 20
# Edges of the tail: 1, 5/4, 3/2 and 7/4 times every power of two. They are the values at which the exponent and
# the first two mantissa bits of a double change, so a cell is found by shifting its bits.
_LADDER = np.ldexp(np.array([1.0, 1.25, 1.5, 1.75])[None, :], np.arange(-1022, 1024)[:, None]).ravel()
# Bounds the memory of a sample: 12 moments of 8 bytes per cell and thread.
_MOST_CELLS = 1_000_000


class _Zone(NamedTuple):
    """A demand on the cells within `reach` of a kink: they are at most `width` wide."""

    reach: float
    width: float


@dataclass(frozen=True, eq=False)
class Cells:
    """Intervals ``(edges[j], edges[j+1]]`` from 0 to the largest double.

    Attributes
    ----------
    edges
        Ascending, from 0. Entries at 0 belong to the first cell.
    thresholds
        The finite thresholds that the cells were made for; each is an edge.
    bandwidth
        The narrowest kernel that the cells serve.
    polynomial_width
        That of the rule for which they were made: see `Rule`.
    top
        The edge from which on the cells are those of the ladder.
    """

    edges: Array
    thresholds: Array
    bandwidth: float
    polynomial_width: float
    top: float

    @classmethod
    def make(cls, thresholds: Array, rule: Rule, sigma: float, bandwidth: float) -> Cells:
        """Return cells fine enough for risk curves of `rule` at `thresholds`, with kernels of that bandwidth.

        Within 6.5 sigma of the kinks they are also fine enough for a histogram that keeps the shape of the noise.
        """
        thresholds = thresholds[np.isfinite(thresholds)]
        if thresholds.size == 0:
            thresholds = np.zeros(1)
        kinks = kinks_of(rule, thresholds)
        return _make(thresholds.tobytes(), kinks.tobytes(), rule.polynomial_width, sigma, bandwidth)

    @classmethod
    def build(cls, thresholds: Array, kinks: Array, fraction: float, sigma: float, bandwidth: float) -> Cells:
        """Return what `make` does, for a rule with these kinks and this polynomial width."""
        zones = [
            _Zone(REACH * bandwidth, BANDWIDTHS_PER_CELL * bandwidth),
            _Zone(_NOISE_REACH * sigma, sigma / _CELLS_PER_SIGMA),
        ]
        marks = np.concatenate([[0.0], kinks, *(_zone_ends(kinks, zone.reach) for zone in zones)])
        top = float(_LADDER[min(np.searchsorted(_LADDER, marks.max()), _LADDER.size - 1)])
        lowest = float(thresholds[thresholds > 0].min(initial=np.inf))
        # Between the zones, and everywhere for rules that are not straight, cells grow with the magnitude.
        wanted = (top <= _LADDER) | ~_near(kinks, _LADDER, max(zone.reach for zone in zones)) | (fraction < np.inf)
        ladder = _LADDER[(min(lowest, top) <= _LADDER) & wanted]
        marks = np.unique(np.concatenate([marks[marks >= 0], ladder, [np.finfo(float).max]]))

        low, high = marks[:-1], marks[1:]
        limit = np.full(low.size, np.inf)
        for zone in zones:
            inside = _near(kinks, low / 2 + high / 2, zone.reach)
            limit[inside] = np.minimum(limit[inside], zone.width)
        graded = (low >= lowest) & (low < top)
        limit[graded] = np.minimum(limit[graded], fraction * low[graded])
        parts = _part_counts(marks, limit)
        if not parts.sum() <= _MOST_CELLS:
            msg = (
                f"{thresholds.size} thresholds up to {thresholds.max()} with bandwidth {bandwidth} need "
                f"{parts.sum():.3g} cells, more than {_MOST_CELLS}. Use fewer thresholds, a larger bandwidth, "
                "or Magnitudes.exact(y)."
            )
            raise ValueError(msg)
        return cls(_subdivide(marks, parts.astype(np.int64)), thresholds, bandwidth, fraction, top)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and np.array_equal(self.edges, other.edges)

    def __len__(self) -> int:
        return self.edges.size - 1

    def have(self, points: Array) -> NDArray[np.bool_]:
        """Tell which of the points are edges."""
        i = np.searchsorted(self.edges, points).clip(max=self.edges.size - 1)
        found: NDArray[np.bool_] = self.edges[i] == points
        return found

    @functools.cached_property
    def middle(self) -> Array:
        """The cells' middles."""
        return self.edges[:-1] / 2 + self.edges[1:] / 2

    @functools.cached_property
    def half(self) -> Array:
        """Half of the cells' widths."""
        return self.edges[1:] / 2 - self.edges[:-1] / 2

    @functools.cached_property
    def table(self) -> CellTable:
        """The cells as the compiled loop wants them, with a table to find those of entries."""
        tail_cell = int(np.searchsorted(self.edges, self.top))
        unit = float(1 / np.median(np.diff(self.edges[: tail_cell + 1])))
        first_key = _key(1 / 8, FINE)
        keys = np.arange(first_key, max(_key(self.top * unit, FINE), first_key) + 1)
        with np.errstate(over="ignore"):  # the last key may stand for values beyond the last edge
            starts = np.minimum((keys << FINE).view(np.float64) / unit, self.top)
        # Rounding may give an entry just below a start the key of that start: it must not meet a cell above its own.
        table = (np.searchsorted(self.edges, starts * (1 - 1e-15), side="right") - 1).clip(max=len(self) - 1)
        table[0] = 0
        return CellTable(
            edges=self.edges,
            middle=self.middle,
            scale=1 / np.maximum(self.half, 1e-305),
            table=table.astype(np.int32),
            unit=unit,
            first_key=first_key,
            tail_cell=tail_cell,
            tail_key=_key(self.top, COARSE),
        )


# Bands of one size and noise level share their cells: building them takes as long as filling them with 65,536 entries.
# A set of cells takes some 200 kB.
@functools.lru_cache(maxsize=16)
def _make(thresholds: bytes, kinks: bytes, fraction: float, sigma: float, bandwidth: float) -> Cells:
    return Cells.build(np.frombuffer(thresholds), np.frombuffer(kinks), fraction, sigma, bandwidth)


def _near(kinks: Array, points: Array, reach: float) -> Any:
    """Tell which points lie within reach of a kink."""
    i = np.searchsorted(kinks, points)
    below, above = kinks[np.maximum(i - 1, 0)], kinks[np.minimum(i, kinks.size - 1)]
    return np.minimum(np.abs(points - below), np.abs(points - above)) < reach


def _zone_ends(kinks: Array, reach: float) -> Array:
    """Return where the neighbourhoods of the kinks end."""
    wide = np.flatnonzero(np.diff(kinks) > 2 * reach)
    return np.concatenate([kinks[wide] + reach, kinks[wide + 1] - reach, kinks[-1:] + reach, kinks[:1] - reach])


def _part_counts(marks: Array, limit: Array) -> Array:
    """Return the number of parts, as floats, that make the intervals between the marks not wider than their limits."""
    low, high = marks[:-1], marks[1:]
    most = (high - low) / np.maximum(1e-14 * high, 1e-300)  # no cell is narrower than rounding
    parts: Array = np.ceil(np.minimum((high - low) / limit * (1 - 1e-9), most)).clip(1)
    return parts


def _subdivide(marks: Array, parts: NDArray[np.int64]) -> Array:
    """Return the edges that divide each interval between neighbouring marks into equal parts."""
    low, high = marks[:-1], marks[1:]
    step = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    edges = np.repeat(low, parts) + np.repeat((high - low) / parts, parts) * step
    return np.unique(np.append(edges, marks[-1]))


def _key(value: float, shift: int) -> int:
    """Return the leading bits of a double: its exponent and the first ``52 - shift`` bits of its mantissa."""
    return int(np.float64(value).view(np.int64)) >> shift
