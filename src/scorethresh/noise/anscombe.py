"""Counts made Gaussian: Anscombe's root and the inverse that is unbiased for the mean."""

from __future__ import annotations

import functools

import numpy as np

from .._validate import Array

# Means up to which the inverse is tabulated; beyond, its expansion is right to seven digits.
_LARGEST = 200.0
_KNOTS = 2000


def stabilise(y: Array) -> Array:
    """Return ``2 sqrt(y + 3/8)``, whose noise level is close to 1 for means above 3 or so."""
    out: Array = 2 * np.sqrt(y + 0.375)
    return out


@functools.cache
def _table() -> tuple[Array, Array, Array, Array]:
    """Return E root(Y), for Y of Poisson law, against the mean of Y; its variance, and the slope of that mean."""
    means = np.linspace(0, np.sqrt(_LARGEST), _KNOTS) ** 2
    counts = np.arange(_LARGEST + 15 * np.sqrt(_LARGEST))
    logs = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.where(counts == 0, 0.0, counts * np.log(means)[:, None])
    law = np.exp(powers - means[:, None] - logs)
    expected = law @ stabilise(counts)
    variances = np.maximum(law @ stabilise(counts) ** 2 - expected**2, 0.0)
    return expected, means, variances, np.gradient(means, expected)


def unbiased_inverse(z: Array) -> Array:
    """Return the mean m with ``E root(Y) = z`` for Y of Poisson law: the exact unbiased inverse, at least 0."""
    expected, means, _, _ = _table()
    z = np.maximum(z, expected[0])
    far = np.maximum(z, expected[-1])
    # E root = 2 sqrt(m) + m^(-1/2) / 8 - m^(-3/2) / 256 + ..., whose square has no term in 1/m.
    beyond = far**2 / 4 - 0.125
    return np.where(z < expected[-1], np.interp(z, expected, means), beyond)


def local_moments(z: Array) -> tuple[Array, Array]:
    """Return the variance of root(Y) where ``E root(Y) = z``, and the slope of the mean of Y there."""
    expected, _, variances, slopes = _table()
    z = np.maximum(z, expected[0])
    near = z < expected[-1]
    return np.where(near, np.interp(z, expected, variances), 1.0), np.where(near, np.interp(z, expected, slopes), z / 2)
