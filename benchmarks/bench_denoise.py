"""The denoiser beside its peers: images, signals, speed, memory, blind noise levels, borders.

    python benchmarks/bench_denoise.py images --save benchmarks/denoise.csv
    python benchmarks/bench_denoise.py images --folder pictures/ --sigmas 15 25 50 --methods blend fast bm3d
    python benchmarks/bench_denoise.py colours volumes
    python benchmarks/bench_denoise.py show benchmarks/denoise.csv
    python benchmarks/bench_denoise.py signals predicted chance speed large blind spectra clipped border

Constants of the denoiser, and the peers' parameters that have no default, were chosen on camera, coins and brick; the
table is about other images of scikit-image. Peers that are not installed are left out with a message.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import itertools
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pywt
from tqdm import tqdm

import scorethresh as st

REPORT = ["astronaut", "cat", "clock", "coffee", "grass", "gravel", "immunohistochemistry", "moon", "page", "rocket"]
SIGMAS = [5, 10, 25, 50, 75]
FIELDS = ["image", "sigma", "method", "psnr", "ssim", "predicted", "seconds"]


# Mean PSNR as printed in the papers (NL-Ridge, arXiv:2203.00570; LIChI, arXiv:2212.00422), for noise of their own draw.
PUBLISHED = {
    "set12": {
        "sigma": [5, 15, 25, 35, 50],
        "BM3D": [38.02, 32.37, 29.97, 28.40, 26.72],
        "NL-Ridge": [38.19, 32.46, 30.00, 28.41, 26.73],
        "WNNM": [38.36, 32.70, 30.26, 28.69, 27.05],
        "LIChI": [38.36, 32.71, 30.24, 28.61, 26.81],
        "DnCNN (learned)": [np.nan, 32.86, 30.44, 28.82, 27.18],
    },
    "bsd68": {
        "sigma": [5, 15, 25, 35, 50],
        "BM3D": [37.55, 31.07, 28.57, 27.08, 25.62],
        "LIChI": [37.80, 31.41, 28.86, 27.31, 25.72],
    },
}


def load(name: str) -> np.ndarray:
    """Return a picture of scikit-image, or a file, in grey."""
    from skimage import color, data, io

    if Path(name).suffix:
        image = io.imread(name)
        return color.rgb2gray(image[..., :3]) * 255.0 if image.ndim == 3 else image.astype(float)
    image = getattr(data, name)()
    return color.rgb2gray(image) * 255.0 if image.ndim == 3 else image.astype(float)


def noisy(name: str, clean: np.ndarray, sigma: float) -> np.ndarray:
    """Add noise that is another one for every image and level: what holds for one draw need not hold for the next."""
    seed = zlib.crc32(Path(name).name.encode())
    return clean + np.random.default_rng([seed, int(sigma)]).normal(0.0, sigma, clean.shape)


def psnr(estimate: np.ndarray, clean: np.ndarray) -> float:
    return 10 * np.log10(255**2 / np.mean((estimate - clean) ** 2))


def ours(choose: str) -> Callable:
    def run(y, sigma):
        found = st.Denoiser(sigma=sigma, choose=choose).run(y)
        return found.estimate, found.predicted_psnr(255)

    return run


def wavelet(method: str, cycles: int = 0) -> Callable:
    def run(y, sigma):
        from skimage.restoration import cycle_spin, denoise_wavelet

        options = {"sigma": sigma, "method": method, "wavelet": "db4", "mode": "soft"}
        if cycles:
            return cycle_spin(y, denoise_wavelet, cycles, func_kw=options, num_workers=1), np.nan
        return denoise_wavelet(y, **options), np.nan

    return run


def calibrated(y, sigma):
    from skimage.restoration import calibrate_denoiser, denoise_wavelet

    grid = {"sigma": sigma * np.array([0.5, 0.7, 1.0, 1.4, 2.0]), "wavelet": ["db4"], "method": ["VisuShrink"]}
    return calibrate_denoiser(y, denoise_wavelet, denoise_parameters=grid)(y), np.nan


def tv(y, sigma):
    from skimage.restoration import denoise_tv_chambolle

    return denoise_tv_chambolle(y, weight=TV_WEIGHT * sigma), np.nan


def nl_means(y, sigma):
    from skimage.restoration import denoise_nl_means

    return denoise_nl_means(y, patch_size=5, patch_distance=6, h=0.6 * sigma, sigma=sigma, fast_mode=True), np.nan


def block_matching(y, sigma):
    import bm3d

    return bm3d.bm3d(y, sigma), np.nan


def deep(name: str, over_sigma: float, **options) -> Callable:
    """A wavelet denoiser of deepinv; the threshold over the noise level is the best on camera, coins and brick."""

    def run(y, sigma):
        import deepinv
        import torch

        denoiser = getattr(deepinv.models, name)(level=4, mode="symmetric", **options)
        tensor = torch.from_numpy(y / 255).float()[None, None]
        return 255 * denoiser(tensor, over_sigma * sigma / 255)[0, 0].numpy(), np.nan

    return run


# The weight over the noise level that was best on camera, coins and brick, out of 0.4, 0.5, ... 1.2.
TV_WEIGHT = 0.8

METHODS: dict[str, tuple[str, Callable]] = {
    "blend": ("scorethresh", ours("blend")),
    "fast": ("scorethresh", ours("fast")),
    "bands": ("scorethresh", ours("bands")),
    "BayesShrink": ("skimage", wavelet("BayesShrink")),
    "VisuShrink": ("skimage", wavelet("VisuShrink")),
    "BayesShrink, cycle_spin": ("skimage", wavelet("BayesShrink", 3)),
    "VisuShrink, cycle_spin": ("skimage", wavelet("VisuShrink", 3)),
    "calibrate_denoiser": ("skimage", calibrated),
    "TV": ("skimage", tv),
    "NL-means": ("skimage", nl_means),
    "deepinv, one wavelet": ("deepinv", deep("WaveletDenoiser", 1.6, wv="db4")),
    "deepinv, three wavelets": ("deepinv", deep("WaveletDictDenoiser", 1.35, list_wv=["db1", "db4", "db8"])),
    "bm3d": ("bm3d", block_matching),
}


def available(names: list[str]) -> list[str]:
    out = []
    for name in names:
        if importlib.util.find_spec(METHODS[name][0]):
            out.append(name)
        else:
            print(f"{name} is left out: {METHODS[name][0]} is not installed", file=sys.stderr)
    return out


def images(arguments: argparse.Namespace) -> None:
    from skimage.metrics import structural_similarity

    methods = available(arguments.methods)
    pictures = arguments.images
    if arguments.folder:
        pictures = sorted(
            str(p) for p in arguments.folder.iterdir() if p.suffix.lower() in (".png", ".jpg", ".tif", ".bmp")
        )
    jobs = [(i, s, m) for i in pictures for s in arguments.sigmas for m in methods]
    rows = []
    for name, sigma, method in tqdm(jobs, desc="images"):
        clean = load(name)
        y = noisy(name, clean, sigma)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            estimate, predicted = METHODS[method][1](y, sigma)
            seconds = time.perf_counter() - start
        similarity = structural_similarity(clean, estimate, data_range=255)
        rows.append([name, sigma, method, psnr(estimate, clean), similarity, predicted, seconds])
        if arguments.save:
            save(arguments.save, rows)
    found = [dict(zip(FIELDS, row, strict=True)) for row in rows]
    table(found)
    beside_bm3d(found)
    if arguments.published:
        print("\nas printed elsewhere")
        for name, values in PUBLISHED[arguments.published].items():
            print(f"{name:26}" + "".join(f"{v:10.2f}" if name != "sigma" else f"{v:10}" for v in values))


def beside_bm3d(rows: list[dict]) -> None:
    """Print how far each of our choices is above bm3d, and the picture where it is least."""
    peer = {(r["image"], r["sigma"]): r["psnr"] for r in rows if r["method"] == "bm3d"}
    for method in ("blend", "fast"):
        gains = {
            (r["image"], r["sigma"]): r["psnr"] - peer[r["image"], r["sigma"]]
            for r in rows
            if r["method"] == method and (r["image"], r["sigma"]) in peer
        }
        if not gains:
            continue
        each = {name: np.mean([g for (n, _), g in gains.items() if n == name]) for name, _ in gains}
        (name, sigma), least = min(gains.items(), key=lambda item: item[1])
        low = min(each, key=each.__getitem__)
        print(
            f"{method} over bm3d: {np.mean(list(gains.values())):+.2f} dB in the mean; least {least:+.2f} "
            f"({Path(name).name} at {sigma}), over all levels of a picture {each[low]:+.2f} ({Path(low).name})"
        )


def colours(arguments: argparse.Namespace) -> None:
    """Print the PSNR of colour pictures: together, channel by channel, and bm3d_rgb."""
    import bm3d
    from skimage import data

    print("\nPSNR in dB, colour, crops of 256 x 256, level known")
    print(f"{'':22}{'sigma':>7}{'together':>10}{'by channel':>12}{'bm3d_rgb':>10}{'predicted':>11}")
    rows = []
    for name in ("astronaut", "cat", "coffee", "immunohistochemistry", "rocket"):
        picture = getattr(data, name)()
        top, left = ((n - 256) // 2 for n in picture.shape[:2])
        clean = picture[top : top + 256, left : left + 256, :3].astype(float)
        for sigma in (10, 25, 50):
            y = noisy(name, clean, sigma)
            found = st.Denoiser(sigma=sigma, channel_axis=-1).run(y)
            alone = np.stack([st.denoise(y[..., k], sigma=sigma) for k in range(3)], axis=-1)
            estimates = found.estimate, alone, bm3d.bm3d_rgb(y, sigma)
            rows.append([*(psnr(x, clean) for x in estimates), found.predicted_psnr(255)])
            print(f"{name:22}{sigma:7}{rows[-1][0]:10.2f}{rows[-1][1]:12.2f}{rows[-1][2]:10.2f}{rows[-1][3]:11.2f}")
    means = np.mean(rows, axis=0)
    print(f"{'mean':29}{means[0]:10.2f}{means[1]:12.2f}{means[2]:10.2f}")


def phantom(seed: int, side: int = 64) -> np.ndarray:
    """A volume of ellipsoids, one of which is striped."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, side)] * 3, indexing="ij"))
    out = np.full((side,) * 3, 100.0)
    for k in range(25):
        centre, radius = rng.uniform(-0.6, 0.6, (3, 1, 1, 1)), rng.uniform(0.1, 0.5, (3, 1, 1, 1))
        stripes = 1 + 0.5 * np.sin(25 * (grid[0] + 0.4 * grid[1])) if k == 0 else 1.0
        out += rng.uniform(-60, 80) * stripes * ((((grid - centre) / radius) ** 2).sum(axis=0) < 1)
    return out


