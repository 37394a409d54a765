"""Values beyond the border, and values for missing entries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._arrays import SLAB_ENTRIES, Floats, reflect_index


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
    values = np.where(missing, 0, values)
    left, size = missing.copy(), 3
    while left.any():
        each = max(size, SLAB_ENTRIES // math.prod(missing.shape[1:]))
        for start in range(0, len(missing), each):
            if left[start : start + each].any():
                _fill_rows(values, missing, left, slice(start, start + each), size)
        size = 2 * size + 1
    return values


def _fill_rows(values: Floats, missing: NDArray[np.bool_], left: NDArray[np.bool_], rows: slice, size: int) -> None:
    """Fill the gaps left in some rows where boxes of a size hold known entries, and take them off what is left."""
    from scipy.ndimage import uniform_filter

    reach = size // 2
    around = slice(max(rows.start - reach, 0), rows.stop + reach)
    inside = slice(rows.start - around.start, rows.stop - around.start)
    gaps = missing[around]
    share = uniform_filter((~gaps).astype(values.dtype), size, mode="constant")[inside]
    reached = left[rows] & (share > 0.5 / size**missing.ndim)
    share = share[reached]
    for channel in values:
        for part in channel:
            mean = uniform_filter(np.where(gaps, 0, part[around]), size, mode="constant")[inside]
            part[rows][reached] = mean[reached] / share
    left[rows] &= ~reached
