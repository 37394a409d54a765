"""PNG and JPEG, by Pillow."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from .data import Data, FileError, ReadOptions
from .guards import check_bomb

# Trades file size for artefacts, which would look like noise when the picture is denoised again.
_JPEG_QUALITY = 95
_MODES = {2: "LA", 3: "RGB", 4: "RGBA"}


def _check_size(path: Path, image: Any) -> None:
    """Raise if the picture, not decoded yet, claims to be too large."""
    from PIL import Image

    entries = image.width * image.height * len(image.getbands())
    check_bomb(path, entries * (2 if image.mode.startswith("I") else 1))
    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and image.width * image.height > limit:
        msg = (
            f"{path} has {image.width} x {image.height} pixels, more than the {limit} that Pillow takes for safe. "
            "If you trust it, convert it to TIFF."
        )
        raise FileError(msg)


def _to_data(image: Any, name: str, metadata: Any) -> Data:
    values = np.asarray(image)
    if image.mode.startswith("I"):
        values = values.astype(np.uint16)
    if values.ndim == 2:
        return Data(values, name, metadata=metadata)
    if image.mode.endswith("A"):
        return Data(values[..., :-1], name, -1, alpha=values[..., -1:], metadata=metadata)
    return Data(values, name, -1, metadata=metadata)


def _to_image(data: Data, name: str, dtypes: dict[str, str]) -> Any:
    """Return the data as a Pillow image; `dtypes` maps the dtypes that the format holds to modes of grey pictures."""
    from PIL import Image

    values = data.with_alpha()
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


def read_png(path: Path, options: ReadOptions) -> Data:
    """Read a PNG file."""
    from PIL.PngImagePlugin import PngImageFile

    with open(path, "rb") as file:
        depth, colour = file.read(26)[24:].ljust(2, b"\0")
    if depth == 16 and colour != 0:
        msg = f"{path} has 16 bits per colour, which Pillow would cut to 8. Convert it to TIFF first."
        raise FileError(msg)
    with open(path, "rb") as file, PngImageFile(file) as image:
        _check_size(path, image)
        if getattr(image, "n_frames", 1) > 1:
            msg = f"{path} is an animation of {image.n_frames} frames. Save them as a TIFF stack."
            raise FileError(msg)
        metadata = {"text": dict(image.text), **image.info}
        # Indices into a palette are no grey levels, and a colour that means transparent changes when it is denoised.
        plain = {"1": "L", "P": "RGB"}
        keyed = {"1": "L", "P": "RGBA", "L": "LA", "RGB": "RGBA"}
        mode = (keyed if "transparency" in image.info else plain).get(image.mode)
        return _to_data(image.convert(mode) if mode else image, "PNG", metadata)


def write_png(path: Path, data: Data) -> None:
    """Write a PNG file."""
    from PIL.PngImagePlugin import PngInfo

    metadata = data.metadata or {}
    chunks = PngInfo()
    if "gamma" in metadata:
        chunks.add(b"gAMA", struct.pack(">I", round(metadata["gamma"] * 100_000)))
    if "srgb" in metadata:
        chunks.add(b"sRGB", bytes([metadata["srgb"]]))
    for key, text in metadata.get("text", {}).items():
        chunks.add_text(key, text)
    options = {name: metadata[name] for name in ("dpi", "exif", "icc_profile") if name in metadata}
    _to_image(data, "PNG", {"uint8": "L", "uint16": "I;16"}).save(path, format="PNG", pnginfo=chunks, **options)


def read_jpeg(path: Path, options: ReadOptions) -> Data:
    """Read a JPEG file; if it holds several pictures (MPO), the first."""
    from PIL.JpegImagePlugin import JpegImageFile, get_sampling

    # The class and not Image.open, which would also read the index of the further pictures.
    with open(path, "rb") as file, JpegImageFile(file) as image:
        _check_size(path, image)
        metadata = {k: image.info[k] for k in ("dpi", "exif", "icc_profile", "comment") if k in image.info}
        metadata["subsampling"] = get_sampling(image)
        return _to_data(image, "JPEG", metadata)


def write_jpeg(path: Path, data: Data) -> None:
    """Write a JPEG file."""
    if data.alpha is not None:
        msg = "JPEG has no transparency. Write PNG or TIFF."
        raise FileError(msg)
    options = {"subsampling": 0, **(data.metadata or {})}
    _to_image(data, "JPEG", {"uint8": "L"}).save(path, format="JPEG", quality=_JPEG_QUALITY, **options)
