"""Crops of large data, on which a plan is fitted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from .._arrays import cropped, slabs
from .._validate import Array
from .batch import Batch
from .places import TILE_ENTRIES, Place

# Of larger data: side and number of the crops that a plan is fitted to. More take time, and stop mattering at some
# million entries in all.
CROP_SIDE = {1: 1 << 18, 2: 512, 3: 64}
SPREAD_CROPS = {1: 4, 2: 4, 3: 2}
# How many more crops are taken where the data vary most, and the side of the blocks whose variance tells. A picture on
# an empty background may be missed by all others.
VARIED_CROPS = 2
BLOCK_SIDE = {1: 256, 2: 16, 3: 8}


def crops_of(batch: Batch) -> list[Place]:
    """Return where to choose: everywhere if the data are one tile, else crops spread over the valid part of the data.

    Two more crops are those that vary most.
    """
    shape = batch.shape
    if math.prod(shape) <= TILE_ENTRIES[len(shape)]:
        return [(slice(None),) * len(shape)]
    ends = [(0, n) for n in shape]
    if batch.valid is not None:
        others = ([b for b in range(len(shape)) if b != axis] for axis in range(len(shape)))
        held = [np.flatnonzero(batch.valid[0].any(axis=tuple(axes))) for axes in others]
        ends = [(int(at[0]), int(at[-1]) + 1) for at in held]
    return crops_within(shape, ends, block_scores(batch))


def crops_within(shape: Sequence[int], ends: Sequence[tuple[int, int]], scores: Array) -> list[Place]:
    """Return crops of large data, spread between the ends of their valid part along each axis, and where they vary.

    Parameters
    ----------
    shape : sequence of int
        Of the data.
    ends : sequence of (int, int)
        Start and stop of the valid part along each axis.
    scores : ndarray
        What `block_scores` says of the data.
    """
    sides = [min(CROP_SIDE[len(shape)], n) for n in shape]
    starts, count = [], SPREAD_CROPS[len(shape)]
    for k in range(count):
        # Along the axes in different orders, so that crops do not line up.
        places = (k, (2 * k + 1) % (count + 1) % count, count - 1 - k)
        ways = zip(ends, sides, shape, places, strict=False)
        starts.append(
            [min(low + int(max(high - low - m, 0) * (p + 0.5) / count), n - m) for (low, high), m, n, p in ways]
        )
    starts += highest_variance_crops(scores, sides)
    return [tuple(slice(s, s + m) for s, m in zip(start, sides, strict=True)) for start in starts]


def block_sides(shape: Sequence[int]) -> list[int]:
    """Return the sides of the blocks whose variance tells where data of a shape vary."""
    return [min(BLOCK_SIDE[len(shape)], CROP_SIDE[len(shape)], n) for n in shape]


def block_scores(batch: Batch, sides: Sequence[int] | None = None) -> Array:
    """Return how much each block varies, or those of given sides: the log of its variance; 0 if it is flat."""
    ndim = len(batch.shape)
    blocks = block_sides(batch.shape) if sides is None else list(sides)
    counts = [n // b for n, b in zip(batch.shape, blocks, strict=True)]
    whole = [slice(count * b) for count, b in zip(counts, blocks, strict=True)]
    split = [n for pair in zip(counts, blocks, strict=True) for n in pair]
    inside, letters = tuple(range(1, 2 * ndim, 2)), "abcdef"[: 2 * ndim]
    score = np.zeros(counts)
    for part in batch.values[0]:
        for rows in slabs((counts[0], math.prod(batch.shape) // counts[0])):  # of blocks
            place = (slice(rows.start * blocks[0], rows.stop * blocks[0]), *whole[1:])
            values = np.asarray(cropped(part, place)).reshape(-1, *split[1:])
            square = np.einsum(f"{letters},{letters}->{letters[::2]}", values, values) / math.prod(blocks)
            score[rows] += np.log(np.maximum(square - np.square(values.mean(axis=inside)), 1.0))
    weights = batch.error_weights
    if weights is not None:
        score *= cropped(weights[0], whole).reshape(split).min(axis=inside)
    return score


def highest_variance_crops(score: Array, sides: Sequence[int]) -> Iterator[list[int]]:
    """Yield where the crops of given sides start that have the largest sums of the scores of blocks."""
    blocks = [min(BLOCK_SIDE[len(sides)], m) for m in sides]
    # Summed over crops that overlap by half.
    lengths = [m // b for m, b in zip(sides, blocks, strict=True)]
    steps = [max(length // 2, 1) for length in lengths]
    for axis, (length, step) in enumerate(zip(lengths, steps, strict=True)):
        views = np.lib.stride_tricks.sliding_window_view(score, length, axis)
        score = np.take(views, range(0, views.shape[axis], step), axis).sum(axis=-1)
    for _ in range(VARIED_CROPS):
        at = np.unravel_index(np.argmax(score), score.shape)
        yield [int(i) * step * b for i, step, b in zip(at, steps, blocks, strict=True)]
        score[tuple(slice(max(i - 1, 0), i + 2) for i in at)] = -1.0


def universal_cap(batch: Batch, places: list[Place]) -> float:
    """Return the largest threshold, over the noise: ``sqrt(2 log n)`` for n entries if a plan is fitted to crops.

    Crops without signal would choose higher ones, and lose what is elsewhere. Infinity if it is fitted to everything.
    """
    whole = len(places) == 1
    return math.inf if whole else math.sqrt(2 * math.log(math.prod(batch.values.shape[1:])))
