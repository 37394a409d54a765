"""Draw the charts of the evidence pages from the tables in benchmarks/: ``python docs/charts.py [FOLDER]``."""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parent.parent
# Colours of Okabe and Ito, which are told apart without telling red from green.
OURS, PEER, OTHERS = "#0072b2", "#d55e00", "#8a8f96"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": OTHERS,
    "figure.facecolor": "white",
}
# What is drawn of the methods for thresholds: colour, line, and the name at its end.
THRESHOLDS = {
    "default": (OURS, "-", "default"),
    "score, paper's h": (PEER, "-", "SCORE, the paper's bandwidth"),
    "score, plug-in h": (PEER, "--", "SCORE, plug-in bandwidth"),
    "jansen": (OTHERS, ":", "Jansen"),
    "little bootstrap": (OTHERS, "--", "little bootstrap"),
    "coupled bootstrap": (OTHERS, "-.", "coupled bootstrap"),
    "universal": (OTHERS, "-", "universal"),
    "fdr 5%": ("#56b4e9", "-", "FDR 5%"),
}
# Denoisers as the page names them.
DENOISERS = {
    "blend": "blend (default)",
    "bm3d": "BM3D",
    "fast": "fast",
    "bands": "bands",
    "NL-means": "NL-means",
    "deepinv, three wavelets": "deepinv, three wavelets",
    "BayesShrink, cycle_spin": "BayesShrink, cycle_spin",
    "TV": "total variation",
    "BayesShrink": "BayesShrink",
    "deepinv, one wavelet": "deepinv, one wavelet",
    "VisuShrink, cycle_spin": "VisuShrink, cycle_spin",
    "VisuShrink": "VisuShrink",
    "calibrate_denoiser": "calibrate_denoiser",
}
OWN = ("blend", "fast", "bands")


