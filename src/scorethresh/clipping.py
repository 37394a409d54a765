"""Noise that the end of a range cuts off: how much of it is left, and the mean behind that of what was cut."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from ._validate import Array
from .gaussian import phi
from .transforms import Floats

# Beyond so many noise levels from an end, nothing is cut.
_FAR = 4.0


@functools.cache
def _table() -> tuple[Array, Array, Array]:
    """Return t, and the mean and the variance of max(t + Z, 0), Z of normal law."""
    t = np.linspace(0, _FAR, 3001)
    kept = np.array([math.erfc(-u / math.sqrt(2)) / 2 for u in t])
    mean = t * kept + phi(t)
    return t, mean, (t**2 + 1) * kept + t * phi(t) - mean**2


def uncut(means: Floats, sigma: Array, ends: tuple[float, float], invalid: NDArray[np.bool_] | None = None) -> float:
    """Put the means that noise had before it was cut off in the place of those that it has after it.

    Means are (channels, 1, *shape), `sigma` broadcasts against them, `invalid` is (*shape). Returned is the part of the
    noise's variance that is left in valid entries. Each end is treated as if the other were far.
    """
    if not any(map(math.isfinite, ends)):
        return 1.0
    t, cut, variance = _table()
    lost = total = 0.0
    for values, level in zip(means[:, 0], np.broadcast_to(sigma, means.shape)[:, 0], strict=True):
        weight = np.square(level) if invalid is None else np.square(level) * ~invalid
        total += float(weight.sum())
        moves = []
        for end, sign in zip(ends, (1, -1), strict=True):
            if math.isfinite(end):
                near = sign * (values - end) < _FAR * level
                found = np.interp(sign * (values[near] - end) / level[near], cut, t)
                lost += float(weight[near] @ (1 - np.interp(found, t, variance)))
                moves.append((near, sign * level[near] * (found - np.interp(found, t, cut))))
        for near, move in moves:
            values[near] += move
        np.clip(values, *ends, out=values)
    return max(1 - lost / total, 0.0)
