"""The range of data: constant or not, and units in which their squares stay in range."""

from __future__ import annotations

import math

import numpy as np

from .._arrays import Floats
from .repeats import sample_of

# Entries along the longest axis below which nothing tells noise from signal.
MIN_LENGTH = 4


def is_constant(y: Floats, remedy: str) -> bool:
    """Return whether all known entries are equal. NaN marks missing entries.

    Raises
    ------
    ValueError
        If y is too small to tell noise from signal, or has no known entries; `remedy` says what to pass instead.
    """
    if max(y.shape) < MIN_LENGTH:
        msg = f"y is too small to tell noise from signal, with shape {y.shape}. {remedy}"
        raise ValueError(msg)
    low, high = _range(y)
    if math.isnan(low):
        msg = f"y holds no known entries, with shape {y.shape}: all are NaN. Pass at least two."
        raise ValueError(msg)
    return low == high


def normalise(y: Floats) -> tuple[Floats, int]:
    """Return ``(y - centre) / 2^exponent``, with magnitudes of at most 1 for data between 1e-300 and 1e300.

    Squares of the result neither overflow nor vanish, in whatever units y is. Division by a power of 2 is exact. The
    centre is a median, so that an outlier does not swallow noise that is many orders of magnitude below it. Single
    precision stays, unless y leaves its range or half of y lies closer to the centre than it resolves. Returned are
    the result and the exponent.
    """
    low, high = _range(y)
    first = _exponent(max(high, -low))
    sample = sample_of(y).astype(np.float64) * 2.0**-first
    centre = float(np.median(sample)) if sample.size else 0.0
    second = _exponent(max(high * 2.0**-first - centre, centre - low * 2.0**-first))
    if y.dtype == np.float32:
        single = np.finfo(np.float32)
        spread = float(np.median(np.abs(sample - centre))) * 2.0**-second if sample.size else 0.0
        if spread < single.eps or abs(first) >= single.maxexp:
            y = y.astype(np.float64)
    unit: Floats = y * 2.0**-first
    unit -= centre
    unit *= 2.0**-second
    return unit, first + second


def _range(y: Floats) -> tuple[float, float]:
    """Return the smallest and the largest known entry; NaN if there are none."""
    return float(np.fmin.reduce(y, axis=None)), float(np.fmax.reduce(y, axis=None))


def _exponent(size: float) -> int:
    """Return the e with ``2^(e - 1) <= size < 2^e``, within limits, so that 2^e and 2^-e are floats."""
    return min(max(math.frexp(size)[1], -1000), 1000)
