"""How good are the parameters that `select_parameter` picks for estimators that it knows nothing about?

    python benchmarks/bench_parameter.py                  # the tables of docs/parameter.md, some ten minutes
    python benchmarks/bench_parameter.py images --draws 1
    python benchmarks/bench_parameter.py --develop        # the pictures that step and probes were looked at on
    python benchmarks/bench_parameter.py --show           # print the tables of the last run

Regret is the squared error at the chosen parameter over the least among those tried, for the same data. Rivals choose
among the same parameters: scikit-image's `calibrate_denoiser` (J-invariance), Monte Carlo SURE with one one-sided probe
as deepinv computes it (a step of 0.01 of the range, residual at y), the same with a step of 0.01 noise levels, and
cross-validation for scikit-learn's regressors. Writes benchmarks/parameter.csv with every draw.
"""

import argparse
import csv
import functools
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# One process per core: threads inside of each would only get in the way.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pywt
from scipy.ndimage import gaussian_filter, median_filter
from scipy.signal import savgol_filter, wiener
from skimage import data
from skimage.restoration import calibrate_denoiser, denoise_bilateral, denoise_nl_means, denoise_tv_chambolle
from tqdm import tqdm

import scorethresh as st

RANGE = 255.0


def dwt(y, threshold, *, rule):
    """Threshold all details of an orthogonal transform at one level."""
    levels = min(5, int(np.log2(min(y.shape))) - 3)
    lowest, *details = pywt.wavedecn(y, "db4", mode="periodization", level=levels)
    kept = [{k: pywt.threshold(v, threshold, rule) for k, v in d.items()} for d in details]
    return pywt.waverecn([lowest, *kept], "db4", mode="periodization")


def nl_means(y, h):
    return denoise_nl_means(y, h=h, patch_size=5, patch_distance=6, fast_mode=True)


def tv(y, weight):
    return denoise_tv_chambolle(y, weight=weight)


def bilateral(y, sigma_color):
    return denoise_bilateral(y, sigma_color=sigma_color, sigma_spatial=2)


def quantiser(y, levels):
    """Smooth, then round to as many levels: a pipeline with a jump at its end."""
    step = RANGE / levels
    return np.round(gaussian_filter(y, 1.0) / step) * step


def bm3d(y, strength):
    import bm3d as peer

    return np.asarray(peer.bm3d(y, sigma_psd=strength), dtype=np.float64).reshape(y.shape)


def median(y, size):
    return median_filter(y, size)


def adaptive_wiener(y, size):
    with np.errstate(all="ignore"):
        return wiener(y, size)


def savgol(y, window):
    return savgol_filter(y, window, 3, mode="interp")


def spline(y, smoothing):
    from scipy.interpolate import make_smoothing_spline

    return make_smoothing_spline(np.arange(y.size, dtype=float), y, lam=smoothing)(np.arange(y.size))


def regression(y, value, *, kind):
    """A regressor of scikit-learn on the positions."""
    X = np.arange(y.size, dtype=float)[:, None]
    return regressor(kind, value).fit(X, y).predict(X)


def regressor(kind, value):
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.tree import DecisionTreeRegressor

    if kind == "neighbours":
        return KNeighborsRegressor(n_neighbors=int(value))
    return DecisionTreeRegressor(max_leaf_nodes=int(value), random_state=0)


def times(*factors):
    """Parameters in units of the noise level."""
    return lambda sigma: [float(sigma * f) for f in factors]


def fixed(*values):
    return lambda sigma: list(values)


