"""Series of images and volumes in chunks: local low rank, region by region."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._threads import one_blas_thread, one_thread_per_task
from .._validate import Array
from ..denoising.lowrank.choice import candidate_grids, choose_grid
from ..denoising.lowrank.denoiser import LowRankDenoiser, NegativeTail, doubt_about, negative_tail
from ..denoising.lowrank.measured import as_series_noise
from ..denoising.lowrank.noise_map import estimate_noise_map
from ..denoising.lowrank.patches import PatchBlock
from ..denoising.lowrank.result import ErrorMaps, LowRankDenoised, mean_and_maps, predicted_error
from ..denoising.lowrank.series import Series, level_map, masked_entries, read_series
from ..denoising.lowrank.sums import PatchSums, denoise_block, regions_of
from ..noise.models import WhiteNoise

__all__ = ["LazyLowRankDenoised", "run_lowrank"]

T = TypeVar("T")
Region = tuple[slice, ...]


@dataclass(frozen=True, eq=False, repr=False)
class LazyLowRankDenoised:
    """What a `LowRankDenoiser` found in a dask array. What needs all of the data is not computed yet.

    Attributes
    ----------
    estimate : dask array
        The denoised series, with the shape, dtype and chunks of y.
    sigma, patch
        As in `LowRankDenoised`, and known already.
    predicted_mse, stderr : dask array
        Arrays without axes.
    whole : delayed
        All but the estimate.
    like : DataArray, optional
        y, if it has names, which the estimate gets.

    See Also
    --------
    LowRankDenoised : what `compute` returns.
    """

    estimate: Any
    sigma: Array
    patch: tuple[int, ...]
    predicted_mse: Any
    stderr: Any
    whole: Any
    like: Any = None

    def compute(self, **options: Any) -> LowRankDenoised:
        """Compute everything at once; options are those of `dask.compute`. The estimate has to fit into memory."""
        import dask

        lazy = self.estimate if self.like is None else self.estimate.data
        (found, doubt), estimate = dask.compute(self.whole, lazy, **options)
        if doubt:
            _validate.warn(doubt)
        whole: LowRankDenoised = found
        return replace(whole, estimate=estimate if self.like is None else self.like.copy(data=estimate))

    def __repr__(self) -> str:
        shape, patch = (" x ".join(map(str, lengths)) for lengths in (self.estimate.shape, self.patch))
        level = float(np.median(self.sigma))
        return f"<LazyLowRankDenoised: {shape} {self.estimate.dtype}, median sigma {level:.4g}, patches of {patch}>"


@dataclass(frozen=True, eq=False)
class LazySeries:
    """A series that is not in memory, its volumes along the last axis; but for which entries are valid."""

    array: Any
    masked: NDArray[np.bool_]
    valid: NDArray[np.bool_]

    @property
    def parts(self) -> int:
        """The real parts of an entry: 2 if complex."""
        return 2 if self.array.dtype.kind == "c" else 1

    @property
    def volumes(self) -> int:
        """The number of volumes."""
        return int(self.array.shape[-1])

    def part(self, region: Region) -> Any:
        """Return a region of it as a `Series`, delayed."""
        import dask

        block = self.array[region].rechunk(-1).to_delayed().item()
        return dask.delayed(_read, pure=True)(block, self.masked[region])

    def map(self, function: Callable[..., T], blocks: Sequence[PatchBlock], *maps: Array) -> list[T]:
        """Return what a function makes of the parts of all blocks; see `Series.map`."""
        import dask

        task = dask.delayed(_on_part(function), pure=True)
        tasks = [task(self.part(b.region), b, *(a[b.region] for a in maps)) for b in blocks]
        return list(dask.compute(*tasks))


def _read(block: Any, masked: NDArray[np.bool_]) -> Series:
    return read_series(np.asarray(block), -1, masked)


def _on_part(function: Callable[..., T]) -> Callable[..., T]:
    """Return a function of parts that keeps to one thread."""
    return one_thread_per_task(functools.partial(_serially, function))


def _serially(function: Callable[..., T], *arguments: Any) -> T:
    with one_blas_thread():
        return function(*arguments)


def run_lowrank(denoiser: LowRankDenoiser, y: Any) -> LazyLowRankDenoised:
    """Return `LowRankDenoiser.run` of a dask array.

    Levels and the size of patches are found at the call, in a few passes. Maps of one volume are kept in memory.
    """
    model, sigma = as_series_noise(denoiser.noise, denoiser.sigma)
    if not isinstance(model, WhiteNoise):
        msg = f"noise={denoiser.noise!r} of a dask array is not supported. If it fits into memory, pass y.compute()."
        raise ValueError(msg)
    series, axis = _lazy_series(y, denoiser.series_axis, denoiser.mask)
    shape = series.valid.shape
    grids = candidate_grids(denoiser.patch, denoiser.step, shape)
    given = None if sigma is None else np.broadcast_to(level_map(sigma, shape, series.valid), shape)
    if not series.valid.any():
        return _unchanged(y, shape)
    levels, error = (given, 0.0) if given is not None else estimate_noise_map(series)
    if not levels.any():
        return _unchanged(y, shape)
    grid = choose_grid(series, levels, grids)
    sigma = np.where(series.valid, levels, 0.0)
    facts = _Facts(series.valid, error, series.volumes * series.parts, sigma, grid.patch)
    return _lazy(y, axis, series, facts, _tiles(series, levels, regions_of(grid)))


def _lazy_series(y: Any, axis: Any, mask: Any) -> tuple[LazySeries, int]:
    """Return y as a series; refuse what is none before anything is read."""
    import dask.array as da

    inside = isinstance(axis, int | np.integer) and -y.ndim <= axis < y.ndim
    sides = [n if inside and k == axis % y.ndim else min(n, 1) for k, n in enumerate(y.shape)]
    read_series(np.zeros(sides, y.dtype), axis, None)
    axis = int(axis) % y.ndim
    array = da.moveaxis(y, axis, -1).rechunk({y.ndim - 1: -1})
    masked = np.zeros(array.shape[:-1], bool)
    if mask is not None:
        masked = masked | masked_entries(mask, array.shape[:-1], y.shape, axis)
    # One volume of flags: entries that are not valid are known before anything is decided.
    flags = array.map_blocks(_valid, drop_axis=array.ndim - 1, dtype=bool)
    return LazySeries(array, masked, np.asarray(flags.compute()) & ~masked), axis


def _valid(block: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries are finite and not constant over the volumes."""
    if not block.size:
        return np.zeros(block.shape[:-1], bool)
    return np.asarray(np.isfinite(block).all(axis=-1) & (block != block[..., :1]).any(axis=-1))


