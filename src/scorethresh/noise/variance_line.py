"""The variance of the noise against the mean of the data: does the noise grow with the signal, and how?

White noise has the same variance everywhere. That of counts and of cameras is a line in the mean; that of speckle is
proportional to the squared mean.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, working_precision
from .._validate import Array
from .clipping import NEAR_DISTANCE, find_clip_limits
from .medians import median_level, median_levels
from .texture import Reading, flat_readings
from .variance_fit import VarianceFit, fit_many_variances, fit_variances
from .windows import TINY, WindowSet, relative_frequencies, window_set

__all__ = ["VarianceLine", "fit_variance_line"]

# Sides of the windows, and the lowest relative frequency that is read in them, by the number of long axes. Windows are
# those of `estimate_sigma`; signals use the shortest only, because a long window has no one mean.
BLOCKS = {1: (16, 0.5), 2: (8, 0.7), 3: (4, 0.7)}
# Shortest axis along which windows are cut.
MIN_AXIS = 16
# Bins of the local mean, at most and at least. More resolve the curve, fewer make each reading more precise.
MOST_BINS, MIN_BINS = 16, 4
# Share of the windows of a bin that is read, the flattest. Fewer hold less texture, more are more precise.
FLAT_SHARE = 0.25
# Fewest independent coefficients behind a reading. The relative standard error of its variance is then a fifth.
MIN_COEFFICIENTS = 120.0
# Standard error of a level, over the level, times the root of the number of coefficients: 1.17 for a median, 1.41 for
# readings from which texture was removed.
RELATIVE_ERROR = 1.3
# The chosen windows are scattered, so that they overlap less than all do. With this factor the misfit of lines is 0.3
# to 0.5 on the development images; without it 0.1.
SCATTERED_OVERLAP = 0.25
# Least range of the means of the bins, over the largest magnitude. Means of a checkerboard differ by rounding only.
LEAST_RANGE = 1e-12
# Readings of a bin are compared after adding this many times their level over the root of the count. They are many, and
# of few windows: the smallest is too small by chance. On 11 development photographs at 5 electrons a pixel predicted
# PSNRs are 0.6 dB too low in the median with 2, 0.2 with 3, right with 4; at 20 electrons 0.0, -0.2 and -0.3 dB.
PENALTY = 3.0
# How often windows near clip limits are left out by the noise level that the last line says.
CLIP_ROUNDS = 2
# Relative scatter of the variances about their line, by texture, that is counted beside the sampling error.
EXCESS = 0.05
# Largest binary exponent of the data: third powers of larger ones leave the range of doubles.
MOST_EXPONENT = 330


@dataclass(frozen=True, eq=False)
class VarianceLine:
    """The variance of the noise as a line in the mean of the data, ``intercept + slope * mean``.

    Attributes
    ----------
    intercept, slope : float
        The line. It is positive between `low` and `high`.
    intercept_error, slope_error : float
        Standard errors, with the scatter of the readings about the line.
    covariance : float
        Of the intercept and the slope.
    misfit : float
        Mean square of the distances from the line over their expected standard errors: about 1 if a line holds.
    low, high : float
        The smallest and the largest mean of the readings.
    means, variances, errors : ndarray
        The readings: mean, variance and relative standard error of each variance.
    """

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float
    covariance: float
    misfit: float
    low: float
    high: float
    means: Array
    variances: Array
    errors: Array

    @property
    def spread(self) -> Array:
        """Relative standard errors of the variances about a line, with what texture adds."""
        return np.hypot(self.errors, EXCESS)

    @functools.cached_property
    def square_misfit(self) -> float:
        """The misfit of a variance proportional to the squared mean, as in speckle; infinite if one is not positive."""
        if self.low <= 0:
            return math.inf
        square = (self.means / self.high)[:, None] ** 2
        return float(fit_variances(square, self.variances / self.variances.max(), self.spread).misfit)

    @property
    def significance(self) -> float:
        """The slope over its standard error."""
        return self.slope / self.slope_error if self.slope_error > 0 else 0.0

    def variance(self, mean: Any) -> Any:
        """Return the variance at a mean."""
        return self.intercept + self.slope * np.asarray(mean)

    def relative_error(self, mean: float) -> float:
        """Return the relative standard error of the noise level at a mean."""
        variance = max(float(self.variance(mean)), TINY)  # fourth powers of some units overflow, so divide first
        of_line = (self.intercept_error / variance) ** 2 + (mean * self.slope_error / variance) ** 2
        of_line += 2 * (mean / variance) * (self.covariance / variance)
        return math.sqrt(max(of_line, 0.0)) / 2


class _Readings(NamedTuple):
    """Means, variances of the noise there, and relative standard errors of these."""

    means: Array
    variances: Array
    errors: Array


def fit_variance_line(y: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> VarianceLine | None:
    """Fit a line to the variance of the noise against the mean of the data.

    Parameters
    ----------
    y : ndarray
        The data as (channels, parts, *shape), or one signal or image. Channels share the line. NaN marks missing
        entries.
    missing : ndarray of bool, shape (*shape), optional
        More missing entries.

    Returns
    -------
    VarianceLine or None
        None if there are too few windows, or no noise in them.

    Notes
    -----
    Windows are sorted into bins by their mean. In each bin the flattest ones are chosen, by low frequencies of their
    DCT, and the noise level is read at high ones as ``median(|coefficient|) / 0.6745``. So the choice says nothing
    about the noise that is read. Further readings remove texture, as in `estimate_sigma`; the smallest is taken.
    Windows near a clip limit are left out.

    The line has the least sum of ``log(1 + (r / 2)^2)``, r the distances of the logarithms of variances over their
    standard errors. It starts from the best of the lines through two readings, so that bins full of texture, which read
    too much, do not count. Where all bright regions are textured and all dark ones smooth, or the other way round,
    texture cannot be told from noise that grows.
    """
    if y.ndim <= 2:
        y = y[None, None]
    values = y.astype(working_precision(y.dtype), copy=missing is not None)
    if missing is not None:
        values[:, :, missing] = np.nan
    largest = max(float(np.fmax.reduce(values, None, initial=0.0)), -float(np.fmin.reduce(values, None, initial=0.0)))
    if not 0 < largest < math.inf:
        return None
    exponent = math.frexp(largest)[1]
    if abs(exponent) > MOST_EXPONENT:
        return None
    windows = _windows(values, exponent)
    readings = None if windows is None else _bins(windows)
    if windows is None or readings is None:
        return None
    limits = [math.ldexp(limit, -exponent) for limit in find_clip_limits(values) if math.isfinite(limit)]
    for _ in range(CLIP_ROUNDS if limits else 0):
        readings = _bins(_away_from(windows, limits, _line(readings, 0))) or readings
    return _line(readings, exponent)


def _windows(values: Floats, exponent: int) -> WindowSet | None:
    """Return the windows of all channels and parts over 2^exponent, along the last three long axes; None without any.

    Windows are in double precision, the values need not be.
    """
    shape = values.shape[2:]
    axes = tuple(axis for axis in range(len(shape)) if shape[axis] >= MIN_AXIS)[-3:]
    if not axes:
        return None
    side = BLOCKS[len(axes)][0]
    tapered = len(axes) == 1
    parts = values.reshape(-1, *shape)
    sets = [window_set(part, axes, (side,) * len(axes), 4, tapered, np.float64) for part in parts]
    places, means, coefficients = (
        np.concatenate([getattr(s, name) for s in sets]) for name in ("places", "means", "coefficients")
    )
    means, coefficients = np.ldexp(means, -exponent), np.ldexp(coefficients, -exponent)
    return WindowSet(sets[0].cut, places, means, coefficients, max(SCATTERED_OVERLAP * sets[0].overlap, 1.0))


def _away_from(windows: WindowSet, limits: list[float], line: VarianceLine) -> WindowSet:
    """Return the windows away from clip limits. Counts have no noise at 0, so that 0 is no limit to stay away from."""
    for limit in limits:
        windows = windows.away_from([limit], NEAR_DISTANCE * math.sqrt(max(float(line.variance(limit)), 0.0)))
    return windows


def _bins(windows: WindowSet) -> _Readings | None:
    if len(windows.block) == 1:
        signal = row_readings(windows.means[None], windows.coefficients[None], windows.overlap)
        if signal is None:
            return None
        means, variances, errors = (column[0] for column in signal)
    else:
        frequency = relative_frequencies(windows.block).ravel()
        high = frequency >= BLOCKS[len(windows.block)][1]
        bins = _bin_count(len(windows.means), np.count_nonzero(high) / windows.overlap)
        if bins < MIN_BINS:
            return None
        low_energy = np.square(windows.coefficients[:, (frequency > 0) & ~high]).sum(axis=1)
        order = np.argsort(windows.means, kind="stable")
        rows = [_bin(windows, chosen, low_energy[chosen], high) for chosen in np.array_split(order, bins)]
        means, variances, errors = (np.array(column) for column in zip(*rows, strict=True))
    used = variances > 0
    if np.count_nonzero(used) < MIN_BINS or np.ptp(means[used]) < LEAST_RANGE:
        return None
    return _Readings(means[used], variances[used], errors[used])


def _bin(
    windows: WindowSet, chosen: NDArray[np.intp], low_energy: Array, high: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return mean, variance and the relative standard error of that, of the flattest windows of a bin."""
    flat = chosen[_flattest(low_energy)]
    values = windows.coefficients[flat][:, high]
    readings = list(flat_readings(windows.some(chosen)))
    readings = readings or [Reading(median_level(values), values.size / windows.overlap)]
    best = min(readings, key=lambda r: r.level * (1 + PENALTY / math.sqrt(r.effective_count)))
    return float(windows.means[flat].mean()), best.level**2, _reading_error(best.effective_count)


