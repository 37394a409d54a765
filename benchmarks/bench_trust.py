"""Can the prediction be believed? Noise models beside the truth, on images that had no say in any choice.

    python benchmarks/bench_trust.py models
    python benchmarks/bench_trust.py models --images astronaut coffee --choose fast
    python benchmarks/bench_trust.py auto coverage map --picture docs/img/trust.png

`models` prints the PSNR with the true model and its parameters given, the PSNR with estimated parameters, the predicted
and the true mean squared error of both, and whether these agree within two standard errors. `auto` prints which model
is found for which noise, what that costs beside the true model, and how often two standard errors cover the error.
`coverage` does the last for white noise, its level known and estimated. `map` compares the map of the predicted error
with the true one. `warnings` counts warnings of stripes and heavy tails. `--picture` draws which model was found for
which noise.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import scorethresh as st

REPORT = ["astronaut", "cat", "clock", "coffee", "grass", "gravel", "moon", "rocket"]
SIDE = 256


def load(name: str) -> np.ndarray:
    """Return the middle of a picture of scikit-image, in grey."""
    from skimage import color, data

    image = getattr(data, name)()
    image = color.rgb2gray(image[..., :3]) * 255.0 if image.ndim == 3 else image.astype(float)
    top, left = ((n - SIDE) // 2 for n in image.shape)
    return image[max(top, 0) : top + SIDE, max(left, 0) : left + SIDE]


def rng_of(image: str, draw: int) -> np.random.Generator:
    """Return the generator of a draw of noise on a picture."""
    return np.random.default_rng([zlib.crc32(image.encode()), draw])


def cases(clean: np.ndarray, rng: np.random.Generator) -> Iterator[tuple]:
    """Yield a name, noisy data, what they are of, the model with its parameters, and the model without."""
    gain, offset, read = 0.46, 100.0, 1.6
    for electrons in (1, 5, 20, 100):
        light = clean / clean.mean() * electrons
        y = offset + (rng.poisson(light) + read * rng.normal(size=clean.shape)) / gain
        yield (
            f"camera, {electrons} e", y, offset + light / gain,
            st.CameraNoise(gain, offset, read), st.CameraNoise(),
        )  # fmt: skip
    for level in (10.0, 30.0):
        parts = level * rng.normal(size=(2, *clean.shape))
        yield (
            f"rician, {level:g}", np.hypot(clean + parts[0], parts[1]), clean,
            st.RicianNoise(sigma=level), st.RicianNoise(),
        )  # fmt: skip
    for looks in (4.0, 44.0):
        factor = rng.gamma(looks, 1 / looks, clean.shape)
        yield f"speckle, {looks:g} looks", clean * factor, clean, st.SpeckleNoise(looks), st.SpeckleNoise()


def models(arguments: argparse.Namespace) -> None:
    """Print predicted and true errors of every model, its parameters given and estimated."""
    columns = f"{'predicted':>11}{'true':>9}"
    print(f"{'parameters':32}{'given: PSNR':>12}{columns}   {'found: PSNR':>12}{columns}")
    agree: dict[str, list[tuple[bool, bool, float, float]]] = {}
    for image, draw in itertools.product(arguments.images, range(arguments.draws)):
        clean = load(image)
        for name, y, truth, *both in cases(clean, rng_of(image, draw)):
            row, within, off = f"{name:20}{image:12}", [], []
            for model in both:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = st.Denoiser(noise=model, choose=arguments.choose).run(y)
                true = np.mean((found.estimate - truth) ** 2)
                within.append(abs(found.predicted_mse - true) < 2 * found.stderr)
                off.append(abs(10 * np.log10(found.predicted_mse / true)))
                peak = 10 * np.log10(np.ptp(truth) ** 2 / true)
                row += f"{peak:12.2f}{found.predicted_mse:11.3g}{true:9.3g}{' ' if within[-1] else '!'}  "
            agree.setdefault(name, []).append((*within, *off))
            print(row, flush=True)
    print("\nshare within 2 standard errors, given and estimated; |dB| off, given and estimated, mean")
    for name, each in agree.items():
        print(f"{name:20}" + "".join(f"{share:8.2f}" for share in np.mean(each, axis=0)))


def kinds(clean: np.ndarray, rng: np.random.Generator) -> Iterator[tuple]:
    """Yield a kind of noise, noisy data, what they are of, and the model that knows the kind."""
    from scipy.ndimage import gaussian_filter

    noise = rng.normal(size=clean.shape)
    for level in (5.0, 20.0, 50.0):
        yield f"white {level:g}", clean + level * noise, clean, "white"
    for width in (0.45, 0.7, 1.5):
        smooth = gaussian_filter(noise, width, mode="wrap")
        yield f"blurred by {width:g}", clean + 20 * smooth / smooth.std(), clean, "correlated"
    yield "counts", rng.poisson(clean), clean, "poisson"
    light = 0.1 * clean
    yield "camera", 100 + (rng.poisson(light) + 1.6 * noise) / 0.46, 100 + light / 0.46, "camera"
    yield "speckle", clean * (1 + 0.15 * noise), clean, "speckle"
    disk = np.hypot(*np.mgrid[-1 : 1 : clean.shape[0] * 1j, -1 : 1 : clean.shape[1] * 1j]) < 0.8
    inside = np.where(disk, clean, 0.0)
    yield "magnitudes", np.hypot(inside + 20 * noise, 20 * rng.normal(size=clean.shape)), inside, "rician"
    salted, at = clean + 10 * noise, rng.random(clean.shape) < 0.01
    salted[at] = rng.choice([0.0, 255.0], np.count_nonzero(at))
    yield "salt and pepper", salted, clean, "white"


def auto(arguments: argparse.Namespace) -> None:
    """Print which model is found, the PSNR that it costs, and the share of errors within two standard errors."""
    found_kinds: dict[str, list[str]] = {}
    rows: dict[str, list[tuple[float, bool, float, bool, float]]] = {}
    for image, draw in itertools.product(arguments.images, range(arguments.draws)):
        clean = load(image)
        for name, y, truth, model in kinds(clean, rng_of(image, draw)):
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("always")
                found = st.Denoiser(choose=arguments.choose).run(y)
                known = st.Denoiser(noise=model, choose=arguments.choose).run(y)
            true, best = (np.mean((d.estimate - truth) ** 2) for d in (found, known))
            within = abs(found.predicted_mse - true) < 2 * found.stderr
            off = 10 * np.log10(max(found.predicted_mse, 1e-12) / true)
            rows.setdefault(name, []).append((10 * np.log10(true / best), within, abs(off), bool(found.warnings), off))
            found_kinds.setdefault(name, []).append(type(found.noise).__name__.removesuffix("Noise").lower())
    print(f"{'noise':18}{'dB lost':>9}{'worst':>7}{'within':>8}{'|dB| off':>10}{'warned':>8}   found")
    for name, each in rows.items():
        lost, within, off, warned, _ = np.array(each, dtype=float).T
        names, times = np.unique(found_kinds[name], return_counts=True)
        words = ", ".join(f"{n} {t}" for n, t in zip(names, times, strict=True))
        numbers = f"{lost.mean():9.2f}{lost.max():7.2f}{within.mean():8.2f}{np.median(off):10.2f}{warned.mean():8.2f}"
        print(f"{name:18}{numbers}   {words}")
        if name.startswith("white"):
            assert lost.mean() <= 0.05, "looking for other models may not cost on white noise"
    if arguments.picture:
        draw_picture(found_kinds, rows, arguments.picture)


def draw_picture(found_kinds: dict[str, list[str]], rows: dict[str, list[tuple]], path: Path) -> None:
    """Draw which model was found for which noise, and predicted over true errors."""
    from matplotlib.figure import Figure

    names = ["white", "correlated", "poisson", "camera", "speckle", "rician"]
    counts = np.array([[kinds.count(name) for name in names] for kinds in found_kinds.values()])
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.imshow(counts, cmap="cividis_r", aspect="auto")
    for (i, j), count in np.ndenumerate(counts):
        if count:
            left.text(j, i, count, ha="center", va="center", color="w" if count > counts.max() / 2 else "k")
    left.set_xticks(range(len(names)), names, rotation=30)
    left.set_yticks(range(len(found_kinds)), found_kinds)
    left.set(title="model that was found, number of images", xlabel="found", ylabel="true noise")
    for place, each in enumerate(rows.values()):
        signed = [row[4] for row in each]
        right.plot(signed, np.full(len(signed), place) + np.linspace(-0.2, 0.2, len(signed)), "o", ms=4, color="C0")
    right.axvline(0, color="k", lw=0.8)
    right.set_yticks(range(len(rows)), rows)
    right.invert_yaxis()
    right.set(title="predicted over true error", xlabel="dB", xlim=(-6, 6))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def ellipsoids(seed: int, side: int = 48) -> np.ndarray:
    """Return a volume of even ellipsoids on a dark ground."""
    rng = np.random.default_rng(seed)
    place = np.indices((side,) * 3) / side - 0.5
    out = np.zeros((side,) * 3)
    for _ in range(12):
        centre, axes = rng.uniform(-0.3, 0.3, 3), rng.uniform(0.05, 0.25, 3)
        inside = sum(((p - c) / a) ** 2 for p, c, a in zip(place, centre, axes, strict=True)) < 1
        out[inside] = rng.uniform(40, 220)
    return out


def panned(clean: np.ndarray, side: int = 48) -> np.ndarray:
    """Return a volume whose slices are views of a picture, two pixels apart."""
    return np.stack([clean[k : k + side, 2 * k : 2 * k + side] for k in range(side)])


def coverage_data(images: list[str]) -> Iterator[tuple[str, np.ndarray, tuple[float, ...]]]:
    """Yield a kind of data, one clean instance of it, and noise levels."""
    import pywt
    from skimage import data

    for image in images:
        yield "images", load(image), (5.0, 15.0, 25.0, 50.0)
    for name in ("Blocks", "Bumps", "HeaviSine", "Doppler", "Piece-Polynomial", "Piece-Regular"):
        clean = pywt.data.demo_signal(name, 4096)
        yield "signals", clean / clean.std() * 25, (2.0, 4.0, 8.0)
    for name in ("astronaut", "cat", "coffee", "rocket"):
        yield "colours", getattr(data, name)()[100:228, 150:278].astype(float), (10.0, 30.0)
    for seed in range(3):
        yield "volumes", ellipsoids(seed), (10.0, 30.0)
    for image in ("astronaut", "rocket", "coffee"):
        yield "volumes", panned(load(image)), (10.0, 30.0)


def coverage(arguments: argparse.Namespace) -> None:
    """Print how often two standard errors cover the error, the level of white noise known and estimated."""
    rows: dict[tuple[str, bool], list[tuple[bool, float]]] = {}
    for k, (kind, clean, levels) in enumerate(coverage_data(arguments.images)):
        for level, draw in itertools.product(levels, range(arguments.draws)):
            y = clean + np.random.default_rng([k, int(level), draw]).normal(0, level, clean.shape)
            for known in (True, False):
                options = {"sigma": level if known else None, "channel_axis": -1 if kind == "colours" else None}
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = st.Denoiser(choose=arguments.choose, **options).run(y)
                true = np.mean((found.estimate - clean) ** 2)
                off = abs(10 * np.log10(max(found.predicted_mse, 1e-12) / true))
                rows.setdefault((kind, known), []).append((abs(found.predicted_mse - true) < 2 * found.stderr, off))
    print(f"{'data':10}{'level':12}{'within':>8}{'|dB| off, mean':>16}{'median':>8}{'cases':>7}")
    for (kind, known), each in rows.items():
        within, off = np.array(each, dtype=float).T
        numbers = f"{within.mean():8.2f}{off.mean():16.2f}{np.median(off):8.2f}{len(off):7}"
        print(f"{kind:10}{'known' if known else 'estimated':12}{numbers}")


def error_map(arguments: argparse.Namespace) -> None:
    """Print the true over the predicted local error, by tenths of the predicted one."""
    from scipy.ndimage import gaussian_filter

    print("true over predicted error, entries in ten groups by the predicted error, from small to large")
    for level in (15.0, 40.0):
        groups = []
        for image in arguments.images:
            clean = load(image)
            y = clean + np.random.default_rng([zlib.crc32(image.encode()), int(level)]).normal(0, level, clean.shape)
            found = st.Denoiser(sigma=level, choose=arguments.choose).run(y)
            predicted, true = found.error_map(), (found.estimate - clean) ** 2
            order = np.array_split(np.argsort(predicted.ravel()), 10)
            groups.append([true.ravel()[some].mean() / predicted.ravel()[some].mean() for some in order])
            like = np.corrcoef(np.log(gaussian_filter(true, 8).ravel()), np.log(predicted.ravel()))[0, 1]
            row = "".join(f"{v:6.2f}" for v in groups[-1])
            print(f"noise {level:3g} {image:12}{row}   correlation with the smoothed true error {like:.2f}", flush=True)
        print(f"noise {level:3g} {'median':12}" + "".join(f"{v:6.2f}" for v in np.median(groups, axis=0)))


def failing(clean: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield a kind of noise, words of the warning that it calls for, and noise of level 1."""
    shape, normal = clean.shape, rng.normal(size=clean.shape)
    yield "white", "", normal
    for level in (0.3, 0.5, 1.0):
        yield f"stripes of {level:g}", "has an offset", normal + level * rng.normal(size=(shape[0], 1))
    yield "Laplace", "heavy tails", rng.laplace(size=shape) / 2**0.5
    for freedom in (3, 5):
        yield f"t{freedom}", "heavy tails", rng.standard_t(freedom, shape) / (freedom / (freedom - 2)) ** 0.5


