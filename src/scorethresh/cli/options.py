"""Options that several commands share, and how their text is checked."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer.core import TyperCommand, TyperGroup

from .. import io

# The panels of the help page of `denoise`.
NOISE, FILES, OUTPUT, METHOD, SERIES = "The noise", "Reading files", "What is written", "The method", "Series"
STORES = "Larger than memory"


def one_of(*values: str) -> Callable[[], list[str]]:
    """Return what the shell offers as values of an option."""
    return lambda: list(values)


RULES = ("hard", "soft", "firm", "garrote", "scad", "bridge")
DTYPES = ("uint8", "uint16", "int16", "int32", "float32", "float64")
METHODS = ("mixture", "score", "jansen", "sure", "bootstrap", "little", "universal", "fdr", "cv")

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME",
        help="CSV: a column, by name or number from 1. May be repeated.",
        rich_help_panel=FILES,
    ),
]
Rule = Annotated[
    str,
    typer.Option(metavar="NAME", help=f"{', '.join(RULES)}.", autocompletion=one_of(*RULES), rich_help_panel=METHOD),
]
AxesOption = Annotated[
    str,
    typer.Option(
        metavar="LETTERS",
        help="TIFF, DICOM, NPY, NPZ, Zarr, FITS: a letter per axis, such as ZCYX or ZC2YX. Z, Y, X space; S colours; "
        "C channels, T times and others one by one.",
        rich_help_panel=FILES,
    ),
]
Volume = Annotated[
    bool, typer.Option("--volume", help="TIFF, DICOM: pages are one volume, not pictures.", rich_help_panel=FILES)
]
Key = Annotated[str, typer.Option(metavar="NAME", help="NPZ, Zarr, FITS: the array, by name.", rich_help_panel=FILES)]
ChannelAxis = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="NPY, NPZ, Zarr, FITS: the axis of channels.", rich_help_panel=FILES),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Type of the output: {', '.join(DTYPES)}.",
        autocompletion=one_of(*DTYPES),
        rich_help_panel=OUTPUT,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.", rich_help_panel=OUTPUT)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.", rich_help_panel=OUTPUT)]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.", rich_help_panel=OUTPUT)]


class PlainCommand(TyperCommand):
    """A command whose help page is made of whole paragraphs, and names no type of a flag, which takes no value."""

    def __init__(self, *args: Any, help: str | None = None, **options: Any) -> None:
        paragraphs = inspect.cleandoc(help or "").split("\n\n")
        super().__init__(*args, help="\n\n".join(" ".join(text.split()) for text in paragraphs), **options)

    def get_params(self, ctx: Any) -> Any:
        """Return the options and arguments."""
        return without_flag_types(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """The command above all others; its help page names no type of a flag either."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options."""
        return without_flag_types(super().get_params(ctx))


def without_flag_types(params: Any) -> Any:
    """Return parameters of a command; flags have an empty word for their value, and arguments show no type."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        elif param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None  # its name says enough
    return params


def given_options(context: Any, allowed: tuple[str, ...]) -> list[str]:
    """Return the options that were given, without those whose parameters are allowed."""
    return [
        max(param.opts, key=len)
        for param in context.command.params
        if param.name not in allowed and context.get_parameter_source(param.name).name == "COMMANDLINE"
    ]


def parse_dtype(dtype: str | None) -> np.dtype[Any] | None:
    """Return the value of --dtype."""
    if dtype is not None and dtype not in DTYPES:
        msg = f"unknown --dtype {dtype!r}. There are {', '.join(DTYPES)}."
        raise ValueError(msg)
    return None if dtype is None else np.dtype(dtype)


def parse_sigma(sigma: str) -> float | None:
    """Return the value of --sigma, or None for ``auto``."""
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


def parse_sigma_or_map(sigma: str) -> Any:
    """Return the value of --sigma, None for ``auto``, or the numbers of a file: a level per entry."""
    if not sigma.lower().endswith(io.suffixes()):
        return parse_sigma(sigma)
    return io.read(Path(sigma)).values


def read_mask(mask: Path | None) -> Any:
    """Return True where entries are left out: where the mask, a file, is 0. None if there is no mask."""
    return None if mask is None else io.read(mask).values == 0


def check_suffix(path: Path, option: str, suffixes: tuple[str, ...]) -> None:
    """Raise if the name of a file does not end in one of the suffixes."""
    if path.suffix.lower() not in suffixes:
        msg = f"{option} writes files that end in {' or '.join(suffixes)}, got {path}. Choose such a name."
        raise ValueError(msg)
