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
    """Probabilities of the means, and of each fit that was made its duality gap and whether it is in the average.

    A fit that was given up, because it could not come close, has the gap 0.
    """

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


class RowFits(NamedTuple):
    """Of every row (first axis), the number of entries that have each mean, and the largest duality gap."""

    masses: Array
    gaps: Array


def fit_mixture_rows(
    z: Array, *, last: float, bin_width: float, columns: int, spacing: float, null: float, clear: float, close: float
) -> RowFits:
    """Fit the means of every row of `z`, data with noise of level 1, as `fit_mixture` does.

    Parameters
    ----------
    z : ndarray of float64, shape (rows, entries)
        The data.
    last : float
        Magnitudes up to this one are fitted.
    bin_width : float
        They enter as histograms with bins of this width, each at the mean of its entries.
    columns : int
        The largest number of means. There are as many as reach two steps beyond the last bin of a row.
    clear : float
        As in `fit_mixture`, but the mean itself.
    spacing, null, close
        As in `fit_mixture`.

    Returns
    -------
    RowFits
        The masses have shape (rows, columns).
    """
    check_array("z", z, np.float64, (None, None))
    if not (bin_width > 0 and spacing > 0 and 0 <= last < np.inf) or operator.index(columns) < 1:
        msg = f"widths and columns must be positive and last finite, got {bin_width}, {spacing}, {columns}, {last}."
        raise ValueError(msg)
    bins = int(last / bin_width) + 2
    if columns * (columns + bins) > MAX_ENTRIES or max(columns, 2) * len(z) > MAX_ENTRIES:
        msg = f"there is no memory to fit {columns} means to {len(z)} rows."
        raise MemoryError(msg)
    masses, gaps, scratch = np.empty((len(z), columns)), np.empty(len(z)), np.empty((2, bins))
    limits = float(last), bins, float(bin_width), columns, float(spacing), float(null), float(clear), float(close)
    if loader.call("fit_mixture_rows", *z.shape, z, *limits, scratch[0], scratch[1], masses, gaps):
        msg = f"there is no memory to fit {columns} means to {len(z)} rows."
        raise MemoryError(msg)
    return RowFits(masses, gaps)
