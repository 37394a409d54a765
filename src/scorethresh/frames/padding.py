"""Values beyond the border, and values for missing entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, reflect_index


def reflect_pad(y: Floats, pads: Sequence[tuple[int, int]]) -> Floats:
    """Extend the last axes of `y` by reflection, the border entry repeated; `pads` are (before, after) per axis."""
    for axis, (before, after) in zip(range(-len(pads), 0), pads, strict=True):
        if before or after:
            n = y.shape[axis]
            y = np.take(y, reflect_index(np.arange(-before, n + after), n), axis)
    return np.ascontiguousarray(y)


def fill_gaps(values: Floats, missing: NDArray[np.bool_]) -> Floats:
    """Replace missing entries by the mean of the known ones in the smallest box that holds any.

    Boxes around an entry have 3, 7, 15, ... entries along each axis. `values` has two leading axes before those of
    `missing`.
    """
    from scipy.ndimage import uniform_filter

    values = np.where(missing, 0, values)
    known = (~missing).astype(values.dtype)
    left = missing.copy()
    size = 3
    while left.any():
        share = uniform_filter(known, size, mode="constant")
        reached = left & (share > 0.5 / size**missing.ndim)
        for channel in values:
            for part in channel:
                mean = uniform_filter(np.where(missing, 0, part), size, mode="constant")
                part[reached] = mean[reached] / share[reached]
        left &= ~reached
        size = 2 * size + 1
    return values
