"""The variance of the noise against the mean of the data: does the noise grow with the signal, and how?

White noise has the same variance everywhere. That of counts and of cameras is a line in the mean; that of speckle is
proportional to the squared mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validate import Array
from .clipping import NEAR_DISTANCE, find_clip_limits
from .texture import Reading, flat_readings
from .windows import TINY, WindowSet, median_level, quantiles, relative_frequencies, window_set

__all__ = ["VarianceFit", "VarianceLine", "fit_variance_line", "fit_variances"]

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
# How often windows near clip limits are left out by the noise level that the last line says.
CLIP_ROUNDS = 2
# Relative scatter of the variances about their line, by texture, that is counted beside the sampling error.
EXCESS = 0.05
# Standard errors beyond which a reading counts little: Cauchy's weight. Texture makes some readings far too large.
OUTLYING = 2.0
# Largest binary exponent of the data: third powers of larger ones leave the range of doubles.
MOST_EXPONENT = 330
# Rounds of reweighting; the change after 10 is below 1e-3 of a standard error. They end where the loss hardly falls:
# 1e-9 is a change by 1e-4 of a standard error.
ROUNDS = 20
SETTLED = 1e-9
# Least determinant of two equations over the product of their diagonal. Ten digits are left, where one is enough.
LEAST_DETERMINANT = 1e-6
# Shares of a step that are tried.
SHARES = 0.5 ** np.arange(8)


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
    curvature, curvature_error : float
        The coefficient of ``mean^2`` if a parabola is fitted instead, and its standard error. 0 and infinity if there
        are too few readings.
    square_misfit : float
        As `misfit`, for a variance proportional to the squared mean, as in speckle; infinite if means are not positive.
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
    curvature: float
    curvature_error: float
    square_misfit: float
    low: float
    high: float
    means: Array
    variances: Array
    errors: Array

    @property
    def spread(self) -> Array:
        """Relative standard errors of the variances about a line, with what texture adds."""
        return np.hypot(self.errors, EXCESS)

    @property
    def significance(self) -> float:
        """The slope over its standard error."""
        return self.slope / self.slope_error

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


class VarianceFit(NamedTuple):
    """Coefficients, their covariance and the misfit."""

    coefficients: Array
    covariance: Array
    misfit: float


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
    values = y.astype(np.float64)
    if missing is not None:
        values[:, :, missing] = np.nan
    largest = np.nanmax(np.abs(values), initial=0.0)
    if not 0 < largest < math.inf:
        return None
    exponent = math.frexp(largest)[1]
    if abs(exponent) > MOST_EXPONENT:
        return None
    values = np.ldexp(values, -exponent)
    windows = _windows(values)
    readings = None if windows is None else _bins(windows)
    if windows is None or readings is None:
        return None
    limits = [limit for limit in find_clip_limits(values) if math.isfinite(limit)]
    for _ in range(CLIP_ROUNDS if limits else 0):
        readings = _bins(_away_from(windows, limits, _line(readings, 0))) or readings
    return _line(readings, exponent)


def _windows(values: Array) -> WindowSet | None:
    """Return the windows of all channels and parts, along the last three long axes; None if there are none."""
    shape = values.shape[2:]
    axes = tuple(axis for axis in range(len(shape)) if shape[axis] >= MIN_AXIS)[-3:]
    if not axes:
        return None
    side = BLOCKS[len(axes)][0]
    tapered = len(axes) == 1
    sets = [window_set(part, axes, (side,) * len(axes), 4, tapered) for part in values.reshape(-1, *shape)]
    means, coefficients = (np.concatenate([getattr(s, name) for s in sets]) for name in ("means", "coefficients"))
    return WindowSet(sets[0].block, means, coefficients, max(SCATTERED_OVERLAP * sets[0].overlap, 1.0))


def _away_from(windows: WindowSet, limits: list[float], line: VarianceLine) -> WindowSet:
    """Return the windows away from clip limits. Counts have no noise at 0, so that 0 is no limit to stay away from."""
    for limit in limits:
        windows = windows.away_from([limit], NEAR_DISTANCE * math.sqrt(max(float(line.variance(limit)), 0.0)))
    return windows


def _bins(windows: WindowSet) -> _Readings | None:
    frequency = relative_frequencies(windows.block).ravel()
    high = frequency >= BLOCKS[len(windows.block)][1]
    per_window = np.count_nonzero(high) / windows.overlap
    size = len(windows.means)
    bins = min(MOST_BINS, int(size * FLAT_SHARE * per_window / MIN_COEFFICIENTS))
    if bins < MIN_BINS:
        return None
    low_energy = np.square(windows.coefficients[:, (frequency > 0) & ~high]).sum(axis=1)
    order = np.argsort(windows.means, kind="stable")
    rows = [_bin(windows, chosen, low_energy[chosen], high) for chosen in np.array_split(order, bins)]
    means, variances, errors = (np.array(column) for column in zip(*rows, strict=True))
    used = variances > 0
    if np.count_nonzero(used) < MIN_BINS:
        return None
    return _Readings(means[used], variances[used], errors[used])


def _bin(
    windows: WindowSet, chosen: NDArray[np.intp], low_energy: Array, high: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return mean, variance and the relative standard error of that, of the flattest windows of a bin."""
    count = max(int(FLAT_SHARE * len(chosen)), 1)
    flat = chosen[np.argpartition(low_energy, count - 1)[:count]]
    values = windows.coefficients[flat][:, high]
    readings = [Reading(median_level(values), values.size / windows.overlap)]
    if len(windows.block) > 1:
        readings = list(flat_readings(windows.some(chosen))) or readings
    best = min(readings, key=lambda r: r.level * (1 + 2 / math.sqrt(r.effective_count)))
    error = 2 * RELATIVE_ERROR / math.sqrt(best.effective_count)
    return float(windows.means[flat].mean()), best.level**2, error


