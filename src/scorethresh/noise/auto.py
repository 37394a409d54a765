"""Which noise model holds, told from the data."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, known_floats
from .base import ChosenNoise, NoiseModel
from .camera import MOST_BELOW, CameraNoise
from .clipping import find_clip_limits, near_clip_limits
from .concentration import varies_too_little
from .dark_magnitudes import dark_magnitudes
from .flat_power import SMALL_IMAGE, flat_power
from .level import sample_level
from .medians import difference_level
from .models import CorrelatedNoise, PoissonNoise, WhiteNoise
from .outliers import SIDE, find_outliers
from .rician import RicianNoise
from .rows import row_lines, row_whiteness
from .speckle import SpeckleNoise
from .spectrum import estimate_spectrum
from .stabilisers import Stabiliser
from .units import MIN_LENGTH
from .variance_line import VarianceLine, fit_variance_line
from .whiteness import Whiteness, whiteness
from .windows import window_set

# Ratio of powers, by the number of axes, from which noise is called correlated; see `Whiteness`. Lower values find
# weaker correlations, higher ones are safer under texture and, in signals, under chirps and tones. Of 220 crops of 256
# by 256 from 11 development photographs, at noise 5, 10, 20 and 50, white noise reads 1.15 or more in one, but for
# Hubble field, whose own noise is correlated; noise blurred by 0.45 pixels reads less than 1.15 in 12 of 880 cases,
# less than 1.25 in 49. On 18 signals white noise reads at most 1.3, noise blurred by 0.7 samples mostly 3 to 8.
MIN_RED = {1: 2.0, 2: 1.15, 3: 1.25}
# From here on correlations are looked at before noise that grows with the signal, which they may look like. Noise
# blurred by 0.7 pixels or more reads above 9, with two exceptions; faint structure in growing noise at most 1.9.
STRONGLY_RED = 3.0
# Fewest entries of an image or volume in which weaker correlations count. Of three crops of 128 x 128 full of grass
# (camera), white noise of level 5 reads up to 1.6, and taking it for correlated costs 7 times the error of the input.
MIN_WEAK_ENTRIES = 1 << 15
# The same for noise that grows towards high frequencies. In signals, chirps look like it.
MIN_BLUE = {1: math.inf, 2: 1.25, 3: 1.25}
# The slope of the variance over its standard error, and the variance in the brightest over that in the darkest windows,
# from which noise is called signal-dependent. On the same photographs white noise has a slope of at most 1.6 standard
# errors, counts of 4 or more unless the brightness hardly varies.
MIN_SIGNIFICANCE = 3.5
MIN_GROWTH = 1.3
# Noise that grows by this much is not called correlated if it is so weakly, even where no model of growing noise is
# possible: among stars, speckle and counts read up to 2.1, and came out worse than they went in. On 44 development
# crops noise blurred by 0.45 pixels grows by up to 2.1, speckle and counts among stars by 3.0 to 14.
CLEAR_GROWTH = 2.5
# Speckle has a variance proportional to the squared mean. That law has one parameter less than a line, so it is chosen
# if its misfit is at most this, and at most so many times that of a line. On the same photographs the ratio is 0.1 to
# 1.7 for speckle, 1.7 to 13 for counts and cameras. From 1.1 to 1.6 the choices are the same.
MOST_MISFIT = 2.0
MOST_MISFIT_RATIO = 1.3
# Upper over lower quartile of the variances of bright magnitudes. Readings are uncertain by a fifth each, and some hold
# texture. Magnitudes read at most 1.3 on the same photographs.
MOST_UNEVEN = 1.6
# Data are counts if the variance is the mean to this tolerance, or within these standard errors. A camera's gain is
# rarely so close to 1.
COUNTS_TOLERANCE = 0.1
COUNTS_ERRORS = 2.5
# What flat windows of an image must show if the noise of a camera was made even: at least this power, that of noise
# being 1, and at middle frequencies at most so many times that at high ones. Texture that grows with the brightness
# passes for noise of a camera on 93 of 1440 development crops with white noise, and 16 of those at noise 5 or more come
# out worse than they went in, 5 with these limits. They refuse 4 of 150 crops with noise of a camera; a limit of 1.35
# refuses 3, and lets 2 more crops come out worse. The same rule for speckle would cost it 0.3 dB in the mean.
MIN_EVEN_POWER, MOST_EVEN_RED = 0.64, 1.25
SIDE_OF_WINDOWS = 8
# Channels that are looked at, at most.
MOST_CHANNELS = 3


@dataclass(frozen=True)
class AutoNoise(NoiseModel):
    """Noise whose kind is found out: white, correlated, of a camera, counts or magnitudes, speckle;
    with outliers or without."""

    shared: bool = False
    slices: ClassVar[bool] = True
    sampled: ClassVar[bool] = True
    finds_outliers: ClassVar[bool] = True

    def of_slices(self) -> AutoNoise:
        """Return the model of slices of a volume, which share one noise level."""
        return AutoNoise(shared=True)

    def measure(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> Stabiliser | None:
        """Return what the model that was found out does."""
        return self.chosen_for(y, missing).model.measure(y, missing)

    def chosen_for(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> ChosenNoise:
        """Return the model that fits y."""
        white = WhiteNoise(shared=self.shared)
        if max(y.shape[2:]) < MIN_LENGTH:
            return ChosenNoise(white)
        varying = [channel for channel in y if len(y) == 1 or np.ptp(_valid(channel, missing)) > 0] or [y[0]]
        step = -(-len(varying) // MOST_CHANNELS)
        parts = [known_floats(part, missing) for channel in varying[::step] for part in channel]
        outliers = _outliers(parts)
        if outliers is not None:
            parts = [np.where(outliers, np.nan, part) for part in parts]
        found = [w for w in map(whiteness, parts) if w is not None]
        unknown = missing if outliers is None else outliers if missing is None else outliers | missing
        textured = any(w.textured > MIN_RED[y.ndim - 2] for w in found)
        for model in _candidates(y, missing, parts, found):
            if _possible(model, y, unknown):
                growing = textured and not isinstance(model, CorrelatedNoise)
                return ChosenNoise(model, outliers, (_GROWING_TEXTURE,) if growing else ())
        if textured:
            return ChosenNoise(replace(white, doubt=_level_doubt(parts)), outliers, (_TEXTURE,))
        return ChosenNoise(white, outliers)


def white_rows(y: Floats) -> NDArray[np.bool_]:
    """Return which regular signals, (rows, size), hold white noise and no other for certain, as `AutoNoise` tells."""
    white = np.ones(len(y), bool)
    if y.shape[1] < MIN_LENGTH:
        return white
    ratios = row_whiteness(y)
    if ratios is not None:
        red, blue, textured = ratios
        white &= (red <= least_red(y.shape[1:])) & (blue <= MIN_BLUE[1]) & (textured <= MIN_RED[1])
    lines = row_lines(y)
    if lines is not None:
        white &= ~(lines.growing(MIN_SIGNIFICANCE, MIN_GROWTH) | lines.may_be_magnitudes() & (y.min(axis=1) >= 0))
    return white


def _level_doubt(parts: Sequence[Floats]) -> float:
    """Return the relative standard error of the level of noise that may be white or correlated.

    It is half of what the level by a spectrum is larger by, as if either were as likely; at most all of it.
    """
    with contextlib.suppress(ValueError):  # too few windows between gaps
        power = sum(float(estimate_spectrum(part).mean()) for part in parts)
        white = sum(sample_level(part) ** 2 for part in parts)
        return min(max(math.sqrt(power / white) - 1, 0.0) / 2, 1.0) if white > 0 else 0.0
    return 0.0


_TEXTURE = (
    "Fine texture everywhere, or correlated noise: the data do not tell which. White noise was assumed, and its level "
    "may be too high or too low. If you know the noise, pass sigma=..., or noise='correlated'."
)
# On 11 development photographs noise of cameras reads 0.85 to 1.05, speckle of 15% 0.84 to 1.0 but for two of 1.4 and
# 1.6. Clean brick reads 1.6, clean motorcycle 1.7.
_GROWING_TEXTURE = (
    "Noise that grows with the brightness, or fine texture that does: the data do not tell which. Noise was assumed. "
    "If it is texture, it was blurred, and the error is larger than predicted. If you know the noise, pass sigma=..., "
    "or its model."
)


def _candidates(
    y: NDArray[Any], missing: NDArray[np.bool_] | None, parts: list[Floats], found: list[Whiteness]
) -> Iterator[NoiseModel]:
    """Yield the models other than white noise that the data suggest, the likeliest first."""
    shape = y.shape[2:]
    blue = math.inf if least_red(shape) == STRONGLY_RED else MIN_BLUE[len(shape)]
    correlated = bool(found) and all(w.red > least_red(shape) or w.blue > blue for w in found)
    if correlated and max(w.red for w in found) > STRONGLY_RED:
        yield CorrelatedNoise()
    if y.shape[1] == 1:
        line = fit_variance_line(np.stack(parts)[:, None] if len(parts) > 1 else parts[0][None, None])
        if line is not None and _grows(line):
            yield _growing_model(y, missing, line)
            correlated &= _growth(line) < CLEAR_GROWTH
        elif line is not None and dark_magnitudes(_valid(y, missing), line):  # hardly any signal, or none
            yield RicianNoise()
    if correlated:
        yield CorrelatedNoise()


def least_red(shape: tuple[int, ...]) -> float:
    """Return the ratio of powers from which the noise of data of a shape is called correlated."""
    small = len(shape) > 1 and math.prod(shape) < MIN_WEAK_ENTRIES
    return STRONGLY_RED if small else MIN_RED[len(shape)]


def _possible(model: NoiseModel, y: NDArray[Any], unknown: NDArray[np.bool_] | None) -> bool:
    """Return whether the data vary as much as the noise of a model would by itself. Structure may pass for noise."""
    try:
        stabiliser = model.measure(y, unknown)
    except ValueError:  # nothing can be read of it, as between many gaps
        return False
    if stabiliser is None or stabiliser.share_out_of_reach(_valid(y, unknown)) > MOST_BELOW:
        return False
    values = stabiliser.forward(y[:1])[0, 0]
    if unknown is not None:
        values = np.where(unknown, np.nan, values)
    limits = stabiliser.limits_to_undo(find_clip_limits(y[:1]))
    if y.shape[1] == 1 and any(map(math.isfinite, limits)):  # clipped noise varies less
        level = np.full((1,) * y.ndim, sample_level(known_floats(y[0, 0], unknown)))
        values = np.where(near_clip_limits(y[:1], level, limits), np.nan, values)
    if values.ndim == 2 and not _even_where_flat(values, model):
        return False
    return not varies_too_little(values, stabiliser.covariance)


def _even_where_flat(values: Floats, model: NoiseModel) -> bool:
    """Return whether flat windows of an image hold white noise of level 1, once a growing model made it even.

    If not, it may be texture. Speckle is refused in small images alone, and only if texture is everywhere.
    """
    if not isinstance(model, CameraNoise | SpeckleNoise) or min(values.shape) < SIDE_OF_WINDOWS:
        return True
    found = flat_power(window_set(values, range(2), (SIDE_OF_WINDOWS,) * 2, 4))
    if found is None:
        return True
    if isinstance(model, SpeckleNoise):
        return values.size >= SMALL_IMAGE or not found.is_textured
    return found.high > MIN_EVEN_POWER and found.middle < MOST_EVEN_RED * found.high


def _valid(y: NDArray[Any], missing: NDArray[np.bool_] | None) -> NDArray[Any]:
    """Return the entries of y that are not missing."""
    return y if missing is None else y[..., ~missing]


def _grows(line: VarianceLine) -> bool:
    """Return whether the noise grows with the signal, clearly and by enough to matter."""
    return line.significance > MIN_SIGNIFICANCE and _growth(line) > MIN_GROWTH


def _growth(line: VarianceLine) -> float:
    """Return the variance in the brightest over that in the darkest windows."""
    return float(line.variance(line.high)) / float(line.variance(line.low))


def _growing_model(y: NDArray[Any], missing: NDArray[np.bool_] | None, line: VarianceLine) -> NoiseModel:
    """Return the model of noise that grows with the signal."""
    least = float(_valid(y, missing).min())
    if least >= 0 and line.square_misfit < min(MOST_MISFIT, MOST_MISFIT_RATIO * line.misfit):
        return SpeckleNoise()
    if _counts(y, missing, line):  # before magnitudes: those of whole numbers hardly ever have their mean as variance
        return PoissonNoise()
    magnitudes = least >= 0 and (_rician(line) or dark_magnitudes(_valid(y, missing), line))
    return RicianNoise() if magnitudes else CameraNoise()


def _rician(line: VarianceLine) -> bool:
    """Return whether the noise is that of magnitudes: Rayleigh's law where it is dark, even where it is bright.

    Magnitudes of noise alone have the mean 1.25 sigma and the variance 0.43 sigma^2. Far above the noise it is sigma^2
    at all means.
    """
    bright = line.means > 4 * np.sqrt(line.variances)
    if np.count_nonzero(bright) < 2:
        return False
    level = float(np.sqrt(np.median(line.variances[bright])))
    low, high = np.quantile(line.variances[bright], (0.25, 0.75))
    even = high < MOST_UNEVEN * low
    dark = np.abs(line.means / (1.2533 * level) - 1) < 0.1
    rayleigh = np.abs(line.variances[dark] / (0.4292 * level**2) - 1) < 0.3
    return bool(even and dark.any() and rayleigh.all())


def _counts(y: NDArray[Any], missing: NDArray[np.bool_] | None, line: VarianceLine) -> bool:
    """Return whether y holds counts: whole numbers from 0 on, whose variance is their mean."""
    known = _valid(y, missing)
    middle = (line.low + line.high) / 2
    off = abs(float(line.variance(middle)) / middle - 1) if middle > 0 else math.inf
    agrees = off < max(COUNTS_TOLERANCE, 2 * COUNTS_ERRORS * line.relative_error(middle))
    from_zero = abs(line.intercept) < COUNTS_ERRORS * line.intercept_error
    return bool(agrees and from_zero and known.min() >= 0 and (known == np.rint(known)).all())


def _outliers(parts: list[Floats]) -> NDArray[np.bool_] | None:
    """Return the outliers of all parts together; None if there are none. Spikes of signals are no outliers."""
    if parts[0].ndim == 1 or min(parts[0].shape) < SIDE:
        return None
    found = np.zeros(parts[0].shape, bool)
    for part in parts:
        level = difference_level(part)  # structure makes it larger: that is safe
        if level > 0:
            found |= find_outliers(part, level)
    return found if found.any() else None
