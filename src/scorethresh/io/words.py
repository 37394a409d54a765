"""Text for messages about files: short, whatever the file holds."""

from __future__ import annotations

from collections.abc import Sequence

# Longest list, name and sentence of a library in a message. A message is read on one or two lines of a terminal.
MAX_LISTED = 10
MAX_NAME = 40
MAX_SENTENCE = 300


def shorten(text: str, length: int = MAX_NAME) -> str:
    """Return the text, cut to `length` characters; three dots mark the cut."""
    return text if len(text) <= length else f"{text[: length - 3]}..."


def listed(names: Sequence[str]) -> str:
    """Return the names as a list, such as ``a, b, c``; long lists are cut and counted.

    Examples
    --------
    >>> listed([str(k) for k in range(1000)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (1000 in all)'
    """
    shown = ", ".join(shorten(name) for name in names[:MAX_LISTED])
    return shown if len(names) <= MAX_LISTED else f"{shown}, ... ({len(names)} in all)"


def first_line(error: BaseException) -> str:
    """Return the first line of the message of an error, or its type if it has none."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return shorten(line.rstrip("."), MAX_SENTENCE)
