"""Checked wrapper of the sums of Stein's formula at one threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import loader
from .checks import check_array, float_dtype

Array = NDArray[np.float64]

# The same as in stein_sums.c.
MOST_PIECES = 4


def stein_sums(
    y: NDArray[Any],
    *,
    sigma: float,
    starts: Array,
    terms: Array,
    position: float,
    bandwidth: float,
    limit: float,
) -> Array | None:
    """Return the sums over the entries of slope, s, s^2, K, K^2 and K s, or None if an entry is too large for them.

    Parameters
    ----------
    y : ndarray of float32 or float64
        A vector.
    sigma : float
        The noise level. Below, z is ``|y| / sigma``.
    starts : ndarray of float64
        Where each piece but the first begins, ascending, in units of y. ``|y| = starts[p - 1]`` is on piece p - 1.
    terms : ndarray of float64, shape (starts + 1, 4)
        Of every piece, the slope and the coefficients of ``s = terms[1] + terms[2] z + terms[3] z^2``.
    position, bandwidth : float
        Of the kernel ``K = exp(-(z-position)^2 / 2 bandwidth^2) + exp(-(z+position)^2 / 2 bandwidth^2)``.
    limit : float
        Entries must be smaller in magnitude.

    Returns
    -------
    ndarray of float64, shape (6,), or None
        The sums; None if an entry is not a number or reaches the limit.
    """
    dtype = float_dtype("y", y)
    check_array("y", y, dtype, (None,))
    check_array("starts", starts, np.float64, (None,))
    check_array("terms", terms, np.float64, (starts.size + 1, 4))
    if not 2 <= len(terms) <= MOST_PIECES:
        msg = f"there must be 2 to {MOST_PIECES} pieces, got {len(terms)}."
        raise ValueError(msg)
    if not (0 < bandwidth < np.inf and 0 < sigma < np.inf):
        msg = f"bandwidth and sigma must be positive and finite, got {bandwidth} and {sigma}."
        raise ValueError(msg)
    out = np.zeros(6)
    c = float(-0.5 * np.log2(np.e) / bandwidth**2)
    numbers = y.size, y, float(sigma), float(limit), len(terms), starts, terms, float(position), c
    return None if loader.call(f"stein_sums_{dtype.name}", *numbers, out) else out
