"""What is told of a result: lines, a row of a table, JSON."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import Denoised
from .._rounding import plain, with_error

# Files named in a note that several have in common.
_NAMED = 3


@dataclass(frozen=True)
class Summary:
    """What is told of a denoised file.

    Attributes
    ----------
    source, target : str
        The files.
    shape, dtype : str
        Of the data, such as ``512 x 512`` and ``uint8``.
    understood : str
        What was understood of the axes.
    parts : int
        How many arrays were denoised by themselves.
    levels : tuple of float
        The noise levels of parts and channels; empty if the noise has none, as counts.
    given : bool
        Whether the level was given.
    mse, stderr : float
        The predicted mean squared error and its standard error.
    peak : float or None
        The range of the data that a PSNR refers to; None if it is not known.
    seconds : float
        How long it took.
    said : tuple of str
        Sentences of the library about the noise and the estimate.
    notes : tuple of str
        Reasons for attention.
    compared : tuple
        The rows of --compare.
    noise_rms : float
        The root mean square of the noise, if it depends on the signal and has no single level; else 0.
    """

    source: str
    target: str
    shape: str
    dtype: str
    understood: str
    parts: int
    levels: tuple[float, ...]
    given: bool
    mse: float
    stderr: float
    peak: float | None
    seconds: float
    said: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compared: tuple[tuple[str, ...], ...] = ()
    noise_rms: float = 0.0

    @property
    def psnr(self) -> float | None:
        """The predicted peak signal-to-noise ratio in decibels, if it is known."""
        return None if not self.peak or self.mse <= 0 else 10 * math.log10(self.peak**2 / self.mse)

    @property
    def reduction(self) -> float | None:
        """How many times larger the noise was than the error is now, if both are known."""
        noise = float(np.mean(np.square(self.levels))) if self.levels else self.noise_rms**2
        return math.sqrt(noise / self.mse) if noise > 0 and self.mse > 0 else None

    def level_text(self) -> str:
        """Return the noise level, or the range of the levels."""
        if not self.levels:
            return ""
        low, high = plain(min(self.levels)), plain(max(self.levels))
        return low if low == high else f"{low} to {high}"

    def error_text(self) -> str:
        """Return the predicted root mean squared error, rounded to its standard error."""
        if self.mse < 0:
            return "below zero"
        rms = math.sqrt(self.mse)
        return with_error(rms, self.stderr / (2 * rms) if rms else 0.0)

    def lines(self) -> Iterator[str]:
        """Yield the lines to print."""
        if self.understood:
            yield f"{self.source}: {self.understood}"
        yield f"{self.target}: {self.shape} {self.dtype}, {self.seconds:.1f} s"
        level = f"σ = {self.level_text()} ({'given' if self.given else 'estimated'})" if self.levels else ""
        if self.reduction is not None:
            before = level or f"{plain(self.noise_rms)} in the mean"
            yield f"  noise reduced {plain(self.reduction, 2)} times, from {before} to an error of {self.error_text()}"
        else:
            yield f"  {level + ', ' if level else ''}predicted error {self.error_text()}"
        if self.psnr is not None and self.peak is not None:
            yield f"  predicted PSNR {self.psnr:.1f} dB, for a range of {plain(self.peak)}"
        yield from (f"  {sentence}" for sentence in self.said)

    def row(self) -> tuple[str, ...]:
        """Return the row of a table of files."""
        times = "" if self.reduction is None else f"{plain(self.reduction, 2)} times"
        return f"{self.shape} {self.dtype}", self.level_text(), self.error_text(), times, f"{self.seconds:.1f} s"

    def fields(self) -> dict[str, Any]:
        """Return what --json prints. docs/cli.md promises that these fields stay."""
        names = ("choose", "predicted_psnr", "predicted_rms", "time")
        return {
            "input": self.source,
            "output": self.target,
            "shape": [int(n) for n in self.shape.split(" x ")],
            "dtype": self.dtype,
            "axes": self.understood,
            "parts": self.parts,
            "sigma": list(self.levels),
            "sigma_given": self.given,
            "predicted_mse": self.mse,
            "stderr": self.stderr,
            "noise_reduction": self.reduction,
            "predicted_psnr": self.psnr,
            "peak": self.peak,
            "seconds": self.seconds,
            "said": list(self.said),
            "notes": list(self.notes),
            "compared": [dict(zip(names, row, strict=True)) for row in self.compared],
        }

    def with_notes(self, notes: Iterable[str]) -> Summary:
        """Return the summary with further notes, each once."""
        return dataclasses.replace(self, notes=tuple(dict.fromkeys([*notes, *self.notes])))


def sentences(found: Sequence[Denoised]) -> tuple[str, ...]:
    """Return what the library says about the results of all parts, each sentence once.

    What fails is a warning, which is printed as a note, so it is not said here again.
    """
    return tuple(dict.fromkeys(one.verdict for one in found if one.verdict and not one.warnings))


def known_peak(estimate: Any) -> float | None:
    """Return the range that a PSNR refers to, if it is known; see `peak_of`."""
    return peak_of(estimate.dtype, lambda: float(np.ptp(np.ma.getdata(estimate).astype(np.float64))))


def peak_of(dtype: np.dtype[Any], value_range: Callable[[], float]) -> float | None:
    """Return the range that a PSNR refers to: 255 of 8-bit data, that of the estimate of 16-bit data, else None."""
    return 255.0 if dtype == np.uint8 else value_range() if dtype == np.uint16 else None


def shape_text(values: Any) -> str:
    """Return the shape of an array in words."""
    return " x ".join(map(str, values.shape))


def grouped_notes(notes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield notes of many files, those that differ in their numbers only together.

    Examples
    --------
    >>> list(grouped_notes([("a", "12% are 0."), ("b", "All is dark."), ("c", "13% are 0.")]))
    ['a, c: 12% are 0.', 'b: All is dark.']
    """
    groups: dict[str, tuple[list[str], str]] = {}
    for name, message in notes:
        names, _ = groups.setdefault(re.sub(r"[\d.]+", "#", message), ([], message))
        names.append(name)
    for names, message in groups.values():
        rest = len(names) - _NAMED
        yield f"{', '.join(names[:_NAMED])}{f' and {rest} more' if rest > 0 else ''}: {message}"
