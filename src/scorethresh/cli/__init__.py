"""The command `scorethresh`."""

from .command import app, main

__all__ = ["app", "main"]
