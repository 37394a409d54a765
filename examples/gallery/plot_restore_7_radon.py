"""
Tomography with an operator of your own
=======================================

A scanner measures sums along lines, from 40 directions. There is no ready operator for that, so this example makes one:
a sparse matrix. `restore` takes any linear operator with an exact adjoint.

The functions `radon` and `iradon` of scikit-image are no such pair: each interpolates in its own way, and `restore`
refuses them. A matrix has its transpose, which is exact.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import fft, sparse

import scorethresh as st

n, angles = 96, np.arange(40) * 180 / 40
i, j = (np.mgrid[:n, :n] - n / 2) / n
ellipses = [(0, 0, 0.44, 0.34, 100), (0, 0, 0.41, 0.31, -70), (0.1, 0.12, 0.12, 0.06, 20), (-0.1, -0.1, 0.05, 0.1, -15)]
ellipses += [(0.2, -0.12, 0.03, 0.03, 20), (-0.2, 0.08, 0.03, 0.02, 15), (0.28, 0.0, 0.02, 0.06, 25)]
clean = sum(value * ((i - a) ** 2 / r**2 + (j - b) ** 2 / s**2 < 1) for a, b, r, s, value in ellipses)

# %%
# Seen from one direction, a pixel falls between two detectors. They share its value by their distance.

row, column = np.mgrid[:n, :n] - n // 2
turn = np.deg2rad(angles)
place = column[..., None] * np.cos(turn) - row[..., None] * np.sin(turn) + n // 2
left = np.floor(place).astype(int)
pixel = np.broadcast_to(np.arange(n * n).reshape(n, n, 1), place.shape)
direction = np.broadcast_to(np.arange(angles.size), place.shape)
entries = []
for detector, share in ((left, 1 - (place - left)), (left + 1, place - left)):
    inside = (detector >= 0) & (detector < n)
    entries.append((share[inside], detector[inside] * angles.size + direction[inside], pixel[inside]))
share, measurement, seen = map(np.concatenate, zip(*entries, strict=True))
scanner = sparse.csr_array((share, (measurement, seen)), shape=(n * angles.size, n * n))

# %%
# The data are a vector here, so `shape` says what x looks like. The noise level of a measurement is 1% of the largest.

rng = np.random.default_rng(0)
sums = scanner @ clean.ravel()
sigma = 0.01 * sums.max()
y = sums + rng.normal(0.0, sigma, sums.size)
found = st.Restorer(scanner, sigma=sigma, shape=(n, n)).run(y)
print(found.verdict)

# %%
# Filtered back-projection is the usual way: a filter along the detectors, then the transpose. The width of its window
# trades noise against detail; here it has the best of four, chosen by the true error.

sinogram = y.reshape(n, angles.size)
frequency = fft.rfftfreq(2 * n)[:, None]
projections = []
for width in (0.1, 0.15, 0.2, 0.3):
    window = np.abs(frequency) * np.exp(-((frequency / width) ** 2))
    filtered = fft.irfft(fft.rfft(sinogram, 2 * n, axis=0) * window, axis=0)[:n]
    projections.append((scanner.T @ filtered.ravel()).reshape(n, n) * np.pi / angles.size)
usual = min(projections, key=lambda x: np.mean((x - clean) ** 2))

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
axes[0].imshow(sinogram.T, cmap="gray", aspect="auto")
axes[0].set_title("measured")
for ax, (title, image) in zip(
    axes[1:], (("filtered back-projection", usual), ("restored", found.estimate), ("clean", clean)), strict=True
):
    ax.imshow(image, cmap="gray", vmin=0, vmax=100)
    ax.set_title(title)
for ax in axes:
    ax.set_axis_off()
for title, image in (("filtered back-projection", usual), ("restored", found.estimate)):
    print(f"{title}: root mean squared error {np.sqrt(np.mean((image - clean) ** 2)):.2f}")
error = np.mean((scanner @ (found.estimate - clean).ravel()) ** 2)
print(f"mean squared error of A x: predicted {found.predicted_mse:.1f} +- {found.stderr:.1f}, true {error:.1f}")
plt.show()
