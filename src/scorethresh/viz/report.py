"""The report: a self-contained HTML page that tells what became of the data."""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._containers import values_of
from .._rounding import plain
from ..denoising.denoiser import Denoiser
from ..denoising.result import Band, Denoised
from ..risk.curve import finite_part
from . import page_text
from .pictures import check_same_shape, data_uri, display_axis, error_uri, value_range, without_container
from .residual import Autocorrelation, autocorrelation
from .templates import date_text, fill_template, page_file, page_head, write_whole
from .views import View, missing_entries, removed_from, spread, views_of

__all__ = ["write_report"]

# What a page without a name is called.
TITLE = "Denoising report"
# Most points of a risk curve. They show its shape at the size it is drawn.
MOST_CURVE_POINTS = 60
# Removed noise is drawn from black to white within this many rms values. Fewer saturate, more hide structure.
REMOVED_RANGE = 3


class Energies(NamedTuple):
    """Mean squares per entry: of the noise, of the error that remains, and of what was removed."""

    noise: float
    error: float
    removed: float

    def at_strength(self, strength: float) -> float:
        """Return the predicted error of ``(1 - strength) y + strength estimate``.

        Notes
        -----
        The error of the mixture is ``(1-s)^2 |w|^2 + s^2 |e|^2 + 2 s (1-s) <w, e>`` with the noise w and the error e of
        the estimate. What was removed is w - e, so ``2 <w, e> = |w|^2 + |e|^2 - |w - e|^2``.
        """
        s = strength
        return (1 - s) * self.noise + s * self.error - s * (1 - s) * self.removed


def write_report(
    path: str | os.PathLike[str],
    y: Any,
    denoiser: Denoiser,
    found: Denoised | Sequence[Denoised],
    *,
    name: str = "",
    part_names: Sequence[str] = (),
    strength: float = 1.0,
) -> None:
    """Write an HTML page about denoised data.

    Parameters
    ----------
    path : path
        The file to write, such as ``report.html``. An existing file is replaced once the page is complete.
    y : array_like, or sequence of them
        The noisy data; of a stack, each part.
    denoiser : Denoiser
        The denoiser that was run on y.
    found : Denoised, or sequence of them
        Its result, ``denoiser.run(y)``; of a stack, one for each part.
    name : str
        The title, such as the name of a file.
    part_names : sequence of str
        Of a stack, what each part is called. By default ``page 1`` and so on.
    strength : float
        Where the slider of the strength stands, 0 to 1. At 1 the estimate is shown.

    See Also
    --------
    scorethresh.viz.plot_denoised : Draw data and estimate with matplotlib.
    scorethresh.viz.plot_bands : Draw the thresholds of the wavelet bands.

    Notes
    -----
    The page needs no other file and no network.

    Only the middle of large data is displayed: 1024 by 1024 pixels, 576 by 576 with colours, up to 12 slices of 256 by
    256 of a volume, up to 12 parts of a stack, 2^18 samples of a signal. The last of three axes is displayed as colours
    if it has 3 or 4 entries. What was chosen is told of the middle part of a stack.
    """
    page = report_page(y, denoiser, found, name=name, part_names=part_names, strength=strength)
    write_whole(path, page)


def report_page(
    y: Any,
    denoiser: Denoiser,
    found: Denoised | Sequence[Denoised],
    *,
    name: str = "",
    part_names: Sequence[str] = (),
    strength: float = 1.0,
    panel: str = "",
) -> str:
    """Return the page that `write_report` writes, with the same parameters.

    Parameters
    ----------
    panel : str
        HTML of controls above the report, for a page that a server gives out. It may ask that server for more.
    """
    results = list(map(without_container, [found] if isinstance(found, Denoised) else found))
    arrays = list(map(values_of, [y] if isinstance(found, Denoised) else y))
    if not results or len(results) != len(arrays):
        msg = f"found must hold one result for each of the {len(arrays)} arrays in y, got {len(results)}."
        raise ValueError(msg)
    for a, result in zip(arrays, results, strict=True):
        check_same_shape(a, result.estimate)
    names = list(part_names) or [f"page {k + 1} of {len(results)}" for k in range(len(results))]
    fields = _fields(arrays, denoiser, results, names, name) | {
        "head": page_head(page_text.visible(name) or TITLE, connect=bool(panel)),
        "strength": f"{100 * strength:.0f}",
        "panel": panel,
        "js": page_file("report.js"),
    }
    return fill_template("report.html", fields)


