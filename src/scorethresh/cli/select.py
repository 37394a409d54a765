"""The commands `select` and `compare`: thresholds for the coefficients in a file."""

from __future__ import annotations

import json
import math
import sys
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .. import Selection, estimate_sigma, io, select_threshold
from .. import compare as compare_methods
from ..select.threshold import DEFAULT
from .messages import echo, echo_table, echo_text
from .options import METHODS, Columns, Force, Json, Rule, check_suffix, one_of, parse_sigma

Numbers = Annotated[str, typer.Argument(metavar="FILE", help="A file of coefficients, or - for standard input.")]
Level = Annotated[
    str | None,
    typer.Option("--sigma", metavar="NUMBER", help="Noise level of the entries: a number, or auto to estimate it."),
]
Method = Annotated[str, typer.Option(metavar="NAME", help=f"{', '.join(METHODS)}.", autocompletion=one_of(*METHODS))]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also draw risk curve and histogram: .png, .pdf or .svg.")
]


def select(
    file: Numbers,
    sigma: Level = None,
    rule: Rule = "hard",
    method: Method = DEFAULT,
    column: Columns = None,
    as_json: Json = False,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Choose the threshold of least estimated risk for noisy coefficients."""
    y = _read_entries(file, column)
    if plot is not None:
        check_suffix(plot, "--plot", (".png", ".pdf", ".svg"))
        io.check_free(plot, force=force)
    selection = select_threshold(y, sigma=_noise_level(sigma, y), rule=rule, method=method)
    if plot is not None:
        _draw(plot, selection, force=force)
    if as_json:
        echo_text(json.dumps(_fields(file, rule, method, selection), indent=2))
        return
    texts = _texts(selection)
    echo(f"threshold           {texts['threshold']} ({selection.status})")
    echo(f"risk                {texts['risk']}")
    echo(f"degrees of freedom  {texts['dof']}")
    echo(f"kept                {texts['kept']} of {selection.estimate.size} entries")
    echo(f"sigma               {selection.curve.sigma:.6g}")
    if selection.status != "interior":
        echo(selection.status.remedy)


def compare(
    file: Numbers, sigma: Level = None, rule: Rule = "hard", column: Columns = None, as_json: Json = False
) -> None:
    """Choose a threshold by every method, side by side."""
    y = _read_entries(file, column)
    found = compare_methods(y, sigma=_noise_level(sigma, y), rule=rule)
    if as_json:
        echo_text(json.dumps([_fields(file, rule, name, selection) for name, selection in found.items()], indent=2))
        return
    rows = [(name, *_texts(selection).values(), str(selection.status)) for name, selection in found.items()]
    echo_table(("method", "threshold", "risk", "degrees of freedom", "kept", "status"), rows)


def _read_entries(file: str, columns: list[str] | None) -> Any:
    """Return all entries of a file or of standard input as a vector."""
    if file == "-":
        y = _parse_entries(sys.stdin.buffer.read(), columns or [])
    else:
        y = io.read(Path(file), io.ReadOptions(tuple(columns or ()))).values.ravel()
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        msg = f"{file} holds {np.count_nonzero(~np.isfinite(y))} NaN or infinite entries of {y.size}. Remove them."
        raise ValueError(msg)
    return y


def _parse_entries(raw: bytes, columns: list[str]) -> Any:
    """Return the numbers of NPY data, of a list of numbers or of a table as a vector."""
    if raw.startswith(b"\x93NUMPY"):
        return io.load_npy(BytesIO(raw), "standard input").ravel()
    if not columns:
        try:
            return np.array(raw.split(), dtype=np.float64)
        except ValueError:  # words or delimiters: a table
            pass
    table = io.parse_table(raw)
    chosen = [table.column(name) for name in columns] or table.numeric()
    without_header = table.start == 0 and len(chosen) == len(table.names)
    if not columns and not without_header and len(chosen) != 1:
        msg = f"standard input has the columns {io.listed(table.names)}. Choose one or more with --column."
        raise ValueError(msg)
    return table.values(chosen).ravel()


def _noise_level(sigma: str | None, y: Any) -> float:
    if sigma is None:
        msg = "--sigma, the noise level, is missing. Give a number, or --sigma auto: the median of |y| over 0.6745."
        raise ValueError(msg)
    return parse_sigma(sigma) or estimate_sigma(y, domain="coefficients")


def _draw(path: Path, selection: Selection, *, force: bool) -> None:
    """Draw the risk curve and the histogram of magnitudes side by side."""
    from matplotlib.figure import Figure

    from ..viz.plot import plot_risk, plot_selection

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_risk(selection.curve, ax=left)
    plot_selection(selection, ax=right)
    with io.replacing(path, force=force) as beside:
        figure.savefig(beside, dpi=150)


def _fields(file: str, rule: str, method: str, selection: Selection) -> dict[str, Any]:
    """Return what --json prints. docs/cli.md promises that these fields stay."""
    k = int(np.searchsorted(selection.curve.thresholds, selection.threshold))
    return {
        "file": file,
        "size": int(selection.estimate.size),
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
