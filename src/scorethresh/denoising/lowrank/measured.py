"""The noise of a series: its level at every entry, and what makes it even if it depends on the signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._validate import Array
from ...noise.auto import AutoNoise
from ...noise.base import NoiseModel
from ...noise.magnitude import MagnitudeTransform
from ...noise.models import CorrelatedNoise, WhiteNoise
from ...noise.named import as_noise
from ...noise.rician import RicianNoise
from .evened import SeriesWayBack, even_out, local_levels
from .magnitude_back import MagnitudeWayBack
from .magnitude_map import estimate_magnitude_map
from .noise_map import NoiseMap, estimate_noise_map
from .series import Series

__all__ = ["MeasuredSeries", "as_series_noise", "measure_noise"]


@dataclass(frozen=True, eq=False)
class MeasuredSeries:
    """A series with Gaussian noise of known levels.

    Attributes
    ----------
    series : Series
        As it is, or with transformed values.
    levels : ndarray
        The noise level of one part of the values, (*shape).
    level_error : float
        The relative error that the squares of all levels may have in common.
    way_back : SeriesWayBack or None
        From transformed values to the units of y.
    """

    series: Series
    levels: Array
    level_error: float = 0.0
    way_back: SeriesWayBack | None = None


def as_series_noise(noise: Any, sigma: Any) -> tuple[NoiseModel, Any]:
    """Return the model that a user's `noise` stands for, and the level or map of levels; refuse what does not fit."""
    model = as_noise(noise, None)
    if isinstance(model, AutoNoise | CorrelatedNoise):
        msg = (
            f"noise must be 'white', 'rician', 'poisson', 'camera', 'speckle' or a model of these for a series, got "
            f"{noise!r}. Noise that is correlated passes for signal: denoise before interpolation."
        )
        raise ValueError(msg)
    own = getattr(model, "sigma", None)
    takes = isinstance(model, WhiteNoise | RicianNoise)
    if sigma is not None and (own is not None or not takes):
        msg = f"sigma goes with white or Rician noise without a level of its own, got it with noise={noise!r}. "
        raise ValueError(msg + "Leave it out.")
    return model, (sigma if own is None else own) if takes else None


def measure_noise(series: Series, model: NoiseModel, given: Array | None) -> MeasuredSeries | None:
    """Return the series with its noise levels, given or estimated; None if there is no noise."""
    if isinstance(model, WhiteNoise):
        levels, error = estimate_noise_map(series) if given is None else NoiseMap(given)
        return MeasuredSeries(series, levels, error) if levels.any() else None
    y: Any = np.moveaxis(np.ma.getdata(series.original), series.axis, 0)[:, None]
    y = np.concatenate([y.real, y.imag], axis=1) if series.parts == 2 else y
    missing = None if series.valid.all() else ~series.valid
    scale = np.ones(series.valid.shape)
    if isinstance(model, RicianNoise):
        RicianNoise(model.coils, 1.0).measure(y, missing)  # refuses what cannot be magnitudes
        scale, error = estimate_magnitude_map(series, model.coils) if given is None else NoiseMap(given)
        stabiliser: Any = MagnitudeTransform(1.0, model.coils) if scale.all() else None
    else:
        stabiliser = model.laid_out(y, 0, missing).measure(y, missing)
        error = 0.0 if stabiliser is None else 2 * stabiliser.level_error
    if stabiliser is None:
        return None
    evened = even_out(series, stabiliser, scale)
    way_back = (MagnitudeWayBack if isinstance(stabiliser, MagnitudeTransform) else SeriesWayBack)(stabiliser, scale)
    return MeasuredSeries(evened, local_levels(evened, stabiliser), error, way_back)
