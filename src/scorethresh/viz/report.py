"""The report: one page of HTML with pictures, risk curves, bands and settings that needs nothing beside itself."""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import math
import os
import platform
import re
import struct
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..denoising.denoiser import Denoiser
from ..denoising.layout import read_layout
from ..denoising.result import Band, Denoised
from ..denoising.what_if import varied_wavelet, what_if
from ..noise.models import as_noise
from ..risk.curve import finite_part
from .plot import limits, view

__all__ = ["write_report"]

# Thresholds on the slider, over those chosen.
FACTORS = (0.25, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0)

# The most entries along each axis of the part that is shown, by the number of axes; colours have three times the data.
_SHOWN = {1: (1 << 18,), 2: (1024, 1024), 3: (16, 256, 256)}
_SHOWN_COLOURS = 576
# Beyond this many samples a signal is drawn by its least and largest value in each of half as many columns.
_COLUMNS = 2000
# Points of a risk curve: enough for its shape at the size of a stamp.
_POINTS = 90


def write_report(path: str | os.PathLike[str], y: Any, denoiser: Denoiser, found: Denoised) -> None:
    """Write a page that shows what was done to y, and what other thresholds would have done.

    Parameters
    ----------
    path : path
        The file, such as ``report.html``. It is written beside and renamed, so that it is never half there.
    y : array_like
        The noisy data.
    denoiser : Denoiser
        What was run on it.
    found : Denoised
        What it found: ``denoiser.run(y)``.

    Notes
    -----
    Of large data the middle is shown, 1024 by 1024 pixels or 576 by 576 in colour, of volumes the middle slice. Other
    thresholds are tried on that part (of volumes the 16 slices around) at every call, which may take some seconds.
    """
    if np.shape(y) != found.estimate.shape:
        msg = (
            f"y must have the shape of the estimate, {found.estimate.shape}, got {np.shape(y)}. Pass the data denoised."
        )
        raise ValueError(msg)
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
    """Return what is put in the places of the template."""
    axis = denoiser.channel_axis
    where = _shown_part(found.estimate.shape, axis)
    index = list(where)
    if axis is not None:
        index.insert(axis % found.estimate.ndim, slice(None))
    missing = read_layout(y, axis, denoiser.mask).missing

    def shown(part: NDArray[Any]) -> Any:
        """Return what is shown of a part, with NaN for what is missing."""
        if missing is None:
            return view(part, axis)
        gaps = missing[where] if axis is None else np.expand_dims(missing[where], axis)
        return view(np.where(gaps, np.nan, part), axis)

    before, after = (shown(np.asarray(a)[tuple(index)]) for a in (y, found.estimate))
    ends = limits(after)
    data = {
        "signal": after.ndim == 2,
        "before": _picture(before, ends),
        "after": _picture(after, ends),
        "trials": [
            {
                "factor": factor,
                "picture": _picture(shown(trial.estimate), ends),
                "psnr": _psnr(found, trial.predicted_mse),
                "rms": _rms(trial.predicted_mse),
            }
            for factor, trial in zip(FACTORS, what_if(y, denoiser, found, FACTORS, where), strict=False)
        ],
        "bands": [_curve(band) for band in found.bands],
    }
    # A closing tag inside of a string would end the script that holds the data.
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return {
        "data": text,
        "summary": _pairs(_summary(denoiser, found)),
        "shown": html.escape(_shown_words(found.estimate.shape, axis, where, ends)),
        "parts": html.escape(_trial_words(found)),
        "bands": "\n".join(_row(band) for band in found.bands),
        "weights": _pairs([(name, f"{weight:.1%}") for name, weight in found.weights.items()]),
        "code": html.escape(_code(denoiser, found)),
        "versions": html.escape(
            ", ".join(f"{name} {version(name)}" for name in ("scorethresh", "numpy", "scipy", "PyWavelets", "numba"))
            + f", Python {platform.python_version()}"
        ),
    }


