"""Files for the command line: the registry of formats, and how a file is read and written whole.

A format is a row of `FORMATS`: a name, its suffixes, a reader and a writer. Its library is imported when the first file
of the format is met.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .._validate import missing_extra
from . import arrays, dicom, fits, pictures, recordings, stores, tables, tiff
from .arrays import load_npy
from .conversion import converted
from .data import Data, FileError, ReadOptions
from .tables import parse_table
from .targets import check_free, made_folder, replacing, replacing_all, replacing_folder, temporary_folder
from .words import first_line, listed

__all__ = [
    "FORMATS",
    "Data",
    "FileError",
    "Format",
    "ReadOptions",
    "check_free",
    "check_readable",
    "check_target",
    "converted",
    "format_of",
    "listed",
    "load_npy",
    "made_folder",
    "parse_table",
    "read",
    "replacing",
    "suffixes",
    "temporary_folder",
    "write",
]


class Format(NamedTuple):
    """A file format."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, ReadOptions], Data]
    write: Callable[[Path, Data], None]
    companions: tuple[str, ...] = ()  # suffixes of the files that are written beside
    options: tuple[str, ...] = ()  # fields of ReadOptions that it has a use for
    folder: bool = False  # whether a "file" is a folder


_PAGES = ("volume", "axes")
_ARRAYS = ("channel_axis", "axes")
_FITS = (".fits", ".fit", ".fts", ".fits.gz", ".fit.gz")

FORMATS = (
    Format("PNG", (".png",), pictures.read_png, pictures.write_png),
    Format("JPEG", (".jpg", ".jpeg"), pictures.read_jpeg, pictures.write_jpeg),
    Format("BMP", (".bmp",), pictures.read_bmp, pictures.write_bmp),
    Format("WebP", (".webp",), pictures.read_webp, pictures.write_webp),
    Format("TIFF", (".tif", ".tiff"), tiff.read_tiff, tiff.write_tiff, options=_PAGES),
    Format("DICOM", (".dcm", ".dicom"), dicom.read_dicom, dicom.write_dicom, options=_PAGES),
    Format("FITS", _FITS, fits.read_fits, fits.write_fits, options=(*_ARRAYS, "key")),
    Format("NPY", (".npy",), arrays.read_npy, arrays.write_npy, options=_ARRAYS),
    Format("NPZ", (".npz",), arrays.read_npz, arrays.write_npz, options=(*_ARRAYS, "key")),
    Format("WAV", (".wav",), arrays.read_wav, arrays.write_wav),
    Format("NIfTI", (".nii", ".nii.gz"), arrays.read_nifti, arrays.write_nifti),
    Format("MiniSEED", (".mseed", ".miniseed", ".msd"), recordings.read_miniseed, recordings.write_miniseed),
    Format("WFDB", (".hea",), recordings.read_wfdb, recordings.write_wfdb, companions=(".dat",)),
    Format("Zarr", (".zarr",), stores.read_zarr, stores.write_zarr, options=(*_ARRAYS, "key"), folder=True),
    Format("CSV", (".csv", ".tsv", ".txt"), tables.read_csv, tables.write_csv, options=("columns",)),
)

# Formats that may be written as one another.
_INTERCHANGEABLE = ("PNG", "JPEG", "BMP", "WebP", "TIFF", "NPY", "NPZ", "Zarr")

# Formats that hold any array.
_ANY = ("NPY", "NPZ", "Zarr")

