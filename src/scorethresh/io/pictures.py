"""PNG and JPEG, by Pillow."""

from __future__ import annotations

import contextlib
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .data import Data, FileError, How, first_line

_JPEG_QUALITY = 95
_MODES = {2: "LA", 3: "RGB", 4: "RGBA"}


@contextlib.contextmanager
def _opened(path: Path, *formats: str) -> Iterator[Any]:
    from PIL import Image

    warnings.simplefilter("error", Image.DecompressionBombWarning)
    try:
        with Image.open(path, formats=formats) as image:
            yield image
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        msg = f"{path} may be a decompression bomb ({first_line(error)}). If you trust it, convert it to TIFF."
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


def read_png(path: Path, how: How) -> Data:
    """Read a PNG file."""
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


def write_png(path: Path, data: Data) -> None:
    """Write a PNG file."""
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


def read_jpeg(path: Path, how: How) -> Data:
    """Read a JPEG file."""
    with _opened(path, "JPEG", "MPO") as image:
        from PIL.JpegImagePlugin import get_sampling

        kept = {k: image.info[k] for k in ("dpi", "exif", "icc_profile", "comment") if k in image.info}
        kept["subsampling"] = get_sampling(image)
        return _picture(image, "JPEG", kept)


def write_jpeg(path: Path, data: Data) -> None:
    """Write a JPEG file."""
    if data.alpha is not None:
        msg = "JPEG has no transparency. Write PNG or TIFF."
        raise FileError(msg)
    options = {"subsampling": 0, **(data.kept or {})}
    _image(data, "JPEG", {"uint8": "L"}).save(path, format="JPEG", quality=_JPEG_QUALITY, **options)
