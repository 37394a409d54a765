"""Windows of the data: which are usable, their DCT, and how much their power varies."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._validate import Array
from ..frames.transforms import dct_matrix as dct_matrix

# The median of |N(0, 1)|, and the quantile of N(0, 1) at 0.8.
_MEDIAN, _FIFTH = 0.6744897501960817, 0.8416212335729143
MEDIAN_OF_NORMAL = _MEDIAN

# How many entries of windows are enough.
MAX_WINDOW_ENTRIES = 2_500_000


def is_discrete(y: Array) -> bool:
    """Return whether most values of y come again, as those of cameras do, in any units."""
    some = y.reshape(-1)[:: max(y.size // 100_000, 1)]
    times = np.unique(some[~np.isnan(some)], return_counts=True)[1]
    return bool(np.mean(times > 1) > 0.5)


def usable_windows(windows: Array, discrete: bool) -> NDArray[np.bool_]:
    """Return which windows have neither constant parts nor NaN."""
    inside = tuple(range(1, windows.ndim))
    # Discrete values meet their neighbours by chance, others only where there is no noise.
    equal = [(np.diff(windows, axis=axis) == 0).sum(axis=inside) for axis in inside]
    most = windows[0].size / 2 if discrete else 0
    out: NDArray[np.bool_] = (np.max(equal, axis=0) <= most) & ~np.isnan(windows).any(axis=inside)
    return out


def variability(power: Array, count: int) -> float:
    """Return how much more the mean of so many squares varies than that of normal values would: 1 if not.

    That is the squared distance from the first to the last fifth of its logarithm over that of a chi-square, by Wilson
    and Hilferty.
    """
    low, high = np.quantile(np.log(np.maximum(power, np.finfo(float).tiny)), [0.2, 0.8])
    middle, spread = 1 - 2 / (9 * count), _FIFTH * math.sqrt(2 / (9 * count))
    return float((high - low) / (3 * math.log((middle + spread) / (middle - spread)))) ** 2


def dct_of_windows(windows: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return the DCT of every window, and the sum of frequencies of every coefficient."""
    out = windows
    for _ in range(windows.ndim - 1):
        out = np.moveaxis(out, 1, -1) @ dct_matrix(out.shape[1]).T
    return out, np.indices(windows.shape[1:]).sum(axis=0)