# Name: the function, its parameters by noise level, whether it jumps.
IMAGES = {
    "DWT, hard": (functools.partial(dwt, rule="hard"), times(*np.linspace(1.5, 5, 15)), True),
    "DWT, soft": (functools.partial(dwt, rule="soft"), times(*np.linspace(0.25, 3, 12)), False),
    "NL-means": (nl_means, times(*np.geomspace(0.3, 2.0, 12)), False),
    "total variation": (tv, times(*np.geomspace(0.25, 4, 12)), False),
    "bilateral": (bilateral, times(*np.geomspace(0.7, 6, 10)), False),
    "median": (median, fixed(1, 2, 3, 4, 5, 7, 9, 11), False),
    "Gaussian": (gaussian_filter, fixed(*np.geomspace(0.3, 4, 12)), False),
    "Wiener": (adaptive_wiener, fixed(3, 5, 7, 9, 11, 15), False),
    "quantiser": (quantiser, fixed(2, 3, 4, 5, 6, 8, 10, 13, 16, 24, 32), True),
}
SLOW = {"bm3d": (bm3d, times(*np.geomspace(0.4, 2.5, 8)), True)}
SIGNALS = {
    "DWT, hard": IMAGES["DWT, hard"],
    "DWT, soft": IMAGES["DWT, soft"],
    "median": (median, fixed(1, 3, 5, 9, 15, 25, 41, 65), False),
    "Savitzky-Golay": (savgol, fixed(5, 7, 11, 15, 21, 31, 45, 65, 91), False),
    "smoothing spline": (spline, fixed(*np.geomspace(1e-1, 1e6, 12)), False),
    "neighbours": (functools.partial(regression, kind="neighbours"), fixed(1, 2, 3, 5, 8, 12, 20, 32, 50), False),
    "tree": (functools.partial(regression, kind="tree"), fixed(4, 8, 16, 24, 32, 48, 64, 96, 128, 200), True),
}
REPORTED = ["astronaut", "clock", "moon", "page", "coffee", "chelsea"]
DEVELOPED = ["camera", "coins", "aero", "ascent"]
CURVES = ["Blocks", "Bumps", "HeaviSine", "Doppler", "ECG"]
CURVES_DEVELOPED = ["Piece-Regular", "Ramp"]


