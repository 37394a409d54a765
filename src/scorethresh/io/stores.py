"""Zarr, by zarr: a store that fits into memory. Larger ones are denoised chunk by chunk, see `scale`."""

from __future__ import annotations

import math
from pathlib import Path

from ..scale.stored import StoredArray, create_like, find_array
from .arrays import labelled
from .axes import Axes
from .data import Data, FileError, ReadOptions
from .guards import check_bomb

# Letters that OME-Zarr gives to axes.
_LETTERS = "TCZYX"


def read_zarr(path: Path, options: ReadOptions) -> Data:
    """Read a Zarr store: format 2 or 3, or an OME-Zarr image, whose axes are read."""
    try:
        found = find_array(path, options.key)
    except ValueError as error:
        raise FileError(str(error)) from error
    if found.array.dtype.kind not in "biufc":
        msg = f"{path} holds no numbers but entries of dtype {found.array.dtype}. Store an array of numbers."
        raise FileError(msg)
    claimed = math.prod(found.array.shape) * found.array.dtype.itemsize
    check_bomb(path, claimed, sum(file.stat().st_size for file in path.rglob("*") if file.is_file()))
    values = found.array[...]
    letters = found.axes.upper()
    if len(letters) == values.ndim and not set(letters) - set(_LETTERS) and not options.axes:
        return Axes(letters, values.shape, "OME-Zarr").label(values, "Zarr", found)
    return labelled(path, values, "Zarr", options, found)


def write_zarr(path: Path, data: Data) -> None:
    """Write a Zarr store: like the one that was read, or one array in chunks that zarr chooses."""
    import zarr

    values = data.with_alpha()
    like: StoredArray | None = data.metadata
    if like is None:
        zarr.create_array(str(path), data=values)
        return
    array = create_like(path, like, values.shape, values.dtype, like.array.chunks)
    array[...] = values
