"""The level of white noise, estimated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from .. import _validate
from .._arrays import Floats, working_precision
from .._lazy_data import lazy_module
from .._validate import Array
from .clipping import NEAR_DISTANCE, find_clip_limits, share_left
from .flat_power import SMALL_IMAGE, flat_power
from .medians import median_level
from .mixed_differences import MIN_NOISY_SHARE, mixed_readings, nonzero_reading, pair_differences
from .peaks import difference_readings, limit_readings
from .repeats import has_few_values, rounding_step
from .texture import MEDIAN_ERROR, MIN_FLAT_WINDOWS, Reading, flat_readings
from .units import is_constant, normalise
from .windows import WindowSet, relative_frequencies, window_set

__all__ = ["estimate_sigma"]

# Whether y holds samples, which need a transform.
_DOMAINS = {"coefficients": False, "samples": True}
Domain = Literal["coefficients", "samples"]

# Daubechies' high-pass filter with four taps: unit energy, zero response to constants and slopes.
HIGH_PASS = np.array([1 - 3**0.5, -(3 - 3**0.5), 3 + 3**0.5, -(1 + 3**0.5)]) / 32**0.5
# The sum of squared correlations of its results at all places, -9/16 and 1/16 at distances 1 and 3.
DETAIL_OVERLAP = 1 + 2 * (81 + 1) / 256


# Shortest axis along which windows are cut.
MIN_AXIS = 16
# Sides of the windows by the number of such axes, and whether they are tapered. In images, large tapered windows
# resolve waves that fill every small one. Signals use several: short windows fit between edges, long ones resolve
# oscillations. On 22 signals for development, one size instead of three raises the mean error of the level from 10% to
# 21% (16) or 16% (32); a fourth size changes it by 0.2%.
BLOCKS = {1: ((16, True), (128, True), (512, True)), 2: ((8, False), (32, True)), 3: ((4, False),)}
# Lowest relative frequency that is read in windows of signals. Higher ones hold less signal, and leave fewer
# coefficients. On these signals 0.4 and 0.75 are as good, 0.25 is worse by 3%.
MIN_TAPERED_FREQUENCY = 0.5
# Sides of the boxes of local means, by the number of such axes. Larger ones blur edges, smaller ones follow the
# noise: on 17 development photographs in 8 bits at noise 20, 35, 50 and 70 levels are off by 1.4, 1.1, 0.9 and 0.8%
# (root mean square), at 70 by 1.7% with boxes of 3 pixels, 1.4% of 7 and 2.0% of 9.
MEAN_BOXES = {1: 25, 2: 5, 3: 3}
# Rounds before the last in which clipping is undone, and the entries of the windows of each size that are read in them.
# With 2 rounds levels are off by up to 1.5% there, with 5 and with twice the entries as with these.
CLIP_ROUNDS, ROUND_ENTRIES = 3, 1 << 16
# Fewest windows of a signal, and fewest details of the finest wavelet band. From 4 to 12 windows the signals come out
# the same; 16 leave those of 2000 samples without the longest windows.
MIN_COUNT = 10

# Readings are compared after adding this many times their level over the root of the count: 2.1 standard errors of a
# median. Larger values prefer readings of many coefficients, smaller ones those with little signal. On the development
# photographs at noise 50 the root mean square error of the level is 0.6%, with 2 it is 1.0%.
PENALTY = 2.5
# What structure adds to the relative standard error of a level: this, times the root of how far the mean of all
# readings lies above the best, at most so much. If all agree, the data hold little but noise. Where that mean lies 0.0,
# 0.5, 1, 3 and 7% above the best, levels of three crops of 256 x 256 of each of 11 development photographs at noise 2
# to 50 were off by 0.6, 0.7, 1.1, 1.9 and 2.2% (root mean square), sampling errors of 0.4 to 0.9% included. From 0.055
# to 0.11 two standard errors of the prediction cover its error in 98 to 99% of the cases; the predicted PSNR is off by
# 0.48 to 0.55 dB.
STRUCTURE_ERROR = 0.055
MOST_STRUCTURE_ERROR = 0.05
# The relative standard error where windows are too few, because of gaps or of few entries: the spread of the levels of
# ten crops of development photographs, 30% missing.
GAP_ERROR = 0.1


# Small images whose windows are all textured have a level that is as likely far too high as right. It is
# multiplied by this factor, and called uncertain by that error. A level that is too low leaves noise, one that is too
# high destroys what is no noise. On the crops that `flat_power` names, those with a right level lose 2 dB; with 0.85
# they lose 0.7 dB, and a third of the others come out worse than they went in. The reading must hold at least so much
# of the power of flat windows: if it is far below, it knows about the texture.
TEXTURED_FACTOR, TEXTURED_ERROR = 0.65, 0.2
MIN_POWER_SHARE = 0.5


class Level(NamedTuple):
    """A noise level and its relative standard error."""

    value: float
    error: float


@overload
def estimate_sigma(y: Any, *, domain: Domain | None = None, channel_axis: None = None) -> float: ...
@overload
def estimate_sigma(y: Any, *, domain: Domain | None = None, channel_axis: int) -> Array: ...
def estimate_sigma(y: Any, *, domain: Domain | None = None, channel_axis: int | None = None) -> float | Array:
    """Estimate the standard deviation of white noise, robustly against the signal.

    Parameters
    ----------
    y : array_like
        Noisy coefficients, or a noisy signal, image or volume. In the latter NaN marks missing entries.
    domain : {"coefficients", "samples"}, optional
        What y holds. ``"coefficients"``: most entries are noise with mean zero, as in a wavelet band. ``"samples"``:
        a signal, image or volume. By default a vector holds coefficients, and an array with two or more axes samples.
        For a one-dimensional signal, pass ``domain="samples"``.
    channel_axis : int, optional
        The axis of colours or other channels, each of which has its own level. Channels of two or more axes, and
        several signals, hold samples by default.

    Returns
    -------
    float or ndarray
        The noise level, in units of y; one per channel if there is an axis of them.

    See Also
    --------
    Denoiser : Estimates the level by itself if `sigma` is not given.
    select_threshold : Needs the level of coefficients.

    Notes
    -----
    Coefficients: the estimate is ``median(|y|) / 0.6745`` [1]_. Signal makes it too large: by 6% if 5% of the entries
    are far from zero.

    Samples: the level is read in several ways, each of which signal can only make too large. The result is the smallest
    reading, penalised by its sampling error.

    - The same median of DCT coefficients at high frequencies, in windows of 8 x 8 entries (images), 4 x 4 x 4 (volumes)
      or, tapered, 16 to 512 (signals) and 32 x 32 (images). Of small windows only the flattest tenth counts, judged by
      lower frequencies. If texture is everywhere, further readings remove it: its power grows from flat windows to the
      others, that of noise does not.
    - The width of the peak at 0 of the differences of neighbours. Line art, steps and bits have one.
    - The width of the half peak beside a value at which data were clipped, if there are as many entries at the value.

    Near such a value clipping leaves less noise. Windows there are read as if they had what it took, by the level that
    is sought, in rounds; those that lost half of the variance or more are left out. So are windows with constant parts.
    If these are as many as the others, the data hold no noise. Peaks are not read from values that repeat at uneven
    steps, as after a curve of tones. If there are too few windows, differences of neighbours are read (and the finest
    wavelet band of signals), in images and volumes also in the flattest blocks alone.

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
    lazy = lazy_module(y)
    if lazy is not None and channel_axis is None:
        return lazy.estimate_sigma(y, domain=domain)  # type: ignore[no-any-return]
    y = _validate.data(y)
    if channel_axis is not None:
        channels = np.moveaxis(y, _validate.axis("channel_axis", channel_axis, y.ndim), 0)
        return np.array([estimate_sigma(channel, domain=domain or "samples") for channel in channels])
    if domain is None:
        domain = "coefficients" if y.ndim == 1 else "samples"
    sampled = _validate.choice("domain", domain, _DOMAINS)
    _validate.finite(y[~np.isnan(y)] if sampled and y.dtype.kind == "f" else y)
    y = y.astype(working_precision(y.dtype))
    sigma = sample_level(y) if sampled else median_level(y)
    if not sigma > 0:
        msg = "the noise level of y comes out as 0: most entries used are 0. Pass sigma, or crop constant parts."
        raise ValueError(msg)
    return sigma


