"""Whether noise is white: its power at middle frequencies against that at high ones, where texture cannot explain it.

White noise has the same power at all frequencies. In the flattest windows of the data there is little else, so a power
that falls towards high frequencies tells correlated noise, or texture that no window is free of. The two differ in how
the power varies from window to window: noise is alike in all of them, texture is not.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._validate import Array
from ..frames.dct import dct_matrix
from .clipping import NEAR_DISTANCE, find_clip_limits
from .level import sample_level
from .medians import quantiles
from .texture import FLAT_SHARE, MAX_TEXTURE_MEAN, excess_variability
from .units import normalise
from .windows import (
    TINY,
    WindowSet,
    frequency_sums,
    read_only,
    relative_frequencies,
    squared_sine,
    window_set,
)

# Sides of the windows by the number of axes, with a taper for signals, so that tones stay at their own frequency.
BLOCK_SIDES = {1: 128, 2: 8, 3: 4}
# The side in short signals, so that at most half of the windows are called flat. If all are, a chirp may be everywhere.
SHORT_SIDE = 64
# Shortest signal. Of some 75 mixtures of three or four chirps, 7 times the noise, nearly half are called correlated
# with 512 samples, a tenth with 1000, none with 2048; blurred noise on steps is found in 40%, 90% and all cases.
MIN_SAMPLES = 900
# Ends of the lower, the middle and the high band of relative frequencies. Below the first, all windows hold signal.
BANDS = (0.25, 0.5), (0.5, 0.75), (0.75, 1.01)
# Fewest windows that are called flat, if they did not overlap: fewer make the ratio of powers uncertain by more than
# 0.1 in its logarithm. Windows of a signal hold more coefficients, and there are fewer of them.
MIN_FLAT = {1: 4, 2: 40, 3: 40}
# Share of the windows of a signal that are called flat: a quarter, for the same reason.
FLAT_SHARES = {1: 0.25, 2: FLAT_SHARE, 3: FLAT_SHARE}
# Least share of a power that texture leaves to noise. Powers of strongly correlated noise differ by far more.
MIN_SHARE = 0.02
# The variance of a quartile over that of a mean, for normal variables.
QUARTILE_VARIANCE = 1.86
# Standard errors that are taken off a ratio before it counts as evidence.
CAUTION = 2.0


class Whiteness(NamedTuple):
    """Ratios of powers, 1 or below for white noise without texture; each is a lower bound by two standard errors.

    Attributes
    ----------
    red : float
        The power at lower or middle frequencies over that at high ones, less what texture can explain.
    blue : float
        The power at high frequencies over that at middle ones. Texture has none of it.
    textured : float
        The power at middle frequencies over that at high ones, whatever explains it.
    """

    red: float
    blue: float
    textured: float


def whiteness(y: Floats) -> Whiteness | None:
    """Compare the powers of noise at middle and at high frequencies.

    Parameters
    ----------
    y : ndarray
        A signal, image or volume with noise of the same level everywhere; NaN marks missing entries.

    Returns
    -------
    Whiteness or None
        None if there are too few windows without constant parts, or fewer than 900 samples of a signal.

    Notes
    -----
    Coefficients whose frequencies have an even sum choose the flat windows in which those with an odd sum are read,
    and the other way round. The power of a band is the lower quartile of the mean powers of its coefficients, so that
    a tone, which fills few of them, does not count. Texture of relative spread s from window to window explains at most
    the share `MAX_TEXTURE_MEAN` s of a power; see `excess_variability`.
    """
    if y.ndim == 1 and y.size < MIN_SAMPLES:
        return None
    windows = _windows(normalise(y)[0])
    energy = np.square(windows.coefficients)
    found = compared_powers(energy[None], windows.block, windows.overlap)
    return None if found is None else Whiteness(*map(float, found[:, 0]))


def compared_powers(energy: Floats, block: tuple[int, ...], overlap: float) -> Array | None:
    """Return the three ratios of `Whiteness` of many samples, (3, samples); None if there are too few windows.

    `energy` holds squared coefficients, (samples, windows, entries of a window), `overlap` is that of the windows.
    """
    ndim, size = len(block), energy.shape[1]
    count = max(int(FLAT_SHARES[ndim] * size), math.ceil(MIN_FLAT[ndim] * overlap))
    if size < count:
        return None
    found = [_compare(energy, count / overlap, count, _half(block, half)) for half in (0, 1)]
    plain, bounded, error = np.mean(found, axis=0)
    error *= CAUTION / math.sqrt(2)
    ratios: Array = np.exp([(bounded - error).max(axis=0), (-plain - error).max(axis=0), (plain - error)[1]])
    return ratios


def compared_sides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sides of the windows that are compared in data of a shape."""
    if len(shape) == 1 and shape[0] < 2 * MIN_FLAT[1] * BLOCK_SIDES[1]:
        return (SHORT_SIDE,)
    return tuple(min(BLOCK_SIDES[len(shape)], n) for n in shape)


