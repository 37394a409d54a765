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
    strength: float = 1.0


@dataclass(frozen=True)
class Result:
    """A denoised file.

    Attributes
    ----------
    file : Data
        The data as they were read.
    data : Data
        The data as they were denoised: equal channels are merged.
    denoiser : Denoiser
        The denoiser that was run on each part.
    found : tuple of Denoised
        Its results, one for each part.
    seconds : float
        How long it took.
    strength : float
        How much of the noise is taken away: 1 is the estimate, 0 the data as they were.
    compared : tuple
        Rows of a table: each value of `choose` that was tried, its predicted errors and its time.
    """

    file: io.Data
    data: io.Data
    denoiser: Denoiser
    found: tuple[Denoised, ...]
    seconds: float
    strength: float = 1.0
    compared: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def estimate(self) -> Any:
        """The denoised parts as one array, mixed with the data if the strength is below 1."""
        whole = self.data.join_parts([one.estimate for one in self.found])
        return whole if self.strength == 1 else mixture(self.data.values, whole, self.strength)

    @cached_property
    def written(self) -> io.Data:
        """What is written: the estimate in the layout of the file."""
        estimate = self.estimate if self.data is self.file else self.file.repeat_channel(self.estimate)
        return dataclasses.replace(self.file, values=estimate)

    @cached_property
    def errors(self) -> list[float]:
        """The predicted mean squared error of every part, at this strength."""
        if self.strength == 1:
            return [one.predicted_mse for one in self.found]
        return [energies.at_strength(self.strength) for energies in self._energies()]

    @property
    def noise_rms(self) -> float:
        """The root mean square of the noise of all parts."""
        return math.sqrt(float(np.average([energies.noise for energies in self._energies()], weights=self.sizes)))

    def _energies(self) -> list[Any]:
        from ..viz.report import energies_of

        return [energies_of(y, self.denoiser, one) for y, one in zip(self.data.parts(), self.found, strict=True)]

    @property
    def sizes(self) -> list[int]:
        """The number of entries of every part."""
        return [one.estimate.size for one in self.found]

    @property
    def predicted_mse(self) -> float:
        """The predicted mean squared error of all parts together."""
        return float(np.average(self.errors, weights=self.sizes))

    @property
    def stderr(self) -> float:
        """Its standard error: those of the parts are independent."""
        shares = self.strength * np.array(self.sizes) / sum(self.sizes)
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
            noise_rms=0.0 if levels else self.noise_rms,
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
    result = denoise_data(io.read(source, job.reading), job, progress=progress)
    result = dataclasses.replace(
        result,
        compared=tuple(_compared(result, tried)),
        seconds=result.seconds if tried else time.perf_counter() - start,
    )
    write_result(target, result, job)
    return result


def denoise_data(data: io.Data, job: Job, *, progress: bool = True) -> Result:
    """Denoise what was read from a file, part by part."""
    if job.dtype is not None and job.dtype.kind == "f":  # now, so that the estimate is not rounded to integers
        data = io.converted(data, job.dtype)
    merged = data.merge_equal_channels()
    shown = SHOWN_AFTER if progress and sys.stderr.isatty() else False
    denoiser = dataclasses.replace(job.denoiser, channel_axis=merged.part_channel_axis, progress=shown)
    found, seconds = _denoise_parts(merged, denoiser)
    return Result(data, merged, denoiser, found, seconds, job.strength)


def write_result(target: Path, result: Result, job: Job) -> None:
    """Write a denoised file."""
    out = result.written
    io.write(target, out if job.dtype is None else io.converted(out, job.dtype), force=job.force)


def mixture(values: Any, estimate: Any, strength: float) -> Any:
    """Return ``(1 - strength) values + strength estimate``; integers are rounded."""
    mixed = estimate + (1 - strength) * (values.astype(np.result_type(estimate, np.float32)) - estimate)
    return np.rint(mixed).astype(estimate.dtype) if estimate.dtype.kind in "iu" else mixed.astype(estimate.dtype)


def _denoise_parts(data: io.Data, denoiser: Denoiser) -> tuple[tuple[Denoised, ...], float]:
    """Denoise every part, and measure the time. A single one shows its own progress, several are counted."""
    start = time.perf_counter()
    parts = data.parts()
    one = dataclasses.replace(denoiser, progress=denoiser.progress if len(parts) == 1 else False)
    with Progress("denoise", len(parts), denoiser.progress if len(parts) > 1 else False) as bar:
        found = []
        for part in parts:
            found.append(one.run(part))
            bar.step()
    return tuple(found), time.perf_counter() - start


def _compared(result: Result, tried: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table: the result beside those of the other values of `choose`."""
    for choose in tried:
        one = result
        if choose != result.denoiser.choose:
            denoiser = dataclasses.replace(result.denoiser, choose=cast(Any, choose))
            found, seconds = _denoise_parts(result.data, denoiser)
            one = dataclasses.replace(result, denoiser=denoiser, found=found, seconds=seconds)
        summary = one.summary(Path(), Path())
        psnr = "-" if summary.psnr is None else f"{summary.psnr:.2f} dB"
        yield choose, psnr, summary.error_text(), f"{one.seconds:.2f} s"


def write_report_page(report: Path, result: Result, source: Path, target: Path, *, force: bool) -> None:
    """Write the report about the data, or about all parts of a stack. `target` is written by now."""
    try:
        with io.replacing(report, force=force) as beside:
            beside.write_text(report_of(result, source.name), encoding="utf-8")
    except Exception as error:
        msg = f"{target} is written, but the report is not: {any_error(error)}"
        raise PartlyDone(msg) from error


def report_of(result: Result, name: str, panel: str = "") -> str:
    """Return the report about the data, or about all parts of a stack, with a panel of controls if there is one."""
    from ..viz.report import report_page

    parts, count = result.data.parts(), len(result.found)
    names = [result.data.part_name(k) for k in range(count)] if count > 1 else []
    y, found = (parts, result.found) if count > 1 else (parts[0], result.found[0])
    return report_page(y, result.denoiser, found, name=name, part_names=names, strength=result.strength, panel=panel)
