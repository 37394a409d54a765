"""How good are chosen ranks and shrunk singular values? Loss over that of the best rank in hindsight.

    python benchmarks/bench_rank.py              # the tables of docs/lowrank.md, some five minutes
    python benchmarks/bench_rank.py --draws 3
    python benchmarks/bench_rank.py --develop    # the shapes that constants were chosen on, not reported
    python benchmarks/bench_rank.py --correlated # noise of unknown covariance, beside ScreeNOT

Writes benchmarks/rank.csv with every cell. Peers: optht (Gavish and Donoho), screenot, and MP-PCA by its formula.
"""

import argparse
import csv
import os
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# One process per core: threads inside of each would only get in the way.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import optht
from screenot.ScreeNOT import adaptiveHardThresholding
from tqdm import tqdm

import scorethresh as st

SHAPES = [(50, 50), (90, 35), (35, 90), (120, 110), (400, 64), (25, 900), (250, 180)]
DEVELOP = [(60, 40), (100, 100), (300, 50), (30, 600)]


def cells(shapes):
    """Yield shape, name, whether the rank is low, and singular values, in units of the limit of detection."""
    for m, n in shapes:
        p, limit = min(m, n), (m * n) ** 0.25
        for k in sorted({1, 3, max(2, p // 12), p // 6}):
            for strength in (1.05, 1.3, 1.8, 3.0, 8.0):
                yield (m, n), f"rank {k}, from {strength}", True, limit * strength * np.linspace(2.0, 1.0, k)
        i = np.arange(1, p + 1)
        for strength in (4, 15):
            yield (m, n), f"1/i, {strength}", False, limit * strength / i
            yield (m, n), f"1/sqrt(i), {strength / 4}", False, limit * strength / 4 / np.sqrt(i)
            yield (m, n), f"exponential, {strength}", False, limit * strength * np.exp(-i / (p / 12))
        yield (m, n), "nothing", True, np.zeros(1)


def draw(rng, shape, singular_values, complex_entries):
    """Return a signal of given singular values, and the same with noise of level 1 in every part."""

    def normal(*size):
        a = rng.normal(size=size)
        return a + 1j * rng.normal(size=size) if complex_entries else a

    k = singular_values.size
    u, v = (np.linalg.qr(normal(size, k))[0] for size in shape)
    d = singular_values * (np.sqrt(2) if complex_entries else 1)
    signal = (u * d) @ v.conj().T
    return signal, signal + normal(*shape)


def gavish_donoho(shape, s, sigma):
    """The threshold for a known level, with the larger side, where optht takes the smaller one."""
    beta, n = min(shape) / max(shape), max(shape)
    w = 8 * beta / (beta + 1 + np.sqrt(beta**2 + 14 * beta + 1))
    return int(np.sum(s > np.sqrt(2 * (beta + 1) + w) * np.sqrt(n) * sigma))


def mp_pca(shape, s):
    """The rank of Veraart et al. (2016): the first rest whose spread is that of noise of its mean."""
    n, m = max(shape), min(shape)
    eigenvalues = s**2 / n
    for k in range(m):
        rest = eigenvalues[k:]
        if rest[0] - rest[-1] <= 4 * np.sqrt((m - k) / n) * rest.mean():
            return k
    return m


def optht_rank(shape, s, sigma=None):
    """optht raises if nothing is kept."""
    try:
        return int(optht.optht(min(shape) / max(shape), sv=s, sigma=sigma))
    except ValueError:
        return 0


def one_cell(job):
    index, (shape, name, low, singular_values), draws, complex_entries = job
    losses, z, sigma = defaultdict(list), defaultdict(list), []
    for number in range(draws):
        rng = np.random.default_rng([2026, index, number, complex_entries])
        signal, y = draw(rng, shape, singular_values, complex_entries)
        u, s, vh = np.linalg.svd(y, full_matrices=False)
        unit = np.sqrt(2.0) if complex_entries else 1.0
        overlap = np.einsum("im,mn,ni->i", u.conj().T, signal, vh.conj().T).real
        by_rank = np.linalg.norm(signal) ** 2 + np.append(0.0, np.cumsum(s**2 - 2 * s * overlap))
        losses["best rank"].append(by_rank.min())
        for known in (True, False):
            for rule in ("hard", "shrink", "soft"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = st.select_rank(y, sigma=1.0 if known else None, rule=rule)
                loss = np.linalg.norm(found.estimate - signal) ** 2
                key = f"{rule}{'' if known else ', level unknown'}"
                losses[key].append(loss)
                z[key].append((found.risk - loss) / found.stderr)
        sigma.append(found.sigma)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = st.select_rank(y, noise="correlated")
            part = st.select_rank(y, sigma=1.0, max_rank=max(2, min(shape) // 3))
        losses["hard, noise unknown"].append(by_rank[found.rank])
        losses["hard, third of the values"].append(by_rank[part.rank])
        losses["Gavish-Donoho, known"].append(by_rank[gavish_donoho(shape, s, unit)])
        losses["optht, known"].append(by_rank[optht_rank(shape, s, unit)])
        losses["optht, unknown"].append(by_rank[optht_rank(shape, s)])
        losses["ScreeNOT, bound p/4"].append(by_rank[adaptiveHardThresholding(y, max(1, min(shape) // 4))[2]])
        losses["MP-PCA"].append(by_rank[mp_pca(shape, s)])
    return shape, name, low, {key: np.mean(v) for key, v in losses.items()}, dict(z), np.mean(sigma)


def table(rows, title):
    print(f"\n{title}\n\n| | all, mean | worst | low rank, mean | worst |\n|---|---|---|---|---|")
    signals = [row for row in rows if row[1] != "nothing"]
    for key in signals[0][3]:
        ratios = np.array([row[3][key] / row[3]["best rank"] for row in signals])
        low = np.array([row[3][key] / row[3]["best rank"] for row in signals if row[2]])
        worst = signals[int(np.argmax(ratios))]
        where = f"{worst[0][0]} x {worst[0][1]}, {worst[1]}"
        print(f"| {key} | {ratios.mean():.3f} | {ratios.max():.2f} ({where}) | {low.mean():.3f} | {low.max():.2f} |")
    print("\nrisk: (predicted - loss) / stderr\n\n| | mean | spread | within 2 |\n|---|---|---|---|")
    for key in rows[0][4]:
        z = np.concatenate([row[4][key] for row in rows if row[2] or "unknown" not in key])
        print(f"| {key} | {z.mean():+.2f} | {z.std():.2f} | {np.mean(np.abs(z) <= 2):.1%} |")
    off = np.array([abs(row[5] - 1) for row in rows if row[2]])
    print(f"\nlevel off by {off.mean():.1%} in the mean over cells of low rank, by {off.max():.1%} at most")
    noise = [row for row in rows if row[1] == "nothing"]
    for key in ("hard", "shrink", "MP-PCA", "optht, unknown", "ScreeNOT, bound p/4"):
        share = np.mean([row[3][key] / (row[0][0] + row[0][1]) for row in noise])
        print(f"pure noise, {key}: loss {share:.3f} of sigma^2 (m + n)")


def correlated_cell(job):
    """Excess loss over the best rank, in units of 2% of the noise energy plus the best loss."""
    index, shape, rho, _, strengths, draws = job
    roots = [np.linalg.cholesky(rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))) for n in shape]
    # The largest singular value of such noise, roughly.
    limit = np.prod([np.linalg.norm(r, 2) for r in roots]) ** 0.75 * np.prod(shape) ** 0.25
    excess = defaultdict(list)
    for number in range(draws):
        rng = np.random.default_rng([7, index, number])
        signal = draw(rng, shape, np.asarray(strengths) * limit, False)[0] if strengths else np.zeros(shape)
        noise = roots[0] @ rng.normal(size=shape) @ roots[1].T
        u, s, vh = np.linalg.svd(signal + noise, full_matrices=False)
        overlap = np.einsum("im,mn,ni->i", u.T, signal, vh.T)
        by_rank = np.linalg.norm(signal) ** 2 + np.append(0.0, np.cumsum(s**2 - 2 * s * overlap))
        unit = 0.02 * np.linalg.norm(noise) ** 2 + by_rank.min()
        for rule in ("hard", "shrink"):
            found = st.select_rank(signal + noise, noise="correlated", rule=rule)
            excess[rule].append((np.linalg.norm(found.estimate - signal) ** 2 - by_rank.min()) / unit)
        for bound in ("5", "p/4", "twice the rank"):
            k = {"5": 5, "p/4": min(shape) // 4, "twice the rank": max(1, 2 * len(strengths))}[bound]
            rank = adaptiveHardThresholding(signal + noise, k)[2]
            excess[f"ScreeNOT, bound {bound}"].append((by_rank[rank] - by_rank.min()) / unit)
    return {key: np.mean(v) for key, v in excess.items()}


def correlated(draws, processes):
    signals = {
        "nothing": [],
        "rank 2": [3.0, 1.5],
        "rank 6": [4, 3.2, 2.6, 2, 1.6, 1.3],
        "rank 12": [*np.linspace(5, 1.5, 12)],
    }
    jobs = [
        (i, shape, rho, name, strengths, draws)
        for i, (shape, rho, (name, strengths)) in enumerate(
            (shape, rho, signal)
            for shape in [(80, 60), (200, 90), (150, 150)]
            for rho in (0.3, 0.6, 0.75)
            for signal in signals.items()
        )
    ]
    with ProcessPoolExecutor(processes) as pool:
        rows = list(tqdm(pool.map(correlated_cell, jobs), total=len(jobs)))
    print("| excess loss | " + " | ".join(f"{rho}" for rho in (0.3, 0.6, 0.75)) + " | worst |\n|---|---|---|---|---|")
    for key in rows[0]:
        by_rho = [
            np.mean([r[key] for r, job in zip(rows, jobs, strict=True) if job[2] == rho]) for rho in (0.3, 0.6, 0.75)
        ]
        print(f"| {key} | {' | '.join(f'{v:.2f}' for v in by_rho)} | {max(r[key] for r in rows):.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--develop", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--correlated", action="store_true")
    options = parser.parse_args()
    if options.correlated:
        correlated(options.draws, options.processes)
        return
    chosen = list(cells(DEVELOP if options.develop else SHAPES))
    every = []
    with ProcessPoolExecutor(options.processes) as pool:
        for complex_entries in (False, True):
            jobs = [(i, cell, options.draws, complex_entries) for i, cell in enumerate(chosen)]
            rows = list(tqdm(pool.map(one_cell, jobs), total=len(jobs)))
            kind = "complex" if complex_entries else "real"
            table(rows, f"{kind}: {len(rows)} cells, {options.draws} draws each")
            every += [(kind, *row) for row in rows]
    if not options.develop:
        with open(Path(__file__).with_name("rank.csv"), "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["kind", "rows", "columns", "signal", "sigma", *every[0][4]])
            for kind, shape, name, _, losses, _, sigma in every:
                writer.writerow([kind, *shape, name, f"{sigma:.4f}", *(f"{v:.5g}" for v in losses.values())])


if __name__ == "__main__":
    main()