def _shown_part(shape: tuple[int, ...], channel_axis: int | None) -> tuple[slice, ...]:
    """Return the middle of large data, without the axis of channels."""
    sides = list(shape)
    channels = 1 if channel_axis is None else sides.pop(channel_axis)
    most = [min(n, _SHOWN_COLOURS) if channels > 1 and len(sides) > 1 else n for n in _SHOWN[len(sides)]]
    starts = [max(n - m, 0) // 2 for n, m in zip(sides, most, strict=True)]
    return tuple(slice(s, s + min(m, n)) for s, m, n in zip(starts, most, sides, strict=True))


def _shown_words(
    shape: tuple[int, ...], channel_axis: int | None, where: tuple[slice, ...], ends: tuple[float, float]
) -> str:
    sides = list(shape)
    if channel_axis is not None:
        sides.pop(channel_axis)
    part = "all of it"
    if any(s.stop - s.start < n for s, n in zip(where, sides, strict=True)):
        part = "entries " + ", ".join(f"{s.start} to {s.stop - 1} of {n}" for s, n in zip(where, sides, strict=True))
    if len(sides) == 3:
        part += f"; the picture is slice {(where[0].start + where[0].stop) // 2}"
    return f"Shown: {part}." + ("" if len(sides) == 1 else f" Black is {ends[0]:.4g}, white {ends[1]:.4g}.")


def _trial_words(found: Denoised) -> str:
    if not found.bands:
        return "No band was thresholded, so there is nothing to vary."
    name = found.plans[0].thresholds[varied_wavelet(found)].noise.frame.wavelet
    words = f"The estimate by {name} thresholds, all times one factor, and the error to expect in the part shown."
    if any(math.isinf(band.threshold) for band in found.bands):
        words += " Bands that were set to zero stay so."
    if found.weights:
        weight = np.mean([w for part, w in found.weights.items() if part.endswith(f"{name} thresholds")])
        words += f" The estimate above is a blend, in which these thresholds count {weight:.1%}"
        psnr = _psnr(found, found.predicted_mse)
        words += "." if psnr is None else f"; its predicted PSNR is {psnr:.2f} dB."
    return words


def _summary(denoiser: Denoiser, found: Denoised) -> list[tuple[str, str]]:
    low, high = float(np.min(found.sigma)), float(np.max(found.sigma))
    shape = " × ".join(map(str, found.estimate.shape))
    mse, error = found.predicted_mse, found.stderr
    units = as_noise(denoiser.noise, denoiser.sigma).level_units
    pairs = [
        ("data", f"{shape}, {found.estimate.dtype}"),
        ("noise level σ", f"{low:.4g}{f' to {high:.4g}' if high > low else ''}, {units}"),
        ("predicted mean squared error", f"{mse:.4g} ± {error:.2g}, in units of the data squared"),
        ("predicted rms error", f"{_rms(mse):.4g}, in units of the data"),
    ]
    psnr, peak = _psnr(found, mse), _psnr(found, 1.0)
    if psnr is not None and peak is not None:
        pairs.append(("predicted PSNR", f"{psnr:.2f} dB, for a peak of {10 ** (peak / 20):.4g}"))
    return pairs


def _psnr(found: Denoised, mse: float) -> float | None:
    """Return the PSNR with the peak of the estimate; None if it is infinite."""
    psnr = dataclasses.replace(found, predicted_mse=mse).predicted_psnr()
    return psnr if math.isfinite(psnr) else None


def _rms(mse: float) -> float:
    return math.sqrt(max(mse, 0.0))


def _pairs(pairs: list[tuple[str, str]]) -> str:
    return "\n".join(f"<div><dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd></div>" for k, v in pairs)


def _row(band: Band) -> str:
    k = int(np.searchsorted(band.curve.thresholds, band.threshold))
    size = band.curve.size
    cells = [
        band.name,
        f"{band.sigma:.4g}",
        f"{band.threshold / band.sigma:.3f}" if math.isfinite(band.threshold) else "∞, set to zero",
        f"{band.kept:.1%}",
        f"{band.curve.risk[k] / size / band.sigma**2:.4g}",
        f"{band.curve.dof[k] / size:.4g}",
    ]
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def _curve(band: Band) -> dict[str, Any]:
    """Return a band for the page: a few points of its curve, per coefficient and over its noise level."""
    curve, size = band.curve, band.curve.size
    n = finite_part(curve.thresholds).size
    at = int(np.searchsorted(curve.thresholds, band.threshold))
    chosen = np.linspace(0, n - 1, min(n, _POINTS)).astype(int) if n else np.zeros(0, int)
    index = np.unique(np.append(chosen, [at] if at < n else []).astype(int))
    unit = size * band.sigma**2

    def short(values: Any) -> list[float]:
        return [float(f"{v:.4g}") for v in np.atleast_1d(values)]

    return {
        "name": band.name,
        "t": short(curve.thresholds[index] / band.sigma),
        "risk": short(curve.risk[index] / unit),
        "dof": short(curve.dof[index] / size),
        "error": short(2 * curve.stderr[index] / unit),
        "at": int(np.searchsorted(index, at)) if at < n else None,
        "zero": short([curve.risk[-1] / unit, curve.dof[-1] / size]) if n < curve.thresholds.size else None,
    }


def _code(denoiser: Denoiser, found: Denoised) -> str:
    """Return lines of Python that run the same again."""
    lines = [f"import scorethresh as st  # {version('scorethresh')}", ""]
    words = []
    for field in dataclasses.fields(denoiser):
        value = getattr(denoiser, field.name)
        if field.name == "progress" or (np.ndim(value) == 0 and value == field.default):
            continue
        if np.ndim(value) and np.size(value) > 8:
            a = np.asarray(value)
            lines.append(f"{field.name} = ...  # an array of shape {a.shape} and dtype {a.dtype}")
            words.append(f"{field.name}={field.name}")
        else:
            words.append(f"{field.name}={_source(value)}")
    shape, dtype = found.estimate.shape, found.estimate.dtype
    lines += [
        f"y = ...  # the noisy data, an array of shape {shape} and dtype {dtype}",
        f"found = st.Denoiser({', '.join(words)}).run(y)",
        "found.estimate",
    ]
    return "\n".join(lines)


def _source(value: Any) -> str:
    """Return a value as Python code."""
    if type(value).__module__.startswith("scorethresh."):
        return f"st.{value!r}"
    return repr(np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value)


def _picture(shown: NDArray[Any], ends: tuple[float, float]) -> str:
    """Return what `view` gives as the address of a picture that holds itself."""
    if shown.ndim == 2:
        return "data:image/svg+xml;base64," + base64.b64encode(_lines(shown, ends).encode()).decode()
    low, high = ends
    scaled = (np.nan_to_num(shown.astype(np.float64), nan=low) - low) / ((high - low) or 1.0)
    return "data:image/png;base64," + base64.b64encode(png(np.rint(255 * scaled.clip(0, 1)).astype(np.uint8))).decode()


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return (rows, columns, 1 or 3) as a PNG file."""
    rows, columns, colours = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    # Filter 1: every pixel minus the one to its left. Smooth pictures take half the space.
    left = np.diff(pixels, axis=1, prepend=np.zeros((rows, 1, colours), np.uint8))
    lines = np.hstack([np.ones((rows, 1), np.uint8), left.reshape(rows, -1)])
    header = struct.pack(">IIBBBBB", columns, rows, 8, 0 if colours == 1 else 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _lines(signal: NDArray[Any], ends: tuple[float, float]) -> str:
    """Return the channels of a signal as lines in an SVG picture."""
    n, low = len(signal), ends[0]
    span = (ends[1] - low) or 1.0
    margin = 0.15 * span  # noise goes beyond the range of the estimate
    low, span = low - margin, span + 2 * margin
    width, height, left, bottom = 1000, 400, 70, 370
    x0 = np.arange(n)
    paths = []
    for values, dash in zip(signal.T.astype(np.float64), ("none", "8 4", "2 3", "8 3 2 3") * n, strict=False):
        x = x0
        if n > _COLUMNS:
            starts = np.linspace(0, n, _COLUMNS // 2, endpoint=False).astype(int)
            values = np.stack([np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)], axis=1).ravel()
            x = np.repeat(starts, 2)
        place = left + x / max(n - 1, 1) * (width - left - 10)
        rise = bottom - (values - low) / span * (bottom - 10)
        known = np.isfinite(rise)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(place[known], rise[known], strict=True))
        paths.append(f'<polyline points="{points}" fill="none" stroke="#111" stroke-dasharray="{dash}"/>')
    marks = [
        f'<text x="{left - 6}" y="{bottom - (v - low) / span * (bottom - 10) + 5:.0f}" text-anchor="end">{v:.3g}</text>'
        for v in np.linspace(*ends, 3)
    ]
    marks += [
        f'<text x="{left}" y="{height - 10}">sample 0</text>',
        f'<text x="{width - 10}" y="{height - 10}" text-anchor="end">{n - 1}</text>',
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<rect width="{width}" height="{height}" fill="#fff"/><clipPath id="c"><rect x="{left}" y="0" '
        f'width="{width - left}" height="{bottom}"/></clipPath><g font-family="sans-serif" font-size="15">'
        f'{"".join(marks)}</g><path d="M{left} 5V{bottom}H{width}" fill="none" stroke="#888"/>'
        f'<g clip-path="url(#c)">{"".join(paths)}</g></svg>'
    )
