"""Windows of the data and their DCT, from which the level and the spectrum of the noise are estimated.

White noise has the same variance at all frequencies of a window. A signal that is smooth or has few edges fills the low
ones, and leaves many windows alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._validate import Array
from ..frames.dct import dct_matrix

# Keeps divisions by a power, and its logarithm, finite.
TINY = float(np.finfo(float).tiny)
# The median of |Z|, Z standard normal: the median of magnitudes of noise, over this, is its level.
MEDIAN_OF_NORMAL = 0.6744897501960817

# Entries along the longest axis below which nothing tells noise from signal.
MIN_LENGTH = 4
# Entries of all windows together: from larger data, fewer windows are taken. More windows cost time and memory.
MAX_WINDOW_ENTRIES = 2**20
# Largest window, in entries, whose DCT is one product with a matrix. Compared with a product per axis, that takes two
# thirds of the time for 8 x 8 entries, a quarter for 4 x 4 x 4, four times as long for 16 x 16.
MAX_MATRIX_ENTRIES = 64
# Entries of the data that tell their centre and whether values repeat. Both are the same for any large sample.
SAMPLE_SIZE = 100_000


@dataclass(frozen=True, eq=False)
class WindowSet:
    """Windows of one shape, `block`.

    `means` holds the mean of each window, `coefficients` its DCT as (windows, entries of a window). `overlap` is how
    many windows hold an entry of the data, at least 1.
    """

    block: tuple[int, ...]
    means: Floats
    coefficients: Floats
    overlap: float

    def away_from(self, limits: Sequence[float], distance: float) -> WindowSet:
        """Return the windows whose means are farther than `distance` from every limit."""
        far = np.all([np.abs(self.means - limit) > distance for limit in limits], axis=0)
        return replace(self, means=self.means[far], coefficients=self.coefficients[far])


class Cut(NamedTuple):
    """Where windows lie: along which axes of the data, of which shape, how many entries apart."""

    axes: tuple[int, ...]
    block: tuple[int, ...]
    steps: tuple[int, ...]

    def windows(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return a view of the windows: (*grid, *block)."""
        view = np.lib.stride_tricks.sliding_window_view(y, self.block, axis=self.axes)
        step = dict(zip(self.axes, self.steps, strict=True))
        return view[tuple(slice(None, None, step.get(axis, 1)) for axis in range(y.ndim))]