def volumes(arguments: argparse.Namespace) -> None:
    """Print the PSNR of volumes, beside bm4d if it is installed."""
    coffee = load("coffee")
    volumes = {
        "phantom": phantom(11),
        "pan over coffee": np.stack([coffee[80:176, 100 + k : 196 + k] for k in range(32)]),
    }
    print(f"\nPSNR in dB, volumes, level known\n{'':28}{'sigma':>6}{'blend':>8}{'fast':>8}{'bm4d':>8}   seconds")
    for name, clean in volumes.items():
        for sigma in (10, 30):
            y, results, seconds = noisy(name, clean, sigma), [], []
            for method in ("blend", "fast", "bm4d"):
                start = time.perf_counter()
                if method != "bm4d":
                    estimate = st.denoise(y, sigma=sigma, choose=method)
                elif importlib.util.find_spec("bm4d"):
                    import bm4d

                    estimate = bm4d.bm4d(y, sigma)
                else:
                    estimate = np.full_like(y, np.nan)
                seconds.append(time.perf_counter() - start)
                results.append(psnr(estimate, clean))
            print(f"{name:28}{sigma:6}" + "".join(f"{v:8.2f}" for v in results), " ", *(f"{t:.1f}" for t in seconds))


def save(path: Path, rows: list[list]) -> None:
    """Keep the rows of other cells; replace those measured now."""
    new = {tuple(map(str, row[:3])) for row in rows}
    old = [list(r.values()) for r in read(path) if tuple(map(str, list(r.values())[:3])) not in new]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows([[*r[:3], *(f"{float(v):.4g}" for v in r[3:])] for r in old + rows])


