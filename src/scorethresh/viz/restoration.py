"""A page about a restoration: before and after, the steps, and what can be said of the result."""

from __future__ import annotations

import html
import math
import os
from typing import Any

import numpy as np

from .._containers import values_of
from ..inverse.result import RestorationStep, Restored
from . import page_text
from .pictures import data_uri, display_axis, displayed, value_range
from .templates import date_text, fill_template, page_head, write_whole

__all__ = ["write_restoration_report"]

# Most entries displayed along each axis: larger parts make larger pages.
MOST_SHOWN = 1024


def write_restoration_report(
    path: str | os.PathLike[str], y: Any, found: Restored, channel_axis: int | None = None, *, name: str = ""
) -> None:
    """Write an HTML page about a restored array: pictures, the steps and the verdict.

    Parameters
    ----------
    path : path
        The file to write, such as ``report.html``.
    y : array_like
        The data. Those that are no picture of x, such as Fourier samples, are displayed by their modulus.
    found : Restored
        What ``Restorer(...).run(y)`` returned.
    channel_axis : int, optional
        The axis of colours.
    name : str
        The title, such as the name of a file.

    See Also
    --------
    scorethresh.Restorer : restores.
    scorethresh.viz.report.write_report : the same for denoising.

    Notes
    -----
    The page needs no other file and no network. Of large data the middle is displayed, 1024 entries along each axis.
    """
    y, estimate = values_of(y), values_of(found.estimate)
    before, after = (displayed(_middle(np.asarray(a)), display_axis(np.shape(a), channel_axis)) for a in (y, estimate))
    limits = value_range(after)
    same = np.iscomplexobj(y) == np.iscomplexobj(estimate)
    title = page_text.visible(name) or "Restoration"
    fields = {
        "head": page_head(title),
        "title": html.escape(title),
        "date": date_text(),
        "verdict": html.escape(found.verdict),
        "before": data_uri(before, limits if same else value_range(before)),
        "after": data_uri(after, limits),
        "before_shape": " x ".join(map(str, np.shape(y))),
        "after_shape": " x ".join(map(str, estimate.shape)),
        "rows": "\n".join(_row(k, step, chosen=k == found.step) for k, step in enumerate(found.trace)),
        "versions": html.escape(page_text.versions()),
    }
    write_whole(path, fill_template("restoration.html", fields))


def _middle(a: Any) -> Any:
    """Return the middle of an array, at most `MOST_SHOWN` entries along each axis."""
    return a[tuple(slice(max((n - MOST_SHOWN) // 2, 0), max((n - MOST_SHOWN) // 2, 0) + MOST_SHOWN) for n in a.shape)]


def _row(k: int, step: RestorationStep, *, chosen: bool) -> str:
    error = "" if math.isnan(step.predicted_mse) else f"{math.sqrt(max(step.predicted_mse, 0.0)):.3g}"
    cells = (str(k + 1), f"{step.level:.3g}", f"{step.residual:.3f}", f"{step.change:.3g}", error)
    mark = ' class="chosen"' if chosen else ""
    return f"<tr{mark}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
