"""
A series of volumes
===================

In diffusion and functional MRI, hyperspectral cubes and videos the same scene is measured many times. Neighbours behave
alike over the series, so a small patch of it is nearly of low rank, and noise is not.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

import scorethresh as st

rng = np.random.default_rng(0)
shape, volumes = (48, 48, 8), 40


def smooth(width):
    field = gaussian_filter(rng.normal(size=shape), width, mode="wrap")
    return field / field.std()


# Three kinds of tissue with borders, and a signal that decays in each at another rate.
shares = np.exp(5 * np.stack([smooth(5) for _ in range(3)], axis=-1))
shares /= shares.sum(axis=-1, keepdims=True)
times = np.linspace(0.0, 2.0, volumes)
clean = shares @ (np.array([10.0, 8.0, 12.0])[:, None] * np.exp(-np.outer([0.3, 1.0, 2.0], times)))
inside = np.hypot(*np.meshgrid(*[np.linspace(-1, 1, 48)] * 2)) < 0.9
clean[~inside] = 0.0

# A scanner stores magnitudes of complex numbers. Where there is no signal they are noise of positive mean.
y = np.abs(clean + rng.normal(size=clean.shape) + 1j * rng.normal(size=clean.shape))

found = st.LowRankDenoiser(noise="rician").run(y)
print(found)

# %%
# The noise level is estimated as a map, and the rank is chosen patch by patch. What was removed is noise without
# anatomy, and the floor of the background.

z, t = 4, 30
panels = [
    ("noisy", y[:, :, z, t], 0, 6),
    ("denoised", found.estimate[:, :, z, t], 0, 6),
    ("removed", (y - found.estimate)[:, :, z, t], -3, 3),
    ("rank", found.rank[:, :, z], 0, None),
    ("noise level", found.sigma[:, :, z], 0.8, 1.2),
    ("predicted rms error", np.sqrt(found.error_map()[:, :, z]), 0, None),
]
figure, axes = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
for ax, (title, picture, low, high) in zip(axes.ravel(), panels, strict=True):
    shown = ax.imshow(picture, cmap="gray", vmin=low, vmax=high)
    ax.set(title=title, xticks=[], yticks=[])
    figure.colorbar(shown, ax=ax, shrink=0.8)

# %%
# Without ``noise="rician"`` the noise is removed, but the floor of the magnitudes stays. It bends decay curves. A
# warning says so, which is caught here.

with warnings.catch_warnings(action="ignore", category=st.AssumptionWarning):
    plain = st.denoise_lowrank(y)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
dark = np.unravel_index(np.argmin(np.where(inside[..., None], clean[..., -1], np.inf)), shape)
for data, style, name in (
    (y, "0.7", "noisy"),
    (plain, "C0:", "noise taken for Gaussian"),
    (found.estimate, "C3", "Rician"),
    (clean, "k--", "truth"),
):
    ax.plot(times, data[dark], style, label=name)
ax.set(xlabel="time", ylabel="signal of one voxel", ylim=(0, None))
ax.legend(frameon=False)
tissue = np.broadcast_to(inside[:, :, None], shape)
for name, estimate in (("noisy", y), ("Gaussian", plain), ("Rician", found.estimate)):
    print(f"{name:8} mean squared error in tissue {np.mean((estimate - clean)[tissue] ** 2):.3f}")
plt.show()
