"""What the user of the page has chosen, and the command that does the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import urlencode

from ... import Denoiser, io
from ..onefile import Job
from ..options import parse_sigma


@dataclass(frozen=True)
class Settings:
    """Choices of the page, as text. They are options of `scorethresh denoise`.

    Attributes
    ----------
    file : str
        Which of the files that were opened.
    noise, sigma, choose : str
        The noise model, the noise level or ``auto``, and how the estimate is made.
    column, axes, key : str
        How the file is read; empty for what the file says. Several columns are separated by commas.
    strength : str
        How much of the noise is taken away, in percent.
    """

    file: str
    noise: str = "auto"
    sigma: str = "auto"
    choose: str = "blend"
    column: str = ""
    axes: str = ""
    key: str = ""
    strength: str = "100"

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> Settings:
        """Return the settings in the address of a request. What is missing or empty has its usual value."""
        names = cls.__dataclass_fields__
        return cls(**{"file": ""} | {name: query[name].strip() for name in names if query.get(name, "").strip()})

    def query(self) -> str:
        """Return the settings for the address of a request."""
        return urlencode(vars(self))

    def at_full_strength(self) -> Settings:
        """Return the settings without the strength, on which the work does not depend."""
        return replace(self, strength="100")

    @property
    def share(self) -> float:
        """The strength, 0 to 1."""
        percent = int(self.strength) if self.strength.isdecimal() and len(self.strength) <= 3 else -1
        if not 0 <= percent <= 100:
            msg = f"strength must be a whole number from 0 to 100, got {self.strength!r}."
            raise ValueError(msg)
        return percent / 100

    def job(self) -> Job:
        """Return what to do with the file. A level per entry, which is another file, is not accepted."""
        denoiser = Denoiser(sigma=parse_sigma(self.sigma), choose=cast(Any, self.choose), noise=self.noise)
        columns = tuple(filter(None, map(str.strip, self.column.split(","))))
        reading = io.ReadOptions(columns=columns, axes=self.axes, key=self.key)
        return Job(denoiser, reading, None, force=True, strength=self.share)

    def command(self, source: str, target: str) -> str:
        """Return the command that writes the same file, without the strength, which the page adds."""
        words = ["scorethresh", "denoise", source if source[0] != "-" else f"./{source}", "-o", target]
        usual = Settings("")
        for name in ("noise", "sigma", "choose", "axes", "key"):
            if getattr(self, name) != getattr(usual, name):
                words += [f"--{name}", getattr(self, name)]
        for column in filter(None, map(str.strip, self.column.split(","))):
            words += ["--column", column]
        return shlex.join(words)
