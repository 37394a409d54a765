"""Wavelet frames: at every position, or sampled as in the usual transform.

A frame is an analysis D with a synthesis R such that ``R D = 1``. Both frames here offer the same members, so that
whoever thresholds their bands does not have to know which one it is.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import Floats, cropped
from .._kernels import dilated
from .._validate import Array
from .padding import reflect_pad

# What is done to the coefficients of band k: they have the leading axes of the data, and may be overwritten.
Shrink = Callable[[int, Floats], Floats]
# What is told of them.
Look = Callable[[int, Floats], None]

# The most levels by default, by the number of axes. More levels cost time and reach far beyond a tile; they matter
# for smooth signals only.
MOST_LEVELS = {1: 12, 2: 5, 3: 3}


class BandKey(NamedTuple):
    """Which band: the level (1 is the finest) and a letter per axis, a for mean, d for detail."""

    level: int
    orientation: str


@functools.cache
def detail_bands(levels: int, ndim: int) -> tuple[BandKey, ...]:
    """Return the keys of all detail bands, the finest level first."""
    letters = ["".join(some) for some in itertools.product("ad", repeat=ndim)]
    return tuple(BandKey(level, some) for level in range(1, levels + 1) for some in letters if "d" in some)


def default_levels(shape: tuple[int, ...]) -> int:
    """Return the number of levels at which the coarsest wavelet fits four times along the longest axis."""
    return max(min(int(math.log2(max(shape))) - 2, MOST_LEVELS[len(shape)]), 1)


@functools.cache
def wavelet(name: str) -> Any:
    """Return the PyWavelets object of a discrete wavelet."""
    import pywt

    known = pywt.wavelist(kind="discrete")
    if name not in known:
        remedy = "pywt.wavelist(kind='discrete') lists them all."
        raise _validate.unknown(what="wavelet", name=name, known=known, remedy=remedy)
    return pywt.Wavelet(name)


@functools.cache
def cascade(name: str, level: int) -> tuple[Array, Array]:
    """Return the low-pass and high-pass filter of a level, as one filter each, of unit energy if orthogonal."""
    w = wavelet(name)
    low = np.ones(1)
    for finer in range(level):
        filters = []
        for taps in (w.dec_lo, w.dec_hi):
            # Taps lie far apart, so few shifted copies of the coarser filter are added.
            spread = np.zeros(low.size + (len(taps) - 1) * 2**finer)
            for k, tap in enumerate(taps):
                spread[k * 2**finer : k * 2**finer + low.size] += tap * low
            filters.append(spread)
        low, high = filters
    return low, high


@dataclass(frozen=True)
class _Levels:
    """A wavelet and the number of levels."""

    wavelet: str
    levels: int

    @property
    def reach(self) -> int:
        """How far an entry of the result lies, at most, from the data that it depends on."""
        return int((wavelet(self.wavelet).dec_len - 1) * (2**self.levels - 1))


@dataclass(frozen=True)
class Undecimated(_Levels):
    """Wavelets at every position: each band has the size of the data, which are extended by reflection.

    Coefficients of level l are those of the orthonormal transform over ``2^(l ndim / 2)``. For orthogonal wavelets
    the synthesis is then the adjoint of the analysis.
    """

    @property
    def step(self) -> int:
        """How far data may be shifted so that the coefficients are the same."""
        return 1

    def filters(self, level: int) -> list[Array]:
        """Return the filters (mean, detail) of one axis at a level."""
        return [f / 2 ** (level / 2) for f in cascade(self.wavelet, level)]

    def apply(self, y: Floats, shrink: Shrink, ndim: int) -> Floats:
        """Return the synthesis of ``shrink(k, coefficients)`` over all `detail_bands` k; ndim axes are transformed.

        Bands are made, shrunk and added up one after the other, so that few exist at once.
        """
        shape = y.shape[-ndim:]
        whole = self._without_details([reflect_pad(y, self._pads(shape))], shrink, ndim, 0)
        return cropped(whole, self.inside(shape))

    def visit(self, y: Floats, look: Look, ndim: int) -> None:
        """Call ``look(k, coefficients)`` for all `detail_bands` k; ndim axes are transformed."""
        mean = reflect_pad(y, self._pads(y.shape[-ndim:]))
        for level in range(self.levels):
            mean = self._look_at(mean, look, ndim, level, -ndim, 0)

    def inside(self, shape: tuple[int, ...]) -> list[slice]:
        """Return where a band holds the coefficients of the data; around them are those of reflected data."""
        return [slice(before, before + n) for (before, _), n in zip(self._pads(shape), shape, strict=True)]

    def centres(self, level: int, count: int) -> NDArray[np.int64]:
        """Return, along one axis, the entries on which the filters of the first coefficients inside are centred."""
        return np.arange(count) - cascade(self.wavelet, level)[0].size // 2

    def _pads(self, shape: tuple[int, ...]) -> list[tuple[int, int]]:
        # Data shorter than twice the reach are extended to one period of the reflection; then all is circular.
        return [(self.reach, self.reach) if 2 * self.reach < n else (0, n) for n in shape]

    def _look_at(self, a: Floats, look: Look, ndim: int, level: int, axis: int, key: int) -> Floats:
        """Filter along the axes from `axis` on, look at the bands, and return the means of the next level."""
        if axis == 0:
            if key:
                look(level * (2**ndim - 1) + key - 1, a)
            return a
        w, step = wavelet(self.wavelet), 2**level
        self._look_at(_filtered(a, w.dec_hi, axis, step), look, ndim, level, axis + 1, 2 * key + 1)
        return self._look_at(_filtered(a, w.dec_lo, axis, step), look, ndim, level, axis + 1, 2 * key)

    def _without_details(self, box: list[Floats], shrink: Shrink, ndim: int, level: int) -> Floats:
        """Return the synthesis of all bands from a level on; `box` holds the means of that level.

        Arrays are passed in lists that are emptied, so that they are freed as soon as both parts are made of them. The
        details of a level are synthesised before the next level begins, so that one array per level waits.
        """
        mean = box.pop()
        if level == self.levels:
            return mean
        w, step = wavelet(self.wavelet), 2**level
        back = {"step": step, "shift": (w.rec_len - 1) * step}
        out = None
        for axis in range(-ndim, 0):
            detail = [_filtered(mean, w.dec_hi, axis, step)]
            mean = _filtered(mean, w.dec_lo, axis, step)
            part = self._bands(detail, shrink, ndim, level, axis + 1, 1)
            for earlier in range(axis, -ndim, -1):
                part = _filtered(part, w.rec_hi if earlier == axis else w.rec_lo, earlier, **back)
            out = _filtered(part, w.rec_hi if axis == -ndim else w.rec_lo, -ndim, **back, out=out)
            del part
        box.append(mean)
        del mean
        part = self._without_details(box, shrink, ndim, level + 1)
        for axis in range(-1, -ndim, -1):
            part = _filtered(part, w.rec_lo, axis, **back)
        return _filtered(part, w.rec_lo, -ndim, **back, out=out)

    def _bands(self, box: list[Floats], shrink: Shrink, ndim: int, level: int, axis: int, key: int) -> Floats:
        """Filter along the axes from `axis` on, shrink the bands, and synthesise them; `key` says which came before."""
        a = box.pop()
        if axis == 0:
            return shrink(level * (2**ndim - 1) + key - 1, a)
        w, step = wavelet(self.wavelet), 2**level
        parts = [_filtered(a, taps, axis, step) for taps in (w.dec_hi, w.dec_lo)]
        del a
        out = None
        for k, taps in enumerate((w.rec_lo, w.rec_hi)):
            part = self._bands([parts.pop()], shrink, ndim, level, axis + 1, 2 * key + k)
            out = _filtered(part, taps, axis, step, shift=(w.rec_len - 1) * step, out=out)
            del part
        assert out is not None
        return out


def _filtered(
    a: Floats, taps: Sequence[float], axis: int, step: int, shift: int = 0, out: Floats | None = None
) -> Floats:
    """Return the circular convolution with taps `step` apart, over root 2; added to `out` if given."""
    scaled = (np.asarray(taps) / math.sqrt(2)).astype(a.dtype)
    return dilated(a, scaled, axis, step=step, shift=shift, out=out)


@dataclass(frozen=True)
class Decimated(_Levels):
    """The discrete wavelet transform of PyWavelets; data are extended by reflection."""

    @property
    def step(self) -> int:
        """How far data may be shifted so that the coefficients are the same: one coefficient of the coarsest level."""
        return int(2**self.levels)

    def filters(self, level: int) -> list[Array]:
        """Return the filters (mean, detail) of one axis at a level."""
        return list(cascade(self.wavelet, level))

    def inside(self, shape: tuple[int, ...]) -> list[slice]:
        """Return where a band holds the coefficients of the data: everywhere."""
        return [slice(None)] * len(shape)

    def centres(self, level: int, count: int) -> NDArray[np.int64]:
        """Return, along one axis, the entries on which the filters of the first coefficients are centred."""
        last: NDArray[np.int64] = 2**level * np.arange(1, count + 1) - 1
        return last - cascade(self.wavelet, level)[0].size // 2

    def apply(self, y: Floats, shrink: Shrink, ndim: int) -> Floats:
        """Return the synthesis of ``shrink(k, coefficients)`` over all `detail_bands` k; ndim axes are transformed."""
        import pywt

        axes = range(-ndim, 0)
        coefficients = self._coefficients(y, ndim)
        for k, (level, orientation) in enumerate(detail_bands(self.levels, ndim)):
            band = coefficients[-level]
            band[orientation] = shrink(k, band[orientation])
        out: Floats = pywt.waverecn(coefficients, wavelet(self.wavelet), mode="symmetric", axes=axes)
        return cropped(out, map(slice, y.shape[-ndim:])).astype(y.dtype, copy=False)

    def visit(self, y: Floats, look: Look, ndim: int) -> None:
        """Call ``look(k, coefficients)`` for all `detail_bands` k; ndim axes are transformed."""
        coefficients = self._coefficients(y, ndim)
        for k, (level, orientation) in enumerate(detail_bands(self.levels, ndim)):
            look(k, coefficients[-level][orientation])

    def _coefficients(self, y: Floats, ndim: int) -> list[Any]:
        import pywt

        with warnings.catch_warnings():
            # Small data or many levels: PyWavelets warns of borders, which the reflection is for.
            warnings.filterwarnings("ignore", message="Level value of", category=UserWarning)
            w, axes = wavelet(self.wavelet), range(-ndim, 0)
            return list(pywt.wavedecn(y, w, mode="symmetric", level=self.levels, axes=axes))


Frame = Undecimated | Decimated
