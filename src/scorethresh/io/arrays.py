"""NPY by NumPy, never unpickled; WAV by soundfile, samples from -1 to 1; NIfTI by nibabel."""

from __future__ import annotations

import logging
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import Data, FileError, How, check_bomb

# How WAV stores samples, by the type of numbers.
SUBTYPES = {"uint8": "PCM_U8", "int16": "PCM_16", "int32": "PCM_32", "float32": "FLOAT", "float64": "DOUBLE"}


def load_npy(file: Any, name: object, mmap_mode: Any = None) -> NDArray[Any]:
    """Read an array of numbers from NPY data; refuse pickled objects, which may run code."""
    try:
        loaded = np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    except ValueError as error:
        if "pickle" not in str(error) and "Python objects" not in str(error):
            raise
        msg = f"{name} holds pickled objects, which may run code when read. Save an array of numbers with np.save."
        raise FileError(msg) from error
    if not isinstance(loaded, np.ndarray):
        msg = f"{name} is an archive of arrays. Save one of them with np.save."
        raise FileError(msg)
    return np.array(loaded)


def read_npy(path: Path, how: How) -> Data:
    """Read an NPY file."""
    # Mapping compares the claimed size with that of the file before any memory is taken.
    values = load_npy(path, path, mmap_mode="r")
    axis = how.channel_axis
    if axis is not None and not -values.ndim <= axis < values.ndim:
        msg = f"--channel-axis must be an axis of {path}, which has {values.ndim}, got {axis}."
        raise FileError(msg)
    return Data(values, "NPY", None if axis is None else axis % values.ndim - values.ndim)


def write_npy(path: Path, data: Data) -> None:
    """Write an NPY file."""
    np.save(path, data.everything(), allow_pickle=False)


def read_wav(path: Path, how: How) -> Data:
    """Read a WAV file."""
    import soundfile

    with open(path, "rb") as raw:
        head = raw.read(8)
    claimed = struct.unpack("<I", head[4:])[0] if head[:4] == b"RIFF" and len(head) == 8 else 0
    if path.stat().st_size < claimed + 8 and claimed != 0xFFFFFFFF:  # the latter: length unknown, from a pipe
        msg = f"{path} is cut short: it has {path.stat().st_size} bytes of {claimed + 8}. Get it anew."
        raise FileError(msg)
    with soundfile.SoundFile(path) as file:
        # 24 bits and less fit into single precision.
        values = file.read(dtype="float64" if file.subtype in ("PCM_32", "DOUBLE") else "float32")
        kept = {
            "samplerate": file.samplerate,
            "subtype": file.subtype,
            "format": file.format,
            "text": file.copy_metadata(),
        }
    return Data(values, "WAV", -1 if values.ndim == 2 else None, kept=kept)


def write_wav(path: Path, data: Data) -> None:
    """Write a WAV file."""
    import soundfile

    kept = data.kept
    with soundfile.SoundFile(
        path,
        "w",
        samplerate=kept["samplerate"],
        channels=1 if data.values.ndim == 1 else data.values.shape[1],
        subtype=kept["subtype"],
        format=kept["format"],
    ) as file:
        for name, text in kept["text"].items():
            setattr(file, name, text)
        file.write(data.values)


def read_nifti(path: Path, how: How) -> Data:
    """Read a NIfTI file."""
    import nibabel

    logging.getLogger("nibabel.global").disabled = True
    image: Any = nibabel.load(path)
    check_bomb(path, math.prod(image.shape) * image.header.get_data_dtype().itemsize)
    values = np.asanyarray(image.dataobj)
    values = values.astype(values.dtype.newbyteorder("="))
    kept = {"image": image, "dtype": values.dtype}
    shape = [n for n in values.shape[:3] if n > 1] + list(values.shape[3:])
    in_time = values.ndim > 3 and values.shape[3] > 1
    return Data(values.reshape(shape if in_time else shape[:3]), "NIfTI", None, -1 if in_time else None, kept=kept)


def write_nifti(path: Path, data: Data) -> None:
    """Write a NIfTI file."""
    image, dtype = data.kept["image"], data.kept["dtype"]
    header = image.header.copy()
    if data.values.dtype != dtype:
        header.set_data_dtype(data.values.dtype)
    type(image)(data.values.reshape(image.shape), image.affine, header).to_filename(path)
