"""Kernel estimates of the density of |Y|: kernels, bandwidths and sums over a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import _kernels, _validate
from .._normal import phi
from .._validate import Array
from ..sample.cells import BANDWIDTHS_PER_CELL, REACH
from ..sample.magnitudes import Magnitudes
from .gaussian import row_blocks, smooth_nodes

# The bandwidth of the pilot of `plugin_bandwidth`, in units of sigma. A narrower one follows the density more closely,
# a wider one is less noisy.
PILOT = 0.5

# The reach of kernels over an exact sample, in bandwidths. exp(-REACH_EXACT^2 / 2) is the smallest normal double, so
# nothing is cut off.
REACH_EXACT = 37.6


def paper_bandwidth(size: int, sigma: float) -> float:
    """Return the paper's bandwidth for the Gaussian kernel of SCORE.

    Parameters
    ----------
    size : int
        The number P of entries.
    sigma : float
        The noise level.

    Returns
    -------
    float
        ``6 sigma / P^(1/3)``, in units of y.

    See Also
    --------
    Score : The method that uses it.

    Notes
    -----
    The bias of SCORE is of order h^2 and its variance of order 1/(P h). With this h both are of order ``P^(-2/3)``,
    which makes SCORE consistent [1]_. The factor 6 was chosen for P = 2e5, where h is about sigma/10. At fewer than
    1e4 entries the bandwidth is too wide: use ``Score("plugin")``.

    References
    ----------
    .. [1] C.-A. Deledalle, G. Peyré and J. Fadili, "Stein COnsistent Risk Estimator (SCORE) for hard thresholding",
       SPARS 2013, hal-00776303.

    Examples
    --------
    >>> round(paper_bandwidth(200_000, 1.0), 4)
    0.1026
    """
    return float(6 * _validate.noise_level(sigma) / _validate.positive(size, "size") ** (1 / 3))


@dataclass(frozen=True)
class Kernel:
    """A kernel estimate of the density of |Y|, in units of sigma.

    Attributes
    ----------
    shape
        ``"gaussian"``, ``"order4"`` (``(3 - u^2) phi(u) / 2``) or ``"sinc"`` (``sin(u) / (pi u)`` times a Gaussian of
        two sigma, so that far entries take no part).
    bandwidth
        The bandwidth, or a function that returns one per position.
    factor
        Whether the sum is multiplied by ``sqrt(1 + bandwidth^2)``, as in the paper.
    """

    shape: str
    bandwidth: float | Callable[[Array], Array]
    factor: bool

    def normalisation(self, h: Any) -> Any:
        """Return the factor that turns a sum of Gaussians with bandwidth h into a density."""
        return (np.sqrt(1 + h**2) if self.factor else 1.0) / (np.sqrt(2 * np.pi) * h)

    def bandwidths(self, positions: Array) -> Array:
        """Return the bandwidth at each position."""
        found = self.bandwidth(positions) if callable(self.bandwidth) else self.bandwidth
        return np.broadcast_to(found, positions.shape)

    def terms(self, z: Array, a: float, h: float) -> Array:
        """Return each entry's part of the density at a."""
        # Far entries are cut off by their distance, where terms are 0 and squares do not overflow.
        far = 100 * (h + 1)
        distances = np.clip(z - a, -far, far), np.minimum(z + a, far)
        if self.shape == "sinc":
            both = [np.sinc(d / (np.pi * h)) * np.exp(-(d**2) / 8) for d in distances]
            return np.asarray((both[0] + both[1]) / (np.pi * h))
        u = [d / h for d in distances]
        if self.shape == "order4":
            return np.asarray(sum((3 - v * v) / 2 * np.exp(-0.5 * v * v) for v in u) * self.normalisation(h))
        return np.asarray(sum(np.exp(-0.5 * v * v) for v in u) * self.normalisation(h))


def narrowest(shape: str, size: int) -> float:
    """Return the smallest bandwidth that `plugin_bandwidth` gives for that many entries, in units of sigma."""
    if shape == "sinc":
        return float(1 / np.sqrt(1.5 * np.log(max(size, 3))))
    # Bounds for pure noise: t^4 phi(t) <= 0.87 and phi(t) (t^4 - 6 t^2 + 3)^2 <= 6.
    return float((6.2 * size) ** (-1 / 5) if shape == "gaussian" else min(0.7, (3.2 * size) ** (-1 / 9)))


