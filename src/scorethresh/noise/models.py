"""What is said about the noise, and what is read off the data: white, counts, correlated."""

from __future__ import annotations

import abc
import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import working_precision
from .._validate import Array
from .covariance import Stationary
from .level import sample_level
from .spectrum import estimate_spectrum
from .stabilisers import AnscombeRoot, Scaling, Stabiliser

# Beyond this the noise of a count, its root, is lost in the rounding of a double.
MOST_COUNTS = 1e30

__all__ = ["CorrelatedNoise", "NoiseModel", "PoissonNoise", "WhiteNoise", "as_noise"]


class NoiseModel(abc.ABC):
    """A kind of noise, as named by the user, with whatever is known of it.

    A subclass states `measure`. The other members have defaults that suit noise about which nothing has to be said per
    channel or per entry.
    """

    #: Whether constant regions and channels hold no noise. Not for counts: dark regions are constant.
    spares_constants: ClassVar[bool] = True
    #: Whether values at the ends of the range may be clipped noise.
    clips: ClassVar[bool] = True
    #: Whether few slices of a volume may be treated as channels.
    slices: ClassVar[bool] = False
    #: What the noise level is measured in, for people to read.
    level_units: ClassVar[str] = "in units of the data"

    @property
    def checks_channels(self) -> bool:
        """Whether noise that channels share is looked for after they were rotated."""
        return False

    def laid_out(
        self, y: NDArray[Any], channel_axis: int | None, missing: NDArray[np.bool_] | None = None
    ) -> NoiseModel:
        """Return the model with what was given per channel or entry in the layout of y: (channels, parts, *shape).

        `missing`, of shape (*shape), marks entries about which nothing has to be known.
        """
        return self

    def of_channels(self, chosen: NDArray[np.bool_]) -> NoiseModel:
        """Return the model of some of the channels."""
        return self

    def of_slices(self) -> NoiseModel:
        """Return the model of slices of a volume, which share one noise level."""
        return self

    @abc.abstractmethod
    def measure(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> Stabiliser | None:
        """Return what stabilises y, (channels, parts, *shape); None if there is no noise. `missing` is (*shape)."""


@dataclass(frozen=True, eq=False)
class WhiteNoise(NoiseModel):
    """Independent Gaussian noise; its level is given, one number, one per channel or one per entry, or estimated."""

    sigma: Any = None
    shared: bool = False
    slices: ClassVar[bool] = True

    @property
    def checks_channels(self) -> bool:
        """Whether noise that channels share is looked for: if nothing is known of the noise."""
        return self.sigma is None and not self.shared

    def laid_out(
        self, y: NDArray[Any], channel_axis: int | None, missing: NDArray[np.bool_] | None = None
    ) -> WhiteNoise:
        """Return the model with levels that broadcast against y; missing entries get a typical level."""
        if self.sigma is None:
            return self
        return dataclasses.replace(self, sigma=_checked_levels(_levels_of(self.sigma, y, channel_axis), missing))

    def of_channels(self, chosen: NDArray[np.bool_]) -> WhiteNoise:
        """Return the model with the levels of some channels."""
        if self.sigma is None or len(self.sigma) == 1:
            return self
        return dataclasses.replace(self, sigma=self.sigma[chosen])

    def of_slices(self) -> WhiteNoise:
        """Return the model with one level, to be read from all channels as one volume."""
        return dataclasses.replace(self, shared=True)

    def measure(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> Stabiliser | None:
        """Return the division by the level; channels without noise get the largest one."""
        if self.sigma is not None:
            levels = self.sigma
        elif self.shared:
            levels = np.full((1,) * y.ndim, _part_level(np.moveaxis(y, 1, 0)))
        else:
            levels = channel_levels(y, missing)
        return Scaling(np.where(levels > 0, levels, levels.max())) if levels.any() else None


@dataclass(frozen=True, eq=False)
class CorrelatedNoise(NoiseModel):
    """Stationary Gaussian noise; its power spectrum is given, on the grid of `numpy.fft.fftn`, or estimated."""

    power: Any = None

    def laid_out(
        self, y: NDArray[Any], channel_axis: int | None, missing: NDArray[np.bool_] | None = None
    ) -> CorrelatedNoise:
        """Return the model with the spectrum as an array, checked."""
        return self if self.power is None else CorrelatedNoise(_power_of(self.power, y.shape[2:]))

    def measure(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> Stabiliser | None:
        """Return the division by the level of each channel; they share the shape of the spectrum."""
        if self.power is not None:
            power = self.power[None]
        else:
            known = y if missing is None else np.where(missing, np.nan, y)
            power = np.stack([np.mean([estimate_spectrum(p) for p in c.astype(float)], axis=0) for c in known])
        ndim = y.ndim - 2
        level = np.sqrt(power.mean(axis=tuple(range(1, ndim + 1)), keepdims=True))
        noisy = level.ravel() > 0
        if not noisy.any():
            return None
        covariance = Stationary((power[noisy] / level[noisy] ** 2).mean(axis=0))
        return Scaling(np.where(level > 0, level, level.max()).reshape(-1, 1, *(1,) * ndim), covariance)


@dataclass(frozen=True)
class PoissonNoise(NoiseModel):
    """Counts: the variance of an entry is its mean."""

    spares_constants: ClassVar[bool] = False
    clips: ClassVar[bool] = False
    slices: ClassVar[bool] = True
    level_units: ClassVar[str] = "of the root of the counts, where the noise is even"

    def measure(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> Stabiliser:
        """Return Anscombe's root; refuse what cannot be counts."""
        least = y.min(initial=0, where=True if missing is None else ~missing) if y.shape[1] == 1 else None
        if least is None or least < 0:
            msg = f"Poisson noise needs counts of at least 0, got {'complex data' if least is None else least}."
            raise ValueError(msg)
        largest = y.max(initial=0, where=True if missing is None else ~missing)
        if largest > MOST_COUNTS:
            msg = f"Poisson noise needs counts of at most {MOST_COUNTS:g}, got {largest:g}. Beyond, doubles hide it."
            raise ValueError(msg)
        return AnscombeRoot()


_NAMES: dict[str, Any] = {"white": WhiteNoise, "poisson": PoissonNoise, "correlated": CorrelatedNoise}


def as_noise(noise: Any, sigma: Any) -> NoiseModel:
    """Return the model that a user's `noise` and `sigma` stand for: a name, a power spectrum, or a model itself."""
    if isinstance(noise, str):
        kind = _validate.choice("noise", noise, _NAMES)
        if kind is WhiteNoise:
            return WhiteNoise(sigma)
        model: NoiseModel = kind()
        what = repr(noise)
    elif noise is None:
        msg = f"noise must be one of {', '.join(map(repr, _NAMES))}, a NoiseModel or a power spectrum, got None."
        raise TypeError(msg)
    elif isinstance(noise, NoiseModel):
        model, what = noise, repr(noise)
    else:
        model, what = CorrelatedNoise(noise), "a power spectrum"
    if sigma is not None:
        msg = f"sigma goes with white noise, got {sigma!r} with noise={what}. Leave it out."
        raise ValueError(msg)
    return model


def channel_levels(y: NDArray[Any], missing: NDArray[np.bool_] | None) -> Array:
    """Return the noise level of every channel, so that it broadcasts against y; 0 for constant channels."""
    levels = [_part_level(channel, missing) for channel in y]
    return np.array(levels).reshape(-1, *(1,) * (y.ndim - 1))


def _part_level(parts: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> float:
    """Return the root mean square of the noise levels of the parts along the first axis."""
    values = parts.astype(working_precision(parts.dtype))
    if missing is not None:
        values[:, missing] = np.nan
    return math.hypot(*map(sample_level, values)) / math.sqrt(len(values))


def _levels_of(sigma: Any, y: NDArray[Any], channel_axis: int | None) -> Array:
    """Return a noise level, one per channel or one per entry, so that it broadcasts against y."""
    if np.ndim(sigma) == 0:
        return np.full((1,) * y.ndim, _validate.noise_level(sigma))
    levels = _validate.real_array(sigma, "sigma").astype(np.float64)
    channels, shape = len(y), y.shape[2:]
    if channel_axis is not None and levels.shape == (channels,):
        return levels.reshape(-1, 1, *(1,) * len(shape))
    if levels.shape == shape:
        return levels[None, None]
    if channel_axis is not None and levels.ndim == len(shape) + 1:
        moved = np.moveaxis(levels, channel_axis, 0)
        if moved.shape == (channels, *shape):
            return moved[:, None]
    ways = f"one per entry, of shape {shape}"
    if channel_axis is not None:
        ways = f"one per channel, of shape ({channels},), or {ways}, or one per entry of all channels"
    msg = f"sigma must be one number, or {ways}, got shape {levels.shape}."
    raise ValueError(msg)


def _checked_levels(levels: Array, missing: NDArray[np.bool_] | None) -> Array:
    """Return the levels, with those of missing entries replaced by the median; refuse others that are no levels."""
    if missing is not None and not missing.all() and levels.shape[2:] == missing.shape:
        levels = np.where(missing, np.median(levels[:, :, ~missing]), levels)
    _validate.level_map(levels)
    for extreme in (levels.min(), levels.max()):
        _validate.noise_level(extreme)
    return levels


def _power_of(noise: Any, shape: tuple[int, ...]) -> Array:
    """Return the power spectrum of the noise as an array."""
    power = _validate.real_array(noise, "noise").astype(np.float64)
    if power.shape != shape:
        msg = (
            f"noise, as a power spectrum, must have the shape of one channel, {shape}, got {power.shape}. It is "
            "E |fftn(w)|^2 / w.size on the grid of np.fft.fftn."
        )
        raise ValueError(msg)
    if not (np.isfinite(power).all() and power.min() >= 0 and power.any()):
        ends = f"{power.min()} to {power.max()}"
        msg = f"noise, as a power spectrum, must be finite, at least 0, and not 0 everywhere, got values from {ends}."
        raise ValueError(msg)
    return power
