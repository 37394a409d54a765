"""Files in and out, for the command line: numbers, and whatever else a file of the same kind needs.

A format is a pair of functions and a row of `FORMATS`; its library is imported when a file of it is met.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import logging
import math
import os
import secrets
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Data with noise in them never shrink by so much; a file of this size that claims to is a bomb, or empty of noise.
_BOMB_RATIO = 100
_BOMB_BYTES = 1 << 30

_JPEG_QUALITY = 95


class FileError(ValueError):
    """A file that cannot be read or written; the message says what to do."""


@dataclass(frozen=True, eq=False)
class Data:
    """What a file holds.

    Attributes
    ----------
    values : ndarray
        The numbers to be denoised.
    format : str
        The name of the format that they came in.
    channel_axis : int, optional
        The axis of colours, counted from the end.
    stack_axis : int, optional
        The axis of pages, columns or points in time: each is denoised by itself.
    alpha : ndarray, optional
        Opacity: further channels, which are left alone.
    kept : object
        What the writer of the same format needs besides.
    """

    values: NDArray[Any]
    format: str
    channel_axis: int | None = None
    stack_axis: int | None = None
    alpha: NDArray[Any] | None = None
    kept: Any = None

    def parts(self) -> list[NDArray[Any]]:
        """Return the arrays that are denoised one by one."""
        return [self.values] if self.stack_axis is None else list(np.moveaxis(self.values, self.stack_axis, 0))

    def joined(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return parts, by now denoised, as one array."""
        return parts[0] if self.stack_axis is None else np.stack(parts, axis=self.stack_axis)

    def everything(self) -> NDArray[Any]:
        """Return the values and the opacity in one array."""
        if self.alpha is None or self.channel_axis is None:
            return self.values
        if self.alpha.dtype != self.values.dtype:
            msg = f"opacity of dtype {self.alpha.dtype} does not go with {self.values.dtype}. Leave --dtype out."
            raise FileError(msg)
        return np.concatenate([self.values, self.alpha], axis=self.channel_axis)


@dataclass(frozen=True)
class How:
    """How to read: which columns of a table, whether pages are one volume, which axis of a bare array is of colours."""

    columns: tuple[str, ...] = ()
    volume: bool = False
    channel_axis: int | None = None


