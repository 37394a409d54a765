"""What has to be known of all the data before they are denoised: sums over tiles, which add up."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import cropped
from .._validate import Array
from ..denoising.crops import block_scores, block_sides
from ..denoising.value_range import ValueRange
from ..noise.clipping import is_pile
from .cuts import Tile
from .pieces import Piece


@dataclass(frozen=True)
class End:
    """The smallest value of some data, the next larger one, and how many entries have them."""

    value: float = math.inf
    count: int = 0
    next_value: float = math.inf
    next_count: int = 0

    def __or__(self, other: End) -> End:
        """Return the end of both together."""
        counts: dict[float, int] = {}
        for end in (self, other):
            for value, count in ((end.value, end.count), (end.next_value, end.next_count)):
                if count:
                    counts[value] = counts.get(value, 0) + count
        (first, times), (following, more) = (*sorted(counts.items())[:2], *[(math.inf, 0)] * 2)[:2]
        return End(first, times, following, more)


def end_of(values: NDArray[Any]) -> End:
    """Return the smallest values of known entries."""
    if not values.size:
        return End()
    least = values.min()
    rest = values[values > least]
    if not rest.size:
        return End(float(least), values.size)
    following = rest.min()
    return End(float(least), values.size - rest.size, float(following), int(np.count_nonzero(rest == following)))


class TileStatistics(NamedTuple):
    """What a tile tells.

    Attributes
    ----------
    range : ValueRange
        Of the entries that are not missing.
    valid : int
        The number of entries of one channel that hold noise.
    low, high : tuple of End
        Per channel with noise, the smallest values of valid entries, and of these times -1.
    ends : tuple of (int, int)
        Start and stop of the valid part along each axis, in the whole.
    start : tuple of int
        The index of the first block along each axis.
    scores : ndarray
        Per channel with noise, how much blocks vary.
    """

    range: ValueRange
    valid: int
    low: tuple[End, ...]
    high: tuple[End, ...]
    ends: tuple[tuple[int, int], ...]
    start: tuple[int, ...]
    scores: Array


def tile_statistics(piece: Piece, tile: Tile, shape: tuple[int, ...]) -> TileStatistics:
    """Return what a tile tells of data of a shape, given the piece that was read for it.

    Nothing is told of clip limits, which are not known yet.
    """
    inner, back = tile.inner, piece.back
    values, missing = cropped(back.layout.values, inner), back.layout.missing
    noisy = values[piece.facts.noisy]
    valid = None if back.valid is None or back.valid[inner].all() else back.valid[inner]
    each = [channel if valid is None else channel[:, valid] for channel in noisy]
    own = values.shape[2:]
    ends = [(0, n) for n in own] if valid is None else [_ends(valid, axis) for axis in range(valid.ndim)]
    sides = block_sides(shape)
    # Weights are local means, so that they need the margin.
    scores = [block_scores(piece.batch(k).crops([inner]), sides) for k in range(len(noisy))]
    return TileStatistics(
        ValueRange.of(values, None if missing is None else missing[inner], tile.place, shape),
        math.prod(own) if valid is None else int(np.count_nonzero(valid)),
        tuple(end_of(some) for some in each),
        tuple(end_of(-some.astype(np.float64)) for some in each),
        tuple((s.start + low, s.start + high) for s, (low, high) in zip(tile.place, ends, strict=True)),
        tuple(s.start // side for s, side in zip(tile.place, sides, strict=True)),
        np.stack(scores),
    )


def _ends(valid: NDArray[np.bool_], axis: int) -> tuple[int, int]:
    """Return start and stop of the valid part along an axis; beyond all data if there is none."""
    where = np.flatnonzero(valid.any(axis=tuple(k for k in range(valid.ndim) if k != axis)))
    return (int(where[0]), int(where[-1]) + 1) if where.size else (1 << 62, -(1 << 62))


class Statistics(NamedTuple):
    """What all tiles tell together: see `TileStatistics`. `scores` are (channels, *blocks)."""

    range: ValueRange
    valid: int
    low: tuple[End, ...]
    high: tuple[End, ...]
    ends: tuple[tuple[int, int], ...]
    scores: Array

    @classmethod
    def join(cls, tiles: Iterable[TileStatistics], shape: Sequence[int]) -> Statistics:
        """Return what all tiles of data of a shape tell, added up in their order."""
        found = list(tiles)
        counts = [n // side for n, side in zip(shape, block_sides(shape), strict=True)]
        scores = np.zeros((len(found[0].scores), *counts))
        for tile in found:
            some = tile.scores[(slice(None), *(slice(n - s) for n, s in zip(counts, tile.start, strict=True)))]
            place = tuple(slice(s, s + n) for s, n in zip(tile.start, some.shape[1:], strict=True))
            scores[(slice(None), *place)] = some
        lows, highs = (zip(*(getattr(t, name) for t in found), strict=True) for name in ("low", "high"))
        along = zip(*(t.ends for t in found), strict=True)
        ends = [(min(low for low, _ in some), max(high for _, high in some)) for some in along]
        return cls(
            ValueRange.joined(t.range for t in found),
            sum(t.valid for t in found),
            tuple(functools.reduce(End.__or__, some) for some in lows),
            tuple(functools.reduce(End.__or__, some) for some in highs),
            tuple(ends),
            scores,
        )

    @property
    def clip_limits(self) -> tuple[float, float]:
        """The values at which data were clipped, as `find_clip_limits` finds them."""
        size = self.valid * len(self.low)
        low, high = (functools.reduce(End.__or__, some) for some in (self.low, self.high))
        return (
            low.value if is_pile(low.count, low.next_count, size) else -math.inf,
            -high.value if is_pile(high.count, high.next_count, size) else math.inf,
        )