@functools.cache
def picture(name, side):
    """The middle of a picture, in grey levels."""
    image = np.asarray(getattr(pywt.data if name in ("aero", "ascent") else data, name)(), dtype=float)
    image = image.mean(axis=-1) if image.ndim == 3 else image
    top, left = ((n - side) // 2 for n in image.shape)
    return image[top : top + side, left : left + side]


@functools.cache
def curve(name, size):
    """A test signal, scaled to the range of grey levels."""
    if name == "ECG":
        x = np.resize(pywt.data.ecg().astype(float), size)
    else:
        x = np.asarray(pywt.data.demo_signal(name, size), dtype=float)
    return (x - x.min()) / np.ptp(x) * RANGE


def one_sided(function, y, parameters, sigma, step, seed):
    """Monte Carlo SURE with the residual at y and one probe; the step is in units of y."""
    probe = np.random.default_rng([seed, 1]).normal(size=y.shape)
    risks = []
    for p in parameters:
        at, moved = function(y, p), function(y + step * probe, p)
        risks.append(np.sum((y - at) ** 2) + 2 * sigma**2 * np.sum(probe * (moved - at)) / step)
    return int(np.argmin(risks))


def invariance(function, y, parameters):
    """scikit-image's choice."""
    _, (_, losses) = calibrate_denoiser(
        y, lambda image, p: function(image, p), {"p": parameters}, extra_output=True, approximate_loss=True
    )
    return int(np.argmin(losses))


def cross_validated(kind, y, parameters):
    from sklearn.model_selection import KFold, cross_val_score

    X = np.arange(y.size, dtype=float)[:, None]
    folds = KFold(5, shuffle=True, random_state=0)
    scores = [
        cross_val_score(regressor(kind, p), X, y, cv=folds, scoring="neg_mean_squared_error").mean() for p in parameters
    ]
    return int(np.argmax(scores))


def draw(task):
    """One draw: rows of (table, size, estimator, jumps, data, sigma, seed, method, regret, covered, calls, seconds)."""
    table, name, source, size, sigma, seed = task
    images = table == "images"
    function, grid, jumps = {**IMAGES, **SLOW}[name] if images else SIGNALS[name]
    x = picture(source, round(size**0.5)) if images else curve(source, size)
    y = x + np.random.default_rng([seed, size, int(sigma)]).normal(0.0, sigma, x.shape)
    parameters = grid(sigma)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses = np.array([np.sum((function(y, p) - x) ** 2) for p in parameters])

        def add(method, k, calls, start, covered=np.nan):
            seconds = time.process_time() - start
            rows.append([*task, jumps, method, losses[k] / losses.min(), covered, calls, seconds])

        for method, level in (("select_parameter", sigma), ("sigma estimated", None)):
            start = time.process_time()
            found = st.select_parameter(function, y, parameters, sigma=level)
            k = int(np.argmin(found.curve.risk))
            add(method, k, found.calls, start, float(abs(found.risk - losses[k]) <= 2 * found.stderr))
        count = 2 * len(parameters)
        for method, step in (("SURE as in deepinv", 0.01 * RANGE), ("SURE, step 0.01 sigma", 0.01 * sigma)):
            start = time.process_time()
            add(method, one_sided(function, y, parameters, sigma, step, seed), count, start)
        if images and name != "bm3d":
            start = time.process_time()
            add("calibrate_denoiser", invariance(function, y, parameters), len(parameters), start)
        if name in ("neighbours", "tree"):
            start = time.process_time()
            add("cross-validation", cross_validated(name if name == "tree" else "neighbours", y, parameters), 0, start)
    return rows


def tasks(options):
    pictures, curves = (DEVELOPED, CURVES_DEVELOPED) if options.develop else (REPORTED, CURVES)
    first = 10**6 if options.develop else 0
    out = []
    for k in range(first, first + options.draws):
        for sigma in (10.0, 25.0):
            out += [("images", n, s, p, sigma, k) for n in IMAGES for s in pictures for p in (1024, 16384)]
            out += [("signals", n, s, p, sigma, k) for n in SIGNALS for s in curves for p in (1024, 16384)]
    if options.bm3d:
        out += [("images", "bm3d", s, 16384, 25.0, first) for s in pictures]
    return [t for t in out if t[0] in options.tables]


HEADER = [
    "table",
    "estimator",
    "data",
    "size",
    "sigma",
    "seed",
    "jumps",
    "method",
    "regret",
    "covered",
    "calls",
    "seconds",
]


def report(rows):
    rows = [dict(zip(HEADER, row, strict=True)) for row in rows]
    for row in rows:
        row.update({key: float(row[key]) for key in ("regret", "covered", "calls")}, size=int(float(row["size"])))
        row["jumps"] = str(row["jumps"]) == "True"
    for table in dict.fromkeys(row["table"] for row in rows):
        for size in sorted({row["size"] for row in rows}):
            here = [row for row in rows if row["table"] == table and row["size"] == size]
            if not here:
                continue
            methods = list(dict.fromkeys(row["method"] for row in here))
            print(
                f"\n{table}, P = {size}: regret, mean / worst; in brackets the share of draws within 2 standard errors"
            )
            print(f"{'':18}" + "".join(f"{m:>24}" for m in methods))
            groups = {n: [r for r in here if r["estimator"] == n] for n in dict.fromkeys(r["estimator"] for r in here)}
            groups["all smooth"] = [r for r in here if not r["jumps"]]
            groups["all that jump"] = [r for r in here if r["jumps"]]
            for name, group in groups.items():
                cells = []
                for method in methods:
                    some = [r for r in group if r["method"] == method]
                    regrets, covered = ([r[key] for r in some] for key in ("regret", "covered"))
                    text = f"{np.mean(regrets):.3f} / {np.max(regrets):.2f}" if some else ""
                    if some and not np.isnan(covered[0]):
                        text += f" ({np.mean(covered):4.0%})"
                    cells.append(f"{text:>24}")
                print(f"{name:18}" + "".join(cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=["images", "signals"])
    parser.add_argument("--draws", type=int, default=3, help="per picture and noise level")
    parser.add_argument("--bm3d", action="store_true", help="try bm3d's strength, too: minutes per picture")
    parser.add_argument("--develop", action="store_true", help="the pictures that step and probes were looked at on")
    parser.add_argument("--show", action="store_true", help="print the tables of the last run")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_name("parameter.csv"))
    options = parser.parse_args()
    if options.show:
        with options.csv.open(newline="") as file:
            report(list(csv.reader(file))[1:])
        return
    todo = tasks(options)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        rows = [row for some in tqdm(pool.map(draw, todo, chunksize=2), total=len(todo), leave=False) for row in some]
    with options.csv.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows])
    report(rows)


if __name__ == "__main__":
    main()
