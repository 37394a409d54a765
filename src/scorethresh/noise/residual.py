"""What was removed, against what the noise model says of it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._validate import Array
from .covariance import Covariance
from .whiteness import BANDS, BLOCK_SIDES, CAUTION, taper_of
from .windows import TINY, dct_filters, dct_of_windows, overlapping, relative_frequencies

# Largest variance of the estimate in a window that is read, over that of the noise: there, what was removed is noise.
# On development photographs at noise 20 the level reads 0.95 to 1 of the true one at 0.05, and down to 0.5 if the
# flattest tenth of the windows is read whatever varies in it.
MOST_VARIATION = 0.05
# Fewest windows of each of the groups below, if windows did not overlap.
MIN_WINDOWS = {1: 1, 2: 5, 3: 5}
# Groups of windows by their means, to compare the noise in dark and in bright regions.
GROUPS = 4


class ResidualCheck(NamedTuple):
    """How what was removed compares with the noise model; 1 everywhere if that is right.

    Attributes
    ----------
    level : float
        The noise level in flat windows, over that of the model.
    error : float
        Its relative standard error.
    red : float
        The power at lower over that at high frequencies, each over that of the model.
    growth : float
        The power in the brightest over that in the darkest quarter of the windows.
    growth_error : float
        The standard error of its logarithm.
    """

    level: float
    error: float
    red: float
    growth: float
    growth_error: float


def check_residual(residual: Floats, estimate: Floats, covariance: Covariance) -> ResidualCheck | None:
    """Compare what was removed with the noise model, in windows in which the estimate is flat.

    Parameters
    ----------
    residual : ndarray
        What was removed from a signal, image or volume; NaN marks entries without noise.
    estimate : ndarray
        What is left.
    covariance : Covariance
        Of the noise.

    Returns
    -------
    ResidualCheck or None
        None if there are too few windows.
    """
    sides = tuple(min(BLOCK_SIDES[residual.ndim], n) for n in residual.shape)
    cut = overlapping(residual, range(residual.ndim), sides)
    inside = tuple(range(1, residual.ndim + 1))
    noise, signal = (cut.windows(a).reshape(-1, *sides) for a in (residual, estimate))
    overlap = max(noise.size / residual.size, 1.0)
    known = ~np.isnan(noise).any(axis=inside)
    if not known.all():
        noise, signal = noise[known], signal[known]
    taper = taper_of(sides)
    filters = dct_filters(sides)
    if taper is not None:
        filters = [filters[0] * taper]
        noise = noise * taper.astype(noise.dtype)
    flat = signal.var(axis=inside) < MOST_VARIATION * covariance.variance
    if np.count_nonzero(flat) < GROUPS * MIN_WINDOWS[residual.ndim] * overlap:
        return None
    noise, signal = noise[flat], signal[flat]
    flat = np.array_split(np.argsort(signal.mean(axis=inside)), GROUPS)
    expected = covariance.filter_variances(filters).ravel()
    power = [np.square(dct_of_windows(noise[some]).reshape(len(some), -1)) / expected for some in flat]
    return _compare(power, relative_frequencies(sides).ravel(), overlap)


def _compare(power: list[Array], frequency: Array, overlap: float) -> ResidualCheck:
    """Return the comparison, given powers over those of the model: (windows, coefficients) for each group."""
    low, _, high = ((frequency >= start) & (frequency < end) for start, end in BANDS)
    upper = frequency >= BANDS[1][0]
    whole = np.concatenate(power)

    def mean(a: Array, band: NDArray[np.bool_]) -> float:
        return max(float(np.median(a[:, band].mean(axis=0))), TINY)

    def variance(windows: int, band: NDArray[np.bool_]) -> float:  # of the logarithm of a mean
        return math.pi * overlap / (windows * np.count_nonzero(band))

    level = math.sqrt(mean(whole, upper))
    red = math.log(mean(whole, low) / mean(whole, high))
    red -= CAUTION * math.sqrt(variance(len(whole), low) + variance(len(whole), high))
    growth = mean(power[-1], upper) / mean(power[0], upper)
    spread = math.sqrt(variance(len(power[0]), upper) + variance(len(power[-1]), upper))
    return ResidualCheck(level, math.sqrt(variance(len(whole), upper)) / 2, math.exp(red), growth, spread)
