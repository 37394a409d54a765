"""The files in ``page/``: how pages are filled in, and written whole."""

from __future__ import annotations

import datetime
import html
import os
import re
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).with_name("page")


def page_file(name: str, folder: Path = FOLDER) -> str:
    """Return the text of a file."""
    return (folder / name).read_text(encoding="utf-8")


def fill_template(name: str, fields: Mapping[str, str], folder: Path = FOLDER) -> str:
    """Return a file with every ``{{field}}`` replaced. What is put in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match[1]], page_file(name, folder))


def page_head(title: str, *, connect: bool = False) -> str:
    """Return the head of a page: it may load nothing, and ask its own server only if `connect` is set."""
    fields = {"title": html.escape(title), "css": page_file("report.css")}
    return fill_template("head.html", fields | {"connect": "; connect-src 'self'" if connect else ""})


def date_text() -> str:
    """Return the time of now for a page."""
    return datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")


def write_whole(path: str | os.PathLike[str], page: str) -> None:
    """Write a page beside its target, and rename it when it is complete."""
    target = Path(path)
    beside = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        beside.write_text(page, encoding="utf-8")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
