"""Windows of the data and their DCT, from which the level and the spectrum of the noise are estimated.

White noise has the same variance at all frequencies of a window. A signal that is smooth or has few edges fills the low
ones, and leaves many windows alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import SLAB_ENTRIES, Floats
from .._validate import Array
from ..frames.dct import dct_matrix
from .clipping import find_clip_limits
from .repeats import has_repeated_values

# Keeps divisions by a power, and its logarithm, finite.
TINY = float(np.finfo(float).tiny)

# Relative rounding error of a root mean square: values at equal distances are not below it.
ROUNDING = 1e-6
# Entries of all windows together: from larger data, fewer windows are taken. More windows cost time and memory.
MAX_WINDOW_ENTRIES = 2**20
# Largest window, in entries, whose DCT is one product with a matrix. Compared with a product per axis, that takes two
# thirds of the time for 8 x 8 entries, a quarter for 4 x 4 x 4, four times as long for 16 x 16.
MAX_MATRIX_ENTRIES = 64
# Least share of the noise variance that clipping left in a window that is read. From 0.4 to 0.7 the root mean square
# error of the level of the photographs that `level.MEAN_BOXES` names is 0.8 to 1.5%.
MIN_LEFT = 0.5
# Shortest side of windows of signals that the fast transform takes.
MIN_FAST_SIDE = 256


class Cut(NamedTuple):
    """Where windows lie: along which axes of the data, of which shape, how many entries apart."""

    axes: tuple[int, ...]
    block: tuple[int, ...]
    steps: tuple[int, ...]

    def windows(self, y: NDArray[Any], writeable: bool = False) -> NDArray[Any]:
        """Return a view of the windows: (*grid, *block)."""
        view = np.lib.stride_tricks.sliding_window_view(y, self.block, axis=self.axes, writeable=writeable)
        step = dict(zip(self.axes, self.steps, strict=True))
        return view[tuple(slice(None, None, step.get(axis, 1)) for axis in range(y.ndim))]

    def slabs(self, shape: tuple[int, ...]) -> Iterator[slice]:
        """Yield parts along the first axis of data of a shape that hold every window once, in their order."""
        side, step = (self.block[self.axes.index(0)], self.steps[self.axes.index(0)]) if 0 in self.axes else (1, 1)
        each = max(SLAB_ENTRIES // (step * max(math.prod(shape[1:]), 1)), 1) * step
        for start in range(0, shape[0] - side + 1, each):
            last = min(start + each - step, (shape[0] - side) // step * step)
            yield slice(start, last + side)


@dataclass(frozen=True, eq=False)
class WindowSet:
    """Windows of one shape.

    `cut` says where they lie, and `places` which of those windows they are, by index. `means` holds the mean of each
    window, `coefficients` its DCT as (windows, entries of a window). `overlap` is how many windows hold an entry of the
    data, at least 1. `mixed_means` holds the means of windows that were left out
    because they are constant in part, `known` the number of all windows without NaN. `covered` marks the entries of
    the data that are in a window; None for all.
    """

    cut: Cut
    places: NDArray[np.intp]
    means: Floats
    coefficients: Floats
    overlap: float
    mixed_means: Floats = field(default_factory=lambda: np.zeros(0))
    known: int = 0
    covered: NDArray[np.bool_] | None = None
    tapered: bool = False

    @property
    def block(self) -> tuple[int, ...]:
        """The shape of a window."""
        return self.cut.block

    @property
    def noisy(self) -> bool:
        """Whether more windows may hold noise than are constant in part."""
        return len(self.means) > len(self.mixed_means)

    def away_from(self, limits: Sequence[float], distance: float) -> WindowSet:
        """Return the windows whose means are farther than `distance` from every limit."""
        return replace(self.some(_far(self.means, limits, distance)), mixed_means=self.mixed_away(limits, distance))

    def mixed_away(self, limits: Sequence[float], distance: float) -> Floats:
        """Return the means of windows that are constant in part, of those that lie as far from every limit."""
        return self.mixed_means[_far(self.mixed_means, limits, distance)]

    def some(self, chosen: NDArray[Any] | slice) -> WindowSet:
        """Return some of the windows, by a mask, by indices or by a slice."""
        columns = (self.places, self.means, self.coefficients)
        places, means, coefficients = (column[chosen] for column in columns)
        return replace(self, places=places, means=means, coefficients=coefficients)

    def unclipped(self, share: Floats) -> WindowSet:
        """Return the windows as they were before clipping, given the share of the noise variance left in every entry.

        Those that lost too much of it are left out.
        """
        view = self.cut.windows(share)
        left = view.mean(axis=tuple(range(share.ndim, view.ndim))).ravel()[self.places]
        far = left > MIN_LEFT
        some = self.some(far)
        return replace(some, coefficients=some.coefficients / np.sqrt(left[far])[:, None])


def _far(means: Floats, limits: Sequence[float], distance: float) -> NDArray[np.bool_]:
    """Return which means are farther than `distance` from every limit."""
    far: NDArray[np.bool_] = np.all([np.abs(means - limit) > distance for limit in limits], axis=0)
    return far


class WindowKinds(NamedTuple):
    """Which windows may hold noise, which are constant in part, and how many have no NaN."""

    usable: NDArray[np.bool_]
    mixed: NDArray[np.bool_]
    known: int


def overlapping(y: NDArray[Any], axes: Sequence[int], block: Sequence[int], steps_per_side: int = 2) -> Cut:
    """Return windows that overlap, by half by default; by less if they had more than `MAX_WINDOW_ENTRIES` entries."""
    least = math.ceil((y.size * math.prod(block) / MAX_WINDOW_ENTRIES) ** (1 / len(block)))
    return Cut(tuple(axes), tuple(block), tuple(max(side // steps_per_side, least) for side in block))


def window_set(
    y: Floats,
    axes: Sequence[int],
    block: Sequence[int],
    steps_per_side: int = 2,
    tapered: bool = False,
    dtype: Any = None,
) -> WindowSet:
    """Return the DCT of the usable windows along `axes`, each tapered if asked to, in the precision of y or in `dtype`.

    The taper is a squared sine along each axis. It keeps waves at their own frequency. Coefficients are divided by what
    it does to the level of white noise.
    """
    cut = overlapping(y, axes, block, steps_per_side)
    windows = cut.windows(y).reshape(-1, *cut.block).astype(y.dtype if dtype is None else dtype, copy=False)
    overlap = max(windows.size / y.size, 1.0)
    kinds = usable_windows(y, cut, windows.dtype)
    usable, mixed = kinds.usable, kinds.mixed
    covered = None
    if not usable.all():
        covered = np.zeros(y.shape, bool)
        view = cut.windows(covered, writeable=True)
        view[usable.reshape(view.shape[: y.ndim])] = True
    inside = tuple(range(1, windows.ndim))
    mixed_means = windows[mixed].mean(axis=inside) if mixed.any() else np.zeros(0, y.dtype)
    if covered is not None:
        windows = windows[usable]
    means = windows.mean(axis=inside)
    taper = _taper(cut.block, y.dtype)
    if tapered:
        windows = windows * taper.weights
    coefficients = dct_of_windows(windows).reshape(-1, math.prod(cut.block))
    if tapered:
        coefficients /= taper.gains
    return WindowSet(
        cut, np.flatnonzero(usable), means, coefficients, overlap, mixed_means, kinds.known, covered, tapered
    )


def tapered_signals(windows: Floats, dtype: Any) -> Floats:
    """Return the DCT of windows along the last axis, behind a taper of a dtype, over what that does to white noise."""
    taper = _taper(windows.shape[-1:], np.dtype(dtype))
    coefficients = dct_of_signals(windows * taper.weights)
    coefficients /= taper.gains
    return coefficients


class _Taper(NamedTuple):
    """The taper of a window, and what it does to the level of white noise in every coefficient."""

    weights: Floats
    gains: Floats


@functools.lru_cache(maxsize=32)
def _taper(block: tuple[int, ...], dtype: np.dtype[Any]) -> _Taper:
    sines = [squared_sine(side) for side in block]
    gains = [np.sqrt(np.square(dct_matrix(side)) @ np.square(sine)) for side, sine in zip(block, sines, strict=True)]
    weights, gain = (functools.reduce(np.multiply.outer, some).astype(dtype) for some in (sines, gains))
    return _Taper(read_only(weights), read_only(gain.ravel()))


@functools.lru_cache(maxsize=32)
def squared_sine(side: int) -> Array:
    """Return the taper of a window; it cannot be written to."""
    return read_only(np.sin(np.pi * (np.arange(side) + 0.5) / side) ** 2)


def read_only(a: Floats) -> Floats:
    """Return an array that cannot be written to, because it is kept."""
    a.flags.writeable = False
    return a


def usable_windows(y: Floats, cut: Cut, dtype: Any = None) -> WindowKinds:
    """Return which windows may hold noise, and which hold constant parts; in the precision of y or in `dtype`.

    If values do not repeat, two equal neighbours mean that there is no noise, unless both were clipped. If values do,
    as in pictures of a camera, neighbours are often equal by chance. But noise makes neighbours differ a little more
    often than it leaves them equal: in a usable window fewer are equal, along every axis, than differ by less than
    their root mean square difference. Rounded noise of 0.65 rounding steps or more does so, and clipped noise whose
    mean is not beyond the limit.
    """
    repeats = functools.cache(lambda: Repeats.of(y))  # of the whole, and only where neighbours are equal
    slabs = (y[rows].astype(y.dtype if dtype is None else dtype, copy=False) for rows in cut.slabs(y.shape))
    parts = [_usable_windows(slab, cut, repeats) for slab in slabs]
    if len(parts) == 1:
        return parts[0]
    usable, mixed = (np.concatenate([getattr(part, name) for part in parts]) for name in ("usable", "mixed"))
    return WindowKinds(usable, mixed, sum(part.known for part in parts))


class Repeats(NamedTuple):
    """Whether values repeat; if not, where they were clipped."""

    values: bool
    limits: list[float]

    @classmethod
    def of(cls, y: Floats) -> Repeats:
        """Look at the data."""
        repeated = has_repeated_values(y)
        return cls(repeated, [] if repeated else [limit for limit in find_clip_limits(y) if math.isfinite(limit)])


def _usable_windows(y: Floats, cut: Cut, repeats: Callable[[], Repeats]) -> WindowKinds:
    """Return what `usable_windows` does of a part of the data, given what tells whether values repeat."""
    known = _window_sums(np.isnan(y), cut) == 0
    usable, constant = known.copy(), known.copy()
    for place, axis in enumerate(cut.axes):
        step = np.abs(np.diff(y, axis=axis))
        pairs = Cut(cut.axes, tuple(side - (k == place) for k, side in enumerate(cut.block)), cut.steps)
        equal = _window_sums(step == 0, pairs)
        if not equal.any():
            constant[:] = False
            continue
        repeated, limits = repeats()
        constant &= equal == math.prod(pairs.block)
        if repeated or limits:
            usable &= (equal == 0) | (equal < _small_steps(step, pairs))
        if not repeated:
            unclipped = ~np.isin(np.delete(y, 0, axis), limits)
            usable &= _window_sums((step == 0) & unclipped, pairs) == 0
    return WindowKinds(usable, known & ~usable & ~constant, int(np.count_nonzero(known)))


def _small_steps(step: Floats, cut: Cut) -> NDArray[np.int64]:
    """Return how many steps of each window are above 0 and below their root mean square."""
    square = np.square(cut.windows(step).reshape(-1, math.prod(cut.block)))
    limit = (1 - ROUNDING) * square.mean(axis=1, keepdims=True)
    out: NDArray[np.int64] = np.count_nonzero((square > 0) & (square < limit), axis=1)
    return out


def _window_sums(marked: NDArray[np.bool_], cut: Cut) -> NDArray[np.int64]:
    """Return how many marked entries each window holds."""
    if not marked.any():
        cuts = dict(zip(cut.axes, zip(cut.block, cut.steps, strict=True), strict=True))
        pairs = ((n, *cuts.get(axis, (1, 1))) for axis, n in enumerate(marked.shape))
        return np.zeros(math.prod((n - side) // step + 1 for n, side, step in pairs), np.int64)
    windows = cut.windows(marked)
    inside = tuple(range(marked.ndim, windows.ndim))
    out: NDArray[np.int64] = np.count_nonzero(windows, axis=inside).ravel()
    return out


@functools.lru_cache(maxsize=32)
def frequency_sums(block: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the sum of the frequencies along all axes, for each coefficient of a window."""
    out: NDArray[np.int64] = read_only(np.indices(block).sum(axis=0))
    return out