def read(path: Path) -> list[dict]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        {k: v if k in ("image", "method") else float(v) for k, v in r.items()} | {"sigma": int(r["sigma"])}
        for r in rows
    ]


def table(rows: list[dict]) -> None:
    """Print the mean PSNR over images per noise level, and means over all cells."""
    methods = [m for m in METHODS if any(r["method"] == m for r in rows)]
    sigmas = sorted({r["sigma"] for r in rows})
    print(f"\nmean PSNR in dB over {len({r['image'] for r in rows})} images; SSIM and seconds: means over all cells")
    print(
        f"{'':26}"
        + "".join(f"{f'sigma {s}':>10}" for s in sigmas)
        + f"{'mean':>8}{'SSIM':>7}{'seconds':>9}{'|pred-true|':>13}"
    )
    for method in methods:
        mine = [r for r in rows if r["method"] == method]
        cells = "".join(f"{np.mean([r['psnr'] for r in mine if r['sigma'] == s]):10.2f}" for s in sigmas)
        mean, similarity, seconds = (np.mean([r[f] for r in mine]) for f in ("psnr", "ssim", "seconds"))
        error = np.mean([abs(r["predicted"] - r["psnr"]) for r in mine])
        shown = f"{error:13.2f}" if np.isfinite(error) else ""
        print(f"{method:26}{cells}{mean:8.2f}{similarity:7.3f}{seconds:9.2f}{shown}")


