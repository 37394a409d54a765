"""The command `scorethresh`: files in, files and tables out. Nothing is computed here."""

from __future__ import annotations

import dataclasses
import glob
import json
import math
import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from .. import io
from ..denoising.blend import Band
from ..denoising.denoiser import CHOOSE, Denoised, Denoiser
from ..noise.level import estimate_sigma
from ..select.threshold import DEFAULT, Selection, compare, select_threshold

try:
    import typer
except ImportError:
    sys.stderr.write('error: the command line needs typer and rich. Install them: pip install "scorethresh[cli]".\n')
    raise SystemExit(2) from None

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Denoise files, and choose thresholds, from the noisy data alone.",
    epilog="Standard error gets one line if something is wrong: exit code 2, or 1 if only some files of many failed.",
)

_DTYPES = ("uint8", "uint16", "int16", "int32", "float32", "float64")

# Entries from which on one array takes long enough for a bar of its own.
_SLOW = 1 << 22

# Share of entries at the least and the largest value from which on a prediction may be clearly off, for more noise was
# cut off there than can be allowed for.
_CUT = 0.1

# How to get what is missing.
_INSTALL = {
    "matplotlib": "scorethresh[plot]",
    "tqdm": "scorethresh[papers]",
    "nibabel": "nibabel",
}

