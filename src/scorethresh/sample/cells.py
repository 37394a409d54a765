"""Cells: the intervals of |y| on which a compressed sample keeps its moments."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validate import Array
from ..rules import Rule, kinks_of

# As in _loops.py: Chebyshev moments per cell, and the shifts that turn a double into a key.
ORDER = 12
FINE = 43
COARSE = 50
# On a cell of at most this many bandwidths the Gaussian kernel is a polynomial of degree ORDER - 1 to
# 2 (0.61 / 4)^12 / sqrt(12!) = 1.5e-14.
BANDWIDTHS_PER_CELL = 0.61
# Kernels are cut off this many bandwidths away, where they are 1e-17 of their peak.
REACH = 8.9
# Edges of the tail: 1, 5/4, 3/2 and 7/4 times every power of two. They are the values at which the exponent and
# the first two mantissa bits of a double change, so a cell is found by shifting its bits.
_LADDER = np.ldexp(np.array([1.0, 1.25, 1.5, 1.75])[None, :], np.arange(-1022, 1024)[:, None]).ravel()
_MOST_CELLS = 1_000_000


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
    grain
        That of the rule that they were made for: see `Rule`.
    top
        The edge from which on the cells are those of the ladder.
    """

    edges: Array
    thresholds: Array
    bandwidth: float
    grain: float
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
        zones = [(REACH * bandwidth, BANDWIDTHS_PER_CELL * bandwidth), (6.5 * sigma, sigma / 20)]

        def near(points: Array, reach: float) -> Any:
            """Tell which points lie within reach of a kink."""
            i = np.searchsorted(kinks, points)
            below, above = kinks[np.maximum(i - 1, 0)], kinks[np.minimum(i, kinks.size - 1)]
            return np.minimum(np.abs(points - below), np.abs(points - above)) < reach

        def ends(reach: float) -> Array:
            """Return where the neighbourhoods of the kinks end."""
            wide = np.flatnonzero(np.diff(kinks) > 2 * reach)
            return np.concatenate([kinks[wide] + reach, kinks[wide + 1] - reach, kinks[-1:] + reach, kinks[:1] - reach])

        marks = np.concatenate([[0.0], kinks, *(ends(reach) for reach, _ in zones)])
        top = _LADDER[np.searchsorted(_LADDER, marks.max())]
        lowest = thresholds[thresholds > 0].min(initial=np.inf)
        grain = rule.polynomial_width
        # Between the neighbourhoods of the kinks, and for rules that bend everywhere, cells grow with the magnitude.
        wanted = (top <= _LADDER) | ~near(_LADDER, max(reach for reach, _ in zones)) | (grain < np.inf)
        ladder = _LADDER[(min(lowest, top) <= _LADDER) & wanted]
        marks = np.unique(np.concatenate([marks[marks >= 0], ladder, [np.finfo(float).max]]))

        low, high = marks[:-1], marks[1:]
        limit = np.full(low.size, np.inf)
        for reach, width in zones:
            inside = near(low / 2 + high / 2, reach)
            limit[inside] = np.minimum(limit[inside], width)
        graded = (low >= lowest) & (low < top)
        limit[graded] = np.minimum(limit[graded], grain * low[graded])
        most = (high - low) / np.maximum(1e-14 * high, 1e-300)  # no cell is narrower than rounding
        parts = np.ceil(np.minimum((high - low) / limit * (1 - 1e-9), most)).clip(1)
        if not parts.sum() <= _MOST_CELLS:
            msg = (
                f"{thresholds.size} thresholds up to {thresholds.max()} with bandwidth {bandwidth} need "
                f"{parts.sum():.3g} cells, more than {_MOST_CELLS}. Use fewer thresholds, a larger bandwidth, "
                "or Magnitudes.exact(y)."
            )
            raise ValueError(msg)
        parts = parts.astype(np.int64)
        step = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
        edges = np.repeat(low, parts) + np.repeat((high - low) / parts, parts) * step
        return cls(np.unique(np.append(edges, marks[-1])), thresholds, bandwidth, grain, top)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and np.array_equal(self.edges, other.edges)

    def __len__(self) -> int:
        return self.edges.size - 1

    def have(self, points: Array) -> Any:
        """Tell which of the points are edges."""
        i = np.searchsorted(self.edges, points).clip(max=self.edges.size - 1)
        return self.edges[i] == points

    @functools.cached_property
    def middle(self) -> Array:
        """The cells' middles."""
        return self.edges[:-1] / 2 + self.edges[1:] / 2

    @functools.cached_property
    def half(self) -> Array:
        """Half of the cells' widths."""
        return self.edges[1:] / 2 - self.edges[:-1] / 2

    @functools.cached_property
    def lookup(self) -> tuple[Any, ...]:
        """The table, unit, first key, tail cell and tail key by which `_loops.deposit` finds an entry's cell."""
        tail_cell = int(np.searchsorted(self.edges, self.top))
        unit = float(1 / np.median(np.diff(self.edges[: tail_cell + 1])))
        first_key = _key(1 / 8, FINE)
        keys = np.arange(first_key, max(_key(self.top * unit, FINE), first_key) + 1)
        table = np.searchsorted(self.edges, (keys << FINE).view(np.float64) / unit, side="right") - 1
        table[0] = 0
        return table.astype(np.int32), unit, first_key, tail_cell, _key(self.top, COARSE)


def _key(value: float, shift: int) -> int:
    """Return the leading bits of a double: its exponent and the first ``52 - shift`` bits of its mantissa."""
    return int(np.float64(value).view(np.int64)) >> shift
