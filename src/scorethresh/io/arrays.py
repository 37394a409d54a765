"""NPY and NPZ by NumPy, never unpickled; WAV by soundfile, with samples from -1 to 1; NIfTI by nibabel."""

from __future__ import annotations

import math
import os
import struct
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .axes import name_axes
from .data import Data, FileError, ReadOptions
from .guards import check_bomb, silenced
from .words import listed, shorten

# The name of the WAV sample format for each dtype.
SUBTYPES = {"uint8": "PCM_U8", "int16": "PCM_16", "int32": "PCM_32", "float32": "FLOAT", "float64": "DOUBLE"}

_NPY_MAGIC = b"\x93NUMPY"
_NPY_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def load_npy(file: BinaryIO, name: object) -> NDArray[Any]:
    """Read an array of numbers from NPY data in a file that can seek.

    The header is checked before any memory is taken: the type must be numeric, and the data that it claims must be
    there. Pickled objects, which may run code, are refused.
    """
    if file.read(len(_NPY_MAGIC)) == _NPY_MAGIC:
        file.seek(0)
        _check_npy_header(file, name)
    file.seek(0)
    try:
        loaded = np.load(file, allow_pickle=False)
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise _pickled(name) from error
    if not isinstance(loaded, np.ndarray):
        msg = f"{name} is an archive of arrays. Save one of them with np.save."
        raise FileError(msg)
    return loaded


def _check_npy_header(file: BinaryIO, name: object) -> None:
    version = np.lib.format.read_magic(file)
    if version not in _NPY_HEADERS:  # 3.0 has names of fields that are not Latin-1
        msg = f"{name} has named fields. Save an array of numbers with np.save."
        raise FileError(msg)
    shape, _, dtype = _NPY_HEADERS[version](file)
    if dtype.hasobject:
        raise _pickled(name)
    if dtype.kind not in "biufc":
        msg = (
            f"{name} holds no numbers but entries of dtype {shorten(dtype.str)}. Save an array of numbers with np.save."
        )
        raise FileError(msg)
    claimed, start = math.prod(shape) * dtype.itemsize, file.tell()
    held = file.seek(0, os.SEEK_END) - start
    if claimed > held:
        msg = f"{name} cannot be read as NPY: it claims {claimed} bytes of data and holds {held}. Is it cut short?"
        raise FileError(msg)


def _pickled(name: object) -> FileError:
    return FileError(
        f"{name} holds pickled objects, which may run code when read. Save an array of numbers with np.save."
    )


def read_npy(path: Path, options: ReadOptions) -> Data:
    """Read an NPY file."""
    with open(path, "rb") as file:
        return labelled(path, load_npy(file, path), "NPY", options)


def labelled(path: Path, values: NDArray[Any], form: str, options: ReadOptions, metadata: Any = None) -> Data:
    """Return an array with the meaning of its axes, as the options say."""
    axis = options.channel_axis
    if options.axes and axis is not None:
        msg = "--axes and --channel-axis both name axes. Leave one of them out; colours have the letter S."
        raise FileError(msg)
    if options.axes:
        return name_axes(path, options.axes, values.shape).label(values, form, metadata)
    if axis is not None and not -values.ndim <= axis < values.ndim:
        msg = f"--channel-axis must be an axis of {path}, which has {values.ndim}, got {axis}."
        raise FileError(msg)
    return Data(values, form, None if axis is None else axis % values.ndim - values.ndim, metadata=metadata)


def write_npy(path: Path, data: Data) -> None:
    """Write an NPY file."""
    np.save(path, data.with_alpha(), allow_pickle=False)


def read_npz(path: Path, options: ReadOptions) -> Data:
    """Read an NPZ file: the array named by `options.key`, or the only one. The others are kept as they are."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        check_bomb(path, sum(info.file_size for info in members.values()))
        raw = {name: archive.read(info) for name, info in members.items()}
        compressed = any(info.compress_type != zipfile.ZIP_STORED for info in members.values())
    key = options.key or (next(iter(raw)) if len(raw) == 1 else "")
    if key not in raw:
        given = f"no array {shorten(key)!r}" if key else f"{len(raw)} arrays"
        msg = f"{path} holds {given}. Choose one of {listed(list(raw))} with --key."
        raise FileError(msg)
    values = load_npy(BytesIO(raw[key]), f"{key} in {path}")
    return labelled(path, values, "NPZ", options, {"members": raw, "key": key, "compressed": compressed})


def write_npz(path: Path, data: Data) -> None:
    """Write an NPZ file, with the arrays that were not denoised as they were."""
    metadata = data.metadata or {"members": {}, "key": "arr_0", "compressed": True}
    out = BytesIO()
    np.save(out, data.with_alpha(), allow_pickle=False)
    members = metadata["members"] | {metadata["key"]: out.getvalue()}
    method = zipfile.ZIP_DEFLATED if metadata["compressed"] else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            # The date of a fixed entry: the same numbers make the same file.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content, method)


def read_wav(path: Path, options: ReadOptions) -> Data:
    """Read a WAV file."""
    import soundfile

    with open(path, "rb") as raw:
        head = raw.read(8)
    claimed = struct.unpack("<I", head[4:])[0] if head[:4] == b"RIFF" and len(head) == 8 else 0
    if path.stat().st_size < claimed + 8 and claimed != 0xFFFFFFFF:  # all ones: written to a pipe, length unknown
        msg = f"{path} is cut short: it has {path.stat().st_size} bytes of {claimed + 8}. Get a complete copy."
        raise FileError(msg)
    with soundfile.SoundFile(path) as file:
        # Single precision holds 24 bits exactly.
        values = file.read(dtype="float64" if file.subtype in ("PCM_32", "DOUBLE") else "float32")
        metadata = {
            "samplerate": file.samplerate,
            "subtype": file.subtype,
            "format": file.format,
            "text": file.copy_metadata(),
        }
    return Data(values, "WAV", -1 if values.ndim == 2 else None, metadata=metadata)


def write_wav(path: Path, data: Data) -> None:
    """Write a WAV file."""
    import soundfile

    metadata = data.metadata
    with soundfile.SoundFile(
        path,
        "w",
        samplerate=metadata["samplerate"],
        channels=1 if data.values.ndim == 1 else data.values.shape[1],
        subtype=metadata["subtype"],
        format=metadata["format"],
    ) as file:
        for name, text in metadata["text"].items():
            setattr(file, name, text)
        file.write(data.values)


def read_nifti(path: Path, options: ReadOptions) -> Data:
    """Read a NIfTI file."""
    import nibabel

    with silenced("nibabel.global"):
        image: Any = nibabel.load(path)
        check_bomb(path, math.prod(image.shape) * image.header.get_data_dtype().itemsize)
        values = np.asanyarray(image.dataobj)
    values = values.astype(values.dtype.newbyteorder("="))
    metadata = {"image": image, "dtype": values.dtype}
    space = [n for n in values.shape[:3] if n > 1]
    series = [n for n in values.shape[3:] if n > 1]
    stack_axes = tuple(range(len(space), len(space) + len(series)))
    names = ("volume", *["part"] * len(series))[: len(series)]
    return Data(values.reshape(space + series), "NIfTI", None, stack_axes, names, metadata=metadata)


def write_nifti(path: Path, data: Data) -> None:
    """Write a NIfTI file."""
    image, dtype = data.metadata["image"], data.metadata["dtype"]
    header = image.header.copy()
    if data.values.dtype != dtype:
        header.set_data_dtype(data.values.dtype)
    type(image)(data.values.reshape(image.shape), image.affine, header).to_filename(path)
