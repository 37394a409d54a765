"""Shared by the scripts: the command line, the style of the figures, the files."""

import argparse
import csv
from pathlib import Path

import matplotlib

LOOK = {
    "font.family": "serif",
    "font.size": 8,
    "mathtext.fontset": "dejavuserif",
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}

# A decorator for the functions that draw.
journal = matplotlib.rc_context(LOOK)


def parser(doc):
    """Return a command line with the option ``--out``, described by the first line of a docstring."""
    made = argparse.ArgumentParser(description=doc.splitlines()[0])
    made.add_argument("--out", type=Path, default=Path("out/score2013"), help="folder for the PNG and the CSV")
    return made


def save(folder, name, rows, figure):
    """Write the rows, a list of dicts, to name.csv and the figure to name.png."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows({k: f"{v:.7g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    figure.savefig(folder / f"{name}.png", dpi=200)
    print(f"written: {folder / name}.png and .csv")