def warned(arguments: argparse.Namespace) -> None:
    """Print how often stripes and heavy tails are warned of, and the true over the predicted error."""
    rows: dict[tuple[str, float], list[tuple[bool, bool, float]]] = {}
    for image in arguments.images:
        clean = load(image)
        for level in (5.0, 20.0):
            rng = np.random.default_rng([zlib.crc32(image.encode()), int(level)])
            for name, words, noise in failing(clean, rng):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = st.Denoiser(choose=arguments.choose).run(clean + level * noise)
                told = " ".join(found.warnings)
                false = any(other in told for other in ("has an offset", "heavy tails") if other != words)
                off = float(np.mean((found.estimate - clean) ** 2)) / max(found.predicted_mse, 1e-12)
                rows.setdefault((name, level), []).append((bool(words) and words in told, false, off))
    print(f"{'noise':16}{'level':>6}{'warned':>8}{'falsely':>9}{'true over predicted':>21}{'cases':>7}")
    for (name, level), each in rows.items():
        told, false, off = np.array(each, dtype=float).T
        print(f"{name:16}{level:6g}{told.sum():8.0f}{false.sum():9.0f}{np.median(off):21.2f}{len(off):7}")


SECTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "models": models,
    "auto": auto,
    "coverage": coverage,
    "map": error_map,
    "warnings": warned,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="+", choices=SECTIONS)
    parser.add_argument("--images", nargs="+", default=REPORT)
    parser.add_argument("--choose", default="fast")
    parser.add_argument("--draws", type=int, default=3, help="of the noise, for models, auto and coverage")
    parser.add_argument("--picture", type=Path, help="of the section auto")
    arguments = parser.parse_args()
    for section in arguments.sections:
        SECTIONS[section](arguments)


if __name__ == "__main__":
    main()
