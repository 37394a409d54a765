"""TIFF, by tifffile: page by page, each with its own tags, and the axes that OME or ImageJ metadata name."""

from __future__ import annotations

import lzma
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .axes import Axes, understood_axes
from .data import Data, FileError, ReadOptions
from .guards import BOMB_BYTES, check_bomb, silenced

_PALETTE, _YCBCR, _RATIONALS = 3, 6, (5, 10)
_ALPHA = (1, 2)
_LOSSLESS = (1, 5, 8, 32946, 34925, 50000)
_DEFLATE = 8
_LZMA = 34925
# Compressions that tifffile undoes by functions of Python, which have no limit.
_INFLATED = (_DEFLATE, 32946, _LZMA)
# Bytes that one byte can inflate to: 1032 by deflate, and some 7000 by LZMA.
_MAX_INFLATION = 7000

# Tags that describe the layout of the numbers, which the writer decides, or that point to other places in the file.
_LAYOUT = {
    *(254, 255, 256, 257, 258, 259, 262, 266, 273, 277, 278, 279, 282, 283, 284, 288, 289, 296, 317, 322, 323, 324),
    *(325, 330, 338, 339, 347, 400, 512, 513, 514, 529, 530, 531, 532, 32997, 32998, 34665, 34853, 40965),
}


def read_tiff(path: Path, options: ReadOptions) -> Data:
    """Read a TIFF file."""
    import tifffile

    with silenced("tifffile"), tifffile.TiffFile(path) as file:
        pages = [file.pages[i].aspage() for i in range(len(file.pages))]
        first = pages[0]
        # A tile is decoded whole, even if the picture is smaller.
        page_bytes = max(first.nbytes, math.prod(first.chunks) * first.dtype.itemsize)
        check_bomb(path, page_bytes * len(pages))
        alike = all((p.shape, p.dtype, p.axes) == (first.shape, first.dtype, first.axes) for p in pages)
        if not alike or first.axes not in ("YX", "YXS", "SYX"):
            msg = f"the {len(pages)} pages of {path} differ, or are no plain pictures. Split it first."
            raise FileError(msg)
        if first.photometric == _PALETTE:
            msg = f"{path} has a palette, whose indices cannot be denoised. Convert it to RGB first."
            raise FileError(msg)
        if file.series[0].size > first.size * len(pages):
            msg = f"{path} has fewer pages than it describes. Save it as BigTIFF first."
            raise FileError(msg)
        for page in pages:
            _check_segments(path, page)
        values = np.stack([page.asarray() for page in pages])
        written = [_page_options(page) for page in pages]
        axes, order = _axes_of(file, pages)
        metadata = {"byteorder": file.byteorder, "bigtiff": file.is_bigtiff, "pages": written, "order": order}
        metadata["page_ndim"] = len(first.shape)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)[order]
    axes = understood_axes(path, axes, first.axes, options)
    data = axes.label(values.reshape(axes.shape), "TIFF", metadata)
    return data.with_opacity(sum(kind in _ALPHA for kind in first.extrasamples))


def _axes_of(file: Any, pages: list[Any]) -> tuple[Axes, NDArray[np.intp]]:
    """Return the axes that the metadata name, and where the page of each place is in the file.

    Several series, such as positions of a stage, are pages without a meaning.
    """
    series, first = file.series[0], pages[0]
    whole = np.arange(len(pages))
    leading = len(series.shape) - len(first.shape)
    named = (
        len(file.series) == 1
        and series.size == first.size * len(pages)
        and leading >= 0
        and series.axes[leading:] == first.axes
        and series.shape[leading:] == first.shape
    )
    if named:
        places = {page.offset: k for k, page in enumerate(pages)}
        listed = [None if page is None else places.get(page.offset) for page in series.pages]
        if len(listed) == len(pages) and sorted(k for k in listed if k is not None) == whole.tolist():
            whole = np.array(listed)
        kind = "OME" if file.is_ome else "ImageJ" if file.is_imagej else "metadata"
        known = set(series.axes[:leading]) - set("IQ")
        letters = series.axes[:leading].replace("Q", "I") + first.axes
        if len(set(letters)) == len(letters):
            return Axes(letters, series.shape, kind if known else ""), whole
    if len(pages) == 1:
        return Axes(first.axes, first.shape), whole
    return Axes("I" + first.axes, (len(pages), *first.shape)), whole


def _check_segments(path: Path, page: Any) -> None:
    """Raise if a strip or tile would inflate to more than its size in the picture; decoders have no limit."""
    if page.compression not in _INFLATED:
        return
    most = math.prod(page.chunks) * page.dtype.itemsize
    file = page.parent.filehandle
    for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
        if size * _MAX_INFLATION <= BOMB_BYTES:
            continue
        file.seek(offset)
        decoder = lzma.LZMADecompressor() if page.compression == _LZMA else zlib.decompressobj()
        if len(decoder.decompress(file.read(size), most + 1)) > most:
            msg = (
                f"a strip or tile of {path} inflates beyond the {most} bytes that it claims, and may be a "
                "decompression bomb. If you trust it, save it as TIFF without compression."
            )
            raise FileError(msg)


def _page_options(page: Any) -> dict[str, Any]:
    """Return the options of the writer that give a page with the same layout and tags."""
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


def write_tiff(path: Path, data: Data) -> None:
    """Write a TIFF file."""
    import tifffile

    values = data.with_alpha()
    if data.metadata is None:
        colours = data.channel_axis is not None and data.values.shape[data.channel_axis] == 3
        options: dict[str, Any] = {"photometric": "rgb" if colours else "minisblack", "metadata": None}
        if data.channel_axis is not None:
            values = np.moveaxis(values, data.channel_axis, -1)
            options["planarconfig"] = "contig"
        if data.alpha is not None:
            options["extrasamples"] = ["unassalpha"]
        tifffile.imwrite(path, values, **options)
        return
    pages = data.metadata["pages"]
    page_shape = values.shape[values.ndim - data.metadata["page_ndim"] :]
    values = values.reshape(-1, *page_shape)[np.argsort(data.metadata["order"])]
    # The old format ends at 4 GiB. A stack of bytes below it may exceed it as float32.
    big = data.metadata["bigtiff"] or values.nbytes > 2**32 - 2**25
    # The description is among the tags. For a name that ends in .ome.tif the writer would make up another.
    with tifffile.TiffWriter(path, bigtiff=big, byteorder=data.metadata["byteorder"], ome=False) as file:
        for plane, page in zip(values, pages, strict=True):
            predictor = 2 if page["predictor"] == 2 and values.dtype.kind in "iu" else None
            options = page | {"predictor": predictor}
            file.write(plane, contiguous=False, metadata=None, software=False, **options)
