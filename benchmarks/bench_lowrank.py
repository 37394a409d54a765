"""Series of volumes and images: error, derived maps, prediction, time and memory, beside dipy and patch-denoise.

    python benchmarks/bench_lowrank.py              # the tables of docs/lowrank.md
    python benchmarks/bench_lowrank.py --quick      # a small volume
    python benchmarks/bench_lowrank.py --develop    # other seeds, on which constants were chosen; not reported
    python benchmarks/bench_lowrank.py --only ours  # without peers
    python benchmarks/bench_lowrank.py --coverage   # how often the predicted error is right
    python benchmarks/bench_lowrank.py --memory     # time and memory of large series
    python benchmarks/bench_lowrank.py --figures docs/img

Magnitudes (Rician) are denoised as such, and as if their noise were Gaussian, which is what the peers do.

Everything is simulated, so that the truth is known: diffusion MRI (multi-tensor, smooth random tissue, 6 + 60 volumes),
a hyperspectral cube (mixed spectra) and a video (a picture that moves). Peers get the true noise level if they take
one, and patches of at least as many entries as there are volumes, as they need: 5 x 5 x 5, 9 x 9 and 7 x 7. dipy takes
every patch, patch-denoise every second one along each axis, which takes it a minute already.
"""

import argparse
import contextlib
import io
import time
import warnings

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

import scorethresh as st


def smooth(rng, shape, width):
    """A random field with smooth structure of that width, mean 0 and variance 1."""
    a = gaussian_filter(rng.normal(size=shape), width, mode="wrap")
    return (a - a.mean()) / a.std()


def directions(rng, count):
    """Directions spread over the half sphere by repulsion."""
    g = rng.normal(size=(count, 3))
    for _ in range(300):
        g /= np.linalg.norm(g, axis=1, keepdims=True)
        both = np.concatenate([g, -g])
        d = g[:, None] - both
        r = np.maximum(np.linalg.norm(d, axis=2), 1e-9)
        np.fill_diagonal(r, np.inf)
        g = g + 0.02 * (d / r[..., None] ** 3).sum(axis=1) / count
    return g / np.linalg.norm(g, axis=1, keepdims=True)


def diffusion_phantom(seed, shape=(48, 48, 16)):
    """Return the signal (*shape, 66) with b0 about 1 in white matter, the mask, and the gradient table."""
    rng = np.random.default_rng(seed)
    g = directions(rng, 60)
    b = np.concatenate([np.zeros(6), np.full(60, 1.0)])  # ms per square micrometre
    g = np.concatenate([np.tile([1.0, 0.0, 0.0], (6, 1)), g])
    # Two bundles, grey matter and fluid share every voxel; borders are one or two voxels wide.
    fields = np.stack([smooth(rng, shape, 4) for _ in range(4)])
    fractions = np.exp(6 * fields)
    fractions /= fractions.sum(axis=0)
    proton = np.stack([np.full(shape, v) for v in (1.0, 1.0, 1.25, 2.5)]) * (1 + 0.05 * smooth(rng, shape, 1))
    signal = np.zeros((*shape, b.size))
    for k in range(2):
        axis = np.stack([smooth(rng, shape, 8) for _ in range(3)], axis=-1)
        axis /= np.linalg.norm(axis, axis=-1, keepdims=True)
        along, across = 1.7 + 0.1 * smooth(rng, shape, 5), 0.3 + 0.04 * smooth(rng, shape, 5)
        cos2 = (axis @ g.T) ** 2
        d = across[..., None] + (along - across)[..., None] * cos2
        signal += (fractions[k] * proton[k])[..., None] * np.exp(-b * d)
    for k, d in ((2, 0.8), (3, 3.0)):
        signal += (fractions[k] * proton[k])[..., None] * np.exp(-b * d)
    centre = [np.linspace(-1, 1, n) for n in shape]
    mask = (centre[0][:, None, None] ** 2 + centre[1][:, None] ** 2 + 0.3 * centre[2] ** 2) < 0.9
    return np.where(mask[..., None], signal, 0.0), mask, (b, g)


def tensor_maps(data, table):
    """Fractional anisotropy and mean diffusivity by least squares on the logarithm."""
    b, g = table
    design = np.column_stack(
        [
            np.ones_like(b),
            *(-b * g[:, i] * g[:, j] * (1 if i == j else 2) for i, j in zip(*np.triu_indices(3), strict=True)),
        ]
    )
    logs = np.log(np.maximum(np.abs(data), 1e-3))
    d = logs @ np.linalg.pinv(design).T
    tensor = np.empty((*data.shape[:-1], 3, 3))
    for k, (i, j) in enumerate(zip(*np.triu_indices(3), strict=True)):
        tensor[..., i, j] = tensor[..., j, i] = d[..., 1 + k]
    values = np.linalg.eigvalsh(tensor)
    mean = values.mean(axis=-1)
    spread = np.sqrt(((values - mean[..., None]) ** 2).sum(axis=-1))
    return np.sqrt(1.5) * spread / np.maximum(np.linalg.norm(values, axis=-1), 1e-9), mean


