"""A plan applied to a channel, tile by tile."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._arrays import Floats, cropped
from .._threads import thread_map
from ..risk.estimate import Estimate
from ..risk.prediction import RiskSums, risk_sums
from .batch import Batch
from .crops import TILE_ENTRIES, Place
from .plan import FittedPlan, Plan
from .way_back import WayBack

# Threads that work on tiles at once, by the number of axes: for volumes few, for the sake of memory.
MOST_THREADS = {1: 4, 2: 4, 3: 2}


class DenoisedChannel(NamedTuple):
    """The estimate of a channel, (parts, *shape), that before the refinement, and the risk."""

    value: Floats
    local: Floats
    sums: RiskSums


def tiles_of(shape: tuple[int, ...], step: int = 1) -> list[Place]:
    """Return tiles of at most TILE_ENTRIES that start at multiples of `step`, by halving the longest axis."""
    counts = [1] * len(shape)
    while math.prod(-(-n // c) for n, c in zip(shape, counts, strict=True)) > TILE_ENTRIES[len(shape)]:
        k = max(range(len(shape)), key=lambda i: shape[i] / counts[i])
        counts[k] *= 2
    edges = [[*(n * i // c // step * step for i in range(c)), n] for n, c in zip(shape, counts, strict=True)]
    return list(itertools.product(*([slice(*ends) for ends in itertools.pairwise(e)] for e in edges)))


def denoise_tiles(plan: Plan, batch: Batch, back: WayBack, channel: int, done: Callable[[], None]) -> DenoisedChannel:
    """Apply a plan to a channel: its local part tile by tile, each looking beyond its border as far as that reaches.

    The refinement compares patches all over the channel, and splits its work by itself.
    """
    margin = -(-plan.experts.reach // plan.step) * plan.step
    shape, tiles = batch.shape, tiles_of(batch.shape, plan.step)
    out = np.empty_like(batch.values[0])
    # Kept only if it is needed once more.
    divergence = None if plan.refinement is None else np.empty(shape, out.dtype)

    def run(tile: Place) -> RiskSums:
        wide = tuple(slice(max(s.start - margin, 0), min(s.stop + margin, n)) for s, n in zip(tile, shape, strict=True))
        inner = tuple(slice(s.start - w.start, s.stop - w.start) for s, w in zip(tile, wide, strict=True))
        piece = batch.crops([wide])
        if wide != tile and piece.error_weights is None:
            # With weights, divergences are found where they arise. A mean over the piece would hold its margins.
            piece = replace(piece, weights=np.ones((1, *piece.shape), out.dtype))
        estimate = plan.local(piece)
        value = cropped(estimate.value[0], inner)
        each = cropped(np.broadcast_to(estimate.divergence[0], piece.shape), inner)
        cropped(out, tile)[...] = value
        if divergence is None:
            sums = tile_sums(cropped(piece.values[0], inner), value, each, back, channel, tile)
        else:
            sums = RiskSums()
            divergence[tile] = each
        done()
        return sums

    sums = sum(thread_map(run, tiles, MOST_THREADS[len(shape)]), RiskSums())
    if plan.refinement is None or divergence is None:
        return DenoisedChannel(out, out, sums)
    estimate = plan.refinement.apply(batch, Estimate(out[None], divergence[None]), done)
    return DenoisedChannel(estimate.value[0], out, _sums(estimate, batch, back, channel, tiles))


def denoise_whole(fitted: FittedPlan, batch: Batch, back: WayBack, channel: int) -> DenoisedChannel:
    """Return the estimate that a plan made of the whole channel when it was fitted."""
    whole = tuple(slice(0, n) for n in batch.shape)
    sums = _sums(fitted.estimate, batch, back, channel, [whole])
    return DenoisedChannel(fitted.estimate.value[0], fitted.local.value[0], sums)


def _sums(estimate: Estimate, batch: Batch, back: WayBack, channel: int, tiles: list[Place]) -> RiskSums:
    """Return the risk of an estimate of the whole channel, summed tile by tile to save memory."""
    divergence = np.broadcast_to(estimate.divergence[0], batch.shape)
    y, value = batch.values[0], estimate.value[0]
    found = [tile_sums(cropped(y, tile), cropped(value, tile), divergence[tile], back, channel, tile) for tile in tiles]
    return sum(found, RiskSums())


def tile_sums(y: Floats, value: Floats, divergence: Floats, back: WayBack, channel: int, tile: Place) -> RiskSums:
    """Return the risk and the divergence of a tile, (parts, *shape), weighted to the units of y squared."""
    residual = np.square(y - value).sum(axis=0, dtype=np.float64)
    factor, weight = back.local_noise(channel, tile, value)
    variance = len(y) * factor * back.covariances[channel].variance
    return risk_sums(residual, divergence * factor, variance, weight)
