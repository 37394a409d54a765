"""
Denoise counts
==============

Photons are counted. Where there are few, the noise is small but large against the signal: Poisson noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import scorethresh as st

rng = np.random.default_rng(3)
y, x = np.mgrid[:192, :192]
clean = 3.0 + 8 * np.exp(-((x - 96) ** 2 + (y - 96) ** 2) / 2500)
for a, b, c in rng.uniform((10, 0, 0), (60, 192, 192), (30, 3)):
    clean += a * np.exp(-((x - b) ** 2 + (y - c) ** 2) / 10)
counts = rng.poisson(clean)

found = st.Denoiser(noise="poisson").run(counts)
before, after = (np.sqrt(np.mean((image - clean) ** 2)) for image in (counts, found.estimate))
print(f"error {before:.2f} before, {after:.2f} after, {found.predicted_mse**0.5:.2f} predicted")

# %%
# The root of the counts has noise of nearly the same level everywhere. It is denoised and transformed back without
# bias. White noise, assumed instead, would be too weak at the stars and too strong in the dark:

white = st.Denoiser(noise="white").run(counts)
print(f"error {np.sqrt(np.mean((white.estimate - clean) ** 2)):.2f} with white noise")

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
shown = {"counts": counts, "denoised": found.estimate, "predicted error": np.sqrt(found.error_map())}
for ax, (title, image) in zip(axes, shown.items(), strict=True):
    picture = ax.imshow(image, cmap="cividis" if "error" in title else "gray", vmax=None if "error" in title else 30)
    ax.set(title=title, xticks=[], yticks=[])
    figure.colorbar(picture, ax=ax, shrink=0.8)
plt.show()
