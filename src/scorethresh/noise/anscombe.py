"""Anscombe's root of counts, its exact unbiased inverse, and the moments of its noise.

References
----------
F. J. Anscombe, The transformation of Poisson, binomial and negative-binomial data, Biometrika 35 (1948) 246-254,
doi:10.1093/biomet/35.3-4.246.

M. Mäkitalo and A. Foi, Optimal inversion of the Anscombe transformation in low-count Poisson image denoising, IEEE
Transactions on Image Processing 20 (2011) 99-109, doi:10.1109/TIP.2010.2056693.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from .._validate import Array

# Largest mean in the table of moments. Beyond, the asymptotic inverse is right to seven digits.
LARGEST_TABULATED_MEAN = 200.0
# Entries of the table, evenly spaced in the root of the mean. Linear interpolation is right to 2e-5.
TABLE_SIZE = 2000


class _Moments(NamedTuple):
    """Moments of the root of Poisson counts, one entry per mean."""

    means: Array
    root_means: Array
    root_variances: Array
    slopes: Array


def stabilise(y: Array) -> Array:
    """Return Anscombe's root ``2 sqrt(y + 3/8)``. Its noise variance is close to 1 if the mean is above 3."""
    out: Array = 2 * np.sqrt(y + 0.375)
    return out


def unbiased_inverse(z: Array) -> Array:
    """Return the mean m of the Poisson counts Y with ``E stabilise(Y) = z``.

    Notes
    -----
    This is the exact unbiased inverse of Mäkitalo and Foi (2011): the algebraic inverse ``(z / 2)^2 - 3/8`` is biased,
    because the mean of a root is not the root of the mean. For large means ``E stabilise(Y)`` is
    ``2 sqrt(m) + m^(-1/2) / 8 - m^(-3/2) / 256 + ...``, whose square is ``4 m + 1/2`` up to terms of order ``m^(-2)``;
    so the inverse is ``z^2 / 4 - 1/8``. Roots below ``E stabilise(0)`` give 0.
    """
    table = _moments()
    z = np.maximum(z, table.root_means[0])
    last = table.root_means[-1]
    asymptotic = np.maximum(z, last) ** 2 / 4 - 0.125
    return np.where(z < last, np.interp(z, table.root_means, table.means), asymptotic)


def local_moments(z: Array) -> tuple[Array, Array]:
    """Return the variance of ``stabilise(Y)`` where its mean is z, and the derivative of `unbiased_inverse` there."""
    table = _moments()
    z = np.maximum(z, table.root_means[0])
    tabulated = z < table.root_means[-1]
    variance = np.where(tabulated, np.interp(z, table.root_means, table.root_variances), 1.0)
    slope = np.where(tabulated, np.interp(z, table.root_means, table.slopes), z / 2)
    return variance, slope


@functools.cache
def _moments() -> _Moments:
    """Sum the moments of ``stabilise(Y)`` over the Poisson law of Y."""
    means = np.linspace(0, np.sqrt(LARGEST_TABULATED_MEAN), TABLE_SIZE) ** 2
    counts = np.arange(LARGEST_TABULATED_MEAN + 15 * np.sqrt(LARGEST_TABULATED_MEAN))
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 log 0
        log_powers = np.where(counts == 0, 0.0, counts * np.log(means)[:, None])
    law = np.exp(log_powers - means[:, None] - log_factorials)
    roots = stabilise(counts)
    root_means = law @ roots
    variances = np.maximum(law @ roots**2 - root_means**2, 0.0)
    return _Moments(means, root_means, variances, np.gradient(means, root_means))
