"""Files that need not fit into memory, denoised into a Zarr store."""

from __future__ import annotations

import dataclasses
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import Denoiser, io
from .._progress import SHOWN_AFTER, Progress
from .messages import collected_warnings
from .options import given_options
from .summary import Summary, peak_of, shape_text

if TYPE_CHECKING:
    from ..scale.files import BigFile
    from ..scale.store import StoreResult

# Parameters of `denoise` that go with data in chunks.
ALLOWED = (
    *(
        "context",
        "inputs",
        "output",
        "sigma",
        "choose",
        "wavelet",
        "levels",
        "rule",
        "method",
        "noise",
        "mask",
        "axes",
        "key",
    ),
    *("workers", "memory", "scheduler", "quiet", "force"),
)
# Suffixes of files that are read in parts.
OPENED = (".zarr", ".npy", ".tif", ".tiff", ".nii")


class Machines(NamedTuple):
    """Where the work is done: see `scale.cluster.task_runner`."""

    workers: int
    memory: str
    scheduler: str


def is_store(output: str) -> bool:
    """Tell whether the output is a Zarr store."""
    return output.rstrip("/").lower().endswith(".zarr")


def in_chunks(context: Any, inputs: list[str], output: str) -> bool:
    """Tell whether a store is written chunk by chunk. If not, all data are read into memory.

    Options that are about all data, and formats that cannot be read in parts, need them in memory.
    """
    given = [option for option in ("--workers", "--memory", "--scheduler") if option in given_options(context, ())]
    if not is_store(output):
        if given:
            msg = f"{given[0]} goes with an output that ends in .zarr, got {output}. For many files at once: --jobs."
            raise ValueError(msg)
        return False
    source = Path(inputs[0])
    whole = given_options(context, ALLOWED)
    named = "--key" in given_options(context, ()) and source.suffix.lower() != ".zarr"
    if not whole and not named and (source.name.lower().endswith(OPENED) or source.is_dir()):
        check_one_input(inputs)
        return True
    if given:
        reason = f"{whole[0]}, which needs" if whole else f"{source.name}, whose format needs"
        msg = f"{given[0]} does not go with {reason} all data in memory. Leave one of them out."
        raise ValueError(msg)
    return False


def check_one_input(inputs: list[str]) -> None:
    """Refuse several inputs."""
    if len(inputs) > 1:
        msg = f"one store holds one result, got {len(inputs)} inputs. Denoise them one after the other."
        raise ValueError(msg)


def denoise_store(
    source: Path,
    target: Path,
    denoiser: Denoiser,
    machines: Machines,
    reading: io.ReadOptions,
    *,
    force: bool,
    quiet: bool,
) -> Summary:
    """Denoise a file into a store.

    Parameters
    ----------
    source, target : Path
        A Zarr store, NPY, TIFF or NIfTI file; a Zarr store.
    denoiser : Denoiser
        What denoises it.
    machines : Machines
        Where.
    reading : ReadOptions
        The letters of the axes, if the file does not tell, and the name of the array.
    force : bool
        Whether an existing store is replaced.
    quiet : bool
        Whether no progress is shown.
    """
    from ..scale.cluster import task_runner
    from ..scale.files import open_file
    from ..scale.store import denoise_to_store

    if target.exists() and not force:
        msg = f"{target} exists. To replace it: --force."
        raise FileExistsError(msg)
    if source.resolve() == target.resolve():
        msg = f"{target} is the input. Name another output."
        raise ValueError(msg)
    start = time.monotonic()
    try:
        file = open_file(source, reading.key)
    except FileNotFoundError as error:
        raise io.FileError(str(error)) from None
    if reading.axes:
        file = dataclasses.replace(file, axes=reading.axes.lower())
    bar: list[Any] = []
    with task_runner(*machines) as run_tasks:

        def done(finished: int, count: int) -> None:
            if not bar:
                bar.append(Progress("denoise", count, False if quiet else SHOWN_AFTER).__enter__())
                for _ in range(finished):
                    bar[0].step()
            else:
                bar[0].step()

        try:
            with collected_warnings():  # told by the parts
                found = denoise_to_store(file, target, denoiser, run_tasks, done)
        finally:
            if bar:
                bar[0].__exit__(None, None, None)
    return _summary(file, source, target, found, time.monotonic() - start, given=denoiser.sigma is not None)


def _summary(file: BigFile, source: Path, target: Path, found: StoreResult, seconds: float, *, given: bool) -> Summary:
    """Return what is told of a result; its parts are of one size."""
    parts = found.parts
    levels = [level for part in parts for level in part.levels]
    before = f", {found.resumed} of them from an earlier run" if found.resumed else ""
    verdicts = [part.verdict for part in parts if part.verdict and not part.warnings]
    return Summary(
        source=str(source),
        target=str(target),
        shape=shape_text(file.array),
        dtype=str(file.array.dtype),
        understood=f"axes {file.axes.upper()}: {len(parts)} parts, each denoised by itself" if len(parts) > 1 else "",
        parts=len(parts),
        levels=tuple(levels),
        given=given,
        mse=float(np.mean([part.mse for part in parts])),
        stderr=math.hypot(*(part.stderr for part in parts)) / len(parts),
        peak=peak_of(file.array.dtype, lambda: float(found.value_range)),
        seconds=seconds,
        said=(f"{found.tiles} tile{'s' * (found.tiles > 1)}{before}", *dict.fromkeys(verdicts)),
        notes=tuple(dict.fromkeys(failure for part in parts for failure in part.warnings)),
        noise_rms=0.0 if levels else math.sqrt(float(np.mean([part.noise_rms**2 for part in parts]))),
    )
