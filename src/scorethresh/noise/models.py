"""What is said about the noise, and what is read off the data: white, counts, correlated; the names of all models."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import known_floats
from .._validate import Array
from .base import NoiseModel
from .covariance import Stationary
from .generalised_anscombe import GeneralisedAnscombe
from .level import Level, measure_level
from .spectrum import estimate_spectrum
from .stabilisers import Scaling, Stabiliser

# Beyond this the noise of a count, its root, is lost in the rounding of a double.
MOST_COUNTS = 1e30

__all__ = ["CorrelatedNoise", "NoiseModel", "PoissonNoise", "WhiteNoise"]


@dataclass(frozen=True, eq=False)
class WhiteNoise(NoiseModel):
    """Independent Gaussian noise; its level is given, one number, one per channel or one per entry, or estimated.

    An estimated level has the relative standard error `doubt` besides that of its readings.
    """

    sigma: Any = None
    shared: bool = False
    doubt: float = 0.0
    name: ClassVar[str] = "white Gaussian noise"
    sampled: ClassVar[bool] = True
    slices: ClassVar[bool] = True

    @property
    def level_given(self) -> bool:
        """Whether the user gave a noise level."""
        return self.sigma is not None

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
            levels, error = self.sigma, 0.0
        elif self.shared:
            level, error = _part_level(np.moveaxis(y, 1, 0))
            levels = np.full((1,) * y.ndim, level)
        else:
            levels, error = channel_levels(y, missing)
        if not levels.any():
            return None
        return Scaling(np.where(levels > 0, levels, levels.max()), level_error=math.hypot(error, self.doubt))


@dataclass(frozen=True, eq=False)
class CorrelatedNoise(NoiseModel):
    """Stationary Gaussian noise; its power spectrum is given, on the grid of `numpy.fft.fftn`, or estimated."""

    power: Any = None
    name: ClassVar[str] = "correlated Gaussian noise"
    sampled: ClassVar[bool] = True

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
        scale = np.where(level > 0, level, level.max()).reshape(-1, 1, *(1,) * ndim)
        # Of a spectrum fewer coefficients tell each frequency.
        error = 0.0 if self.power is not None else 2 * channel_levels(y, missing)[1]
        return Scaling(scale, covariance, level_error=error)


@dataclass(frozen=True)
class PoissonNoise(NoiseModel):
    """Counts: the variance of an entry is its mean."""

    name: ClassVar[str] = "Poisson noise of counts"
    sampled: ClassVar[bool] = True
    clips: ClassVar[bool] = False
    slices: ClassVar[bool] = True
    level_units: ClassVar[str] = "of the root of the counts, where the noise is even"

    def measure(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> Stabiliser:
        """Return Anscombe's root; refuse what cannot be counts."""
        _check_counts(y, missing)
        return GeneralisedAnscombe(1.0, 0.0, 0.0, step=1.0)

    def laid_out(
        self, y: NDArray[Any], channel_axis: int | None, missing: NDArray[np.bool_] | None = None
    ) -> PoissonNoise:
        """Return the model; refuse what cannot be counts, in constant channels too."""
        _check_counts(y, missing)
        return self


def _check_counts(y: NDArray[Any], missing: NDArray[np.bool_] | None) -> None:
    """Raise unless all known entries may be counts."""
    least = y.min(initial=0, where=True if missing is None else ~missing) if y.shape[1] == 1 else None
    if least is None or least < 0:
        msg = f"Poisson noise needs counts of at least 0, got {'complex data' if least is None else least}."
        raise ValueError(msg)
    largest = float(y.max(initial=0, where=True if missing is None else ~missing))
    if largest > MOST_COUNTS:
        msg = f"Poisson noise needs counts of at most {MOST_COUNTS:g}, got {largest:g}. Beyond, doubles hide it."
        raise ValueError(msg)


def channel_levels(y: NDArray[Any], missing: NDArray[np.bool_] | None, *, peaks: bool = True) -> tuple[Array, float]:
    """Return the noise level of every channel, 0 for constant ones, and the relative standard error of all.

    Levels broadcast against y. The error is the root mean square over the channels that hold noise: structure, which
    makes most of it, is alike in them.
    """
    levels = [_part_level(channel, missing, peaks) for channel in y]
    errors = [level.error for level in levels if level.value > 0]
    error = math.sqrt(np.mean(np.square(errors))) if errors else 0.0
    return np.array([level.value for level in levels]).reshape(-1, *(1,) * (y.ndim - 1)), error


def _part_level(parts: NDArray[Any], missing: NDArray[np.bool_] | None = None, peaks: bool = True) -> Level:
    """Return the root mean square of the noise levels of the parts along the first axis, and of their errors."""
    levels = [measure_level(known_floats(part, missing), peaks=peaks) for part in parts]
    root = math.sqrt(len(levels))
    return Level(math.hypot(*(v.value for v in levels)) / root, math.hypot(*(v.error for v in levels)) / root)


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