def overlapping(y: NDArray[Any], axes: Sequence[int], block: Sequence[int], steps_per_side: int = 2) -> Cut:
    """Return windows that overlap, by half by default; by less if they had more than `MAX_WINDOW_ENTRIES` entries."""
    least = math.ceil((y.size * math.prod(block) / MAX_WINDOW_ENTRIES) ** (1 / len(block)))
    return Cut(tuple(axes), tuple(block), tuple(max(side // steps_per_side, least) for side in block))


def window_set(
    y: Floats, axes: Sequence[int], block: Sequence[int], steps_per_side: int = 2, taper: Array | None = None
) -> WindowSet:
    """Return the DCT of the usable windows along `axes`, each multiplied by the taper."""
    cut = overlapping(y, axes, block, steps_per_side)
    windows = cut.windows(y).reshape(-1, *cut.block)
    overlap = max(windows.size / y.size, 1.0)
    usable = usable_windows(y, cut)
    if not usable.all():
        windows = windows[usable]
    means = windows.mean(axis=tuple(range(1, windows.ndim)))
    if taper is not None:
        windows = windows * taper.astype(y.dtype)
    coefficients = dct_of_windows(windows).reshape(-1, math.prod(cut.block))
    return WindowSet(cut.block, means, coefficients, overlap)


def usable_windows(y: Floats, cut: Cut) -> NDArray[np.bool_]:
    """Return which windows hold neither NaN nor constant parts, one entry per window.

    If values repeat, as in pictures of a camera, neighbours are often equal by chance, and a window may hold as many
    equal neighbours as half of its entries: noise of half a rounding step reaches that. If values do not repeat, two
    equal neighbours mean that there is no noise.
    """
    usable: NDArray[np.bool_] = _window_sums(np.isnan(y), cut) == 0
    sides = list(cut.block)
    for place, axis in enumerate(cut.axes):
        first = np.moveaxis(y, axis, 0)
        equal = np.moveaxis(first[1:] == first[:-1], 0, axis)
        if equal.any():
            most = math.prod(sides) / 2 if has_repeated_values(y) else 0
            pairs = tuple(side - (k == place) for k, side in enumerate(sides))
            usable &= _window_sums(equal, Cut(cut.axes, pairs, cut.steps)) <= most
    return usable


def _window_sums(marked: NDArray[np.bool_], cut: Cut) -> NDArray[np.int64]:
    """Return how many marked entries each window holds."""
    windows = cut.windows(marked)
    inside = tuple(range(marked.ndim, windows.ndim))
    if not marked.any():
        return np.zeros(math.prod(windows.shape[: marked.ndim]), np.int64)
    out: NDArray[np.int64] = np.count_nonzero(windows, axis=inside).ravel()
    return out


def frequency_sums(block: Sequence[int]) -> NDArray[np.int64]:
    """Return the sum of the frequencies along all axes, for each coefficient of a window."""
    out: NDArray[np.int64] = np.indices(block).sum(axis=0)
    return out


def relative_frequencies(block: Sequence[int]) -> Array:
    """Return the sum of the frequencies over its largest value: 0 for the mean of the window, 1 for the highest."""
    sums = frequency_sums(block)
    return sums / max(int(sums.max()), 1)


def dct_of_windows(windows: Floats) -> Floats:
    """Return the orthonormal DCT of every window; windows are (windows, *block).

    Small windows are multiplied by one matrix, larger ones axis by axis.
    """
    block = windows.shape[1:]
    matrices = [dct_matrix(side).T.astype(windows.dtype) for side in block]
    if math.prod(block) <= MAX_MATRIX_ENTRIES:
        whole: Floats = windows.reshape(-1, math.prod(block)) @ functools.reduce(np.kron, matrices)
        return whole.reshape(windows.shape)
    out = windows
    for matrix in matrices:
        out = np.moveaxis(out, 1, -1) @ matrix
    return out


def dct_filters(block: Sequence[int]) -> list[Array]:
    """Return the filters of each axis whose products are the coefficients of a window."""
    return [dct_matrix(size) for size in block]


def median_level(values: Floats) -> float:
    """Return ``median(|values|) / 0.6745``, the level of noise with mean zero; 0 if there are no values."""
    return float(np.median(np.abs(values))) / MEDIAN_OF_NORMAL if values.size else 0.0


def is_constant(y: Floats, remedy: str) -> bool:
    """Return whether all known entries are equal. NaN marks missing entries.

    Raises
    ------
    ValueError
        If y is too small to tell noise from signal, or has no known entries; `remedy` says what to pass instead.
    """
    if max(y.shape) < MIN_LENGTH:
        msg = f"y is too small to tell noise from signal, with shape {y.shape}. {remedy}"
        raise ValueError(msg)
    low, high = _range(y)
    if math.isnan(low):
        msg = f"y holds no known entries, with shape {y.shape}: all are NaN. Pass at least two."
        raise ValueError(msg)
    return low == high


def normalise(y: Floats) -> tuple[Floats, int]:
    """Return ``(y - centre) / 2^exponent``, with magnitudes of at most 1 for data between 1e-300 and 1e300.

    Squares of the result neither overflow nor vanish, in whatever units y is. Division by a power of 2 is exact. The
    centre is a median, so that an outlier does not swallow noise that is many orders of magnitude below it. Single
    precision stays, unless y leaves its range or half of y lies closer to the centre than it resolves. Returned are
    the result and the exponent.
    """
    low, high = _range(y)
    first = _exponent(max(high, -low))
    sample = _sample(y).astype(np.float64) * 2.0**-first
    centre = float(np.median(sample)) if sample.size else 0.0
    second = _exponent(max(high * 2.0**-first - centre, centre - low * 2.0**-first))
    if y.dtype == np.float32:
        single = np.finfo(np.float32)
        spread = float(np.median(np.abs(sample - centre))) * 2.0**-second if sample.size else 0.0
        if spread < single.eps or abs(first) >= single.maxexp:
            y = y.astype(np.float64)
    unit: Floats = y * 2.0**-first
    unit -= centre
    unit *= 2.0**-second
    return unit, first + second


def _range(y: Floats) -> tuple[float, float]:
    """Return the smallest and the largest known entry; NaN if there are none."""
    return float(np.fmin.reduce(y, axis=None)), float(np.fmax.reduce(y, axis=None))


def _exponent(size: float) -> int:
    """Return the e with ``2^(e - 1) <= size < 2^e``, within limits, so that 2^e and 2^-e are floats."""
    return min(max(math.frexp(size)[1], -1000), 1000)


def _sample(y: Floats) -> Floats:
    """Return known entries of y, about `SAMPLE_SIZE` of them if there are more."""
    some = y.reshape(-1)[:: max(y.size // SAMPLE_SIZE, 1)]
    return some[~np.isnan(some)]


def has_repeated_values(y: Floats) -> bool:
    """Return whether most values occur more than once, as in pictures of a camera, in any units."""
    times = np.unique(_sample(y), return_counts=True)[1]
    return bool(times.size and np.median(times) > 1)
