"""Denoise a picture and an electrocardiogram without any parameter: `make demo`.

Print the predicted and the true error of both. Save before, after and a risk curve in out/demo.png.
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st

TARGET = Path(__file__).parent.parent / "out" / "demo.png"


def decibels(mse, peak):
    return 10 * np.log10(peak**2 / mse)


def show(name, clean, noisy, found, noise):
    peak = 255 if clean.ndim == 2 else np.ptp(clean)
    true, before = (np.mean((a - clean) ** 2) for a in (found.estimate, noisy))
    print(f"{name}: {' x '.join(map(str, clean.shape))} samples, white noise of standard deviation {noise:g}")
    print(f"  noise level  estimated {found.sigma:.2f}")
    print(f"  noisy        PSNR {decibels(before, peak):.2f} dB")
    error = f"mean squared error {found.predicted_mse:.2f} ± {found.stderr:.2f}"
    print(f"  predicted    PSNR {found.predicted_psnr(peak):.2f} dB, {error}")
    print(f"  true         PSNR {decibels(true, peak):.2f} dB, mean squared error {true:.2f}")
    print(f"  made of      {', '.join(f'{w:.0%} {part}' for part, w in found.weights.items() if w > 0.005)}")


def main():
    rng = np.random.default_rng(1)
    picture, heart = pywt.data.camera().astype(float), pywt.data.ecg().astype(float)
    noisy_picture = picture + rng.normal(scale=20, size=picture.shape)
    noisy_heart = heart + rng.normal(scale=10, size=heart.shape)
    found_picture, found_heart = (st.Denoiser().run(y) for y in (noisy_picture, noisy_heart))
    show("picture", picture, noisy_picture, found_picture, 20)
    show("electrocardiogram", heart, noisy_heart, found_heart, 10)

    figure = plt.figure(figsize=(11, 6.4), layout="constrained")
    axes = figure.subplot_mosaic([["before", "after", "risk"], ["heart"] * 3], height_ratios=[1.6, 1])
    for name, image in (("before", noisy_picture), ("after", found_picture.estimate)):
        axes[name].imshow(image[60:260, 150:350], cmap="gray", vmin=0, vmax=255)
        axes[name].set(title={"before": "noisy", "after": "denoised"}[name], xticks=[], yticks=[])
    band = found_picture.bands[3]
    band.curve.plot(axes["risk"])
    axes["risk"].set_title(f"estimated risk, band {band.name}")
    axes["heart"].plot(noisy_heart, color="0.7", lw=0.8, label="noisy")
    axes["heart"].plot(found_heart.estimate, color="k", lw=1.2, label="denoised")
    axes["heart"].set(title="electrocardiogram", xlabel="sample", ylabel="amplitude", xlim=(0, heart.size))
    axes["heart"].legend(frameon=False, ncols=2)
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, dpi=110)
    print(f"saved {TARGET.relative_to(Path.cwd()) if TARGET.is_relative_to(Path.cwd()) else TARGET}")


if __name__ == "__main__":
    main()
