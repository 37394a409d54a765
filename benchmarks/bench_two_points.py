"""Risk at the chosen threshold over the least, for means of two values: a number of spikes of one height, and zeros.

    python benchmarks/bench_two_points.py                      # tables, a minute
    python benchmarks/bench_two_points.py --picture docs/img/two_points.png

One spike near the limit of detection is the hardest case for any method that is good elsewhere. Standard errors are
at most 0.02 where the ratio is below 1.3.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

import scorethresh as st

SIZES = (256, 1024, 4096)
COUNTS = ("1", "2", "4", "1%", "3%", "10%", "30%")
HEIGHTS = (1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
METHODS = {"default": None, "SCORE, paper's h": st.Score("paper"), "universal": st.Universal()}
THRESHOLDS = np.arange(0, 9 * 64 + 1) / 64
DRAWS = 60


def exact_risk(height: float, thresholds: np.ndarray) -> np.ndarray:
    """Return the risk of hard thresholding at one mean, sigma = 1."""
    a, b = -thresholds - height, thresholds - height
    p0 = np.array([0.5 * (math.erf(v / math.sqrt(2)) - math.erf(u / math.sqrt(2))) for u, v in zip(a, b, strict=True)])
    phi = [np.exp(-(v**2) / 2) / math.sqrt(2 * math.pi) for v in (a, b)]
    return 1 - p0 + b * phi[1] - a * phi[0] + height**2 * p0


def ratios(size: int, count: int, height: float) -> dict[str, float]:
    """Return the mean risk at the chosen threshold of each method over the least risk of any."""
    grid = np.append(THRESHOLDS, 1e3)  # the last kills all
    least = float((count * exact_risk(height, grid) + (size - count) * exact_risk(0.0, grid)).min())
    clean = np.where(np.arange(size) < count, height, 0.0)
    sums = dict.fromkeys(METHODS, 0.0)
    for draw in range(DRAWS):
        y = clean + np.random.default_rng([size, count, int(10 * height), draw]).normal(size=size)
        for name, method in METHODS.items():
            options = {} if method is None else {"method": method}
            chosen = np.array([min(st.select_threshold(y, sigma=1.0, **options).threshold, 1e3)])
            risk = count * exact_risk(height, chosen) + (size - count) * exact_risk(0.0, chosen)
            sums[name] += float(risk[0]) / DRAWS
    return {name: total / least for name, total in sums.items()}


def draw_picture(maps: dict[tuple[int, str], np.ndarray], path: Path) -> None:
    """Draw the maps, a row per method and a column per size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7.5), layout="constrained")
    panels = figure.subplots(len(METHODS), len(SIZES), sharex=True, sharey=True)
    for row, method in zip(panels, METHODS, strict=True):
        for panel, size in zip(row, SIZES, strict=True):
            values = maps[size, method]
            shown = panel.imshow(values, vmin=1, vmax=2, cmap="cividis_r", aspect="auto")
            for (i, j), value in np.ndenumerate(values):
                panel.text(
                    j, i, f"{value:.2f}", ha="center", va="center", fontsize=6, color="w" if value > 1.5 else "k"
                )
            panel.set_title(f"{method}, P = {size}", fontsize=9)
            panel.set_xticks(range(len(HEIGHTS)), [f"{h:g}" for h in HEIGHTS])
            panel.set_yticks(range(len(COUNTS)), COUNTS)
    figure.supxlabel("height of the spikes over sigma")
    figure.supylabel("number or share of the spikes")
    figure.colorbar(shown, ax=panels, shrink=0.6, label="risk over the least")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    maps = {(size, method): np.zeros((len(COUNTS), len(HEIGHTS))) for size in SIZES for method in METHODS}
    for size in SIZES:
        for i, count in enumerate(COUNTS):
            number = math.ceil(size * float(count[:-1]) / 100) if count.endswith("%") else int(count)
            for j, height in enumerate(HEIGHTS):
                for method, ratio in ratios(size, number, height).items():
                    maps[size, method][i, j] = ratio
        for method in METHODS:
            values = maps[size, method]
            print(f"\n{method}, P = {size}: mean {values.mean():.3f}, worst {values.max():.2f}", flush=True)
            print(f"{'spikes':>8s}" + "".join(f"{h:7g}" for h in HEIGHTS))
            for count, line in zip(COUNTS, values, strict=True):
                print(f"{count:>8s}" + "".join(f"{value:7.2f}" for value in line))
    assert all((values > 1 - 1e-9).all() for values in maps.values()), "nothing is below the least risk"
    if arguments.picture:
        draw_picture(maps, arguments.picture)


if __name__ == "__main__":
    main()
