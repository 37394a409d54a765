"""Risk curves of SCORE at 500 thresholds: time as ratios to peers, all measured in one run.

python benchmarks/bench_curve.py            # the whole table, some two minutes
python benchmarks/bench_curve.py --small    # without P = 1e7 and 1e8
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc

import finufft
import numpy as np
from KDEpy import FFTKDE
from tqdm import tqdm

import scorethresh as st

SIGMA = 1.0
THRESHOLDS = np.linspace(0.0, 6.0, 500)
LOOPED = THRESHOLDS[[100, 230, 350]]


def data(size, dtype=np.float64):
    """Noise, a tenth of it five times wider."""
    rng = np.random.default_rng(size)
    y = rng.standard_normal(size, dtype=dtype)
    y[::10] *= 5
    return y


def timed(function, repeats):
    """Return the shortest of some runs, and the result."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def ours(y):
    return st.risk_curve(y, THRESHOLDS, sigma=SIGMA, method=st.Score("paper")).risk


def loop(y, thresholds):
    """The paper's algorithm as one would write it in NumPy."""
    h = 6 * SIGMA / y.size ** (1 / 3)
    risk = []
    for t in thresholds:
        x = np.where(np.abs(y) >= t, y, 0.0)
        kernel = np.exp(-((y + t) ** 2) / (2 * h**2)).sum() + np.exp(-((y - t) ** 2) / (2 * h**2)).sum()
        dof = (np.abs(y) > t).sum() + t * np.sqrt(SIGMA**2 + h**2) / (np.sqrt(2 * np.pi) * SIGMA * h) * kernel
        risk.append(((y - x) ** 2).sum() - y.size * SIGMA**2 + 2 * SIGMA**2 * dof)
    return np.array(risk)


def fft_kernels(y):
    """The kernel sums alone, by KDEpy: linear binning on a grid of h/8 and one FFT."""
    h = 6 * SIGMA / y.size ** (1 / 3)
    edge = np.abs(y).max() + 8 * h
    grid = np.linspace(-edge, edge, int(16 * edge / h) + 1)
    density = FFTKDE(kernel="gaussian", bw=h).fit(y).evaluate(grid)
    at = np.interp(THRESHOLDS, grid, density) + np.interp(-THRESHOLDS, grid, density)
    return at * y.size * np.sqrt(2 * np.pi) * h


def nufft_kernels(y):
    """The kernel sums alone, by finufft: Fourier series of the data, times the kernel's, at the thresholds."""
    h = 6 * SIGMA / y.size ** (1 / 3)
    period = 2 * (np.abs(y).max() + 9 * h)
    modes = 2 * int(8.3 / h * period / (2 * np.pi)) + 1
    k = np.arange(modes) - modes // 2
    series = finufft.nufft1d1(y * (2 * np.pi / period), np.ones(y.size, complex), modes, eps=1e-12, isign=-1)
    series *= np.exp(-0.5 * (2 * np.pi / period * k * h) ** 2)
    at = np.concatenate([THRESHOLDS, -THRESHOLDS]) * (2 * np.pi / period)
    both = finufft.nufft1d2(at, series, eps=1e-12, isign=1).real.reshape(2, -1).sum(axis=0)
    return both * np.sqrt(2 * np.pi) * h / period


def kernels_of(y, risk):
    """The kernel sums inside our risk."""
    h = 6 * SIGMA / y.size ** (1 / 3)
    a = np.sort(np.abs(y))
    below = np.searchsorted(a, THRESHOLDS, side="right")
    energy = np.append(0.0, np.cumsum(a * a))[below]
    jump = (risk - energy + y.size - 2 * (y.size - below)) / 2
    share = THRESHOLDS * np.sqrt(SIGMA**2 + h**2) / (np.sqrt(2 * np.pi) * SIGMA * h)
    return jump[1:] / share[1:]


