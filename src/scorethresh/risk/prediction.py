"""The predicted error of an estimate, from its estimated risk and its divergence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Floats
from .._validate import Array

__all__ = [
    "DIVERGENCE_ERROR",
    "FilterRatio",
    "NoiseEnergy",
    "Prediction",
    "RiskSums",
    "posteriors",
    "predict",
    "predict_all",
    "risk_sums",
]

# Relative standard error of a divergence: of densities at jumps, of thresholds chosen by the same data, and of the
# probe, which covers a part of large data. Averages over more entries do not lower it. Too small a value is too sure of
# large data: on 9 development photographs of 0.26 to 1 million pixels at four noise levels two standard errors cover
# 72% of the errors with 0, 81% with 0.01, 89% with 0.015 and 94% with 0.02. On crops of 256 by 256 and on volumes of
# 48^3 entries each of these covers 94% or more.
DIVERGENCE_ERROR = 0.02
# How much the slope of the risk against the level is moved by a level that is wrong, over that error: another level has
# other thresholds, and keeps another part of the noise. It matters where few entries tell the level: of 100 sines of 32
# samples two standard errors cover 70 errors with 1.5, 78 with 3, 79 with 5.
LEVEL_CURVATURE = 3.0
# Largest standard deviation of a logarithm. Beyond, a reading has no say; its exponential would overflow.
MOST_SPREAD = 4.0
# Where the two factors of a posterior are evaluated, in standard deviations of each.
NODES = np.linspace(-6.0, 6.0, 97)


@dataclass(frozen=True)
class RiskSums:
    """Sums over entries, each weighted to the units of y squared: of the unbiased risk, and of the divergence."""

    risk: float = 0.0
    divergence: float = 0.0

    def __add__(self, other: RiskSums) -> RiskSums:
        return RiskSums(self.risk + other.risk, self.divergence + other.divergence)


@dataclass(frozen=True)
class Prediction:
    """A predicted mean squared error and its standard error.

    `score` is the estimated risk over its own standard error. If it is far below zero, the noise level is too high.
    """

    mse: float
    stderr: float
    score: float = math.inf


@dataclass(frozen=True)
class NoiseEnergy:
    """What the prediction has to know of the noise.

    Attributes
    ----------
    count : int
        The number of entries that hold noise, parts and channels counted.
    second, fourth : float
        The mean of the noise variance, and of its square times the mean squared power of the unit noise; over
        `unit` squared and over `unit` to the fourth.
    unit : float
        A typical noise level. Fourth powers of small or large levels would leave the range of doubles.
    unclipped_share : float
        The share of the noise variance that clipping left.
    level_error : float
        The relative standard error of the noise level; 0 if it is known.
    """

    count: int
    second: float
    fourth: float
    unit: float
    unclipped_share: float = 1.0
    level_error: float = 0.0


@dataclass(frozen=True)
class FilterRatio:
    """The error of an estimator against its divergence, both over the noise variance: a power law.

    Attributes
    ----------
    exponent : float
        ``error = divergence^exponent``, typically. The best linear filter has 1.
    spread : float
        The standard deviation of the exponent over data and noise levels.
    least_spread : float
        The relative standard deviation of the error where the divergence is 1.

    Notes
    -----
    Who keeps all of the noise has the error of the noise. The more is removed, the less its divergence tells how much
    of the signal went with it. On 11 development photographs at seven noise levels the logarithm of the error over the
    divergence had the root mean square

        divergence    0.3 to 1    0.1 to 0.3    0.03 to 0.1    0.01 to 0.03    below 0.01
        rms           0.13        0.20          0.25           0.23            0.33

    and it was up to 1.2 where there is one electron a pixel, at 0.002. Both spreads were chosen on these. From 0.13 to
    0.2 for `spread` and 0.15 to 0.2 for `least_spread` the predicted PSNR changes by 0.01 dB (level known) and 0.04 dB
    (estimated), its coverage by 2%.
    """

    exponent: float
    spread: float = 0.13
    least_spread: float = 0.2

    def reading(self, divergence: float) -> Prediction:
        """Return the mean and the standard deviation of the error, of lognormal law, over the noise variance."""
        logarithm = math.log(divergence)
        variance = min(math.hypot(self.least_spread, self.spread * logarithm), MOST_SPREAD) ** 2
        mean = math.exp(self.exponent * logarithm + variance / 2)
        return Prediction(mean, mean * math.sqrt(math.expm1(variance)))


def risk_sums(risk: Floats, divergence: Floats, weight: Any) -> RiskSums:
    """Return the weighted sums of the risk and of the divergence.

    Parameters
    ----------
    risk : ndarray
        ``|y - x|^2 - variance + 2 divergence`` per entry.
    divergence : ndarray
        Per entry.
    weight : float or ndarray
        Of a squared error; 0 where there is no noise.
    """
    # In double precision: weights are squared units, which may be far from 1.
    sums = (float(np.multiply(each, weight, dtype=np.float64).sum()) for each in (risk, divergence))
    return RiskSums(*sums)


def predict(sums: RiskSums, noise: NoiseEnergy, filter_ratio: FilterRatio) -> Prediction:
    """Predict the mean squared error; see `predict_all`."""
    return predict_all([sums], [noise], filter_ratio)[0]


def predict_all(sums: Sequence[RiskSums], noises: Sequence[NoiseEnergy], filter_ratio: FilterRatio) -> list[Prediction]:
    """Predict the mean squared errors of many estimates.

    Parameters
    ----------
    sums : sequence of RiskSums
        Of every estimate as a whole.
    noises : sequence of NoiseEnergy
        What is known of the noise.
    filter_ratio : FilterRatio
        How the error of such an estimator compares with its divergence.

    Returns
    -------
    list of Prediction
        Per entry that holds noise.

    Notes
    -----
    Two readings are combined by Bayes' rule. The estimated risk is unbiased, but for what was chosen by it, and
    varies with the energy of the noise: by ``2 sigma^4`` per entry, plus ``4 sigma^2 bias^2`` from the product of noise
    and bias. It is linear in sigma^2, with the slope ``1 - 2 divergence / sigma^2``, so that a noise level with the
    relative error r moves it by that times ``2 sigma^2 r``. That is much where the error is far smaller than the noise,
    and little where half of the noise is kept. A divergence with the relative error d moves it by
    ``2 divergence d``. That is much in large data, where the rest averages out. The divergence itself does not vary
    with the energy of the noise. It is the risk of the best linear filter, to which the error has a ratio that is
    roughly known: see `FilterRatio`. At least the
    mean is kept, so the divergence is at least one entry's. But it says nothing of a structure that was taken for
    noise: one at the limit of detection has the energy ``2 sigma^2 log n``, which is much in little data.

    The error is positive, and its ratio to the divergence of lognormal law. That is the prior; the estimated risk is
    the error with normal noise. Mean and standard deviation of the posterior are returned. A risk below zero thus
    makes the prediction small, not negative.
    """
    readings = [_readings(some, noise, filter_ratio) for some, noise in zip(sums, noises, strict=True)]
    means, spreads, risks, errors = np.array(readings).T
    found = zip(
        noises, *(v.tolist() for v in (*posteriors(means, spreads, risks, errors), risks / errors)), strict=True
    )
    return [Prediction(noise.unit**2 * mse, noise.unit**2 * stderr, score) for noise, mse, stderr, score in found]


def _readings(sums: RiskSums, noise: NoiseEnergy, filter_ratio: FilterRatio) -> tuple[float, float, float, float]:
    """Return mean and standard deviation of the prior, the risk and its standard error, over the unit squared."""
    risk, divergence = (total / noise.count / noise.unit**2 for total in (sums.risk, sums.divergence))
    # Clipping took noise from the residual and from the estimate; undoing it gives the latter back.
    risk += (1 - noise.unclipped_share) * (noise.second - divergence)
    of_risk = (2 * noise.fourth + 2 * math.sqrt(noise.fourth) * max(divergence, 0.0)) / noise.count
    moved = min(math.hypot(1 - 2 * divergence / noise.second, LEVEL_CURVATURE * noise.level_error), 1.0)
    of_risk += (2 * noise.second * moved * noise.level_error) ** 2 + (2 * divergence * DIVERGENCE_ERROR) ** 2
    filtered = filter_ratio.reading(max(divergence / noise.second, 1 / noise.count))
    lost = 2 * math.log(noise.count) / noise.count
    spread = math.hypot(filtered.stderr, 2 * noise.level_error * filtered.mse, lost)
    return noise.second * filtered.mse, noise.second * spread, risk, math.sqrt(of_risk)


def posteriors(means: Array, spreads: Array, risks: Array, errors: Array) -> tuple[Array, Array]:
    """Return means and standard deviations of errors that have lognormal priors and were measured with normal noise.

    Parameters
    ----------
    means, spreads : ndarray
        Means and standard deviations of the priors.
    risks, errors : ndarray
        The measured errors and their standard errors.

    Notes
    -----
    The product of both laws is summed by the trapezoidal rule, over nodes where either is large and in between.
    """
    variance = np.log1p((spreads / means) ** 2)[:, None]
    centre, width = np.log(means)[:, None] - variance / 2, np.sqrt(variance)
    measured = risks[:, None] + errors[:, None] * NODES
    # Twice the same node adds nothing.
    logarithms = np.where(measured > 0, np.log(np.where(measured > 0, measured, 1.0)), centre)
    ends = np.concatenate([centre + width * NODES, logarithms], axis=1)
    between = np.linspace(ends.min(axis=1), ends.max(axis=1), NODES.size, axis=1)
    nodes = np.sort(np.concatenate([ends, between], axis=1), axis=1)
    values = np.exp(nodes)
    exponent = -(((nodes - centre) / width) ** 2 + ((values - risks[:, None]) / errors[:, None]) ** 2) / 2
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True)) * np.gradient(nodes, axis=1)
    weights /= weights.sum(axis=1, keepdims=True)
    found = (weights * values).sum(axis=1)
    return found, np.sqrt((weights * (values - found[:, None]) ** 2).sum(axis=1))
