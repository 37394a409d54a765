"""
Denoise an image
================

One call removes the noise. A second one, without the clean picture, says how large the error is.
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st

clean = pywt.data.camera()[60:316, 120:376].astype(float)
noisy = clean + np.random.default_rng(0).normal(scale=20.0, size=clean.shape)

found = st.Denoiser().run(noisy)
found

# %%
# ``found.estimate`` is what ``st.denoise(noisy)`` returns. The rest is what is known about it.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
for ax, image, title in zip(axes, (clean, noisy, found.estimate), ("clean", "noisy", "denoised"), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    psnr = "" if image is clean else f", {10 * np.log10(255**2 / np.mean((image - clean) ** 2)):.1f} dB"
    ax.set(title=title + psnr, xticks=[], yticks=[])

# %%
# Predicted from the noisy picture alone, with a standard error, and true:

print(f"noise level  {found.sigma:.1f} estimated, 20 true")
print(f"error        {found.predicted_mse:.0f} +- {found.stderr:.0f} predicted, ", end="")
print(f"{np.mean((found.estimate - clean) ** 2):.0f} true")
print(f"PSNR         {found.predicted_psnr(255):.1f} dB predicted")

# %%
# The difference between noisy and denoised should look like noise. Edges that show in it were lost.

figure, ax = plt.subplots(figsize=(4.2, 4), layout="constrained")
shown = ax.imshow(noisy - found.estimate, cmap="gray", vmin=-60, vmax=60)
ax.set(title="what was removed", xticks=[], yticks=[])
figure.colorbar(shown, shrink=0.8)
plt.show()