def read(name: str) -> list[dict[str, str]]:
    """Return the rows of a table in benchmarks/."""
    with open(ROOT / "benchmarks" / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mean_regret() -> dict[str, dict[int, float]]:
    """Return, by method and number of entries, how much larger than the least the risk is: the mean over signals."""
    cells: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in read("regret.csv"):
        if row["family"] != "pure noise":  # there the least risk is 0
            cells[row["method"], int(row["P"])].append(float(row["ratio"]) - 1)
    out: dict[str, dict[int, float]] = defaultdict(dict)
    for (method, size), ratios in cells.items():
        out[method][size] = float(np.mean(ratios))
    return out


def mean_psnr() -> dict[str, dict[int, float]]:
    """Return the mean PSNR over the images, by method and noise level."""
    cells: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in read("denoise.csv"):
        cells[row["method"], int(row["sigma"])].append(float(row["psnr"]))
    out: dict[str, dict[int, float]] = defaultdict(dict)
    for (method, sigma), values in cells.items():
        out[method][sigma] = float(np.mean(values))
    return out


def thresholds_chart() -> Any:
    """Draw the regret of methods for thresholds against the number of entries."""
    figure, ax = plt.subplots(figsize=(8.2, 4.4))
    ends = []
    for method, (colour, line, name) in THRESHOLDS.items():
        points = sorted(mean_regret()[method].items())
        sizes, regrets = zip(*points, strict=True)
        width = 2.6 if method == "default" else 1.5
        ax.plot(sizes, 100 * np.array(regrets), line, color=colour, lw=width, marker="o", ms=4)
        ends.append((100 * regrets[-1], name, colour))
    _label_ends(ax, 1e6, ends)
    ax.set(xscale="log", yscale="log", xlabel="entries", xlim=(220, 1.1e6))
    ax.set_yticks([0.1, 1, 10, 100], ["0.1%", "1%", "10%", "100%"])
    ax.set_title("Risk above the least possible: mean over 18 signals", loc="left", fontsize=11)
    ax.grid(axis="y", color="#e5e7ea")
    figure.subplots_adjust(left=0.09, right=0.68, bottom=0.12, top=0.92)
    return figure


def _label_ends(ax: Any, x: float, ends: list[tuple[float, str, str]]) -> None:
    """Write names at the ends of lines, on a logarithmic axis, at least 0.17 decades apart."""
    last = -np.inf
    for value, name, colour in sorted(ends):
        last = max(np.log10(value), last + 0.17)
        ax.annotate(name, (x, value), (x * 1.5, 10**last), color=colour, va="center", annotation_clip=False)


def images_chart() -> Any:
    """Draw how far methods are below the default, for every noise level and in the mean."""
    psnr = mean_psnr()
    figure, ax = plt.subplots(figsize=(8.2, 4.8))
    for k, method in enumerate(DENOISERS):
        loss = [psnr[method][sigma] - psnr["blend"][sigma] for sigma in sorted(psnr["blend"])]
        mean = float(np.mean(loss))
        colour = OURS if method in OWN else PEER if method == "bm3d" else OTHERS
        ax.barh(k, mean, color=colour, height=0.62, alpha=0.85)
        ax.plot(loss, [k] * len(loss), "o", ms=4, mfc="white", mec="#1b1b1b", mew=0.8)
        ax.annotate(f"{mean:.2f}".replace("-", "\u2212") if mean else "0", (0.12, k), va="center", color=colour)
    ax.set_yticks(range(len(DENOISERS)), list(DENOISERS.values()))
    ax.invert_yaxis()
    ax.set(xlabel="PSNR relative to the default, in dB. Bars: mean; dots: noise 5, 10, 25, 50, 75", xlim=(-9.2, 0.9))
    ax.set_title("Ten images: how far below the default", loc="left", fontsize=11)
    ax.grid(axis="x", color="#e5e7ea")
    ax.set_axisbelow(True)
    figure.subplots_adjust(left=0.23, right=0.97, bottom=0.12, top=0.92)
    return figure


def prediction_chart() -> Any:
    """Draw the predicted against the true PSNR of the default."""
    rows = [row for row in read("denoise.csv") if row["method"] == "blend"]
    figure, ax = plt.subplots(figsize=(5.4, 5.0))
    ax.plot([20, 45], [20, 45], color=OTHERS, lw=1)
    levels = sorted({int(row["sigma"]) for row in rows})
    for sigma, marker, colour in zip(levels, "osD^v", mpl.colormaps["cividis"](np.linspace(0, 0.95, 5)), strict=True):
        own = [(float(row["psnr"]), float(row["predicted"])) for row in rows if int(row["sigma"]) == sigma]
        ax.plot(*zip(*own, strict=True), marker, color=colour, mec="#1b1b1b", mew=0.5, ms=6, label=f"noise {sigma}")
    ax.set(xlabel="true PSNR, in dB", ylabel="predicted PSNR, in dB", xlim=(20, 45), ylim=(20, 45), aspect="equal")
    ax.legend(frameon=False, loc="upper left")
    ax.set_title("Ten images: what was predicted, and what came true", loc="left", fontsize=11)
    figure.subplots_adjust(left=0.12, right=0.97, bottom=0.1, top=0.93)
    return figure


CHARTS: dict[str, Callable[[], Any]] = {
    "evidence_thresholds.png": thresholds_chart,
    "evidence_images.png": images_chart,
    "evidence_prediction.png": prediction_chart,
}


def main(folder: Path) -> None:
    """Write all charts, in few colours, so that the files are small."""
    from PIL import Image

    for name, draw in CHARTS.items():
        with mpl.rc_context(STYLE):
            figure = draw()
            figure.set_dpi(144)
            figure.canvas.draw()
            pixels = np.asarray(figure.canvas.buffer_rgba())
        plt.close(figure)
        Image.fromarray(pixels).convert("RGB").quantize(48, dither=Image.Dither.NONE).save(folder / name, optimize=True)
        print(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "img")
