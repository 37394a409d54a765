"""How good is `restore` beside other packages, and its prediction beside the truth?

    python benchmarks/bench_restore.py                          # all tables that need no folder
    python benchmarks/bench_restore.py problems --develop       # the pictures that steps and levels were chosen on
    python benchmarks/bench_restore.py scenarios set12 --folder DIR
    python benchmarks/bench_restore.py --show                   # print the tables of the last run

DIR holds the twelve pictures 01.png, 02.png, ... of Set12; the first is cameraman, the second house.

Rivals get their best parameter in hindsight, by the true error: scikit-image's Wiener filter over 21 balances,
Richardson-Lucy over 200 iterations, total variation over weights (written here, run until it hardly changes), sparse
wavelets by pylops over weights. `unsupervised_wiener` and `bm3d_deblurring` have nothing to choose; bm3d is told the
noise level, as `restore` is. The weight of a Tikhonov filter is chosen by Stein's formula, by `select_parameter`, by
generalised cross-validation, the L-curve and the discrepancy principle, beside the best in hindsight. All see periodic
blurs, which is what they assume; Richardson-Lucy gets data that are continued periodically. The table "boundaries"
shows what happens otherwise.

Writes benchmarks/restore.csv: one row per table, problem, picture and method, with the PSNR in dB, predicted and true
mean squared error of A x where there is a prediction, and processor time.
"""

import argparse
import csv
import functools
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pywt
from skimage import data, restoration
from tqdm import tqdm

import scorethresh as st

RANGE = 255.0
TABLE = Path(__file__).with_name("restore.csv")
DEVELOPED = ["camera", "coins", "astronaut"]
REPORTED = ["clock", "coffee", "chelsea", "ascent"]
COLUMNS = ["table", "problem", "picture", "method", "psnr", "predicted", "true", "seconds"]


@functools.cache
def picture(name, side):
    """The middle of a picture, in grey levels."""
    if os.path.sep in name:
        image = data_file(name)
    else:
        image = np.asarray(getattr(pywt.data if name == "ascent" else data, name)(), dtype=float)
    image = image.mean(axis=-1) if image.ndim == 3 else image
    side = min(side, *image.shape)
    top, left = ((n - side) // 2 for n in image.shape)
    return image[top : top + side, left : left + side]


def data_file(path):
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("L"), dtype=float)


def psnr(x, clean):
    return 10 * np.log10(RANGE**2 / np.mean((x - clean) ** 2))


def radial_lines(side, count):
    """A mask of Fourier samples on lines through the origin."""
    mask = np.zeros((side, side), bool)
    along = np.linspace(-side / 2, side / 2 - 1, 4 * side)
    for angle in np.arange(count) * np.pi / count:
        mask[np.rint(along * np.sin(angle)).astype(int), np.rint(along * np.cos(angle)).astype(int)] = True
    return mask


def problem_of(name, clean, seed):
    """Return the operator, the data and the noise level."""
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    kind, _, level = name.rpartition(", noise ")
    sigma = float(level)
    if kind == "gaps, 80%":
        operator = st.Mask(rng.random(clean.shape) < 0.2)
    elif kind == "24 radial lines":
        operator = st.Fourier(radial_lines(len(clean), 24), real=True)
    elif kind == "sampling by 2":
        operator = st.Downsample(2)
    else:
        operator = st.Blur(PSFS[kind], "periodic")
    y = operator(clean)
    noise = rng.normal(0.0, sigma, (2, *y.shape))
    return operator, y + (noise[0] + 1j * noise[1] if np.iscomplexobj(y) else noise[0]), sigma


def inverse_square():
    t = np.arange(-7, 8)
    psf = 1 / (1 + t[:, None] ** 2 + t**2)
    return psf / psf.sum()