def compare(size, bar):
    y = data(size)
    ours(y)
    peers = {
        "ours": lambda: ours(y),
        "sort": lambda: np.sort(np.abs(y)),
        "dot": lambda: np.dot(y, y),
        "loop": lambda: loop(y, LOOPED),
        "FFTKDE": lambda: fft_kernels(y),
        "finufft": lambda: nufft_kernels(y),
    }
    times, results = {}, {}
    for name, run in peers.items():
        times[name], results[name] = timed(run, 1 if name in ("loop", "finufft") and size > 10**6 else 5)
        bar.update()
    times["loop"] *= THRESHOLDS.size / LOOPED.size
    kernels = kernels_of(y, results["ours"])
    errors = {
        "loop": np.abs(results["ours"][[100, 230, 350]] / results["loop"] - 1).max(),
        "FFTKDE": np.abs(results["FFTKDE"][1:] / kernels - 1).max(),
        "finufft": np.abs(results["finufft"][1:] / kernels - 1).max(),
    }
    assert errors["loop"] < 1e-11, errors
    assert errors["finufft"] < 1e-6, errors
    return times, errors


def peak_memory(size):
    y = data(size, np.float32)
    tracemalloc.start()
    ours(y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def first_call():
    """Seconds from after `import numpy` to the first result, in a new process with warm caches."""
    code = (
        "import time, numpy as np; y = np.random.default_rng(0).normal(size=100_000); start = time.perf_counter();"
        "import scorethresh as st; imported = time.perf_counter(); st.select_threshold(y, sigma=1.0, method='score');"
        "print(imported - start, time.perf_counter() - start)"
    )
    with tempfile.TemporaryDirectory() as cache:
        # Installed packages come with their bytecode. A checkout may have none, or may be told not to write any.
        there = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        there["PYTHONPYCACHEPREFIX"] = cache
        command = [sys.executable, "-c", code]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=there) for _ in range(6)]
    return [statistics.median(v) for v in zip(*(map(float, r.stdout.split()) for r in runs[1:]), strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="leave out P = 1e7 and 1e8")
    small = parser.parse_args().small
    sizes = [200_000, 1_000_000] + ([] if small else [10_000_000])
    scaling = [10**5, 10**6] + ([] if small else [10**7, 10**8])
    with tqdm(total=6 * len(sizes) + 2 * len(scaling) + 2, leave=False) as bar:
        rows = [(size, *compare(size, bar)) for size in sizes]
        seconds, memory = [], []
        for size in scaling:
            y = data(size, np.float32)
            seconds.append(timed(lambda y=y: ours(y), 5)[0])
            bar.update()
            memory.append(peak_memory(size))
            bar.update()
        y = data(1024)
        st.select_threshold(y, sigma=SIGMA, method="score")
        band = timed(lambda: st.select_threshold(y, sigma=SIGMA, method="score"), 500)[0]
        bar.update()
        imported, called = first_call()
        bar.update()

    print(f"SCORE at {THRESHOLDS.size} thresholds, time over that of ... (below 1: ours is faster)")
    print(f"{'P':>9}  {'sort':>8}  {'dot':>8}  {'loop':>10}  {'FFTKDE':>8}  {'finufft':>8}   ours")
    for size, times, _ in rows:
        ratio = {name: times["ours"] / t for name, t in times.items()}
        print(
            f"{size:9.0e}  {ratio['sort']:8.2f}  {ratio['dot']:8.1f}  1/{1 / ratio['loop']:<8.0f}  "
            f"{ratio['FFTKDE']:8.2f}  {ratio['finufft']:8.2f}   {times['ours'] * 1e3:.1f} ms"
        )
    print("FFTKDE and finufft do the kernel sums only, without counts, energies and standard errors.")
    for size, _, errors in rows:
        print(f"{size:9.0e}  largest relative difference:", ", ".join(f"{k} {v:.1e}" for k, v in errors.items()))
    exponent = np.polyfit(np.log(scaling), np.log(seconds), 1)[0]
    print("\nfloat32:", ", ".join(f"P = {p:.0e} {s * 1e3:.1f} ms" for p, s in zip(scaling, seconds, strict=True)))
    steps = [f"{np.log10(b / a):.2f}" for a, b in itertools.pairwise(seconds)]
    print(f"time grows as P^{exponent:.2f} over all; per decade: {', '.join(steps)}")
    print("peak memory beyond the input:", ", ".join(f"{m:.1f} MB" for m in memory))
    print(f"select_threshold, P = 1024, method 'score', warm: {band * 1e3:.2f} ms")
    print(f"new process, after NumPy: import {imported:.2f} s, import and first call {called:.2f} s")
    assert max(memory) < 64


if __name__ == "__main__":
    main()
