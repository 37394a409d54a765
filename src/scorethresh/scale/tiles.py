"""A plan applied to a dask array, tile by tile: the graph, and what runs in the workers."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Floats
from .._threads import one_thread_per_task
from ..denoising.error_map import BlockSums
from ..denoising.places import Place, widened
from ..denoising.plan import Plan
from ..denoising.tiles import local_estimate, local_margin, tile_risk
from ..denoising.way_back import EntrySums
from ..risk.estimate import Estimate
from ..risk.prediction import RiskSums
from .cuts import Chunks, Tile, tile_graph
from .fit import Decisions
from .grid import Grid
from .pieces import FILL_MARGIN, NoiseFacts, Piece

# Entries of a tile of patches that look alike, by the number of axes. Their margins are wide, so that smaller tiles
# waste time: of 1024 x 1024 entries the margins add 60%, of 2048 x 2048 they add 27%. Larger ones take memory.
REFINED_ENTRIES = {1: 1 << 22, 2: 1 << 22, 3: 1 << 23}


class Workload(NamedTuple):
    """What every task needs: the noise, and the plan of each channel. Picklable."""

    facts: NoiseFacts
    plans: tuple[Plan, ...]


class TileSums(NamedTuple):
    """What a tile adds to the prediction."""

    risk: RiskSums
    entries: EntrySums
    blocks: tuple[BlockSums, ...]
    outliers: int


def denoised_tiles(decisions: Decisions) -> Any:
    """Return a dask array, (channels, *shape), whose chunks are pairs: the estimate of a tile, and its `TileSums`.

    The local part of the plans runs in the tiles of data in memory, because divergences are estimated tile by tile.
    """
    import dask
    import dask.array as da

    source, facts, fitted = decisions.source, decisions.facts, decisions.fitted
    plans = tuple(some.plan for some in fitted)
    shape, ndim = source.shape, len(source.shape)
    work = dask.delayed(Workload(facts, plans), pure=True, traverse=False)
    step = plans[0].step

    def on_tiles(function: Any, grid: Grid, rows: int, dtype: Any, *more: Chunks) -> Any:
        tiles = {(0, *index): tile for index, tile in grid.tiles.items()}
        name, graph = tile_graph(function, tiles, [*source.chunks, *more], work)
        return da.Array(graph, name, ((rows,), *grid.chunks), meta=np.empty((0,) * (ndim + 1), dtype))

    grid = Grid.make(shape, _multiple(max(map(local_margin, plans)) + FILL_MARGIN, step), step)
    channels = source.y.shape[0]
    if all(plan.refinement is None for plan in plans):
        return on_tiles(_denoise_tile, grid, channels, object)
    # Value and divergence of every channel with noise, one after the other along the first axis.
    rows = sum(_parts(source.y) + 1 for _ in plans)
    local = on_tiles(_local_tile, grid, rows, facts.centre.dtype)
    reach = max(0 if plan.refinement is None else plan.refinement.expert.reach for plan in plans)
    wide = Grid.make(shape, _multiple(reach + FILL_MARGIN, step), step, REFINED_ENTRIES[ndim])
    return on_tiles(_refine_tile, wide, channels, object, Chunks(local))


def _multiple(margin: int, step: int) -> int:
    return -(-margin // step) * step


def _parts(y: Any) -> int:
    return 2 if y.dtype.kind == "c" else 1


def estimates_of(found: Any, dtype: Any) -> Any:
    """Return the estimates, given what `denoised_tiles` returns."""
    return found.map_blocks(operator.itemgetter(0), dtype=dtype, meta=np.empty((0,) * found.ndim, dtype))


def sums_of(pairs: Any) -> list[Any]:
    """Return the `TileSums` of all tiles, delayed, given the delayed pairs."""
    import dask

    return [dask.delayed(operator.itemgetter(1), pure=True)(pair) for pair in pairs.ravel()]


@one_thread_per_task
def _local_tile(tile: Tile, work: Workload, y: Any, flags: Any, sigma: Any) -> Floats:
    """Return value and divergence of the local estimates of a tile, one channel after the other."""
    piece = Piece.make(y, flags, sigma, work.facts)
    rows = [np.concatenate([value, each[None]]) for value, each in _local_estimates(piece, work.plans, tile.inner)]
    return np.concatenate(rows).astype(work.facts.centre.dtype, copy=False)


def _local_estimates(piece: Piece, plans: tuple[Plan, ...], inner: Place) -> list[tuple[Floats, Floats]]:
    """Return the local estimates of all channels of a tile, with the margins that tiles in memory have."""
    out = []
    shape = piece.values.shape[2:]
    for k, plan in enumerate(plans):
        near, inside = widened(inner, local_margin(plan), shape)
        out.append(local_estimate(plan, piece.batch(k).crops([near]), inside))
    return out


@one_thread_per_task
def _denoise_tile(tile: Tile, work: Workload, y: Any, flags: Any, sigma: Any) -> Any:
    """Return the estimate and the sums of a tile if there are no patches that look alike."""
    piece = Piece.make(y, flags, sigma, work.facts)
    return _finished(piece, _local_estimates(piece, work.plans, tile.inner), tile)


@one_thread_per_task
def _refine_tile(tile: Tile, work: Workload, y: Any, flags: Any, sigma: Any, local: Any) -> Any:
    """Return the estimate and the sums of a tile, given local estimates."""
    inner = tile.inner
    piece = Piece.make(y, flags, sigma, work.facts)
    parts = piece.values.shape[1]
    found = []
    guide = None
    for k, plan in enumerate(work.plans):
        rows = local[k * (parts + 1) : (k + 1) * (parts + 1)]
        estimate = Estimate(np.ascontiguousarray(rows[None, :-1]), rows[None, -1])
        if plan.refinement is not None:
            estimate = plan.refinement.apply(piece.batch(k, guide), estimate)
        if k == 0 and work.facts.rotation is not None:
            guide = np.ascontiguousarray(rows[:-1])
        found.append((estimate.value[0][(slice(None), *inner)], estimate.divergence[0][inner]))
    return _finished(piece, found, tile)


def _finished(piece: Piece, found: list[tuple[Floats, Floats]], tile: Tile) -> Any:
    """Return the estimate of a tile in the units of y, (channels, *shape), and its sums."""
    part = piece.inner(tile.inner)
    whole = tuple(slice(0, n) for n in part.values.shape[2:])
    risks = [
        tile_risk(part.values[k], value, divergence, part.back, k, whole, tile.place)
        for k, (value, divergence) in enumerate(found)
    ]
    restored = part.back.restore(np.stack([value for value, _ in found]))
    estimate = restored.estimate if part.facts.channel_axis is not None else restored.estimate[None]
    outliers = part.back.layout.outliers
    sums = TileSums(
        sum((risk.sums for risk in risks), RiskSums()),
        part.back.entry_sums(restored),
        tuple(risk.blocks for risk in risks),
        0 if outliers is None else int(np.count_nonzero(outliers)),
    )
    return np.ascontiguousarray(estimate), sums
