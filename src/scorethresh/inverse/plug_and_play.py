"""Restoration by a denoiser: half-quadratic splitting with a falling noise level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .._arrays import Floats
from .._validate import Array
from .linear_map import LinearMap
from .prior import Prior

__all__ = ["Iterate", "noise_levels", "plug_and_play"]

# The level at the start over the range of x, and the penalty over that of a Gaussian prior of the same variance. Both
# are those of DPIR, which were chosen there for another denoiser. With a penalty of 0.1, deblurring with 20 steps loses
# 3 to 8 dB on camera, coins and astronaut.
FIRST_LEVEL = 49 / 255
PENALTY = 0.23

# An iterate, and the noise level or threshold at which it was made.
Iterate = tuple[Floats, float]


def noise_levels(data_range: float, sigma: float, steps: int, last: float = 1.0) -> Array:
    """Return the levels of the steps, in units of x: evenly spaced logarithms, down to `last` times the noise level."""
    # With one step, its level is the last one.
    return np.geomspace(last * sigma, max(FIRST_LEVEL * data_range, sigma), steps)[::-1]


def plug_and_play(
    a: LinearMap, data: Floats, sigma: float, levels: Sequence[float] | Array, prior: Prior, start: Floats
) -> Iterator[Iterate]:
    """Yield the estimate after every step.

    Parameters
    ----------
    a : LinearMap
        The operator.
    data : ndarray
        ``A x0 + w``, w of level sigma.
    sigma : float
        The noise level.
    levels : sequence of float
        The noise levels s that the prior is told, one per step.
    prior : callable
        The denoiser.
    start : ndarray
        The first z.

    Notes
    -----
    At every level s, ::

        x = argmin ||y - A x||^2 / sigma^2 + 0.23 / s^2 ||x - z||^2
        z = denoise(x, sigma=s)

    References
    ----------
    K. Zhang, Y. Li, W. Zuo, L. Zhang, L. Van Gool, R. Timofte, "Plug-and-play image restoration with deep denoiser
    prior", IEEE Trans. Pattern Anal. Mach. Intell. 44 (2022), doi:10.1109/TPAMI.2021.3088914.
    """
    x = z = start
    for level in levels:
        x = a.proximal(data, z, PENALTY * (sigma / level) ** 2, x)
        z = prior(x, float(level))
        yield z, float(level)
