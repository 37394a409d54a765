"""Numbers in another type: rounded and clipped, never rescaled."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import SUBTYPES
from .data import Data, FileError


def converted(data: Data, dtype: np.dtype[Any]) -> Data:
    """Return the data in another type and the same units. Integers are rounded; what does not fit is clipped."""
    if data.format == "WAV":  # samples stay in -1 to 1, whatever they are stored as
        if dtype.name not in SUBTYPES:
            msg = f"WAV does not hold {dtype}. Say --dtype {' or '.join(SUBTYPES)}."
            raise FileError(msg)
        return dataclasses.replace(data, metadata=data.metadata | {"subtype": SUBTYPES[dtype.name]})
    values = data.values
    if values.dtype == dtype:
        return data
    if values.dtype.kind == "c":
        msg = f"the data are complex, and {dtype} would lose their imaginary part. Leave --dtype out."
        raise FileError(msg)
    changed = _as_integers(values, dtype) if dtype.kind in "iu" else _as_floats(values, dtype)
    return dataclasses.replace(data, values=changed)


def _as_integers(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    info = np.iinfo(dtype)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            msg = f"the data hold NaN or infinity, which {dtype} cannot hold. Choose a --dtype of floats."
            raise FileError(msg)
        # Double precision holds the limits of 32-bit integers exactly, single precision does not.
        wide = np.rint(values, dtype=np.promote_types(values.dtype, np.float64))
        values = np.clip(wide, info.min, info.max)
    elif values.dtype.kind in "iu":
        own = np.iinfo(values.dtype)
        values = np.clip(values, max(own.min, info.min), min(own.max, info.max))
    return values.astype(dtype)


def _as_floats(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        changed = values.astype(dtype)
    overflowed = np.isinf(changed) & np.isfinite(values)
    changed[overflowed] = np.copysign(np.finfo(dtype).max, changed[overflowed])
    return changed