class _Tile(NamedTuple):
    """A tile of the result: its estimate, the map of the rank, those of the error, and the negative tail."""

    estimate: NDArray[Any]
    rank: Array
    maps: ErrorMaps
    tail: NegativeTail


class _Tiling(NamedTuple):
    """Delayed tiles, as an array, and where they begin and end along each axis."""

    tasks: NDArray[Any]
    edges: list[list[int]]


def _tiles(series: LazySeries, levels: Array, blocks: list[PatchBlock]) -> _Tiling:
    """Return tiles that start where blocks do. Each is the sum of the blocks that reach into it, in their order."""
    import dask

    treat, join = (dask.delayed(_on_part(f), pure=True) for f in (denoise_block, _joined))
    found = [treat(series.part(b.region), b, levels[b.region]) for b in blocks]
    starts = [sorted({b.region[k].start for b in blocks}) for k in range(levels.ndim)]
    edges = [[0, *some[1:], n] for some, n in zip(starts, levels.shape, strict=True)]
    out = np.empty([len(e) - 1 for e in edges], object)
    for at in np.ndindex(out.shape):
        tile = tuple(slice(e[i], e[i + 1]) for e, i in zip(edges, at, strict=True))
        near = [(b.region, sums) for b, sums in zip(blocks, found, strict=True) if _overlap(b.region, tile)]
        cuts = [_shared(region, tile) for region, _ in near]
        out[at] = join(series.part(tile), levels[tile], [sums for _, sums in near], cuts)
    return _Tiling(out, edges)


