"""Files to write: checked beforehand, written beside their target, and renamed when they are complete."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from .data import FileError
from .words import first_line

# Characters of the target's name that the temporary file keeps. They hold the longest suffix, which some libraries
# look at, and leave room for the random part where the target's name is as long as a file system allows.
_KEPT_CHARACTERS = 12


def check_free(path: Path, *, force: bool) -> None:
    """Raise if a file cannot be created at `path`, or if it exists and may not be replaced.

    The check creates an empty file in the folder and removes it again. Permissions alone do not tell: nobody, not even
    root, can create files in ``/proc``.
    """
    _check_name(path, force=force)
    beside = _name_beside(path)
    try:
        beside.touch(exist_ok=False)
        beside.unlink()
    except OSError as error:
        raise _not_writable(path, error) from error


@contextlib.contextmanager
def replacing(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Give the name of a temporary file beside `path`; rename it to `path` on success, remove it on failure."""
    _check_name(path, force=force)
    beside = _name_beside(path)
    try:
        yield beside
        _check_name(path, force=force)
        os.replace(beside, path)
    except OSError as error:
        raise _not_writable(path, error) from error
    finally:
        beside.unlink(missing_ok=True)


def _check_name(path: Path, *, force: bool) -> None:
    if path.is_dir():
        msg = f"{path} is a folder. Name a file."
    elif not path.parent.is_dir():
        msg = f"there is no folder {path.parent} to write {path.name} in. Make it first."
    elif os.path.lexists(path) and not force:
        msg = f"{path} exists. Choose another name, or replace it with --force."
    else:
        return
    raise FileError(msg)


def _name_beside(path: Path) -> Path:
    return path.with_name(f".{secrets.token_hex(4)}-{path.name[-_KEPT_CHARACTERS:]}")


def _not_writable(path: Path, error: OSError) -> FileError:
    reason = error.strerror or first_line(error)
    return FileError(f"{path} cannot be written ({reason}). Try another name or folder.")
