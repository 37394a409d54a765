"""What the posterior mean gains over thresholds, and how true its predicted risk is.

    python benchmarks/bench_shrink.py                  # the tables of docs/evidence.md, under a minute
    python benchmarks/bench_shrink.py --figure docs/img/shrink.png

R's EbayesThresh joins the table where R has it.
"""

import argparse
import os
import shutil
import subprocess

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pywt

import scorethresh as st

SIZE = 1000
R_SCRIPT = """
suppressMessages(library(EbayesThresh))
lines <- readLines(file("stdin"))
for (line in lines) {
  y <- as.numeric(strsplit(line, " ")[[1]])
  for (rule in c("median", "mean"))
    cat(ebayesthresh(y, prior = "laplace", a = NA, sdev = 1, threshrule = rule), "\\n")
}
"""


def spikes(count, height):
    return lambda rng: np.where(np.arange(SIZE) < count, float(height), 0.0)


def camera_band(rng):
    """Entries of a band of a picture with noise of 20 grey levels, others in every draw."""
    x = pywt.data.camera().astype(float)
    band = pywt.wavedec2(x, "db4", mode="periodization", level=3)[1][2] / 20
    return rng.choice(band.ravel(), SIZE, replace=False)


SIGNALS = {
    "pure noise": spikes(0, 0),
    "5 at 4": spikes(5, 4),
    "50 at 7": spikes(50, 7),
    "500 at 5": spikes(500, 5),
    "10% Laplace(3)": lambda rng: rng.laplace(scale=3, size=SIZE) * (rng.random(SIZE) < 0.1),
    "Laplace(1)": lambda rng: rng.laplace(size=SIZE),
    "N(0, 4)": lambda rng: rng.normal(0, 2, SIZE),
    "uniform to 40": lambda rng: rng.uniform(-40, 40, SIZE),
    "camera, level 3": camera_band,
}


def hindsight(y, x):
    """The loss of the best hard threshold for these data, which only the truth tells."""
    order = np.argsort(-np.abs(y))
    change = np.cumsum((y[order] - x[order]) ** 2 - x[order] ** 2)
    return x @ x + min(0.0, change.min())


def draws(name, count):
    for seed in range(count):
        rng = np.random.default_rng([2026, seed])
        x = SIGNALS[name](rng)
        yield x, x + rng.normal(size=SIZE)


def ebayes(pairs):
    """Return the losses of EbayesThresh's posterior medians and means; None if R does not have it."""
    if shutil.which("Rscript") is None:
        return None
    text = "\n".join(" ".join(f"{v:.17g}" for v in y) for _, y in pairs)
    done = subprocess.run(["Rscript", "-e", R_SCRIPT], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    found = np.array([np.fromstring(line, sep=" ") for line in done.stdout.splitlines()])
    truth = np.repeat([x for x, _ in pairs], 2, axis=0)
    return np.sum((found - truth) ** 2, axis=1).reshape(-1, 2).mean(axis=0)


def table(count):
    print(f"Loss in sigma^2, P = {SIZE}, {count} draws; standard errors in brackets")
    print(
        f"{'':16} {'best hard':>9} {'chosen':>7} {'posterior mean':>16} {'ratio':>6} {'predicted - loss':>17} {'sd':>4}"
    )
    ratios = []
    for name in SIGNALS:
        pairs, rows = list(draws(name, count)), []
        for x, y in pairs:
            shrunk, chosen = st.shrink(y, sigma=1.0), st.select_threshold(y, sigma=1.0).estimate
            loss = np.sum((shrunk.estimate - x) ** 2)
            rows.append([hindsight(y, x), np.sum((chosen - x) ** 2), loss, shrunk.risk - loss])
        (hard, chosen, loss, bias), sd = np.mean(rows, axis=0), np.std(rows, axis=0)
        se = sd / np.sqrt(count)
        ratios += [loss / hard] if hard > 1 else []
        ratio = f"{loss / hard:6.2f}" if hard > 1 else " " * 6
        figures = (
            f"{hard:9.0f} {chosen:7.0f} {loss:9.1f} ({se[2]:4.1f}) {ratio} {bias:10.1f} ({se[3]:4.1f}) {sd[3]:4.0f}"
        )
        print(f"{name:16} {figures}")
        peer = ebayes(pairs)
        if peer is not None:
            print(f"{'':16} EbayesThresh: posterior median {peer[0]:.0f}, mean {peer[1]:.0f}")
    print(f"geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.2f}")
    if shutil.which("Rscript") is None:
        print("R is not installed: EbayesThresh is left out (Debian: r-cran-ebayesthresh).")


TRANSFORMS = {
    "orthogonal, db4": (
        lambda y: pywt.wavedec2(y, "db4", mode="periodization", level=4),
        lambda c: pywt.waverec2(c, "db4", mode="periodization"),
    ),
    "undecimated, Haar": (
        lambda y: pywt.swt2(y, "haar", 4, norm=True, trim_approx=True),
        lambda c: pywt.iswt2(c, "haar", norm=True),
    ),
}


def pictures():
    print("\nPSNR of pictures with noise of 20 grey levels, one draw")
    for label, (forward, back) in TRANSFORMS.items():
        for picture in ("camera", "ascent", "aero"):
            x = getattr(pywt.data, picture)().astype(float)
            coeffs = forward(x + np.random.default_rng(2026).normal(0, 20, x.shape))
            psnr = []
            for rule in ("hard", "soft", "posterior"):
                found = st.threshold_coeffs(coeffs, sigma=20.0, rule=rule, norm=label.startswith("und"))
                psnr.append(20 * np.log10(255) - 10 * np.log10(np.mean((back(found.coeffs) - x) ** 2)))
            print(f"{label:18} {picture:8} hard {psnr[0]:.2f}  soft {psnr[1]:.2f}  posterior {psnr[2]:.2f}")


def figure(path, count):
    """Draw the estimate against y for two signals, and the losses of all."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for ax, name in zip(axes, ["500 at 5", "Laplace(1)"], strict=False):
        _, y = next(draws(name, 1))
        order = np.argsort(y)
        selection = st.select_threshold(y, sigma=1.0)
        ax.plot(y[order], y[order], ":", color="0.6", label="y")
        ax.plot(y[order], selection.estimate[order], ".", ms=2, color="C1", label="hard, chosen threshold")
        ax.plot(y[order], st.shrink(y, sigma=1.0).estimate[order], color="C0", label="posterior mean")
        ax.set(title=name, xlabel="y / sigma", ylabel="estimate / sigma")
        ax.legend(fontsize=8)
    names = [name for name in SIGNALS if name != "pure noise"]
    losses = np.array(
        [
            np.mean(
                [[hindsight(y, x), np.sum((st.shrink(y, sigma=1.0).estimate - x) ** 2)] for x, y in draws(n, count)], 0
            )
            for n in names
        ]
    )
    axes[2].barh(names, losses[:, 1] / losses[:, 0], color="C0")
    axes[2].axvline(1.0, color="C1")
    axes[2].invert_yaxis()
    axes[2].set(title="loss over the best threshold's")
    fig.savefig(path, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--figure", help="draw into this file instead")
    options = parser.parse_args()
    if options.figure:
        figure(options.figure, options.draws)
    else:
        table(options.draws)
        pictures()
