"""FITS, by astropy: the image of one extension; the others stay as they are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import labelled
from .data import Data, FileError, ReadOptions
from .guards import check_bomb, silenced
from .words import listed, shorten


def read_fits(path: Path, options: ReadOptions) -> Data:
    """Read a FITS file: the only image in it, or that of the extension `options.key`. Values are scaled as it says."""
    from astropy.io import fits

    with silenced("astropy"), fits.open(path, memmap=False) as file:
        images = {_name(k, hdu): hdu for k, hdu in enumerate(file) if hdu.is_image and math.prod(hdu.shape or (0,))}
        chosen = _chosen(path, images, options.key)
        for hdu in images.values():
            check_bomb(path, math.prod(hdu.shape) * abs(int(hdu.header.get("BITPIX", 8))) // 8)
        loaded = fits.HDUList([hdu.copy() for hdu in file])
        index = [hdu is chosen for hdu in file].index(True)
        values = np.asarray(loaded[index].data)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    # Axes of one entry, such as the polarisation of a radio map, are none.
    plain = values.reshape([n for n in values.shape if n > 1] or [1])
    return labelled(path, plain, "FITS", options, {"hdus": loaded, "index": index, "shape": values.shape})


def _name(k: int, hdu: Any) -> str:
    """Return what an extension is called: its name and version if it has one, else its number."""
    if not hdu.name or hdu.name == "PRIMARY":
        return str(k)
    return str(hdu.name) if hdu.ver == 1 else f"{hdu.name},{hdu.ver}"


def _chosen(path: Path, images: dict[str, Any], key: str) -> Any:
    """Return the extension that is meant."""
    if not images:
        msg = f"{path} holds no image, only tables or headers. Choose a file with an image."
        raise FileError(msg)
    if not key and len(images) == 1:
        return next(iter(images.values()))
    if key.upper() in images:
        return images[key.upper()]
    given = f"no image {shorten(key)!r}" if key else f"{len(images)} images"
    msg = f"{path} holds {given}. Choose one of {listed(list(images))} with --key."
    raise FileError(msg)


def write_fits(path: Path, data: Data) -> None:
    """Write a FITS file: the headers and the other extensions of the original."""
    from astropy.io import fits

    metadata = data.metadata
    hdus = fits.HDUList([hdu.copy() for hdu in metadata["hdus"]])
    changed = hdus[metadata["index"]]
    changed.data = data.values.reshape(metadata["shape"])
    if isinstance(changed, fits.CompImageHDU) and data.values.dtype.kind == "f":
        # By default floats are rounded to a part of their noise, of which little is left.
        lossless = {"compression_type": "GZIP_2", "quantize_level": 0}
        changed = fits.CompImageHDU(changed.data, changed.header, name=changed.name, **lossless)
        hdus[metadata["index"]] = changed
    changed.header.add_history("Denoised by scorethresh")
    summed = any("CHECKSUM" in hdu.header for hdu in hdus)
    with silenced("astropy"):
        hdus.writeto(path, output_verify="silentfix", checksum=summed)
