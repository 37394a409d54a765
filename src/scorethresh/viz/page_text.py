"""The words of the report: the story, captions, table rows, and code that repeats the run."""

from __future__ import annotations

import dataclasses
import html
import math
import platform
import re
from importlib.metadata import version
from typing import Any

import numpy as np

from .._rounding import plain, with_error
from ..denoising.denoiser import Denoiser
from ..denoising.result import PEAKS, Band, Denoised
from ..noise.base import NoiseModel
from .residual import WHITE, Autocorrelation

# Packages whose versions are listed: those that results depend on.
PACKAGES = ("scorethresh", "numpy", "scipy", "PyWavelets")

# A longer array, such as a mask, is not written out in the code.
MOST_LITERALS = 8

# Experts with less weight are not listed.
LEAST_WEIGHT = 0.005

# What experts do, by patterns of their names.
EXPERTS = (
    (r"patches that look alike", "patches that look alike, each estimated from the others"),
    (r"guided windows of (\d+)", r"frequencies in windows of \1, shrunk as a first estimate suggests"),
    (r"(\w+) thresholds", r"wavelets (\1), small coefficients set to zero"),
)


def headline(found: Denoised, noise_mse: float) -> str:
    """Say in one sentence how much better the data became."""
    if not noise_mse:
        return found.verdict or "No noise was found. The data were left as they are."
    times = math.sqrt(noise_mse / found.predicted_mse)
    return (
        f"The noise is reduced {plain(times, 2)} times: from σ = {plain(math.sqrt(noise_mse))} to an error of "
        f"{error_text(found)}."
    )


def error_text(found: Denoised) -> str:
    """Return the predicted root mean squared error, rounded to its standard error."""
    root = rms(found.predicted_mse)
    return with_error(root, found.stderr / (2 * root)) if root else "0"


def level_text(found: Denoised) -> str:
    """Return the noise level, or the range of the levels of all channels."""
    low, high = plain(float(np.min(found.sigma))), plain(float(np.max(found.sigma)))
    return low if low == high else f"{low} to {high}"


def rms(mse: float) -> float:
    """Return the root of a predicted error; 0 if the prediction is negative."""
    return math.sqrt(max(mse, 0.0))


def facts(denoiser: Denoiser, found: Denoised) -> list[tuple[str, str]]:
    """Return names and values: data, noise, predicted errors."""
    pairs = [("data", f"{' × '.join(map(str, found.estimate.shape))}, {found.estimate.dtype}")]
    pairs.append(("noise model", found.noise.name))
    # The level of transformed data is not one of the data.
    if found.noise.level_units == NoiseModel.level_units and np.max(found.sigma) > 0:
        how = "estimated" if denoiser.sigma is None else "given"
        pairs.append(("noise level σ", f"{level_text(found)}, {how}"))
    pairs.append(("predicted error (rms)", f"{error_text(found)}, in units of the data"))
    peak = PEAKS.get(found.estimate.dtype.name)
    if peak == 255.0 and found.predicted_mse > 0:
        pairs.append(("predicted PSNR", f"{found.predicted_psnr():.1f} dB, for a range of 255"))
    if found.outliers:
        pairs.append(("outliers replaced", str(found.outliers)))
    return pairs


def removed_words(found: Denoised, residual: Autocorrelation | None) -> str:
    """Say whether what was removed is white."""
    if residual is None:
        return "Nothing was removed."
    name, lag, value = residual.strongest
    if not lag:
        return "There are too few entries to tell whether what was removed is white."
    where = f"along {name}" + (f", {lag} entries apart" if lag > 1 else ", between neighbours")
    if residual.white:
        least = min(float(r[1:].min()) for r in residual.axes.values() if r.size > 1)
        words = "What was removed looks like white noise."
        if least < -WHITE:
            words += f" Neighbours have a correlation of {least:.2f}: slow variations of the noise stayed in the data."
        return words
    words = f"What was removed is correlated: by {value:.2f} {where}."
    if not found.noise.judged:
        return words
    if found.plans and not np.isclose(_fourth(found), 1.0):
        return f"{words} So is noise of this model."
    return f"{words} Either the noise is, or details were lost."


def _fourth(found: Denoised) -> float:
    """Return the mean squared power of the noise over its squared variance: 1 if it is white."""
    return 1.0 if found.error_blocks is None else found.error_blocks.fourth


def choice_words(denoiser: Denoiser, found: Denoised) -> str:
    """Say how the estimate was made, and by what its parts were weighted."""
    if not found.bands:
        return ""
    if not found.weights:
        wavelet = found.bands[0].wavelet
        how = "one threshold for all bands" if denoiser.choose == "global" else "a threshold for each band"
        return (
            f"Small coefficients of the {wavelet} wavelet were set to zero, by {how}: "
            "the one whose estimated risk is least."
        )
    return (
        "The estimate is a weighted mean of several. The weights are those of the least predicted error; nothing else "
        "was known."
    )


def weight_rows(found: Denoised) -> list[tuple[str, float]]:
    """Return what experts do and their weights, averaged over channels, the largest first, without tiny ones."""
    sums: dict[str, list[float]] = {}
    for name, weight in found.weights.items():
        sums.setdefault(re.sub(r"^(part \d+ )?(channel \d+ )?", "", name), []).append(weight)
    most = max(map(len, sums.values()), default=1)
    rows = [(_expert_words(name), sum(some) / most) for name, some in sums.items()]
    return sorted((row for row in rows if row[1] >= LEAST_WEIGHT), key=lambda row: -row[1])


def _expert_words(name: str) -> str:
    for pattern, words in EXPERTS:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, words, name)
    return name


def weight_bars(found: Denoised) -> str:
    """Return the weights as an HTML list with bars."""
    return "\n".join(
        f'<li><span class="bar"><i style="width:{min(max(100 * weight, 0), 100):.1f}%"></i></span>'
        f"<b>{weight:.0%}</b> {html.escape(words)}</li>"
        for words, weight in weight_rows(found)
    )


def definitions(pairs: list[tuple[str, str]]) -> str:
    """Return names and values as entries of an HTML definition list."""
    return "\n".join(f"<div><dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd></div>" for k, v in pairs)


def cells(values: list[str]) -> str:
    """Return a row of an HTML table."""
    return "<tr>" + "".join(f"<td>{html.escape(value)}</td>" for value in values) + "</tr>"


def band_row(band: Band) -> str:
    """Return a band as a row of the HTML table."""
    k = int(np.searchsorted(band.curve.thresholds, band.threshold))
    size = band.curve.size
    return cells(
        [
            band.name,
            f"{band.sigma:.4g}",
            f"{band.threshold / band.sigma:.3f}" if math.isfinite(band.threshold) else "∞, set to zero",
            f"{band.kept:.1%}",
            f"{band.curve.risk[k] / size / band.sigma**2:.4g}",
            f"{band.curve.dof[k] / size:.4g}",
        ]
    )


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


def visible(text: str) -> str:
    """Return text without characters that are not printable, such as those that turn the direction of writing."""
    return "".join(c if c.isprintable() else "?" for c in text)
