"""The command `denoise`: its options, whether they mean one file or many, and what is printed."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from .. import Denoiser, io
from .batch import Outcome, denoise_files
from .inputs import Inputs, find_inputs, has_suffix
from .messages import collected_warnings, complain, echo, echo_table, echo_text, note
from .onefile import Job, denoise_file, write_report_page
from .options import (
    FILES,
    METHOD,
    METHODS,
    NOISE,
    OUTPUT,
    SERIES,
    STORES,
    AxesOption,
    ChannelAxis,
    Columns,
    Dtype,
    Force,
    Json,
    Key,
    Quiet,
    Rule,
    Volume,
    check_suffix,
    one_of,
    parse_dtype,
    parse_sigma_or_map,
    read_mask,
)
from .series import SeriesJob, check_series_options, denoise_series
from .store import Machines, denoise_store, in_chunks
from .summary import Summary, grouped_notes

# The values of --choose that --compare tries.
CHOICES = ("blend", "fast", "bands", "global")
NOISES = ("auto", "white", "correlated", "poisson", "camera", "rician", "speckle")

Inputs_ = Annotated[list[str], typer.Argument(metavar="INPUT", help="Files, a folder, or a quoted pattern.")]
Output = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="A file, or a folder, such as out/.", rich_help_panel=OUTPUT),
]
Sigma = Annotated[
    str,
    typer.Option(
        metavar="NUMBER",
        help="Noise level in units of the data: a number, auto, or a file with a level per entry.",
        rich_help_panel=NOISE,
    ),
]
Choose = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="blend (best), fast (a third of the time), bands (wavelets only) or global (one threshold).",
        autocompletion=one_of(*CHOICES),
        rich_help_panel=METHOD,
    ),
]
Wavelet = Annotated[
    str | None, typer.Option(metavar="NAME", help="A wavelet of PyWavelets, such as sym8.", rich_help_panel=METHOD)
]
Levels = Annotated[
    int | None, typer.Option(metavar="NUMBER", min=1, help="Levels of the wavelets.", rich_help_panel=METHOD)
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How thresholds are chosen, such as score or mixture.",
        autocompletion=one_of(*METHODS),
        rich_help_panel=METHOD,
    ),
]
Noise = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="auto (a model that fits), white, correlated, poisson (counts), camera, rician or speckle.",
        autocompletion=one_of(*NOISES),
        rich_help_panel=NOISE,
    ),
]
Strength = Annotated[
    float,
    typer.Option(
        metavar="NUMBER",
        min=0.0,
        max=1.0,
        help="1 takes the noise away; less leaves some of it, such as grain.",
        rich_help_panel=METHOD,
    ),
]
Mask = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Entries where this file is 0 are left as they are.", rich_help_panel=NOISE),
]
Recursive = Annotated[
    bool, typer.Option("--recursive", "-r", help="Also the folders inside of folders.", rich_help_panel=FILES)
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also write a page, report.html, about the result.", rich_help_panel=OUTPUT),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Also try every --choose, and print a table.", rich_help_panel=METHOD)
]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", metavar="NUMBER", min=1, help="Files denoised at once, in processes.")
]
Workers = Annotated[
    int, typer.Option(metavar="NUMBER", min=0, help="To .zarr: processes that work at once.", rich_help_panel=STORES)
]
Memory = Annotated[
    str, typer.Option(metavar="SIZE", help="To .zarr: memory of a process, such as 4GB.", rich_help_panel=STORES)
]
Scheduler = Annotated[
    str, typer.Option(metavar="ADDRESS", help="To .zarr: a dask scheduler, tcp://...", rich_help_panel=STORES)
]
Series = Annotated[
    bool,
    typer.Option(
        "--series",
        help="NIfTI, TIFF, NPY: volumes or pages are a series; low rank.",
        rich_help_panel=SERIES,
    ),
]
NoiseMap = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write the noise level.", rich_help_panel=SERIES)
]
RankMap = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the rank.", rich_help_panel=SERIES)]


def denoise(
    context: typer.Context,
    inputs: Inputs_,
    output: Output,
    sigma: Sigma = "auto",
    choose: Choose = "blend",
    wavelet: Wavelet = None,
    levels: Levels = None,
    rule: Rule = "hard",
    method: Method = None,
    noise: Noise = "auto",
    strength: Strength = 1.0,
    mask: Mask = None,
    column: Columns = None,
    key: Key = "",
    axes: AxesOption = "",
    volume: Volume = False,
    channel_axis: ChannelAxis = None,
    recursive: Recursive = False,
    dtype: Dtype = None,
    report: Report = None,
    compare: Compare = False,
    series: Series = False,
    noise_map: NoiseMap = None,
    rank_map: RankMap = None,
    jobs: Jobs = 1,
    workers: Workers = 0,
    memory: Memory = "auto",
    scheduler: Scheduler = "",
    quiet: Quiet = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Remove the noise from pictures, stacks, sounds, volumes, recordings and tables.

    Formats: PNG, JPEG, BMP, WebP, TIFF, DICOM, FITS, NPY, NPZ, Zarr, WAV, CSV, NIfTI, MiniSEED, WFDB.

    The output has the type and the metadata of the input.

    Larger than memory: Zarr, NPY, TIFF or NIfTI to an output that ends in .zarr.
    """
    stored = parse_dtype(dtype)

    def denoiser() -> Denoiser:
        return Denoiser(
            sigma=parse_sigma_or_map(sigma),
            choose=cast(Any, choose),  # checked by the denoiser
            wavelet=wavelet,
            levels=levels,
            rule=rule,
            method=method,
            noise=noise,
            mask=read_mask(mask),
        )

    printer = Printer(quiet=quiet, as_json=as_json)
    in_series = series or noise_map is not None or rank_map is not None
    if not in_series and in_chunks(context, inputs, output):
        machines = Machines(workers, memory, scheduler)
        reading = io.ReadOptions(axes=axes, key=key)
        result = denoise_store(Path(inputs[0]), Path(output), denoiser(), machines, reading, force=force, quiet=quiet)
        printer.one(result)
        return
    folder = Path(output)
    found = find_inputs(inputs, folder, recursive=recursive)
    reading = io.ReadOptions(tuple(column or ()), volume, channel_axis, axes, key)
    if in_series:
        check_series_options(context, series=series, many=found.many)
        levels_given, masked = parse_sigma_or_map(sigma), read_mask(mask)
        work = SeriesJob(levels_given, noise, masked, reading, stored, force, noise_map, rank_map)
        with _target(output, found) as target:
            printer.one(denoise_series(found.files[0].path, target, work))
        return
    job = Job(denoiser(), reading, stored, force, strength)
    if found.many:
        if report or compare:
            msg = f"--{'report' if report else 'compare'} goes with one file, got {len(found.files)}. Leave it out."
            raise ValueError(msg)
        outcomes = denoise_files(found.files, folder, job, jobs)
        printer.many(outcomes, folder, found)
        raise typer.Exit(1 if any(outcome.failure for outcome in outcomes) else 0)
    with _target(output, found) as target:
        _denoise_one(found.files[0].path, target, job, printer, report=report, compare=compare)


