"""Options that several commands share, and how their text is checked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

Columns = Annotated[
    list[str] | None, typer.Option("--column", help="CSV: a column, by name or number from 1. May be repeated.")
]
Rule = Annotated[str, typer.Option(help="hard, soft, firm, garrote, scad or bridge.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


def parse_sigma(sigma: str) -> float | None:
    """Return the value of --sigma, or None for ``auto``."""
    if sigma == "auto":
        return None
    try:
        level = float(sigma)
    except ValueError:
        level = math.nan
    if not 0 < level < math.inf:
        msg = f"--sigma must be a positive number, got {sigma!r}. To have it estimated: --sigma auto."
        raise ValueError(msg)
    return level


def check_suffix(path: Path, option: str, suffixes: tuple[str, ...]) -> None:
    """Raise if the name of a file does not end in one of the suffixes."""
    if path.suffix.lower() not in suffixes:
        msg = f"{option} writes files that end in {' or '.join(suffixes)}, got {path}. Choose such a name."
        raise ValueError(msg)
