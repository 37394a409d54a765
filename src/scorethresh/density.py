"""The density of |Y| at a point, times the number of entries: kernels and bandwidths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._validate import Array
from .magnitudes import Magnitudes

# exp(-REACH_EXACT^2 / 2) is the smallest normal double: with this reach nothing is cut off.
REACH_EXACT = 37.6


def paper_bandwidth(size: int, sigma: float) -> float:
    """Return the paper's bandwidth, ``6 sigma / size^(1/3)``."""
    return float(6 * sigma / size ** (1 / 3))


def kernel_factor(h: float) -> float:
    """Return the paper's factor of the kernel sums, ``sqrt(1 + h^2) / (sqrt(2 pi) h)``, with h in units of sigma."""
    return float(np.sqrt(1 + h**2) / (np.sqrt(2 * np.pi) * h))


def kernel_terms(z: Array, a: float, h: float) -> Array:
    """Return ``exp(-(z-a)^2 / 2h^2) + exp(-(z+a)^2 / 2h^2)`` for every z."""
    terms: Array = np.exp(-0.5 * ((z - a) / h) ** 2) + np.exp(-0.5 * ((z + a) / h) ** 2)
    return terms


def kernel_moments(x0: Any, a: Any, *, sigma: float, h: float) -> tuple[Array, Array]:
    """Return mean and variance of ``A = sqrt(1 + sigma^2/h^2) exp(-(Y-a)^2 / 2h^2)`` for Y ~ N(x0, sigma^2).

    ``E A = exp(-(x0-a)^2 / 2s^2)`` with ``s^2 = sigma^2 + h^2``: a Gaussian at the threshold, widened by h. This is
    where the bias of SCORE comes from. The variance is written so that no digits are lost when h is large.
    """
    d2 = np.square((np.asarray(x0, dtype=np.float64) - a) / sigma)
    h2 = (h / sigma) ** 2
    mean = np.exp(-0.5 * d2 / (1 + h2))
    gap = 0.5 * np.log1p(1 / (h2 * (2 + h2))) + d2 / ((1 + h2) * (2 + h2))
    near = mean * mean * np.expm1(np.minimum(gap, 40.0))
    far = np.exp(gap - d2 / (1 + h2))
    return mean, np.where(gap < 40, near, far)


def kernel_sums(
    sample: Magnitudes,
    points: Array,
    starts: Sequence[Array],
    smooth: Array,
    *,
    sigma: float,
    h: float,
    reach: float,
) -> Array:
    """Return per point the sums over the sample of K, K^2 and K s: K the `kernel_terms`, s a piecewise polynomial.

    Parameters
    ----------
    points
        Ascending, in units of sigma like h.
    starts
        Per point, where each piece of s but the first begins, in units of y.
    smooth
        Coefficients of s in units of sigma: piece, power, point.
    reach
        How many bandwidths away the kernel is cut off.
    """
    from . import _native

    z = sample.nodes / sigma
    count = points.size
    with np.errstate(divide="ignore"):
        # The mirrored kernel is exp(-2 z a / h^2) of the direct one: below 1e-17 it adds nothing.
        mirrored = np.minimum(reach * h - z, 19.6 * h * h / z)
    low = np.searchsorted(points, z - reach * h)
    high = np.searchsorted(points, z + reach * h, side="right")
    both = np.searchsorted(points, mirrored, side="right").clip(low, high)
    spans = np.stack([low, both, high], axis=1)
    bounds = np.zeros((len(starts) + 2, z.size), dtype=np.int64)
    bounds[0] = count
    for p, start in enumerate(starts, start=1):
        bounds[p] = np.searchsorted(start, sample.nodes)
    out, buffers = np.zeros((3, count)), np.empty((3, count))
    _native.call(
        "kernel_sums",
        *(z.size, z, sample.weights, spans, len(starts) + 1, bounds),
        *(count, points, _even_step(points, h), 0.5 * np.log2(np.e) / h**2, smooth, *buffers, out),
    )
    return out


def _even_step(points: Array, h: float) -> float:
    """Return the step of an even grid, dense enough against h for the recursion of `_loops._gaussians`; else 0."""
    if points.size < 64:
        return 0.0
    steps = np.diff(points)
    step = float(points[-1] - points[0]) / steps.size
    even = 0 < step < h / 4 and abs(steps - step).max() < 4e-16 * points[-1]
    return step if even else 0.0