@functools.lru_cache(maxsize=32)
def relative_frequencies(block: tuple[int, ...]) -> Array:
    """Return the sum of the frequencies over its largest value: 0 for the mean of the window, 1 for the highest."""
    sums = frequency_sums(block)
    return read_only(sums / max(int(sums.max()), 1))


def dct_of_windows(windows: Floats) -> Floats:
    """Return the orthonormal DCT of every window; windows are (windows, *block).

    Small windows are multiplied by one matrix, larger ones axis by axis. The matrix of a long one takes longer to read
    than the fast transform.
    """
    block = windows.shape[1:]
    if len(block) == 1:
        return dct_of_signals(windows)
    matrices = _dct_matrices(block, windows.dtype)
    if math.prod(block) <= MAX_MATRIX_ENTRIES:
        whole: Floats = windows.reshape(-1, math.prod(block)) @ matrices[0]
        return whole.reshape(windows.shape)
    out = windows
    for matrix in matrices:
        out = np.moveaxis(out, 1, -1) @ matrix
    return out


def dct_of_signals(windows: Floats) -> Floats:
    """Return the orthonormal DCT of windows of signals, along the last axis. Those of a signal depend on no other."""
    side = windows.shape[-1]
    if side >= MIN_FAST_SIDE:
        from scipy import fft

        fast: Floats = fft.dct(windows, norm="ortho")
        return fast
    out: Floats = windows @ _dct_matrices((side,), windows.dtype)[0]
    return out


@functools.lru_cache(maxsize=32)
def _dct_matrices(block: tuple[int, ...], dtype: np.dtype[Any]) -> list[Floats]:
    """Return the matrix that windows are multiplied by, or one per axis."""
    matrices = [dct_matrix(side).T.astype(dtype) for side in block]
    return [functools.reduce(np.kron, matrices)] if math.prod(block) <= MAX_MATRIX_ENTRIES else matrices


def dct_filters(block: Sequence[int]) -> list[Array]:
    """Return the filters of each axis whose products are the coefficients of a window."""
    return [dct_matrix(size) for size in block]
