"""The command `denoise`: its options, and whether they mean one file or many."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from .. import Denoiser, io
from .batch import denoise_files, expand
from .messages import echo, echo_table, note
from .onefile import Job, Result, denoise_file, middle_part, write_report_page
from .options import Columns, Force, Rule, check_suffix, parse_sigma
from .series import SeriesJob, denoise_series

DTYPES = ("uint8", "uint16", "int16", "int32", "float32", "float64")

# The values of --choose that --compare tries.
CHOICES = ("blend", "fast", "bands", "global")


def denoise(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help="Files, a folder, or a quoted pattern.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A file; for several inputs a folder.")],
    sigma: Annotated[str, typer.Option(help="Noise level in units of the data: a number, or auto.")] = "auto",
    choose: Annotated[
        str,
        typer.Option(help="blend (best), fast (a third of the time), bands (wavelets only) or global (one threshold)."),
    ] = "blend",
    wavelet: Annotated[str | None, typer.Option(help="A wavelet of PyWavelets, such as sym8.")] = None,
    levels: Annotated[int | None, typer.Option(min=1, help="Levels of the wavelets.")] = None,
    rule: Rule = "hard",
    method: Annotated[str | None, typer.Option(help="How thresholds are chosen, such as score or mixture.")] = None,
    noise: Annotated[str, typer.Option(help="white, poisson (counts) or correlated.")] = "white",
    column: Columns = None,
    volume: Annotated[bool, typer.Option("--volume", help="TIFF: pages are one volume, not pictures.")] = False,
    channel_axis: Annotated[int | None, typer.Option(help="NPY: the axis of colours or channels.")] = None,
    dtype: Annotated[str | None, typer.Option(help=f"Type of the output: {', '.join(DTYPES)}.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page, report.html, about the result.")] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Also try every --choose, and print a table.")] = False,
    series: Annotated[
        bool, typer.Option("--series", help="NIfTI, TIFF, NPY: volumes or pages are a series; low rank.")
    ] = False,
    noise_map: Annotated[Path | None, typer.Option(help="With --series: also write the noise level.")] = None,
    rank_map: Annotated[Path | None, typer.Option(help="With --series: also write the rank.")] = None,
    force: Force = False,
) -> None:
    """Remove the noise from pictures, stacks, sounds, volumes and tables.

    PNG, JPEG, TIFF, NPY, WAV, CSV and NIfTI. The output has the type and the metadata of the input.
    """
    if dtype is not None and dtype not in DTYPES:
        msg = f"unknown --dtype {dtype!r}. There are {', '.join(DTYPES)}."
        raise ValueError(msg)
    denoiser = Denoiser(
        sigma=parse_sigma(sigma),
        choose=choose,
        wavelet=wavelet,
        levels=levels,
        rule=rule,
        method=method,
        noise=noise,
    )
    reading = io.ReadOptions(tuple(column or ()), volume, channel_axis)
    job = Job(denoiser, reading, None if dtype is None else np.dtype(dtype), force)
    sources, many = expand(inputs)
    if series or noise_map or rank_map:
        changed = dataclasses.replace(denoiser, sigma=None) != Denoiser() or reading != io.ReadOptions()
        _check_series_options(series=series, many=many, others=changed or compare or report is not None)
        target = output / sources[0].name if output.is_dir() else output
        denoise_series(sources[0], target, SeriesJob(denoiser.sigma, job.dtype, force, noise_map, rank_map))
        return
    if many:
        if report or compare:
            msg = f"--{'report' if report else 'compare'} goes with one file, got {len(sources)}. Leave it out."
            raise ValueError(msg)
        raise typer.Exit(denoise_files(sources, output, job))
    [source] = sources
    target = output / source.name if output.is_dir() else output
    if report is not None:
        check_suffix(report, "--report", (".html", ".htm"))
        io.check_free(report, force=force)
    result = denoise_file(source, target, job, tried=CHOICES if compare else ())
    try:
        if report is not None:
            write_report_page(report, result, target, force=force)
    finally:
        _print_result(target, result)
    if report is not None and len(result.found) > 1:
        echo(f"{report}: the report shows {result.data.part_name(middle_part(result))}")


def _check_series_options(*, series: bool, many: bool, others: bool) -> None:
    if not series:
        msg = "--noise-map and --rank-map go with --series. Add it, or leave them out."
    elif many:
        msg = "--series goes with one file. Denoise the files one by one."
    elif others:
        msg = "--series goes with --sigma, --dtype, --noise-map, --rank-map and --force only. Leave out the others."
    else:
        return
    raise ValueError(msg)


def _print_result(target: Path, result: Result) -> None:
    if result.compared:
        echo_table(("choose", "predicted PSNR", "mean squared error", "time"), result.compared)
    origin = "estimated" if result.denoiser.sigma is None else "given"
    level = "" if result.denoiser.noise == "poisson" else f", sigma {result.sigma_text()} ({origin})"
    echo(
        f"{target}: {result.shape_text()}{level}, predicted PSNR {result.psnr_text()}, "
        f"mean squared error {result.mse_text()}, {result.seconds:.1f} s"
    )
    for message in result.notes():
        note(message)