def _fields(
    arrays: list[Any], denoiser: Denoiser, results: list[Denoised], names: Sequence[str], name: str
) -> dict[str, str]:
    """Return the fields of the template."""
    middle = len(results) // 2
    y, found = arrays[middle], results[middle]
    energies = [energies_of(a, denoiser, one) for a, one in zip(arrays, results, strict=True)]
    residual = _residual(y, denoiser, found)
    views, words = _views(arrays, denoiser, results, names)
    limits = value_range(np.concatenate([view.after.ravel() for view, _ in views]))
    data: dict[str, Any] = {
        "signal": views[0][0].after.ndim == 1,
        "limits": limits,
        "views": _pictures([view for view, _ in views], limits, energies[middle]),
        "energies": [_numbers(energies[k]) for _, k in views],
        "start": len(views) // 2 if len(views) > 1 else 0,
        "residual": None if residual is None else _correlations(residual),
        "scales": _scales(found.bands),
    }
    for entry, (_, k) in zip(data["views"], views, strict=True):
        entry["told"] = page_text.headline(results[k], energies[k].noise) if len(results) > 1 else ""
    warnings = list(dict.fromkeys(text for one in results for text in one.warnings))
    story = _total_headline(results, energies)
    shown = f"Shown: {words}." if words else ""
    return {
        # A closing tag inside a string would end the script element that holds the data.
        "data": json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        "title": html.escape(page_text.visible(name) or TITLE),
        "date": date_text(),
        "headline": html.escape(story),
        "verdict": html.escape(" ".join(warnings) or found.verdict),
        "verdict_class": "attention" if warnings else "fine",
        "facts": page_text.definitions(page_text.facts(denoiser, found)),
        "pages": "\n".join(
            page_text.cells([names[k], page_text.error_text(one), one.verdict]) for k, one in enumerate(results)
        )
        if len(results) > 1
        else "",
        "shown": html.escape(shown),
        "removed_words": html.escape(page_text.removed_words(found, residual)),
        "choice_words": html.escape(page_text.choice_words(denoiser, found)),
        "weights": page_text.weight_bars(found),
        "bands": "\n".join(page_text.band_row(band) for band in found.bands),
        "code": html.escape(page_text.code(denoiser, found)),
        "versions": html.escape(page_text.versions()),
    }


def energies_of(y: Any, denoiser: Denoiser, found: Denoised) -> Energies:
    """Return the mean squares of noise, error and what was removed, over the entries that are not missing."""
    missing = missing_entries(y, denoiser)
    difference = np.ma.getdata(y).astype(np.result_type(found.estimate.dtype, float)) - np.ma.getdata(found.estimate)
    known = np.ones(difference.shape, bool) if missing is None else ~missing
    parts = 2 if np.iscomplexobj(difference) else 1
    count = max(int(known.sum()) * parts, 1)
    removed = float(np.square(np.abs(difference[known])).sum()) / count
    blocks = found.error_blocks
    noise = 0.0 if blocks is None else float(blocks.sums[2].sum()) / count
    return Energies(noise, max(found.predicted_mse, 0.0), removed)


def _total_headline(results: list[Denoised], energies: list[Energies]) -> str:
    """Return the headline; of a stack for all parts together."""
    if len(results) == 1:
        return page_text.headline(results[0], energies[0].noise)
    noise = float(np.mean([one.noise for one in energies]))
    error = float(np.mean([one.predicted_mse for one in results]))
    if noise <= 0 or error <= 0:
        return f"{len(results)} parts were denoised."
    times, before, after = (
        plain(v, digits) for v, digits in (((noise / error) ** 0.5, 2), (noise**0.5, 3), (error**0.5, 3))
    )
    return f"The noise of {len(results)} parts is reduced {times} times: from σ = {before} to an error of {after}."


