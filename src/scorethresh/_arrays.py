"""Index helpers for arrays with leading axes, shared by the noise models and the frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

# An array of single or double precision; functions keep the precision that they get.
Floats = NDArray[Any]

# Entries of a large array that are treated at once, so that what is made of them on the way stays in the cache. On
# 2048 x 2048 entries the time to find the noise is the same from 2^14 to 2^20, to 6%; all at once takes a third more.
SLAB_ENTRIES = 1 << 18


def working_precision(dtype: np.dtype[Any]) -> Any:
    """Return single precision for data of single precision or 16 bits, else double."""
    return np.float32 if dtype.itemsize <= 2 or dtype == np.float32 else np.float64


def known_floats(part: NDArray[Any], missing: NDArray[np.bool_] | None) -> Floats:
    """Return a part of the data as floats, NaN where it is missing; not a copy if it need not be one."""
    values: Floats = part.astype(working_precision(part.dtype), copy=missing is not None)
    if missing is not None:
        values[missing] = np.nan
    return values


def cropped(a: NDArray[Any], slices: Iterable[slice]) -> NDArray[Any]:
    """Return the view of `a` that `slices` cut out of its last axes."""
    index: Any = (..., *slices)
    out: NDArray[Any] = a[index]
    return out


def slabs(shape: tuple[int, ...], overlap: int = 0) -> Iterator[slice]:
    """Yield parts along the first axis, of about `SLAB_ENTRIES` each, and `overlap` rows of the next one with them."""
    each = max(SLAB_ENTRIES // max(math.prod(shape[1:]), 1), 1)
    for start in range(0, shape[0] - overlap, each):
        yield slice(start, min(start + each + overlap, shape[0]))


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
