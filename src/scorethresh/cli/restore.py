"""The command `restore`: undo a blur, fill gaps, enlarge."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .. import Blur, Downsample, Mask, Restored, Restorer, io
from .._progress import SHOWN_AFTER
from .._rounding import plain
from .blurs import NamedBlur, parse_blur, read_psf
from .messages import PartlyDone, any_error, collected_warnings, echo, echo_text, note
from .options import (
    METHOD,
    OUTPUT,
    AxesOption,
    ChannelAxis,
    Columns,
    Dtype,
    Force,
    Json,
    Key,
    Quiet,
    Volume,
    check_suffix,
    parse_dtype,
    parse_sigma,
)
from .summary import shape_text

# The panel of the help page with what happened to the data.
DAMAGE = "What happened to the data: one of these, or --upscale with a blur"
# Formats that may change their size. In others, samples have times or places in the metadata.
_RESIZED = ("PNG", "JPEG", "BMP", "WebP", "TIFF", "NPY", "NPZ")

Input = Annotated[Path, typer.Argument(metavar="INPUT", help="A file.")]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.", rich_help_panel=OUTPUT)
]
Psf = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A blur: what a point looks like, centred.", rich_help_panel=DAMAGE),
]
BlurName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME:SIZE",
        help="gaussian:1.5, disk:3, box:5 or motion:9:45 (length, angle); gaussian:auto finds the size.",
        rich_help_panel=DAMAGE,
    ),
]
MaskFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Gaps: entries where this file is 0.", rich_help_panel=DAMAGE)
]
Upscale = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", min=2, help="Pixels that are too large: split each.", rich_help_panel=DAMAGE),
]
Periodic = Annotated[
    bool,
    typer.Option("--periodic", help="The blur wraps around the border, as in simulations.", rich_help_panel=DAMAGE),
]
Sigma = Annotated[str, typer.Option(metavar="NUMBER", help="Noise level in units of the data, or auto.")]
Method = Annotated[str, typer.Option(metavar="NAME", help="plug-and-play or iht.", rich_help_panel=METHOD)]
Steps = Annotated[int | None, typer.Option(metavar="NUMBER", min=1, help="Steps.", rich_help_panel=METHOD)]
Predict = Annotated[
    bool,
    typer.Option("--predict/--no-predict", help="Predict the error: three times the time.", rich_help_panel=METHOD),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also write a page, report.html, with the steps.", rich_help_panel=OUTPUT),
]


def restore(
    file: Input,
    output: Output,
    psf: Psf = None,
    blur: BlurName = None,
    mask: MaskFile = None,
    upscale: Upscale = None,
    periodic: Periodic = False,
    sigma: Sigma = "auto",
    method: Method = "plug-and-play",
    steps: Steps = None,
    predict: Predict = True,
    column: Columns = None,
    key: Key = "",
    axes: AxesOption = "",
    volume: Volume = False,
    channel_axis: ChannelAxis = None,
    dtype: Dtype = None,
    report: Report = None,
    quiet: Quiet = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Undo a blur, fill gaps, or enlarge a picture, stack, volume or signal.

    What happened to the data must be said: --psf, --blur, --mask or --upscale. The error of the restored data, blurred
    again, is predicted. What the blur has removed altogether is filled in, and cannot be predicted.
    """
    stored = parse_dtype(dtype)
    damage = Damage(
        psf, None if blur is None else parse_blur(blur), mask, upscale, "periodic" if periodic else "unknown"
    )
    damage.check()
    _check_targets(file, output, report, damage, force=force)
    start = time.perf_counter()
    data = io.read(file, io.ReadOptions(tuple(column or ()), volume, channel_axis, axes, key))
    if stored is not None and stored.kind == "f":  # now, so that the estimate is not rounded to integers
        data = io.converted(data, stored)
    merged = data.merge_equal_channels()
    with collected_warnings() as messages:
        operator, told = damage.operator(merged, parse_sigma(sigma))
        options: dict[str, Any] = {"sigma": parse_sigma(sigma), "method": method, "steps": steps, "predict": predict}
        shown = SHOWN_AFTER if sys.stderr.isatty() else False
        restorer = Restorer(operator, channel_axis=merged.part_channel_axis, progress=shown, **options)
        found = [restorer.run(part) for part in merged.parts()]
    estimate = merged.join_parts([one.estimate for one in found])
    out = _resized(data, estimate if merged is data else data.repeat_channel(estimate), upscale)
    io.write(output, out if stored is None else io.converted(out, stored), force=force)
    result = Result(file, output, data, out, operator_text(damage, told), found, [*damage_notes(told), *messages])
    if report is not None:
        _write_report(
            report,
            result,
            merged.parts()[len(found) // 2],
            found[len(found) // 2],
            merged.part_channel_axis,
            force=force,
        )
    _print(result, time.perf_counter() - start, quiet=quiet, as_json=as_json)


@dataclass(frozen=True)
class Damage:
    """What happened to the data, as the options say it."""

    psf: Path | None
    blur: NamedBlur | None
    mask: Path | None
    upscale: int | None
    boundary: str

    def check(self) -> None:
        """Raise unless the options name one operator."""
        given = [name for name in ("psf", "blur", "mask", "upscale") if getattr(self, name) is not None]
        if not given:
            msg = "what happened to the data? Say --psf FILE, --blur gaussian:1.5, --mask FILE or --upscale 2."
        elif len(given) > 1 and given not in (["psf", "upscale"], ["blur", "upscale"]):
            msg = f"--{given[0]} and --{given[1]} do not go together. Restore one after the other."
        elif self.upscale is not None and self.blur is not None and self.blur.size is None:
            msg = f"--blur {self.blur.text} and --upscale do not go together. Give the size as a number."
        elif self.boundary == "periodic" and self.mask is not None:
            msg = "--periodic goes with a blur, not with --mask. Leave it out."
        else:
            return
        raise ValueError(msg)

    def operator(self, data: io.Data, sigma: float | None) -> tuple[Any, Told]:
        """Return the operator for the parts of the data, and what is told about it."""
        parts = data.parts()
        axis = data.part_channel_axis
        ndim = parts[0].ndim - (axis is not None)
        if self.mask is not None:
            return Mask(io.read(self.mask).merge_equal_channels().values != 0), Told()
        psf, told = None, Told()
        if self.psf is not None:
            psf, notes = read_psf(self.psf, ndim)
            told = Told(notes=tuple(notes))
        elif self.blur is not None and self.blur.size is not None:
            psf = self.blur.function(ndim)(self.blur.size)
        elif self.blur is not None:
            chosen = self.blur.choose(parts[len(parts) // 2], ndim, sigma=sigma, channel_axis=axis)
            psf, told = chosen.psf, Told(chosen.width, chosen.plausible)
        if self.upscale is None:
            return Blur(psf, self.boundary), told
        return Downsample(self.upscale, psf, self.boundary), told


@dataclass(frozen=True)
class Told:
    """What was found out about a blur: its size, the sizes that the noise does not rule out, and notes."""

    size: float | None = None
    plausible: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()


def damage_notes(told: Told) -> tuple[str, ...]:
    """Return what deserves attention."""
    return told.notes


def operator_text(damage: Damage, told: Told) -> str:
    """Return the operator in words."""
    if damage.mask is not None:
        return f"gaps of {damage.mask}"
    blur = ""
    if damage.psf is not None:
        blur = f"blur of {damage.psf}"
    elif damage.blur is not None:
        blur = f"blur {damage.blur.text}"
    if told.plausible is not None and told.size is not None:
        low, high = told.plausible
        blur += f", found as {told.size:.4g} (plausible: {low:.4g} to {high:.4g})"
    larger = "" if damage.upscale is None else f"enlarged {damage.upscale} times"
    return ", ".join(filter(None, (blur, larger)))


@dataclass(frozen=True)
class Result:
    """A restored file."""

    source: Path
    target: Path
    before: io.Data
    after: io.Data
    operator: str
    found: list[Restored]
    notes: list[str]

    def mean(self, name: str) -> float:
        """Return the mean of an attribute over the parts, which are equally large."""
        return float(np.mean([getattr(one, name) for one in self.found]))

    def fields(self, seconds: float) -> dict[str, Any]:
        """Return what --json prints. docs/cli.md promises that these fields stay."""
        predicted = self.mean("predicted_mse")
        known = not np.isnan(predicted)
        return {
            "input": str(self.source),
            "output": str(self.target),
            "shape": list(self.after.values.shape),
            "dtype": str(self.after.values.dtype),
            "axes": self.before.understood,
            "parts": len(self.found),
            "operator": self.operator,
            "sigma": [one.sigma for one in self.found],
            "predicted_mse_of_ax": predicted if known else None,
            "stderr": float(np.sqrt(np.sum([one.stderr**2 for one in self.found])) / len(self.found))
            if known
            else None,
            "determined": self.mean("determined"),
            "steps": [len(one.trace) for one in self.found],
            "seconds": seconds,
            "verdict": self.found[len(self.found) // 2].verdict,
            "notes": self.notes,
        }

    def lines(self, seconds: float) -> Iterator[str]:
        """Yield the lines to print."""
        if self.before.understood:
            yield f"{self.source}: {self.before.understood}"
        yield f"{self.target}: {shape_text(self.after.values)} {self.after.values.dtype}, {seconds:.1f} s"
        levels = sorted({plain(one.sigma) for one in self.found}, key=float)
        level = levels[0] if len(levels) == 1 else f"{levels[0]} to {levels[-1]}"
        yield f"  {self.operator}; noise σ = {level}; {len(self.found[0].trace)} steps"
        if len(self.found) > 1:
            yield f"  {self.before.part_name(len(self.found) // 2)}:"
        yield f"  {self.found[len(self.found) // 2].verdict}"


def _print(result: Result, seconds: float, *, quiet: bool, as_json: bool) -> None:
    if as_json:
        echo_text(json.dumps(result.fields(seconds), indent=2))
    if quiet or as_json:
        return
    for line in result.lines(seconds):
        echo(line)
    for message in dict.fromkeys(result.notes):
        note(message)


def _check_targets(source: Path, target: Path, report: Path | None, damage: Damage, *, force: bool) -> None:
    form = io.format_of(source).name
    written = io.check_target(target, form, force=force).name
    if damage.upscale is not None and written not in _RESIZED:
        msg = (
            f"--upscale changes the size, which {written} does not allow, {target}. Write one of {', '.join(_RESIZED)}."
        )
        raise io.FileError(msg)
    if report is not None:
        check_suffix(report, "--report", (".html", ".htm"))
        io.check_free(report, force=force)


def _resized(data: io.Data, estimate: Any, factor: int | None) -> io.Data:
    """Return the data with another array. If it is larger, pixels of the opacity are repeated, metadata dropped."""
    if factor is None:
        return dataclasses.replace(data, values=estimate)
    alpha = data.alpha
    if alpha is not None and data.channel_axis is not None:
        fixed = {k % alpha.ndim for k in (data.channel_axis, *data.stack_axes)}
        for axis in set(range(alpha.ndim)) - fixed:
            alpha = np.repeat(alpha, factor, axis)
    return dataclasses.replace(data, values=estimate, alpha=alpha, metadata=None)


def _write_report(
    report: Path, result: Result, y: Any, found: Restored, channel_axis: int | None, *, force: bool
) -> None:
    try:
        from ..viz.restoration import write_restoration_report

        with io.replacing(report, force=force) as beside:
            write_restoration_report(beside, y, found, channel_axis, name=result.source.name)
    except Exception as error:
        msg = f"{result.target} is written, but the report is not: {any_error(error)}"
        raise PartlyDone(msg) from error
