"""The estimate by wavelets at other thresholds than those chosen, with the error to expect: what if?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._validate import Array
from ..frames.transforms import Decimated, Floats, Undecimated, cropped
from ..risk.curve import RiskCurve
from ..risk.methods import Method, Selector
from .blend import Band, Drawn, Piece, Seen, Wavelets
from .denoiser import Denoised, Denoiser, _Plan, _treat
from .prepare import Prepared

__all__ = ["trials", "tried_wavelet"]


def tried_wavelet(found: Denoised) -> str:
    """Return the wavelet whose thresholds are varied: of those in a blend the one with most weight."""
    names = dict.fromkeys(band.name.split()[-3] for band in found.bands)
    return max(names, key=lambda name: sum(w for k, w in found.weights.items() if k.endswith(f"{name} thresholds")))


def trials(
    y: Any, denoiser: Denoiser, found: Denoised, factors: Sequence[float], where: tuple[slice, ...]
) -> Iterator[Denoised]:
    """Yield what the thresholds of `found`, times each factor, make of a part of y.

    Wavelets only, those of `tried_wavelet`, whatever else a blend is made of. Bands that were set to zero stay so.
    Noise level and stabilisation are those of the whole; `where` is the part, without the axis of channels.

    The error is that at factor 1 plus the difference of the estimated risks. Most of what varies in these, the energy
    of the noise, is the same at all thresholds. `stderr` is that at factor 1.
    """
    _, data, axis = denoiser._prepared(y)
    slices: tuple[Any, ...] = ()
    if axis is not None and denoiser.channel_axis is None:  # slices that are channels
        slices = (*[slice(None)] * axis, where[axis])
        where = where[:axis] + where[axis + 1 :]
    if data is None or not found.bands:
        return
    whole_shape = data.values.shape[2:] if denoiser.undecimated else None
    data = _part(data, where)
    if data.seen is not None and not data.seen.any():
        return
    noisy = data.values.copy()
    ndim, name = noisy.ndim - 2, tried_wavelet(found)
    bands = [band for band in found.bands if band.name.split()[-3] == name]
    each = len(bands) // len(noisy)
    frame = (Undecimated if denoiser.undecimated else Decimated)(name, each // (2**ndim - 1))
    options = (ndim, denoiser.rule, denoiser.method, whole_shape)
    plans = [
        _Fixed(_Waves(frame, noise, *options), bands[k * each : (k + 1) * each], factors)
        for k, noise in enumerate(data.noise)
    ]
    if data.counting is not None:
        for plan, noise, channel in zip(plans, data.noise, noisy, strict=True):
            plan.correction = plan.wave.correction(Drawn.of(channel[None], noise, data.counting[None]), plan.chosen)
    whole = tuple(slice(0, n) for n in noisy.shape[2:])
    valid = 1.0 if data.invalid is None else 1 - data.invalid.mean()

    def run(factor: float) -> Array:
        data.values = noisy.copy()  # estimates that were given out may be views of the last ones
        for plan in plans:
            plan.factor = factor
        sums = [_treat(data.values[k], k, plan, None, [whole], data, lambda: None) for k, plan in enumerate(plans)]
        total: Array = np.sum(sums, axis=0)
        return total

    chosen = run(1.0)
    level, stderr = data.error(chosen, *data.restored()[1:], blended=False)
    for factor in factors:
        mse = level + (run(factor)[0] - chosen[0]) / (valid * noisy.size)
        scaled = tuple(band for plan in plans for band in plan.scaled())
        yield Denoised(data.restored()[0][slices], found.sigma, mse, stderr, scaled, {})


class _Waves(Wavelets):
    """Wavelets that estimate the risk of a band at all thresholds to come when first asked for one.

    That fits the distribution of the coefficients once, not once per trial: they stay the same.
    """

    tried: list[Array]
    known: dict[int, RiskCurve]

    def _curve(self, k: int, c: Floats, thresholds: Array, method: str | Method | Selector | None = None) -> RiskCurve:
        if k not in self.known:
            self.known[k] = super()._curve(k, c, self.tried[k], method)
        return self.known[k]


class _Fixed(_Plan):
    """A plan with thresholds that are given, for data that are one tile."""

    factor = correction = 1.0

    def __init__(self, wave: _Waves, bands: Sequence[Band], factors: Sequence[float]) -> None:
        self.wave, self.chosen = wave, bands
        wave.known, wave.tried = {}, [np.unique([f * band.threshold for f in (1.0, *factors)]) for band in bands]

    def scaled(self) -> list[Band]:
        return [dataclasses.replace(band, threshold=self.factor * band.threshold) for band in self.chosen]

    def apply(self, y: Floats, seen: Seen) -> Piece:
        piece = self.wave.apply(y, self.scaled(), seen)
        return Piece(piece.estimate, self.correction * piece.trace)

    def margin(self) -> int:
        return 0


def _part(data: Prepared, where: tuple[slice, ...]) -> Prepared:
    return dataclasses.replace(
        data,
        given=cropped(data.given, where),
        values=cropped(data.values, where).copy(),
        scale=cropped(data.scale, where) if data.varies else data.scale,
        invalid=None if data.invalid is None else data.invalid[where],
        seen=None if data.seen is None else data.seen[where],
    )
