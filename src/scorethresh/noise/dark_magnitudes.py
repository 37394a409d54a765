"""Magnitudes of complex noise, told by the dark alone.

Where there is no signal they have Rayleigh's law. And whatever the signal is, the two parts are both near zero in a
share of the entries that grows as the square of the distance. Noise of cameras does not end at zero, counts and
clipped data pile up there, and speckle of L looks grows as the L-th power.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clipping import find_clip_limits
from .variance_line import VarianceLine

# Mean and variance of Rayleigh's law, over the level and its square.
RAYLEIGH_MEAN, RAYLEIGH_VARIANCE = 1.2533141373155001, 0.42920367320510344
# How far the variance of the darkest reading may be from that of Rayleigh's law with its mean. On 11 development
# photographs of an eighth of their brightness, with magnitudes of noise 10 to 50, it is 0.77 to 1.27 times that.
VARIANCE_TOLERANCE = 0.3
# Distances from zero, over the level, and the share of entries that is nearer under Rayleigh's law.
NEAR, FAR = 0.25, 0.5
NEAR_SHARE, FAR_SHARE = 1 - math.exp(-(NEAR**2) / 2), 1 - math.exp(-(FAR**2) / 2)
# How far the ratio of both may be from that of Rayleigh's law, and standard errors beyond that. Without signal it is
# 3.8, with signal up to 4; speckle of one look reads 1.9, of four looks 7, clipped noise 2.
RATIO_TOLERANCE, CAUTION = 0.1, 3.0
# Fewest entries nearer than the first, over what Rayleigh's law would have if all entries were dark; and most. A tenth
# of the entries that are dark is enough.
MIN_DARK, MOST_DARK = 0.1, 1.2
MIN_COUNT = 30
# Entries at the least value, at most, unless all are whole numbers. More were cut off there.
MOST_PILED = 3


def dark_magnitudes(y: NDArray[Any], line: VarianceLine) -> bool:
    """Return whether data are magnitudes with dark regions, told by these.

    Parameters
    ----------
    y : ndarray
        The data without missing entries.
    line : VarianceLine
        Variances of their noise at many means.
    """
    darkest = int(np.argmin(line.means))
    level = float(line.means[darkest]) / RAYLEIGH_MEAN
    least = float(y.min())
    if least < 0 or level <= 0 or math.isfinite(find_clip_limits(y)[0]):
        return False
    whole = bool((y == np.rint(y)).all())
    if NEAR * level < 1 if whole else np.count_nonzero(y == least) > MOST_PILED:
        return False
    if not is_dark(line.means[darkest], line.variances[darkest]):
        return False
    near, far = (int(np.count_nonzero(y < distance * level)) for distance in (NEAR, FAR))
    dark = near / (NEAR_SHARE * y.size)
    if near < MIN_COUNT or not MIN_DARK < dark < MOST_DARK:
        return False
    ratio = far / near / (FAR_SHARE / NEAR_SHARE)
    return abs(ratio - 1) < RATIO_TOLERANCE + CAUTION / math.sqrt(near)


def is_dark(mean: Any, variance: Any) -> Any:
    """Return whether the variance of noise with a mean above 0 is about that of Rayleigh's law."""
    return (mean > 0) & (abs(variance / (RAYLEIGH_VARIANCE / RAYLEIGH_MEAN**2 * mean**2) - 1) <= VARIANCE_TOLERANCE)