SIGNALS = [
    "Blocks", "Bumps", "HeaviSine", "Doppler", "HiSine", "TwoChirp", "MishMash", "WernerSorrows", "LinChirps", "Chirps",
]  # fmt: skip
DEVELOPED_SIGNALS = ["Ramp", "LoSine", "LinChirp", "QuadChirp", "HypChirps"]
LENGTHS = [1000, 2048, 65536]
SNR = 7.0

# Reads lines of noisy then clean data; writes the mean squared error of every policy. Data are continued by
# reflection to a power of two.
RSCRIPT = """
suppressMessages(library(wavethresh))
input <- file("stdin"); open(input)
while (length(line <- readLines(input, n = 1)) > 0) {
  y <- scan(text = line, quiet = TRUE); x <- scan(text = readLines(input, n = 1), quiet = TRUE)
  n <- length(y); m <- 2^ceiling(log2(n)); wide <- c(y, rev(y))[1:m]
  w <- wd(wide, bc = "symmetric")
  run <- function(...) tryCatch(
    mean((wr(suppressWarnings(threshold(w, ...)))[1:n] - x)^2), error = function(e) NA)
  out <- c(run(policy = "universal", type = "hard"), run(policy = "universal", type = "soft"),
           run(policy = "sure", type = "soft"), run(policy = "fdr", type = "hard"),
           run(policy = "BayesThresh"), if (n <= 4096) run(policy = "cv", type = "hard") else NA)
  cat(out, "\\n")
}
"""
POLICIES = ["universal hard", "universal soft", "sure", "fdr", "BayesThresh", "cv"]


