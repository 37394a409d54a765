"""Windows of the data and their DCT, from which the level and the spectrum of the noise are estimated.

White noise has the same variance at all frequencies of a window. A signal that is smooth or has few edges fills the low
ones, and leaves many windows alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validate import Array
from ..frames.dct import dct_matrix

# The median of |Z|, Z standard normal: the median of magnitudes of noise, over this, is its level.
MEDIAN_OF_NORMAL = 0.6744897501960817

# Entries of all windows together: from larger data, fewer windows are taken. More windows cost time and memory.
MAX_WINDOW_ENTRIES = 2_500_000
# Entries of the data that tell their centre and whether values repeat. Both are the same for any large sample.
SAMPLE_SIZE = 100_000
# Values repeat if more than this share of the distinct ones occurs twice in the sample.
REPEATED_SHARE = 0.5
# Largest share of equal neighbours in a usable window if values repeat. Noise of half a rounding step reaches it.
EQUAL_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class WindowSet:
    """Windows of one size.

    `means` holds the mean of each window, `coefficients` its DCT as (windows, *block). The data have `entries` entries
    per window, fewer than the window has, because windows overlap.
    """

    means: Array
    coefficients: Array
    entries: int

    @property
    def block(self) -> tuple[int, ...]:
        """The shape of a window."""
        return self.coefficients.shape[1:]

    def away_from(self, limits: Sequence[float], distance: float) -> WindowSet:
        """Return the windows whose means are farther than `distance` from every limit."""
        far = np.all([np.abs(self.means - limit) > distance for limit in limits], axis=0)
        return WindowSet(self.means[far], self.coefficients[far], self.entries)


def frequency_sums(block: Sequence[int]) -> NDArray[np.int64]:
    """Return the sum of the frequencies along all axes, for each coefficient of a window."""
    out: NDArray[np.int64] = np.indices(block).sum(axis=0)
    return out


def relative_frequencies(block: Sequence[int]) -> Array:
    """Return the sum of the frequencies over its largest value: 0 for the mean of the window, 1 for the highest."""
    sums = frequency_sums(block)
    return sums / max(int(sums.max()), 1)


def dct_of_windows(windows: Array) -> Array:
    """Return the orthonormal DCT of every window; windows are (windows, *block)."""
    out = windows
    for _ in range(windows.ndim - 1):
        out = np.moveaxis(out, 1, -1) @ dct_matrix(out.shape[1]).T
    return out


def dct_filters(block: Sequence[int]) -> list[Array]:
    """Return the filters of each axis whose products are the coefficients of a window."""
    return [dct_matrix(size) for size in block]


def is_constant(y: Array) -> bool:
    """Return whether all known entries are equal; raise ValueError if there are none. NaN marks missing entries."""
    low, high = _range(y)
    if math.isnan(low):
        msg = f"y holds no known entries, with shape {y.shape}: all are NaN. Pass at least two."
        raise ValueError(msg)
    return low == high


def normalise(y: Array) -> tuple[Array, int]:
    """Return ``(y - centre) / 2^exponent``, with magnitudes of at most 1 for data between 1e-300 and 1e300.

    Squares of the result neither overflow nor vanish, in whatever units y is. Division by a power of 2 is exact. The
    centre is a median, so that an outlier does not swallow noise that is many orders of magnitude below it. Returned
    are the result and the exponent.
    """
    low, high = _range(y)
    first = _exponent(max(high, -low))
    sample = _sample(y) * 2.0**-first
    centre = float(np.median(sample)) if sample.size else 0.0
    second = _exponent(max(high * 2.0**-first - centre, centre - low * 2.0**-first))
    unit = y * 2.0**-first
    unit -= centre
    unit *= 2.0**-second
    return unit, first + second


def _range(y: Array) -> tuple[float, float]:
    """Return the smallest and the largest known entry; NaN if there are none."""
    return float(np.fmin.reduce(y, axis=None)), float(np.fmax.reduce(y, axis=None))


def _exponent(size: float) -> int:
    """Return the e with ``2^(e - 1) <= size < 2^e``, within limits, so that 2^e and 2^-e are floats."""
    return min(max(math.frexp(size)[1], -1000), 1000)


def _sample(y: Array) -> Array:
    """Return known entries of y, about `SAMPLE_SIZE` of them if there are more."""
    some = y.reshape(-1)[:: max(y.size // SAMPLE_SIZE, 1)]
    return some[~np.isnan(some)]


def cut_windows(y: Array, axes: Sequence[int], block: Sequence[int], steps: Sequence[int]) -> Array:
    """Return windows of the shape `block` along `axes`, every `steps` entries: (*grid, *block)."""
    view = np.lib.stride_tricks.sliding_window_view(y, tuple(block), axis=tuple(axes))
    step = dict(zip(axes, steps, strict=True))
    return view[tuple(slice(None, None, step.get(axis, 1)) for axis in range(y.ndim))]


def has_repeated_values(y: Array) -> bool:
    """Return whether most values occur more than once, as in pictures of a camera, in any units."""
    times = np.unique(_sample(y), return_counts=True)[1]
    return bool(times.size and np.mean(times > 1) > REPEATED_SHARE)


def usable_windows(windows: Array, repeated: bool) -> NDArray[np.bool_]:
    """Return which windows hold neither NaN nor constant parts; windows are (windows, *block).

    If values are `repeated`, neighbours are often equal by chance. If not, two equal neighbours mean that there is no
    noise.
    """
    inside = tuple(range(1, windows.ndim))
    equal = [(np.diff(windows, axis=axis) == 0).sum(axis=inside) for axis in inside]
    most = EQUAL_SHARE * windows[0].size if repeated and len(windows) else 0
    out: NDArray[np.bool_] = (np.max(equal, axis=0) <= most) & ~np.isnan(windows).any(axis=inside)
    return out
