"""
Denoise an image
================

One call removes the noise. It also predicts the error, without the clean picture.
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st

clean = pywt.data.camera()[60:316, 120:376].astype(float)
noisy = clean + np.random.default_rng(0).normal(scale=20.0, size=clean.shape)

found = st.Denoiser().run(noisy)

# %%
# ``found.estimate`` is what ``st.denoise(noisy)`` returns.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
shown = {"clean": clean, "noisy": noisy, "denoised": found.estimate}
for ax, (title, image) in zip(axes, shown.items(), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    if image is not clean:
        title += f", {10 * np.log10(255**2 / np.mean((image - clean) ** 2)):.1f} dB"
    ax.set(title=title, xticks=[], yticks=[])

# %%
# The predicted error is only as good as the noise level. Here the estimated level is a little too high, so the
# prediction is too low by the difference of the squares. The standard error assumes that the level is right. If the
# level is given, the prediction agrees with the true error; see also :doc:`the limits </limits>`. The denoised picture
# is nearly the same.

for how, sigma in (("estimated", None), ("given", 20.0)):
    found = st.Denoiser(sigma=sigma).run(noisy)
    print(f"noise level {found.sigma:.2f} ({how})")
    print(f"  predicted mean squared error {found.predicted_mse:.0f} +- {found.stderr:.0f}")
    print(f"  true                         {np.mean((found.estimate - clean) ** 2):.0f}")

# %%
# The difference between noisy and denoised should look like noise. Edges that appear in it were lost.

figure, ax = plt.subplots(figsize=(4.2, 4), layout="constrained")
picture = ax.imshow(noisy - found.estimate, cmap="gray", vmin=-60, vmax=60)
ax.set(title="what was removed", xticks=[], yticks=[])
figure.colorbar(picture, shrink=0.8)
plt.show()
