"""The DCT of overlapping windows, shrunk by thresholds or by a pilot estimate."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, cropped
from .._kernels import WindowShrinkage, sliding_dct
from .._validate import Array
from .dct import dct_matrix
from .padding import reflect_pad

# Half the width of the boxcar kernel at a jump, over the threshold. Narrow against the noise (thresholds are near
# 2.7 noise levels), so that the bias is small; there are enough coefficients to keep the variance small too.
JUMP_HALF_WIDTH = 0.04

# Entries of the windows of a signal that are shrunk at once. From 2^17 to 2^19 the time is the same to 6%; 2^20, which
# leave the cache, take 13% longer, 2^16 20%.
CHUNK_ENTRIES = 1 << 18

# Sides that the compiled loops are made for.
SIDES = (4, 8, 16, 32, 64)


class WindowEstimate(NamedTuple):
    """An estimate (parts, *shape), and per entry the divergence ``tr(Sigma dx/dy)``, summed over the parts."""

    value: Floats
    divergence: Floats


class _Sums(NamedTuple):
    """Sums over windows: weighted estimates, weights, weighted divergences."""

    total: Floats
    weight: Floats
    divergence: Floats


@dataclass(frozen=True)
class Windows:
    """The orthonormal DCT of windows at every position, or at every `step`-th.

    Overlapping estimates are averaged. A window counts by the inverse of the noise variance that it lets through.
    """

    block: tuple[int, ...]
    step: int = 1

    def __post_init__(self) -> None:
        # The loops rely on both.
        if any(b % self.step for b in self.block):
            msg = f"the sides of a window must be multiples of its step {self.step}, got {self.block}."
            raise ValueError(msg)
        if len(self.block) > 1 and any(b not in SIDES for b in self.block):
            msg = f"the sides of a window must be among {SIDES}, got {self.block}."
            raise ValueError(msg)

    @property
    def reach(self) -> int:
        """How far an entry of the result lies, at most, from the data that it depends on."""
        return max(self.block) - 1

    def filters(self) -> list[Array]:
        """Return the filters of each axis as rows."""
        return [dct_matrix(b) for b in self.block]

    def hard(self, y: Floats, variance: Array, threshold: float) -> WindowEstimate:
        """Keep coefficients of at least `threshold` times their noise level, and the mean of the window.

        `y` holds parts along its first axis; decisions are made on the norm over the parts. The divergence takes the
        weights of the windows as constant and includes the jump.
        """
        return self._run([y], threshold * np.sqrt(variance), variance)

    def guided(self, y: Floats, pilot: Floats, variance: Array, strength: float) -> WindowEstimate:
        """Multiply coefficients by ``g^2 / (g^2 + strength variance)``, g those of the pilot; the mean is kept."""
        return self._run([y, pilot], strength * variance, variance)

    def _run(self, inputs: list[Floats], cut: Array, variance: Array) -> WindowEstimate:
        shape, ndim, dtype = inputs[0].shape[1:], len(self.block), inputs[0].dtype
        pads = [(b - 1, b - 1 + -(n + b - 2) % self.step) for b, n in zip(self.block, shape, strict=True)]
        padded = [reflect_pad(v, pads) for v in inputs]
        cut, variance = np.array(cut, dtype, order="C"), np.ascontiguousarray(variance, dtype)
        cut.flat[0] = 0  # the mean is kept
        total, weight, divergence = (self._by_fft if ndim == 1 else self._by_loops)(padded, cut, variance, shape)
        total /= weight
        divergence /= weight
        crop = tuple(slice(before, before + n) for (before, _), n in zip(pads, shape, strict=True))
        return WindowEstimate(cropped(total, crop), np.ascontiguousarray(cropped(divergence, crop)))

    def _by_fft(self, padded: list[Floats], cut: Floats, variance: Floats, shape: tuple[int, ...]) -> _Sums:
        """Return the sums for a signal by fast transforms, for windows may be long."""
        from scipy import fft

        (b,), step, dtype = self.block, self.step, cut.dtype
        parts, width = padded[0].shape
        count = (width - b) // step + 1
        sums = _Sums(np.zeros_like(padded[0]), np.zeros(width, dtype), np.zeros(width, dtype))
        chunk = max(CHUNK_ENTRIES // b, 1)
        for first in range(0, count, chunk):
            last = min(first + chunk, count) - 1
            part = slice(first * step, last * step + b)
            views = [np.lib.stride_tricks.sliding_window_view(v[:, part], b, axis=1)[:, ::step] for v in padded]
            transformed = [fft.dct(v, norm="ortho") for v in views]
            square = np.square(transformed[-1]).sum(axis=0)
            trace = variance * window_traces(b, 1 - b + step * np.arange(first, last + 1), shape[0]).astype(dtype)
            factor, kept, divergence = (_keep if len(padded) == 1 else _shrink)(square, parts, cut, variance, trace)
            out = fft.idct(transformed[0] * factor, norm="ortho") / kept[:, None]
            for k in range(0, b, step):
                at = slice(first * step + k, last * step + k + step)
                sums.total[:, at] += out[..., k : k + step].reshape(parts, -1)
                sums.weight[at] += np.repeat(1 / kept, step)
                sums.divergence[at] += np.repeat(divergence / b, step)
        return sums

    def _by_loops(self, padded: list[Floats], cut: Floats, variance: Floats, inside: tuple[int, ...]) -> _Sums:
        """Return the sums for an image or a volume by compiled loops, which are faster for short windows."""
        dtype, shape = cut.dtype, padded[0].shape
        # As volumes, with windows of one entry along an axis that is not there.
        flat_axes = (1,) * (3 - len(self.block))
        block = flat_axes + self.block
        cut, variance = cut.reshape(block), variance.reshape(block)
        traces = [traces_of(b, self.step, n).astype(dtype) for b, n in zip(self.block, inside, strict=True)]

        def shrinkage(trace: Floats) -> WindowShrinkage:
            return WindowShrinkage(cut, variance, JUMP_HALF_WIDTH, trace, *traces[-2:])

        dz, dy, dx = (dct_matrix(b).astype(dtype) for b in block)
        padded = [v.reshape(len(v), *flat_axes, *v.shape[1:]) for v in padded]
        if block[0] == 1:
            pilot = padded[1] if len(padded) > 1 else None
            sums = sliding_dct(padded[0], pilot, shrinkage(variance), (dy, dx), self.step)
            return _Sums(sums[0].reshape(shape), *sums[1:])
        total = np.zeros_like(padded[0])
        weight, divergence = np.zeros((2, *total.shape[1:]), dtype)
        for z in range(0, total.shape[1] - block[0] + 1, self.step):
            part = slice(z, z + block[0])
            planes = [np.ascontiguousarray(np.einsum("fk,pkyx->pfyx", dz, v[:, part])) for v in padded]
            pilot = planes[1] if len(planes) > 1 else None
            trace = variance * traces[0][z // self.step, :, None, None]
            sums = sliding_dct(planes[0], pilot, shrinkage(trace), (dy, dx), self.step)
            total[:, part] += np.einsum("fk,pfyx->pkyx", dz, sums[0])
            weight[part] += sums[1]
            divergence[part] += sums[2]
        return _Sums(total.reshape(shape), weight.reshape(shape[1:]), divergence.reshape(shape[1:]))


def _keep(square: Floats, parts: int, cut: Floats, variance: Floats, trace: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the factors of hard thresholding, and per window the noise let through and the divergence over it."""
    dtype = cut.dtype
    low, limit, high = ((cut * dtype.type(f)) ** 2 for f in (1 - JUMP_HALF_WIDTH, 1, 1 + JUMP_HALF_WIDTH))
    factor = (square >= limit).astype(dtype)
    kept = factor @ variance
    # Coefficients at the jump. If one that is just below were kept, its window would weigh less.
    at_jump = (square >= limit) & (square < high), (square < limit) & (square > low)
    above, below = (_traced(some, trace) * dtype.type(0.5 / JUMP_HALF_WIDTH) for some in at_jump)
    return factor, kept, (parts * _traced(factor, trace) + above) / kept + below / (kept + variance.mean())


