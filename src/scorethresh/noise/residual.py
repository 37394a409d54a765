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
    """Compare what was removed from a signal, image or volume with the noise model; see `check_residuals`."""
    return check_residuals(residual[None], estimate[None], covariance)[0]


def check_residuals(residual: Floats, estimate: Floats, covariance: Covariance) -> list[ResidualCheck | None]:
    """Compare what was removed with the noise model, in windows in which the estimate is flat.

    Parameters
    ----------
    residual : ndarray
        What was removed from signals, images or volumes, (samples, *shape); NaN marks entries without noise.
    estimate : ndarray
        What is left.
    covariance : Covariance
        Of the noise.

    Returns
    -------
    list of ResidualCheck or None
        One per sample; None if there are too few windows.
    """
    shape = residual.shape[1:]
    sides = tuple(min(BLOCK_SIDES[len(shape)], n) for n in shape)
    cut = overlapping(residual[0], range(len(shape)), sides)
    cut = Cut(tuple(axis + 1 for axis in cut.axes), cut.block, cut.steps)
    means, variances = window_moments(estimate, cut)
    overlap = max(means[0].size * math.prod(sides) / residual[0].size, 1.0)
    flat = variances < MOST_VARIATION * covariance.variance
    fewest = GROUPS * MIN_WINDOWS[len(shape)] * overlap
    found: list[ResidualCheck | None] = [None] * len(residual)
    flat[np.count_nonzero(flat.reshape(len(flat), -1), axis=1) < fewest] = False
    if not flat.any():
        return found
    windows, means, sample = cut.windows(residual)[flat], means[flat], np.nonzero(flat)[0]
    known = ~np.isnan(windows).any(axis=tuple(range(1, windows.ndim)))
    known &= (np.bincount(sample[known], minlength=len(residual)) >= fewest)[sample]
    if not known.any():
        return found
    windows, means, sample = (windows, means, sample) if known.all() else (windows[known], means[known], sample[known])
    taper = taper_of(sides)
    filters = dct_filters(sides)
    if taper is not None:
        filters = [filters[0] * taper]
        windows *= taper.astype(windows.dtype)
    energy = np.square(dct_of_windows(windows)).reshape(len(windows), -1)
    expected = covariance.filter_variances(filters).ravel()
    compared, powers, sizes = np.unique(sample), [], []
    for k in compared:
        own = np.flatnonzero(sample == k)
        groups = np.array_split(energy[own[np.argsort(means[own])]], GROUPS)
        powers.append([some.mean(axis=0, dtype=np.float64) / expected for some in groups])
        sizes.append([len(some) / overlap for some in groups])
    checks = _compare(np.array(powers), np.array(sizes), relative_frequencies(sides).ravel())
    for k, check in zip(compared, checks, strict=True):
        found[k] = check
    return found


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


class _Powers(NamedTuple):
    """Of every sample the mean powers of all coefficients over those of the model, from that many windows each."""

    means: Array
    windows: Array

    def medians(self, band: NDArray[np.bool_]) -> Array:
        """Return the median over the coefficients of a band."""
        out: Array = np.maximum(np.median(self.means[:, band], axis=1), TINY)
        return out

    def variances(self, band: NDArray[np.bool_]) -> Array:
        """Return the variance of the logarithm of that median."""
        return math.pi / (self.windows * np.count_nonzero(band))


def _compare(means: Array, windows: Array, frequency: Array) -> list[ResidualCheck]:
    """Return the comparison, given the powers (samples, groups, coefficients) and the windows in each group."""
    low, _, high = ((frequency >= start) & (frequency < end) for start, end in BANDS)
    upper = frequency >= BANDS[1][0]
    total = windows.sum(axis=1)
    whole = _Powers((means * windows[..., None]).sum(axis=1) / total[:, None], total)
    dark, bright = (_Powers(means[:, group], windows[:, group]) for group in (0, -1))
    red = np.log(whole.medians(low) / whole.medians(high))
    red -= CAUTION * np.sqrt(whole.variances(low) + whole.variances(high))
    growth = bright.medians(upper) / dark.medians(upper)
    spread = np.sqrt(dark.variances(upper) + bright.variances(upper))
    level, error = np.sqrt(whole.medians(upper)), np.sqrt(whole.variances(upper)) / 2
    columns = (level, error, np.exp(red), growth, spread)
    return [ResidualCheck(*map(float, row)) for row in zip(*columns, strict=True)]
