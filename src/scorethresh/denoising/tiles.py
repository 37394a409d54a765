"""A plan applied to a channel, tile by tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Floats, cropped
from .._threads import thread_map
from .._validate import Array
from ..risk.estimate import Estimate
from ..risk.prediction import RiskSums, risk_sums
from .batch import Batch
from .error_map import BlockSums, block_sums, joined
from .experts.nonlocal_ridge import REPORTS
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
    out = np.empty_like(batch.values[0])
    # Kept only if it is needed once more.
    divergence = None if plan.refinement is None else np.empty(shape, out.dtype)

    def run(tile: Place) -> TileRisk | None:
        wide, inner = widened(tile, margin, shape)
        piece = batch.crops([wide])
        value, each = local_estimate(plan, piece, inner)
        cropped(out, tile)[...] = value
        if divergence is None:
            found = tile_risk(cropped(piece.values[0], inner), value, each, back, channel, tile)
        else:
            found = None
            divergence[tile] = each
        done()
        return found

    risks = [risk for risk in thread_map(run, tiles, MOST_THREADS[len(shape)]) if risk is not None]
    if plan.refinement is None or divergence is None:
        return DenoisedChannel(out, out, *_joined(shape, risks))
    # Other channels compare their patches in the local estimate of the first; else the result may take its place.
    value = out.copy() if channel == 0 and back.rotation is not None else out
    reports = 0
    for rows, found in plan.refinement.rows(batch, Estimate(out[None], divergence[None])):
        value[:, rows], divergence[rows] = found.value[0], found.divergence[0]
        while reports < REPORTS * rows.stop // shape[0]:
            done()
            reports += 1
    estimate = Estimate(value[None], divergence[None])
    return DenoisedChannel(value, out, *_risk(estimate, batch, back, channel, tiles))


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
    whole = tuple(slice(0, n) for n in batch.shape)
    risk = _risk(fitted.estimate, batch, back, channel, [whole])
    return DenoisedChannel(fitted.estimate.value[0], fitted.local.value[0], *risk)


def _risk(estimate: Estimate, batch: Batch, back: WayBack, channel: int, tiles: list[Place]) -> tuple[RiskSums, Array]:
    """Return the risk of an estimate of the whole channel, summed tile by tile to save memory."""
    divergence = np.broadcast_to(estimate.divergence[0], batch.shape)
    y, value = batch.values[0], estimate.value[0]
    found = [tile_risk(cropped(y, tile), cropped(value, tile), divergence[tile], back, channel, tile) for tile in tiles]
    return _joined(batch.shape, found)


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
