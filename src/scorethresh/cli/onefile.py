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
from typing import Any, cast

import numpy as np

from .. import Denoised, Denoiser, io
from .._progress import SHOWN_AFTER, Progress
from ..noise.base import NoiseModel
from .messages import PartlyDone, any_error
from .summary import Summary, known_peak, sentences, shape_text

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
    def sizes(self) -> list[int]:
        """The number of entries of every part."""
        return [one.estimate.size for one in self.found]

    @property
    def predicted_mse(self) -> float:
        """The predicted mean squared error of all parts together."""
        return float(np.average([one.predicted_mse for one in self.found], weights=self.sizes))

    @property
    def stderr(self) -> float:
        """Its standard error: those of the parts are independent."""
        shares = np.array(self.sizes) / sum(self.sizes)
        return math.hypot(*(share * one.stderr for share, one in zip(shares, self.found, strict=True)))

    def summary(self, source: Path, target: Path) -> Summary:
        """Return what is told of the result."""
        # The level of transformed data is not one of the data.
        transformed = any(one.noise.level_units != NoiseModel.level_units for one in self.found)
        levels = [] if transformed else np.hstack([np.ravel(one.sigma) for one in self.found]).tolist()
        if np.ndim(self.denoiser.sigma):  # a map, of which a typical level is told
            levels = [float(np.sqrt(np.mean(np.square(self.denoiser.sigma))))]
        return Summary(
            source=str(source),
            target=str(target),
            shape=shape_text(self.data.values),
            dtype=str(self.data.values.dtype),
            understood=self.data.understood,
            parts=len(self.found),
            levels=tuple(levels),
            given=self.denoiser.sigma is not None,
            mse=self.predicted_mse,
            stderr=self.stderr,
            peak=known_peak(self.estimate),
            seconds=self.seconds,
            said=sentences(self.found),
            notes=tuple(self.notes()),
            compared=self.compared,
        )

    def notes(self) -> Iterator[str]:
        """Yield reasons not to trust the predicted error that can be seen from the data."""
        values = self.data.values
        if all(one.noise.clips for one in self.found) and values.dtype.kind in "iuf":
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
        Whether work that takes long gets a progress bar.
    """
    io.check_target(target, io.format_of(source).name, force=job.force)
    start = time.perf_counter()
    data = io.read(source, job.reading)
    if job.dtype is not None and job.dtype.kind == "f":  # now, so that the estimate is not rounded to integers
        data = io.converted(data, job.dtype)
    merged = data.merge_equal_channels()
    shown = SHOWN_AFTER if progress and sys.stderr.isatty() else False
    denoiser = dataclasses.replace(job.denoiser, channel_axis=merged.part_channel_axis, progress=shown)
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
    """Denoise every part. A single one shows its own progress, several are counted."""
    start = time.perf_counter()
    parts = data.parts()
    one = dataclasses.replace(denoiser, progress=denoiser.progress if len(parts) == 1 else False)
    with Progress("denoise", len(parts), denoiser.progress if len(parts) > 1 else False) as bar:
        found = []
        for part in parts:
            found.append(one.run(part))
            bar.step()
    return Result(data, denoiser, tuple(found), time.perf_counter() - start)


def _compared(result: Result, tried: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table: the result beside those of the other values of `choose`."""
    for choose in tried:
        one = result
        if choose != result.denoiser.choose:
            one = _denoise_parts(result.data, dataclasses.replace(result.denoiser, choose=cast(Any, choose)))
        summary = one.summary(Path(), Path())
        psnr = "-" if summary.psnr is None else f"{summary.psnr:.2f} dB"
        yield choose, psnr, summary.error_text(), f"{one.seconds:.2f} s"


def write_report_page(report: Path, result: Result, source: Path, target: Path, *, force: bool) -> None:
    """Write the report about the data, or about all parts of a stack. `target` is written by now."""
    parts, count = result.data.parts(), len(result.found)
    names = [result.data.part_name(k) for k in range(count)] if count > 1 else []
    y, found = (parts, result.found) if count > 1 else (parts[0], result.found[0])
    try:
        from ..viz.report import write_report

        with io.replacing(report, force=force) as beside:
            write_report(beside, y, result.denoiser, found, name=source.name, part_names=names)
    except Exception as error:
        msg = f"{target} is written, but the report is not: {any_error(error)}"
        raise PartlyDone(msg) from error