def _overlap(a: Region, b: Region) -> bool:
    return all(x.start < y.stop and y.start < x.stop for x, y in zip(a, b, strict=True))


def _shared(region: Region, tile: Region) -> tuple[Region, Region]:
    """Return where the overlap of both lies in the region, and in the tile."""
    ends = [(max(r.start, t.start), min(r.stop, t.stop)) for r, t in zip(region, tile, strict=True)]

    def within(whole: Region) -> Region:
        return tuple(slice(a - s.start, b - s.start) for (a, b), s in zip(ends, whole, strict=True))

    return within(region), within(tile)


def _joined(series: Series, levels: Array, found: list[PatchSums], cuts: list[tuple[Region, Region]]) -> _Tile:
    """Return a tile, given the sums of blocks that reach into it."""
    sums = PatchSums(np.zeros_like(series.values), *(np.zeros(levels.shape) for _ in range(3)))
    for some, (source, target) in zip(found, cuts, strict=True):
        for name in ("value", "weight", "divergence", "rank"):
            getattr(sums, name)[target] += getattr(some, name)[source]
    rank = sums.rank / np.where(sums.weight > 0, sums.weight, 1.0)
    value, maps = mean_and_maps(series, levels, sums)
    estimate = series.restored(value)
    return _Tile(estimate, rank, maps, negative_tail(series, estimate, levels))


class _Facts(NamedTuple):
    """What is known before tiles are computed."""

    valid: NDArray[np.bool_]
    level_error: float
    numbers: int
    sigma: Array
    patch: tuple[int, ...]


def _lazy(y: Any, axis: int, series: LazySeries, facts: _Facts, tiles: _Tiling) -> LazyLowRankDenoised:
    """Return the lazy result of tiles."""
    import dask
    import dask.array as da

    arrays = np.empty((*tiles.tasks.shape, 1), object)
    for at in np.ndindex(tiles.tasks.shape):
        sides = [e[i + 1] - e[i] for e, i in zip(tiles.edges, at, strict=True)]
        task: Any = tiles.tasks[at]
        arrays[at][0] = da.from_delayed(task.estimate, (*sides, series.volumes), y.dtype)
    estimate = da.moveaxis(da.block(arrays.tolist()), -1, axis).rechunk(y.chunks)
    maps = [(tile.rank, tile.maps, tile.tail) for tile in tiles.tasks.ravel()]
    whole = dask.delayed(_assembled)(maps, tiles.tasks.shape, dask.delayed(facts, traverse=False))
    mse, stderr = (da.from_delayed(getattr(whole[0], name), (), float) for name in ("predicted_mse", "stderr"))
    return LazyLowRankDenoised(estimate, facts.sigma, facts.patch, mse, stderr, whole)


def _assembled(tiles: list[Any], counts: tuple[int, ...], facts: _Facts) -> tuple[LowRankDenoised, str]:
    """Return everything but the estimate, and why it cannot be trusted."""

    def joined(parts: Sequence[Array]) -> Array:
        grid = np.empty(len(parts), object)
        for k, part in enumerate(parts):
            grid[k] = part
        return np.block(grid.reshape(counts).tolist())

    ranks, maps, tails = zip(*tiles, strict=True)
    errors = ErrorMaps(*(joined(parts) for parts in zip(*maps, strict=True)))
    mse, stderr = predicted_error(errors, facts.valid, facts.numbers, facts.level_error)
    doubt = doubt_about(mse, stderr, functools.reduce(operator.add, tails))
    found = (facts.sigma, joined(ranks), mse, stderr, facts.patch, errors.risk, errors.filtered)
    return LowRankDenoised(np.empty(0), *found), doubt


def _unchanged(y: Any, shape: tuple[int, ...]) -> LazyLowRankDenoised:
    """Return the result for a series without noise."""
    import dask
    import dask.array as da

    zeros, zero = [np.zeros(shape) for _ in range(4)], da.zeros((), dtype=float)
    found = LowRankDenoised(np.empty(0), zeros[0], zeros[1], 0.0, 0.0, (), zeros[2], zeros[3])
    return LazyLowRankDenoised(y, zeros[0], (), zero, zero, dask.delayed((found, ""), traverse=False))