def row_readings(means: Array, coefficients: Array, overlap: float) -> _Readings | None:
    """Return the readings of many signals, (signals, bins), by windows of theirs; None if there are too few.

    The means are (signals, windows), the coefficients (signals, windows, side).
    """
    count, size, side = coefficients.shape
    frequency = relative_frequencies((side,))
    high = frequency >= BLOCKS[1][1]
    bins = _bin_count(size, np.count_nonzero(high) / overlap)
    if bins < MIN_BINS:
        return None
    low_energy = np.square(coefficients[..., (frequency > 0) & ~high]).sum(axis=-1)
    rows, columns = np.arange(count)[:, None], []
    for chosen in np.array_split(np.argsort(means, axis=1, kind="stable"), bins, axis=1):
        at = rows, np.take_along_axis(chosen, _flattest(low_energy[rows, chosen]), axis=1)
        values = coefficients[at][..., high].reshape(count, -1)
        error = np.full(count, _reading_error(values.shape[1] / overlap))
        columns.append((means[at].mean(axis=1), median_levels(values) ** 2, error))
    return _Readings(*(np.stack(column, axis=1) for column in zip(*columns, strict=True)))


def _bin_count(size: int, per_window: float) -> int:
    """Return the number of bins for so many windows, of which each has so many independent coefficients."""
    return min(MOST_BINS, int(size * FLAT_SHARE * per_window / MIN_COEFFICIENTS))


