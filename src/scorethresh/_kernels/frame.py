"""Checked wrappers of the loops of the frames: `dilated` and `sliding_dct`."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import loader
from .checks import check_array, check_output, float_dtype

Floats = NDArray[Any]


def dilated(x: Floats, taps: Floats, axis: int, *, step: int, shift: int = 0, out: Floats | None = None) -> Floats:
    """Filter along an axis in a circle: ``out[i] = sum_k taps[k] x[i + shift - k step]``.

    Parameters
    ----------
    x : ndarray of float32 or float64
        C-contiguous, of any shape.
    taps : ndarray
        A vector of even length, with the dtype of `x`.
    axis : int
        The axis.
    step, shift : int
        The distance of the taps, and how far the result is moved.
    out : ndarray, optional
        An array like `x`, to which the result is added. It may not overlap `x`.

    Returns
    -------
    ndarray
        `out`, or a new array.
    """
    dtype = float_dtype("x", x)
    check_array("x", x, dtype, x.shape)
    check_array("taps", taps, dtype, (None,))
    if taps.size % 2 or not taps.size:
        msg = f"taps must be even in number and at least 2, got {taps.size}. Append a 0."
        raise ValueError(msg)
    if not -x.ndim <= operator.index(axis) < x.ndim:
        msg = f"axis must lie between {-x.ndim} and {x.ndim - 1}, got {axis}."
        raise ValueError(msg)
    add = out is not None
    if out is None:
        out = np.empty(x.shape, dtype)
    check_output("out", out, dtype, x.shape, x=x, taps=taps)
    if x.size:
        axis %= x.ndim
        n = x.shape[axis]
        outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
        # Modulo n, so that no product of integers overflows.
        sizes = outer, n, inner, taps.size, operator.index(step) % n, operator.index(shift) % n, int(add)
        loader.call(f"dilated_{dtype.name}", *sizes, taps, x, out)
    return out


class WindowShrinkage(NamedTuple):
    """How `sliding_dct` shrinks the coefficients of a window.

    Attributes
    ----------
    cut : ndarray of shape (planes, by, bx)
        Thresholds of the norms over the parts; with a pilot, variances that are added to its squares.
    variance : ndarray of shape (planes, by, bx)
        The noise variance of every coefficient.
    jump_half_width : float
        Half the width of the boxcar kernel at the jump, over the threshold.
    trace : ndarray of shape (planes, by, bx)
        By what a coefficient counts in the divergence, times the two factors below. It is the variance, unless windows
        are cut off or meet their mirror image along the planes.
    down : ndarray of shape (rows, by)
        Factors of the trace by the row of the window and the frequency down.
    across : ndarray of shape (columns, bx)
        Factors of the trace by the column of the window and the frequency across.
    """

    cut: Floats
    variance: Floats
    jump_half_width: float
    trace: Floats
    down: Floats
    across: Floats


def sliding_dct(
    y: Floats, pilot: Floats | None, shrinkage: WindowShrinkage, matrices: tuple[Floats, Floats], step: int
) -> tuple[Floats, Floats, Floats]:
    """Shrink the DCT coefficients of windows at every `step`-th row and column, and add the windows up.

    A coefficient of plane p, frequency u down and f across is kept if its norm over the parts reaches
    ``cut[p, u, f]``. With a pilot it is multiplied by ``g^2 / (g^2 + parts cut[p, u, f])``, g the norm of the pilot's
    coefficient. The weight of a window is one over the noise variance that it lets through.

    Parameters
    ----------
    y : ndarray of float32 or float64, shape (parts, planes, height, width)
        The data, already transformed along the planes. Height and width are those of a window plus multiples of
        `step`.
    pilot : ndarray or None
        An array like `y`.
    shrinkage : WindowShrinkage
        With arrays of the dtype of `y`. The sides of a window, by and bx, are powers of 2 from 4 to 64 and multiples
        of `step`.
    matrices : (ndarray, ndarray)
        The orthonormal DCT down (by x by) and across (bx x bx), one frequency per row, of the dtype of `y`.
    step : int
        The distance of neighbouring windows.

    Returns
    -------
    total : ndarray
        The weighted estimates, like `y`.
    weight, divergence : ndarray, shape (height, width)
        The weights, and the weighted sums of trace times derivative, spread evenly over each window. At a jump the
        derivative is the height times the boxcar kernel.
    """
    _check_windows(y, pilot, shrinkage, matrices, step)
    (parts, planes, height, width), dtype = y.shape, y.dtype
    # The loop takes frequencies across first.
    planes_of = shrinkage.cut, shrinkage.variance, shrinkage.trace
    cut, variance, trace = (np.ascontiguousarray(a.swapaxes(1, 2)) for a in planes_of)
    across = np.ascontiguousarray(shrinkage.across.T)
    by, bx = shrinkage.cut.shape[1:]
    total, weight, divergence = np.zeros(y.shape, dtype), *np.zeros((2, height, width), dtype)
    failed = loader.call(
        f"sliding_dct_{dtype.name}",
        *(parts, planes, height, width, by, bx, step, int(pilot is not None)),
        *(y, y if pilot is None else pilot, *matrices, cut, variance, trace, shrinkage.down, across),
        *(float(shrinkage.jump_half_width), total, weight, divergence),
    )
    if failed:
        msg = f"there is no memory to shrink windows of {by} x {bx} entries in {parts} x {planes} images."
        raise MemoryError(msg)
    return total, weight, divergence


def _check_windows(y: Any, pilot: Any, shrinkage: WindowShrinkage, matrices: tuple[Floats, Floats], step: int) -> None:
    """Raise unless the arguments of `sliding_dct` fit each other and the loop is made for them."""
    dtype = float_dtype("y", y)
    check_array("y", y, dtype, (None,) * 4)
    if not y.size:
        msg = f"y must hold at least one entry, got shape {y.shape}."
        raise ValueError(msg)
    if pilot is not None:
        check_array("pilot", pilot, dtype, y.shape)
    check_array("cut", shrinkage.cut, dtype, (y.shape[1], None, None))
    check_array("variance", shrinkage.variance, dtype, shrinkage.cut.shape)
    check_array("trace", shrinkage.trace, dtype, shrinkage.cut.shape)
    if not 0 < shrinkage.jump_half_width < 1:
        msg = f"jump_half_width must lie strictly between 0 and 1, got {shrinkage.jump_half_width}."
        raise ValueError(msg)
    sides = shrinkage.cut.shape[1:]
    traces = shrinkage.down, shrinkage.across
    for name, matrix, trace, b, n in zip(("down", "across"), matrices, traces, sides, y.shape[2:], strict=True):
        check_array(f"the matrix {name}", matrix, dtype, (b, b))
        if b not in (4, 8, 16, 32, 64):
            msg = f"the side of a window {name} must be a power of 2 from 4 to 64, got {b}."
            raise ValueError(msg)
        if operator.index(step) < 1 or b % step:
            msg = f"step must divide the side of a window {name}, {b}, got {step}."
            raise ValueError(msg)
        if n < b or (n - b) % step:
            msg = f"the length of y {name} must be {b} plus a multiple of {step}, got {n}. Pad it."
            raise ValueError(msg)
        check_array(f"the traces {name}", trace, dtype, ((n - b) // step + 1, b))
