"""How good are the thresholds that each method picks? Risk at the chosen threshold over the least there is.

    python benchmarks/bench_regret.py                   # the table of docs/evidence.md, some twenty minutes
    python benchmarks/bench_regret.py --draws 10 --sizes 256 1024
    python benchmarks/bench_regret.py --develop         # the signals that the default was chosen on, not reported

Writes benchmarks/regret.csv with every cell. R's wavethresh joins the table where R has it.
"""

import argparse
import csv
import functools
import itertools
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# One process per core: threads inside of each would only get in the way.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pywt
from tqdm import tqdm

import scorethresh as st

SIZES = [256, 1024, 4096, 65536, 1_000_000]
METHODS = {
    "default": None,
    "score, paper's h": st.Score("paper"),
    "score, plug-in h": st.Score("plugin"),
    "score, order 4": st.Score(density="order4"),
    "score, sinc": st.Score(density="sinc"),
    "score, mixture": st.Score(density="mixture"),
    "mixture, plain": st.Mixture(null=0),
    "jansen": st.Jansen(),
    "coupled bootstrap": st.CoupledBootstrap(),
    "little bootstrap": st.LittleBootstrap(),
    "universal": st.Universal(),
    "fdr 5%": st.Fdr(),
    "cross-validation": st.CrossValidation(),
}
OUTSIDE = ["wavethresh cv", "wavethresh fdr"]
FINE = np.append(np.arange(0, 9 * 64 + 1) / 64, np.inf)


def spikes(size, fraction, height):
    return np.where(np.arange(size) < np.ceil(fraction * size), float(height), 0.0)


def power_law(size, gamma):
    """Sorted magnitudes 1/i^gamma at a signal-to-noise ratio of 5.65 dB, as in the paper."""
    x = np.arange(1.0, size + 1) ** -gamma
    return x * np.sqrt(10**0.565 * size) / np.linalg.norm(x)


def bands(size, image):
    """Detail bands of a picture with noise of 20 grey levels: the level whose bands have about that many entries."""
    x = getattr(pywt.data, image)().astype(float)
    level = int(np.clip(np.round(np.log2(512) - np.log2(size) / 2), 1, 6))
    details = pywt.wavedec2(x, "db4", mode="periodization", level=level)[1]
    return np.resize(np.concatenate([d.ravel() for d in details]) / 20, size)


def laplace(size, fraction, scale):
    rng = np.random.default_rng(size)
    return rng.laplace(scale=scale, size=size) * (rng.random(size) < fraction)


REPORTED = {
    **{f"{100 * f:g}% at {h}": (spikes, f, h) for f, h in itertools.product((0.005, 0.02, 0.1), (3, 5, 10))},
    "laplace(1)": (laplace, 1.0, 1.0),
    "10% laplace(3)": (laplace, 0.1, 3.0),
    "2% laplace(4)": (laplace, 0.02, 4.0),
    **{f"1/i^{g}": (power_law, g) for g in (0.5, 0.8, 1, 2)},
    "camera": (bands, "camera"),
    "ascent": (bands, "ascent"),
    "pure noise": (spikes, 0, 0),
}
DEVELOPED = {
    **{f"{100 * f:g}% at {h}": (spikes, f, h) for f, h in itertools.product((0.01, 0.05, 0.2), (2.5, 4, 7))},
    "laplace(0.7)": (laplace, 1.0, 0.7),
    "5% laplace(2)": (laplace, 0.05, 2.0),
    "1/i^0.65": (power_law, 0.65),
    "1/i^1.4": (power_law, 1.4),
    "aero": (bands, "aero"),
}


@functools.cache
def signal(spec, size):
    """The means, and their true risk at the fine thresholds."""
    x0 = spec[0](size, *spec[1:])
    return x0, st.risk_curve(x0, FINE, sigma=1.0, method=st.Oracle(x0)).risk


def draw(task):
    """One draw: per method the true risk at its threshold, and the squared error of its curve near the minimum."""
    family, spec, size, seed, names = task
    x0, truth = signal(spec, size)
    best = int(np.argmin(truth))
    near = np.abs(FINE - FINE[best]) <= 0.5 if np.isfinite(FINE[best]) else FINE > 4
    near &= np.isfinite(FINE)
    y = np.random.default_rng([seed, size]).permutation(x0)
    order = np.random.default_rng([seed, size, 1])
    y = y + order.normal(size=size)
    sample = y if size <= 4096 else st.Magnitudes.compress(y, sigma=1.0)
    out = {}
    for name in names:
        method = METHODS[name]
        given = y if isinstance(method, st.CrossValidation) else sample
        kwargs = {} if method is None else {"method": method}
        chosen = st.select_threshold(given, sigma=1.0, **kwargs)
        at = truth[-1] if np.isinf(chosen.threshold) else np.interp(chosen.threshold, FINE[:-1], truth[:-1])
        error = np.nan
        if not isinstance(method, st.Selector):
            curve = np.interp(FINE[near], chosen.curve.thresholds[:-1], chosen.curve.risk[:-1])
            error = np.mean(np.square(curve - truth[near]))
        out[name] = at, error
    return family, size, seed, truth[best], out, y if size <= 4096 else None


RSCRIPT = """
suppressMessages(library(wavethresh))
for (line in readLines("stdin")) {
  y <- as.numeric(strsplit(line, " ")[[1]])
  w <- wd(rep(0, length(y)))
  levels <- 0:(nlevelsWT(w) - 1)
  at <- 0
  for (j in levels) { w <- putD(w, level = j, v = y[at + 1:2^j]); at <- at + 2^j }
  pick <- function(...) {
    t <- try(threshold(..., type = "hard", dev = function(x) 1, return.threshold = TRUE), silent = TRUE)
    if (inherits(t, "try-error") || length(t) == 0) NA else max(as.numeric(t))
  }
  invisible(capture.output(cv <- pick(wd(wr(w)), policy = "cv", levels = levels[levels > 2])))
  invisible(capture.output(fdr <- pick(w, policy = "fdr", levels = levels)))
  cat(cv, fdr, "\\n")
}
"""


