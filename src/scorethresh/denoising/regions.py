"""Entries that hold no noise: constant regions, such as a background that was set to 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import cropped
from .._threads import thread_map
from .places import Place, tiles_of, widened

# Entries along each axis of the smallest constant region that is taken for a filled background, by the number of
# axes. Smaller ones may be alike by chance where a camera rounds; larger ones would leave narrow backgrounds noisy.
MIN_REGION = {1: 16, 2: 5, 3: 3}
# If fewer entries than this share of a tile equal their neighbours, no region is looked for. It saves time, and misses
# regions that are small against a tile.
MIN_EQUAL_SHARE = 1e-3
# How far beyond a tile regions are looked for: a region, and the entries beside it.
REGION_MARGIN = MIN_REGION[1] + 1


def equal_to_next(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries, (*shape), equal the next ones along all axes; `y` is (channels, parts, *shape)."""
    shape = y.shape[2:]
    same = np.ones(shape, bool)
    for axis in range(len(shape)):
        for part in y.reshape(-1, *shape):
            ahead = np.moveaxis(part, axis, 0)
            np.moveaxis(same, axis, 0)[:-1] &= ahead[:-1] == ahead[1:]
    return same


def constant_regions(y: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return which entries, (*shape), of a tile lie in constant regions; None if none does."""
    from scipy.ndimage import binary_opening

    same = equal_to_next(y)
    if np.count_nonzero(same) < MIN_EQUAL_SHARE * same.size:
        return None
    same = np.asarray(binary_opening(same, np.ones((MIN_REGION[same.ndim],) * same.ndim, bool)))
    for axis in range(same.ndim):
        along = np.moveaxis(same, axis, 0)
        along[1:] |= along[:-1].copy()
    return same if same.any() else None


def noise_free_mask(y: NDArray[Any], missing: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Return which entries hold no noise: missing ones, and constant regions such as a filled background.

    `y` is (channels, parts, *shape). None if all hold noise. Large data are looked at tile by tile, in tiles that
    depend on the shape alone.
    """
    shape = y.shape[2:]
    tiles = tiles_of(shape)
    if len(tiles) == 1:
        found = constant_regions(y)
    else:
        whole = np.zeros(shape, bool)

        def look(tile: Place) -> None:
            wide, inner = widened(tile, REGION_MARGIN, shape)
            some = constant_regions(cropped(y, wide))
            if some is not None:
                whole[tile] = some[inner]

        thread_map(look, tiles)
        found = whole if whole.any() else None
    return missing if found is None else found if missing is None else found | missing
