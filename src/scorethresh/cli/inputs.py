"""Which files are meant, and where each result goes."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .. import io


class Input(NamedTuple):
    """A file to denoise, and the name of its result in the folder of results."""

    path: Path
    name: Path


class Inputs(NamedTuple):
    """The files that were meant.

    Attributes
    ----------
    files : list of Input
        In the order of the names; those of a folder sorted.
    many : bool
        Whether there may be several, so that results go to a folder.
    skipped : list of Path
        Texts beside other data, which are taken for notes.
    """

    files: list[Input]
    many: bool
    skipped: list[Path]


def find_inputs(texts: Sequence[str], output: Path, *, recursive: bool) -> Inputs:
    """Return the files that names, folders and patterns stand for.

    Parameters
    ----------
    texts : sequence of str
        As they were given.
    output : Path
        Where results go. If it is a folder inside of an input, it is left out.
    recursive : bool
        Whether folders inside of folders are meant as well.
    """
    files: list[Input] = []
    skipped: list[Path] = []
    many = len(texts) > 1
    for text in texts:
        path = Path(text)
        if path.is_dir() and not has_suffix(path):
            found = sorted(_files_in(path, output) if recursive else (p for p in path.iterdir() if not _hidden(p)))
            known = [p for p in found if has_suffix(p)]
            notes = _notes(known)
            skipped += notes
            new = [Input(p, p.relative_to(path)) for p in known if p not in notes]
            missing = f"there is nothing to denoise in {path}. Files must end in one of {', '.join(io.suffixes())}."
        elif not os.path.lexists(path) and glob.has_magic(text):
            new = [Input(p, Path(p.name)) for p in sorted(map(Path, glob.glob(text, recursive=True)))]
            missing = f"no file matches {text}. Check the pattern."
        else:
            files.append(Input(path, Path(path.name)))
            continue
        if not new:
            raise io.FileError(missing)
        files += new
        many = True
    return Inputs(files, many, skipped)


def check_names(files: Sequence[Input], folder: Path) -> None:
    """Raise if two results would have the same name, or if the folder is a file."""
    names = [str(file.name) for file in files]
    seen: set[str] = set()
    for name in names:
        if name in seen:
            msg = f"two inputs are named {name}, and one would replace the other. Denoise them into two folders."
            raise ValueError(msg)
        seen.add(name)
    if not folder.is_dir() and (folder.exists() or has_suffix(folder)):
        msg = f"{folder} is a file, and there may be several inputs: {io.listed(names)}. Name a folder."
        raise ValueError(msg)


def has_suffix(path: Path) -> bool:
    """Return whether the name of a file tells a format."""
    return path.name.lower().endswith(io.suffixes())


def _hidden(path: Path) -> bool:
    return path.name.startswith(".")


def _files_in(folder: Path, output: Path) -> Iterator[Path]:
    """Yield the files in a folder and those below it, without hidden ones and results."""
    for here, folders, names in os.walk(folder):
        above = Path(here)
        folders[:] = [name for name in folders if name[0] != "." and (above / name).resolve() != output.resolve()]
        stores = [name for name in folders if has_suffix(above / name)]  # a folder that is one file to its users
        folders[:] = [name for name in folders if name not in stores]
        yield from (above / name for name in stores)
        yield from (above / name for name in names if name[0] != ".")


def _notes(files: Sequence[Path]) -> list[Path]:
    """Return the files that end in ``.txt``, if there are other data besides tables."""
    tables = [path for path in files if io.format_of(path).name == "CSV"]
    if len(tables) == len(files):
        return []
    return [path for path in tables if path.suffix.lower() == ".txt"]
