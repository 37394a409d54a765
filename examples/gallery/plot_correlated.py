"""
Noise that is correlated
========================

Demosaicing, resampling and compression blur the noise. A denoiser for white noise takes its clumps for details.
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt
from scipy.ndimage import gaussian_filter

import scorethresh as st

clean = pywt.data.camera()[60:316, 120:376].astype(float)
rng = np.random.default_rng(0)
blurred = gaussian_filter(rng.normal(size=clean.shape), 1.0, mode="wrap")
noisy = clean + 20 * blurred / blurred.std()

# %%
# By default the noise model is told from the data:

found = st.Denoiser().run(noisy)
white = st.Denoiser(noise="white").run(noisy)
for name, one in (("default", found), ("white", white)):
    error = np.sqrt(np.mean((one.estimate - clean) ** 2))
    print(f"{name}: {one.noise.name}; error {one.predicted_mse**0.5:.1f} predicted, {error:.1f} true, 20 before")
    print(f"  {one.verdict}")

# %%

figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
shown = {"noisy": noisy, "taken for white": white.estimate, "default": found.estimate}
for ax, (title, image) in zip(axes, shown.items(), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
