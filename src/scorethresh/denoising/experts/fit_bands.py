"""The thresholds of wavelet bands, chosen by estimated risk: one per band, or one for all."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..._arrays import Floats, cropped
from ...risk.curve import RiskCurve
from ...risk.estimate import Estimate
from ...sample.magnitudes import default_thresholds
from ..batch import Batch
from .bands import Band, BandRun, BandThresholds, FrameNoise, run_bands
from .decisions import Decisions
from .samples import join_samples, sample_band


class FittedBands(NamedTuple):
    """The expert, its estimate of the batch that it was fitted to, and what was done to each band."""

    expert: BandThresholds
    estimate: Estimate
    bands: tuple[Band, ...]


def fit_bands(noise: FrameNoise, decisions: Decisions, batch: Batch, cap: float = math.inf) -> FittedBands:
    """Choose the threshold of every band by itself; `cap` is the largest one, over the noise level of the band."""

    def choose(k: int, c: Floats) -> tuple[float, RiskCurve]:
        sigma = noise.bands[k].sigma
        threshold, curve = decisions.select(c, sigma)
        return _capped(threshold, curve, cap * sigma), curve

    return _fitted(noise, decisions, run_bands(noise, decisions, batch, choose))


def fit_global(noise: FrameNoise, decisions: Decisions, batch: Batch, cap: float = math.inf) -> FittedBands:
    """Choose one threshold for all bands, over their noise levels."""
    grid = default_thresholds(batch.values.size, 1.0)
    inside = noise.frame.inside(batch.shape)
    curves: dict[int, RiskCurve] = {}

    def collect(k: int, coefficients: Floats) -> None:
        band = noise.bands[k]
        samples = sample_band(noise.frame, band.key, cropped(coefficients, inside), batch.valid)
        curves[k] = decisions.curve(join_samples(samples), grid * band.sigma, band.sigma)

    noise.frame.visit(batch.values, collect, len(batch.shape))
    # Risks over the noise variance of the coefficients, each band by its share of the noise in the data.
    total = sum(noise.bands[k].share * c.risk / (c.sigma**2 * c.size) for k, c in curves.items())
    t = min(float(grid[np.argmin(total)]), float(grid[np.searchsorted(grid, cap, side="right") - 1]))
    return _fitted(
        noise, decisions, run_bands(noise, decisions, batch, lambda k, _: (t * noise.bands[k].sigma, curves[k]))
    )


def _capped(threshold: float, curve: RiskCurve, cap: float) -> float:
    """Return the threshold, or the largest one on the curve that does not exceed the cap."""
    if threshold <= cap:
        return threshold
    return float(curve.thresholds[max(int(np.searchsorted(curve.thresholds, cap, side="right")) - 1, 0)])


def _fitted(noise: FrameNoise, decisions: Decisions, run: BandRun) -> FittedBands:
    bands = []
    for band, threshold, kept, curve in zip(noise.bands, run.thresholds, run.kept, run.curves, strict=True):
        assert curve is not None
        bands.append(Band(noise.frame.wavelet, *band.key, band.sigma, threshold, kept, curve))
    return FittedBands(BandThresholds(noise, decisions, run.thresholds), run.estimate, tuple(bands))
