"""Many files, denoised into a folder, one after another or in several processes."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .. import io
from .._progress import SHOWN_AFTER, Progress
from .._threads import cores
from .inputs import Input, check_names
from .interrupt import end_silently, stop_children
from .messages import collected_warnings, one_line
from .onefile import Job, denoise_file
from .summary import Summary


@dataclass(frozen=True)
class Outcome:
    """What became of a file: a summary, or the reason why there is none."""

    name: str
    summary: Summary | None = None
    failure: str = ""


def denoise_files(files: Sequence[Input], folder: Path, job: Job, jobs: int) -> list[Outcome]:
    """Denoise many files into a folder. If one fails, the others are still denoised."""
    check_names(files, folder)
    outcomes: list[Outcome] = []
    with io.made_folder(folder), Progress("denoise", len(files), SHOWN_AFTER if sys.stderr.isatty() else False) as bar:
        for outcome in _outcomes([(file, folder, job) for file in files], min(jobs, len(files))):
            outcomes.append(outcome)
            bar.step()
    return outcomes


def _outcomes(tasks: list[tuple[Input, Path, Job]], jobs: int) -> Iterator[Outcome]:
    """Yield what becomes of every file, in their order."""
    if jobs <= 1:
        yield from (_attempt(*task) for task in tasks)
        return
    # Fresh processes: a fork of one with threads may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, _start_worker, (max(1, cores() // jobs),))
    try:
        waiting: list[Future[Outcome]] = [pool.submit(_attempt, *task) for task in tasks]
        yield from (future.result() for future in waiting)
    except BaseException:
        stop_children()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _start_worker(threads: int) -> None:
    """Prepare a worker process: it has its share of the cores, and ends without a word."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    end_silently()


def _attempt(file: Input, folder: Path, job: Job) -> Outcome:
    """Denoise one file; an error becomes a line."""
    source, target = file.path, folder / file.name
    try:
        with collected_warnings() as messages:
            target.parent.mkdir(parents=True, exist_ok=True)
            result = denoise_file(source, target, job, progress=False)
        return Outcome(str(file.name), result.summary(source, target).with_notes(messages))
    except Exception as error:  # whatever it is, the other files are denoised
        text = one_line(error)
        return Outcome(str(file.name), failure=text if str(source) in text else f"{source}: {text}")