# How a format that has no use for an option says so: what it lacks, and the option.
_LACKS = {
    "columns": ("columns", "--column"),
    "volume": ("pages", "--volume"),
    "axes": ("axes to name", "--axes"),
    "key": ("arrays with names", "--key"),
}


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats."""
    return tuple(suffix for form in FORMATS for suffix in form.suffixes)


def format_of(path: Path) -> Format:
    """Return the format that the suffix of a file stands for."""
    for form in FORMATS:
        if path.name.lower().endswith(form.suffixes):
            return form
    msg = f"the name of {path} tells no format. It must end in one of {', '.join(suffixes())}."
    raise FileError(msg)


def check_target(path: Path, source: str, *, force: bool = False) -> Format:
    """Return the format of a file to write; raise if it cannot hold data of the format `source` or is not writable."""
    form = format_of(path)
    both_interchangeable = form.name in _INTERCHANGEABLE and source in _INTERCHANGEABLE
    if form.name not in (source, *_ANY) and not both_interchangeable:
        msg = f"{source} data cannot be written as {form.name}, {path}. Write {source} or NPY."
        raise FileError(msg)
    for one in _files(form, path):
        check_free(one, force=force, folder=form.folder)
    return form


def _files(form: Format, path: Path) -> list[Path]:
    """Return the files that are written, the one that names the data last."""
    return [*(path.with_suffix(suffix) for suffix in form.companions), path]


def check_readable(path: Path) -> Format:
    """Return the format of a file to read; raise if there is no such file."""
    form = format_of(path)
    if not (path.is_dir() if form.folder else path.is_file()):
        kind = "is a folder, not a file" if path.is_dir() else "is no file" if path.exists() else "does not exist"
        if form.folder and path.exists():
            kind = f"is a file, and a {form.name} store is a folder"
        msg = f"{path} {kind}. Check the name."
        raise FileError(msg)
    return form


def read(path: Path, options: ReadOptions = ReadOptions()) -> Data:  # noqa: B008 (immutable)
    """Read a file.

    Parameters
    ----------
    path : Path
        The file. Its suffix tells the format.
    options : ReadOptions
        Options of the formats that have some.

    Returns
    -------
    Data
        The numbers and the metadata.

    Raises
    ------
    FileError
        If the file is missing, damaged or not supported.
    ImportError
        If the library that reads the format is not installed.
    """
    form = check_readable(path)
    for option, (lacking, flag) in _LACKS.items():
        if getattr(options, option) and option not in form.options:
            msg = f"{path} is a {form.name} file, which has no {lacking}. Leave {flag} out."
            raise FileError(msg)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return form.read(path, options)
    except ModuleNotFoundError as error:
        raise missing_extra(_package(error)) from error
    except (FileError, ImportError, PermissionError):
        raise
    except MemoryError as error:
        msg = f"{path} does not fit into memory. Cut it into parts."
        raise FileError(msg) from error
    except Exception as error:  # damaged files make their libraries raise anything
        reason = first_line(error)
        remedy = "To read this compression: pip install imagecodecs." if "imagecodecs" in reason else "Is it damaged?"
        msg = f"{path} cannot be read as {form.name} ({reason}). {remedy}"
        raise FileError(msg) from error


def write(path: Path, data: Data, *, force: bool = False) -> None:
    """Write a file, whole or not at all. Metadata are written if the format is the one that was read."""
    form = check_target(path, data.format, force=force)
    if form.name != data.format:
        data = dataclasses.replace(data, metadata=None)
    with _temporary(form, path, force=force) as beside:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                form.write(beside, data)
        except ModuleNotFoundError as error:
            raise missing_extra(_package(error)) from error
        except (FileError, ImportError, OSError):
            raise
        except Exception as error:
            msg = f"{path} cannot be written as {form.name} ({first_line(error)}). Try another format, such as .npy."
            raise FileError(msg) from error


@contextlib.contextmanager
def _temporary(form: Format, path: Path, *, force: bool) -> Iterator[Path]:
    """Give the name to write first; it and its companions become `path` and its own on success."""
    if not form.companions:
        with (replacing_folder if form.folder else replacing)(path, force=force) as beside:
            yield beside
        return
    with replacing_all(_files(form, path), force=force) as folder:
        yield folder / path.name


def _package(error: ModuleNotFoundError) -> str:
    return (error.name or str(error)).partition(".")[0]
