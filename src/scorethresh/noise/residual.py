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
from .windows import TINY, Cut, dct_filters, dct_of_windows, overlapping, relative_frequencies

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
    means, variances = window_moments(estimate, cut)
    overlap = max(means.size * math.prod(sides) / residual.size, 1.0)
    flat = variances < MOST_VARIATION * covariance.variance
    windows, means = cut.windows(residual)[flat], means[flat]
    known = ~np.isnan(windows).any(axis=tuple(range(1, windows.ndim)))
    if np.count_nonzero(known) < GROUPS * MIN_WINDOWS[residual.ndim] * overlap:
        return None
    windows = windows[known][np.argsort(means[known])]
    taper = taper_of(sides)
    filters = dct_filters(sides)
    if taper is not None:
        filters = [filters[0] * taper]
        windows *= taper.astype(windows.dtype)
    energy = np.square(dct_of_windows(windows)).reshape(len(windows), -1)
    expected = covariance.filter_variances(filters).ravel()
    groups = np.array_split(energy, GROUPS)
    powers = [_Power(some.mean(axis=0, dtype=np.float64) / expected, len(some) / overlap) for some in groups]
    return _compare(powers, relative_frequencies(sides).ravel())


def window_moments(y: Floats, cut: Cut) -> tuple[Floats, Floats]:
    """Return mean and variance of every window, on the grid, one axis after another.

    The variance is the mean of the variances along the axes before, plus the variance of their means.
    """
    first, *others = (Cut(*((v,) for v in one)) for one in zip(cut.axes, cut.block, cut.steps, strict=True))
    windows = first.windows(y)
    mean, variance = windows.mean(axis=-1), windows.var(axis=-1)
    for along in others:
        windows = along.windows(mean)
        mean, variance = windows.mean(axis=-1), windows.var(axis=-1) + along.windows(variance).mean(axis=-1)
    return mean, variance


class _Power(NamedTuple):
    """The mean powers of all coefficients over those of the model, from that many independent windows."""

    means: Array
    windows: float

    def median(self, band: NDArray[np.bool_]) -> float:
        """Return the median over the coefficients of a band."""
        return max(float(np.median(self.means[band])), TINY)

    def variance(self, band: NDArray[np.bool_]) -> float:
        """Return the variance of the logarithm of that median."""
        return math.pi / (self.windows * np.count_nonzero(band))


def _compare(groups: list[_Power], frequency: Array) -> ResidualCheck:
    """Return the comparison, given the powers in each group of windows."""
    low, _, high = ((frequency >= start) & (frequency < end) for start, end in BANDS)
    upper = frequency >= BANDS[1][0]
    windows = [some.windows for some in groups]
    whole = _Power(np.average([some.means for some in groups], axis=0, weights=windows), sum(windows))
    dark, bright = groups[0], groups[-1]
    red = math.log(whole.median(low) / whole.median(high))
    red -= CAUTION * math.sqrt(whole.variance(low) + whole.variance(high))
    growth = bright.median(upper) / dark.median(upper)
    spread = math.sqrt(dark.variance(upper) + bright.variance(upper))
    level, error = math.sqrt(whole.median(upper)), math.sqrt(whole.variance(upper)) / 2
    return ResidualCheck(level, error, math.exp(red), growth, spread)
