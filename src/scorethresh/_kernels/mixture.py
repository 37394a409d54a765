"""Checked wrapper of the fit of a distribution of means."""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import loader
from .checks import check_array

Array = NDArray[np.float64]


# Beyond this many entries of its matrices, 128 GB, the loop would only fail to get memory, or count past 64 bits.
MAX_ENTRIES = 1 << 34


class MixtureFit(NamedTuple):
    """Probabilities of the means, and of each fit that was made its duality gap and whether it is in the average."""

    probabilities: Array
    gaps: Array
    taken: NDArray[np.int64]


def fit_mixture(
    z: Array, counts: Array, *, columns: int, spacing: float, null: float, clear: int, close: float
) -> MixtureFit:
    """Fit probabilities of means at multiples of `spacing` to magnitudes, by maximum likelihood.

    The most likely fit is averaged with two sparser ones, each if its log-likelihood is at most `close` below the
    largest. In one, `null` more entries have mean 0. In the other, means are 0 or lie in a column from `clear` on.

    Parameters
    ----------
    z, counts : ndarray of float64
        Magnitudes in units of the noise level, and how many entries have each.
    columns : int
        The number of means.
    spacing : float
        Their distance. The first mean is 0.
    null : float
        See above; 0 leaves out the sparser fits.
    clear : int
        See above.
    close : float
        See above.

    Returns
    -------
    MixtureFit
        The fit.
    """
    check_array("z", z, np.float64, (None,))
    check_array("counts", counts, np.float64, z.shape)
    if not z.size or operator.index(columns) < 1:
        msg = f"there must be at least one magnitude and one column, got {z.size} and {columns}."
        raise ValueError(msg)
    if columns * (columns + z.size) > MAX_ENTRIES:
        msg = f"there is no memory to fit {columns} means to {z.size} magnitudes."
        raise MemoryError(msg)
    p, gaps, taken = np.empty(columns), np.empty(3), np.empty(3, np.int64)
    sizes = z.size, z, counts, columns, float(spacing), float(null), min(operator.index(clear), columns), float(close)
    if loader.call("fit_mixture", *sizes, p, gaps, taken):
        msg = f"there is no memory to fit {columns} means to {z.size} magnitudes."
        raise MemoryError(msg)
    made = 3 if null > 0 else 1
    return MixtureFit(p, gaps[:made], taken[:made])
