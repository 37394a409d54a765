"""Files that need not fit into memory, as dask arrays: Zarr stores, and memory-mapped NPY, TIFF and NIfTI."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._validate import missing_extra
from .stored import find_array

__all__ = ["BigFile", "FileArray", "open_file"]

# Entries of a chunk of a file that has none.
CHUNK_ENTRIES = 1 << 22
# Letters of axes along which data are denoised together; along others one by one.
SPACE = "zyx"


@dataclass(frozen=True)
class FileArray:
    """An array in a file, mapped into memory by whoever reads it. It pickles to its path."""

    path: str
    kind: str
    shape: tuple[int, ...]
    dtype: Any

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> Any:
        return np.asarray(mapped(self.path, self.kind)[index])


def mapped(path: str, kind: str) -> Any:
    """Return the array of a file, not read yet."""
    if kind == "npy":
        return np.load(path, mmap_mode="r")
    if kind == "tiff":
        import tifffile

        return tifffile.memmap(path, mode="r")
    import nibabel

    return nibabel.load(path).dataobj


@dataclass(frozen=True, eq=False)
class BigFile:
    """An array that is read chunk by chunk.

    Attributes
    ----------
    array : dask array
        The data.
    axes : str
        A letter per axis; empty if the file does not tell.
    chunks : tuple of int
        The shape of its chunks.
    metadata : dict
        Attributes, for a store that holds the result.
    inner : str
        Where in a store the array lies; empty if the store is the array.
    zarr_format : int
        Of a store: 2 or 3.
    """

    array: Any
    axes: str
    chunks: tuple[int, ...]
    metadata: dict[str, Any] = field(default_factory=dict)
    inner: str = ""
    zarr_format: int = 3


def open_file(path: Path, key: str = "") -> BigFile:
    """Open a Zarr store, perhaps the array of a name, an NPY, TIFF or NIfTI file; nothing is read but its head."""
    try:
        import dask.array as da
    except ImportError:
        error = missing_extra("dask")
        raise error from None

    if path.suffix.lower() == ".zarr" or (path.is_dir() and _is_store(path)):
        return _open_zarr(path, key)
    name = path.name.lower()
    kind = "npy" if name.endswith(".npy") else "tiff" if name.endswith((".tif", ".tiff")) else "nifti"
    if name.endswith(".gz"):
        msg = f"{path} is compressed, and cannot be read in parts. Decompress it first: gunzip -k {path.name}."
        raise ValueError(msg)
    try:
        found = mapped(str(path), kind)
    except ImportError as error:
        raise missing_extra(str(error.name)) from None
    except ValueError as error:
        msg = f"{path} cannot be mapped into memory: {error} Store it without compression, or as Zarr."
        raise ValueError(msg) from None
    dtype = np.dtype(found.dtype if kind != "nifti" else np.asarray(found[(slice(0, 1),) * found.ndim]).dtype)
    source = FileArray(str(path.resolve()), kind, tuple(map(int, found.shape)), dtype)
    array = da.from_array(source, chunks=_chunks(source.shape), asarray=True, lock=False)
    return BigFile(array, _axes_of_tiff(path) if kind == "tiff" else "", array.chunksize)


def _chunks(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return chunks of about CHUNK_ENTRIES, long along the last axes, which lie together in the file."""
    out, left = [], CHUNK_ENTRIES
    for n in reversed(shape):
        out.append(max(min(n, left), 1))
        left = max(left // n, 1)
    return tuple(reversed(out))


def _axes_of_tiff(path: Path) -> str:
    import tifffile

    with tifffile.TiffFile(path) as tiff:
        axes = str(tiff.series[0].axes).lower()
    return axes if not set(axes) - set("tczyx") else ""


def _is_store(path: Path) -> bool:
    return any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))


def _open_zarr(path: Path, key: str) -> BigFile:
    """Return the array of a store, not read yet."""
    import dask.array as da

    found = find_array(path, key)
    array = da.from_zarr(str(path), component=found.inner or None)
    return BigFile(array, found.axes, tuple(found.array.chunks), found.metadata, found.inner, found.zarr_format)
