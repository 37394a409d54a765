"""PNG, JPEG, BMP and WebP, by Pillow; colours of 16 bits, which Pillow would cut to 8, by imagecodecs."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import Data, FileError, ReadOptions
from .guards import check_bomb

# Trades file size for artefacts, which would look like noise when the picture is denoised again.
_JPEG_QUALITY = 95
_MODES = {2: "LA", 3: "RGB", 4: "RGBA"}

# Indices into a palette are no grey levels, and a colour that means transparent changes when it is denoised.
_PLAIN = {"1": "L", "P": "RGB"}
_KEYED = {"1": "L", "P": "RGBA", "L": "LA", "RGB": "RGBA"}

# How many bytes stand before the chunks of a PNG file, and what every chunk has besides its content.
_PNG_SIGNATURE, _PNG_CHUNK = 8, 12


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


def _pixels(data: Data, name: str, dtypes: tuple[str, ...]) -> NDArray[Any]:
    """Return the pixels, with colours last; raise if they are no picture of the dtypes that the format holds."""
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
    return values


def _to_image(data: Data, pixels: NDArray[Any]) -> Any:
    """Return pixels of 8 bits, or grey ones of 16, as a Pillow image."""
    from PIL import Image

    grey = {"uint8": "L", "uint16": "I;16"}
    mode = grey[pixels.dtype.name] if pixels.ndim == 2 else _MODES[pixels.shape[-1]]
    if mode == "RGBA" and data.alpha is None:
        mode = "CMYK"
    little = pixels.astype(pixels.dtype.newbyteorder("<"))
    return Image.frombytes(mode, pixels.shape[1::-1], little.tobytes())


def read_png(path: Path, options: ReadOptions) -> Data:
    """Read a PNG file."""
    from PIL.PngImagePlugin import PngImageFile

    with open(path, "rb") as file:
        depth, colour = file.read(26)[24:].ljust(2, b"\0")
    with open(path, "rb") as file, PngImageFile(file) as image:
        _check_size(path, image)
        _check_still(path, image)
        metadata = {"text": dict(image.text), **image.info}
        if depth == 16 and colour != 0:
            check_bomb(path, 2 * image.width * image.height * len(image.getbands()))
            image.load()  # checks the file: what comes after the pixels is not looked at below
            return _wide_colours(path, metadata, opaque=colour in (2,))
        mode = (_KEYED if "transparency" in image.info else _PLAIN).get(image.mode)
        return _to_data(image.convert(mode) if mode else image, "PNG", metadata)


def _check_still(path: Path, image: Any) -> None:
    if getattr(image, "n_frames", 1) > 1:
        msg = f"{path} is an animation of {image.n_frames} frames. Save them as a TIFF stack."
        raise FileError(msg)


def _wide_colours(path: Path, metadata: Any, *, opaque: bool) -> Data:
    """Read colours of 16 bits."""
    import imagecodecs

    data = Data(imagecodecs.png_decode(path.read_bytes()), "PNG", -1, metadata=metadata)
    # A colour that means transparent is decoded as opacity.
    return data.with_opacity(0 if opaque and data.values.shape[-1] == 3 else 1)


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
    pixels = _pixels(data, "PNG", ("uint8", "uint16"))
    if pixels.ndim == 2 or pixels.dtype == np.uint8:
        _to_image(data, pixels).save(path, format="PNG", pnginfo=chunks, **options)
        return
    import imagecodecs
    from PIL import Image

    # Pillow writes the metadata of a picture of one pixel, which are put before these pixels.
    small = BytesIO()
    Image.new("RGB", (1, 1)).save(small, format="PNG", pnginfo=chunks, **options)
    large = imagecodecs.png_encode(np.ascontiguousarray(pixels))
    head = _PNG_SIGNATURE + _PNG_CHUNK + 13
    path.write_bytes(large[:head] + _ancillary(small.getvalue()[head:]) + large[head:])


def _ancillary(chunks: bytes) -> bytes:
    """Return the chunks of a PNG file that hold no pixels, up to its end."""
    out, start = b"", 0
    while start < len(chunks):
        length, kind = struct.unpack(">I4s", chunks[start : start + 8])
        end = start + length + _PNG_CHUNK
        if kind not in (b"IDAT", b"IEND"):
            out += chunks[start:end]
        start = end
    return out


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
    image = _to_image(data, _pixels(data, "JPEG", ("uint8",)))
    image.save(path, format="JPEG", quality=_JPEG_QUALITY, **options)


def read_bmp(path: Path, options: ReadOptions) -> Data:
    """Read a BMP file."""
    from PIL.BmpImagePlugin import BmpImageFile

    with open(path, "rb") as file, BmpImageFile(file) as image:
        _check_size(path, image)
        metadata = {"dpi": image.info["dpi"]} if "dpi" in image.info else {}
        mode = _PLAIN.get(image.mode)
        return _to_data(image.convert(mode) if mode else image, "BMP", metadata)


def write_bmp(path: Path, data: Data) -> None:
    """Write a BMP file."""
    if data.alpha is not None:
        msg = "BMP has no transparency. Write PNG or TIFF."
        raise FileError(msg)
    _to_image(data, _pixels(data, "BMP", ("uint8",))).save(path, format="BMP", **(data.metadata or {}))


def read_webp(path: Path, options: ReadOptions) -> Data:
    """Read a WebP file."""
    from PIL.WebPImagePlugin import WebPImageFile

    with open(path, "rb") as file, WebPImageFile(file) as image:
        _check_size(path, image)
        _check_still(path, image)
        metadata = {k: image.info[k] for k in ("exif", "icc_profile", "xmp") if k in image.info}
        return _to_data(image.convert("RGB") if image.mode == "RGBX" else image, "WebP", metadata)


def write_webp(path: Path, data: Data) -> None:
    """Write a WebP file, without loss: its artefacts would look like noise."""
    pixels = _pixels(data, "WebP", ("uint8",))
    _to_image(data, pixels).save(path, format="WEBP", lossless=True, exact=True, **(data.metadata or {}))
