"""Many files: which ones are meant, and how they are denoised into a folder."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import io
from .messages import collected_warnings, complain, echo, echo_table, note, one_line
from .onefile import Job, denoise_file


def expand(inputs: Sequence[str]) -> tuple[list[Path], bool]:
    """Return the files that names, folders and patterns stand for, and whether there may be several."""
    paths: list[Path] = []
    many = len(inputs) > 1
    for text in inputs:
        path = Path(text)
        if path.is_dir() and not _has_suffix(path):
            found = sorted(p for p in path.iterdir() if _has_suffix(p) and p.name[0] != ".")
            missing = f"there is nothing to denoise in {path}. Files must end in one of {', '.join(io.suffixes())}."
        elif not os.path.lexists(path) and glob.has_magic(text):
            found = sorted(map(Path, glob.glob(text)))
            missing = f"no file matches {text}. Check the pattern."
        else:
            paths.append(path)
            continue
        if not found:
            raise io.FileError(missing)
        paths += found
        many = True
    return paths, many


def denoise_files(sources: list[Path], folder: Path, job: Job) -> int:
    """Denoise many files into a folder. Return the exit code: 1 if some fail, else 0."""
    from rich.console import Console
    from rich.progress import track

    _check_names(sources, folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows, failures, notes = [], [], []
    bar = track(sources, "denoising", console=Console(stderr=True), disable=not sys.stderr.isatty())
    for source in bar:
        try:
            with collected_warnings() as messages:
                result = denoise_file(source, folder / source.name, job, progress=False)
        except Exception as error:  # whatever it is, the other files are denoised
            failures.append(one_line(error) if str(source) in str(error) else f"{source}: {one_line(error)}")
            rows.append((source.name, "failed", "", "", ""))
        else:
            notes += [f"{source}: {message}" for message in messages]
            seconds = f"{result.seconds:.1f} s"
            rows.append((source.name, result.shape_text(), result.sigma_text(), result.psnr_text(), seconds))
    echo_table(("file", "data", "sigma", "predicted PSNR", "time"), rows)
    echo(f"{len(rows) - len(failures)} of {len(rows)} files denoised into {folder}")
    for message in notes:
        note(message)
    for failure in failures:
        complain(failure)
    return 1 if failures else 0


def _has_suffix(path: Path) -> bool:
    return path.name.lower().endswith(io.suffixes())


def _check_names(sources: Sequence[Path], folder: Path) -> None:
    """Raise if two results would have the same name, or if the folder is a file."""
    names = [source.name for source in sources]
    seen: set[str] = set()
    for name in names:
        if name in seen:
            msg = f"two inputs are named {name}, and one would replace the other. Denoise them into two folders."
            raise ValueError(msg)
        seen.add(name)
    if not folder.is_dir() and (folder.exists() or _has_suffix(folder)):
        msg = f"{folder} is a file, and there may be several inputs: {io.listed(names)}. Name a folder."
        raise ValueError(msg)
