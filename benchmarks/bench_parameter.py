"""How good are the parameters that `select_parameter` picks for estimators that it knows nothing about?

    python benchmarks/bench_parameter.py                  # the tables of docs/parameter.md, some ten minutes
    python benchmarks/bench_parameter.py images --draws 1
    python benchmarks/bench_parameter.py --develop        # the pictures that step and probes were looked at on
    python benchmarks/bench_parameter.py --ours           # without rivals; rows of the last run stay
    python benchmarks/bench_parameter.py --show           # print the tables of the last run
    python benchmarks/bench_parameter.py blocks limits    # thresholds of blocks; cases where it is weak
    python benchmarks/bench_parameter.py deepinv          # deepinv's own SURE loss, if it is installed

Regret is the squared error at the chosen parameter over the least among those tried, for the same data. Rivals choose
among the same parameters: scikit-image's `calibrate_denoiser` (J-invariance), Monte Carlo SURE with one one-sided probe
as deepinv computes it (a step of 0.01 of the range, residual at y), the same with a step of 0.01 noise levels, and
cross-validation for scikit-learn's regressors. Writes benchmarks/parameter.csv with the mean and the worst of the
draws of every picture or signal.
"""

import argparse
import csv
import functools
import itertools
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
OURS = {"select_parameter": True, "sigma estimated": False}


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
    *task, rivals = task
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

        for method, known in OURS.items():
            start = time.process_time()
            found = st.select_parameter(function, y, parameters, sigma=sigma if known else None)
            k = int(np.argmin(found.curve.risk))
            add(method, k, found.calls, start, float(abs(found.risk - losses[k]) <= 2 * found.stderr))
        if not rivals:
            return rows
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
    return [(*t, not options.ours) for t in out if t[0] in options.tables]


# Blocks: the share of blocks with a signal, and how far their norm lies beyond that of noise, less 1.
BLOCKS = [(share, height) for share in (0.02, 0.1, 0.3) for height in (3.0, 5.0, 9.0)]
BLOCK_METHODS = {
    "mixture (default)": st.BlockMixture(),
    "mixture, plain": st.BlockMixture(null=0),
    "kernel": st.BlockScore(),
}
FINE = np.append(np.arange(0.0, 16.0, 1 / 32), 60.0)


def block_draw(task):
    """Risk at the chosen threshold over the least, by noncentral chi-squares, for each method."""
    blocks, size, (share, height), seed = task
    height += np.sqrt(size) - 1
    count = int(np.ceil(share * blocks))
    truth = (blocks - count) * block_risk(size, 0.0) + count * block_risk(size, height)
    y = np.random.default_rng([seed, blocks, size]).normal(size=(blocks, size))
    y[:count, 0] += height
    out = {}
    for name, method in BLOCK_METHODS.items():
        t = st.select_threshold(y, sigma=1.0, block_axis=-1, method=method).threshold
        out[name] = np.interp(min(t, FINE[-1]), FINE, truth) / truth.min()
    return task, out


@functools.cache
def block_risk(size, mean):
    from scipy.special import chndtr

    delta = mean**2
    low, high = (chndtr(FINE**2, size + k, delta) for k in (2, 4))
    return size - size * low - delta * high + 2 * delta * low


def show_blocks(draws):
    for blocks in (256, 1024, 4096):
        for size in (2, 4, 16):
            todo = [(blocks, size, signal, k) for signal in BLOCKS for k in range(draws)]
            with ProcessPoolExecutor(os.cpu_count()) as pool:
                found = [out for _, out in pool.map(block_draw, todo, chunksize=4)]
            cells = []
            for name in BLOCK_METHODS:
                means = np.mean(np.reshape([out[name] for out in found], (len(BLOCKS), draws)), axis=1)
                cells.append(f"{name} {means.mean():.3f} / {means.max():.2f}")
            print(f"{blocks} blocks of {size}: " + ", ".join(cells), flush=True)


def lasso_refit(y, penalty, *, A):
    """Least squares on the support that the lasso finds."""
    from sklearn.linear_model import Lasso

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = Lasso(alpha=penalty / y.size, fit_intercept=False, tol=1e-8, max_iter=10_000).fit(A, y).coef_
    support = np.flatnonzero(x)
    return A[:, support] @ np.linalg.lstsq(A[:, support], y, rcond=None)[0]


