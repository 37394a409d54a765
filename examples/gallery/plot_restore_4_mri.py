"""
Magnetic resonance from few radial lines
========================================

A scanner samples the Fourier transform of an image, here along 28 lines through the origin and with two coils. That is
23% of the samples. The image is complex: its phase varies.
"""

import matplotlib.pyplot as plt
import numpy as np

import scorethresh as st

rng = np.random.default_rng(0)
n = 128
i, j = (np.mgrid[:n, :n] - n / 2) / n
ellipses = [(0, 0, 0.42, 0.34, 100), (0, 0, 0.38, 0.3, -60), (0.1, 0.12, 0.12, 0.06, 60), (-0.1, -0.1, 0.05, 0.1, 90)]
ellipses += [(0.15, -0.12, 0.03, 0.03, 80), (-0.2, 0.08, 0.02, 0.03, 80), (0.25, 0.0, 0.015, 0.06, 50)]
clean = sum(value * ((i - a) ** 2 / r**2 + (j - b) ** 2 / s**2 < 1) for a, b, r, s, value in ellipses)
clean = clean * np.exp(1j * (1.0 + 3 * i - 2 * j**2))

lines = np.zeros((n, n), bool)
along = np.linspace(-n / 2, n / 2 - 1, 4 * n)
for angle in np.arange(28) * np.pi / 28:
    lines[np.rint(along * np.sin(angle)).astype(int), np.rint(along * np.cos(angle)).astype(int)] = True
coils = np.stack([np.exp(-((i - 0.4) ** 2 + j**2)), 1j * np.exp(-((i + 0.4) ** 2 + j**2))])

scanner = st.Fourier(lines, coils)
samples = scanner(clean)
samples += rng.normal(0.0, 3.0, samples.shape) + 1j * rng.normal(0.0, 3.0, samples.shape)

# %%
# The zero frequency comes first, as in `numpy.fft.fft2`. Entries of `samples` where `lines` is False are ignored.

found = st.Restorer(scanner, sigma=3.0, predict=False).run(samples)
print(found)
zero_filled = np.fft.ifft2(samples * lines, norm="ortho")
zero_filled = (coils.conj() * zero_filled).sum(axis=0) / (np.abs(coils) ** 2).sum(axis=0)

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
panels = (("samples", np.fft.fftshift(lines) * 100.0), ("zero filled", zero_filled), ("restored", found.estimate))
for ax, (title, image) in zip(axes, (*panels, ("clean", clean)), strict=True):
    ax.imshow(np.abs(image), cmap="gray", vmin=0, vmax=130)
    ax.set_title(title)
    ax.set_axis_off()
for title, image in panels[1:]:
    print(f"{title}: root mean squared error {np.sqrt(np.mean(np.abs(image - clean) ** 2)):.2f}")
plt.show()
