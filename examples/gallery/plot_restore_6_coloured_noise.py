"""
Deblur in one step: invert, then denoise
========================================

Before iterations there was ForWaRD (Neelamani, Choi and Baraniuk 2004, doi:10.1109/TSP.2003.821103): divide by the
transfer function as far as the noise allows, then remove what noise is left. That noise is coloured, but its spectrum
is known. `denoise` takes it as `noise`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st

sigma = 2.0
clean = pywt.data.camera()[60:188, 150:278].astype(float)
blur = st.Blur(st.gaussian_psf(1.5), boundary="periodic")
blurred = blur(clean)
blurred += np.random.default_rng(0).normal(scale=sigma, size=blurred.shape)

point = np.zeros(clean.shape)
point[0, 0] = 1.0
transfer = np.fft.fft2(blur(point))


def invert(regularisation):
    """Return the regularised inverse of the data, and the spectrum of its noise."""
    inverse = transfer.conj() / (np.abs(transfer) ** 2 + regularisation)
    return np.fft.ifft2(np.fft.fft2(blurred) * inverse).real, sigma**2 * np.abs(inverse) ** 2


# %%
# The less the regularisation, the sharper the inverse, and the more noise there is for the denoiser.

print("regularisation   inverse   denoised   (mean squared error)")
for regularisation in (1e-3, 3e-4, 1e-4, 3e-5):
    inverse, spectrum = invert(regularisation)
    denoised = st.denoise(inverse, noise=spectrum)
    print(f"{regularisation:14g}   {np.mean((inverse - clean) ** 2):7.0f}   {np.mean((denoised - clean) ** 2):8.0f}")

# %%
# `restore` iterates, and has nothing to choose.

restored = st.restore(blurred, blur, sigma=sigma)
print(f"restore: mean squared error {np.mean((restored - clean) ** 2):.0f}")
inverse, spectrum = invert(1e-3)
panels = (("blurred", blurred), ("inverse", inverse), ("denoised", st.denoise(inverse, noise=spectrum)))
figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for ax, (title, image) in zip(axes, (*panels, ("restore", restored)), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    ax.set_title(f"{title}: error {np.mean((image - clean) ** 2):.0f}")
    ax.set_axis_off()
plt.show()
