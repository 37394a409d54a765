"""A plan applied to a channel, tile by tile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Floats, cropped
from .._threads import thread_map
from .._validate import Array
from ..risk.prediction import RiskSums, risk_sums
from .batch import Batch
from .error_map import BlockSums, block_sums, joined
from .experts.nonlocal_ridge import REPORTS
from .local import LocalRows
from .places import Place, tiles_of, widened
from .plan import FittedPlan, Plan
from .way_back import WayBack

# Threads that work on tiles at once, by the number of axes: for volumes few, for the sake of memory.
MOST_THREADS = {1: 4, 2: 4, 3: 2}


class DenoisedChannel(NamedTuple):
    """The estimate of a channel, (parts, *shape), that before the refinement, and the risk, also block by block.

    That before the refinement is kept if another channel needs it.
    """

    value: Floats
    local: Floats
    sums: RiskSums
    blocks: Array


class LocalTile(NamedTuple):
    """Values of a tile, their local estimate, (parts, *shape), and its divergence, (*shape)."""

    y: Floats
    value: Floats
    divergence: Floats


class TileRisk(NamedTuple):
    """The risk of a tile, also block by block."""

    sums: RiskSums
    blocks: BlockSums


def denoise_tiles(plan: Plan, batch: Batch, back: WayBack, channel: int, done: Callable[[], None]) -> DenoisedChannel:
    """Apply a plan to a channel: its local part tile by tile, each looking beyond its border as far as that reaches.

    The refinement compares patches all over the channel, from its first rows to its last.
    """
    margin = local_margin(plan)
    shape, tiles = batch.shape, tiles_of(batch.shape, plan.step)
    most_threads = MOST_THREADS[len(shape)]
    out = np.empty(batch.values.shape[1:], batch.values.dtype)

    def local(tile: Place) -> LocalTile:
        wide, inner = widened(tile, margin, shape)
        piece = batch.crops([wide])
        value, each = local_estimate(plan, piece, inner)
        cropped(out, tile)[...] = value
        return LocalTile(cropped(piece.values[0], inner), value, each)

    def told(tile: Place) -> TileRisk:
        found = tile_risk(*local(tile), back, channel, tile)
        done()
        return found

    if plan.refinement is None:
        return DenoisedChannel(out, out, *_joined(shape, thread_map(told, tiles, most_threads)))

    def bands() -> Iterator[Floats]:
        for rows, some in row_bands(tiles, most_threads):
            divergence = np.empty((rows.stop - rows.start, *shape[1:]), out.dtype)

            def fill(tile: Place, first: int = rows.start, divergence: Floats = divergence) -> None:
                divergence[slice(tile[0].start - first, tile[0].stop - first), *tile[1:]] = local(tile).divergence
                done()

            thread_map(fill, some, most_threads)
            yield divergence

    # Other channels compare their patches in the local estimate of the first; else the result may take its place.
    value = np.empty_like(out) if channel == 0 and back.rotation is not None else out
    reports = 0
    risks = []
    for rows, found in plan.refinement.rows(batch, LocalRows(out, bands())):
        value[:, rows] = found.value[0]
        place = (rows, *(slice(0, n) for n in shape[1:]))
        y = np.asarray(cropped(batch.values[0], place))
        risks.append(tile_risk(y, found.value[0], found.divergence[0], back, channel, place))
        while reports < REPORTS * rows.stop // shape[0]:
            done()
            reports += 1
    return DenoisedChannel(value, out, *_joined(shape, risks))


def row_bands(tiles: list[Place], count: int) -> Iterator[tuple[slice, list[Place]]]:
    """Yield rows that tiles fill, and these tiles: the fewest rows with at least so many tiles, or what is left."""
    band: list[Place] = []
    for _, some in itertools.groupby(tiles, lambda tile: tile[0].start):
        band += some
        if len(band) >= count or band[-1] == tiles[-1]:
            yield slice(band[0][0].start, band[-1][0].stop), band
            band = []


def local_margin(plan: Plan) -> int:
    """Return how far beyond a tile the local part of a plan looks, at most: a multiple of its step."""
    return -(-plan.local_reach // plan.step) * plan.step


def local_estimate(plan: Plan, piece: Batch, inner: Place) -> tuple[Floats, Floats]:
    """Return the local estimate of a tile, (parts, *shape), and its divergence, (*shape).

    `piece` is the tile with its margins, `inner` the place of the tile in it.
    """
    if any(s.stop - s.start < n for s, n in zip(inner, piece.shape, strict=True)) and piece.error_weights is None:
        # With weights, divergences are found where they arise. A mean over the piece would hold its margins.
        piece = replace(piece, weights=np.broadcast_to(piece.values.dtype.type(1), (1, *piece.shape)))
    estimate = plan.local(piece)
    return cropped(estimate.value[0], inner), cropped(np.broadcast_to(estimate.divergence[0], piece.shape), inner)


def denoise_whole(fitted: FittedPlan, batch: Batch, back: WayBack, channel: int) -> DenoisedChannel:
    """Return the estimate that a plan made of the whole channel when it was fitted."""
    value, divergence = fitted.estimate.value[0], np.broadcast_to(fitted.estimate.divergence[0], batch.shape)
    whole = tuple(slice(0, n) for n in batch.shape)
    risk = tile_risk(batch.values[0], value, divergence, back, channel, whole)
    return DenoisedChannel(value, fitted.local.value[0], *_joined(batch.shape, [risk]))


def _joined(shape: tuple[int, ...], risks: list[TileRisk]) -> tuple[RiskSums, Array]:
    return sum((risk.sums for risk in risks), RiskSums()), joined(shape, (risk.blocks for risk in risks))


def tile_risk(
    y: Floats, value: Floats, divergence: Floats, back: WayBack, channel: int, tile: Place, place: Place | None = None
) -> TileRisk:
    """Return the risk and the divergence of a tile, (parts, *shape), weighted to the units of y squared.

    `tile` is its place in the data of the way back, `place` that in the whole, if these are a part of it.
    """
    risk, each, variance, weight = entry_risk(y, value, divergence, back, channel, tile)
    return TileRisk(risk_sums(risk, each, weight), block_sums(place or tile, risk, each, variance, weight))


class EntryRisk(NamedTuple):
    """Of every entry, (*shape): risk, divergence and noise variance; and the weight that makes their unit that of y."""

    risk: Floats
    divergence: Floats
    variance: Any
    weight: Any


def entry_risk(y: Floats, value: Floats, divergence: Floats, back: WayBack, channel: int, tile: Place) -> EntryRisk:
    """Return the risk of a tile entry by entry; see `tile_risk`.

    The covariance of y with its estimate is the divergence of stabilised values times the noise variance of y: the
    slope of the way back is ``Var y / Cov(y, z)``, z the stabilised value, exactly for counts and speckle.
    """
    own = back.own_risk(channel, tile, value)
    if own is not None:
        each = divergence * own.variance
        return EntryRisk(own.excess + 2 * each, each, own.variance, own.valid)
    difference = y - value
    risk = np.square(difference, out=difference).sum(axis=0, dtype=np.float64)
    del difference
    factor, weight = back.local_noise(channel, tile, value)
    variance = len(y) * factor * back.covariances[channel].variance
    each = divergence * factor
    risk -= variance
    risk += 2 * each
    return EntryRisk(risk, each, variance, weight)
