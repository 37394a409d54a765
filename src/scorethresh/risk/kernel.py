"""The density of |Y| at a point, times the number of entries: kernels and bandwidths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._normal import phi
from .._validate import Array
from ..sample.cells import BANDWIDTHS_PER_CELL
from ..sample.magnitudes import Magnitudes
from .gaussian import row_blocks, smooth_nodes

# The bandwidth of the pilot of `plugin_width`, in units of sigma.
PILOT = 0.5

# exp(-REACH_EXACT^2 / 2) is the smallest normal double: with this reach nothing is cut off.
REACH_EXACT = 37.6


def paper_bandwidth(size: int, sigma: float) -> float:
    """Return the paper's bandwidth, ``6 sigma / size^(1/3)``."""
    return float(6 * sigma / size ** (1 / 3))


@dataclass(frozen=True)
class Kernel:
    """An estimate of the density of |Y| from a kernel over the sample; all in units of sigma.

    Attributes
    ----------
    shape
        ``"gaussian"``, ``"order4"`` (``(3 - u^2) phi(u) / 2``) or ``"sinc"`` (``sin(u) / (pi u)`` under a Gaussian of
        two sigma, so that entries far away take no part).
    width
        The bandwidth; or a function that gives the one for each position.
    factor
        Whether the sum is multiplied by ``sqrt(1 + width^2)``, as in the paper.
    """

    shape: str
    width: float | Callable[[Array], Array]
    factor: bool

    def share(self, h: Any) -> Any:
        """Return what turns the sum of `kernel_terms` into a density."""
        return (np.sqrt(1 + h**2) if self.factor else 1.0) / (np.sqrt(2 * np.pi) * h)

    def widths(self, positions: Array) -> Array:
        """Return the bandwidth at each position."""
        widths = self.width(positions) if callable(self.width) else self.width
        return np.broadcast_to(widths, positions.shape)

    def terms(self, z: Array, a: float, h: float) -> Array:
        """Return each entry's part of the density at a."""
        z = np.minimum(z, a + 100 * (h + 1))  # farther out nothing counts, and squares could overflow
        if self.shape == "sinc":
            both = [np.sinc(d / (np.pi * h)) * np.exp(-(d**2) / 8) for d in (z - a, z + a)]
            return np.asarray((both[0] + both[1]) / (np.pi * h))
        if self.shape == "order4":
            u = [(z - a) / h, (z + a) / h]
            return np.asarray(sum((3 - v * v) / 2 * np.exp(-0.5 * v * v) for v in u) * self.share(h))
        return np.asarray(kernel_terms(z, a, h) * self.share(h))


def kernel_terms(z: Array, a: float, h: float) -> Array:
    """Return ``exp(-(z-a)^2 / 2h^2) + exp(-(z+a)^2 / 2h^2)`` for every z."""
    terms: Array = np.exp(-0.5 * ((z - a) / h) ** 2) + np.exp(-0.5 * ((z + a) / h) ** 2)
    return terms


def narrowest(shape: str, size: int) -> float:
    """Return the least bandwidth that `plugin_width` gives for that many entries, in units of sigma."""
    if shape == "sinc":
        return float(1 / np.sqrt(1.5 * np.log(max(size, 3))))
    # The null references at their least: t^4 phi(t) <= 0.87 and phi(t) (t^4 - 6 t^2 + 3)^2 <= 6.
    return float((6.2 * size) ** (-1 / 5) if shape == "gaussian" else min(0.7, (3.2 * size) ** (-1 / 9)))


def plugin_width(shape: str, sample: Magnitudes, sigma: float, factor: bool) -> Callable[[Array], Array]:
    """Return the bandwidth of least mean squared error, as a function of the position; in units of sigma.

    Gaussian: ``[f / (2 sqrt(pi) P (f'' + f)^2)]^(1/5)``, without the factor ``f''`` alone, with the density f of a
    pilot kernel of half a sigma; at most 1/2. Order 4: the one for pure noise, at most 0.7. Sinc: the cut-off
    ``sqrt(1.5 log P)``.
    """
    least = narrowest(shape, sample.size)
    if shape == "sinc":
        return lambda a: np.full(a.shape, least)
    if shape == "order4":
        return lambda a: _order4_width(a, sample.size).clip(least, 0.7)
    nodes, weights = smooth_nodes(sample, PILOT * BANDWIDTHS_PER_CELL * sigma)
    z = np.minimum(nodes / sigma, 1e6)

    def width(a: Array) -> Array:
        f, curvature = np.empty(a.shape), np.empty(a.shape)
        for part in row_blocks(a.size, z.size):
            u = [(z - a[part, None]) / PILOT, (z + a[part, None]) / PILOT]
            e = [phi(v) / PILOT for v in u]
            f[part] = (e[0] + e[1]) @ weights
            curvature[part] = (e[0] * (u[0] ** 2 - 1) + e[1] * (u[1] ** 2 - 1)) @ weights / PILOT**2
        f = f.clip(1e-300)
        bias = np.abs(curvature + f if factor else curvature).clip(0.2 * f)
        widths: Array = (f / (2 * np.sqrt(np.pi) * bias**2)) ** (1 / 5)
        return widths.clip(least, 0.5)

    return width


def _order4_width(t: Array, size: int) -> Array:
    shape = np.abs(t**4 - 6 * t**2 + 3).clip(2)
    widths: Array = (1.904 / (size * phi(t).clip(1e-300) * shape**2)) ** (1 / 9)
    return widths


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
    from .._kernels import loader as _native

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
        "sample_loops.kernel_sums",
        *(z.size, z, np.ascontiguousarray(sample.weights, dtype=np.float64), spans, len(starts) + 1, bounds),
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
