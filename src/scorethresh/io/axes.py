"""The meaning of axes, by letters: Z, Y, X are space, S colours; along any other, parts are denoised by themselves."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .data import Data, FileError, ReadOptions

SPACE = "ZYX"
COLOURS = "S"

# What one part along an axis is called. Any other letter is a page.
NAMES = {"T": "time", "C": "channel"}

# What a part is called by the number of its axes of space.
KINDS = {1: "signal", 2: "picture", 3: "volume"}


@dataclass(frozen=True)
class Axes:
    """Axes with a letter each.

    Attributes
    ----------
    letters : str
        One letter per axis.
    shape : tuple of int
        Their lengths.
    origin : str
        Where the letters come from, such as ``ImageJ``; empty if nobody said.
    """

    letters: str
    shape: tuple[int, ...]
    origin: str = ""

    @property
    def channel_axis(self) -> int | None:
        """The axis of colours, counted from the end; None if there is none."""
        return self.letters.index(COLOURS) - len(self.letters) if COLOURS in self.letters else None

    @property
    def stack_axes(self) -> tuple[int, ...]:
        """The axes along which parts are denoised by themselves."""
        flat = [letter == "Z" and n == 1 for letter, n in zip(self.letters, self.shape, strict=True)]
        return tuple(k for k, letter in enumerate(self.letters) if letter not in SPACE + COLOURS or flat[k])

    @property
    def stack_names(self) -> tuple[str, ...]:
        """What one part along each of `stack_axes` is called."""
        return tuple(NAMES.get(self.letters[k], "page") for k in self.stack_axes)

    def label(self, values: NDArray[Any], form: str, metadata: Any = None) -> Data:
        """Return values of this shape with the meaning of their axes."""
        return Data(
            values,
            form,
            self.channel_axis,
            self.stack_axes,
            self.stack_names,
            metadata=metadata,
            understood=self.describe(),
        )

    def describe(self) -> str:
        """Return what was understood as a sentence; empty if there is one part and nothing to say."""
        parts = [
            f"{self.shape[k]} {name if name == 'time' else name + 's'}".replace("time", "times")
            for k, name in zip(self.stack_axes, self.stack_names, strict=True)
            if self.shape[k] > 1 or not self.origin
        ]
        inside = set(range(len(self.shape))) - set(self.stack_axes)
        sides = [n for k, n in enumerate(self.shape) if k in inside and self.letters[k] in SPACE]
        kind = f"a {KINDS.get(len(sides), 'part')} of {' x '.join(map(str, sides))}"
        if COLOURS in self.letters:
            kind += f" in {self.shape[self.letters.index(COLOURS)]} colours"
        if not parts:
            return f"axes {self.letters} ({self.origin}): {kind}" if self.origin and "Z" in self.letters else ""
        words = f"{' x '.join(parts)}, each {kind} denoised by itself"
        if self.origin:
            return f"axes {self.letters} ({self.origin}): {words}"
        return f"{words}; if they are a volume: --axes {self.letters.replace('I', 'Z')}; if a series: --series"


def parse_axes(text: str) -> tuple[tuple[str, int | None], ...]:
    """Return the letters and lengths of ``--axes``, such as ``ZC2YX``; a length that is not given is None.

    Examples
    --------
    >>> parse_axes("ZC2YX")
    (('Z', None), ('C', 2), ('Y', None), ('X', None))
    """
    found = re.findall(r"([A-Z])([0-9]*)", text.upper())
    letters = [letter for letter, _ in found]
    if "".join(letter + number for letter, number in found) != text.upper() or len(set(letters)) < len(letters):
        msg = f"--axes must be different letters, such as ZCYX or ZC2YX, got {text!r}."
        raise FileError(msg)
    if "X" not in letters:
        msg = f"--axes {text} has no X. Name every axis: Z, Y, X space, S colours, C channels, T times."
        raise FileError(msg)
    return tuple((letter, int(number) if number else None) for letter, number in found)


def name_axes(path: Path, text: str, shape: tuple[int, ...]) -> Axes:
    """Return the axes of an array of this shape, as ``--axes`` names them."""
    named = parse_axes(text)
    fits = len(named) == len(shape) and all(size in (None, n) for (_, size), n in zip(named, shape, strict=False))
    if not fits:
        msg = f"--axes {text} does not go with {path}, whose shape is {' x '.join(map(str, shape))}. Name every axis."
        raise FileError(msg)
    return Axes("".join(letter for letter, _ in named), shape, "--axes")


def understood_axes(path: Path, read: Axes, page_axes: str, options: ReadOptions) -> Axes:
    """Return the axes of pages, as the options or the file name them.

    Parameters
    ----------
    path : Path
        The file, for messages.
    read : Axes
        What the file says; its last axes are `page_axes`.
    page_axes : str
        The axes of one page.
    options : ReadOptions
        ``axes`` and ``volume`` say what the file does not.
    """
    if options.axes:
        return _name_pages(path, options.axes, read, page_axes)
    if not options.volume or "Z" in read.letters:
        return read
    pages = [letter for letter in read.letters if letter not in "CSYX"]
    if len(pages) != 1:
        what = f"the axes {read.letters}, and none is that of slices" if read.origin else "one page"
        msg = f"{path} has {what}. Leave --volume out, or name the axes, such as --axes ZYX."
        raise FileError(msg)
    return Axes(read.letters.replace(pages[0], "Z"), read.shape, read.origin or "--volume")


def _name_pages(path: Path, text: str, read: Axes, page_axes: str) -> Axes:
    """Return the axes of pages as ``--axes`` names them; lengths that it leaves out are those read, or follow."""
    named = parse_axes(text)
    inside = len(page_axes)
    letters = "".join(letter for letter, _ in named)
    if not letters.endswith(page_axes):
        msg = f"--axes {text} must end in {page_axes}, the axes of one page of {path}."
        raise FileError(msg)
    pages = read.shape[: len(read.shape) - inside]
    sizes = [size for _, size in named[: len(named) - inside]]
    if len(sizes) == len(pages) and all(size in (None, n) for size, n in zip(sizes, pages, strict=True)):
        return Axes(letters, read.shape, "--axes")
    total, known = math.prod(pages), math.prod(size for size in sizes if size)
    if sizes.count(None) == 1 and known and total % known == 0:
        sizes[sizes.index(None)] = total // known
    if None in sizes or math.prod(size or 0 for size in sizes) != total:
        msg = f"--axes {text} does not say how the {total} pages of {path} are arranged. Add numbers, such as ZC2YX."
        raise FileError(msg)
    return Axes(letters, (*(size or 0 for size in sizes), *read.shape[len(pages) :]), "--axes")
