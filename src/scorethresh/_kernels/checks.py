"""Checks of the arrays that are handed to a compiled loop, by code that ``python -O`` keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_array(name: str, a: object, dtype: Any, shape: tuple[int | None, ...]) -> None:
    """Raise unless `a` is an array of that dtype and shape that a loop may read.

    None in the shape stands for any length.
    """
    if not isinstance(a, np.ndarray):
        msg = f"{name} must be a NumPy array, got {type(a).__name__}."
        raise TypeError(msg)
    if a.dtype != dtype:
        msg = f"{name} must have dtype {np.dtype(dtype).name} in native byte order, got {a.dtype.str!r}. Convert it."
        raise TypeError(msg)
    if a.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, a.shape, strict=True)):
        wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
        msg = f"{name} must have shape {wanted}, got {a.shape}."
        raise ValueError(msg)
    if not (a.flags.c_contiguous and a.flags.aligned):
        msg = f"{name} must be C-contiguous and aligned, got strides {a.strides}. Pass a copy of it."
        raise ValueError(msg)


def check_output(name: str, a: Any, dtype: Any, shape: tuple[int, ...], **inputs: NDArray[Any]) -> None:
    """Raise unless `a` is an array of that dtype and shape that a loop may write to while it reads the inputs."""
    check_array(name, a, dtype, shape)
    if not a.flags.writeable:
        msg = f"{name} receives the result but is read-only. Pass an array that can be written to."
        raise ValueError(msg)
    for other, values in inputs.items():
        if np.may_share_memory(a, values):
            msg = f"{name} must not share memory with {other}. Pass a copy."
            raise ValueError(msg)


def float_dtype(name: str, a: object) -> np.dtype[Any]:
    """Return the dtype of an array of single or double precision; raise for anything else."""
    if isinstance(a, np.ndarray):
        for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
            if a.dtype == dtype:
                return dtype
    got = repr(a.dtype.str) if isinstance(a, np.ndarray) else type(a).__name__
    msg = f"{name} must be a NumPy array of float32 or float64 in native byte order, got {got}."
    raise TypeError(msg)