def _line(readings: _Readings, exponent: int) -> VarianceLine:
    """Return the line in the units of the data, 2^exponent times those of the readings."""
    means, variances, errors = readings
    spread = np.hypot(errors, EXCESS)
    centre, width = means.mean(), max(float(np.ptp(means)), TINY)
    x = (means - centre) / width
    line = fit_variances(np.stack([np.ones_like(x), x], axis=1), variances, spread)
    # From a + b (m - centre) / width to coefficients of 1 and m.
    turn = np.array([[1.0, -centre / width], [0.0, 1 / width]])
    (intercept, slope), covariance = turn @ line.coefficients, turn @ line.covariance @ turn.T
    curvature, curvature_error = 0.0, math.inf
    if len(x) > MIN_BINS:
        bent = fit_variances(np.stack([np.ones_like(x), x, x**2], axis=1), variances, spread)
        curvature, curvature_error = bent.coefficients[2] / width**2, math.sqrt(bent.covariance[2, 2]) / width**2
    square = math.inf
    if means.min() > 0:
        square = fit_variances(means[:, None] ** 2, variances, spread).misfit
    unit = 2.0**exponent
    return VarianceLine(
        intercept=float(intercept) * unit**2,
        slope=float(slope) * unit,
        intercept_error=math.sqrt(covariance[0, 0]) * unit**2,
        slope_error=math.sqrt(covariance[1, 1]) * unit,
        covariance=float(covariance[0, 1]) * unit**3,
        misfit=line.misfit,
        curvature=float(curvature),
        curvature_error=float(curvature_error),
        square_misfit=square,
        low=float(means.min()) * unit,
        high=float(means.max()) * unit,
        means=means * unit,
        variances=variances * unit**2,
        errors=errors,
    )


def fit_variances(design: Array, variances: Array, spread: Array, base: Any = 0.0) -> VarianceFit:
    """Fit ``base + design @ coefficients`` to variances of relative errors `spread`, robustly.

    Parameters
    ----------
    design : ndarray, shape (readings, coefficients)
        Columns to be combined.
    variances, spread : ndarray
        Readings and their relative standard errors.
    base : float or ndarray
        The part of the variances that is known.

    Returns
    -------
    VarianceFit
        By Gauss-Newton steps on the loss that `fit_variance_line` states.
    """
    starts = _starts(design, variances, base)
    losses = _loss(base + starts @ design.T, variances, spread)
    best, loss = starts[np.argmin(losses)], float(losses.min())
    for _ in range(ROUNDS if loss < math.inf else 0):
        fitted = base + design @ best
        r = np.log(variances / fitted) / spread
        weights = 1 / (1 + (r / OUTLYING) ** 2) / (spread * fitted) ** 2
        normal = design.T @ (weights[:, None] * design)
        step = _solved(normal, design.T @ (weights * fitted * spread * r))
        trials = best + SHARES[:, None] * step
        losses = _loss(base + trials @ design.T, variances, spread)
        better = np.flatnonzero(losses < loss)
        if not better.size:
            break
        best, before, loss = trials[better[0]], loss, float(losses[better[0]])
        if before - loss < SETTLED:
            break
    fitted = np.maximum(base + design @ best, TINY)
    r = np.log(variances / fitted) / spread
    robust = 1 / (1 + (r / OUTLYING) ** 2)
    freedom = max(len(r) - design.shape[1], 1)
    misfit = float((robust * r**2).sum() / robust.sum() * len(r) / freedom)
    information = design.T @ ((robust / (spread * fitted) ** 2)[:, None] * design)
    inverse = np.stack([_solved(information, unit) for unit in np.eye(len(best))])
    return VarianceFit(best, inverse * max(misfit, 1.0), misfit)


def _solved(normal: Array, right: Array) -> Array:
    """Return the shortest solution of normal equations; by Cramer's rule if they are two, and far from singular."""
    if len(right) == 2:
        (a, b), (_, c) = normal.tolist()
        determinant = a * c - b * b
        if determinant > LEAST_DETERMINANT * a * c:
            first, second = right.tolist()
            return np.array([(c * first - b * second) / determinant, (a * second - b * first) / determinant])
    return np.asarray(np.linalg.lstsq(normal, right, rcond=None)[0], dtype=np.float64)


def _loss(fitted: Array, variances: Array, spread: Array) -> Array:
    """Return the sums of Cauchy's losses of fits (rows); infinite if one is not positive everywhere."""
    positive = fitted.min(axis=1) > 0
    distances = np.log(variances / np.where(positive[:, None], fitted, 1.0)) / spread / OUTLYING
    return np.where(positive, np.log1p(distances**2).sum(axis=1), np.inf)


def _starts(design: Array, variances: Array, base: Any) -> Array:
    """Return multiples of the first column, and what passes through two readings by the first two columns, as rows."""
    rest = np.maximum(variances - base, TINY)
    first = np.zeros((3, design.shape[1]))
    first[:, 0] = quantiles(rest / design[:, 0], (0.5, 0.9, 1.0))  # the last makes positive what can be
    if design.shape[1] == 1:
        return first
    i, j = np.tril_indices(len(rest), -1)
    told = design[i, 0] * design[j, 1] != design[i, 1] * design[j, 0]
    pairs = np.stack([j[told], i[told]], axis=1)
    through = np.zeros((len(pairs), design.shape[1]))
    through[:, :2] = np.linalg.solve(design[pairs][:, :, :2], rest[pairs][..., None])[..., 0]
    return np.concatenate([first, through])
