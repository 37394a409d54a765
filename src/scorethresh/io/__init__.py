"""Files in and out, for the command line: numbers, and whatever else a file of the same kind needs.

A format is a pair of functions and a row of `FORMATS`; its library is imported when a file of it is met.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import arrays, pictures, tables, tiff
from .arrays import SUBTYPES, load_npy
from .data import Data, FileError, How, first_line
from .tables import parse_table

__all__ = [
    "FORMATS",
    "Data",
    "FileError",
    "Format",
    "How",
    "check_free",
    "check_target",
    "converted",
    "format_of",
    "load_npy",
    "parse_table",
    "read",
    "replacing",
    "suffixes",
    "write",
]


class Format(NamedTuple):
    """A kind of file."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, How], Data]
    write: Callable[[Path, Data], None]


FORMATS = (
    Format("PNG", (".png",), pictures.read_png, pictures.write_png),
    Format("JPEG", (".jpg", ".jpeg"), pictures.read_jpeg, pictures.write_jpeg),
    Format("TIFF", (".tif", ".tiff"), tiff.read_tiff, tiff.write_tiff),
    Format("NPY", (".npy",), arrays.read_npy, arrays.write_npy),
    Format("WAV", (".wav",), arrays.read_wav, arrays.write_wav),
    Format("NIfTI", (".nii", ".nii.gz"), arrays.read_nifti, arrays.write_nifti),
    Format("CSV", (".csv", ".tsv", ".txt"), tables.read_csv, tables.write_csv),
)


def format_of(path: Path) -> Format:
    """Return the format that the name of a file tells."""
    for form in FORMATS:
        if path.name.lower().endswith(form.suffixes):
            return form
    msg = f"the name of {path} tells no format. It must end in one of {', '.join(suffixes())}."
    raise FileError(msg)


def suffixes() -> tuple[str, ...]:
    """Return how names of files that can be read end."""
    return tuple(suffix for form in FORMATS for suffix in form.suffixes)


def read(path: Path, how: How = How()) -> Data:  # noqa: B008 (immutable)
    """Read a file; whatever is wrong with it, the error is a `FileError`, but for a missing library."""
    form = format_of(path)
    if not path.is_file():
        kind = "is a folder, not a file" if path.is_dir() else "is no file" if path.exists() else "does not exist"
        msg = f"{path} {kind}. Check the name."
        raise FileError(msg)
    if how.columns and form.name != "CSV":
        msg = f"{path} is a {form.name} file, which has no columns. Leave --column out."
        raise FileError(msg)
    if how.volume and form.name != "TIFF":
        msg = f"{path} is a {form.name} file, which has no pages. Leave --volume out."
        raise FileError(msg)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return form.read(path, how)
    except (FileError, ImportError, PermissionError):
        raise
    except MemoryError as error:
        msg = f"{path} does not fit into memory. Cut it into parts."
        raise FileError(msg) from error
    except Exception as error:  # damaged files make their libraries raise anything
        told = first_line(error)
        remedy = "To read this compression: pip install imagecodecs." if "imagecodecs" in told else "Is it damaged?"
        msg = f"{path} cannot be read as {form.name} ({told}). {remedy}"
        raise FileError(msg) from error


def write(path: Path, data: Data, *, force: bool = False) -> None:
    """Write a file, whole or not at all; metadata are kept if the format stays the same."""
    form = check_target(path, data.format, force=force)
    if form.name != data.format:
        data = dataclasses.replace(data, kept=None)
    with replacing(path, force=force) as beside:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                form.write(beside, data)
        except (FileError, ImportError, OSError):
            raise
        except Exception as error:
            msg = f"{path} cannot be written as {form.name} ({first_line(error)}). Try another format, such as .npy."
            raise FileError(msg) from error


# What may be written as what, if not as itself.
_PICTURES = ("PNG", "JPEG", "TIFF", "NPY")


def check_target(path: Path, source: str, *, force: bool = False) -> Format:
    """Return the format of a file to be written; raise if it exists or cannot hold data of the source's format."""
    form = format_of(path)
    if form.name not in (source, "NPY") and not (form.name in _PICTURES and source in _PICTURES):
        msg = f"{source} data cannot be written as {form.name}, {path}. Write {source} or NPY."
        raise FileError(msg)
    check_free(path, force=force)
    return form


def check_free(path: Path, *, force: bool) -> None:
    """Raise if a file cannot be made there, or would be overwritten without leave."""
    if path.is_dir():
        msg = f"{path} is a folder. Name a file."
    elif not path.parent.is_dir():
        msg = f"there is no folder {path.parent} to write {path.name} in. Make it first."
    elif os.path.lexists(path) and not force:
        msg = f"{path} exists. Choose another name, or replace it with --force."
    else:
        return
    raise FileError(msg)


@contextlib.contextmanager
def replacing(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a name beside `path` to write to; it becomes `path` if all goes well and vanishes if not."""
    check_free(path, force=force)
    beside = path.with_name(f".{secrets.token_hex(4)}-{path.name}")
    try:
        yield beside
        check_free(path, force=force)
        os.replace(beside, path)
    except OSError as error:
        msg = f"{path} cannot be written ({error.strerror or first_line(error)}). Try another name or folder."
        raise FileError(msg) from error
    finally:
        beside.unlink(missing_ok=True)


def converted(data: Data, dtype: np.dtype[Any]) -> Data:
    """Return the data in another type, in the same units: rounded and clipped if that holds integers."""
    if data.format == "WAV":  # samples stay in -1 to 1, whatever they are stored as
        if dtype.name not in SUBTYPES:
            msg = f"WAV does not hold {dtype}. Say --dtype {' or '.join(SUBTYPES)}."
            raise FileError(msg)
        return dataclasses.replace(data, kept=data.kept | {"subtype": SUBTYPES[dtype.name]})
    values = data.values
    if dtype.kind in "iu" and values.dtype != dtype:
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            msg = f"NaN has no place in {dtype}. Choose a --dtype of floats."
            raise FileError(msg)
        info = np.iinfo(dtype)
        values = np.clip(np.rint(values), info.min, info.max)
    return dataclasses.replace(data, values=values.astype(dtype, copy=False))