PSFS = {
    "Gaussian 1.5": st.gaussian_psf(1.5),
    "box 9": st.box_psf(9),
    "1 / (1 + i^2 + j^2)": inverse_square(),
    "binomial": np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]) / 256,
    "Gaussian 1.6": st.gaussian_psf(1.6),
    "Gaussian 0.4": st.gaussian_psf(0.4),
    "disk 4": st.disk_psf(4),
}
BLURS = [f"{psf}, noise {sigma}" for psf in ("Gaussian 1.5", "box 9") for sigma in (2, 10)]
PROBLEMS = [*BLURS, "gaps, 80%, noise 5", "24 radial lines, noise 5", "sampling by 2, noise 2"]
# Of Danielyan, Katkovnik, Egiazarian (2012), doi:10.1109/TIP.2011.2176954: six blurs and noise levels.
SCENARIOS = [
    f"1 / (1 + i^2 + j^2), noise {2**0.5:.6f}",
    f"1 / (1 + i^2 + j^2), noise {8**0.5:.6f}",
    f"box 9, noise {0.308**0.5:.6f}",
    "binomial, noise 7",
    "Gaussian 1.6, noise 2",
    "Gaussian 0.4, noise 8",
]


def gradient(x):
    return np.stack([np.roll(x, -1, k) - x for k in range(x.ndim)])


def minus_divergence(p):
    return sum(np.roll(p[k], 1, k) - p[k] for k in range(len(p)))


def total_variation(a, y, weight, x, p, steps=400, tolerance=2e-3):
    """Minimise ``||y - A x||^2 / 2 + weight TV(x)`` by the primal-dual method of Chambolle and Pock, from x and p."""
    length = 20.0 / weight
    p = np.clip(p, -weight, weight)
    for k in range(steps):
        last = x
        x = a.proximal(y, x - length * minus_divergence(p), 1 / length)
        p = p + gradient(2 * x - last) / (8 * length)
        p /= np.maximum(1.0, np.sqrt((p**2).sum(axis=0)) / weight)
        if k > 20 and np.sqrt(np.mean((x - last) ** 2)) < tolerance:
            break
    return x, p


def tv_sweep(a, y, sigma):
    """Yield estimates at falling weights, each started at the last one, and whether their residual is the noise."""
    x = a.first_guess(y)
    p = np.zeros((x.ndim, *x.shape))
    for weight in sigma * np.geomspace(3.0, 0.02, 12):
        x, p = total_variation(a, y, weight, x, p)
        parts = y.size * (1 + np.iscomplexobj(y))
        yield x, np.sum(np.abs(y - a.forward(x)) ** 2) < parts * sigma**2


def richardson_lucy(y, psf, clean):
    """The best of 200 iterations; data are continued periodically, and scaled to stay positive."""
    wide = np.pad(y, 16, mode="wrap") / RANGE
    best = -np.inf
    x = None
    for count in (1, 2, 3, 5, 8, 12, 18, 25, 35, 50, 75, 110, 150, 200):
        x = restoration.richardson_lucy(np.maximum(wide, 1e-3), psf, num_iter=count, clip=False)
        best = max(best, psnr(RANGE * x[16:-16, 16:-16], clean))
    return best


WEIGHTS = np.geomspace(1e-5, 1e2, 43)


class LinearChoice(NamedTuple):
    """What rules for the choice of a linear filter's weight are told of one weight."""

    x: np.ndarray
    residual: float
    passed: float
    roughness: float


def tikhonov_filters(a, y):
    """Yield Wiener filters of a periodic blur with a Laplacian as prior, which is scikit-image's, over 43 weights."""
    return [tikhonov_filter(a, y, weight) for weight in WEIGHTS]


def tikhonov_filter(a, y, weight):
    """``(|H|^2 + weight |L|^2)^-1 conj(H)``, L the Laplacian."""
    spectrum = np.fft.rfftn(y)
    squares = np.meshgrid(np.fft.fftfreq(y.shape[0]), np.fft.rfftfreq(y.shape[1]), indexing="ij")
    laplacian = sum(2 - 2 * np.cos(2 * np.pi * f) for f in squares)
    count = np.full(spectrum.shape, 2.0)
    count[:, 0] = count[:, -1] = 1.0
    inverse = 1 / (a.power + weight * laplacian**2)
    x = np.fft.irfftn(a.transfer.conj() * spectrum * inverse, y.shape)
    passed = float((count * a.power * inverse).sum())
    rough = float((count * laplacian**2 * np.abs(np.fft.rfftn(x)) ** 2).sum() / y.size)
    return LinearChoice(x, float(np.sum((y - a.forward(x)) ** 2)), passed, rough)


