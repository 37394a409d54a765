"""Index helpers for arrays with leading axes, shared by the noise models and the frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# An array of single or double precision; functions keep the precision that they get.
Floats = NDArray[Any]


def working_precision(dtype: np.dtype[Any]) -> Any:
    """Return single precision for data of single precision or 16 bits, else double."""
    return np.float32 if dtype.itemsize <= 2 or dtype == np.float32 else np.float64


def cropped(a: NDArray[Any], slices: Iterable[slice]) -> NDArray[Any]:
    """Return the view of `a` that `slices` cut out of its last axes."""
    index: Any = (..., *slices)
    out: NDArray[Any] = a[index]
    return out


def along(v: Floats, axis: int, ndim: int) -> Floats:
    """Reshape a vector so that it broadcasts along `axis` of an array with `ndim` axes."""
    return v.reshape([-1 if a == axis else 1 for a in range(ndim)])


def reflect_index(index: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Map any integer index into ``0, ..., n - 1`` by reflection, the border entry repeated.

    The extended sequence is ``..., 1, 0, 0, 1, ..., n - 1, n - 1, n - 2, ...`` with period ``2 n``.
    """
    index = index % (2 * n)
    return np.where(index < n, index, 2 * n - 1 - index)


def as_integers(values: Floats, dtype: Any) -> NDArray[Any]:
    """Return values rounded to integers of a dtype, cut off at its limits."""
    info = np.iinfo(dtype)
    # The largest integer of 64 bits is no double: the next one below it is.
    largest = float(info.max) if int(float(info.max)) <= info.max else np.nextafter(float(info.max), 0.0)
    return np.clip(np.rint(values), float(info.min), largest).astype(dtype)