def hyperspectral(seed, shape=(96, 96), bands=80):
    """Seven smooth spectra, mixed by abundances with edges, and a shading that varies."""
    rng = np.random.default_rng(seed)
    spectra = np.stack([np.exp(0.5 * gaussian_filter(rng.normal(size=bands), 6) * 6) for _ in range(7)])
    maps = np.stack([smooth(rng, shape, rng.uniform(2, 8)) for _ in range(7)])
    abundance = np.exp(4 * maps)
    abundance /= abundance.sum(axis=0)
    shading = 1 + 0.15 * smooth(rng, shape, 1.2)
    cube = np.einsum("kxy,kb->xyb", abundance, spectra) * shading[..., None]
    return cube / cube.std()


def video(seed, shape=(96, 96), frames=40):
    """A picture with edges and texture that drifts by a fraction of a pixel per frame, with an object that crosses."""
    rng = np.random.default_rng(seed)
    big = tuple(2 * n for n in shape)
    scene = np.sign(smooth(rng, big, 6)) + 0.5 * smooth(rng, big, 3) + 0.3 * smooth(rng, big, 1.2)
    x, y = np.meshgrid(*map(np.arange, shape), indexing="ij")
    out = np.empty((*shape, frames))
    for t in range(frames):
        out[..., t] = map_coordinates(scene, [x + 20 + 0.15 * t, y + 20 + 0.3 * t], order=3, mode="wrap")
        disc = (x - 20 - t) ** 2 + (y - 60 + 0.5 * t) ** 2 < 64
        out[..., t] = np.where(disc, 1.5, out[..., t])
    return out / out.std() + 5.0  # dipy clips negative values


def noisy(rng, clean, sigma, kind):
    """Add noise; return the data and the truth that they are compared with."""
    w = sigma * rng.normal(size=clean.shape)
    if kind == "gaussian":
        return clean + w, clean
    phase = np.exp(1j * np.pi * smooth(rng, clean.shape[:-1], 10))[..., None]
    data = clean * phase + w + 1j * sigma * rng.normal(size=clean.shape)
    return (data, clean * phase) if kind == "complex" else (np.abs(data), clean)


def right_shrinker(singvals, beta=1):
    """The Frobenius shrinker of Gavish and Donoho (2017), sqrt(f)/y, where patch-denoise has sqrt(f/y)."""
    f = np.maximum((singvals**2 - beta - 1) ** 2 - 4 * beta, 0)
    return np.where(singvals > 1 + np.sqrt(beta), np.sqrt(f) / np.maximum(singvals, 1e-9), 0.0)


def patch_denoise(y, sigma, patch, overlap):
    """patch-denoise with a corrected shrinker and scale, which is the root of the larger side."""
    from patch_denoise.space_time.lowrank import OptimalSVDDenoiser

    class Corrected(OptimalSVDDenoiser):
        def _patch_processing(self, patch, patch_idx=None, shrink_func=None, mp_median=None, var_apriori=None):
            m, n = patch.shape
            mean = patch.mean(axis=0)
            u, s, vh = np.linalg.svd(patch - mean, full_matrices=False)
            scale = np.sqrt(max(m, n)) * sigma * (np.sqrt(2) if np.iscomplexobj(patch) else 1)
            a = scale * right_shrinker(s / scale, min(m, n) / max(m, n))
            k = int(np.count_nonzero(a))
            return (u[:, :k] * a[:k]) @ vh[:k] + mean, k, np.nan

    flat = y if y.ndim == 4 else y[:, :, None]
    size = patch if y.ndim == 4 else (*patch, 1)
    lap = overlap if y.ndim == 4 else (*overlap, 0)
    out = Corrected(size, lap, recombination="weighted").denoise(flat, noise_std=None, progbar=False)[0]
    return out if y.ndim == 4 else out[:, :, 0]


