"""DICOM, by pydicom: the stored values of a picture or of its frames."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from .axes import Axes, understood_axes
from .data import Data, FileError, ReadOptions
from .guards import check_bomb, silenced

_GREY = ("MONOCHROME1", "MONOCHROME2")


def read_dicom(path: Path, options: ReadOptions) -> Data:
    """Read a DICOM file. Values are those stored, before slope, intercept and window."""
    import pydicom

    with silenced("pydicom"):
        dataset = pydicom.dcmread(path)
        if "PixelData" not in dataset:
            msg = f"{path} holds no picture. Choose a DICOM file with pixel data."
            raise FileError(msg)
        frames = int(dataset.get("NumberOfFrames") or 1)
        colours = int(dataset.SamplesPerPixel)
        shape = (frames, int(dataset.Rows), int(dataset.Columns), colours)
        check_bomb(path, math.prod(shape) * int(dataset.BitsAllocated) // 8)
        interpretation = str(dataset.PhotometricInterpretation)
        if interpretation not in _GREY and not (interpretation == "RGB" and colours == 3):
            msg = f"{path} holds {interpretation} pixels. Convert it to grey levels or RGB first."
            raise FileError(msg)
        values = dataset.pixel_array
    letters = ("I" if frames > 1 else "") + ("YX" if colours == 1 else "YXS")
    read = Axes(letters, values.shape)
    axes = understood_axes(path, read, letters.removeprefix("I"), options)
    return axes.label(values.reshape(axes.shape), "DICOM", {"dataset": dataset, "shape": values.shape})


def write_dicom(path: Path, data: Data) -> None:
    """Write a DICOM file: the tags of the original, marked as derived from it."""
    import copy

    from pydicom.uid import ExplicitVRLittleEndian, generate_uid

    dataset: Any = copy.deepcopy(data.metadata["dataset"])
    values = data.values.reshape(data.metadata["shape"])
    stored = np.dtype(f"{'i' if dataset.PixelRepresentation else 'u'}{dataset.BitsAllocated // 8}")
    if values.dtype != stored:
        msg = f"this DICOM file holds {stored}, not {values.dtype}. Leave --dtype out, or write TIFF or NPY."
        raise FileError(msg)
    bits = int(dataset.BitsStored)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dataset.PixelRepresentation else (0, (1 << bits) - 1)
    little = np.clip(values, low, high).astype(stored.newbyteorder("<"))
    content = little.tobytes()
    if "PlanarConfiguration" in dataset:
        dataset.PlanarConfiguration = 0  # colours last, as pixel_array gives them
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.PixelData = content + b"\0" * (len(content) % 2)
    dataset["PixelData"].VR = "OW" if stored.itemsize > 1 else "OB"
    dataset["PixelData"].is_undefined_length = False
    # A changed picture is another instance; the same one for the same numbers.
    old = str(dataset.get("SOPInstanceUID", ""))
    dataset.SOPInstanceUID = generate_uid(entropy_srcs=[old, content.hex()[:4096]])
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    kind = list(dataset.get("ImageType") or ["ORIGINAL", "PRIMARY"])
    dataset.ImageType = ["DERIVED", *kind[1:]]
    dataset.DerivationDescription = "Denoised by scorethresh"
    dataset.save_as(path, enforce_file_format=True, little_endian=True, implicit_vr=False)