def _flattest(low_energy: Array) -> NDArray[np.intp]:
    """Return the places of the least energies, along the last axis."""
    count = max(int(FLAT_SHARE * low_energy.shape[-1]), 1)
    return np.argpartition(low_energy, count - 1)[..., :count]


def _reading_error(effective_count: float) -> float:
    """Return the relative standard error of a variance told by so many coefficients."""
    return 2 * RELATIVE_ERROR / math.sqrt(effective_count)


def _line(readings: _Readings, exponent: int) -> VarianceLine:
    """Return the line in the units of the data, 2^exponent times those of the readings."""
    means, variances, errors = readings
    line = VarianceFit(*(v[0] for v in straight_lines(means[None], variances[None], errors[None])))
    (intercept, slope), covariance = line.coefficients, line.covariance
    unit = 2.0**exponent
    return VarianceLine(
        intercept=float(intercept) * unit**2,
        slope=float(slope) * unit,
        intercept_error=math.sqrt(covariance[0, 0]) * unit**2,
        slope_error=math.sqrt(covariance[1, 1]) * unit,
        covariance=float(covariance[0, 1]) * unit**3,
        misfit=float(line.misfit),
        low=float(means.min()) * unit,
        high=float(means.max()) * unit,
        means=means * unit,
        variances=variances * unit**2,
        errors=errors,
    )


def straight_lines(means: Array, variances: Array, errors: Array) -> VarianceFit:
    """Return the lines in the mean through readings, (sets, readings): intercepts and slopes."""
    centre, width = means.mean(axis=1), np.maximum(np.ptp(means, axis=1), TINY)
    x = (means - centre[:, None]) / width[:, None]
    line = fit_many_variances(np.stack([np.ones_like(x), x], axis=2), variances, np.hypot(errors, EXCESS))
    # From a + b (m - centre) / width to coefficients of 1 and m.
    turn = np.zeros((len(x), 2, 2))
    turn[:, 0, 0], turn[:, 0, 1], turn[:, 1, 1] = 1.0, -centre / width, 1 / width
    coefficients = (turn @ line.coefficients[..., None])[..., 0]
    return VarianceFit(coefficients, turn @ line.covariance @ np.swapaxes(turn, 1, 2), line.misfit)
