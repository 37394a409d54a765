"""Overlapping patches of an array: where they lie, in blocks that are cut out and added up again together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._arrays import Floats

__all__ = ["PatchBlock", "PatchGrid", "cut_blocks"]


@dataclass(frozen=True)
class PatchBlock:
    """Patches whose corners form a grid.

    Attributes
    ----------
    corners : tuple of tuple of int
        The first index of the patches along every axis.
    patch : tuple of int
        The size of a patch.
    place : tuple of slice
        Which patches of the grid they are.
    """

    corners: tuple[tuple[int, ...], ...]
    patch: tuple[int, ...]
    place: tuple[slice, ...]

    @property
    def count(self) -> int:
        """The number of patches."""
        return math.prod(map(len, self.corners))

    @property
    def region(self) -> tuple[slice, ...]:
        """What the patches cover, as slices of the array."""
        return tuple(slice(c[0], c[-1] + size) for c, size in zip(self.corners, self.patch, strict=True))

    def split(self, most: int) -> list[PatchBlock]:
        """Return the same patches as blocks of at most `most`, placed relative to the region."""
        inner = tuple(tuple(i - c[0] for i in c) for c in self.corners)
        return cut_blocks(inner, self.patch, most)

    def _offsets(self) -> Iterator[tuple[int, Any]]:
        """Yield the number of each entry of a patch, and where it lies in the region for all patches."""
        starts = [np.subtract(c, c[0]) for c in self.corners]
        steps = [np.unique(np.diff(start)) for start in starts]
        even = all(step.size <= 1 for step in steps)
        for number, offset in enumerate(itertools.product(*map(range, self.patch))):
            if even:  # slices are copied faster than lists of indices
                yield (
                    number,
                    tuple(
                        slice(o, o + int(start[-1]) + 1, int(step.max(initial=1)))
                        for o, start, step in zip(offset, starts, steps, strict=True)
                    ),
                )
            else:
                yield number, np.ix_(*(start + o for start, o in zip(starts, offset, strict=True)))

    def cut(self, region: Floats) -> Floats:
        """Return the patches of a region, (patches, entries, ...)."""
        ndim = len(self.patch)
        out = np.empty((self.count, math.prod(self.patch), *region.shape[ndim:]), dtype=region.dtype)
        for number, index in self._offsets():
            out[:, number] = region[index].reshape(self.count, *region.shape[ndim:])
        return out

    def add_up(self, patches: Floats) -> Floats:
        """Return the sum of patches, (patches, entries, ...), where they overlap, over the region."""
        shape = [s.stop - s.start for s in self.region]
        out = np.zeros((*shape, *patches.shape[2:]), dtype=patches.dtype)
        grid = tuple(map(len, self.corners))
        for number, index in self._offsets():
            out[index] += patches[:, number].reshape(*grid, *patches.shape[2:])
        return out


@dataclass(frozen=True)
class PatchGrid:
    """All patches of an array.

    Attributes
    ----------
    shape : tuple of int
        The shape of the array.
    patch, step : tuple of int
        The size of a patch, and the distance of its neighbours, along every axis. The last patch ends at the border.
    """

    shape: tuple[int, ...]
    patch: tuple[int, ...]
    step: tuple[int, ...]

    def corners(self) -> tuple[tuple[int, ...], ...]:
        """Return the first index of the patches along every axis."""
        axes = zip(self.shape, self.patch, self.step, strict=True)
        return tuple(tuple(sorted({*range(0, n - p, s), n - p})) for n, p, s in axes)

    def blocks(self, most: int) -> list[PatchBlock]:
        """Return blocks of at most `most` patches each."""
        return cut_blocks(self.corners(), self.patch, most)


def cut_blocks(corners: tuple[tuple[int, ...], ...], patch: tuple[int, ...], most: int) -> list[PatchBlock]:
    """Return blocks of at most `most` patches, as close to cubes as halving the longest axis makes them."""
    counts = [1] * len(corners)

    def longest(axis: int) -> float:
        return len(corners[axis]) / counts[axis]

    while math.prod(-(-len(c) // n) for c, n in zip(corners, counts, strict=True)) > most:
        axis = max(range(len(corners)), key=longest)
        if longest(axis) <= 1:
            break
        counts[axis] *= 2
    cuts = []
    for c, n in zip(corners, counts, strict=True):
        ends = [len(c) * i // n for i in range(n + 1)]
        cuts.append([slice(a, b) for a, b in itertools.pairwise(ends) if a < b])
    return [
        PatchBlock(tuple(c[s] for c, s in zip(corners, place, strict=True)), patch, place)
        for place in itertools.product(*cuts)
    ]
