"""Text for the terminal: lines, tables, notes, and errors as one line.

Names of files may hold any character, even those that move the cursor. Everything that is printed goes through
`printable`.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._validate import missing_extra

# Width of a table that does not go to a terminal.
_PIPE_WIDTH = 200

# Most notes about one file. A stack of many pages may warn about each of them in other words.
_MAX_NOTES = 5


class PartlyDone(Exception):
    """Some of the work is done and some has failed; the message says which."""


class ReaderGone(Exception):
    """The program that reads standard output has enough of it."""


def printable(text: str) -> str:
    """Return the text with a question mark for every character that is not printable, line ends included."""
    return "".join(c if c.isprintable() else "?" for c in text)


def echo(line: str) -> None:
    """Print one line to standard output."""
    echo_text(printable(line))


def echo_text(text: str) -> None:
    """Print text of several lines that holds no names, or names in JSON, to standard output."""
    with stdout_errors():
        sys.stdout.write(f"{text}\n")


@contextlib.contextmanager
def stdout_errors() -> Iterator[None]:
    """Turn a failure to write to standard output into `ReaderGone` or `PartlyDone`.

    The commands print when their files are written, so a full disk under standard output costs only the text.
    """
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        msg = f"standard output cannot be written ({error.strerror}). Files that the command was to write are complete."
        raise PartlyDone(msg) from error


def complain(message: str) -> None:
    """Print an error, one line, to standard error."""
    _print_to_stderr(f"error: {message}")


def note(message: str) -> None:
    """Print a note, one line, to standard error."""
    _print_to_stderr(f"note: {message}")


def _print_to_stderr(line: str) -> None:
    with contextlib.suppress(OSError):  # nobody can be told that standard error is full
        sys.stderr.write(f"{printable(line)}\n")
        sys.stderr.flush()


def echo_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table to standard output."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for k, title in enumerate(titles):
        table.add_column(title, justify="right" if k else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    with console.capture() as captured:
        console.print(table)
    echo_text(captured.get().rstrip("\n"))


@contextlib.contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect warnings. After the block the list holds the text of every `UserWarning`, each once.

    Other warnings address programmers, not users of the command, and are dropped.
    """
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    texts = (" ".join(str(w.message).split()) for w in caught if issubclass(w.category, UserWarning))
    unique = list(dict.fromkeys(texts))
    messages += unique[:_MAX_NOTES]
    if len(unique) > _MAX_NOTES:
        messages.append(f"and {len(unique) - _MAX_NOTES} more of this kind.")


def one_line(error: BaseException) -> str:
    """Return the message of an error as one line, in words of the command line."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return str(missing_extra(error.name.partition(".")[0]))
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    else:
        text = " ".join(str(error).split()) or type(error).__name__
    # The library names arguments, such as choose="bands"; the command has options, such as --choose bands.
    return re.sub(r"""(?<![\w(])([a-z_]+)=["'](\w+)["']""", lambda m: f"--{m[1].replace('_', '-')} {m[2]}", text)


def any_error(error: Exception) -> str:
    """Return any error as one line. Kinds that the library does not raise on purpose are called unexpected."""
    expected = (ValueError, TypeError, OSError, ImportError, MemoryError, PartlyDone)
    if isinstance(error, expected):
        return one_line(error)
    return f"unexpected {type(error).__name__}: {one_line(error)}. Please report it with what --debug shows."


def usage_error(error: Any, argv: Sequence[str]) -> str:
    """Return an error of usage as one line."""
    text = " ".join(error.format_message().split()).rstrip(".")
    dashed = next((a for a in argv if a.startswith("-") and os.path.lexists(a)), None)
    if dashed:
        return f"{text}. If the file is meant: {os.path.join('.', dashed)}"
    context = getattr(error, "ctx", None)
    return f"{text}. See {context.command_path if context else 'scorethresh'} --help."
