"""The paper's algorithm on the wavelet coefficients of a noisy picture: `make demo`.

Picks one hard threshold for all detail coefficients from the noisy data alone, prints the predicted and the true
error, and saves a picture of the risk curve in out/demo.png.
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st

NOISE = 20.0
TARGET = Path(__file__).parent.parent / "out" / "demo.png"


def details(image):
    """Return the detail coefficients of an orthonormal transform, and how to get an image back from others."""
    coefficients = pywt.wavedec2(image, "db4", mode="periodization", level=5)
    array, places = pywt.coeffs_to_array(coefficients)
    coarse = tuple(slice(n) for n in coefficients[0].shape)
    mask = np.ones(array.shape, dtype=bool)
    mask[coarse] = False

    def back(values):
        out = array.copy()
        out[mask] = values
        return pywt.waverec2(pywt.array_to_coeffs(out, places, "wavedec2"), "db4", mode="periodization")

    return array[mask], back


def psnr(mse):
    return 10 * np.log10(255**2 / mse)


def main():
    clean = pywt.data.camera().astype(float)
    noisy = clean + np.random.default_rng(1).normal(scale=NOISE, size=clean.shape)

    print(f"picture      {clean.shape[0]} x {clean.shape[1]}, white noise of standard deviation {NOISE:g}")
    print(f"noisy        PSNR {psnr(np.mean((noisy - clean) ** 2)):.2f} dB")
    y, back = details(noisy)
    for name, sigma in (("estimated", st.estimate_sigma(noisy)), ("known", NOISE)):
        selection = st.select_threshold(y, sigma=sigma, method="score")
        denoised = back(selection.estimate)
        # The few coarse coefficients are left as they are, and with them their noise.
        predicted = (selection.risk + (clean.size - y.size) * sigma**2) / clean.size
        true = np.mean((denoised - clean) ** 2)
        print(f"\nwith the {name} noise level, {sigma:.2f}:")
        print(f"  threshold  {selection.threshold:.2f}, {selection.threshold / sigma:.2f} sigma ({selection.status})")
        print(f"  kept       {np.count_nonzero(selection.estimate)} of {y.size} coefficients")
        print(f"  dof        {selection.dof:.0f}")
        print(f"  predicted  mean square error {predicted:6.2f}, PSNR {psnr(predicted):.2f} dB")
        print(f"  true       mean square error {true:6.2f}, PSNR {psnr(true):.2f} dB")

    truth = st.risk_curve(y, selection.curve.thresholds, sigma=NOISE, method=st.Oracle(details(clean)[0]))
    TARGET.parent.mkdir(exist_ok=True)
    draw(selection, truth, noisy, denoised)
    print(f"\nsaved {TARGET.relative_to(Path.cwd()) if TARGET.is_relative_to(Path.cwd()) else TARGET}")


def draw(selection, truth, noisy, denoised):
    figure = plt.figure(figsize=(12, 4.2), layout="constrained")
    curve_axes, *image_axes = figure.subplots(1, 3, width_ratios=[1.5, 1, 1])
    curve = selection.curve
    finite = np.isfinite(curve.thresholds)
    x = curve.thresholds[finite] / curve.sigma
    risk, band = (v[finite] / curve.size / curve.sigma**2 for v in (curve.risk, 2 * curve.stderr))
    curve_axes.fill_between(x, risk - band, risk + band, color="0.8", label="two standard errors")
    curve_axes.plot(x, truth.risk[finite] / curve.size / curve.sigma**2, "k--", lw=1.2, label="true risk")
    curve_axes.plot(x, risk, color="C0", lw=1.8, label="SCORE, from the noisy data")
    best = selection.threshold / curve.sigma, selection.risk / curve.size / curve.sigma**2
    curve_axes.plot(*best, "o", color="C3", ms=8, zorder=3, label="chosen threshold")
    curve_axes.annotate(f"{best[0]:.2f} $\\sigma$", best, (0, 12), textcoords="offset points", ha="center")
    curve_axes.set(
        xlabel="threshold / $\\sigma$",
        ylabel="risk per coefficient / $\\sigma^2$",
        ylim=(0, None),
        title="Risk of hard thresholding",
    )
    curve_axes.legend(frameon=False)
    for axes, image, title in zip(image_axes, (noisy, denoised), ("noisy", "denoised"), strict=True):
        axes.imshow(image[60:260, 150:350], cmap="gray", vmin=0, vmax=255)
        axes.set(title=title, xticks=[], yticks=[])
    figure.savefig(TARGET, dpi=110)


if __name__ == "__main__":
    main()
