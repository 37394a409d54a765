"""Standard streams that are closed, full, or that nobody reads any more."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from .messages import stdout_errors


def open_closed_streams() -> None:
    """Connect standard streams that the process was started without to the null device.

    Python sets such a stream to None, which cannot be written to. Worse, the next file that is opened would get the
    number of the stream, and whatever a library prints would end up in it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in the order of their numbers
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (stays open as long as the process)


def accept_any_text() -> None:
    """Let standard output replace characters that its encoding lacks, instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def flush_stdout() -> None:
    """Write out what was printed."""
    with stdout_errors():
        sys.stdout.flush()


def discard_stdout() -> None:
    """Send what could not be printed to the null device. Python would fail on it again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
