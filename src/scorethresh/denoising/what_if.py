"""The estimate by wavelets at other thresholds than those chosen, with the error to expect: what if?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Floats, cropped
from ..risk.curve import RiskCurve
from ..risk.estimate import Estimate
from ..risk.prediction import RiskSums
from .batch import Batch
from .denoiser import Denoiser
from .experts.bands import BandThresholds
from .plan import BANDS_RATIO, gap_correction
from .probe import Probe
from .result import Denoised
from .tiles import tile_sums
from .way_back import WayBack

__all__ = ["varied_wavelet", "what_if"]


def varied_wavelet(found: Denoised) -> int:
    """Return the place, among the wavelet experts of a plan, of the one with most weight over all channels."""
    totals = np.sum([plan.weights[: len(plan.experts.thresholds)] for plan in found.plans], axis=0)
    return int(np.argmax(totals))


class _Channel(NamedTuple):
    """A channel of the part: its data, its expert, the risk curves of the bands, and a probe if there are gaps."""

    batch: Batch
    expert: BandThresholds
    curves: list[RiskCurve]
    probe: Probe | None


def what_if(
    y: Any, denoiser: Denoiser, found: Denoised, factors: Sequence[float], where: tuple[slice, ...]
) -> Iterator[Denoised]:
    """Yield what the thresholds of `found`, times each factor, make of a part of y.

    Parameters
    ----------
    y : array_like
        The noisy data.
    denoiser : Denoiser
        What was run on it.
    found : Denoised
        What it found.
    factors : sequence of float
        All thresholds are multiplied by them. Bands that were set to zero stay so.
    where : tuple of slice
        The part, without the axis of channels. Noise level and stabilisation are those of the whole.

    Yields
    ------
    Denoised
        By the wavelets of `varied_wavelet` alone, whatever else a blend is made of. The error is that at factor 1 plus
        the difference of the estimated risks: most of what varies in these, the energy of the noise, is the same at
        all thresholds. `stderr` is that at factor 1. Where more than half of the entries are missing, errors at factors
        below 1 are predicted too high, by up to several times.
    """
    layout, stabilised = denoiser.stabilised(y)
    if stabilised is None or not found.plans:
        return
    slices: tuple[Any, ...] = ()
    axis = layout.channel_axis
    if axis is not None and denoiser.channel_axis is None:  # slices that are channels
        slices = (*[slice(None)] * axis, where[axis])
        where = where[:axis] + where[axis + 1 :]
    back = stabilised.back.crop(where)
    if back.valid is not None and not back.valid.any():
        return
    place = varied_wavelet(found)
    experts = [plan.experts.thresholds[place] for plan in found.plans]
    parts = [
        _channel(np.ascontiguousarray(cropped(values, where)), back, k, expert, factors)
        for k, (values, expert) in enumerate(zip(stabilised.values, experts, strict=True))
    ]
    missing = back.layout.missing
    # Per entry that is not missing, channels without noise included, as predictions are.
    count = back.layout.values.size * (1.0 if missing is None else 1 - missing.mean())
    values, chosen = _run(parts, back, 1.0)
    level = back.predict(chosen, back.restore(values), BANDS_RATIO)
    each = len(experts[0].thresholds)
    bands = [b for k in range(len(parts)) for b in _bands_of(found, k, place, each)]
    for factor in factors:
        values, sums = _run(parts, back, factor)
        mse = level.mse + (sums.risk - chosen.risk) / count
        scaled = tuple(dataclasses.replace(band, threshold=factor * band.threshold) for band in bands)
        yield Denoised(back.restore(values).estimate[slices], found.sigma, mse, level.stderr, scaled, {})


def _bands_of(found: Denoised, channel: int, place: int, each: int) -> Sequence[Any]:
    start = (channel * len(found.plans[0].experts.thresholds) + place) * each
    return found.bands[start : start + each]


def _channel(values: Floats, back: WayBack, channel: int, expert: BandThresholds, factors: Sequence[float]) -> _Channel:
    batch = back.batch(channel, values)
    probe = None if batch.valid is None else Probe.draw(batch, back.covariances[channel])
    # One curve per band serves all factors: its method fits the distribution of the coefficients once.
    return _Channel(batch, expert, expert.curves(batch, factors), probe)


def _run(parts: Sequence[_Channel], back: WayBack, factor: float) -> tuple[Floats, RiskSums]:
    """Return the estimate of all channels at a factor, and its risk."""
    estimates: list[Estimate] = []
    sums = RiskSums()
    for k, (batch, expert, curves, probe) in enumerate(parts):
        scaled = expert.scaled(factor)
        estimate = scaled.apply(batch, curves=curves)
        correction = 1.0 if probe is None else gap_correction(probe, scaled)
        divergence = np.broadcast_to(correction * estimate.divergence[0], batch.shape)
        whole = tuple(slice(0, n) for n in batch.shape)
        sums += tile_sums(batch.values[0], estimate.value[0], divergence, back, k, whole)
        estimates.append(estimate)
    return np.stack([estimate.value[0] for estimate in estimates]), sums
