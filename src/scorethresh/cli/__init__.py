"""The command `scorethresh`: files in, files and tables out. Nothing is computed here."""

import sys

from .._validate import missing_extra

try:
    import typer as _typer  # noqa: F401
except ImportError:
    if sys.stderr is not None:
        sys.stderr.write(f"error: {missing_extra('typer')}\n")
    raise SystemExit(2) from None

from .commands import app, main

__all__ = ["app", "main"]
