"""The words of the report: summary, captions, table rows, and code that repeats the run."""

from __future__ import annotations

import dataclasses
import html
import math
import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from ..denoising.denoiser import Denoiser
from ..denoising.result import Band, Denoised
from ..denoising.what_if import varied_wavelet
from ..noise.models import as_noise

# Packages whose versions are listed: those that results depend on.
PACKAGES = ("scorethresh", "numpy", "scipy", "PyWavelets")

# A longer array, such as a mask, is not written out in the code.
MOST_LITERALS = 8


def summary(denoiser: Denoiser, found: Denoised) -> list[tuple[str, str]]:
    """Return the names and values of the summary: data, noise level, predicted errors."""
    low, high = float(np.min(found.sigma)), float(np.max(found.sigma))
    shape = " × ".join(map(str, found.estimate.shape))
    mse = found.predicted_mse
    units = as_noise(denoiser.noise, denoiser.sigma).level_units
    pairs = [
        ("data", f"{shape}, {found.estimate.dtype}"),
        ("noise level σ", f"{low:.4g}{f' to {high:.4g}' if high > low else ''}, {units}"),
        ("predicted mean squared error", f"{mse:.4g} ± {found.stderr:.2g}, in units of the data squared"),
        ("predicted rms error", f"{rms(mse):.4g}, in units of the data"),
    ]
    decibels, peak = psnr(found, mse), psnr(found, 1.0)
    if decibels is not None and peak is not None:
        pairs.append(("predicted PSNR", f"{decibels:.2f} dB, for a peak of {10 ** (peak / 20):.4g}"))
    return pairs


def psnr(found: Denoised, mse: float) -> float | None:
    """Return the PSNR of an error in decibels, with the peak of `Denoised.predicted_psnr`; None if it is infinite."""
    decibels = dataclasses.replace(found, predicted_mse=mse).predicted_psnr()
    return decibels if math.isfinite(decibels) else None


def rms(mse: float) -> float:
    """Return the root of a predicted error; 0 if the prediction is negative."""
    return math.sqrt(max(mse, 0.0))


def part_caption(sides: list[int], part: tuple[slice, ...], limits: tuple[float, float]) -> str:
    """Say which part of data with these sides is displayed, and the values of black and white."""
    words = "all of it"
    if any(s.stop - s.start < n for s, n in zip(part, sides, strict=True)):
        words = "entries " + ", ".join(f"{s.start} to {s.stop - 1} of {n}" for s, n in zip(part, sides, strict=True))
    if len(sides) == 3:
        words += f"; the picture is slice {(part[0].start + part[0].stop) // 2}"
    return f"Shown: {words}." + ("" if len(sides) == 1 else f" Black is {limits[0]:.4g}, white {limits[1]:.4g}.")


def slider_caption(found: Denoised) -> str:
    """Say what the slider varies, and how that relates to the estimate."""
    if not found.bands:
        return "No band was thresholded, so there is nothing to vary."
    name = found.plans[0].experts.thresholds[varied_wavelet(found)].noise.frame.wavelet
    words = f"The estimate by {name} thresholds, all multiplied by one factor, with its predicted error in this part."
    if any(math.isinf(band.threshold) for band in found.bands):
        words += " Bands that were set to zero stay zero."
    if found.weights:
        weight = np.mean([w for expert, w in found.weights.items() if expert.endswith(f"{name} thresholds")])
        words += f" The estimate above is a blend, in which these thresholds have a weight of {weight:.1%}."
        decibels = psnr(found, found.predicted_mse)
        words += "" if decibels is None else f" Its predicted PSNR is {decibels:.2f} dB."
    return words


def definitions(pairs: list[tuple[str, str]]) -> str:
    """Return names and values as entries of an HTML definition list."""
    return "\n".join(f"<div><dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd></div>" for k, v in pairs)


def band_row(band: Band) -> str:
    """Return a band as a row of the HTML table."""
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


def code(denoiser: Denoiser, found: Denoised) -> str:
    """Return Python code that repeats the run. Data and long arrays are left as ``...``."""
    lines = [f"import scorethresh as st  # {version('scorethresh')}", ""]
    arguments = []
    for field in dataclasses.fields(denoiser):
        value = getattr(denoiser, field.name)
        if field.name == "progress" or (np.ndim(value) == 0 and value == field.default):
            continue
        if np.ndim(value) and np.size(value) > MOST_LITERALS:
            a = np.asarray(value)
            lines.append(f"{field.name} = ...  # an array of shape {a.shape} and dtype {a.dtype}")
            arguments.append(f"{field.name}={field.name}")
        else:
            arguments.append(f"{field.name}={_literal(value)}")
    shape, dtype = found.estimate.shape, found.estimate.dtype
    lines += [
        f"y = ...  # the noisy data, an array of shape {shape} and dtype {dtype}",
        f"found = st.Denoiser({', '.join(arguments)}).run(y)",
        "found.estimate",
    ]
    return "\n".join(lines)


def _literal(value: Any) -> str:
    """Return a value as Python code."""
    if type(value).__module__.startswith("scorethresh."):
        return f"st.{value!r}"
    return repr(np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value)


def versions() -> str:
    """List the versions of `PACKAGES` and of Python."""
    return ", ".join([*(f"{name} {version(name)}" for name in PACKAGES), f"Python {platform.python_version()}"])
