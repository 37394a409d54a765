"""
Denoise data in chunks
======================

A dask array need not fit into memory. The result does not depend on its chunks, and is that of data in memory.
"""

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st

clean = pywt.data.ascent().astype(float)
rng = np.random.default_rng(0)
noisy = clean + rng.normal(0.0, 20.0, clean.shape)

y = da.from_array(noisy, chunks=(200, 256))
found = st.Denoiser(choose="fast").run(y)
print(found.estimate)

# %%
# Only the thresholds are known so far. Ask for the estimate and the predicted error at once: the same tasks make both.

estimate, predicted = dask.compute(found.estimate, found.predicted_mse)
true = np.mean((estimate - clean) ** 2)
print(f"error {predicted**0.5:.1f} predicted, {true**0.5:.1f} true, 20 before")
whole = st.denoise(noisy, choose="fast")
print("the same as in memory:", np.array_equal(estimate, whole))

# %%
# The borders of the chunks are drawn over the noisy data. They leave no trace in the result.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for ax, image, title in zip(axes, (noisy, estimate), ("noisy, in chunks", "denoised"), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    ax.set(title=title, xticks=[], yticks=[])
for edge in (200, 400):
    axes[0].axhline(edge, color="#56b4e9", lw=1)
axes[0].axvline(256, color="#56b4e9", lw=1)
plt.show()
