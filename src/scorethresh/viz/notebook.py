"""What a notebook shows of a result: a small picture, the numbers, and a sentence."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._containers import values_of
from .._rounding import plain, with_error
from ..denoising.lowrank.result import LowRankDenoised
from ..denoising.result import Denoised
from ..inverse.result import Restored
from ..risk.curve import finite_part
from ..select.parameter_result import ParameterSelection
from ..select.rank import RankSelection
from ..select.selection import Selection
from . import page_text
from .parameter import shown_parameter
from .pictures import data_uri, display_axis, displayed, svg, svg_uri, value_range, without_container

# Most pixels along the longer side of the picture, and its width on the page. More make the notebook larger.
MOST_PIXELS = 256
WIDTH = 220
# Risks above this many times the least one, and above that of the data, are cut off.
MOST_RISK = 4.0


def denoised_html(found: Denoised) -> str:
    """Return a small picture of the estimate, the verdict and the numbers as HTML."""
    found = without_container(found)
    rows = [
        *_data_row(found.estimate),
        ("noise", found.noise.name),
        ("noise level σ", page_text.level_text(found)),
        ("predicted error (rms)", page_text.error_text(found)),
    ]
    return _html(*_thumbnail(found.estimate), rows, found.verdict)


def restored_html(found: Restored) -> str:
    """Return a small picture of the estimate, the verdict and the numbers as HTML."""
    estimate = values_of(found.estimate)
    rows = [
        *_data_row(estimate),
        ("noise level σ", plain(found.sigma)),
        ("predicted squared error of A x", with_error(found.predicted_mse, found.stderr)),
        ("determined by the data", f"{found.determined:.0%}"),
    ]
    return _html(*_thumbnail(estimate), rows, found.verdict)


def selection_html(found: Selection) -> str:
    """Return a small picture of the risk curve, the remedy and the numbers as HTML."""
    curve = found.curve
    tried = finite_part(curve.thresholds)
    unit = curve.size * curve.sigma**2
    risk = curve.risk[: tried.size] / unit
    k = int(np.searchsorted(curve.thresholds, found.threshold))
    rows = [
        ("threshold", plain(found.threshold)),
        ("estimated risk", with_error(found.risk, float(curve.stderr[k]))),
        ("degrees of freedom", f"{plain(found.dof)} of {curve.size}"),
        ("noise level σ", plain(curve.sigma)),
        ("status", str(found.status)),
    ]
    picture = ""
    if tried.size > 1 and np.isfinite(risk).all():
        limits = float(min(risk.min(), 0.0)), float(min(risk.max(), max(1.25, MOST_RISK * risk.min())))
        ends = (f"threshold {plain(tried[0] / curve.sigma)} σ", f"{plain(tried[-1] / curve.sigma)} σ")
        picture = svg_uri(svg(risk[:, None], limits, ends))
    return _html(picture, "estimated risk per entry, in units of σ²", 2 * WIDTH, rows, found.status.remedy)


def parameter_html(found: ParameterSelection) -> str:
    """Return a small picture of the estimate, the remedy and the numbers as HTML."""
    estimate, curve = values_of(found.estimate), found.curve
    rows = [
        *_data_row(estimate),
        ("parameter", shown_parameter(found.parameter)),
        ("estimated risk", with_error(found.risk, found.stderr)),
        ("over that of y", f"{found.risk / curve.noise_energy:.1%}"),
        ("degrees of freedom", f"{plain(found.dof)} of {curve.size}"),
        ("tried", f"{len(curve.parameters)} parameters, {found.calls} calls"),
        ("status", str(found.status)),
    ]
    return _html(*_thumbnail(estimate), rows, found.status.remedy)


def rank_html(found: RankSelection) -> str:
    """Return a small picture of the singular values, the remedy and the numbers as HTML; of a stack, the ranks."""
    m, n = found.estimate.shape[-2:]
    if np.ndim(found.rank):
        ranks = f"{np.min(found.rank)} to {np.max(found.rank)}"
        return _html("", "", 0, [("matrices", f"{np.size(found.rank)} of {m} × {n}"), ("ranks", ranks)], "")
    values = np.asarray(found.singular_values, np.float64)
    rows = [
        ("matrix", f"{m} × {n}, {found.estimate.dtype}"),
        ("rank", str(found.rank)),
        ("threshold", plain(found.threshold)),
        ("noise level σ", plain(found.sigma)),
        ("estimated risk", with_error(found.risk, found.stderr)),
        ("status", str(found.status)),
    ]
    picture = ""
    if values.size > 1:
        limits = (0.0, float(values.max()) or 1.0)
        picture = svg_uri(svg(values[:, None], limits, ("value 1", str(values.size))))
    return _html(picture, "singular values", 2 * WIDTH, rows, found.status.remedy)


def lowrank_html(found: LowRankDenoised) -> str:
    """Return a small picture of the mean of the series and the numbers as HTML."""
    estimate = np.ma.getdata(values_of(found.estimate))
    known = found.sigma > 0
    level, rank = (float(np.median(a[known])) if known.any() else 0.0 for a in (found.sigma, found.rank))
    rows = [
        *_data_row(estimate),
        ("median noise level σ", plain(level)),
        ("median rank", f"{rank:.1f}"),
        ("patches", " × ".join(map(str, found.patch)) or "none"),
        ("predicted squared error", with_error(found.predicted_mse, found.stderr)),
    ]
    axis = next(k for k in range(estimate.ndim) if np.delete(estimate.shape, k).tolist() == list(found.sigma.shape))
    picture, _, width = _thumbnail(np.abs(estimate).mean(axis=axis))
    return _html(picture, "the mean of the estimate over the series", width, rows, "")


def _data_row(estimate: Any) -> list[tuple[str, str]]:
    return [("data", f"{' × '.join(map(str, estimate.shape))}, {estimate.dtype}")]


def _thumbnail(estimate: Any) -> tuple[str, str, int]:
    """Return the address of a small picture, what it shows, and its width; no address if there are too many axes."""
    if not 1 <= estimate.ndim <= 3:
        return "", "the estimate", WIDTH
    shown = displayed(np.ma.getdata(estimate), display_axis(estimate.shape, None))
    if shown.ndim == 3:
        step = -(-max(shown.shape[:2]) // MOST_PIXELS)
        shown = shown[::step, ::step]
    return data_uri(shown, value_range(shown)), "the estimate", WIDTH if shown.ndim == 3 else 2 * WIDTH


def _html(picture: str, shows: str, width: int, rows: Sequence[tuple[str, str]], sentence: str) -> str:
    cells = "".join(
        f'<tr><th style="text-align:left">{html.escape(k)}</th><td style="text-align:left">{html.escape(v)}</td></tr>'
        for k, v in rows
    )
    image = f'<img alt="{shows}" title="{shows}" width="{width}" src="{picture}">' if picture else ""
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">{image}'
        f"<div><table>{cells}</table><p>{html.escape(sentence)}</p></div></div>"
    )