def corner(choices):
    """The L-curve's corner: the largest curvature of the logarithm of roughness against that of the residual."""
    u, v = (np.log([getattr(c, name) for c in choices]) for name in ("residual", "roughness"))
    u1, v1 = np.gradient(u), np.gradient(v)
    curvature = (u1 * np.gradient(v1) - v1 * np.gradient(u1)) / np.maximum(u1**2 + v1**2, 1e-12) ** 1.5
    return choices[1 + int(np.argmax(curvature[1:-1]))]


def linear_choices(a, y, sigma):
    """The filter that each rule takes. All but the L-curve and GCV are told the noise level."""
    choices, size = tikhonov_filters(a, y), y.size
    weight = st.select_parameter(lambda z, w: a.forward(tikhonov_filter(a, z, w).x), y, list(WEIGHTS), sigma=sigma)
    return {
        "Tikhonov, SURE": min(choices, key=lambda c: c.residual + 2 * sigma**2 * c.passed).x,
        "Tikhonov, select_parameter": tikhonov_filter(a, y, weight.parameter).x,
        "Tikhonov, GCV": min(choices, key=lambda c: c.residual / (1 - c.passed / size) ** 2).x,
        "Tikhonov, L-curve": corner(choices).x,
        "Tikhonov, discrepancy": next((c.x for c in choices if c.residual >= size * sigma**2), choices[-1].x),
    }, choices


def wiener_filters(y, psf):
    for balance in np.geomspace(1e-4, 1e2, 21):
        yield RANGE * restoration.wiener(y / RANGE, psf, balance, clip=False)