def plugin_bandwidth(shape: str, sample: Magnitudes, sigma: float, factor: bool) -> Callable[[Array], Array]:
    """Return the bandwidth of least mean squared error as a function of the position; in units of sigma.

    Gaussian: ``[f / (2 sqrt(pi) P (f'' + f)^2)]^(1/5)`` with the paper's factor, ``f''`` in place of ``f'' + f``
    without it; f is the density by a pilot kernel of half a sigma. At most 1/2. Order 4: the bandwidth for pure noise,
    at most 0.7. Sinc: the cut-off ``sqrt(1.5 log P)``.
    """
    least = narrowest(shape, sample.size)
    if shape == "sinc":
        return lambda a: np.full(a.shape, least)
    if shape == "order4":
        return lambda a: _order4_bandwidth(a, sample.size).clip(least, 0.7)
    nodes, weights = smooth_nodes(sample, PILOT * BANDWIDTHS_PER_CELL * sigma)
    with np.errstate(over="ignore"):
        z = np.minimum(nodes / sigma, 1e6)

    def bandwidth(a: Array) -> Array:
        f, curvature = np.empty(a.shape), np.empty(a.shape)
        for part in row_blocks(a.size, z.size):
            u = [(z - a[part, None]) / PILOT, (z + a[part, None]) / PILOT]
            e = [phi(v) / PILOT for v in u]
            f[part] = (e[0] + e[1]) @ weights
            curvature[part] = (e[0] * (u[0] ** 2 - 1) + e[1] * (u[1] ** 2 - 1)) @ weights / PILOT**2
        f = f.clip(1e-140)  # its square must not vanish
        bias = np.abs(curvature + f if factor else curvature).clip(0.2 * f)
        widths: Array = (f / (2 * np.sqrt(np.pi) * bias**2)) ** (1 / 5)
        return widths.clip(least, 0.5)

    return bandwidth


def _order4_bandwidth(t: Array, size: int) -> Array:
    """Return the bandwidth of the order-4 kernel for pure noise, in units of sigma."""
    shape = np.abs(t**4 - 6 * t**2 + 3).clip(2)
    widths: Array = (1.904 / (size * phi(t).clip(1e-300) * shape**2)) ** (1 / 9)
    return widths


def kernel_moments(x0: Any, a: Any, *, sigma: float, h: float) -> tuple[Array, Array]:
    """Return mean and variance of ``A = sqrt(1 + sigma^2/h^2) exp(-(Y-a)^2 / 2h^2)`` for Y ~ N(x0, sigma^2).

    ``E A = exp(-(x0-a)^2 / 2s^2)`` with ``s^2 = sigma^2 + h^2``: a Gaussian at the threshold, widened by h. That is
    the bias of SCORE. The variance is written so that no digits are lost if h is large.
    """
    d2 = np.square((np.asarray(x0, dtype=np.float64) - a) / sigma)
    h2 = (h / sigma) ** 2
    mean = np.exp(-0.5 * d2 / (1 + h2))
    gap = 0.5 * np.log1p(1 / (h2 * (2 + h2))) + d2 / ((1 + h2) * (2 + h2))
    near = mean * mean * np.expm1(np.minimum(gap, 40.0))
    far = np.exp(gap - d2 / (1 + h2))
    return mean, np.where(gap < 40, near, far)


class PiecewisePolynomial(NamedTuple):
    """A function of an entry and a point, quadratic in the entry on each of a few pieces.

    Attributes
    ----------
    starts
        Per point, the magnitude at which each piece but the first begins, in units of y.
    coefficients
        In units of sigma: piece, power, point.
    """

    starts: Sequence[Array]
    coefficients: Array


def kernel_sums(
    sample: Magnitudes, points: Array, factor: PiecewisePolynomial, *, sigma: float, bandwidth: float
) -> Array:
    """Return per point the sums over the sample of K, K^2 and K s: K a Gaussian and its mirror image, s the factor.

    Points, ascending, and bandwidth are in units of sigma.
    """
    bounds = np.zeros((len(factor.starts) + 2, sample.nodes.size), dtype=np.int64)
    bounds[0] = points.size
    for p, start in enumerate(factor.starts, start=1):
        bounds[p] = np.searchsorted(start, sample.nodes)
    exact = sample.cells is None
    return _kernels.kernel_sums(
        sample.nodes / sigma,
        np.ascontiguousarray(sample.weights, dtype=np.float64),
        points,
        _kernels.CutGaussian(bandwidth, REACH_EXACT if exact else REACH, 0.0 if exact else BANDWIDTHS_PER_CELL),
        _kernels.PiecewiseQuadratic(bounds, factor.coefficients),
    )
