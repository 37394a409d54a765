"""
Complex data, and their magnitudes
==================================

Magnetic resonance measures complex numbers. Both parts are denoised together. If only magnitudes are left, their noise
is Rician: it has a floor.
"""

import matplotlib.pyplot as plt
import numpy as np

import scorethresh as st

y, x = np.mgrid[-1:1:160j, -1:1:160j]
tissue = 80.0 * (x**2 + 1.4 * y**2 < 0.7) + 60.0 * ((x - 0.25) ** 2 + y**2 < 0.08)
tissue += 10 * np.cos(30 * x) * (tissue > 100)
clean = tissue * np.exp(2j * x - 3j * y)
rng = np.random.default_rng(0)
noisy = clean + 15.0 * (rng.normal(size=clean.shape) + 1j * rng.normal(size=clean.shape))

found = st.Denoiser().run(noisy)
error = np.sqrt(np.mean(np.abs(found.estimate - clean) ** 2) / 2)
print(f"error of one part {found.predicted_mse**0.5:.1f} predicted, {error:.1f} true, 15 before")

# %%
# From the magnitudes alone, with ``noise="rician"``, the floor of the background is removed as well:

magnitudes = st.denoise(np.abs(noisy), noise="rician")
print(f"background: {np.abs(noisy)[tissue == 0].mean():.1f} before, {magnitudes[tissue == 0].mean():.1f} after, 0 true")

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
shown = {
    "magnitude, noisy": np.abs(noisy),
    "complex denoised": np.abs(found.estimate),
    "magnitudes denoised": magnitudes,
}
for ax, (title, image) in zip(axes, shown.items(), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=150)
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