def lasso_draw(seed):
    rng = np.random.default_rng(seed)
    correlation = 0.9 ** np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
    A = rng.normal(size=(100, 40)) @ np.linalg.cholesky(correlation).T
    A /= np.linalg.norm(A, axis=0)
    x0 = A[:, [2, 10, 20, 30]] @ [6.0, -5.0, 4.0, 3.0]
    y = x0 + rng.normal(size=100)
    penalties = np.geomspace(0.2, 4, 12)
    function = functools.partial(lasso_refit, A=A)
    losses = np.array([np.sum((function(y, p) - x0) ** 2) for p in penalties])
    found = st.select_parameter(function, y, penalties, sigma=1.0, probes=20)
    fits = np.array([np.sum((y - function(y, p)) ** 2) for p in penalties])
    knots = int(np.argmin(fits + 2 * st.dof_lasso_ols(A, y, penalties, sigma=1.0)))
    folds = np.array_split(rng.permutation(100), 5)
    errors = np.zeros(penalties.size)
    for fold in folds:
        rest = np.setdiff1d(np.arange(100), fold)
        for k, p in enumerate(penalties):
            from sklearn.linear_model import Lasso

            x = Lasso(alpha=p / 100, fit_intercept=False).fit(A[rest], y[rest]).coef_
            support = np.flatnonzero(x)
            fit = np.linalg.lstsq(A[rest][:, support], y[rest], rcond=None)[0]
            errors[k] += np.sum((y[fold] - A[fold][:, support] @ fit) ** 2)
    chosen = {"select_parameter": np.argmin(found.curve.risk), "dof_lasso_ols": knots, "5 folds": np.argmin(errors)}
    return {name: losses[k] / losses.min() for name, k in chosen.items()}


def show_limits(draws):
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lasso_draw, range(10 * draws)))
    print("refit of the lasso, 100 x 40: regret, mean / worst")
    for name in found[0]:
        print(f"  {name:18} {np.mean([f[name] for f in found]):.2f} / {np.max([f[name] for f in found]):.2f}")
    print("pictures, P = 16384: regret, mean / worst")
    cases = {"sigma right": 1.0, "sigma 10% low": 0.9, "sigma 10% high": 1.1, "5% impulses": 1.0}
    for case, factor in cases.items():
        for name in ("DWT, hard", "total variation", "median"):
            function, grid, _ = IMAGES[name]
            regrets = []
            for source in REPORTED:
                for k in range(draws):
                    rng = np.random.default_rng([k, 7])
                    x = picture(source, 128)
                    y = x + rng.normal(0.0, 20.0, x.shape)
                    if case == "5% impulses":
                        y = np.where(rng.random(x.shape) < 0.05, RANGE * rng.integers(0, 2, x.shape), y)
                    parameters = grid(20.0)
                    losses = np.array([np.sum((function(y, p) - x) ** 2) for p in parameters])
                    found = st.select_parameter(function, y, parameters, sigma=20.0 * factor)
                    regrets.append(losses[int(np.argmin(found.curve.risk))] / losses.min())
            print(f"  {case:15} {name:16} {np.mean(regrets):.3f} / {np.max(regrets):.2f}", flush=True)


def deepinv_choice(function, y, parameters, sigma, seed):
    """The choice by deepinv's own loss, on pictures in [0, 1]; every parameter gets the same probe."""
    import torch
    from deepinv.loss import SureGaussianLoss

    class Identity:
        def A(self, x):
            return x

    data, risks = torch.from_numpy(y / RANGE)[None, None], []
    for p in parameters:

        def model(z, physics=None, p=p):
            return torch.from_numpy(function(RANGE * z[0, 0].numpy(), p) / RANGE)[None, None]

        loss = SureGaussianLoss(sigma=sigma / RANGE, rng=torch.Generator().manual_seed(seed))
        risks.append(float(loss(y=data, x_net=model(data), physics=Identity(), model=model)))
    return int(np.argmin(risks))


