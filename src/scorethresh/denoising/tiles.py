"""A plan applied to a channel, tile by tile."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
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
    """The estimate of a channel, (parts, *shape), and its risk."""

    value: Floats
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
    """Apply a plan to a channel, tile by tile; each looks beyond its border as far as the plan reaches."""
    margin = -(-plan.reach // plan.step) * plan.step
    shape = batch.shape
    out = np.empty_like(batch.values[0])

    def run(tile: Place) -> RiskSums:
        wide = tuple(slice(max(s.start - margin, 0), min(s.stop + margin, n)) for s, n in zip(tile, shape, strict=True))
        inner = tuple(slice(s.start - w.start, s.stop - w.start) for s, w in zip(tile, wide, strict=True))
        piece = batch.crops([wide])
        estimate = plan.apply(piece)
        value = cropped(estimate.value[0], inner)
        divergence = cropped(np.broadcast_to(estimate.divergence[0], piece.shape), inner)
        cropped(out, tile)[...] = value
        sums = tile_sums(cropped(piece.values[0], inner), value, divergence, back, channel, tile)
        done()
        return sums

    found = thread_map(run, tiles_of(shape, plan.step), MOST_THREADS[len(shape)])
    return DenoisedChannel(out, sum(found, RiskSums()))


def denoise_whole(fitted: FittedPlan, batch: Batch, back: WayBack, channel: int) -> DenoisedChannel:
    """Return the estimate that a plan made of the whole channel when it was fitted."""
    estimate: Estimate = fitted.estimate
    whole = tuple(slice(0, n) for n in batch.shape)
    divergence = np.broadcast_to(estimate.divergence[0], batch.shape)
    return DenoisedChannel(
        estimate.value[0], tile_sums(batch.values[0], estimate.value[0], divergence, back, channel, whole)
    )


def tile_sums(y: Floats, value: Floats, divergence: Floats, back: WayBack, channel: int, tile: Place) -> RiskSums:
    """Return the risk and the divergence of a tile, (parts, *shape), weighted to the units of y squared."""
    residual = np.square(y - value).sum(axis=0, dtype=np.float64)
    factor, weight = back.local_noise(channel, tile, value)
    variance = len(y) * factor * back.covariances[channel].variance
    return risk_sums(residual, divergence * factor, variance, weight)