def peers(sigma, patch):
    """Functions of the data, by name."""
    from dipy.denoise.localpca import localpca, mppca

    radius = tuple(int(p) // 2 for p in patch)

    def volume(y):
        return y if y.ndim == 4 else np.repeat(y[:, :, None], 1, axis=2)

    def run(function, y, **options):
        r = np.array([*radius, 0][:3])
        out = function(volume(y), patch_radius=r, suppress_warning=True, **options)
        return out if y.ndim == 4 else out[:, :, 0]

    overlap = tuple(p - 2 for p in patch)
    return {
        "dipy mppca": lambda y: run(mppca, y),
        "dipy localpca, known": lambda y: run(localpca, y, sigma=sigma),
        "patch-denoise, corrected, known": lambda y: patch_denoise(y, sigma, patch, overlap),
    }


def timed(function, y):
    """Return the result, processor time and wall time, without what is printed."""
    start, wall = time.process_time(), time.perf_counter()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        out = function(y)
    return out, time.process_time() - start, time.perf_counter() - wall


def cases(options):
    """Yield name, data, truth, level, mask and gradient table."""
    base = 900 if options.develop else 1
    shape = (32, 32, 12) if options.quick else (48, 48, 16)
    clean, mask, table = diffusion_phantom(base, shape)
    for kind in ("gaussian", "complex", "rician"):
        for snr in (10, 20, 30):
            y, truth = noisy(np.random.default_rng([base, snr]), clean, 1 / snr, kind)
            yield f"diffusion, {kind}, SNR {snr}", y, truth, 1 / snr, mask, table
    plane = (64, 64) if options.quick else (96, 96)
    for name, clean in (("hyperspectral", hyperspectral(base, plane)), ("video", video(base, plane))):
        for sigma in (0.1, 0.3):
            y, truth = noisy(np.random.default_rng([base, 7]), clean, sigma, "gaussian")
            yield f"{name}, noise {sigma}", y, truth, sigma, np.ones(plane, dtype=bool), None


def coverage(draws=25):
    """How far the predicted error is from the true one, in standard errors."""
    print(
        "| case | known: mean, spread, within 2 | unknown: mean, spread, within 2 | level off by |\n|---|---|---|---|"
    )
    clean, _, _ = diffusion_phantom(2, (32, 32, 12))
    cases = [
        (f"diffusion, {kind}, SNR {snr}", clean, 1 / snr, kind) for kind in ("gaussian", "complex") for snr in (10, 30)
    ]
    cases += [(f"hyperspectral, noise {s}", hyperspectral(2, (64, 64)), s, "gaussian") for s in (0.1, 0.3)]
    cases += [(f"video, noise {s}", video(2, (64, 64)), s, "gaussian") for s in (0.1, 0.3)]
    every = {False: [], True: []}
    for name, truth, sigma, kind in cases:
        z, off = {False: [], True: []}, []
        for number in range(draws):
            y, x0 = noisy(np.random.default_rng([3, number]), truth, sigma, kind)
            for blind in (False, True):
                found = timed(st.LowRankDenoiser(sigma=None if blind else sigma).run, y)[0]
                loss = np.mean(np.abs(found.estimate - x0) ** 2) / (2 if kind == "complex" else 1)
                z[blind].append((found.predicted_mse - loss) / found.stderr)
            off.append(np.mean(np.abs(found.sigma / sigma - 1)))
        cells = [f"{np.mean(v):+.2f}, {np.std(v):.2f}, {np.mean(np.abs(v) <= 2):.0%}" for v in z.values()]
        print(f"| {name} | {' | '.join(cells)} | {np.mean(off):.1%} |", flush=True)
        if not name.startswith("video"):
            for blind, values in z.items():
                every[blind] += values
    shares = [f"{np.mean(np.abs(v) <= 2):.1%}" for v in every.values()]
    print(f"all but the video: within 2 standard errors, known {shares[0]}, unknown {shares[1]}")


def memory():
    """Time and the most memory beyond the data, for series of growing size."""
    import tracemalloc

    print("| series | s, processor | s, wall | most memory over that of the data |\n|---|---|---|---|")
    clean = diffusion_phantom(2, (48, 48, 16))[0].astype(np.float32)
    for repeats in ((1, 1, 1), (2, 2, 1), (2, 2, 3)):
        y = np.tile(clean, (*repeats, 1))
        y += (0.05 * np.random.default_rng(0).normal(size=y.shape)).astype(np.float32)
        _, cpu, wall = timed(st.LowRankDenoiser().run, y)
        tracemalloc.start()
        timed(st.LowRankDenoiser().run, y)
        peak = tracemalloc.get_traced_memory()[1] / y.nbytes
        tracemalloc.stop()
        print(f"| {' x '.join(map(str, y.shape))} float32 | {cpu:.1f} | {wall:.1f} | {peak:.1f} |", flush=True)


def figures(folder):
    """Draw the pictures of docs/lowrank.md."""
    from pathlib import Path

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    u, v = (np.linalg.qr(rng.normal(size=(n, 6)))[0] for n in (120, 60))
    y = (u * [60.0, 40, 30, 22, 17, 14]) @ v.T + rng.normal(size=(120, 60))
    axes = st.select_rank(y).plot()
    axes[0].figure.savefig(Path(folder) / "rank_scree.png", dpi=100)
    clean, mask, _ = diffusion_phantom(1, (64, 64, 12))
    level = 0.07 * (1 + 0.4 * np.linspace(-1, 1, 64))[:, None, None] * np.ones(mask.shape)
    y = clean + level[..., None] * rng.normal(size=clean.shape)
    found = st.LowRankDenoiser(mask=~mask).run(y)
    z, t = 6, 30
    hide = np.where(mask, 1.0, np.nan)
    removed = (y - found.estimate)[:, :, z, t] * hide[:, :, z]
    panels = [
        ("clean", clean[:, :, z, t], 0, 1),
        ("noisy", y[:, :, z, t] * mask[:, :, z], 0, 1),
        ("denoised", found.estimate[:, :, z, t] * mask[:, :, z], 0, 1),
        ("removed", removed, -0.25, 0.25),
        ("rank map", found.rank[:, :, z] * hide[:, :, z], 0, None),
        ("noise map, found", found.sigma[:, :, z] * hide[:, :, z], 0.03, 0.11),
        ("noise map, true", level[:, :, z] * hide[:, :, z], 0.03, 0.11),
        ("predicted rms error", np.sqrt(found.error_map()[:, :, z]), 0, None),
    ]
    figure, axes = plt.subplots(2, 4, figsize=(12, 6), layout="constrained")
    for ax, (title, picture, low, high) in zip(axes.ravel(), panels, strict=True):
        shown = ax.imshow(picture, cmap="gray", vmin=low, vmax=high)
        ax.set(title=title, xticks=[], yticks=[])
        figure.colorbar(shown, ax=ax, shrink=0.8)
    figure.savefig(Path(folder) / "lowrank.png", dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--quick", "--develop"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--only", choices=["ours"])
    parser.add_argument("--match", default="")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--figures", metavar="FOLDER")
    options = parser.parse_args()
    if options.coverage or options.memory or options.figures:
        if options.coverage:
            coverage()
        if options.memory:
            memory()
        if options.figures:
            figures(options.figures)
        return
    head = (
        "error / noise | worst volume | FA | MD | predicted (true), all entries | level off by | s, processor | s, wall"
    )
    print(f"| case | method | {head} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, y, truth, sigma, mask, table in cases(options):
        if options.match in name:
            one_case(name, y, truth, sigma, mask, table, options)


def one_case(name, y, truth, sigma, mask, table, options):
    rows = {}
    for noise in ("rician", "white") if "rician" in name else ("white",):
        for given in (None, sigma):
            found, *times = timed(st.LowRankDenoiser(sigma=given, noise=noise).run, y)
            label = "ours" + ", known" * (given is not None) + ", as Gaussian" * ("rician" in name and noise == "white")
            rows[label] = (found.estimate, found, *times)
    patch = (5, 5, 5) if y.ndim == 4 else (9, 9) if y.shape[-1] > 49 else (7, 7)
    if options.only != "ours":
        for peer, function in peers(sigma, patch).items():
            if np.iscomplexobj(y) and peer.startswith("dipy"):
                continue
            try:
                estimate, *times = timed(function, y)
            except Exception as error:  # a peer that fails is reported, and the others go on
                print(f"| {name} | {peer} | {type(error).__name__}: {str(error)[:60]} | | | | | | | |")
                continue
            rows[peer] = (estimate, None, *times)
    rows = {"noisy": (y, None, 0.0, 0.0), **rows}
    maps = None if table is None else tensor_maps(np.abs(truth)[mask], table)
    for method, (estimate, result, cpu, wall) in rows.items():
        if np.isnan(estimate).any():  # patch-denoise leaves some entries at the border out: they are not counted
            estimate = np.where(np.isnan(estimate), truth, estimate)
        error = np.abs(estimate - truth)[mask] ** 2
        unit = sigma**2 * (2 if np.iscomplexobj(y) else 1)
        cells = [f"{error.mean() / unit:.4f}", f"{error.mean(axis=0).max() / unit:.4f}"]
        if maps is None:
            cells += ["", ""]
        else:
            ours = tensor_maps(np.abs(estimate)[mask], table)
            cells += [f"{np.sqrt(np.mean((a - b) ** 2)):.4f}" for a, b in zip(ours, maps, strict=True)]
        if result is None:
            cells += ["", ""]
        else:
            # The prediction is for all entries, the background included.
            true = np.mean(np.abs(estimate - truth) ** 2) / unit
            cells.append(f"{result.predicted_mse / sigma**2:.4f} ± {result.stderr / sigma**2:.4f} ({true:.4f})")
            cells.append(f"{np.mean(np.abs(result.sigma[mask] / sigma - 1)):.1%}")
        print(f"| {name} | {method} | {' | '.join(cells)} | {cpu:.1f} | {wall:.1f} |", flush=True)


if __name__ == "__main__":
    main()
