"""Data as tiles with margins, which depend on their shape and not on their chunks."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..denoising.places import Place, tile_edges, widened
from .cuts import Tile


class Grid(NamedTuple):
    """Tiles with a margin.

    Attributes
    ----------
    edges : tuple of tuple of int
        Where tiles begin and end along each axis.
    margin : int
        How far a tile looks beyond its border, at most.
    """

    edges: tuple[tuple[int, ...], ...]
    margin: int

    @classmethod
    def make(cls, shape: Sequence[int], margin: int, step: int = 1, entries: int | None = None) -> Grid:
        """Return the tiles of data of a shape; see `tile_edges`."""
        return cls(tuple(map(tuple, tile_edges(shape, step, entries))), margin)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the data."""
        return tuple(ends[-1] for ends in self.edges)

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """The lengths of the tiles along each axis."""
        return tuple(tuple(b - a for a, b in itertools.pairwise(ends)) for ends in self.edges)

    def tile(self, index: Sequence[int]) -> Place:
        """Return the place of a tile."""
        return tuple(slice(ends[i], ends[i + 1]) for ends, i in zip(self.edges, index, strict=True))

    @property
    def tiles(self) -> dict[tuple[int, ...], Tile]:
        """All tiles, with their margins, by their index."""
        places = {index: self.tile(index) for index in np.ndindex(*(len(ends) - 1 for ends in self.edges))}
        return {index: Tile(place, widened(place, self.margin, self.shape)[0]) for index, place in places.items()}

    def touched(self, places: Iterable[Place]) -> frozenset[tuple[int, ...]]:
        """Return which tiles, without their margins, share entries with some places."""
        found: set[tuple[int, ...]] = set()
        for place in places:
            ends = zip(self.edges, place, strict=True)
            along = [range(bisect.bisect_right(e, s.start) - 1, bisect.bisect_left(e, s.stop)) for e, s in ends]
            found.update(itertools.product(*along))
        return frozenset(found)
