"""The files that were opened, and what was found in them last."""

from __future__ import annotations

import dataclasses
import itertools
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path

from ... import io
from ...viz.page_text import visible
from ..messages import any_error, collected_warnings
from ..onefile import Result, denoise_data, write_result
from .settings import Settings

# Files and results that are kept. More of them make the Back button of the browser faster, and cost memory.
MOST_FILES = 8
MOST_RESULTS = 3
# Characters of a file's name that are kept, from its end.
MOST_NAME = 120


class PageError(ValueError):
    """What the user is told, in one line."""


def suffix_of(name: str) -> str:
    """Return the end of a name that tells its format, such as ``.nii.gz``."""
    known = [suffix for suffix in io.format_of(Path(name)).suffixes if name.lower().endswith(suffix)]
    return name[len(name) - max(map(len, known)) :]


@dataclass(frozen=True)
class Opened:
    """A file that was opened.

    Attributes
    ----------
    path : Path
        Where it is.
    name : str
        What the user calls it.
    own : bool
        Whether the file is a copy of ours, to be removed.
    """

    path: Path
    name: str
    own: bool

    @property
    def format(self) -> io.Format:
        """The format that its suffix stands for."""
        return io.format_of(self.path)

    @property
    def suffix(self) -> str:
        """The suffix of the format, as the file has it."""
        return suffix_of(self.name)

    @property
    def result_name(self) -> str:
        """The name of the denoised file."""
        return f"{self.name.removesuffix(self.suffix)}-denoised{self.suffix}"


@dataclass(frozen=True)
class Found:
    """A result, and what deserves attention."""

    result: Result
    notes: tuple[str, ...]


class Desk:
    """Files, denoised one at a time. The results of the last settings are kept.

    Parameters
    ----------
    folder : Path
        Where copies of files and results are written. Who made it removes it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, Opened] = {}
        self._results: dict[Settings, Found] = {}
        self._lock = threading.Lock()  # one result at a time: each of them uses all cores
        self._numbers = itertools.count()

    def place_for(self, name: str) -> Opened:
        """Return where a file of this name may be written. It is known to the desk once `add` is called.

        The name comes from outside: only the suffix of its format is used for the copy.
        """
        shown = visible(name.replace("\\", "/").rpartition("/")[2])[-MOST_NAME:]
        try:
            suffix = suffix_of(shown).lower()
        except io.FileError as error:
            raise PageError(str(error)) from None
        return Opened(self.folder / f"{next(self._numbers)}{suffix}", shown, own=True)

    def add(self, file: Opened) -> str:
        """Keep a file, and return the key that stands for it. The oldest may be dropped."""
        if file.format.companions or file.format.folder:
            msg = f"{file.name} is not a single file. Use the command: scorethresh denoise {file.name} -o OUTPUT."
            raise PageError(msg)
        key = secrets.token_hex(8)
        self._files[key] = file
        for old in list(self._files)[:-MOST_FILES]:
            dropped = self._files.pop(old)
            if dropped.own:
                dropped.path.unlink(missing_ok=True)
        return key

    def file(self, settings: Settings) -> Opened:
        """Return the file that the settings are about."""
        file = self._files.get(settings.file)
        if file is None:
            msg = "this file is no longer open. Drop it again."
            raise PageError(msg)
        return file

    def find(self, settings: Settings) -> Found:
        """Return the result for these settings, computed now or kept from before."""
        file = self.file(settings)
        key = settings.at_full_strength()
        try:
            with self._lock:
                found = self._results.pop(key, None) or _denoised(file, key)
                self._results[key] = found  # the last one now
                for old in list(self._results)[:-MOST_RESULTS]:
                    del self._results[old]
            share = settings.share
        except Exception as error:  # damaged files make their libraries raise anything
            raise PageError(any_error(error).replace(str(file.path), file.name)) from error
        return dataclasses.replace(found, result=dataclasses.replace(found.result, strength=share))

    def write(self, settings: Settings) -> Path:
        """Write the denoised file into a folder of its own, and return where it is."""
        found, file = self.find(settings), self.file(settings)
        target = self.folder / f"{next(self._numbers)}-denoised{file.suffix}"
        try:
            with self._lock:
                write_result(target, found.result, settings.job())
        except Exception as error:
            raise PageError(any_error(error).replace(str(target), file.result_name)) from error
        return target


def _denoised(file: Opened, settings: Settings) -> Found:
    job = settings.job()
    with collected_warnings():  # they are kept in the results
        result = denoise_data(io.read(file.path, job.reading), job, progress=False)
    failures = (text for one in result.found for text in one.warnings)
    return Found(result, tuple(dict.fromkeys([*failures, *result.notes()])))