def _shrink(square: Floats, parts: int, cut: Floats, variance: Floats, trace: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the factors by a pilot, and per window the noise let through and the divergence over it."""
    square += cut.dtype.type(1e-30)
    factor = square / (square + parts * cut)
    kept = factor**2 @ variance
    return factor, kept, parts * _traced(factor, trace) / kept


def _traced(factor: NDArray[Any], trace: Floats) -> Floats:
    out: Floats = np.einsum("wf,wf->w", factor, trace)
    return out


def window_traces(side: int, starts: NDArray[np.integer[Any]], size: int) -> Array:
    """Return by what every frequency counts in the divergence of windows of an axis that is extended by reflection.

    Parameters
    ----------
    side : int
        Of a window.
    starts : ndarray
        Where windows begin, negative before the first entry.
    size : int
        Of the axis.

    Returns
    -------
    ndarray of shape (starts.size, side)
        1 if the window is inside. The divergence is that of the entries inside, and is spread over all of the window.

    Notes
    -----
    With the rows d of the DCT, a frequency f that is kept changes entry i by ``d_f(i) d_f(j)`` when entry j of the
    window changes. All j that repeat an entry change with it. So it counts
    ``sum_i sum_j d_f(i) d_f(j)``, i inside, j all repetitions of i: itself, those of the period ``2 size``, and mirror
    images. As ``d_f(i)`` is ``cos((2 i + 1) t)``, t = pi f / (2 side), these are sums of cosines, which have closed
    forms.
    """
    out = np.ones((starts.size, side))
    for k in np.flatnonzero((starts < 0) | (starts + side > size)).tolist():
        out[k] = _border_trace(side, int(starts[k]), size)
    return out


def traces_of(side: int, step: int, size: int) -> Array:
    """Return `window_traces` of all windows of an axis."""
    return window_traces(side, np.arange(1 - side, size + -(size + side - 2) % step, step), size)


@functools.lru_cache(maxsize=1024)
def _border_trace(side: int, start: int, size: int) -> Array:
    """Return the row of `window_traces` for one window; it cannot be written to. Rows are kept, 8 MB at most."""
    entries = range(max(-start, 0), min(side, size - start))
    if not entries:
        return np.ones(side)
    angle = np.pi * np.arange(1, side) / side
    total = np.zeros(side)

    def add(shift: int, first: int, last: int) -> None:
        """Add the products of entries i, from first to last, and j, of which ``j - i`` or ``-(i + j + 1)`` is shift."""
        first, last = max(first, entries.start), min(last, entries.stop)
        if first < last:
            ends = np.sin((2 * last + shift) * angle) - np.sin((2 * first + shift) * angle)
            total[1:] += (last - first) * np.cos(shift * angle) + ends / (2 * np.sin(angle))
            total[0] += last - first

    period = 2 * size
    for shift in range(-(side // period) * period, side, period):
        add(shift, -shift, side - shift)
    mirror = -2 * start % period  # i + j + 1, the least that is not negative
    for both in range(mirror, 2 * side, period):
        add(-both, both - side, both)
    total /= len(entries)
    total.flags.writeable = False
    return total