@contextlib.contextmanager
def _target(output: str, found: Inputs) -> Any:
    """Give the file to write. If the output is a folder, or ends like one, it is made and the input's name is kept."""
    folder = Path(output)
    is_folder = folder.is_dir() and not has_suffix(folder)  # a store has a suffix
    if not (is_folder or output.endswith(("/", os.sep))):
        yield folder
        return
    with io.made_folder(folder):
        yield folder / found.files[0].path.name


def _denoise_one(source: Path, target: Path, job: Job, printer: Printer, *, report: Path | None, compare: bool) -> None:
    if report is not None:
        check_suffix(report, "--report", (".html", ".htm"))
        io.check_free(report, force=job.force)
    with collected_warnings() as messages:
        result = denoise_file(source, target, job, tried=CHOICES if compare else ())
    try:
        if report is not None:
            write_report_page(report, result, source, target, force=job.force)
    finally:
        printer.one(result.summary(source, target).with_notes(messages))


class Printer:
    """Prints what became of files: in words, as JSON, or errors only."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json

    def one(self, summary: Summary) -> None:
        """Print what is told of one file."""
        if self.as_json:
            echo_text(json.dumps(summary.fields(), indent=2))
        if self.quiet or self.as_json:
            return
        if summary.compared:
            echo_table(("choose", "predicted PSNR", "predicted error", "time"), summary.compared)
        for text in summary.lines():
            echo(text)
        for message in summary.notes:
            note(message)

    def many(self, outcomes: Sequence[Outcome], folder: Path, found: Inputs) -> None:
        """Print a table of files, then what deserves attention; errors always."""
        done = [outcome.summary for outcome in outcomes if outcome.summary is not None]
        if self.as_json:
            echo_text(json.dumps([_fields(outcome) for outcome in outcomes], indent=2))
        elif not self.quiet:
            rows = [
                (outcome.name, *(outcome.summary.row() if outcome.summary else ("failed", "", "", "", "")))
                for outcome in outcomes
            ]
            echo_table(("file", "data", "noise σ", "error", "noise reduced", "time"), rows)
            echo(f"{len(done)} of {len(outcomes)} files denoised into {folder}")
            told = [(summary.source, message) for summary in done for message in summary.notes]
            told += [
                (str(path), "a text beside other data, left out. Name it to denoise it.") for path in found.skipped
            ]
            for message in grouped_notes(told):
                note(message)
        for outcome in outcomes:
            if outcome.failure:
                complain(outcome.failure)


def _fields(outcome: Outcome) -> dict[str, Any]:
    if outcome.summary is None:
        return {"input": outcome.name, "error": outcome.failure}
    return outcome.summary.fields()
