"""The report: a self-contained HTML page with pictures, risk curves, bands and settings."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..denoising.denoiser import Denoiser
from ..denoising.layout import read_layout
from ..denoising.result import Band, Denoised
from ..denoising.what_if import what_if
from ..risk.curve import finite_part
from . import page_text
from .pictures import check_same_shape, data_uri, display_axis, displayed, value_range

__all__ = ["write_report"]

# Factors of the thresholds on the slider. Each adds a picture to the page and a run of the wavelets.
FACTORS = (0.25, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0)

# Most entries displayed along each axis, by the number of axes. Larger parts make larger pages. Channels have a lower
# limit, because three colours take three times the space.
MOST_SHOWN = {1: (1 << 18,), 2: (1024, 1024), 3: (16, 256, 256)}
MOST_SHOWN_CHANNELS = 576
# Most points of a risk curve. They show its shape at the size it is drawn.
MOST_CURVE_POINTS = 90


def write_report(path: str | os.PathLike[str], y: Any, denoiser: Denoiser, found: Denoised) -> None:
    """Write an HTML page about a denoised array, with a slider for other thresholds.

    Parameters
    ----------
    path : path
        The file to write, such as ``report.html``. An existing file is replaced once the page is complete.
    y : array_like
        The noisy data.
    denoiser : Denoiser
        The denoiser that was run on y.
    found : Denoised
        Its result, ``denoiser.run(y)``.

    See Also
    --------
    scorethresh.viz.plot_denoised : Draw data and estimate with matplotlib.
    scorethresh.viz.plot_bands : Draw the thresholds of the wavelet bands.

    Notes
    -----
    The page needs no other file and no network.

    Only the middle of large data is displayed: 1024 by 1024 pixels, or 576 by 576 with channels; 16 slices of 256 by
    256 of a volume, of which the picture is the middle one. The last of three axes is displayed as colours if it has 3
    or 4 entries. The slider's estimates are computed on the part displayed, at every call. This may take some seconds.
    """
    check_same_shape(y, found.estimate)
    template = Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    fields = _fields(y, denoiser, found)
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match[1]], template)
    target = Path(path)
    beside = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        beside.write_text(page, encoding="utf-8")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _fields(y: Any, denoiser: Denoiser, found: Denoised) -> dict[str, str]:
    """Return the fields of the template."""
    shape = found.estimate.shape
    axis = display_axis(shape, denoiser.channel_axis)
    sides = list(shape)
    channels = 1 if axis is None else sides.pop(axis)
    part = _middle(sides, channels)
    index = list(part)
    if axis is not None:
        index.insert(axis % len(shape), slice(0, channels))
    missing = _missing(y, denoiser)

    def shown(a: NDArray[Any]) -> Any:
        return displayed(a if missing is None else np.where(missing[tuple(index)], np.nan, a), axis)

    before, after = (shown(np.asarray(a)[tuple(index)]) for a in (y, found.estimate))
    limits = value_range(after)
    # `what_if` knows an axis of channels only if the denoiser was given one.
    tried = what_if(y, denoiser, found, FACTORS, tuple(index) if denoiser.channel_axis is None else part)
    data = {
        "signal": after.ndim == 2,
        "before": data_uri(before, limits),
        "after": data_uri(after, limits),
        "trials": [
            {
                "factor": factor,
                "picture": data_uri(shown(trial.estimate), limits),
                "psnr": page_text.psnr(found, trial.predicted_mse),
                "rms": page_text.rms(trial.predicted_mse),
            }
            # Nothing is tried if the part displayed holds no noise.
            for factor, trial in zip(FACTORS, tried, strict=False)
        ],
        "bands": [_curve(band) for band in found.bands],
    }
    return {
        # A closing tag inside a string would end the script element that holds the data.
        "data": json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        "summary": page_text.definitions(page_text.summary(denoiser, found)),
        "part_caption": html.escape(page_text.part_caption(sides, part, limits)),
        "slider_caption": html.escape(page_text.slider_caption(found)),
        "bands": "\n".join(page_text.band_row(band) for band in found.bands),
        "weights": page_text.definitions([(name, f"{weight:.1%}") for name, weight in found.weights.items()]),
        "code": html.escape(page_text.code(denoiser, found)),
        "versions": html.escape(page_text.versions()),
    }


def _missing(y: Any, denoiser: Denoiser) -> NDArray[np.bool_] | None:
    """Return where entries of y are missing, in the shape of y; None if none is."""
    missing = read_layout(y, denoiser.channel_axis, denoiser.mask).missing
    if missing is None:
        return None
    if denoiser.channel_axis is not None:
        missing = np.expand_dims(missing, denoiser.channel_axis)
    return np.broadcast_to(missing, np.shape(y))


def _middle(sides: list[int], channels: int) -> tuple[slice, ...]:
    """Return the middle part of data with these sides, small enough to be displayed."""
    most = MOST_SHOWN[len(sides)]
    if channels > 1 and len(sides) > 1:
        most = tuple(min(n, MOST_SHOWN_CHANNELS) for n in most)
    starts = [max(n - m, 0) // 2 for n, m in zip(sides, most, strict=True)]
    return tuple(slice(s, s + min(m, n)) for s, m, n in zip(starts, most, sides, strict=True))


def _curve(band: Band) -> dict[str, Any]:
    """Return points of a band's risk curve for the page, per coefficient and in units of the band's noise level."""
    curve, size = band.curve, band.curve.size
    n = finite_part(curve.thresholds).size
    at = int(np.searchsorted(curve.thresholds, band.threshold))
    spread = np.linspace(0, n - 1, min(n, MOST_CURVE_POINTS)).astype(int) if n else np.zeros(0, int)
    index = np.unique(np.append(spread, [at] if at < n else []).astype(int))
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
