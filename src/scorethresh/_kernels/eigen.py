"""Checked wrapper of the eigenvectors of many small symmetric matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import loader
from .checks import check_array

Array = NDArray[np.float64]

# The same as in the loop: the largest number of rows.
MOST_SIDE = 48


class EigenStack(NamedTuple):
    """Eigenvalues, (count, n), descending, and eigenvectors, (count, n, n): row i belongs to value i."""

    values: Array
    vectors: Array


def symmetric_eigen(matrices: Array) -> EigenStack:
    """Return the eigenvalues and eigenvectors of symmetric matrices.

    Parameters
    ----------
    matrices : ndarray of float64, shape (count, n, n)
        The matrices, n from 1 to `MOST_SIDE`.

    Returns
    -------
    EigenStack
        The largest value first.

    Notes
    -----
    At 8 x 8 to 48 x 48 it takes a third of the time of `numpy.linalg.eigh`.
    """
    check_array("matrices", matrices, np.float64, (None, None, None))
    count, rows, columns = matrices.shape
    if rows != columns or not 1 <= rows <= MOST_SIDE:
        msg = f"matrices must be square, of 1 to {MOST_SIDE} rows, got {rows} x {columns}."
        raise ValueError(msg)
    found = EigenStack(np.empty((count, rows)), np.empty((count, rows, rows)))
    failed = loader.call("symmetric_eigen", count, rows, matrices, *found)
    if failed:
        msg = f"the eigenvalues of {failed} among {count} matrices did not converge. They hold NaN or infinity."
        raise np.linalg.LinAlgError(msg)
    return found
