"""Multiplicative noise: speckle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._validate import Array
from .base import NoiseModel
from .clipping import MEAN_BOX
from .level import sample_level
from .stabilisers import Moments, OwnVariances, Stabiliser
from .variance_line import fit_variance_line

__all__ = ["LogTransform", "SpeckleNoise"]

# Values below this share of the mean are raised to it, because the logarithm of 0 is infinite. Smaller shares make
# black regions noisier, larger ones lose contrast there.
LEAST_SHARE = 1e-3
# Relative standard error of a level where too few windows tell it.
ROUGH_ERROR = 0.05
# The logarithm has heavy tails, so the flattest windows hold less noise than others: its level is read too low by this
# times its excess kurtosis, and is uncertain by half of that. On 20 crops of 10 development photographs the factor is
# 0.032, 0.032, 0.015 and 0.027 at 1, 2, 4 and 10 looks, in noise alone 0.01 to 0.08.
LOW_READING = 0.03
# Range of the number of looks: beyond, noise is 100% of the signal, or below a thousandth of it.
LOOKS = 0.5, 1e6


@dataclass(frozen=True, eq=False)
class LogTransform(Stabiliser):
    """The logarithm over its noise level, and its exact unbiased inverse for gamma noise.

    Attributes
    ----------
    looks : float
        Mean squared over variance of the factor.
    least : float
        Smaller values are raised to this one.
    level_error : float
        Relative standard error of the noise level; 0 if it is given.

    Notes
    -----
    For a gamma factor of mean 1, ``E log y = log x + digamma(looks) - log(looks)`` and
    ``Var log y = trigamma(looks)``, whatever x is.
    """

    looks: float
    least: float
    level_error: float = 0.0
    has_floor: ClassVar[bool] = True

    @property
    def level(self) -> float:
        """The standard deviation of the logarithm."""
        from scipy.special import polygamma

        return math.sqrt(float(polygamma(1, self.looks)))

    @property
    def bias(self) -> float:
        """The mean of the logarithm of the factor."""
        from scipy.special import digamma

        return float(digamma(self.looks)) - math.log(self.looks)

    def forward(self, y: NDArray[Any]) -> Floats:
        """Return the logarithm over its noise level."""
        out: Floats = np.log(np.maximum(y.astype(np.float64), self.least)) / self.level
        return out

    def inverse(self, values: Floats) -> Floats:
        """Return the mean of y."""
        out: Floats = np.exp(self.level * values - self.bias)
        return out

    def slope(self, values: Floats) -> Floats:
        """Return the derivative of `inverse`."""
        out: Floats = self.level * self.inverse(values)
        return out

    def level_at(self, means: Floats) -> Array:
        """Return the noise level of y at means."""
        return np.maximum(means, self.least) / math.sqrt(self.looks)

    @property
    def has_own_variances(self) -> bool:
        """They are known."""
        return True

    def own_variances(self, y: Floats, means: Floats) -> OwnVariances:
        """Return the noise variances: the square of the mean over the looks. That of y has one noise variance more."""
        return OwnVariances(np.square(y) / (self.looks + 1), np.square(means) / self.looks)

    def error_weights(self, y: NDArray[Any], missing: NDArray[np.bool_] | None, channel: int | None) -> Floats | None:
        """Return the square of the local mean: the square of the slope, over that at the mean of the data."""
        from scipy.ndimage import uniform_filter

        means = y[:, 0].mean(axis=0, dtype=np.float64)
        known = means if missing is None else np.where(missing, 0.0, means)
        weights: Floats = np.square(np.maximum(uniform_filter(known, MEAN_BOX) / self.least, 1.0) * LEAST_SHARE)
        return weights.astype(np.float32)

    def moments(self, y: NDArray[Any], valid: NDArray[np.bool_] | None) -> Moments:
        """Return moments of the noise in valid entries; powers of y are those of the mean, raised by the factor."""
        known = np.maximum((y if valid is None else y[:, :, valid]).astype(np.float64), 0.0)
        unit = max(float(known.max(initial=0.0)), self.least)
        square = np.square(known / unit)
        raised = 1 + 1 / self.looks
        second = float(square.mean()) / raised / self.looks
        fourth = float(np.square(square).mean()) / self.looks**2
        return Moments(unit, second, fourth / (raised * (1 + 2 / self.looks) * (1 + 3 / self.looks)))


@dataclass(frozen=True)
class SpeckleNoise(NoiseModel):
    """Multiplicative noise: each entry is its mean times a random factor of mean 1.

    Parameters
    ----------
    looks : float, optional
        Mean squared over variance of the factor, which has a gamma law: 1 for fully developed speckle of an intensity,
        n for the mean of n such, 44 for a factor that scatters by 15%. By default it is estimated.

    See Also
    --------
    denoise : Takes it as `noise`.

    Notes
    -----
    The logarithm makes the noise even. Its mean is ``log x + digamma(looks) - log(looks)``, which the inverse undoes
    exactly. `looks` is told by the noise level of the logarithm, whose square is ``trigamma(looks)``. Values below a
    thousandth of the mean, zeros included, are raised to that: such regions come out at least that bright. Negative
    values are refused: no factor makes them. With few looks the logarithm is skewed, and the predicted error is rough.

    References
    ----------
    J. W. Goodman, Some fundamental properties of speckle, Journal of the Optical Society of America 66 (1976)
    1145-1150, doi:10.1364/JOSA.66.001145.

    Examples
    --------
    >>> from scorethresh import SpeckleNoise, denoise
    >>> rng = np.random.default_rng(0)
    >>> clean = np.repeat([20.0, 90.0], 64)[:, None] * np.ones(128)
    >>> found = denoise(clean * rng.gamma(10.0, 0.1, clean.shape), noise=SpeckleNoise(looks=10))
    >>> bool(np.abs(found / clean - 1).mean() < 0.03)
    True
    """

    looks: float | None = None
    name: ClassVar[str] = "multiplicative noise (speckle)"
    sampled: ClassVar[bool] = True
    slices: ClassVar[bool] = True
    level_units: ClassVar[str] = "of the logarithm, where the noise is even"

    def __post_init__(self) -> None:
        if self.looks is not None:
            try:
                looks = float(self.looks)
            except (TypeError, ValueError):
                looks = math.nan
            if not LOOKS[0] <= looks <= LOOKS[1]:
                ends = f"{LOOKS[0]:g} to {LOOKS[1]:g}"
                msg = f"looks must be a number from {ends}, got {self.looks!r}. None estimates it."
                raise ValueError(msg)
            object.__setattr__(self, "looks", looks)

    def measure(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> LogTransform | None:
        """Return the logarithm; estimate the number of looks if it is not given."""
        known = (y if missing is None else y[..., ~missing]).astype(np.float64) if y.shape[1] == 1 else np.zeros(0)
        mean = float(known.mean()) if known.size else 0.0
        if not mean > 0:
            what = "complex data" if y.shape[1] > 1 else f"a mean of {mean:g}"
            msg = f"speckle needs data that are positive in the mean, got {what}. Use noise='white'."
            raise ValueError(msg)
        if known.min() < 0:
            msg = f"speckle multiplies intensities, which are at least 0, got {known.min():g}. If such entries are "
            raise ValueError(msg + "missing, pass a mask, or NaN. If they are noise, use noise='camera'.")
        least = LEAST_SHARE * mean
        if self.looks is not None:
            return LogTransform(self.looks, least)
        logs = np.log(np.maximum(y.astype(np.float64), least))
        if missing is not None:
            logs[..., missing] = np.nan
        levels = [sample_level(channel[0], peaks=False) for channel in logs]  # logarithms are not normal
        level = math.hypot(*levels) / math.sqrt(len(levels))
        if not level > 0:
            return None
        line = fit_variance_line(logs)
        error = ROUGH_ERROR if line is None else line.relative_error((line.low + line.high) / 2)
        looks = looks_of(level)
        return LogTransform(looks, least, math.hypot(error, low_reading(looks) / 2))


def low_reading(looks: float) -> float:
    """Return by how much the level of the logarithm is read too low, as a share of it."""
    from scipy.special import polygamma

    return LOW_READING * float(polygamma(3, looks) / polygamma(1, looks) ** 2)


def looks_of(level: float) -> float:
    """Return the looks, within `LOOKS`, whose logarithm reads as this level.

    That is ``sqrt(trigamma(looks))``, less what is read too low.
    """
    from scipy.special import polygamma

    low, high = (math.log(end) for end in LOOKS)
    for _ in range(60):
        middle = (low + high) / 2
        looks = math.exp(middle)
        read = math.sqrt(polygamma(1, looks)) * (1 - low_reading(looks))
        low, high = (middle, high) if read > level else (low, middle)
    return math.exp((low + high) / 2)
