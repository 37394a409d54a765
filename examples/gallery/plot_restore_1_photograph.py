"""
Sharpen a photograph that is out of focus
=========================================

A lens out of focus spreads every point into a disk. If its radius is not known, :func:`scorethresh.select_psf` finds
it, and :func:`scorethresh.restore` undoes the blur. Nothing is tuned: the noise level is estimated as well.
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st

clean = pywt.data.camera()[60:252, 150:342].astype(float)
lens = st.Blur(st.disk_psf(3.0))
blurred = lens(clean)
blurred += np.random.default_rng(0).normal(scale=2.0, size=blurred.shape)

chosen = st.select_psf(blurred, st.disk_psf, np.arange(1.0, 6.1, 0.25))
print(chosen.verdict)

# %%
# The border is treated as what it is: unknown. The data say nothing about pixels beyond it, and the estimate there is
# cut off. :class:`scorethresh.Restorer` also predicts the error of the estimate after another blur, ``A x``.

found = st.Restorer(st.Blur(chosen.psf)).run(blurred)
print(found.verdict)

# %%
# The prediction can be checked here, because the clean picture is known. So can the error of x itself, which cannot be
# predicted: part of it is in details that the lens has removed.

inside = clean[3:-3, 3:-3]
error = lens(np.pad(found.estimate, 3, mode="reflect")) - lens(np.pad(inside, 3, mode="reflect"))
print(f"A x: predicted error {found.predicted_mse:.2f}, true error {np.mean(error**2):.2f}")
print(f"x: {np.mean((blurred - inside) ** 2):.0f} before, {np.mean((found.estimate - inside) ** 2):.0f} after")

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
panels = (("blurred and noisy", blurred), ("restored", found.estimate), ("clean", inside))
for ax, (title, image) in zip(axes, panels, strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
