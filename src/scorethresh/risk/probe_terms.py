"""What one probe tells of the risk of an estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import Floats
from ..noise.gaussian import GaussianNoise

__all__ = ["MonteCarloRisk", "Response", "RiskTerms", "check_units", "inner", "risk_of_terms", "risk_terms"]

# The largest magnitude of data and of noise levels, and the inverse of the least noise level: the variance of a risk is
# a sum of their fourth powers.
LARGEST = 1e70


def check_units(y: Floats, noise: GaussianNoise) -> None:
    """Refuse data and noise levels whose fourth powers leave the range of doubles."""
    low, high = float(noise.scale.min()), float(max(noise.scale.max(), np.abs(y).max(initial=0.0)))
    if low < 1 / LARGEST or high > LARGEST:
        msg = (
            f"y and sigma must lie between {1 / LARGEST:g} and {LARGEST:g}, for their fourth powers are needed, got "
            f"sigma from {low:.3g} and magnitudes up to {high:.3g}. Divide all that has their units by {high:.0e}."
        )
        raise ValueError(msg)


def inner(a: Floats, b: Floats) -> float:
    """Return the sum of ``a * b``, in double precision; of complex arrays, summed over real and imaginary parts."""
    if np.iscomplexobj(a) or np.iscomplexobj(b):
        return inner(a.real, b.real) + inner(a.imag, b.imag)
    return float(np.einsum("i,i->", a.reshape(-1), b.reshape(-1), dtype=np.float64))


class Response(NamedTuple):
    """An output of an estimator: its mean at two points on both sides of the data, and its derivative between them."""

    mean: Floats
    derivative: Floats


class MonteCarloRisk(NamedTuple):
    """The risk of an estimator and its divergence, with their standard errors.

    That of the risk is for the error of this very estimate; that of the divergence is over the probes.
    """

    risk: float
    stderr: float
    divergence: float
    divergence_stderr: float


class RiskTerms(NamedTuple):
    """What one probe tells of the risk: ``|r|^2``, ``<w, d>``, ``r' Sigma r`` and ``d' Sigma d``, all weighted."""

    loss: float
    divergence: float
    of_residual: float
    of_slope: float


def risk_terms(
    response: Response, y: Floats, probe: Floats, noise: GaussianNoise, step: float, weights: Floats | None = None
) -> RiskTerms:
    """Return the terms of the risk of an estimate, from its response to a probe; see `monte_carlo_risk`."""
    residual, slope = y - response.mean, response.derivative
    weighted = (residual, slope) if weights is None else (weights * residual, weights * slope)
    return RiskTerms(
        # The mean of both squared residuals.
        inner(residual, weighted[0]) + step**2 * inner(slope, weighted[1]),
        inner(probe, weighted[1]),
        inner(weighted[0], noise.times(weighted[0])),
        inner(weighted[1], noise.times(weighted[1])),
    )


def risk_of_terms(
    rows: Sequence[RiskTerms], y: Floats, noise: GaussianNoise, weights: Floats | None = None
) -> MonteCarloRisk:
    """Return the risk from the terms of one or more probes; see `monte_carlo_risk`."""
    loss, total, of_residual, of_slope = np.mean(rows, axis=0)
    spread = 2 * of_slope / len(rows)
    variance = max(4 * of_residual + 4 * of_slope - noise.energy_variance(y, weights), 0.0) + 4 * spread
    risk = loss - noise.energy(y, weights) + 2 * total
    return MonteCarloRisk(float(risk), math.sqrt(variance), float(total), math.sqrt(spread))
