"""Frames for denoising: decimated and undecimated wavelets, and the DCT of every window.

A frame is an analysis D with a synthesis R, ``R D = 1``. The filters that it offers are what the noise level of every
band, and with it the risk in the domain of the samples, is computed from.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import Floats as Floats
from .._arrays import along as along
from .._arrays import cropped as cropped
from .._arrays import reflect_index
from .._validate import Array

__all__ = ["Decimated", "Undecimated", "Windows"]

Shrink = Callable[[int, Floats], Floats]


def reflected(y: Floats, pads: Sequence[tuple[int, int]]) -> Floats:
    """Return y continued by reflection, the border entry repeated; pads are (before, after) of the last axes."""
    for axis, (before, after) in zip(range(-len(pads), 0), pads, strict=True):
        if before or after:
            n = y.shape[axis]
            y = np.take(y, reflect_index(np.arange(-before, n + after), n), axis)
    return np.ascontiguousarray(y)


def filled(values: Floats, invalid: NDArray[np.bool_]) -> Floats:
    """Return the values with missing ones replaced by the mean of those around, near ones if there are any."""
    from scipy.ndimage import uniform_filter

    values = np.where(invalid, 0, values)
    known = (~invalid).astype(values.dtype)
    missing = invalid.copy()
    size = 3
    while missing.any():
        share = uniform_filter(known, size, mode="constant")
        reached = missing & (share > 0.5 / size**invalid.ndim)
        for channel in values:
            for part in channel:
                mean = uniform_filter(np.where(invalid, 0, part), size, mode="constant")
                part[reached] = mean[reached] / share[reached]
        missing &= ~reached
        size = 2 * size + 1
    return values


@functools.cache
def wavelet(name: str) -> Any:
    """Return the filters that go by this name in PyWavelets."""
    import pywt

    known = pywt.wavelist(kind="discrete")
    if name not in known:
        remedy = "pywt.wavelist(kind='discrete') lists them all."
        raise _validate.unknown(what="wavelet", name=name, known=known, remedy=remedy)
    return pywt.Wavelet(name)


# The most levels by default, by the number of axes.
_LEVELS = {1: 12, 2: 5, 3: 3}


def default_levels(shape: tuple[int, ...]) -> int:
    """Return how many levels suit data of a shape: four positions of the coarsest wavelet along the longest axis."""
    return max(min(int(math.log2(max(shape))) - 2, _LEVELS[len(shape)]), 1)


def details(levels: int, ndim: int) -> Iterator[tuple[int, str]]:
    """Yield the level and the key of every detail band, finest first: a letter per axis, a for mean, d for detail."""
    for level in range(1, levels + 1):
        for letters in itertools.product("ad", repeat=ndim):
            if "d" in letters:
                yield level, "".join(letters)


@functools.cache
def _cascade(name: str, level: int) -> tuple[Array, Array]:
    """Return the low and high-pass filter of a level in one, scaled to the energy of the orthonormal ones."""
    w = wavelet(name)
    low = np.ones(1)
    for finer in range(level):
        filters = []
        for taps in (w.dec_lo, w.dec_hi):
            spread = np.zeros((len(taps) - 1) * 2**finer + 1)
            spread[:: 2**finer] = taps
            filters.append(np.convolve(low, spread))
        low, high = filters
    return low, high


@dataclass(frozen=True)
class Undecimated:
    """Wavelets at every position: each band has the size of the data, which is continued by reflection.

    Coefficients of level l are those of the orthonormal transform over ``2^(l ndim / 2)``, so that the synthesis is
    the adjoint of the analysis if the wavelet is orthogonal.
    """

    wavelet: str
    levels: int

    def filters(self, level: int) -> list[Array]:
        """Return the filters (mean, detail) of one axis at a level, as two rows."""
        return [f / 2 ** (level / 2) for f in _cascade(self.wavelet, level)]

    def apply(self, y: Floats, shrink: Shrink, ndim: int) -> Floats:
        """Return the synthesis of ``shrink(k, coefficients)`` over the bands k of `details`, for the last axes.

        Bands are made, treated and added up one after the other, so that few exist at once.
        """
        shape = y.shape[-ndim:]
        whole = self._split([reflected(y, self._pads(shape))], shrink, ndim, 0, 0, 0)
        return cropped(whole, self.inside(shape))

    def inside(self, shape: tuple[int, ...]) -> list[slice]:
        """Return where in a band the coefficients of the data themselves are, those of mirrored data being around."""
        return [slice(before, before + n) for (before, _), n in zip(self._pads(shape), shape, strict=True)]

    def middles(self, level: int, count: int) -> NDArray[np.int64]:
        """Return the entries in the middle of the filters of the first coefficients that are inside, of one axis."""
        return np.arange(count) - _cascade(self.wavelet, level)[0].size // 2

    def _pads(self, shape: tuple[int, ...]) -> list[tuple[int, int]]:
        # Beyond the reach of the filters nothing matters; data shorter than that are continued to a whole period.
        reach = (wavelet(self.wavelet).dec_len - 1) * (2**self.levels - 1)
        return [(reach, reach) if 2 * reach < n else (0, n) for n in shape]

    def _split(self, box: list[Floats], shrink: Shrink, ndim: int, level: int, axis: int, key: int) -> Floats:
        """Filter along one axis, go on with the next or the next level, and put the two parts together again.

        The array comes in a box that is emptied, so that it is freed as soon as both parts are made of it.
        """
        a = box.pop()
        if axis == ndim:
            if key:
                return shrink(level * (2**ndim - 1) + key - 1, a)
            level, axis = level + 1, 0
        if level == self.levels:
            return a
        w, step = wavelet(self.wavelet), 2**level
        parts = [_dilated(a, taps, axis - ndim, step) for taps in (w.dec_hi, w.dec_lo)]
        del a
        out = None
        for k, taps in enumerate((w.rec_lo, w.rec_hi)):
            part = self._split([parts.pop()], shrink, ndim, level, axis + 1, 2 * key + k)
            out = _dilated(part, taps, axis - ndim, step, shift=(len(taps) - 1) * step, out=out)
            del part
        assert out is not None
        return out


def _dilated(
    a: Floats, taps: Sequence[float], axis: int, step: int, shift: int = 0, out: Floats | None = None
) -> Floats:
    """Return the circular convolution along an axis with taps `step` apart, over root 2; added to `out` if given."""
    from .._kernels import loader as _native

    add = out is not None
    out = np.empty_like(a) if out is None else out
    scaled = (np.asarray(taps) / math.sqrt(2)).astype(a.dtype)
    inner = math.prod(a.shape[axis:][1:])
    sizes = a.size // (a.shape[axis] * inner), a.shape[axis], inner
    _native.call(f"frame_loops.dilated_{a.dtype}", *sizes, scaled.size, step, shift, int(add), scaled, a, out)
    return out


@dataclass(frozen=True)
class Decimated:
    """The discrete wavelet transform of PyWavelets, continued by reflection."""

    wavelet: str
    levels: int

    def filters(self, level: int) -> list[Array]:
        """Return the filters (mean, detail) of one axis at a level, as two rows."""
        return list(_cascade(self.wavelet, level))

    def inside(self, shape: tuple[int, ...]) -> list[slice]:
        """Return where in a band the coefficients of the data are: everywhere."""
        return [slice(None)] * len(shape)

    def middles(self, level: int, count: int) -> NDArray[np.int64]:
        """Return the entries in the middle of the filters of the first coefficients, of one axis."""
        last: NDArray[np.int64] = 2**level * np.arange(1, count + 1) - 1
        return last - _cascade(self.wavelet, level)[0].size // 2

    def apply(self, y: Floats, shrink: Shrink, ndim: int) -> Floats:
        """Return the synthesis of ``shrink(k, coefficients)`` over the bands k of `details`, for the last axes."""
        import pywt

        axes = range(-ndim, 0)
        coefficients = pywt.wavedecn(y, wavelet(self.wavelet), mode="symmetric", level=self.levels, axes=axes)
        for k, (level, key) in enumerate(details(self.levels, ndim)):
            band = coefficients[-level]
            band[key] = shrink(k, band[key])
        out: Floats = pywt.waverecn(coefficients, wavelet(self.wavelet), mode="symmetric", axes=axes)
        return cropped(out, map(slice, y.shape[-ndim:])).astype(y.dtype, copy=False)


# Half the width of the kernel at a jump, over the threshold: small against the noise, wide for so many coefficients.
_JUMP = 0.04

# Windows in a row of an image, and entries of the windows of a signal, that are treated at once.
_STRIP = 128
_CHUNK = 1 << 20


@functools.cache
def dct_matrix(size: int) -> Array:
    """Return the orthonormal DCT-II as a matrix, frequencies down."""
    k, j = np.mgrid[:size, :size]
    out: Array = np.cos(np.pi * (j + 0.5) * k / size) * np.sqrt(np.where(k == 0, 1, 2) / size)
    return out


@dataclass(frozen=True)
class Windows:
    """The orthonormal DCT of the windows at every position, or at every `step`-th.

    Overlapping estimates are averaged, each by the inverse of the noise variance that its window lets through.
    """

    block: tuple[int, ...]
    step: int = 1

    def __post_init__(self) -> None:
        # What the loops rely on.
        assert all(b % self.step == 0 for b in self.block)
        assert len(self.block) == 1 or all(b in (2, 4, 8, 16, 32, 64) for b in self.block)

    def filters(self) -> list[Array]:
        """Return the filters of each axis as rows."""
        return [dct_matrix(b) for b in self.block]

    def hard(self, y: Floats, variance: Array, threshold: float) -> tuple[Floats, Floats]:
        """Keep coefficients of at least `threshold` times their noise level, and the mean of the window.

        `y` holds parts that share decisions along its first axis. Returned are the estimate and, per entry, the trace
        of noise covariance times derivative, weights taken as constant, the jump included.
        """
        return self._run(y, None, threshold * np.sqrt(variance), variance)

    def guided(self, y: Floats, guide: Floats, variance: Array, strength: float) -> tuple[Floats, Floats]:
        """Multiply coefficients by ``g^2 / (g^2 + strength variance)``, g those of a guide; otherwise as `hard`."""
        return self._run(y, guide, strength * variance, variance)

    def _run(self, y: Floats, guide: Floats | None, cut: Array, variance: Array) -> tuple[Floats, Floats]:
        shape, ndim, dtype = y.shape[1:], len(self.block), y.dtype
        pads = [(b - 1, b - 1 + -(n + b - 2) % self.step) for b, n in zip(self.block, shape, strict=True)]
        wide = [reflected(v, pads) for v in (y, guide) if v is not None]
        # The loops read raw memory.
        cut, variance = np.array(cut, dtype, order="C"), np.ascontiguousarray(variance, dtype)
        cut.flat[0] = 0  # the mean is kept
        total, weight, trace = (self._signal if ndim == 1 else self._image)(wide, cut, variance)
        total /= weight
        trace /= weight
        crop = tuple(slice(before, before + n) for (before, _), n in zip(pads, shape, strict=True))
        trace = np.ascontiguousarray(cropped(trace, crop))
        for axis, (b, n) in enumerate(zip(self.block, shape, strict=True)):
            trace *= along(_mirrored(b, n).astype(dtype), axis, ndim)
        return cropped(total, crop), trace

    def _signal(self, wide: list[Floats], cut: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the weighted sums, the weights and the weighted traces by fast transforms, for windows may be long."""
        from scipy import fft

        (b,), step, dtype = self.block, self.step, cut.dtype
        parts, width = wide[0].shape
        count = (width - b) // step + 1
        total = np.zeros_like(wide[0])
        weight, trace = np.zeros((2, width), dtype)
        chunk = max(_CHUNK // b, 1)
        for first in range(0, count, chunk):
            last = min(first + chunk, count) - 1
            part = slice(first * step, last * step + b)
            views = [np.lib.stride_tricks.sliding_window_view(v[:, part], b, axis=1)[:, ::step] for v in wide]
            transformed = [fft.dct(v, norm="ortho") for v in views]
            square = np.square(transformed[-1]).sum(axis=0)
            if len(wide) == 1:
                low, limit, high = ((cut * dtype.type(f)) ** 2 for f in (1 - _JUMP, 1, 1 + _JUMP))
                factor = (square >= limit).astype(dtype)
                # Coefficients at the jump: with those that are just not kept the window would weigh less.
                at_jump = (square >= limit) & (square < high), (square < limit) & (square > low)
                jumps = [some @ variance * dtype.type(0.5 / _JUMP) for some in at_jump]
            else:
                square += dtype.type(1e-30)
                factor = square / (square + parts * cut)
                jumps = [np.zeros(len(square), dtype)] * 2
            kept = factor**2 @ variance
            share = (parts * (factor @ variance) + jumps[0]) / kept + jumps[1] / (kept + variance.mean())
            out = fft.idct(transformed[0] * factor, norm="ortho") / kept[:, None]
            for k in range(0, b, step):
                at = slice(first * step + k, last * step + k + step)
                total[:, at] += out[..., k : k + step].reshape(parts, -1)
                weight[at] += np.repeat(1 / kept, step)
                trace[at] += np.repeat(share / b, step)
        return total, weight, trace

    def _image(self, wide: list[Floats], cut: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the same by compiled loops, which are faster for short windows."""
        from .._kernels import loader as _native

        dtype, guided, shape = cut.dtype, len(wide) == 2, wide[0].shape
        # As volumes, with windows of one entry along an axis that is not there.
        flat_axes = (1,) * (3 - len(self.block))
        bz, by, bx = flat_axes + self.block
        wide = [v.reshape(len(v), *flat_axes, *v.shape[1:]) for v in wide]
        parts, depth, height, width = wide[0].shape
        boxcar = (1 - _JUMP) ** 2, (1 + _JUMP) ** 2, 0.5 / _JUMP
        constants = np.array([0, 1, parts, 1e-30, *boxcar, 1 / (bz * by * bx)])
        constants, dz, dy, dx = (v.astype(dtype) for v in (constants, *map(dct_matrix, (bz, by, bx))))
        # A strip of the image at a time, for the scratch memory of a strip stays in the cache.
        last = (width - bx) // self.step
        strips = [
            (k * self.step, (min(k + _STRIP, last + 1) - k - 1) * self.step + bx) for k in range(0, last + 1, _STRIP)
        ]
        count = min(_STRIP, last + 1)
        block = parts * bz * by * bx * count
        sizes = (3 + 2 * guided) * block, (4 + max(by, 2) * bx) * count, 3 * strips[0][1]
        work = np.empty(sum(sizes), dtype)
        total = np.zeros_like(wide[0])
        weight, trace = np.zeros((2, depth, height, width), dtype)
        for z in range(0, depth - bz + 1, self.step):
            planes = [np.ascontiguousarray(np.einsum("fk,pkyx->pfyx", dz, v[:, z : z + bz])) for v in wide]
            out = np.zeros_like(planes[0])
            flat = np.zeros((2, height, width), dtype)
            for start, size in strips:
                _native.call(
                    f"frame_loops.sliding_dct_{dtype}",
                    *(parts, bz, height, width, start, size, by, bx, self.step, int(guided)),
                    *(planes[0], planes[-1], dy, dx, cut, variance, constants, out, flat[0], flat[1], work),
                )
            total[:, z : z + bz] += np.einsum("fk,pfyx->pkyx", dz, out)
            weight[z : z + bz] += flat[0]
            trace[z : z + bz] += flat[1]
        return total.reshape(shape), weight.reshape(shape[1:]), trace.reshape(shape[1:])


def _mirrored(block: int, n: int) -> Array:
    """Return by how much an entry counts more in its windows along one axis, near the border, for its mirror's sake.

    The mirror enters alike in the low frequencies, and cancels in the sum over all. Half of it was closest to the
    truth on camera, coins and brick, from little noise to much.
    """
    if n < block:  # then the variances allow for it
        return np.ones(n)
    near = 0.5 * np.maximum(block - 1 - 2 * np.arange(n), 0) / block
    out: Array = 1 + near + near[::-1]
    return out