def _windows(y: Floats) -> WindowSet:
    """Return the windows that are compared: those near a clip limit are left out."""
    windows = window_set(y, range(y.ndim), compared_sides(y.shape), 4, tapered=y.ndim == 1)
    limits = [limit for limit in find_clip_limits(y) if math.isfinite(limit)]
    return windows.away_from(limits, NEAR_DISTANCE * sample_level(y)) if limits else windows


@functools.lru_cache(maxsize=32)
def taper_of(sides: tuple[int, ...]) -> Array | None:
    """Return the taper of a window of a signal; None for images and volumes."""
    if len(sides) > 1:
        return None
    taper = squared_sine(sides[0])
    return read_only(taper / math.sqrt((taper**2).mean()))


class _Band(NamedTuple):
    """The coefficients of a band, and how many independent ones vary as much in the mean."""

    places: NDArray[np.intp]
    independent: float


class _Half(NamedTuple):
    """The coefficients that judge how flat a window is, and the bands of those that are read in it."""

    judging: NDArray[np.intp]
    bands: tuple[_Band, ...]


@functools.lru_cache(maxsize=32)
def _half(block: tuple[int, ...], half: int) -> _Half:
    """Return the coefficients of a window of which those with even (0) or odd (1) sums of frequencies judge."""
    sums, frequency = frequency_sums(block).ravel(), relative_frequencies(block).ravel()
    judging = (sums > 0) & (sums % 2 == half)
    reading = (frequency > 0) & ~judging
    bands = [(frequency >= low) & (frequency < end) & reading for low, end in BANDS]
    found = tuple(_Band(np.flatnonzero(band), _effective_count(block, band)) for band in bands)
    return _Half(np.flatnonzero(judging), found)


def _compare(energy: Floats, independent: float, count: int, half: _Half) -> Array:
    """Return for the lower and the middle band the log of its power over that of the high band, of every sample.

    Three rows: as it is, less what texture can explain, and the standard error.
    """
    judged = energy[..., half.judging]
    contrast = np.log1p(judged / np.maximum(np.median(judged, axis=1, keepdims=True), TINY)).mean(axis=-1)
    flattest = np.argpartition(contrast, count - 1, axis=1)[:, :count]
    flat = np.take_along_axis(energy, flattest[..., None], axis=1).astype(np.float64)
    *lower, high = half.bands
    powers = flat.mean(axis=1)
    highest = _power(powers, high)
    rows = []
    for band in lower:
        ratio = np.log(_power(powers, band) / highest)
        excess = excess_variability(flat[..., band.places].mean(axis=-1), band.independent)
        texture = MAX_TEXTURE_MEAN * np.sqrt(np.maximum(excess - 1, 0.0) * 2 / band.independent)
        variance = 2 * QUARTILE_VARIANCE / independent * (1 / band.independent + 1 / high.independent)
        error = np.full(len(ratio), math.sqrt(variance))
        rows.append((ratio, ratio + np.log(np.maximum(1 - texture, MIN_SHARE)), error))
    return np.stack([np.stack(row) for row in rows], axis=1)


def _power(powers: Array, band: _Band) -> Array:
    """Return the lower quartile over the coefficients of a band of their mean powers, of every sample."""
    out: Array = np.maximum(quantiles(powers[:, band.places], (0.25,))[0], TINY)
    return out


def _effective_count(block: tuple[int, ...], band: NDArray[np.bool_]) -> float:
    """Return how many independent coefficients vary as much in the mean as those of a band: fewer behind a taper.

    The mean of squares of coefficients with covariance C has the relative variance ``2 sum_ij C_ij^2 / (tr C)^2``.
    """
    taper = taper_of(block)
    if taper is None:
        return float(np.count_nonzero(band))
    rows = dct_matrix(block[0])[band] * taper
    covariance = rows @ rows.T
    return float(np.trace(covariance) ** 2 / np.square(covariance).sum())
