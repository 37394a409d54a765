"""Crops of large data that tell their noise, and what is looked for tile by tile."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .._arrays import known_floats
from .._threads import thread_map
from ..noise.auto import MOST_CHANNELS
from ..noise.medians import difference_level
from ..noise.outliers import SIDE, find_outliers
from .crops import CROP_SIDE
from .layout import Layout
from .places import Place, tiles_of, widened
from .regions import equal_to_next

# Data of up to this many entries per channel tell their noise as a whole; of larger ones as many entries do, in crops.
# A level read from so many is uncertain by 0.2%, while structure adds 1.5%; more would cost time and memory.
MEASURED_WHOLE = 1 << 22
# Crops that are tried at a time, and how often, until as many are found in which this share of the entries is known
# and not constant.
CROPS, ROUNDS = 16, 3
MIN_USABLE = 0.5
# How far beyond a tile outliers look: their neighbourhood, that of their neighbours, and groups of four.
OUTLIER_MARGIN = 8

# The ratios of a sequence that fills the unit cube evenly, by the number of axes: powers of the inverse of the root of
# ``x^(d + 1) = x + 1``.
EVEN_RATIOS = {1: (0.6180339887,), 2: (0.7548776662, 0.5698402910), 3: (0.8191725134, 0.6710436067, 0.5497004779)}


def is_sampled(shape: tuple[int, ...]) -> bool:
    """Tell whether data of a shape are so large that crops tell their noise."""
    return math.prod(shape) > MEASURED_WHOLE


def sample_places(shape: tuple[int, ...], first: int) -> list[Place]:
    """Return where `CROPS` crops lie, spread evenly: from the one with the number `first` on."""
    sides = [min(CROP_SIDE[len(shape)], n) for n in shape]
    shares = [[(0.5 + k * r) % 1 for r in EVEN_RATIOS[len(shape)]] for k in range(first, first + CROPS)]
    starts = [[int(s * (n - m + 1)) for s, n, m in zip(share, shape, sides, strict=True)] for share in shares]
    return [tuple(slice(i, i + m) for i, m in zip(at, sides, strict=True)) for at in starts]


def noise_sample(shape: tuple[int, ...], read: Callable[[list[Place]], Sequence[Layout]]) -> Layout:
    """Return crops of large data side by side, a row of missing entries between them.

    Crops without noise, such as those of a background that was set to 0, are passed over if there are others.

    Parameters
    ----------
    shape : tuple of int
        Of one channel.
    read : callable
        Returns the crops at some places.
    """
    found: list[tuple[float, Layout]] = []
    for turn in range(ROUNDS):
        found += [(_usable_share(crop), crop) for crop in read(sample_places(shape, turn * CROPS))]
        good = [crop for share, crop in found if share >= MIN_USABLE]
        if len(good) >= CROPS:
            return joined_crops(good[:CROPS])
    found.sort(key=lambda pair: -pair[0])  # stable: among equals the first stay first
    return joined_crops([crop for _, crop in found[:CROPS]])


def _usable_share(crop: Layout) -> float:
    bad = equal_to_next(crop.values)
    if crop.missing is not None:
        bad |= crop.missing
    return 1 - float(bad.mean())


def joined_crops(crops: Sequence[Layout]) -> Layout:
    """Return crops of one shape side by side along their first axis, apart by one row of missing entries."""
    side, *rest = crops[0].shape
    values = np.zeros((*crops[0].values.shape[:2], len(crops) * (side + 1) - 1, *rest), crops[0].values.dtype)
    missing = np.ones(values.shape[2:], bool)
    for k, crop in enumerate(crops):
        part = slice(k * (side + 1), k * (side + 1) + side)
        # What is missing may be NaN or infinite, and integers have no such values.
        known = crop.values if crop.missing is None else np.where(crop.missing, 0, crop.values)
        values[:, :, part] = known
        missing[part] = False if crop.missing is None else crop.missing
    return Layout(values, missing, crops[0].channel_axis)


def outlier_levels(sample: Layout) -> tuple[float, ...]:
    """Return the noise level, per part of the channels that are looked at, which outliers have to exceed."""
    # Structure makes it larger: that is safe.
    return tuple(difference_level(known_floats(part, sample.missing)) for part in _looked_at(sample.values))


def outliers_of(layout: Layout, levels: Sequence[float]) -> NDArray[np.bool_]:
    """Return the outliers of a part of the data, (*shape); near its ends they are not reliable."""
    found = np.zeros(layout.shape, bool)
    if found.ndim == 1 or min(layout.shape) < SIDE:  # spikes of signals are no outliers
        return found
    for part, level in zip(_looked_at(layout.values), levels, strict=True):
        if level > 0:
            found |= find_outliers(known_floats(part, layout.missing), level)
    return found


def with_outliers(layout: Layout, levels: Sequence[float]) -> Layout:
    """Return large data with their outliers, found tile by tile."""
    shape = layout.shape
    found = np.zeros(shape, bool)

    def look(tile: Place) -> None:
        wide, inner = widened(tile, OUTLIER_MARGIN, shape)
        found[tile] = outliers_of(layout.crop(wide), levels)[inner]

    if len(shape) > 1:
        thread_map(look, tiles_of(shape))
    return replace(layout, outliers=found if found.any() else None)


def _looked_at(values: NDArray[np.generic]) -> list[NDArray[np.generic]]:
    return [part for channel in values[:: -(-len(values) // MOST_CHANNELS)] for part in channel]