def wavethresh(results):
    """Let R's wavethresh choose on the same data, up to 4096 entries: as the details of a transform of that length."""
    if shutil.which("Rscript") is None:
        print("R is not installed: wavethresh is left out (Debian: r-cran-wavethresh).")
        return {}
    todo = [r for r in results if r[5] is not None]
    with tempfile.NamedTemporaryFile("w", suffix=".R") as script:
        script.write(RSCRIPT)
        script.flush()
        text = "\n".join(" ".join(map(repr, map(float, r[5]))) for r in todo)
        done = subprocess.run(["Rscript", script.name], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        print("R has no wavethresh, or it failed: left out.", done.stderr.strip().splitlines()[-1:])
        return {}
    found = {}
    for r, line in zip(todo, done.stdout.splitlines(), strict=True):
        picked = [float("nan") if v == "NA" else float(v) for v in line.split()]
        found[r[0], r[1], r[2]] = dict(zip(OUTSIDE, picked, strict=True))
    return found


def ratio(risks, best):
    return np.mean(risks) / best, np.std(risks) / np.sqrt(len(risks)) / best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="per family; a twentieth of it at 1e6 entries")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--develop", action="store_true", help="the signals that the default was chosen on")
    parser.add_argument("--no-r", action="store_true", help="leave R out")
    parser.add_argument("--show", type=Path, nargs="*", help="print the tables of earlier runs' CSV files and stop")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_name("regret.csv"))
    options = parser.parse_args()
    if options.show:
        show(options.show)
        return
    families = DEVELOPED if options.develop else REPORTED
    tasks = [
        (family, spec, size, seed + (10**6 if options.develop else 0), options.methods)
        for size in options.sizes
        for family, spec in families.items()
        for seed in range(options.draws if size < 10**6 else max(2, options.draws // 20))
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        results = list(tqdm(pool.map(draw, tasks, chunksize=4), total=len(tasks), leave=False))

    names = list(options.methods)
    picked = {} if options.no_r else wavethresh(results)
    for family, size, seed, _, out, _ in results:
        if (family, size, seed) in picked:
            truth = signal(families[family], size)[1]
            for name, t in picked[family, size, seed].items():
                out[name] = np.interp(min(t, 9.0), FINE[:-1], truth[:-1]), np.nan
    names += OUTSIDE if picked else []

    rows = []
    for size, family, name in itertools.product(options.sizes, families, names):
        here = [(r[3], *r[4][name]) for r in results if r[:2] == (family, size) and name in r[4]]
        here = [h for h in here if np.isfinite(h[1])]
        if not here:
            continue
        best, risks, errors = here[0][0], [h[1] for h in here], [h[2] for h in here]
        mean, error = ratio(risks, best) if best > 0 else (np.nan, np.nan)
        rmse = np.sqrt(np.mean(errors)) / best if best > 0 else np.sqrt(np.mean(errors)) / size
        rows.append([size, family, name, mean, error, (np.mean(risks) - best) / size, rmse, len(here)])
    with options.csv.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["P", "family", "method", "ratio", "standard error", "excess per entry", "rmse", "draws"])
        writer.writerows(rows)
    report(rows, options.sizes, names)


def show(paths):
    """Print the tables again, from files."""
    rows = {}
    for path in paths:
        with path.open(newline="") as file:
            for r in list(csv.reader(file))[1:]:
                rows.setdefault((int(r[0]), r[1], r[2]), [int(r[0]), r[1], r[2], *map(float, r[3:])])
    sizes, names = (list(dict.fromkeys(key[k] for key in rows)) for k in (0, 2))
    report(list(rows.values()), sizes, names)


def report(rows, sizes, names):
    """Print per method and size: mean and worst ratio over the families, error of the curve, excess at pure noise."""
    table = {(r[0], r[1], r[2]): r[3:] for r in rows}
    families = list(dict.fromkeys(r[1] for r in rows))
    signals = [f for f in families if f != "pure noise"]
    for size in sizes:
        print(
            f"\nP = {size}: risk at the chosen threshold over the least; mean over {len(signals)} families, and worst"
        )
        print(f"{'':>20}  {'mean':>6} {'(se)':>8}  {'worst':>6}  {'where':<15} {'rmse':>6}  {'noise':>8}")
        for name in names:
            cells = {f: table[size, f, name] for f in signals if (size, f, name) in table}
            if not cells:
                continue
            ratios = np.array([c[0] for c in cells.values()])
            error = np.sqrt(np.mean([c[1] ** 2 for c in cells.values()]) / len(cells))
            worst = max(cells, key=lambda f: cells[f][0])
            rmse = np.mean([c[3] for c in cells.values()])
            noise = table.get((size, "pure noise", name))
            print(
                f"{name:>20}  {ratios.mean():6.3f} ({error:.4f})  {cells[worst][0]:6.3f}  {worst:<15} "
                f"{'' if np.isnan(rmse) else f'{rmse:6.3f}':>6}  {'' if noise is None else f'{noise[2]:8.1e}':>8}"
            )
        if "default" in names and "score, paper's h" in names:
            gaps = {f: table[size, f, "default"][0] / table[size, f, "score, paper's h"][0] for f in signals}
            worst = max(gaps, key=gaps.get)
            print(f"the default over the paper's SCORE: at most {gaps[worst]:.3f} ({worst})")


if __name__ == "__main__":
    main()
