"""Places in the data: tiles, and tiles with a margin."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

# By the number of axes: entries of data that are treated as a whole, and into how many tiles as many entries of larger
# data are cut. Larger tiles waste less on margins and take more memory: 2048 x 2048 pixels take 206 MB with 1, 161 with
# 2, 125 to 144 with 4, which takes 4 to 11% more time than 2. Divergences of bands are read tile by tile: predictions
# move by 1 to 2% with the size of the tiles.
TILE_ENTRIES = {1: 1 << 20, 2: 1 << 20, 3: 1 << 19}
TILES_PER_WHOLE = {1: 1, 2: 4, 3: 1}

Place = tuple[slice, ...]


def tile_edges(shape: Sequence[int], step: int = 1, entries: int | None = None) -> list[list[int]]:
    """Return where tiles begin and end along each axis, by halving the longest axis.

    A tile has at most so many entries. By default data of TILE_ENTRIES are one tile, and larger ones are cut into tiles
    of a share of that. All but the last edge are multiples of `step`, so tiles are no shorter than that.
    """
    if entries is None:
        entries = TILE_ENTRIES[len(shape)]
        entries = entries if math.prod(shape) <= entries else entries // TILES_PER_WHOLE[len(shape)]
    counts = [1] * len(shape)
    while math.prod(-(-n // c) for n, c in zip(shape, counts, strict=True)) > entries:
        k = max(range(len(shape)), key=lambda i: shape[i] / counts[i])
        counts[k] *= 2
    return [
        [*dict.fromkeys(n * i // c // step * step for i in range(c)), n] for n, c in zip(shape, counts, strict=True)
    ]


def tiles_of(shape: Sequence[int], step: int = 1) -> list[Place]:
    """Return tiles of at most TILE_ENTRIES that start at multiples of `step`."""
    edges = tile_edges(shape, step)
    return list(itertools.product(*([slice(*ends) for ends in itertools.pairwise(e)] for e in edges)))


def widened(tile: Place, margin: int, shape: Sequence[int]) -> tuple[Place, Place]:
    """Return a tile with a margin, as far as the data go, and the place of the tile in it."""
    wide = tuple(slice(max(s.start - margin, 0), min(s.stop + margin, n)) for s, n in zip(tile, shape, strict=True))
    return wide, tuple(slice(s.start - w.start, s.stop - w.start) for s, w in zip(tile, wide, strict=True))