class Format(NamedTuple):
    """A kind of file."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, How], Data]
    write: Callable[[Path, Data], None]


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
        told = _first_line(error)
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
            msg = f"{path} cannot be written as {form.name} ({_first_line(error)}). Try another format, such as .npy."
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
        msg = f"{path} cannot be written ({error.strerror or _first_line(error)}). Try another name or folder."
        raise FileError(msg) from error
    finally:
        beside.unlink(missing_ok=True)


def converted(data: Data, dtype: np.dtype[Any]) -> Data:
    """Return the data in another type, in the same units: rounded and clipped if that holds integers."""
    if data.format == "WAV":  # samples stay in -1 to 1, whatever they are stored as
        if dtype.name not in _SUBTYPES:
            msg = f"WAV does not hold {dtype}. Say --dtype {' or '.join(_SUBTYPES)}."
            raise FileError(msg)
        return dataclasses.replace(data, kept=data.kept | {"subtype": _SUBTYPES[dtype.name]})
    values = data.values
    if dtype.kind in "iu" and values.dtype != dtype:
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            msg = f"NaN has no place in {dtype}. Choose a --dtype of floats."
            raise FileError(msg)
        info = np.iinfo(dtype)
        values = np.clip(np.rint(values), info.min, info.max)
    return dataclasses.replace(data, values=values.astype(dtype, copy=False))


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _check_bomb(path: Path, claimed: int) -> None:
    if claimed > max(_BOMB_BYTES, _BOMB_RATIO * path.stat().st_size):
        msg = (
            f"{path} claims to hold {claimed / 2**30:.1f} GiB, {claimed / path.stat().st_size:.0f} times its size, and "
            "may be a decompression bomb. If you trust it, save it without compression."
        )
        raise FileError(msg)


# PNG and JPEG, by Pillow.

_MODES = {2: "LA", 3: "RGB", 4: "RGBA"}


@contextlib.contextmanager
def _opened(path: Path, *formats: str) -> Iterator[Any]:
    from PIL import Image

    warnings.simplefilter("error", Image.DecompressionBombWarning)
    try:
        with Image.open(path, formats=formats) as image:
            yield image
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        msg = f"{path} may be a decompression bomb ({_first_line(error)}). If you trust it, convert it to TIFF."
        raise FileError(msg) from error


def _picture(image: Any, name: str, kept: Any) -> Data:
    values = np.asarray(image)
    if image.mode.startswith("I"):
        values = values.astype(np.uint16)
    if values.ndim == 2:
        return Data(values, name, kept=kept)
    if image.mode.endswith("A"):
        return Data(values[..., :-1], name, -1, alpha=values[..., -1:], kept=kept)
    return Data(values, name, -1, kept=kept)


def _image(data: Data, name: str, dtypes: dict[str, str]) -> Any:
    from PIL import Image

    values = data.everything()
    if data.channel_axis is not None:
        values = np.moveaxis(values, data.channel_axis, -1)
    if values.ndim == 3 and values.shape[-1] == 1:
        values = values[..., 0]
    if values.ndim not in (2, 3) or (
        values.ndim == 3 and (data.channel_axis is None or values.shape[-1] not in _MODES)
    ):
        msg = f"an array of shape {values.shape} is no {name} picture. Write TIFF or NPY."
        raise FileError(msg)
    if values.dtype.name not in dtypes:
        msg = f"{name} does not hold {values.dtype}. Say --dtype {' or '.join(dtypes)}, or write TIFF or NPY."
        raise FileError(msg)
    if values.ndim == 3 and values.dtype != np.uint8:
        msg = "Pillow writes colours of 8 bits only. Say --dtype uint8, or write TIFF or NPY."
        raise FileError(msg)
    mode = dtypes[values.dtype.name] if values.ndim == 2 else _MODES[values.shape[-1]]
    if mode == "RGBA" and data.alpha is None:
        mode = "CMYK"
    little = values.astype(values.dtype.newbyteorder("<"))
    return Image.frombytes(mode, values.shape[1::-1], little.tobytes())


def _read_png(path: Path, how: How) -> Data:
    with open(path, "rb") as file:
        depth, colour = file.read(26)[24:].ljust(2, b"\0")
    if depth == 16 and colour != 0:
        msg = f"{path} has 16 bits per colour, which Pillow would cut to 8. Convert it to TIFF first."
        raise FileError(msg)
    with _opened(path, "PNG") as image:
        if getattr(image, "n_frames", 1) > 1:
            msg = f"{path} is an animation of {image.n_frames} frames. Save them as a TIFF stack."
            raise FileError(msg)
        kept = {"text": dict(image.text), **image.info}
        # Indices into a palette cannot be denoised, nor can a colour that stands for transparent keep its meaning.
        plain = {"1": "L", "P": "RGB"}
        keyed = {"1": "L", "P": "RGBA", "L": "LA", "RGB": "RGBA"}
        mode = (keyed if "transparency" in image.info else plain).get(image.mode)
        return _picture(image.convert(mode) if mode else image, "PNG", kept)


def _write_png(path: Path, data: Data) -> None:
    from PIL.PngImagePlugin import PngInfo

    kept = data.kept or {}
    chunks = PngInfo()
    if "gamma" in kept:
        chunks.add(b"gAMA", struct.pack(">I", round(kept["gamma"] * 100_000)))
    if "srgb" in kept:
        chunks.add(b"sRGB", bytes([kept["srgb"]]))
    for key, text in kept.get("text", {}).items():
        chunks.add_text(key, text)
    options = {name: kept[name] for name in ("dpi", "exif", "icc_profile") if name in kept}
    _image(data, "PNG", {"uint8": "L", "uint16": "I;16"}).save(path, format="PNG", pnginfo=chunks, **options)


def _read_jpeg(path: Path, how: How) -> Data:
    with _opened(path, "JPEG", "MPO") as image:
        from PIL.JpegImagePlugin import get_sampling

        kept = {k: image.info[k] for k in ("dpi", "exif", "icc_profile", "comment") if k in image.info}
        kept["subsampling"] = get_sampling(image)
        return _picture(image, "JPEG", kept)


def _write_jpeg(path: Path, data: Data) -> None:
    if data.alpha is not None:
        msg = "JPEG has no transparency. Write PNG or TIFF."
        raise FileError(msg)
    options = {"subsampling": 0, **(data.kept or {})}
    _image(data, "JPEG", {"uint8": "L"}).save(path, format="JPEG", quality=_JPEG_QUALITY, **options)


# TIFF, by tifffile: page by page, each with its own tags.

_PALETTE, _YCBCR, _RATIONALS = 3, 6, (5, 10)
_ALPHA = (1, 2)
_LOSSLESS = (1, 5, 8, 32773, 32946, 34925, 50000)
_DEFLATE = 8

# Tags that tell how numbers are laid out, which the writer decides, or where in the file something else lies.
_LAYOUT = {
    *(254, 255, 256, 257, 258, 259, 262, 266, 273, 277, 278, 279, 282, 283, 284, 288, 289, 296, 317, 322, 323, 324),
    *(325, 330, 338, 339, 347, 400, 512, 513, 514, 529, 530, 531, 532, 32997, 32998, 34665, 34853, 40965),
}


def _read_tiff(path: Path, how: How) -> Data:
    import tifffile

    logging.getLogger("tifffile").disabled = True  # what is wrong is told by one error
    with tifffile.TiffFile(path) as file:
        pages = [file.pages[i].aspage() for i in range(len(file.pages))]
        first = pages[0]
        _check_bomb(path, first.nbytes * len(pages))
        alike = all((p.shape, p.dtype, p.axes) == (first.shape, first.dtype, first.axes) for p in pages)
        if not alike or first.axes not in ("YX", "YXS", "SYX"):
            msg = f"the {len(pages)} pages of {path} are not alike, or no plain pictures. Split it first."
            raise FileError(msg)
        if first.photometric == _PALETTE:
            msg = f"{path} has a palette, and indices cannot be denoised. Convert it to RGB first."
            raise FileError(msg)
        if file.series[0].size > first.size * len(pages):
            msg = f"{path} has fewer pages than it describes. Save it as BigTIFF first."
            raise FileError(msg)
        values = np.stack([page.asarray() for page in pages])
        kept = {"byteorder": file.byteorder, "bigtiff": file.is_bigtiff, "pages": [_page(p) for p in pages]}
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    axis = {"YX": None, "YXS": -1, "SYX": -3}[first.axes]
    alpha = None
    extra = sum(kind in _ALPHA for kind in first.extrasamples)
    if axis is not None and extra:
        values, alpha = np.split(values, [values.shape[axis] - extra], axis=axis)
    if len(pages) > 1:
        return Data(values, "TIFF", axis, None if how.volume else 0, alpha, kept)
    return Data(values[0], "TIFF", axis, None, None if alpha is None else alpha[0], kept)


def _page(page: Any) -> dict[str, Any]:
    """Return the options that make the writer repeat the page."""
    file = page.parent.filehandle
    tags = []
    for tag in page.tags:
        if tag.code in _LAYOUT:
            continue
        value = tag.value
        if tag.dtype not in _RATIONALS:
            file.seek(tag.valueoffset)
            value = file.read(tag.valuebytecount)
        tags.append((tag.code, int(tag.dtype), tag.count, value, False))
    tagged = {code: page.tags[code].value for code in (282, 283, 296) if code in page.tags}
    return {
        "photometric": "rgb" if page.photometric == _YCBCR else page.photometric,
        "planarconfig": page.planarconfig if page.samplesperpixel > 1 else None,
        "extrasamples": page.extrasamples or None,
        "compression": page.compression if page.compression in _LOSSLESS else _DEFLATE,
        "predictor": page.predictor,
        "tile": (page.tilelength, page.tilewidth) if page.is_tiled else None,
        "resolution": (tagged[282], tagged[283]) if {282, 283} <= set(tagged) else None,
        "resolutionunit": tagged.get(296),
        "extratags": tags,
    }


def _write_tiff(path: Path, data: Data) -> None:
    import tifffile

    values = data.everything()
    if data.kept is None:
        colours = data.channel_axis is not None and data.values.shape[data.channel_axis] == 3
        options: dict[str, Any] = {"photometric": "rgb" if colours else "minisblack", "metadata": None}
        if data.channel_axis is not None:
            values = np.moveaxis(values, data.channel_axis, -1)
            options["planarconfig"] = "contig"
        if data.alpha is not None:
            options["extrasamples"] = ["unassalpha"]
        tifffile.imwrite(path, values, **options)
        return
    pages = data.kept["pages"]
    # A float32 copy of a large stack of bytes may not fit into the 4 GiB of the old format.
    big = data.kept["bigtiff"] or values.nbytes > 2**32 - 2**25
    with tifffile.TiffWriter(path, bigtiff=big, byteorder=data.kept["byteorder"]) as file:
        for plane, page in zip(values if len(pages) > 1 else values[None], pages, strict=True):
            predictor = 2 if page["predictor"] == 2 and values.dtype.kind in "iu" else None
            options = page | {"predictor": predictor}
            file.write(plane, contiguous=False, metadata=None, software=False, **options)


# NPY, by NumPy; never unpickled.


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


def _read_npy(path: Path, how: How) -> Data:
    # Mapping compares the claimed size with that of the file before any memory is taken.
    values = load_npy(path, path, mmap_mode="r")
    axis = how.channel_axis
    if axis is not None and not -values.ndim <= axis < values.ndim:
        msg = f"--channel-axis must be an axis of {path}, which has {values.ndim}, got {axis}."
        raise FileError(msg)
    return Data(values, "NPY", None if axis is None else axis % values.ndim - values.ndim)


def _write_npy(path: Path, data: Data) -> None:
    np.save(path, data.everything(), allow_pickle=False)


# WAV, by soundfile: samples from -1 to 1.

_SUBTYPES = {"uint8": "PCM_U8", "int16": "PCM_16", "int32": "PCM_32", "float32": "FLOAT", "float64": "DOUBLE"}


def _read_wav(path: Path, how: How) -> Data:
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


def _write_wav(path: Path, data: Data) -> None:
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


# NIfTI, by nibabel.


def _read_nifti(path: Path, how: How) -> Data:
    import nibabel

    logging.getLogger("nibabel.global").disabled = True
    image: Any = nibabel.load(path)
    _check_bomb(path, math.prod(image.shape) * image.header.get_data_dtype().itemsize)
    values = np.asanyarray(image.dataobj)
    values = values.astype(values.dtype.newbyteorder("="))
    kept = {"image": image, "dtype": values.dtype}
    shape = [n for n in values.shape[:3] if n > 1] + list(values.shape[3:])
    in_time = values.ndim > 3 and values.shape[3] > 1
    return Data(values.reshape(shape if in_time else shape[:3]), "NIfTI", None, -1 if in_time else None, kept=kept)


def _write_nifti(path: Path, data: Data) -> None:
    image, dtype = data.kept["image"], data.kept["dtype"]
    header = image.header.copy()
    if data.values.dtype != dtype:
        header.set_data_dtype(data.values.dtype)
    type(image)(data.values.reshape(image.shape), image.affine, header).to_filename(path)


# CSV: cells that are not denoised stay as they are.


@dataclass(frozen=True, eq=False)
class Table:
    """A text of rows: what comes before the numbers, and the numbers as text."""

    rows: list[list[str]]
    start: int
    delimiter: str
    newline: str
    encoding: str

    @property
    def names(self) -> list[str]:
        """The names of the columns, or their numbers from 1."""
        width = max((len(row) for row in self.rows[self.start :]), default=0)
        above = self.rows[self.start - 1] if self.start else []
        if len(above) == width:
            return [cell.strip() for cell in above]
        return [str(k + 1) for k in range(width)]

    def column(self, name: str) -> int:
        """Return the place of a column, given by its name or its number from 1."""
        names = self.names
        if name in names:
            return names.index(name)
        if name.isdecimal() and 1 <= int(name) <= len(names):
            return int(name) - 1
        msg = f"there is no column {name!r}. There are {', '.join(names)}; or give a number from 1 to {len(names)}."
        raise FileError(msg)

    def numeric(self) -> list[int]:
        """Return the places of the columns that hold nothing but numbers."""
        rows = [row for row in self.rows[self.start :] if row]
        return [
            k
            for k in range(len(self.names))
            if all(k < len(row) and _number(row[k], self.delimiter) is not None for row in rows)
        ]

    def values(self, columns: Sequence[int]) -> NDArray[np.float64]:
        """Return columns as an array of shape (rows, columns); empty cells are NaN."""
        out = []
        for number, row in enumerate(self.rows[self.start :], self.start + 1):
            if row:
                cells = [_number(row[k], self.delimiter) if k < len(row) else None for k in columns]
                if None in cells:
                    k = columns[cells.index(None)]
                    found = repr(row[k]) if k < len(row) else "nothing"
                    msg = (
                        f"row {number}, column {self.names[k]!r} holds {found}, which is no number. Mend or remove it."
                    )
                    raise FileError(msg)
                out.append(cells)
        return np.array(out, dtype=np.float64).reshape(-1, len(columns))


def _number(cell: str, delimiter: str) -> float | None:
    """Return a cell as a number, NaN if it is empty, None if it holds something else."""
    cell = cell.strip()
    if cell.lower() in ("", "na", "null"):
        return math.nan
    try:
        return float(cell if delimiter == "," else cell.replace(",", "."))
    except ValueError:
        return None


def parse_table(raw: bytes) -> Table:
    """Return a text of numbers as a table; what separates the columns is seen from the text."""
    encoding = "utf-8-sig" if raw.startswith(b"\xef\xbb\xbf") else "utf-8"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        encoding = "latin-1"
        text = raw.decode(encoding)
    # Titles come first: the later half of the first lines tells what separates the columns.
    lines = [line for line in text[:100_000].splitlines()[:200] if line.strip()]
    counts = {d: {line.count(d) for line in lines[len(lines) // 2 :]} for d in "\t;,| "}
    alike = [d for d, found in counts.items() if len(found) == 1 and found != {0}]
    delimiter = alike[0] if alike else ","
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    start = 0
    for start, row in enumerate(rows):  # noqa: B007
        if any(math.isfinite(v) for cell in row if (v := _number(cell, delimiter)) is not None):
            break
    else:
        msg = "there are no numbers in it"
        raise FileError(msg)
    return Table(rows, start, delimiter, "\r\n" if "\r\n" in text else "\n", encoding)


def _read_csv(path: Path, how: How) -> Data:
    try:
        table = parse_table(path.read_bytes())
        columns = [table.column(name) for name in how.columns] or table.numeric()
        if not how.columns and len(columns) != 1:
            msg = f"it has the columns {', '.join(table.names)}. Choose one or more with --column"
            raise FileError(msg)
        values = table.values(columns)
    except FileError as error:
        msg = f"{path}: {str(error).rstrip('.')}."
        raise FileError(msg) from error
    kept = {"table": table, "columns": columns}
    if len(columns) == 1:
        return Data(values[:, 0], "CSV", kept=kept)
    return Data(values, "CSV", stack_axis=1, kept=kept)


def _write_csv(path: Path, data: Data) -> None:
    table, columns = data.kept["table"], data.kept["columns"]
    values = iter(data.values.reshape(-1, len(columns)).tolist())
    comma = table.delimiter != "," and any("," in row[k] for row in table.rows[table.start :] if row for k in columns)
    rows = []
    for number, row in enumerate(table.rows):
        row = list(row)
        if row and number >= table.start:
            for k, value in zip(columns, next(values), strict=True):
                if not math.isnan(value):
                    row[k] = f"{value:.12g}".replace(".", "," if comma else ".")
        rows.append(row)
    with open(path, "w", newline="", encoding=table.encoding) as file:
        csv.writer(file, delimiter=table.delimiter, lineterminator=table.newline).writerows(rows)


FORMATS = (
    Format("PNG", (".png",), _read_png, _write_png),
    Format("JPEG", (".jpg", ".jpeg"), _read_jpeg, _write_jpeg),
    Format("TIFF", (".tif", ".tiff"), _read_tiff, _write_tiff),
    Format("NPY", (".npy",), _read_npy, _write_npy),
    Format("WAV", (".wav",), _read_wav, _write_wav),
    Format("NIfTI", (".nii", ".nii.gz"), _read_nifti, _write_nifti),
    Format("CSV", (".csv", ".tsv", ".txt"), _read_csv, _write_csv),
)