def sample_level(y: Floats, *, peaks: bool = True) -> float:
    """Estimate the noise level of a signal, image or volume, as `estimate_sigma` does for samples.

    NaN marks missing entries. The level is 0 if y is constant, or holds no noise. Peaks must not be read from sums of
    rounded data, such as rotated colours: their differences cluster at steps that are not known.
    """
    return measure_level(y, peaks=peaks).value


def measure_level(y: Floats, *, peaks: bool = True) -> Level:
    """Estimate the noise level with its error, as `sample_level` does."""
    if is_constant(y, "Pass sigma.") or has_few_values(y):
        return Level(0.0, 0.0)
    unit, exponent = normalise(y)
    del y  # frees memory, if nobody else holds it
    found = _window_level(unit, peaks) or _level_without_windows(unit)
    return Level(math.ldexp(found.value, exponent), found.error)


def _window_level(y: Floats, peaks: bool) -> Level | None:
    """Return the level that windows and neighbours tell; 0 if they hold no noise, None if there are too few."""
    sets = list(_window_sets(y))
    if all(windows.known <= fewest_windows(windows) for windows in sets):
        return None
    first = combined([reading for windows in sets for reading in _readings(windows)])
    if first is None:  # all windows are constant in part, or too few are not
        return None if any(windows.noisy for windows in sets) else Level(0.0, 0.0)
    limits = [limit for limit in find_clip_limits(y) if math.isfinite(limit)]
    clipped = first.value > 0 and bool(limits)
    far, readings = _unclipped(y, sets, first, limits) if clipped else (sets, list(_noisy_readings(sets)))
    in_windows = combined(readings) or Level(0.0, 0.0)
    distance = NEAR_DISTANCE * (in_windows.value or first.value)
    if peaks and sets[0].noisy:
        known = y if sets[0].covered is None else np.where(sets[0].covered, y, np.nan)
        step = rounding_step(y)
        if not math.isnan(step):
            readings += difference_readings(known, limits, distance, step)
            readings += limit_readings(known, limits, step)
    if not readings and sets[0].noisy:
        return first  # all windows are near a limit
    found = combined(readings) or Level(0.0, 0.0)
    small = y.ndim == 2 and y.size < SMALL_IMAGE
    return _below_texture(found, far[0]) if small and found.value == in_windows.value else found