def _views(
    arrays: list[Any], denoiser: Denoiser, results: list[Denoised], names: Sequence[str]
) -> tuple[list[tuple[View, int]], str]:
    """Return the views, each with the number of its part, and which part of the data they show."""
    if len(results) == 1:
        shown = views_of(arrays[0], denoiser, results[0])
        return [(view, 0) for view in shown.views], shown.words
    views = []
    chosen = spread(len(results))
    for k in chosen:
        shown = views_of(arrays[k], denoiser, results[k])
        view = shown.views[len(shown.views) // 2]
        label = ", ".join(filter(None, [page_text.visible(names[k]), view.label]))
        views.append((View(label, view.before, view.after, view.removed, view.error), k))
    more = f"{len(chosen)} of {len(results)} parts" if len(chosen) < len(results) else ""
    return views, "; ".join(filter(None, [more, shown.words]))


def _pictures(views: list[View], limits: tuple[float, float], energies: Energies) -> list[dict[str, Any]]:
    """Return the views as the page holds them: samples of signals, pictures of everything else."""
    top = float(np.nanmax([np.nanmax(view.error, initial=0.0) for view in views]))
    low = float(np.nanmin([np.nanmin(view.error, initial=np.inf) for view in views]))
    spreads = REMOVED_RANGE * (energies.removed**0.5 or 1.0)
    out = []
    for view in views:
        entry: dict[str, Any] = {"label": view.label, "errors": [low if np.isfinite(low) else 0.0, top]}
        if view.after.ndim == 1:
            entry |= {key: _samples(getattr(view, key)) for key in ("before", "after", "removed", "error")}
        else:
            entry |= {
                "before": data_uri(view.before, limits),
                "after": data_uri(view.after, limits),
                "removed": data_uri(view.removed, (-spreads, spreads)),
                "error": error_uri(view.error, (entry["errors"][0], top)),
            }
        out.append(entry)
    return out


def _samples(values: NDArray[Any]) -> str:
    """Return numbers as text: single precision, little-endian, base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()


def _numbers(energies: Energies) -> list[float]:
    return [float(f"{v:.6g}") for v in energies]


def _residual(y: Any, denoiser: Denoiser, found: Denoised) -> Autocorrelation | None:
    removed, missing = removed_from(y, found), missing_entries(y, denoiser)
    axis = display_axis(removed.shape, denoiser.channel_axis)
    return autocorrelation(removed if missing is None else np.where(missing, np.nan, removed), axis)


def _correlations(residual: Autocorrelation) -> dict[str, Any]:
    axes = [{"name": name, "r": [float(f"{v:.4f}") for v in r]} for name, r in residual.axes.items() if r.size > 1]
    return {"axes": axes, "stderr": float(f"{residual.stderr:.4g}")}


def _scales(bands: Sequence[Band]) -> list[dict[str, Any]]:
    """Return the risk curves by scale, the finest first."""
    levels = sorted({band.level for band in bands})
    return [{"level": level, "bands": [_curve(b) for b in bands if b.level == level]} for level in levels]


def _curve(band: Band) -> dict[str, Any]:
    """Return points of a band's risk curve for the page, per coefficient and in units of the band's noise level."""
    curve, size = band.curve, band.curve.size
    n = finite_part(curve.thresholds).size
    at = int(np.searchsorted(curve.thresholds, band.threshold))
    some = np.linspace(0, n - 1, min(n, MOST_CURVE_POINTS)).astype(int) if n else np.zeros(0, int)
    index = np.unique(np.append(some, [at] if at < n else []).astype(int))
    unit = size * band.sigma**2

    def rounded(values: Any) -> list[float]:
        return [float(f"{v:.4g}") for v in np.atleast_1d(values)]

    return {
        "name": band.name,
        "t": rounded(curve.thresholds[index] / band.sigma),
        "risk": rounded(curve.risk[index] / unit),
        "dof": rounded(curve.dof[index] / size),
        "error": rounded(np.nan_to_num(2 * curve.stderr[index] / unit, posinf=0.0)),  # that of one entry is infinite
        "at": int(np.searchsorted(index, at)) if at < n else None,
        "zero": rounded([curve.risk[-1] / unit, curve.dof[-1] / size]) if n < curve.thresholds.size else None,
    }
