"""The level of white noise, estimated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import _validate
from .._arrays import Floats, working_precision
from .clipping import NEAR_DISTANCE, find_clip_limits
from .texture import Reading, flat_readings
from .windows import WindowSet, is_constant, median_level, normalise, relative_frequencies, window_set

__all__ = ["estimate_sigma"]

# Whether y holds samples, which need a transform.
_DOMAINS = {"coefficients": False, "samples": True}

# Daubechies' high-pass filter with four taps: unit energy, zero response to constants and slopes.
HIGH_PASS = np.array([1 - 3**0.5, -(3 - 3**0.5), 3 + 3**0.5, -(1 + 3**0.5)]) / 32**0.5


# Shortest axis along which windows are cut.
MIN_AXIS = 16
# Sides of the windows by the number of such axes. Signals use several: short windows fit between edges, long ones
# resolve oscillations. On 22 signals for development, one size instead of three raises the mean error of the level from
# 10% to 21% (16) or 16% (32); a fourth size changes it by 0.2%.
BLOCKS = {1: (16, 128, 512), 2: (8,), 3: (4,)}
# Lowest relative frequency that is read in windows of signals. Higher ones hold less signal, and leave fewer
# coefficients. On these signals 0.4 and 0.75 are as good, 0.25 is worse by 3%.
MIN_SIGNAL_FREQUENCY = 0.5
# Fewest windows of a signal, and fewest details of the finest wavelet band. From 4 to 12 windows the signals come out
# the same; 16 leave those of 2000 samples without the longest windows.
MIN_COUNT = 10

# Readings are compared after adding this many times their level over the root of the count: 1.7 standard errors of a
# median. Larger values prefer readings of many coefficients, smaller ones those with little signal. With 1 or 3 the
# mean error on the development images rises by 0.2%.
PENALTY = 2.0
# Fewest nonzero details, as a share of all, that are noise. Fewer are signal in data without noise.
MIN_NOISY_SHARE = 0.05


def estimate_sigma(y: Any, *, domain: str | None = None) -> float:
    """Estimate the standard deviation of white noise, robustly against the signal.

    Parameters
    ----------
    y : array_like
        Noisy coefficients, or a noisy signal, image or volume.
    domain : {"coefficients", "samples"}, optional
        What y holds. ``"coefficients"``: most entries are noise with mean zero, as in a wavelet band. ``"samples"``:
        a signal, image or volume. By default a vector holds coefficients, and an array with two or more axes samples.
        For a one-dimensional signal, pass ``domain="samples"``.

    Returns
    -------
    float
        The noise level, in units of y.

    See Also
    --------
    Denoiser : Estimates the level by itself if `sigma` is not given.
    select_threshold : Needs the level of coefficients.

    Notes
    -----
    Coefficients: the estimate is ``median(|y|) / 0.6745`` [1]_. Signal makes it too large: by 6% if 5% of the entries
    are far from zero.

    Samples: the same median is taken of DCT coefficients at high frequencies, in windows of 8 x 8 entries (images),
    4 x 4 x 4 (volumes) or 16 to 512 (signals, tapered). In images and volumes only the flattest tenth of the windows
    counts, judged by lower frequencies. If texture is everywhere, further readings remove it: its power grows from flat
    windows to the others, that of noise does not. The result is the smallest of these readings, each penalised by its
    sampling error. Windows with constant parts, and those near a value at which the data were clipped, are left out.
    If there are too few windows, the finest wavelet band is read.

    References
    ----------
    .. [1] D. L. Donoho and I. M. Johnstone, Ideal spatial adaptation by wavelet shrinkage, Biometrika 81 (1994)
       425-455, doi:10.1093/biomet/81.3.425.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> print(round(estimate_sigma(rng.normal(0.0, 3.0, 10_000)), 1))
    3.0
    >>> image = np.add.outer(np.arange(128.0), np.arange(128.0))
    >>> print(round(estimate_sigma(image + rng.normal(0.0, 3.0, image.shape)), 1))
    3.0
    """
    y = _validate.data(y)
    _validate.finite(y)
    if domain is None:
        domain = "coefficients" if y.ndim == 1 else "samples"
    y = y.astype(working_precision(y.dtype))
    sigma = sample_level(y) if _validate.choice("domain", domain, _DOMAINS) else median_level(y)
    if not sigma > 0:
        msg = "the noise level of y comes out as 0: most entries used are 0. Pass sigma, or crop constant parts."
        raise ValueError(msg)
    return sigma


def sample_level(y: Floats) -> float:
    """Estimate the noise level of a signal, image or volume, as `estimate_sigma` does for samples.

    NaN marks missing entries. The level is 0 if y is constant.
    """
    if is_constant(y, "Pass sigma."):
        return 0.0
    unit, exponent = normalise(y)
    level = _window_level(unit)
    return math.ldexp(_wavelet_level(unit) if level is None else level, exponent)


def _window_level(y: Floats) -> float | None:
    """Return the smallest reading of all windows, those near clip limits left out; None if there are too few."""
    sets = list(_window_sets(y))
    level = _smallest_reading(sets)
    limits = [limit for limit in find_clip_limits(y) if math.isfinite(limit)]
    if level is None or not limits:
        return level
    # Windows are left out by their means. To leave out those that meet a limit would favour windows with little noise.
    farther = _smallest_reading([windows.away_from(limits, NEAR_DISTANCE * level) for windows in sets])
    return farther or level


def _window_sets(y: Floats) -> Iterator[WindowSet]:
    """Yield the usable windows of every size that fits, along the last three long axes."""
    axes = tuple(axis for axis in range(y.ndim) if y.shape[axis] >= MIN_AXIS)[-3:]
    for side in BLOCKS.get(len(axes), ()):
        if any(y.shape[axis] < side for axis in axes):
            continue
        block = (side,) * len(axes)
        if len(axes) == 1:  # a taper keeps oscillations at their own frequency; more overlap makes every entry count
            taper = np.sin(np.pi * (np.arange(side) + 0.5) / side) ** 2
            yield window_set(y, axes, block, 4, taper / math.sqrt((taper**2).mean()))
        else:
            yield window_set(y, axes, block, 4)


def _smallest_reading(sets: Sequence[WindowSet]) -> float | None:
    """Return the smallest of the readings, each penalised by its sampling error; None if there are none.

    Signal makes every reading too large, so the smallest is best, unless it is small by chance.
    """
    readings = [reading for windows in sets for reading in _readings(windows)]
    best = min(readings, key=lambda r: r.level * (1 + PENALTY / math.sqrt(r.effective_count)), default=None)
    return None if best is None else best.level


def _readings(windows: WindowSet) -> Iterator[Reading]:
    """Yield noise levels read from the windows; none if there are too few."""
    if len(windows.block) > 1:
        yield from flat_readings(windows)
    elif len(windows.coefficients) >= MIN_COUNT:
        values = windows.coefficients[:, relative_frequencies(windows.block) >= MIN_SIGNAL_FREQUENCY]
        yield Reading(median_level(values), values.size / windows.overlap)


def _wavelet_level(y: Floats) -> float:
    """Return the level of the finest diagonal wavelet band, or of differences of neighbours if gaps leave too little.

    Details that are exactly 0 come from constant regions and do not count.
    """
    detail = y
    for axis in range(y.ndim):
        if y.shape[axis] >= HIGH_PASS.size:
            detail = _detail(detail, axis)
    values = detail[~np.isnan(detail)]
    if values.size < min(MIN_COUNT, detail.size):
        steps = [np.diff(y, axis=axis).ravel() / math.sqrt(2) for axis in range(y.ndim)]
        values = np.concatenate([step[~np.isnan(step)] for step in steps])
    if not values.size:
        msg = f"y has no two entries side by side, with shape {y.shape}, that are known. Pass sigma."
        raise ValueError(msg)
    noisy = values[values != 0]
    return median_level(noisy) if noisy.size >= MIN_NOISY_SHARE * values.size else 0.0


def _detail(y: Floats, axis: int) -> Floats:
    """Return every other coefficient of `HIGH_PASS` along an axis, where the filter lies inside of y.

    The taps g add up to 0, so ``g0 y0 + g1 y1 + g2 y2 + g3 y3`` is
    ``-g0 (y1 - y0) - (g0 + g1) (y2 - y1) + g3 (y3 - y2)``, which is exactly 0 in constant regions.
    """
    y = np.moveaxis(y, axis, -1)
    step = y[..., 1:] - y[..., :-1]
    count = (y.shape[-1] - HIGH_PASS.size) // 2 + 1
    a, b, c = (step[..., j : j + 2 * count - 1 : 2] for j in range(3))
    out: Floats = -HIGH_PASS[0] * a - (HIGH_PASS[0] + HIGH_PASS[1]) * b + HIGH_PASS[3] * c
    return np.moveaxis(out, -1, axis)
