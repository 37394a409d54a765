"""One file: read, denoised part by part, and written."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .. import Denoised, Denoiser, io
from .messages import PartlyDone, any_error

# Entries from which on denoising one array takes long enough for a progress bar. A lower number makes bars flash by.
BAR_FROM_ENTRIES = 1 << 22

# Share of entries at the smallest or the largest value above which a note is printed. A lower share prints more notes
# about predictions that are right: the denoiser corrects for moderate clipping.
_NOTED_CLIPPED_SHARE = 0.1


@dataclass(frozen=True)
class Job:
    """What to do with every file."""

    denoiser: Denoiser
    reading: io.ReadOptions
    dtype: np.dtype[Any] | None
    force: bool


@dataclass(frozen=True)
class Result:
    """A denoised file.

    Attributes
    ----------
    data : Data
        The data as they were denoised: equal channels are merged.
    denoiser : Denoiser
        The denoiser that was run on each part.
    found : tuple of Denoised
        Its results, one for each part.
    seconds : float
        How long it took.
    compared : tuple
        Rows of a table: each value of `choose` that was tried, its predicted errors and its time.
    """

    data: io.Data
    denoiser: Denoiser
    found: tuple[Denoised, ...]
    seconds: float
    compared: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def estimate(self) -> Any:
        """The denoised parts as one array."""
        return self.data.join_parts([one.estimate for one in self.found])

    @property
    def predicted_mse(self) -> float:
        """The predicted mean squared error of all parts together, which have equal size."""
        return float(np.mean([one.predicted_mse for one in self.found]))

    def mse_text(self) -> str:
        """Return the predicted mean squared error with its standard error."""
        stderr = math.hypot(*(one.stderr for one in self.found)) / len(self.found)
        return f"{self.predicted_mse:.3g} ± {stderr:.2g}"

    def psnr_text(self) -> str:
        """Return the predicted peak signal-to-noise ratio."""
        whole = dataclasses.replace(self.found[0], estimate=self.estimate, predicted_mse=self.predicted_mse)
        level = whole.predicted_psnr()
        return f"{level:.2f} dB" if math.isfinite(level) else "-"

    def sigma_text(self) -> str:
        """Return the noise level, or the range of the levels of parts and channels."""
        levels = np.hstack([np.ravel(one.sigma) for one in self.found])
        low, high = f"{levels.min():.3g}", f"{levels.max():.3g}"
        return low if low == high else f"{low} to {high}"

    def shape_text(self) -> str:
        """Return shape and type of the data."""
        return f"{' x '.join(map(str, self.data.values.shape))} {self.data.values.dtype}"

    def notes(self) -> Iterator[str]:
        """Yield reasons not to trust the predicted error that can be seen from the data."""
        values = self.data.values
        if self.denoiser.noise != "poisson" and values.dtype.kind in "iuf":
            values = values[~np.isnan(values)]
            low, high = (values.min(), values.max()) if values.size else (0, 0)
            clipped = float(np.mean((values == low) | (values == high))) if low < high else 0.0
            if clipped > _NOTED_CLIPPED_SHARE:
                yield (
                    f"{clipped:.1%} of the entries are {low:.4g} or {high:.4g}, the smallest and the largest value. "
                    "If the data were clipped there, the predicted error is too low."
                )
        if self.predicted_mse < 0:
            yield (
                "the predicted error is below zero and cannot be trusted: sigma is too large, or the noise is not "
                "independent from entry to entry, as in JPEG. Try --sigma with a known level, or --noise correlated."
            )


def denoise_file(source: Path, target: Path, job: Job, *, tried: Iterable[str] = (), progress: bool = True) -> Result:
    """Denoise one file.

    Parameters
    ----------
    source, target : Path
        The file to read and the file to write.
    job : Job
        What to do.
    tried : iterable of str
        Values of `choose` to compare.
    progress : bool
        Whether large arrays get a progress bar.
    """
    io.check_target(target, io.format_of(source).name, force=job.force)
    start = time.perf_counter()
    data = io.read(source, job.reading)
    if job.dtype is not None and job.dtype.kind == "f":  # now, so that the estimate is not rounded to integers
        data = io.converted(data, job.dtype)
    merged = data.merge_equal_channels()
    shown = progress and merged.values.size > BAR_FROM_ENTRIES and sys.stderr.isatty()
    denoiser = dataclasses.replace(job.denoiser, channel_axis=merged.channel_axis, progress=shown)
    result = _denoise_parts(merged, denoiser)
    result = dataclasses.replace(
        result,
        compared=tuple(_compared(result, tried)),
        seconds=result.seconds if tried else time.perf_counter() - start,
    )
    estimate = result.estimate if merged is data else data.repeat_channel(result.estimate)
    out = dataclasses.replace(data, values=estimate)
    io.write(target, out if job.dtype is None else io.converted(out, job.dtype), force=job.force)
    return result


def _denoise_parts(data: io.Data, denoiser: Denoiser) -> Result:
    start = time.perf_counter()
    found = tuple(denoiser.run(part) for part in data.parts())
    return Result(data, denoiser, found, time.perf_counter() - start)


def _compared(result: Result, tried: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table: the result beside those of the other values of `choose`."""
    for choose in tried:
        one = result
        if choose != result.denoiser.choose:
            one = _denoise_parts(result.data, dataclasses.replace(result.denoiser, choose=choose))
        yield choose, one.psnr_text(), one.mse_text(), f"{one.seconds:.2f} s"


def middle_part(result: Result) -> int:
    """Return the index of the part that the report shows."""
    return len(result.found) // 2


def write_report_page(report: Path, result: Result, target: Path, *, force: bool) -> None:
    """Write the report about the data, or about the middle one of several parts. `target` is written by now."""
    middle = middle_part(result)
    try:
        from ..viz.report import write_report

        with io.replacing(report, force=force) as beside:
            write_report(beside, result.data.parts()[middle], result.denoiser, result.found[middle])
    except Exception as error:
        msg = f"{target} is written, but the report is not: {any_error(error)}"
        raise PartlyDone(msg) from error