def from_r(pairs: list[tuple[np.ndarray, np.ndarray]]) -> list[dict[str, float]]:
    """Return the errors of wavethresh's policies for pairs of noisy and clean signals; none without R."""
    if shutil.which("Rscript") is None:
        print("wavethresh is left out: R is not installed (Debian: r-cran-wavethresh)", file=sys.stderr)
        return [{} for _ in pairs]
    with tempfile.NamedTemporaryFile("w", suffix=".R") as script:
        script.write(RSCRIPT)
        script.flush()
        text = "\n".join(" ".join(map(repr, map(float, v))) for pair in pairs for v in pair)
        done = subprocess.run(["Rscript", script.name], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        print("wavethresh is left out:", *done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return [{} for _ in pairs]
    lines = [[np.nan if v == "NA" else float(v) for v in line.split()] for line in done.stdout.splitlines()]
    return [{f"wavethresh {p}": v for p, v in zip(POLICIES, line, strict=True)} for line in lines]


def signals(arguments: argparse.Namespace) -> None:
    """Print the error over that of the best peer, the peer being chosen per signal by its true mean error."""
    from skimage.restoration import denoise_wavelet

    names = DEVELOPED_SIGNALS if arguments.develop else SIGNALS
    ratios = []
    print("\nmean squared error over noise variance, noise level unknown to all")
    print(f"{'signal':16}{'length':>8}{'blend':>9}{'best peer':>11}{'ratio':>8}  who")
    for name in names:
        for length in LENGTHS:
            draws = 20 if length < 10_000 else 4
            clean = pywt.data.demo_signal(name, length)
            clean = clean * SNR / clean.std()
            seeds = [np.random.default_rng([zlib.crc32(name.encode()), length, k]) for k in range(draws)]
            pairs = [(clean + rng.normal(size=length), clean) for rng in seeds]
            errors: dict[str, list[float]] = {}
            for (y, x), policies in zip(pairs, from_r(pairs), strict=True):
                policies["blend"] = np.mean((st.denoise(y) - x) ** 2)
                for method, family in itertools.product(("BayesShrink", "VisuShrink"), ("db1", "sym8")):
                    estimate = denoise_wavelet(y, method=method, wavelet=family, rescale_sigma=True)
                    policies[f"skimage {method} {family}"] = np.mean((estimate - x) ** 2)
                for who, error in policies.items():
                    errors.setdefault(who, []).append(error)
            means = {who: float(np.mean(e)) for who, e in errors.items()}
            mine = means.pop("blend")
            best = min((who for who in means if np.isfinite(means[who])), key=means.__getitem__)
            ratios.append(mine / means[best])
            print(f"{name:16}{length:8}{mine:9.4f}{means[best]:11.4f}{ratios[-1]:8.2f}  {best}", flush=True)
    print(f"mean ratio {np.mean(ratios):.2f}, largest {np.max(ratios):.2f}")


def fastest(run: Callable, repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def speed(arguments: argparse.Namespace) -> None:
    """Print times on 512 x 512 as ratios: wavelets only over denoise_wavelet, bm3d over the blend."""
    clean = load("astronaut")
    y = noisy("astronaut", clean, 25)
    names = available(["bands", "fast", "blend", "BayesShrink", "bm3d"])
    seconds = {n: fastest(lambda n=n: METHODS[n][1](y, 25.0), 2 if n == "bm3d" else 7) for n in names}
    print("\nseconds on 512 x 512:", ", ".join(f"{n} {s:.3f}" for n, s in seconds.items()))
    print(f"bands over denoise_wavelet: {seconds['bands'] / seconds['BayesShrink']:.1f}")
    if "bm3d" in seconds:
        for name in ("blend", "fast"):
            print(f"bm3d over {name}: {seconds['bm3d'] / seconds[name]:.1f}")


# Runs in a process of its own, so that the peak is that of one call; prints seconds and the peak beyond the input,
# over the size of the input.
ALONE = """
import resource, sys, time
import numpy as np
import scorethresh as st
side = int(sys.argv[1])
st.denoise(np.random.default_rng(0).normal(size=(32, 32, 32)).astype(np.float32), sigma=1.0)
y = np.random.default_rng(0).standard_normal((side, side, side), dtype=np.float32)
y[side // 4 : side // 2] += 5
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
found = st.Denoiser(sigma=1.0, choose=sys.argv[2], progress=True).run(y)
seconds = time.perf_counter() - start
assert found.estimate.dtype == np.float32
print(seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / y.nbytes)
"""


def large(arguments: argparse.Namespace) -> None:
    """Print time and memory of volumes, and the time of a large photo over that of eight shifts of denoise_wavelet."""
    print("\nvolume        choose   seconds  ns per voxel  peak beyond the input, over the input")
    for side, choose in itertools.product((128, 256), ("bands", "blend")):
        done = subprocess.run(
            [sys.executable, "-c", ALONE, str(side), choose], stdout=subprocess.PIPE, text=True, check=True
        )
        seconds, memory = map(float, done.stdout.split())
        print(f"{side} ^ 3 float32 {choose:6}{seconds:9.1f}{seconds / side**3 * 1e9:14.0f}{memory:12.2f}")
    from skimage import data
    from skimage.restoration import denoise_wavelet

    photo = np.tile(data.astronaut(), (8, 10, 1))[:4000, :5000].astype(np.float32)
    y = photo + np.random.default_rng(0).normal(0, 25, photo.shape).astype(np.float32)
    start = time.perf_counter()
    found = st.Denoiser(sigma=25.0, channel_axis=-1, progress=True).run(y)
    mine = time.perf_counter() - start
    start = time.perf_counter()
    for shift in range(8):
        rolled = np.roll(y, shift, (0, 1))
        denoise_wavelet(rolled, sigma=25.0, channel_axis=-1, wavelet="db4", convert2ycbcr=False)
    peer = time.perf_counter() - start
    print(
        f"20 megapixels in colour: {mine:.0f} s; eight shifts of denoise_wavelet {peer:.0f} s; ratio {mine / peer:.2f}"
    )
    print(f"predicted {found.predicted_psnr(255):.2f} dB, true {psnr(found.estimate, photo):.2f} dB")


def under(clean: np.ndarray, power: np.ndarray, level: float, seed: int | list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return an image under noise of a level and a spectrum, given up to a factor, and the latter without it."""
    power = power * (level**2 / power.mean())
    white = np.random.default_rng(seed).normal(size=clean.shape)
    return clean + np.fft.ifft2(np.fft.fft2(white) * np.sqrt(power)).real, power


def blind(arguments: argparse.Namespace) -> None:
    """Print estimated over true noise levels, and what it costs not to know the spectrum of blurred noise."""
    from scipy.ndimage import gaussian_filter
    from skimage.restoration import estimate_sigma

    print("\nestimated over true noise level, white noise")
    print(f"{'':22}" + "".join(f"{f'sigma {s}':>10}" for s in SIGMAS) + "   scikit-image at 5")
    for name in arguments.images:
        clean = load(name)
        found = [st.estimate_sigma(noisy(name, clean, s)) / s for s in SIGMAS]
        print(
            f"{name:22}" + "".join(f"{f:10.3f}" for f in found) + f"{estimate_sigma(noisy(name, clean, 5)) / 5:12.3f}"
        )
    ratios = [
        st.estimate_sigma(clean + np.random.default_rng(k).normal(0.0, s, clean.shape)) / s
        for clean in map(load, arguments.images)
        for s in SIGMAS
        for k in range(10)
    ]
    off = np.abs(np.subtract(ratios, 1))
    print(f"ten more draws of each: within 5% in {np.mean(off <= 0.05):.1%}, within 10% in {np.mean(off <= 0.1):.1%}")
    print("\nnoise of level 20 blurred by a Gaussian of width 1: PSNR in dB")
    print(f"{'':22}{'spectrum known':>15}{'estimated':>11}{'taken for white':>17}   scikit-image's level")
    costs = []
    for name in arguments.images:
        clean = load(name)
        impulse = np.zeros(clean.shape)
        impulse[0, 0] = 1
        blurred = np.abs(np.fft.fft2(gaussian_filter(impulse, 1.0, mode="wrap"))) ** 2
        y, power = under(clean, blurred, 20, zlib.crc32(name.encode()))
        known, guessed, naive = (psnr(st.denoise(y, noise=n), clean) for n in (power, "correlated", "white"))
        costs.append(known - guessed)
        print(f"{name:22}{known:15.2f}{guessed:11.2f}{naive:17.2f}{estimate_sigma(y):12.1f}")
    print(f"not knowing the spectrum costs {np.mean(costs):.2f} dB in the mean, at most {np.max(costs):.2f}")


def predicted(arguments: argparse.Namespace) -> None:
    """Print the predicted over the true error of signals, noise level known."""
    print("\npredicted over true error, 15 signals at SNR 3, 7 and 20, 3 draws: mean logarithm, root mean square, z")
    for length in (256, 1024, 4096, 16384):
        logs, scores = [], []
        cells = list(itertools.product(SIGNALS + DEVELOPED_SIGNALS, (3, 7, 20), range(3)))
        for name, snr, k in tqdm(cells, desc=f"{length} samples", leave=False):
            clean = pywt.data.demo_signal(name, length)
            clean = clean * snr / clean.std()
            y = clean + np.random.default_rng([zlib.crc32(name.encode()), length, k]).normal(size=length)
            found = st.Denoiser(sigma=1.0).run(y)
            true = np.mean((found.estimate - clean) ** 2)
            logs.append(np.log(max(found.predicted_mse / true, 0.05)))
            scores.append((found.predicted_mse - true) / found.stderr)
        mean, *roots = np.mean(logs), *(np.sqrt(np.mean(np.square(v))) for v in (logs, scores))
        print(f"{length:8}{mean:8.2f}{roots[0]:8.2f}{roots[1]:8.2f}", flush=True)


def chance(arguments: argparse.Namespace) -> None:
    """Print how far predictions of `denoise.csv` are off, and how far the energy of the noise alone moves a risk.

    An unbiased risk estimate subtracts the expected energy of the noise from that of the residual, which holds the true
    one. A risk estimate that is right in all else is off by the difference.
    """
    errors, moved = [], []
    for row in read(Path(__file__).with_name("denoise.csv")):
        if row["method"] != "blend" or row["image"] not in arguments.images:
            continue
        clean, sigma = load(row["image"]), row["sigma"]
        energy = np.mean((noisy(row["image"], clean, sigma) - clean) ** 2)
        error = 255**2 / 10 ** (row["psnr"] / 10)
        errors.append(abs(row["predicted"] - row["psnr"]))
        moved.append(abs(10 * np.log10(max(1 + (energy - sigma**2) / error, 0.1))))
    print(f"\npredicted PSNR, sigma known, {len(errors)} cells: off by {np.mean(errors):.2f} dB in the mean")
    print(f"the energy of the noise alone moves it by {np.mean(moved):.2f} dB in the mean, at most {np.max(moved):.1f}")


# Powers of noise as functions of two frequencies, up to a factor.
SPECTRA: dict[str, Callable] = {
    "white": lambda u, v: 1 + 0 * u * v,
    "blurred by 0.6": lambda u, v: np.exp(-((2 * np.pi * 0.6) ** 2) * (u**2 + v**2)),
    "blurred by 1": lambda u, v: np.exp(-((2 * np.pi) ** 2) * (u**2 + v**2)),
    "blurred by 2": lambda u, v: np.exp(-((4 * np.pi) ** 2) * (u**2 + v**2)),
    "blurred in rows": lambda u, v: np.exp(-((2 * np.pi * v) ** 2)) + 0 * u,
    "blurred and white": lambda u, v: 20 * np.exp(-((3 * np.pi) ** 2) * (u**2 + v**2)) + 1,
    "1 / f": lambda u, v: 1 / np.sqrt(u**2 + v**2 + 1e-5),
    "1 / (1 + f^4)": lambda u, v: 1 / (1 + ((u**2 + v**2) / 0.15**2) ** 2),
    "a ring": lambda u, v: np.exp(-(((np.hypot(u, v) - 0.2) / 0.06) ** 2)) + 0.02,
    "high frequencies": lambda u, v: 0.05 + u**2 + v**2,
}


def spectra(arguments: argparse.Namespace) -> None:
    """Print what it costs not to know the spectrum of noise of many kinds, for each image at three levels."""
    print("\nPSNR lost in dB if the spectrum is not known, noise of level 10, 20 and 40: mean, largest")
    print(f"{'':20}" + "".join(f"{name[:13]:>14}" for name in arguments.images))
    for kind, shape in SPECTRA.items():
        cells = []
        for name in tqdm(arguments.images, desc=kind, leave=False):
            clean, losses = load(name), []
            power = shape(np.fft.fftfreq(clean.shape[0])[:, None], np.fft.fftfreq(clean.shape[1]))
            for level in (10, 20, 40):
                y, known = under(clean, power, level, [zlib.crc32(f"{name} {kind}".encode()), level])
                losses.append(psnr(st.denoise(y, noise=known), clean) - psnr(st.denoise(y, noise="correlated"), clean))
            cells.append(f"{np.mean(losses):9.2f}{np.max(losses):5.1f}")
        print(f"{kind:20}" + "".join(cells), flush=True)


def clipped(arguments: argparse.Namespace) -> None:
    """Print what it brings to see that noise was cut off at black and white, on pictures of 8 bits."""
    from skimage import data

    print(
        "\npictures of 8 bits, noise level known: PSNR in dB and predicted over true error, if clipping is seen or not"
    )
    print(f"{'':22}{'sigma':>6}{'clipped':>9}{'seen':>9}{'not':>7}{'predicted':>12}{'not':>7}")
    for name, sigma in itertools.product(arguments.images, (10, 25, 50)):
        clean = load(name)
        y = np.clip(np.rint(noisy(name, clean, sigma)), 0, 255)
        # Entries that all differ a little are at no limit.
        unseen = y + np.random.default_rng(0).uniform(0, 1e-3, y.shape)
        runs = [st.Denoiser(sigma=float(sigma)).run(z) for z in (y, unseen)]
        quality = [psnr(run.estimate, clean) for run in runs]
        ratio = [run.predicted_mse / np.mean((run.estimate - clean) ** 2) for run in runs]
        share = np.mean((y == 0) | (y == 255))
        print(
            f"{name:22}{sigma:6}{share:9.1%}{quality[0]:9.2f}{quality[1]:7.2f}{ratio[0]:12.2f}{ratio[1]:7.2f}",
            flush=True,
        )
    print("\n8 bits in colour: PSNR in dB if the noise level is known or not, predicted over true error if not")
    for name, sigma in itertools.product([n for n in arguments.images if getattr(data, n)().ndim == 3], (10, 25, 50)):
        colours = getattr(data, name)()[..., :3].astype(float)
        y = np.clip(np.rint(noisy(name, colours, sigma)), 0, 255).astype(np.uint8)
        runs = [st.Denoiser(sigma=level, channel_axis=-1).run(y) for level in (float(sigma), None)]
        known, unknown = (psnr(run.estimate, colours) for run in runs)
        ratio = runs[1].predicted_mse / np.mean((runs[1].estimate - colours) ** 2)
        print(f"{name:22}{sigma:6}{known:9.2f}{unknown:9.2f}{ratio:9.2f}", flush=True)


def gaps(arguments: argparse.Namespace) -> None:
    """Print predicted over true errors of pictures with gaps, or on a background without noise."""
    rng = np.random.default_rng(7)
    print(
        "\npredicted over true error where entries are missing at random, or in blocks, or there is a background of 0"
    )
    names = ["10%", "30%", "60%", "90%", "blocks of 8", "of 32", "background"]
    print(f"{'':22}{'sigma':>6}" + "".join(f"{name:>12}" for name in names))
    for name, sigma in itertools.product(arguments.images, (10, 25, 50)):
        clean, cells = load(name), []
        u, v = np.indices(clean.shape)
        holes = [rng.random(clean.shape) < part for part in (0.1, 0.3, 0.6, 0.9)]
        holes += [(u // side + v // side) % 2 == 1 for side in (8, 32)]
        holes += [np.hypot(u - clean.shape[0] / 2, v - clean.shape[1] / 2) > min(clean.shape) / 3]
        for hole, background in zip(holes, [np.nan] * 6 + [0.0], strict=True):
            found = st.Denoiser(sigma=float(sigma)).run(np.where(hole, background, noisy(name, clean, sigma)))
            error = np.where(hole, background, found.estimate - clean) ** 2
            cells.append(found.predicted_mse / np.nanmean(error))
        print(f"{name:22}{sigma:6}" + "".join(f"{cell:12.2f}" for cell in cells), flush=True)


def border(arguments: argparse.Namespace) -> None:
    """Print the error in the frame of 8 pixels over that inside, on a ramp."""
    ramp = np.add.outer(np.linspace(0, 200, 256), np.linspace(0, 100, 256))
    inside = np.zeros(ramp.shape, bool)
    inside[8:-8, 8:-8] = True
    print("\nroot mean squared error in the 8-pixel frame over that inside, on a ramp, mean of 10 draws")
    for choose in ("blend", "bands", "global"):
        errors = []
        for seed in range(10):
            y = ramp + np.random.default_rng(seed).normal(0, 20, ramp.shape)
            square = (st.denoise(y, sigma=20.0, choose=choose) - ramp) ** 2
            errors.append([square[~inside].mean(), square[inside].mean()])
        frame, rest = np.sqrt(np.mean(errors, axis=0))
        print(f"{choose:8}{frame:7.2f}{rest:7.2f}{frame / rest:7.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", help=f"{', '.join(PARTS)}; or show CSV")
    parser.add_argument("--images", nargs="+", default=REPORT)
    parser.add_argument("--folder", type=Path, help="pictures to use in place of --images")
    parser.add_argument("--published", choices=PUBLISHED, help="print the figures of papers for that set, too")
    parser.add_argument("--sigmas", nargs="+", type=int, default=SIGMAS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--save", type=Path)
    parser.add_argument("--develop", action="store_true", help="the signals that constants were chosen on")
    arguments = parser.parse_args()
    if arguments.parts[0] == "show":
        table(read(Path(arguments.parts[1])))
        return
    for part in arguments.parts:
        PARTS[part](arguments)


PARTS = {
    p.__name__: p
    for p in (images, colours, volumes, signals, predicted, chance, speed, large, blind, spectra, clipped, gaps, border)
}

if __name__ == "__main__":
    main()
