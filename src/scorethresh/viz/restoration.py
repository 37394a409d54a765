"""A page about a restoration: before and after, the steps, and what can be said of the result."""

from __future__ import annotations

import html
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from .._containers import values_of
from ..inverse.result import RestorationStep, Restored
from . import page_text
from .pictures import data_uri, display_axis, displayed, value_range

__all__ = ["write_restoration_report"]

# Most entries displayed along each axis: larger parts make larger pages.
MOST_SHOWN = 1024

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Restoration report</title>
<link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --faint: #666; --rule: #ccc; --mark: #b3261e; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e6e6e6; --paper: #16181b; --faint: #a0a0a0; --rule: #444; --mark: #ff8a80; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }}
main {{ max-width: 70rem; margin: 0 auto; padding: 1rem 1.25rem 3rem; }}
p {{ max-width: 48rem; }}
.faint {{ color: var(--faint); }}
.pictures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1rem; }}
figure {{ margin: 0; }}
img {{ display: block; width: 100%; image-rendering: pixelated; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2rem .9rem .2rem 0; text-align: right; border-bottom: 1px solid var(--rule); }}
th {{ font-weight: 600; font-size: .85rem; vertical-align: bottom; }}
tr.chosen {{ color: var(--mark); font-weight: 600; }}
</style>
</head>
<body>
<main>
<h1>Restoration</h1>
<p>{verdict}</p>
<div class="pictures">
<figure><img src="{before}" alt="The data"><figcaption class="faint">data, {before_shape}</figcaption></figure>
<figure><img src="{after}" alt="The estimate"><figcaption class="faint">estimate, {after_shape}</figcaption></figure>
</div>
<h2>Steps</h2>
<p class="faint">The level is the noise level that the denoiser was told, or the threshold. The residual is in units of
the noise: near 1 if the estimate fits. The error is the predicted root mean squared error of A x. The marked step is
returned.</p>
<div class="wide"><table>
<thead><tr><th>step</th><th>level</th><th>residual</th><th>change of x</th><th>predicted error of A x</th></tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
<p class="faint">{versions}</p>
</main>
</body>
</html>
"""


def write_restoration_report(
    path: str | os.PathLike[str], y: Any, found: Restored, channel_axis: int | None = None
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
    fields = {
        "verdict": html.escape(found.verdict),
        "before": data_uri(before, limits if same else value_range(before)),
        "after": data_uri(after, limits),
        "before_shape": " x ".join(map(str, np.shape(y))),
        "after_shape": " x ".join(map(str, estimate.shape)),
        "rows": "\n".join(_row(k, step, chosen=k == found.step) for k, step in enumerate(found.trace)),
        "versions": html.escape(page_text.versions()),
    }
    Path(path).write_text(PAGE.format(**fields), encoding="utf-8")


def _middle(a: Any) -> Any:
    """Return the middle of an array, at most `MOST_SHOWN` entries along each axis."""
    return a[tuple(slice(max((n - MOST_SHOWN) // 2, 0), max((n - MOST_SHOWN) // 2, 0) + MOST_SHOWN) for n in a.shape)]


def _row(k: int, step: RestorationStep, *, chosen: bool) -> str:
    error = "" if math.isnan(step.predicted_mse) else f"{math.sqrt(max(step.predicted_mse, 0.0)):.3g}"
    cells = (str(k + 1), f"{step.level:.3g}", f"{step.residual:.3f}", f"{step.change:.3g}", error)
    mark = ' class="chosen"' if chosen else ""
    return f"<tr{mark}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
