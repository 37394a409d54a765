"""
Fill gaps
=========

Seven of ten pixels are missing, and the others are noisy. What is in the gaps comes from the neighbourhood, and from
parts of the picture that look alike.
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st

rng = np.random.default_rng(0)
clean = pywt.data.ascent()[200:328, 150:278].astype(float)
known = rng.random(clean.shape) < 0.3
noisy = np.where(known, clean + rng.normal(scale=5.0, size=clean.shape), np.nan)

found = st.Restorer(st.Mask(known), sigma=5.0).run(noisy)
print(found.verdict)

# %%
# The predicted error is that of the known pixels. In the gaps it is larger, and no data say by how much.

error = (found.estimate - clean) ** 2
print(f"known pixels: predicted error {found.predicted_mse:.0f}, true error {error[known].mean():.0f}")
print(f"gaps: true error {error[~known].mean():.0f}")

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
panels = (("30% of the pixels", noisy), ("restored", found.estimate), ("clean", clean))
for ax, (title, image) in zip(axes, panels, strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
