"""Noise models by name."""

from __future__ import annotations

from typing import Any

from .. import _validate
from .auto import AutoNoise
from .base import NoiseModel
from .camera import CameraNoise
from .models import CorrelatedNoise, PoissonNoise, WhiteNoise
from .rician import RicianNoise
from .speckle import SpeckleNoise

__all__ = ["as_noise"]

_NAMES: dict[str, Any] = {
    "auto": AutoNoise,
    "white": WhiteNoise,
    "poisson": PoissonNoise,
    "correlated": CorrelatedNoise,
    "camera": CameraNoise,
    "rician": RicianNoise,
    "speckle": SpeckleNoise,
}


def as_noise(noise: Any, sigma: Any) -> NoiseModel:
    """Return the model that a user's `noise` and `sigma` stand for: a name, a power spectrum, or a model itself."""
    if isinstance(noise, str):
        kind = _validate.choice("noise", noise, _NAMES)
        if kind is WhiteNoise or (kind is AutoNoise and sigma is not None):
            return WhiteNoise(sigma)
        model: NoiseModel = kind()
        what = repr(noise)
    elif noise is None:
        msg = f"noise must be one of {', '.join(map(repr, _NAMES))}, a NoiseModel or a power spectrum, got None."
        raise TypeError(msg)
    elif isinstance(noise, type) and issubclass(noise, NoiseModel):
        msg = f"noise must be a model, got the class {noise.__name__}. Call it: noise={noise.__name__}()."
        raise TypeError(msg)
    elif isinstance(noise, NoiseModel):
        model, what = noise, repr(noise)
    else:
        model, what = CorrelatedNoise(noise), "a power spectrum"
    if sigma is not None:
        msg = f"sigma goes with white noise, got {sigma!r} with noise={what}. Leave it out."
        raise ValueError(msg)
    return model