def _noisy_readings(sets: Sequence[WindowSet]) -> Iterator[Reading]:
    """Yield the readings of those sizes of windows that hold noise."""
    for windows in sets:
        if windows.noisy:
            yield from _readings(windows)


def _unclipped(
    y: Floats, sets: Sequence[WindowSet], level: Level, limits: Sequence[float]
) -> tuple[list[WindowSet], list[Reading]]:
    """Return the windows as they were before clipping, with the readings of them; `level` is that of all windows.

    Each round undoes clipping of noise of the level that the one before has read, in some of the windows, the last in
    all. Windows are chosen by local means. To leave out those that meet a limit would favour windows with little noise.
    """
    means = _local_means(y, sets[0].cut.axes)
    some = [windows.some(slice(None, None, max(windows.coefficients.size // ROUND_ENTRIES, 1))) for windows in sets]
    far, readings = list(sets), list(_noisy_readings(sets))
    for chosen in (*[some] * CLIP_ROUNDS, sets):
        share, distance = share_left(means, level.value, limits), NEAR_DISTANCE * level.value
        far = [replace(s.unclipped(share), mixed_means=s.mixed_away(limits, distance)) for s in chosen]
        readings = list(_noisy_readings(far))
        level = combined(readings) or level
    return far, readings


def _local_means(y: Floats, axes: Sequence[int]) -> Floats:
    """Return the means of known entries in boxes around every entry."""
    from scipy.ndimage import uniform_filter

    box = [MEAN_BOXES[len(axes)] if axis in axes else 1 for axis in range(y.ndim)]
    missing = np.isnan(y)
    if not missing.any():
        return np.asarray(uniform_filter(y, box))
    known = uniform_filter((~missing).astype(y.dtype), box)
    sums = uniform_filter(np.where(missing, 0, y), box)
    return np.asarray(sums / np.maximum(known, 1 / math.prod(box)))


def _below_texture(level: Level, windows: WindowSet) -> Level:
    """Return a lower level if fine texture is in all windows of a small image."""
    power = flat_power(windows)
    if power is None or not power.is_textured or level.value**2 < MIN_POWER_SHARE * power.high:
        return level
    return Level(TEXTURED_FACTOR * level.value, math.hypot(level.error, TEXTURED_ERROR))


def _window_sets(y: Floats) -> Iterator[WindowSet]:
    """Yield the usable windows of every size that fits, along the last three long axes."""
    axes = tuple(axis for axis in range(y.ndim) if y.shape[axis] >= MIN_AXIS)[-3:]
    for side, taper in BLOCKS.get(len(axes), ()):
        if all(y.shape[axis] >= side for axis in axes):
            yield window_set(y, axes, (side,) * len(axes), 4 if len(axes) == 1 or not taper else 2, taper)


def combined(readings: Sequence[Reading]) -> Level | None:
    """Return the smallest of the readings, each penalised by its sampling error; None if there are none.

    Signal makes every reading too large, so the smallest is best, unless it is small by chance. How much larger the
    others are in the mean, weighted by their precision, tells how much structure there is.
    """
    best = min(readings, key=lambda r: r.level * (1 + PENALTY / math.sqrt(r.effective_count)), default=None)
    if best is None:
        return None
    counts = [reading.effective_count for reading in readings]
    mean = math.fsum(r.level * r.effective_count for r in readings) / math.fsum(counts)
    rise = max(mean / best.level - 1, 0.0) if best.level > 0 else 0.0
    structure = min(STRUCTURE_ERROR * math.sqrt(rise), MOST_STRUCTURE_ERROR)
    return Level(best.level, math.hypot(MEDIAN_ERROR / math.sqrt(best.effective_count), structure))


def fewest_windows(windows: WindowSet) -> int:
    """Return how many windows are too few for a level."""
    return math.ceil(MIN_FLAT_WINDOWS * windows.overlap) if not windows.tapered else MIN_COUNT - 1


def _readings(windows: WindowSet) -> Iterator[Reading]:
    """Yield noise levels read from the windows; none if there are too few."""
    if not windows.tapered:
        yield from flat_readings(windows)
    elif len(windows.coefficients) >= MIN_COUNT:
        values = windows.coefficients[:, relative_frequencies(windows.block).ravel() >= MIN_TAPERED_FREQUENCY]
        yield Reading(median_level(values), values.size / windows.overlap)


def _level_without_windows(y: Floats) -> Level:
    """Return the level by differences of neighbours, in signals by the finest wavelet band, too.

    Those that are exactly 0 come from constant regions and do not count.
    """
    details = nonzero_reading(_details(y), DETAIL_OVERLAP) if y.ndim == 1 and y.size >= HIGH_PASS.size else ()
    found = combined([*details, *mixed_readings(y)])
    if found is not None:
        return Level(found.value, math.hypot(found.error, GAP_ERROR))
    values = pair_differences(y)
    values = values[~np.isnan(values)]
    if not values.size:
        msg = f"y has no two entries side by side, with shape {y.shape}, that are known. Pass sigma."
        raise ValueError(msg)
    noisy = values[values != 0]
    level = median_level(noisy) if noisy.size >= MIN_NOISY_SHARE * values.size else 0.0
    return Level(level, math.hypot(MEDIAN_ERROR / math.sqrt(max(noisy.size, 1)), GAP_ERROR))


def _details(y: Floats) -> Floats:
    """Return what `HIGH_PASS` makes of y at every place where it lies inside.

    The taps g add up to 0, so ``g0 y0 + g1 y1 + g2 y2 + g3 y3`` is
    ``-g0 (y1 - y0) - (g0 + g1) (y2 - y1) + g3 (y3 - y2)``, which is exactly 0 in constant regions.
    """
    a, b, c = np.lib.stride_tricks.sliding_window_view(np.diff(y), 3).T
    out: Floats = -HIGH_PASS[0] * a - (HIGH_PASS[0] + HIGH_PASS[1]) * b + HIGH_PASS[3] * c
    return out
