"""Which threshold of a curve to take, if its minimum claims more than the data can tell."""

from __future__ import annotations

import math

import numpy as np

from ..sample.magnitudes import Magnitudes
from .curve import RiskCurve

__all__ = ["choose_within_noise", "noise_limit"]

# The risk of pure noise at the limit, over all entries and in sigma^2. It trades noise let through against spikes
# lost. With 1 instead, one spike of 3.5 to 5.5 sigma has 1.01 to 1.16 times the least risk instead of 1.02 to 1.17, and
# pure noise costs twice as much. Looked at on draws of their own: one to five spikes of 1.5 to 9 sigma in 256 to 4096
# entries.
NOISE_RISK = 0.5


def noise_limit(count: int, block_size: int = 1) -> float:
    """Return the threshold, in units of sigma, at which hard thresholding of pure noise has a risk of sigma^2 / 2.

    The noise in a block of d entries has the norm r with ``E r^2 1(r > t) = d P(chi^2_{d+2} > t^2)``. For entries the
    limit is within 0.1 of ``sqrt(2 log P + 2 log log P)`` from P = 100 to 1e8.

    >>> round(noise_limit(1024), 2), round(noise_limit(1024, 2), 2)
    (4.22, 4.64)
    """
    from scipy.special import chdtri

    return math.sqrt(float(chdtri(block_size + 2, NOISE_RISK / (count * block_size))))


def choose_within_noise(sample: Magnitudes, curve: RiskCurve, block_size: int) -> int:
    """Return the index of the least risk, but no threshold above `noise_limit` that kills what noise hardly makes.

    A threshold above the limit is taken only if it keeps something, and all that lies beyond the limit. Otherwise the
    least risk up to the limit is taken. If everything were killed, the fit would have seen no signal, and so could not
    know how large a signal might be: infinity would claim more than the data tell.
    """
    best = int(np.argmin(curve.risk))
    limit = noise_limit(sample.size, block_size) * curve.sigma
    inside = int(np.searchsorted(curve.thresholds, limit, side="right"))
    if best < inside or inside == 0:
        return best
    magnitudes, counts = sample.points()
    kept, beyond = (counts[magnitudes >= t].sum() for t in (curve.thresholds[best], limit))
    return best if 0 < kept == beyond else int(np.argmin(curve.risk[:inside]))
