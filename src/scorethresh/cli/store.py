"""Files that need not fit into memory, denoised into a Zarr store."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any, NamedTuple

from .. import Denoiser, io
from .._progress import SHOWN_AFTER, Progress
from .messages import echo, echo_text


class Machines(NamedTuple):
    """Where the work is done: see `scale.cluster.task_runner`."""

    workers: int
    memory: str
    scheduler: str


def is_store(output: str) -> bool:
    """Tell whether the output is a Zarr store."""
    return output.rstrip("/").lower().endswith(".zarr")


def check_one_input(inputs: list[str]) -> None:
    """Refuse several inputs."""
    if len(inputs) > 1:
        msg = f"one store holds one result, got {len(inputs)} inputs. Denoise them one after the other."
        raise ValueError(msg)


def denoise_store(
    source: Path, target: Path, denoiser: Denoiser, machines: Machines, *, axes: str, force: bool, quiet: bool
) -> None:
    """Denoise a file into a store, and print what was predicted.

    Parameters
    ----------
    source, target : Path
        A Zarr store, NPY, TIFF or NIfTI file; a Zarr store.
    denoiser : Denoiser
        What denoises it.
    machines : Machines
        Where.
    axes : str
        A letter per axis; empty if the file tells.
    force : bool
        Whether an existing store is replaced.
    quiet : bool
        Whether only errors are printed.
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
        file = open_file(source)
    except FileNotFoundError as error:
        raise io.FileError(str(error)) from None
    if axes:
        file = dataclasses.replace(file, axes=axes.lower())
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
            found = denoise_to_store(file, target, denoiser, run_tasks, done)
        finally:
            if bar:
                bar[0].__exit__(None, None, None)
    if quiet:
        return
    mean = sum(found.mse) / len(found.mse)
    echo(f"{target}: predicted mean squared error {mean:.4g}, {found.tiles} tiles in {time.monotonic() - start:.1f} s")
    if found.resumed:
        echo(f"{found.resumed} of them were there from an earlier run")
    for verdict in dict.fromkeys(filter(None, found.verdicts)):
        echo_text(verdict)