def sparse_wavelets(y, psf, sigma):
    """FISTA of pylops: soft thresholds of Daubechies wavelets, at several weights; data continued periodically."""
    import pylops

    y = np.pad(y, 16, mode="wrap")
    blur = pylops.signalprocessing.Convolve2D(y.shape, psf, offset=[n // 2 for n in psf.shape])
    wavelets = pylops.signalprocessing.DWT2D(y.shape, wavelet="db4", level=4)
    for weight in sigma * np.geomspace(0.03, 3.0, 7):
        found = pylops.optimization.sparsity.fista(blur @ wavelets.H, y.ravel(), niter=60, eps=weight, alpha=0.7)[0]
        yield (wavelets.H @ found).reshape(y.shape)[16:-16, 16:-16]


def bm3d_deblurring(y, psf, sigma):
    from bm3d import bm3d_deblurring as peer

    if not hasattr(np, "trapz"):  # bm3d calls it; NumPy 2.4 has renamed it
        np.trapz = np.trapezoid  # noqa: NPY201
    # One channel, said as such: bm3d 4.0.3 takes the rows of a matrix for channels here.
    return RANGE * np.asarray(peer(y[..., None] / RANGE, sigma / RANGE, psf)).reshape(y.shape)


def rows_of(task):
    """All methods on one problem: rows of the table."""
    table, problem, name, side, seed, predicted = task
    clean = picture(name, side)
    operator, y, sigma = problem_of(problem, clean, seed)
    a = operator.bind(y.shape, complex_data=np.iscomplexobj(y))
    known = a.gather(y)
    rows = []

    def add(method, value, seconds=np.nan, predicted=np.nan, true=np.nan):
        rows.append([table, problem, Path(name).stem, method, value, predicted, true, seconds])

    def timed(method, function):
        start = time.process_time()
        value = function()
        add(method, value, time.process_time() - start)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        add("start", psnr(a.visible(a.first_guess(known)), clean))
        start = time.process_time()
        found = st.Restorer(operator, sigma=sigma, predict=predicted).run(y)
        seconds = time.process_time() - start
        error = a.forward(a.embed(found.estimate - clean))
        loss = np.mean(np.abs(error) ** 2) / (1 + np.iscomplexobj(error))
        add("restore", psnr(found.estimate, clean), seconds, found.predicted_mse, loss)
        if table == "problems":
            timed("restore, sigma estimated", lambda: psnr(st.restore(y, operator), clean))
            timed("restore, iht", lambda: psnr(st.restore(y, operator, sigma=sigma, method="iht"), clean))
        start = time.process_time()
        sweep = [(psnr(a.visible(x), clean), fits) for x, fits in tv_sweep(a, known, sigma)]
        seconds = time.process_time() - start
        add("TV, best", max(value for value, _ in sweep), seconds)
        add("TV, discrepancy", next((value for value, fits in sweep if fits), sweep[-1][0]), seconds)
        if isinstance(operator, st.Blur):
            psf = operator.psf
            found, choices = linear_choices(a, y, sigma)
            add("Tikhonov, best", max(psnr(c.x, clean) for c in choices))
            for rule, x in found.items():
                add(rule, psnr(x, clean))
            timed("wiener, best", lambda: max(psnr(x, clean) for x in wiener_filters(y, psf)))
            timed(
                "unsupervised_wiener",
                lambda: psnr(RANGE * restoration.unsupervised_wiener(y / RANGE, psf, clip=False, rng=0)[0], clean),
            )
            timed("richardson_lucy, best", lambda: richardson_lucy(y, psf, clean))
            timed("bm3d_deblurring", lambda: psnr(bm3d_deblurring(y, psf, sigma), clean))
            if table == "problems":
                timed("pylops fista, best", lambda: max(psnr(x, clean) for x in sparse_wavelets(y, psf, sigma)))
    return rows


def tasks(options):
    out = []
    if "problems" in options.tables:
        names = DEVELOPED if options.develop else REPORTED
        out += [("problems", p, n, 128, 7 * options.develop, True) for n in names for p in PROBLEMS]
    if options.folder:
        paths = sorted(str(path.resolve()) for path in Path(options.folder).glob("*.png"))
        if "scenarios" in options.tables:
            out += [("scenarios", p, n, 256, 0, False) for n in paths[:2] for p in SCENARIOS]
        if "set12" in options.tables:
            blurs = ("Gaussian 1.6, noise 2", "disk 4, noise 5")
            out += [("set12", p, n, 128, 0, False) for n in paths for p in blurs]
    return out


def compute(options):
    rows = []
    with ProcessPoolExecutor(options.jobs) as pool:
        todo = tasks(options)
        for found in tqdm(pool.map(rows_of, todo), total=len(todo)):
            rows += found
    kept = []
    if TABLE.exists():
        kept = [row for row in csv.reader(TABLE.open()) if row and row[0] not in (*options.tables, "table")]
    if not options.develop:
        with TABLE.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(kept)
            writer.writerows([v if isinstance(v, str) else f"{v:.4g}" for v in row] for row in rows)
    return [[v if isinstance(v, str) else f"{v:.4g}" for v in row] for row in rows]


def show(rows):
    """Print, of every table, the mean PSNR over pictures: a row per method, a column per problem."""
    for table in dict.fromkeys(row[0] for row in rows):
        some = [row for row in rows if row[0] == table]
        problems = list(dict.fromkeys(row[1] for row in some))
        gain = table == "scenarios"
        groups = [[n] for n in dict.fromkeys(row[2] for row in some)] if gain else [[row[2] for row in some]]
        for group in groups:
            unit = f"gain in dB on {group[0]}" if gain else "PSNR in dB, mean over pictures"
            print(f"\n{table}: {unit}\n| method | " + " | ".join(problems) + " | mean |")
            print("|---" * (len(problems) + 2) + "|")
            starts = {}
            for method in dict.fromkeys(row[3] for row in some):
                cells = []
                for problem in problems:
                    values = [float(r[4]) for r in some if r[1] == problem and r[3] == method and r[2] in group]
                    cells.append(np.mean(values) if values else np.nan)
                    if method == "start":
                        starts[problem] = cells[-1]
                if gain:
                    cells = [c - starts[p] for c, p in zip(cells, problems, strict=True)]
                texts = ["" if np.isnan(c) else f"{c:.2f}" for c in cells]
                mean = "" if np.isnan(cells).any() else f"{np.mean(cells):.2f}"
                print(f"| {method} | " + " | ".join(texts) + f" | {mean} |")
    predictions = [row for row in rows if row[5] != "nan"]
    for problem in dict.fromkeys(row[1] for row in predictions):
        both = np.array([[float(row[5]), float(row[6])] for row in predictions if row[1] == problem])
        print(f"predicted / true error of A x, {problem}: {both[:, 0].sum() / both[:, 1].sum():.3f}")
    if predictions:
        both = np.array([[float(row[5]), float(row[6])] for row in predictions])
        print(f"mean of ratios over all: {np.mean(both[:, 0] / both[:, 1]):.3f}")
    for method in dict.fromkeys(row[3] for row in rows):
        seconds = [float(row[7]) for row in rows if row[3] == method and row[7] != "nan"]
        if seconds:
            print(f"processor seconds per picture, {method}: {np.mean(seconds):.1f}")


def show_boundaries():
    """Blurs that are not periodic: with the right boundary, and the wrong one."""
    print("\nboundaries: PSNR in dB on data whose border is not periodic")
    for name in REPORTED[:3]:
        for kind, sigma in (("Gaussian 1.5", 2.0), ("box 9", 2.0)):
            blur = st.Blur(PSFS[kind])
            clean = picture(name, 140)
            y = blur(clean)
            inside = clean[tuple(slice(n // 2, n // 2 + m) for n, m in zip(blur.psf.shape, y.shape, strict=True))]
            y = y + np.random.default_rng(0).normal(0.0, sigma, y.shape)
            right = psnr(st.restore(y, blur, sigma=sigma), inside)
            wrong = psnr(st.restore(y, st.Blur(PSFS[kind], "periodic"), sigma=sigma), inside)
            peer = psnr(bm3d_deblurring(y, PSFS[kind], sigma), inside)
            print(f"{name}, {kind}: unknown {right:.2f}, taken for periodic {wrong:.2f}, bm3d_deblurring {peer:.2f}")


def show_widths():
    """Errors of the widths that `select_psf` finds, with estimated noise levels."""
    families = {
        "Gaussian": (st.gaussian_psf, (0.7, 1.0, 1.5, 2.5), np.arange(0.3, 4.5, 0.1)),
        "disk": (st.disk_psf, (2.0, 4.0), np.arange(0.75, 7.0, 0.25)),
        "motion": (st.motion_psf, (5.0, 9.0, 15.0), np.arange(2.0, 21.0)),
    }
    print("\nwidths: relative error, mean / worst; those without a warning; plausible ranges that hold the truth")
    for name, (family, truths, grid) in families.items():
        for sigma in (1.0, 3.0, 10.0):
            errors, covered, trusted = [], [], []
            for source in REPORTED:
                for truth in truths:
                    y = st.Blur(family(truth))(picture(source, 160))
                    y = y + np.random.default_rng(0).normal(0.0, sigma, y.shape)
                    with warnings.catch_warnings(record=True) as told:
                        warnings.simplefilter("always")
                        found = st.select_psf(y, family, grid)
                    trusted.append(not told)
                    errors.append(abs(found.width / truth - 1))
                    low, high = found.plausible
                    covered.append(low - 1e-9 <= truth <= high + 1e-9)
            sure = np.array(errors)[trusted]
            print(
                f"{name}, noise {sigma:g}: {np.mean(errors):.1%} / {np.max(errors):.0%}; {sure.size} of {len(errors)}: "
                f"{np.mean(sure):.1%} / {np.max(sure):.0%}; {np.mean(covered):.0%}"
            )


def show_time():
    """Processor time of 256 x 256 deblurred in 8 steps over that of one call of `denoise`."""
    clean = picture("chelsea", 256)
    operator, y, sigma = problem_of("Gaussian 1.5, noise 2", clean, 0)
    jobs = {
        "denoise": lambda: st.denoise(y, sigma=sigma),
        "denoise, white noise": lambda: st.denoise(y, sigma=sigma, noise="white"),
        "periodic": lambda: st.restore(y, operator, sigma=sigma, steps=8),
        "unknown boundary": lambda: st.restore(y, st.Blur(operator.psf), sigma=sigma, steps=8),
    }
    seconds = {}
    for name, job in jobs.items():
        times = []
        for _ in range(2):
            start = time.process_time()
            job()
            times.append(time.process_time() - start)
        seconds[name] = min(times)
    print("\ntime: over one call of denoise: ", end="")
    print(", ".join(f"{name} {value / seconds['denoise']:.1f}" for name, value in seconds.items()))


def show_steps():
    """How much other numbers of steps, and other last levels, would have gained in hindsight."""
    print("\nsteps: PSNR in dB by number of steps, the default first")
    for name in REPORTED[:2]:
        for problem in PROBLEMS[1:]:
            clean = picture(name, 128)
            operator, y, sigma = problem_of(problem, clean, 0)
            counts = sorted({operator.default_steps, 5, 8, 12, 20}, key=lambda n: n != operator.default_steps)
            values = {n: psnr(st.restore(y, operator, sigma=sigma, steps=n), clean) for n in counts}
            print(f"{name}, {problem}: " + ", ".join(f"{n}: {value:.2f}" for n, value in values.items()), flush=True)


def show_predictions():
    """Predicted over true error of A x: a draw of its own for every picture, unlike in the table of problems."""
    print("\npredictions: predicted / true error of A x, sums over pictures; mean of (predicted - true) / stderr")
    for problem in (*BLURS, PROBLEMS[-1]):
        sums, scores = np.zeros(2), []
        for k, name in enumerate(REPORTED):
            clean = picture(name, 128)
            operator, y, sigma = problem_of(problem, clean, 100 + k)
            a = operator.bind(y.shape, complex_data=False)
            found = st.Restorer(operator, sigma=sigma).run(y)
            true = np.mean(a.forward(a.embed(found.estimate - clean)) ** 2)
            sums += found.predicted_mse, true
            scores.append((found.predicted_mse - true) / found.stderr)
        print(f"{problem}: {sums[0] / sums[1]:.2f}; {np.mean(scores):.2f}", flush=True)


EXTRAS = {
    "boundaries": show_boundaries,
    "widths": show_widths,
    "time": show_time,
    "steps": show_steps,
    "predictions": show_predictions,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = ["problems", "scenarios", "set12", *EXTRAS]
    parser.add_argument("tables", nargs="*", default=["problems", *EXTRAS], help=", ".join(known))
    parser.add_argument("--develop", action="store_true", help="the pictures that choices were made on")
    parser.add_argument("--folder", help="where the pictures of Set12 are")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--show", action="store_true", help="print the tables of the last run")
    options = parser.parse_args()
    wrong = set(options.tables) - set(known)
    if wrong:
        parser.error(f"unknown tables: {', '.join(sorted(wrong))}. There are {', '.join(known)}.")
    if {"scenarios", "set12"} & set(options.tables) and not (options.folder or options.show):
        parser.error("scenarios and set12 need --folder")
    if options.show:
        show([row for row in csv.reader(TABLE.open()) if row[0] != "table"])
        return
    if {"problems", "scenarios", "set12"} & set(options.tables):
        show(compute(options))
    for name, function in EXTRAS.items():
        if name in options.tables:
            function()


if __name__ == "__main__":
    main()
