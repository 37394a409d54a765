"""The noise of many signals of one length, which lie along the first axis: what is read of one signal, for all at once.

It is read of signals whose windows all hold noise. Others have to be looked at one by one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._validate import Array
from .clipping import MIN_CLIPPED
from .dark_magnitudes import is_dark
from .level import BLOCKS, MIN_COUNT, MIN_TAPERED_FREQUENCY, Level, combined
from .medians import median_levels
from .peaks import row_difference_readings
from .repeats import have_repeated_values
from .texture import Reading
from .variance_fit import VarianceFit
from .variance_line import BLOCKS as LINE_BLOCKS
from .variance_line import LEAST_RANGE, SCATTERED_OVERLAP, row_readings, straight_lines
from .whiteness import MIN_SAMPLES, compared_powers, compared_sides
from .windows import overlapping, relative_frequencies, tapered_signals

# Binary exponents of the largest magnitude between which all sums of powers stay in the range of single precision.
MOST_EXPONENT = 30
# Least distance of each quartile from the median, over the range of the data, so that single precision resolves it.
LEAST_SPREAD = 1e-5


def are_regular(y: Floats) -> NDArray[np.bool_]:
    """Return which signals, (rows, size), have nothing that calls for a closer look.

    All entries are known, of usual size and not far apart, no neighbours are equal, values do not repeat, and few are
    at the ends.
    """
    rows, size = y.shape
    if size <= MIN_CLIPPED or y.dtype not in (np.float32, np.float64):
        return np.zeros(rows, bool)
    ordered = np.sort(y, axis=1)  # NaN comes last
    low, first, middle, third, high = (ordered[:, k] for k in (0, size // 4, size // 2, 3 * size // 4, -1))
    regular: NDArray[np.bool_] = np.isfinite(low) & np.isfinite(high)
    regular &= (ordered[:, MIN_CLIPPED] > low) & (ordered[:, -1 - MIN_CLIPPED] < high)
    regular &= np.all(y[:, 1:] != y[:, :-1], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        regular &= np.minimum(middle - first, third - middle) > LEAST_SPREAD * (high - low)
        regular &= np.abs(np.frexp(np.maximum(high, -low))[1]) <= MOST_EXPONENT
    if regular.any():
        regular[regular] = ~have_repeated_values(y[regular])
    return regular


class _Windows(NamedTuple):
    """Tapered windows of signals: means (rows, windows), coefficients (rows, windows, side), and how they overlap."""

    means: Floats
    coefficients: Floats
    overlap: float


def _windows(y: Floats, side: int, taper: NDArray[np.generic]) -> _Windows:
    """Return the windows of `window_set`; the taper has the dtype of `taper`."""
    step = overlapping(y[0], (0,), (side,), 4).steps[0]
    windows = np.lib.stride_tricks.sliding_window_view(y, side, axis=1)[:, ::step]
    coefficients = tapered_signals(windows, taper.dtype)
    return _Windows(windows.mean(axis=-1), coefficients, max(windows[0].size / y.shape[1], 1.0))


def row_levels(y: Floats) -> list[Level | None]:
    """Return what `measure_level` does of regular signals, (rows, size); None where that has to be asked."""
    unit, exponents = _normalised(y)
    found: list[Level | None] = [None] * len(y)
    readings: list[tuple[Array, Array]] = []
    for side, _ in BLOCKS[1]:
        if y.shape[1] < side:
            continue
        _, coefficients, overlap = _windows(unit, side, unit)
        if coefficients.shape[1] >= MIN_COUNT:
            values = coefficients[..., relative_frequencies((side,)) >= MIN_TAPERED_FREQUENCY].reshape(len(y), -1)
            readings.append((median_levels(values), np.full(len(y), values.shape[1] / overlap)))
    if not readings:
        return found
    clear = np.all([levels > 0 for levels, _ in readings], axis=0)
    peaks = row_difference_readings(unit)
    if peaks is not None:
        readings.append((peaks.levels, peaks.effective_counts))
        clear &= peaks.clear
    each = np.array(readings).transpose(2, 0, 1).tolist()
    for k in np.flatnonzero(clear):
        level = combined([Reading(*one) for one in each[k] if one[0] > 0])
        if level is not None:
            found[k] = Level(math.ldexp(level.value, int(exponents[k])), level.error)
    return found


def _normalised(y: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """Return what `normalise` does of regular signals."""
    first = np.frexp(np.abs(y).max(axis=1))[1]
    unit: Floats = np.ldexp(y, -first[:, None])
    centre = np.median(unit.astype(np.float64), axis=1, keepdims=True)
    second = np.frexp(np.abs(unit - centre).max(axis=1))[1]
    unit -= centre.astype(y.dtype)
    return np.ldexp(unit, -second[:, None]), first + second


def row_whiteness(y: Floats) -> Array | None:
    """Return the three ratios of `Whiteness` of regular signals, (3, rows); None if there are too few windows."""
    if y.shape[1] < MIN_SAMPLES:
        return None
    sides = compared_sides(y.shape[1:])
    unit = _normalised(y)[0]
    _, coefficients, overlap = _windows(unit, sides[0], unit)
    return compared_powers(np.square(coefficients), sides, overlap)


class RowLines(NamedTuple):
    """Readings of the noise, (rows, readings), and the lines through them; see `VarianceLine`."""

    means: Array
    variances: Array
    line: VarianceFit

    def growing(self, significance: float, growth: float) -> NDArray[np.bool_]:
        """Return in which signals the noise grows so clearly, and by so much; True also where none can be told."""
        intercept, slope = self.line.coefficients.T
        told = (self.variances > 0).all(axis=1) & (np.ptp(self.means, axis=1) >= LEAST_RANGE)
        ends = (intercept + slope * some for some in (self.means.min(axis=1), self.means.max(axis=1)))
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = ends
            clearly = slope > significance * np.sqrt(self.line.covariance[:, 1, 1])
            out: NDArray[np.bool_] = ~told | clearly & (high / low > growth)
        return out

    def may_be_magnitudes(self) -> NDArray[np.bool_]:
        """Return in which signals the darkest reading is one of Rayleigh's law, if they are positive."""
        rows = np.arange(len(self.means))
        darkest = np.argmin(self.means, axis=1)
        out: NDArray[np.bool_] = is_dark(self.means[rows, darkest], self.variances[rows, darkest])
        return out


def row_lines(y: Floats) -> RowLines | None:
    """Return what `fit_variance_line` does of regular signals, in units of their own; None if these are too short."""
    side, _ = LINE_BLOCKS[1]
    if y.shape[1] < side:
        return None
    unit = np.ldexp(y.astype(np.float64), -np.frexp(np.abs(y).max(axis=1))[1][:, None])
    windows = _windows(unit, side, y)
    readings = row_readings(windows.means, windows.coefficients, max(SCATTERED_OVERLAP * windows.overlap, 1.0))
    if readings is None:
        return None
    return RowLines(readings.means, readings.variances, straight_lines(*readings))
