"""Data in chunks as channels with flags and noise levels, read at any place."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _validate
from .._threads import one_thread_per_task
from ..denoising.layout import MIN_PLANE, MOST_SLICES, Layout, check_dtypes, with_channels_first
from ..denoising.places import Place
from ..denoising.value_range import ValueRange
from .cuts import Chunks, Tile, tile_graph, tile_results
from .grid import Grid
from .pieces import FLAG_MARGIN, NoiseFacts, Piece, flags_of, layout_of


@dataclass(frozen=True, eq=False)
class Source:
    """Data that are read in pieces.

    Attributes
    ----------
    y : dask array
        (channels, *shape).
    mask : dask array of bool, optional
        (*shape), True where entries are missing.
    sigma : dask array, optional
        A map of noise levels, (channels or 1, *shape).
    flags : Chunks, optional
        Of uint8, (*shape): why entries are left out. Chunks are None where all hold noise.
    channel_axis : int, optional
        The axis that the channels come from.
    """

    y: Any
    mask: Any = None
    sigma: Any = None
    flags: Chunks | None = None
    channel_axis: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one channel."""
        return tuple(self.y.shape[1:])

    @property
    def piece_axis(self) -> int | None:
        """The axis of channels of a piece, which is the first if there are any."""
        return None if self.channel_axis is None else 0

    def with_slices_as_channels(self) -> Source:
        """Return a volume of few slices as channels, as `Layout` does, if no entry is missing; other data as they are.

        Then all of the data is read once, to find NaN.
        """
        import dask.array as da

        shape = self.shape
        few = min(shape) <= MOST_SLICES[len(shape)] and sorted(shape)[1] >= MIN_PLANE
        if not few or self.channel_axis is not None or self.mask is not None or self.sigma is not None:
            return self
        if self.y.dtype.kind in "fc" and bool(da.isnan(self.y).any().compute()):
            return self
        axis = shape.index(min(shape))
        return replace(self, y=da.moveaxis(self.y[0], axis, 0), channel_axis=axis)

    def layouts(self, places: list[Place]) -> list[Layout]:
        """Return the data at some places."""
        tiles = [Tile(place, place) for place in places]
        given = [Chunks(self.y), None if self.mask is None else Chunks(self.mask)]
        return [layout_of(y, mask, self.piece_axis) for y, mask in tile_results(_as_read, tiles, given)]

    def pieces(self, places: list[Place], facts: NoiseFacts) -> list[Piece]:
        """Return the data at some places, stabilised."""
        found = tile_results(_as_read, [Tile(place, place) for place in places], self.chunks)
        return [Piece.make(y, flags, sigma, facts) for y, flags, sigma in found]

    def with_flags(self, facts: NoiseFacts) -> Source:
        """Return the source with the flags of its entries, which are found tile by tile."""
        import dask
        import dask.array as da

        grid = Grid.make(self.shape, FLAG_MARGIN)
        given = [Chunks(self.y), None if self.mask is None else Chunks(self.mask)]
        name, graph = tile_graph(_flags_of_tile, grid.tiles, given, dask.delayed(facts, pure=True, traverse=False))
        meta = np.empty((0,) * len(self.shape), np.uint8)
        return replace(self, flags=Chunks(da.Array(graph, name, grid.chunks, meta=meta), together=True))

    def with_flags_at(self, places: Iterable[Place]) -> Source:
        """Return the source, given that all entries elsewhere are known to hold noise: they are not looked at again."""
        assert self.flags is not None
        x = self.flags.x
        edges = tuple(tuple(itertools.accumulate(sizes, initial=0)) for sizes in x.chunks)
        return replace(self, flags=replace(self.flags, blocks=Grid(edges, 0).touched(places)))

    @property
    def chunks(self) -> list[Chunks | None]:
        """What tiles need: data, flags and, if they are a map, noise levels."""
        return [Chunks(self.y), self.flags, None if self.sigma is None else Chunks(self.sigma)]


def _as_read(_: Tile, __: None, *parts: Any) -> tuple[Any, ...]:
    return parts


def range_of(source: Source) -> ValueRange:
    """Return the range of the values. All of them are read."""
    import dask

    shape = source.shape
    mask = () if source.mask is None else (source.mask.rechunk(source.y.chunks[1:]),)
    found = source.y.rechunk({0: -1}).map_blocks(
        _range_of_block, *mask, shape=shape, drop_axis=0, dtype=object, meta=np.empty((0,) * len(shape), object)
    )
    return ValueRange.joined(dask.compute(*found.to_delayed().ravel()))


def _range_of_block(y: Any, *masks: Any, shape: tuple[int, ...], block_info: Any = None) -> ValueRange:
    place = tuple(slice(*ends) for ends in block_info[0]["array-location"][1:])
    layout = layout_of(y, masks[0] if masks else None, None)
    return ValueRange.of(layout.values, layout.missing, place, shape)


@one_thread_per_task
def _flags_of_tile(tile: Tile, facts: NoiseFacts, y: Any, mask: Any) -> Any:
    found = flags_of(y, mask, facts, tile.inner)
    return found if found.any() else None


def read_source(y: Any, channel_axis: int | None, mask: Any, sigma: Any) -> Source:
    """Return a dask array as channels; refuse what cannot be denoised."""
    import dask.array as da

    if isinstance(getattr(y, "_meta", None), np.ma.MaskedArray):
        msg = "y holds masked chunks. Pass the mask apart: denoise(da.ma.getdata(y), mask=da.ma.getmaskarray(y))."
        raise TypeError(msg)
    if any(n != n for n in y.shape):
        msg = f"y has chunks of unknown size, with shape {y.shape}. Call y.compute_chunk_sizes() first."
        raise ValueError(msg)
    mask = None if mask is None else da.asarray(mask)
    check_dtypes(y, mask)
    channels, mask = with_channels_first(y, mask, channel_axis)
    return Source(channels, mask, _level_map(sigma, channels, channel_axis), channel_axis=channel_axis)


def _level_map(sigma: Any, y: Any, channel_axis: int | None) -> Any:
    """Return a map of noise levels as (channels or 1, *shape); None if sigma is none."""
    import dask.array as da

    if sigma is None or np.ndim(sigma) == 0 or (channel_axis is not None and np.shape(sigma) == (len(y),)):
        return None
    levels = da.asarray(sigma)
    if levels.dtype.kind not in "fiu":
        msg = f"sigma must hold real numbers, got dtype {levels.dtype}."
        raise TypeError(msg)
    if levels.shape == y.shape[1:]:
        return levels[None]
    if channel_axis is not None and levels.ndim == y.ndim:
        moved = da.moveaxis(levels, channel_axis, 0)
        if moved.shape == y.shape:
            return moved
    msg = f"sigma must be one number, one per channel, or one per entry, of shape {y.shape[1:]}, got {levels.shape}."
    raise ValueError(msg)


def mean_squares(sigma: Any) -> Any:
    """Return the mean squared noise level per channel of a map, which is checked."""
    import dask
    import dask.array as da

    axes = tuple(range(1, sigma.ndim))
    bad, least, square = dask.compute(
        da.count_nonzero(~((sigma > 0) & da.isfinite(sigma))),
        sigma.min(),
        (sigma.astype(np.float64) ** 2).mean(axis=axes),
    )
    if bad:
        _validate.level_map(np.array([float(least)] if least <= 0 else [np.nan]))
    return np.asarray(square)
