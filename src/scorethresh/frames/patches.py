"""Groups of patches that look alike, each combined with the others of its group."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._kernels import MEMBERS, PATCH_SIZE, Ridge, match_patches, ridge_groups
from .._threads import cores, thread_map
from .windows import WindowEstimate

# References that a thread treats at once, at least. More save work on overlaps, fewer spread better over threads. The
# result depends on it only by rounding, and not on the number of threads.
BAND = 2048
# Bands per core that are treated before their sums are added up: few, for the sake of memory.
BANDS_AT_ONCE = 2

# Patches are weighted by the inverse of the noise variance that their combination lets through, but that is taken to be
# at least this. Chosen on 14 photographs at four noise levels: 0.003 and 0.03 cost 0.01 dB, 0.1 costs 0.02.
LEAST_POWER = 0.01


@dataclass(frozen=True)
class Patches:
    """References at every `step`-th entry, each with the patches around it that look most like it.

    Attributes
    ----------
    block : tuple of int
        The sides of a patch: powers of 2, 64 entries in all.
    step : int
        The distance of neighbouring references.
    search : int
        How far, along each axis, the patches of a group may lie from the reference.
    """

    block: tuple[int, ...]
    step: int
    search: int

    def __post_init__(self) -> None:
        if math.prod(self.block) != PATCH_SIZE or any(b & (b - 1) for b in self.block):
            msg = f"the sides of a patch must be powers of 2 with product {PATCH_SIZE}, got {self.block}."
            raise ValueError(msg)
        if not 1 <= self.step <= min(self.block):
            msg = f"step must lie between 1 and {min(self.block)}, or entries are left out, got {self.step}."
            raise ValueError(msg)

    @property
    def reach(self) -> int:
        """How far an entry of the result lies, at most, from the data that it depends on."""
        return 2 * self.search + max(self.block) - 1

    def fit(self, shape: tuple[int, ...]) -> bool:
        """Tell whether data of a shape hold enough patches for a group."""
        return math.prod(max(n - b + 1, 0) for n, b in zip(shape, self.block, strict=True)) >= MEMBERS

    def match(self, x: Floats, first_starts: NDArray[np.int64] | None = None) -> NDArray[np.int32]:
        """Return, for every reference, where its patches start; `x` is (parts, *shape).

        Nearest in the sum of squared differences, over all parts. The result is (references, MEMBERS), of indices
        into the flat data of one part. The nearest one is the reference itself. References may be those that start at
        some places along the first axis only.
        """
        shape, block = as_volume(x.shape[1:]), as_volume(self.block)
        starts = [reference_starts(n, b, self.step) for n, b in zip(shape, block, strict=True)]
        if first_starts is not None:
            starts[3 - len(self.block)] = first_starts
        rows, columns = np.array(list(itertools.product(*starts[:2]))), starts[2]
        each = max(BAND // len(columns), 1)
        # A signal has one row. Of that, columns are split.
        bands = [(rows[i : i + each], columns) for i in range(0, len(rows), each)]
        if len(rows) == 1:
            bands = [(rows, columns[i : i + BAND]) for i in range(0, len(columns), BAND)]
        volume, offsets = np.ascontiguousarray(x).reshape(len(x), *shape), search_offsets(len(self.block), self.search)
        return np.concatenate(thread_map(lambda band: match_patches(volume, block, *band, offsets), bands))

    def combine(
        self, places: NDArray[np.int32], pilot: Floats, data: Floats, level: float, share: float = 0.0
    ) -> WindowEstimate:
        """Return the average of all patches, each replaced by a combination of its group.

        Parameters
        ----------
        places : ndarray
            What `match` returned.
        pilot : ndarray
            (parts, *shape).
        data : ndarray
            (parts or more, *shape). Parts beyond those of the pilot are combined as the others are.
        level : float
            The noise level of the data.
        share : float
            The share of the data's own products in those that decide; the rest are the pilot's.

        Returns
        -------
        WindowEstimate
            The divergence is that for given places, pilot and weights, over the noise variance.

        Notes
        -----
        With the patches of a group as columns of X (pilot) and Y (data), less their mean, n entries each, the estimate
        is ``Y (I - n level^2 (X'X + n level^2 I)^-1)``: the linear combinations of least risk if X were the truth.
        """
        shape, block = as_volume(data.shape[1:]), as_volume(self.block)
        x, y = (np.ascontiguousarray(v).reshape(len(v), *shape) for v in (pilot, data))
        ridge = Ridge(level, share, LEAST_POWER)
        references = zip(data.shape[2:], self.block[1:], strict=True)
        each = math.prod(reference_starts(n, b, self.step).size for n, b in references)
        band = each * self.band_rows(data.shape[1:])
        bands = [places[i : i + band] for i in range(0, len(places), band)]
        total = np.zeros((len(data), math.prod(shape)), data.dtype)
        weight, divergence = np.zeros((2, math.prod(shape)), data.dtype)
        many = BANDS_AT_ONCE * cores()
        for k in range(0, len(bands), many):
            for found in thread_map(lambda band: ridge_groups(x, y, block, band, ridge), bands[k : k + many]):
                part = slice(found.first, found.first + found.weight.size)
                total[:, part] += found.total
                weight[part] += found.weight
                divergence[part] += found.divergence
        total /= weight
        divergence /= weight
        return WindowEstimate(total.reshape(data.shape), divergence.reshape(data.shape[1:]))

    def band_rows(self, shape: tuple[int, ...]) -> int:
        """Return how many references along the first axis, with all beside them, to treat at once.

        As far as their patches reach beyond, and at least `BAND` in all.
        """
        each = math.prod(reference_starts(n, b, self.step).size for n, b in zip(shape[1:], self.block[1:], strict=True))
        return max(-(-BAND // each), -(-(2 * self.search + self.block[0]) // self.step))


def as_volume(sides: tuple[int, ...]) -> tuple[int, int, int]:
    """Return three sides, with ones for axes that are not there."""
    z, y, x = (1,) * (3 - len(sides)) + tuple(sides)
    return z, y, x


def reference_starts(n: int, block: int, step: int) -> NDArray[np.int64]:
    """Return where references start along an axis: every `step` entries, and the last one at the border."""
    return np.unique(np.append(np.arange(0, n - block + 1, step), n - block)).astype(np.int64)


@functools.cache
def search_offsets(ndim: int, search: int) -> NDArray[np.int64]:
    """Return all offsets within the search, near ones first."""
    sides = [range(-search, search + 1) if axis >= 3 - ndim else range(1) for axis in range(3)]
    every = np.array(list(itertools.product(*sides)), np.int64)
    out: NDArray[np.int64] = every[np.argsort(np.square(every).sum(axis=1), kind="stable")]
    out.flags.writeable = False
    return out
