"""Files to write: checked beforehand, written beside their target, and renamed when they are complete."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from .data import FileError
from .words import first_line

# Characters of the target's name that the temporary file keeps. They hold the longest suffix, which some libraries
# look at, and leave room for the random part where the target's name is as long as a file system allows.
_KEPT_CHARACTERS = 12


# Temporary files and folders that exist now, for `remove_temporary`.
_existing: set[Path] = set()


def remove_temporary() -> None:
    """Remove all temporary files and folders: the process is about to be ended."""
    for path in list(_existing):
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def check_free(path: Path, *, force: bool, folder: bool = False) -> None:
    """Raise if a file, or a folder, cannot be created at `path`, or if it exists and may not be replaced.

    The check creates an empty file in the folder and removes it again. Permissions alone do not tell: nobody, not even
    root, can create files in ``/proc``.
    """
    _check_name(path, force=force, folder=folder)
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
    _existing.add(beside)
    try:
        yield beside
        _check_name(path, force=force)
        os.replace(beside, path)
    except OSError as error:
        raise _not_writable(path, error) from error
    finally:
        beside.unlink(missing_ok=True)
        _existing.discard(beside)


@contextlib.contextmanager
def replacing_folder(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Give the name of a temporary folder beside `path`; rename it to `path` on success, remove it on failure."""
    _check_name(path, force=force, folder=True)
    beside, old = _name_beside(path), _name_beside(path)
    _existing.add(beside)
    try:
        yield beside
        _check_name(path, force=force, folder=True)
        if path.exists():
            os.replace(path, old)
            _existing.add(old)
        os.replace(beside, path)
    except OSError as error:
        raise _not_writable(path, error) from error
    finally:
        for folder in (beside, old):
            shutil.rmtree(folder, ignore_errors=True)
            _existing.discard(folder)


@contextlib.contextmanager
def replacing_all(paths: Sequence[Path], *, force: bool = False) -> Iterator[Path]:
    """Give a temporary folder beside `paths`, for files of the same names; rename them in this order on success.

    The last one is that which readers look for: until it is there, none of them is read.
    """
    for path in paths:
        _check_name(path, force=force)
    folder = _name_beside(paths[-1])
    _existing.add(folder)
    try:
        folder.mkdir()
        yield folder
        for path in paths:
            _check_name(path, force=force)
        for path in paths:
            os.replace(folder / path.name, path)
    except OSError as error:
        raise _not_writable(paths[-1], error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _existing.discard(folder)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder that only this user can read; remove it at the end, also if the process is stopped."""
    folder = Path(tempfile.mkdtemp(prefix="scorethresh-"))
    _existing.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _existing.discard(folder)


@contextlib.contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; remove those that are new and empty if the block fails."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or first_line(error)
        msg = f"the folder {folder} cannot be made ({reason}). Try another name."
        raise FileError(msg) from error
    try:
        yield
    except BaseException:
        for path in new:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def _check_name(path: Path, *, force: bool, folder: bool = False) -> None:
    if path.is_dir() and not folder:
        msg = f"{path} is a folder. Name a file."
    elif folder and path.is_file():
        msg = f"{path} is a file, and would be replaced by a folder. Choose another name."
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
