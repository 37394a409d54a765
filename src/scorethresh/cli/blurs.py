"""Blurs as the command line names them, ``gaussian:1.5``, and point spread functions in files."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import PsfSelection, box_psf, disk_psf, gaussian_psf, io, motion_psf, select_psf

AUTO = "auto"


@dataclass(frozen=True)
class Family:
    """A shape of blur: its function, the sizes that ``auto`` tries, and an example.

    The grids are as fine as the choice is precise.
    """

    psf: Callable[..., Any]
    grid: Any
    example: str
    whole: bool = False
    any_ndim: bool = False
    turns: bool = False


FAMILIES = {
    "gaussian": Family(gaussian_psf, np.arange(0.4, 5.05, 0.1), "gaussian:1.5", any_ndim=True),
    "disk": Family(disk_psf, np.arange(1.0, 10.1, 0.25), "disk:3"),
    "box": Family(box_psf, np.arange(3, 23, 2), "box:5", whole=True, any_ndim=True),
    "motion": Family(motion_psf, np.arange(2.0, 31.0), "motion:9:45 (length, angle)", turns=True),
}


@dataclass(frozen=True)
class NamedBlur:
    """A blur given by its name; its size is None if it is to be found."""

    text: str
    family: Family
    size: float | None
    angle: float

    def function(self, ndim: int) -> Callable[[float], Any]:
        """Return the point spread function as a function of its size."""
        options: dict[str, Any] = {"ndim": ndim} if self.family.any_ndim else {}
        if self.family.turns:
            options["angle"] = self.angle
        cast = int if self.family.whole else float
        return lambda size: functools.partial(self.family.psf, **options)(cast(size))

    def choose(self, y: Any, ndim: int, *, sigma: float | None, channel_axis: int | None) -> PsfSelection:
        """Return the size of least estimated risk, among those that fit into the data several times."""
        sides = [n for k, n in enumerate(y.shape) if channel_axis is None or k != channel_axis % y.ndim]
        function = self.function(ndim)
        grid = [size for size in self.family.grid if all(4 * k <= n for k in function(size).shape for n in sides)]
        if len(grid) < 3:
            msg = f"--blur {self.text} needs larger data than {' x '.join(map(str, sides))}. Give the size as a number."
            raise ValueError(msg)
        return select_psf(y, function, np.array(grid), sigma=sigma, channel_axis=channel_axis)


def parse_blur(text: str) -> NamedBlur:
    """Return the blur that a text such as ``motion:9:45`` means."""
    name, *numbers = text.split(":")
    family = FAMILIES.get(name.lower())
    examples = ", ".join(one.example for one in FAMILIES.values())
    wrong = f"--blur takes a name and a size, such as {examples}, or gaussian:auto; got {text!r}."
    if family is None or not 1 <= len(numbers) <= 1 + family.turns:
        raise ValueError(wrong)
    try:
        size = None if numbers[0] == AUTO else float(numbers[0])
        angle = float(numbers[1]) if len(numbers) > 1 else 0.0
    except ValueError:
        raise ValueError(wrong) from None
    if size is not None and (not 0 < size < np.inf or (family.whole and size != int(size))):
        kind = "whole number" if family.whole else "number"
        msg = f"--blur {name}: its size must be a positive {kind}, got {numbers[0]}."
        raise ValueError(msg)
    return NamedBlur(text, family, size, angle)


def read_psf(path: Path, ndim: int) -> tuple[Any, list[str]]:
    """Return the point spread function in a file, divided by its sum, and notes that say so."""
    pages = io.format_of(path).name in ("TIFF", "DICOM")
    data = io.read(path, io.ReadOptions(volume=ndim == 3 and pages)).merge_equal_channels()
    if data.channel_axis is not None:
        msg = f"{path} has colours, but a point spread function has one channel. Save it as grey levels."
        raise io.FileError(msg)
    values = data.values.squeeze() if data.values.ndim > ndim else data.values
    if values.dtype.kind not in "fiu" or values.ndim != ndim or not np.isfinite(values).all():
        msg = f"{path} holds {values.dtype} of shape {values.shape}; the data need finite numbers with {ndim} axes."
        raise io.FileError(msg)
    total = float(values.sum())
    if not total > 0:
        msg = f"{path} sums to {total:g}. A point spread function holds light: pass one with a positive sum."
        raise io.FileError(msg)
    notes = (
        [] if abs(total - 1) < 1e-3 else [f"{path} sums to {total:.6g}; it was divided by it, so that light is kept."]
    )
    return values.astype(np.float64) / total, notes
