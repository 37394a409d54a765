"""
More pixels than the camera had
===============================

Each pixel of a camera averages the light that falls on it. :class:`scorethresh.Downsample` says so, and the restored
picture has four pixels for each.
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st

clean = pywt.data.camera()[90:250, 140:300].astype(float)
camera = st.Downsample(2)
small = camera(clean)
small += np.random.default_rng(0).normal(scale=2.0, size=small.shape)

larger = st.restore(small, camera)
repeated = small.repeat(2, axis=0).repeat(2, axis=1)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, (title, image) in zip(axes, (("camera", small), ("restored", larger), ("clean", clean)), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    ax.set_title(f"{title}, {' x '.join(map(str, image.shape))}")
    ax.set_axis_off()
for title, image in (("pixels repeated", repeated), ("restored", larger)):
    print(f"{title}: mean squared error {np.mean((image - clean) ** 2):.0f}")
plt.show()
