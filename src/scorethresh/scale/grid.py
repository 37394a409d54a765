"""A dask array as tiles with margins, which depend on its shape and not on its chunks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..denoising.places import Place, tile_edges, widened


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

    def places(self, index: Sequence[int]) -> tuple[Place, Place]:
        """Return the place of a tile with its margin, and that of the tile in it."""
        return widened(self.tile(index), self.margin, self.shape)

    def spread(self, x: Any) -> Any:
        """Return a dask array whose chunks are the tiles with their margins; axes before those of the tiles are whole.

        The result is to be mapped over only: its shape is that of the tiles, all margins counted.
        """
        from dask.array.overlap import overlap

        lead = x.ndim - len(self.edges)
        chunks = [-1] * lead + [list(sizes) for sizes in self.chunks]
        x = x.rechunk(dict(enumerate(map(_as_chunks, chunks))))
        depth = {lead + k: self.margin if len(sizes) > 1 else 0 for k, sizes in enumerate(self.chunks)}
        least = min((min(sizes) for sizes in self.chunks if len(sizes) > 1), default=self.margin)
        if least < self.margin:
            msg = (
                f"tiles of {least} entries are smaller than what is looked at beyond them, {self.margin} entries. "
                "Choose fewer levels, or load y: y.compute()."
            )
            raise ValueError(msg)
        return overlap(x, depth, dict.fromkeys(depth, "none"), allow_rechunk=False)


def _as_chunks(sizes: Any) -> Any:
    return tuple(sizes) if isinstance(sizes, list) else sizes