Columns = Annotated[
    list[str] | None, typer.Option("--column", help="CSV: a column, by name or number from 1. May be repeated.")
]
Rule = Annotated[str, typer.Option(help="hard, soft, firm, garrote, scad or bridge.")]
Level = Annotated[
    str | None, typer.Option("--sigma", help="Noise level of the entries: a number, or auto to estimate it.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
Numbers = Annotated[str, typer.Argument(metavar="FILE", help="A file of coefficients, or - for standard input.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"scorethresh {installed('scorethresh')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


# denoise


@dataclass(frozen=True)
class _Done:
    """One file, denoised: its data as read, who did it, what came out, and how long it took."""

    data: io.Data
    denoiser: Denoiser
    found: Denoised
    seconds: float

    def mse(self) -> str:
        return f"{self.found.predicted_mse:.3g} ± {self.found.stderr:.2g}"

    def psnr(self) -> str:
        level = self.found.predicted_psnr()
        return f"{level:.2f} dB" if math.isfinite(level) else "-"

    def sigma(self) -> str:
        low, high = np.min(self.found.sigma), np.max(self.found.sigma)
        return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"

    def shape(self) -> str:
        return f"{' x '.join(map(str, self.data.values.shape))} {self.data.values.dtype}"

    def notes(self) -> Iterable[str]:
        """Yield why not to trust the predicted error, as far as that can be seen."""
        values = self.data.values
        if self.denoiser.noise != "poisson" and values.dtype.kind in "iuf":
            values = values[~np.isnan(values)]
            low, high = (values.min(), values.max()) if values.size else (0, 0)
            cut = float(np.mean((values == low) | (values == high))) if low < high else 0.0
            if cut > _CUT:
                yield (
                    f"{cut:.1%} of the entries are {low:.4g} or {high:.4g}, the least and the largest. "
                    "So much of the noise may have been cut off there that the predicted error is too low."
                )
        if self.found.predicted_mse < 0:
            yield (
                "an error below zero is predicted, so do not trust it: sigma is too large, or the noise is not "
                "independent from entry to entry, as in JPEG. Try --sigma with a known level, or --noise correlated."
            )


@app.command("denoise")
def _denoise(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help="Files, a folder, or a quoted pattern.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A file; for several inputs a folder.")],
    sigma: Annotated[str, typer.Option(help="Noise level in units of the data: a number, or auto.")] = "auto",
    choose: Annotated[
        str, typer.Option(help="blend (best), bands (wavelets only) or global (one threshold).")
    ] = "blend",
    wavelet: Annotated[str | None, typer.Option(help="A wavelet of PyWavelets, such as sym8.")] = None,
    levels: Annotated[int | None, typer.Option(min=1, help="Levels of the wavelets.")] = None,
    rule: Rule = "hard",
    method: Annotated[str | None, typer.Option(help="How thresholds are chosen, such as score or mixture.")] = None,
    noise: Annotated[str, typer.Option(help="white, poisson (counts) or correlated.")] = "white",
    column: Columns = None,
    volume: Annotated[bool, typer.Option("--volume", help="TIFF: pages are one volume, not pictures.")] = False,
    channel_axis: Annotated[int | None, typer.Option(help="NPY: the axis of colours or channels.")] = None,
    dtype: Annotated[str | None, typer.Option(help=f"Type of the output: {', '.join(_DTYPES)}.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page, report.html, about the result.")] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Also try every --choose, and print a table.")] = False,
    force: Force = False,
) -> None:
    """Remove the noise from pictures, stacks, sounds, volumes and tables.

    PNG, JPEG, TIFF, NPY, WAV, CSV and NIfTI. The output has the type and the metadata of the input.
    """
    if dtype is not None and dtype not in _DTYPES:
        msg = f"unknown --dtype {dtype!r}. There are {', '.join(_DTYPES)}."
        raise ValueError(msg)
    level = _positive(sigma)
    denoiser = Denoiser(
        sigma=level, choose=choose, wavelet=wavelet, levels=levels, rule=rule, method=method, noise=noise
    )
    how = io.How(tuple(column or ()), volume, channel_axis)
    kind = None if dtype is None else np.dtype(dtype)
    sources, many = _expand(inputs)
    if many:
        if report or compare:
            msg = f"--{'report' if report else 'compare'} goes with one file, got {len(sources)}. Leave it out."
            raise ValueError(msg)
        raise typer.Exit(_batch(sources, output, denoiser, how, kind, force))
    [source] = sources
    target = output / source.name if output.is_dir() else output
    if report is not None:
        from ..viz.report import write_report

        _check_suffix(report, "--report", (".html", ".htm"))
        io.check_free(report, force=force)
    done = _denoise_file(source, target, denoiser, how, kind, force, tried=CHOOSE if compare else ())
    if report is not None:
        with io.replacing(report, force=force) as beside:
            write_report(beside, done.data.values, done.denoiser, done.found)
    origin = "" if noise == "poisson" else f", sigma {done.sigma()} ({'given' if level else 'estimated'})"
    print(
        f"{target}: {done.shape()}{origin}, predicted PSNR {done.psnr()}, mean squared error {done.mse()}, "
        f"{done.seconds:.1f} s"
    )
    for note in done.notes():
        _say("note", note)


def _expand(inputs: Sequence[str]) -> tuple[list[Path], bool]:
    """Return the files that are meant, and whether there may be several."""
    paths: list[Path] = []
    many = len(inputs) > 1
    for text in inputs:
        path = Path(text)
        if path.is_dir() and not path.name.lower().endswith(io.suffixes()):
            found = sorted(p for p in path.iterdir() if p.name.lower().endswith(io.suffixes()) and p.name[0] != ".")
            told = f"there is nothing to denoise in {path}. Files must end in one of {', '.join(io.suffixes())}."
        elif not os.path.lexists(path) and glob.has_magic(text):
            found = sorted(map(Path, glob.glob(text)))
            told = f"no file matches {text}. Check the pattern."
        else:
            paths.append(path)
            continue
        if not found:
            raise io.FileError(told)
        paths += found
        many = True
    return paths, many


def _denoise_file(
    source: Path,
    target: Path,
    denoiser: Denoiser,
    how: io.How,
    dtype: np.dtype[Any] | None,
    force: bool,
    tried: Iterable[str] = (),
    alone: bool = True,
) -> _Done:
    """Denoise one file; if other ways to choose are `tried`, print what they would give."""
    io.check_target(target, io.format_of(source).name, force=force)
    start = time.perf_counter()
    data = io.read(source, how)
    if dtype is not None and dtype.kind == "f":  # before, so that nothing is rounded to integers
        data = io.converted(data, dtype)
    whole, data = data, data.single()
    shown = alone and data.values.size > _SLOW and sys.stderr.isatty()
    denoiser = dataclasses.replace(denoiser, channel_axis=data.channel_axis, progress=shown)
    runs = {denoiser.choose: _run(data, denoiser)}
    for choose in tried:
        if choose not in runs:
            runs[choose] = _run(data, dataclasses.replace(denoiser, choose=choose))
    if tried:
        rows = [(name, runs[name].psnr(), runs[name].mse(), f"{runs[name].seconds:.2f} s") for name in tried]
        _table(("choose", "predicted PSNR", "mean squared error", "time"), rows)
    done = runs[denoiser.choose]
    estimate = done.found.estimate
    out = dataclasses.replace(whole, values=estimate if data is whole else whole.repeated(estimate))
    io.write(target, out if dtype is None else io.converted(out, dtype), force=force)
    return done if tried else dataclasses.replace(done, seconds=time.perf_counter() - start)


def _run(data: io.Data, denoiser: Denoiser) -> _Done:
    """Denoise what is to be denoised together, and put the results together."""
    start = time.perf_counter()
    found = [denoiser.run(part) for part in data.parts()]
    whole = found[0]
    if len(found) > 1:
        bands: list[Band] = []
        weights: dict[str, float] = {}
        for k, one in enumerate(found, 1):
            bands += [dataclasses.replace(band, name=f"part {k} {band.name}") for band in one.bands]
            weights |= {f"part {k} {name}": weight for name, weight in one.weights.items()}
        whole = Denoised(
            data.joined([one.estimate for one in found]),
            np.hstack([np.ravel(one.sigma) for one in found]),
            float(np.mean([one.predicted_mse for one in found])),
            math.hypot(*(one.stderr for one in found)) / len(found),
            tuple(bands),
            weights,
        )
    return _Done(data, denoiser, whole, time.perf_counter() - start)


def _batch(
    sources: list[Path], folder: Path, denoiser: Denoiser, how: io.How, dtype: np.dtype[Any] | None, force: bool
) -> int:
    """Denoise many files into a folder; return the exit code."""
    from rich.console import Console
    from rich.progress import track

    names = [source.name for source in sources]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        msg = f"two inputs are named {twice}, and one would replace the other. Denoise them into two folders."
        raise ValueError(msg)
    if not folder.is_dir() and (folder.exists() or folder.name.lower().endswith(io.suffixes())):
        msg = f"{folder} is a file, and there may be many inputs: {', '.join(names[:3])}... Name a folder."
        raise ValueError(msg)
    folder.mkdir(parents=True, exist_ok=True)
    rows, failures = [], []
    bar = track(sources, "denoising", console=Console(stderr=True), disable=not sys.stderr.isatty())
    for source in bar:
        try:
            done = _denoise_file(source, folder / source.name, denoiser, how, dtype, force, alone=False)
        except Exception as error:  # whatever it is, the others go on
            failures.append(_told(error) if str(source) in str(error) else f"{source}: {_told(error)}")
            rows.append((source.name, "failed", "", "", ""))
        else:
            rows.append((source.name, done.shape(), done.sigma(), done.psnr(), f"{done.seconds:.1f} s"))
    _table(("file", "data", "sigma", "predicted PSNR", "time"), rows)
    print(f"{len(rows) - len(failures)} of {len(rows)} files denoised into {folder}")
    for failure in failures:
        _complain(failure)
    return 1 if failures else 0


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for k, title in enumerate(titles):
        table.add_column(title, justify="right" if k else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    # In a pipe there is no edge to wrap at.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


# select and compare


@app.command("select")
def _select(
    file: Numbers,
    sigma: Level = None,
    rule: Rule = "hard",
    method: Annotated[str, typer.Option(help="score, mixture, jansen, sure, universal, fdr, ...")] = DEFAULT,
    column: Columns = None,
    as_json: Json = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw risk curve and histogram: .png, .pdf or .svg.")] = None,
    force: Force = False,
) -> None:
    """Choose the threshold of least estimated risk for noisy coefficients."""
    y = _numbers(file, column)
    if plot is not None:
        from matplotlib.figure import Figure

        from ..viz.plot import plot_risk, plot_selection

        _check_suffix(plot, "--plot", (".png", ".pdf", ".svg"))
        io.check_free(plot, force=force)
    selection = select_threshold(y, sigma=_level(sigma, y), rule=rule, method=method)
    if plot is not None:
        figure = Figure(figsize=(11, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        plot_risk(selection.curve, ax=left)
        plot_selection(selection, ax=right)
        with io.replacing(plot, force=force) as beside:
            figure.savefig(beside, dpi=150)
    if as_json:
        print(json.dumps(_fields(file, rule, method, selection), indent=2))
        return
    told = _texts(selection)
    print(f"threshold           {told['threshold']} ({selection.status})")
    print(f"risk                {told['risk']}")
    print(f"degrees of freedom  {told['dof']}")
    print(f"kept                {told['kept']} of {selection.curve.size} entries")
    print(f"sigma               {selection.curve.sigma:.6g}")
    if selection.status != "interior":
        print(selection.status.remedy)


@app.command("compare")
def _compare(
    file: Numbers, sigma: Level = None, rule: Rule = "hard", column: Columns = None, as_json: Json = False
) -> None:
    """Choose a threshold by every method, side by side."""
    y = _numbers(file, column)
    found = compare(y, sigma=_level(sigma, y), rule=rule)
    if as_json:
        print(json.dumps([_fields(file, rule, name, selection) for name, selection in found.items()], indent=2))
        return
    rows = [(name, *_texts(selection).values(), str(selection.status)) for name, selection in found.items()]
    _table(("method", "threshold", "risk", "degrees of freedom", "kept", "status"), rows)


def _numbers(file: str, columns: list[str] | None) -> Any:
    """Read the entries of a file or of standard input, NPY or text, in one row."""
    if file != "-":
        y = io.read(Path(file), io.How(tuple(columns or ()))).values.ravel()
    else:
        y = _piped(sys.stdin.buffer.read(), columns or [])
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        msg = f"{file} holds {np.count_nonzero(~np.isfinite(y))} NaN or infinite entries of {y.size}. Remove them."
        raise ValueError(msg)
    return y


def _piped(raw: bytes, columns: list[str]) -> Any:
    """Return the numbers of a text, or of NPY data, in one row."""
    if raw.startswith(b"\x93NUMPY"):
        return io.load_npy(BytesIO(raw), "standard input").ravel()
    if not columns:
        try:
            return np.array(raw.split(), dtype=np.float64)
        except ValueError:  # words, or something between the numbers but space: a table
            pass
    table = io.parse_table(raw)
    chosen = [table.column(name) for name in columns] or table.numeric()
    untitled = table.start == 0 and len(chosen) == len(table.names)
    if not columns and not untitled and len(chosen) != 1:
        msg = f"standard input has the columns {', '.join(table.names)}. Choose one or more with --column."
        raise ValueError(msg)
    return table.values(chosen).ravel()


def _level(sigma: str | None, y: Any) -> float:
    if sigma is None:
        msg = "--sigma, the noise level, is missing. Give a number, or --sigma auto: the median of |y| over 0.6745."
        raise ValueError(msg)
    return _positive(sigma) or estimate_sigma(y, domain="coefficients")


def _positive(sigma: str) -> float | None:
    """Return the value of --sigma, None if it is to be estimated."""
    if sigma == "auto":
        return None
    try:
        level = float(sigma)
    except ValueError:
        level = math.nan
    if not 0 < level < math.inf:
        msg = f"--sigma must be a positive number, got {sigma!r}. To have it estimated: --sigma auto."
        raise ValueError(msg)
    return level


def _fields(file: str, rule: str, method: str, selection: Selection) -> dict[str, Any]:
    """Return what --json prints; the fields are described in docs/cli.md and stay as they are."""
    k = int(np.searchsorted(selection.curve.thresholds, selection.threshold))
    return {
        "file": file,
        "size": selection.curve.size,
        "sigma": selection.curve.sigma,
        "rule": rule,
        "method": method,
        "threshold": selection.threshold if math.isfinite(selection.threshold) else None,
        "risk": selection.risk,
        "stderr": float(selection.curve.stderr[k]),
        "dof": selection.dof,
        "kept": int(np.count_nonzero(selection.estimate)),
        "status": str(selection.status),
        "remedy": selection.status.remedy,
    }


def _texts(selection: Selection) -> dict[str, str]:
    fields = _fields("", "", "", selection)
    return {
        "threshold": f"{selection.threshold:.6g}",
        "risk": f"{selection.risk:.5g} ± {fields['stderr']:.2g}",
        "dof": f"{selection.dof:.5g}",
        "kept": str(fields["kept"]),
    }


# demo and paper


@app.command("demo")
def _demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture.")] = Path("scorethresh-demo.png"),
    force: Force = False,
) -> None:
    """Denoise a picture and an electrocardiogram; print the predicted and the true error."""
    import pywt

    io.check_free(output, force=force)
    rng = np.random.default_rng(1)
    panels: list[tuple[str, Any]] = []
    for name, clean, sigma in (("picture", pywt.data.camera(), 20.0), ("heartbeat", pywt.data.ecg(), 10.0)):
        noisy = clean + rng.normal(0.0, sigma, clean.shape)
        found = Denoiser().run(noisy)
        true = float(np.mean((found.estimate - clean) ** 2))
        print(f"{name:<10} noise of {sigma:g}, estimated as {found.sigma:.3g}; mean squared error {sigma**2:g} before,")
        print(f"{'':<10} after {found.predicted_mse:.3g} ± {found.stderr:.2g} predicted, {true:.3g} true")
        panels += [(f"{name}, noisy", noisy), (f"{name}, denoised", found.estimate)]
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print('For a picture of them: pip install "scorethresh[plot]".')
        return
    figure = Figure(figsize=(9, 7), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(2, 2, height_ratios=[2, 1]).flat, panels, strict=True):
        axes.set_title(title)
        if values.ndim == 2:
            axes.imshow(values, cmap="gray", vmin=0, vmax=255)
            axes.set_axis_off()
        else:
            axes.plot(values, lw=0.7)
    with io.replacing(output, force=force) as beside:
        figure.savefig(beside, dpi=120)
    print(f"saved {output}")


@app.command("paper")
def _paper(
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder.")] = Path("out/score2013"),
) -> None:
    """Draw the figures of the paper; in a checkout of the repository."""
    import importlib

    if not Path("papers/score2013").is_dir():
        msg = "the figures are in the repository, not in the package. Run this in a checkout of it."
        raise ValueError(msg)
    sys.path.insert(0, os.getcwd())
    for name in ("fig_risk", "theorem", "bandwidth"):
        importlib.import_module(f"papers.score2013.{name}").main(["--out", str(output)])


# errors


def _check_suffix(path: Path, option: str, suffixes: tuple[str, ...]) -> None:
    """Raise if the name does not end as it must."""
    if path.suffix.lower() not in suffixes:
        msg = f"{option} writes files that end in {' or '.join(suffixes)}, got {path}. Choose such a name."
        raise ValueError(msg)


def _told(error: BaseException) -> str:
    """Return an error as one line."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.partition(".")[0]
        return f'{name} is not installed. Install it: pip install "{_INSTALL.get(name, "scorethresh[cli]")}".'
    if isinstance(error, OSError) and error.strerror:
        told = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    else:
        told = " ".join(str(error).split()) or type(error).__name__
    # The library names arguments, the command line options.
    return re.sub(r"""(?<![\w(])([a-z_]+)=["'](\w+)["']""", lambda m: f"--{m[1].replace('_', '-')} {m[2]}", told)


def _complain(told: str) -> None:
    _say("error", told)


def _say(kind: str, told: str) -> None:
    """Write one line to standard error."""
    # Names of files may hold anything, even what moves the cursor.
    sys.stderr.write(f"{kind}: {''.join(c if c.isprintable() else '?' for c in told)}\n")


def _usage(error: Any, argv: list[str]) -> str:
    """Return an error of usage as one line."""
    told = " ".join(error.format_message().split()).rstrip(".")
    dashed = next((a for a in argv if a.startswith("-") and os.path.lexists(a)), None)
    if dashed:
        return f"{told}. If the file is meant: {os.path.join('.', dashed)}"
    context = getattr(error, "ctx", None)
    return f"{told}. See {context.command_path if context else 'scorethresh'} --help."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, 1 if some files of many failed, 2 if nothing could be done."""
    given = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    if isinstance(sys.stdout, TextIOWrapper):  # a name that cannot be printed is no reason to fail
        sys.stdout.reconfigure(errors="replace")
    try:
        code = app(args=given, prog_name="scorethresh", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("stopped\n")
        return 130
    except BrokenPipeError:  # who reads has enough; Python must not flush again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        if hasattr(error, "format_message"):
            told = _usage(error, given)
        elif isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
            told = _told(error)
        else:
            told = f"unexpected {type(error).__name__}: {_told(error)}. Please report it with what --debug shows."
        _complain(told)
        return 2
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
