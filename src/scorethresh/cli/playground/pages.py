"""The pages: the first one, and the report with controls above it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from pathlib import Path

from ... import io
from ...viz.templates import fill_template, page_file, page_head
from ..onefile import report_of
from .desk import Desk, Opened, PageError
from .settings import Settings

PAGES = Path(__file__).with_name("page")
# What the page calls noise models and ways to estimate.
NOISES = {
    "auto": "found from the data",
    "white": "white: the same everywhere",
    "correlated": "correlated between neighbours",
    "poisson": "counts (Poisson)",
    "camera": "camera: grows with the light",
    "rician": "magnitudes (Rician), as in MRI",
    "speckle": "speckle, as in radar",
}
CHOICES = {"blend": "the best", "fast": "faster", "bands": "wavelets only", "global": "one threshold"}
# Fields for reading a file: the name in `Settings`, that of `io.Format.options`, and what is said in an empty field.
READING = (("axes", "axes", "as the file says"), ("column", "columns", "the only one"), ("key", "key", "the only one"))


def first_page() -> str:
    """Return the page without a file."""
    return _start("", _opening(first=True))


def failed_page(desk: Desk, settings: Settings, error: str) -> str:
    """Return the page that tells why there is no result, with the settings of the file if it is known."""
    try:
        file = desk.file(settings)
    except PageError:
        return _start("", _opening(first=True), error)
    return _start(Path(file.name).name, _settings(file, settings), error)


def result_page(desk: Desk, settings: Settings) -> str:
    """Return the report about a file with the controls above it. Raise `PageError` if there is no result."""
    file, found = desk.file(settings), desk.find(settings)
    content = _settings(file, settings) + _result(file, settings, found.notes)
    return report_of(found.result, Path(file.name).name, _panel(content))


def _start(name: str, content: str, error: str = "") -> str:
    """Return a page without a report."""
    formats = ", ".join(form.name for form in io.FORMATS if not (form.companions or form.folder))
    title = name or "scorethresh"
    fields = {"head": page_head(title, connect=True), "name": html.escape(title), "formats": formats}
    return fill_template("start.html", fields | {"panel": _panel(content, error)}, PAGES)


def _panel(content: str, error: str = "") -> str:
    fields = {"css": page_file("panel.css", PAGES), "js": page_file("panel.js", PAGES)}
    return fill_template("panel.html", fields | {"content": content, "error": html.escape(error)}, PAGES)


def _opening(*, first: bool) -> str:
    words = (
        "<b>Drop a file here</b><span>or choose one</span>" if first else "<b>Drop another file</b><span>choose</span>"
    )
    return (
        f'<label class="drop{" first" if first else ""}" for="file">{words}'
        f'<input type="file" id="file" accept="{",".join(io.suffixes())}"></label>'
    )


def _settings(file: Opened, settings: Settings) -> str:
    """Return the fields of the settings."""
    fields = [
        _select("noise", "noise", NOISES, settings.noise),
        _text("sigma", "noise level σ", "estimated", "" if settings.sigma == "auto" else settings.sigma),
        _select("choose", "estimate", CHOICES, settings.choose),
    ]
    fields += [
        _text(name, name, placeholder, getattr(settings, name))
        for name, option, placeholder in READING
        if option in file.format.options
    ]
    named = {"file": settings.file, "fields": "\n".join(fields), "opening": _opening(first=False)}
    return fill_template("settings.html", named, PAGES)


def _result(file: Opened, settings: Settings, notes: Iterable[str]) -> str:
    """Return the way to the result, the command, and what deserves attention."""
    target = Path(file.result_name).name
    named = {
        "query": settings.at_full_strength().query(),
        "name": target,
        "command": settings.command(file.name, target),
    }
    told = "".join(f'<p class="verdict attention">{html.escape(note)}</p>' for note in notes)
    escaped = {key: html.escape(text) for key, text in named.items()}
    return fill_template("result.html", escaped | {"notes": told}, PAGES)


def _select(name: str, label: str, values: Mapping[str, str], chosen: str) -> str:
    options = "".join(
        f'<option value="{value}"{" selected" if value == chosen else ""}>{html.escape(words)}</option>'
        for value, words in values.items()
    )
    return f'<label>{label} <select name="{name}">{options}</select></label>'


def _text(name: str, label: str, placeholder: str, value: str) -> str:
    return (
        f'<label>{label} <input type="text" name="{name}" placeholder="{placeholder}" value="{html.escape(value)}" '
        'size="9" autocomplete="off" spellcheck="false"></label>'
    )