def show_deepinv(draws):
    print("deepinv's own loss, pictures, P = 16384: regret, mean / worst, and that of the recipe")
    everything = []
    for name, (function, grid, _) in IMAGES.items():
        found = []
        for source, sigma, seed in itertools.product(REPORTED, (10.0, 25.0), range(draws)):
            x, parameters = picture(source, 128), grid(sigma)
            y = x + np.random.default_rng([seed, 16384, int(sigma)]).normal(0.0, sigma, x.shape)
            losses = np.array([np.sum((function(y, p) - x) ** 2) for p in parameters])
            chosen = (
                deepinv_choice(function, y, parameters, sigma, seed),
                one_sided(function, y, parameters, sigma, 0.01 * RANGE, seed),
            )
            found.append(losses[list(chosen)] / losses.min())
        everything += found
        print(f"  {name:16} " + ", ".join(f"{a.mean():.3f} / {a.max():.2f}" for a in np.transpose(found)), flush=True)
    print(f"  {'all':16} " + ", ".join(f"{a.mean():.3f} / {a.max():.2f}" for a in np.transpose(everything)))


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


CELLS = ["table", "estimator", "data", "size", "jumps", "method", "regret", "worst", "covered", "calls", "draws"]


def summary(rows):
    """Return per estimator, picture and method: mean and worst regret over the draws and noise levels, and coverage."""
    groups = {}
    for row in rows:
        row = dict(zip(HEADER, row, strict=True))
        groups.setdefault(tuple(row[key] for key in CELLS[:6]), []).append(row)
    out = []
    for key, some in groups.items():
        regrets, covered, calls = ([float(row[name]) for row in some] for name in ("regret", "covered", "calls"))
        means = f"{np.mean(regrets):.4f}", f"{max(regrets):.4f}", f"{np.mean(covered):.3f}", f"{np.mean(calls):.0f}"
        out.append([*key, *means, len(some)])
    return out


def report(rows):
    rows = [dict(zip(CELLS, map(str, row), strict=True)) for row in rows]
    for table, size in dict.fromkeys((row["table"], row["size"]) for row in rows):
        here = [row for row in rows if (row["table"], row["size"]) == (table, size)]
        methods = list(dict.fromkeys(row["method"] for row in here))
        print(f"\n{table}, P = {size}: regret, mean / worst; in brackets the share of draws within 2 standard errors")
        print(f"{'':18}" + "".join(f"{m:>24}" for m in methods))
        groups = {n: [r for r in here if r["estimator"] == n] for n in dict.fromkeys(r["estimator"] for r in here)}
        groups["all smooth"] = [r for r in here if r["jumps"] != "True"]
        groups["all that jump"] = [r for r in here if r["jumps"] == "True"]
        groups["all"] = here
        for name, group in groups.items():
            cells = [cell([r for r in group if r["method"] == method]) for method in methods]
            print(f"{name:18}" + "".join(f"{text:>24}" for text in cells))


def cell(rows):
    """Mean and worst regret, and coverage where there is one."""
    if not rows:
        return ""
    regret, covered = (np.array([float(r[key]) for r in rows]) for key in ("regret", "covered"))
    draws = [int(r["draws"]) for r in rows]
    text = f"{np.average(regret, weights=draws):.3f} / {max(float(r['worst']) for r in rows):.2f}"
    return text if np.isnan(covered[0]) else text + f" ({np.average(covered, weights=draws):4.0%})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=["images", "signals"])
    parser.add_argument("--draws", type=int, default=3, help="per picture and noise level")
    parser.add_argument("--bm3d", action="store_true", help="try bm3d's strength, too: minutes per picture")
    parser.add_argument("--develop", action="store_true", help="the pictures that step and probes were looked at on")
    parser.add_argument("--ours", action="store_true", help="keep the rows of rivals of the last run")
    parser.add_argument("--show", action="store_true", help="print the tables of the last run")
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_name("parameter.csv"))
    options = parser.parse_args()
    if options.show:
        with options.csv.open(newline="") as file:
            report(list(csv.reader(file))[1:])
        return
    if "blocks" in options.tables:
        show_blocks(7 * options.draws)
    if "limits" in options.tables:
        show_limits(options.draws)
    if "deepinv" in options.tables:
        show_deepinv(options.draws)
    todo = tasks(options)
    if not todo:
        return
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        rows = [row for some in tqdm(pool.map(draw, todo, chunksize=2), total=len(todo), leave=False) for row in some]
    cells = summary(rows)
    if options.ours:
        new = {tuple(map(str, row[:6])) for row in cells}
        with options.csv.open(newline="") as file:
            cells += [row for row in list(csv.reader(file))[1:] if tuple(row[:6]) not in new]
    with options.csv.open("w", newline="") as file:
        csv.writer(file).writerows([CELLS, *cells])
    report(cells)


if __name__ == "__main__":
    main()
