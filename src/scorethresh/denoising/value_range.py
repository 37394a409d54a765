"""The range of the values, which is told part by part of the data: infinite ones and fill values are refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from ..noise.medians import quantiles
from ..noise.repeats import SAMPLE_SIZE
from .places import Place

# Largest distance from the median, over that between the quartiles. Beyond, single precision leaves no digits to the
# other entries; known fill values are 1e20 and 9.97e36.
FARTHEST = 1e9

# Squares of values must neither overflow nor vanish.
SMALLEST, LARGEST = 1e-153, 1e153


@dataclass(frozen=True, eq=False)
class ValueRange:
    """What has to be known of all entries that are not missing. `joined` is that of parts of the data together.

    Attributes
    ----------
    present : int
        The number of entries of one channel that are not missing.
    infinite : int
        How many of them are infinite in some channel.
    low, high : tuple of float
        Per channel and part, the smallest and the largest value. Nothing is told of integers.
    sample : tuple of ndarray
        Per channel and part, some entries. Which ones depends on the shape of all the data alone.
    """

    present: int
    infinite: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    sample: tuple[Floats, ...]

    @classmethod
    def of(
        cls,
        values: NDArray[Any],
        missing: NDArray[np.bool_] | None,
        place: Place | None = None,
        shape: Sequence[int] | None = None,
    ) -> ValueRange:
        """Return the range of values, (channels, parts, *shape), or of a tile, with its place in data of a shape."""
        known = None if missing is None else ~missing
        own = values.shape[2:]
        present = math.prod(own) if known is None else int(np.count_nonzero(known))
        if values.dtype.kind != "f":
            return cls(present, 0, (), (), ())
        where: Any = True if known is None else known
        parts = [part for channel in values for part in channel]
        low = tuple(float(part.min(where=where, initial=math.inf)) for part in parts)
        high = tuple(float(part.max(where=where, initial=-math.inf)) for part in parts)
        infinite = 0
        if present and not all(map(math.isfinite, (*low, *high))):
            infinite = int(np.count_nonzero(np.isinf(values).any(axis=(0, 1)) & where))
        place = tuple(slice(0, n) for n in own) if place is None else place
        index = sampled_entries(place, own if shape is None else shape)
        if known is not None:
            index = tuple(axis[known[index]] for axis in index)
        return cls(present, infinite, low, high, tuple(part[index] for part in parts))

    @classmethod
    def joined(cls, ranges: Iterable[ValueRange]) -> ValueRange:
        """Return the range of parts of the data together."""
        found = list(ranges)
        lows, highs = (zip(*ends, strict=True) for ends in ([r.low for r in found], [r.high for r in found]))
        samples = zip(*(r.sample for r in found), strict=True)
        return cls(
            sum(r.present for r in found),
            sum(r.infinite for r in found),
            tuple(map(min, lows)),
            tuple(map(max, highs)),
            tuple(map(np.concatenate, samples)),
        )

    def check(self) -> None:
        """Refuse data of which nothing is known, infinite entries, and values so large that others vanish beside."""
        if self.infinite:
            msg = f"y holds {self.infinite} infinite entries. Mark them as missing: mask=~np.isfinite(y)."
            raise ValueError(msg)
        if not self.present:
            msg = "every entry of y is missing: NaN or masked. Pass at least one."
            raise ValueError(msg)
        largest = max((0.0, *self.high, *(-low for low in self.low)))
        if largest and not SMALLEST <= largest <= LARGEST:
            msg = (
                f"the largest magnitude in y is {largest:.3g}, beyond the range from {SMALLEST:g} to {LARGEST:g} in "
                f"which squares can be computed. Rescale it: y / {largest:.3g}."
            )
            raise ValueError(msg)
        for low, high, some in zip(self.low, self.high, self.sample, strict=True):
            _refuse_fill_values(low, high, some)


def sampled_entries(place: Place, shape: Sequence[int]) -> tuple[NDArray[np.int64], ...]:
    """Return the indices, in a tile, of those entries of the data that are sampled: evenly apart, row after row."""
    step = max(math.prod(shape) // SAMPLE_SIZE, 1)
    sides = tuple(s.stop - s.start for s in place)
    rows = np.zeros(1, np.int64)
    for s, n in zip(place[:-1], shape, strict=False):
        rows = np.add.outer(rows * n, np.arange(s.start, s.stop)).ravel()
    first = rows * shape[-1] + place[-1].start
    columns = (-first % step)[:, None] + step * np.arange(-(-sides[-1] // step))
    row, k = np.nonzero(columns < sides[-1])
    return np.unravel_index(row * sides[-1] + columns[row, k], sides)


def _refuse_fill_values(low: float, high: float, sample: Floats) -> None:
    """Refuse an entry so far from the others that these would vanish beside it."""
    if not sample.size:
        return
    first, centre, third = quantiles(sample.astype(np.float64), (0.25, 0.5, 0.75))
    farthest = high if high - centre > centre - low else low
    if third > first and abs(farthest - centre) > FARTHEST * (third - first):
        msg = (
            f"y holds {farthest:.6g}, {abs(farthest - centre) / (third - first):.0e} times as far from its median "
            f"as its quartiles are apart: a fill value? Mark it as missing: mask=np.isclose(y, {farthest:.6g})."
        )
        raise ValueError(msg)
