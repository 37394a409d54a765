"""Checked wrappers of the loops over windows of signals: `shrink_windows` and `average_windows`."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import loader
from .checks import check_array, float_dtype

Floats = NDArray[Any]

# The loops add up this many sums side by side.
SUMS = 16


class ShrunkWindows(NamedTuple):
    """Coefficients times the weight of their window, (rows, windows, side); weights and weighted divergences."""

    coefficients: Floats
    weight: Floats
    divergence: Floats


def shrink_windows(
    data: Floats, pilot: Floats | None, cut: Floats, variance: Floats, trace: Floats, kernel: float
) -> ShrunkWindows:
    """Shrink the coefficients of windows by thresholds, or by those of a pilot.

    Parameters
    ----------
    data : ndarray of float32 or float64, shape (rows, windows, side)
        Coefficients. With a pilot there may be one row, which then serves for all of the pilot's.
    pilot : ndarray of shape (rows, windows, side), optional
        Coefficients g: data are multiplied by ``g^2 / (g^2 + cut)``.
    cut : ndarray
        With a pilot (side,). Without one (3, side): the squares of the lower end of the kernel at the jump, of the
        threshold, and of the upper end.
    variance : ndarray of shape (side,)
        The noise variance of every coefficient. The first one must be kept, or no noise may be let through.
    trace : ndarray of shape (windows, side)
        By what a coefficient of a window counts in the divergence.
    kernel : float
        The height of the kernel at the jump, times the threshold.

    Returns
    -------
    ShrunkWindows
        The weight of a window is one over the noise variance that it lets through.
    """
    dtype = float_dtype("data", data)
    check_array("data", data, dtype, (None,) * 3)
    _, windows, side = data.shape
    if not data.size or side % SUMS:
        msg = f"data must hold windows whose side is a multiple of {SUMS}, got shape {data.shape}."
        raise ValueError(msg)
    if pilot is not None:
        check_array("pilot", pilot, dtype, (None, windows, side))
        if not len(pilot) or len(data) not in {1, len(pilot)}:
            msg = f"data must have one row, or as many as the pilot ({len(pilot)}), got {len(data)}."
            raise ValueError(msg)
    check_array("cut", cut, dtype, (3, side) if pilot is None else (side,))
    check_array("variance", variance, dtype, (side,))
    check_array("trace", trace, dtype, (windows, side))
    out = np.empty((data if pilot is None else pilot).shape, dtype)
    weight, divergence = np.empty((2, *out.shape[:2]), dtype)
    sizes = out.shape[0] * windows, side, data.shape[0] * windows, windows
    loader.call(
        f"shrink_windows_{dtype.name}",
        *(*sizes, data, int(pilot is not None), data if pilot is None else pilot),
        *(cut, variance, trace, float(kernel), out, weight, divergence),
    )
    return ShrunkWindows(out, weight, divergence)


def average_windows(shrunk: ShrunkWindows, size: int, step: int) -> tuple[Floats, Floats]:
    """Average windows of signals, back from their coefficients.

    Parameters
    ----------
    shrunk : ShrunkWindows
        Entries in place of coefficients. The first window of a row ends with the first entry of the signal.
    size : int
        The entries of a signal.
    step : int
        The distance of neighbouring windows; divides their side.

    Returns
    -------
    value, divergence : ndarray of shape (rows, size)
        The averages.
    """
    windows = shrunk.coefficients
    dtype = float_dtype("windows", windows)
    check_array("windows", windows, dtype, (None,) * 3)
    rows, count, side = windows.shape
    check_array("weight", shrunk.weight, dtype, (rows, count))
    check_array("divergence", shrunk.divergence, dtype, (rows, count))
    if operator.index(step) < 1 or side % step:
        msg = f"step must divide the side of a window, {side}, got {step}."
        raise ValueError(msg)
    if operator.index(size) < 0 or not windows.size or side - 1 + size > (count - 1) * step + side:
        msg = f"{count} windows of {side} entries, {step} apart, do not cover {size} entries after {side - 1}."
        raise ValueError(msg)
    value, divergence = np.empty((2, rows, size), dtype)
    scratch = np.empty(3 * ((count - 1) * step + side), dtype)
    loader.call(
        f"average_windows_{dtype.name}",
        *(rows, count, side, step, size, windows, shrunk.weight, shrunk.divergence, scratch),
        *(value, divergence),
    )
    return value, divergence
