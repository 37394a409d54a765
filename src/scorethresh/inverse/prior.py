"""The prior: a denoiser that is told the noise level, ours or the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import Floats
from ..denoising.denoiser import Denoiser
from ..noise.models import WhiteNoise
from ..risk.black_box import BlackBox

__all__ = ["Prior", "denoising_prior", "users_prior"]

# Takes x, (channels, *shape), and a noise level; returns x denoised.
Prior = Callable[[Floats, float], Floats]


@dataclass(frozen=True, eq=False)
class IterateNoise(WhiteNoise):
    """What is wrong with an iterate, taken for white noise; flat and extreme values are as noisy as others."""

    spares_constants: ClassVar[bool] = False
    clips: ClassVar[bool] = False
    judged: ClassVar[bool] = False


def denoising_prior(channels: int | None, dtype: Any) -> Prior:
    """Return our denoiser as a prior.

    Parameters
    ----------
    channels : int, optional
        The number of channels; None if the data have no axis of channels.
    dtype : dtype
        The precision to denoise in.

    Notes
    -----
    It is the blend in every step. On camera, coins and astronaut, with 8 steps, ``choose="fast"`` in the first half
    of them loses 0.03 to 0.55 dB, in all of them 0.36 to 0.98 dB. Gaps are the exception: they gain 0.27 and 0.14 dB.
    """

    def prior(x: Floats, level: float) -> Floats:
        denoiser = Denoiser(noise=IterateNoise(level), channel_axis=None if channels is None else 0)
        values = x.astype(np.result_type(dtype, np.complex64) if np.iscomplexobj(x) else dtype)
        found = denoiser.run(values[0] if channels is None else values).estimate
        return np.asarray(found[None] if channels is None else found, dtype=x.dtype)

    return prior


def users_prior(function: Any, channel_axis: int | None) -> Prior:
    """Return a function of the user's as a prior: it gets arrays in the layout of y, and is checked."""
    if not callable(function):
        msg = f"prior must be a function of an array and a noise level, got {function!r}."
        raise TypeError(msg)

    def prior(x: Floats, level: float) -> Floats:
        box = BlackBox(lambda values: function(values, level), f"prior at sigma={level:.4g}")
        found = box(x[0] if channel_axis is None else np.moveaxis(x, 0, channel_axis))
        back = found[None] if channel_axis is None else np.moveaxis(found, channel_axis, 0)
        return back.astype(x.dtype)

    return prior
