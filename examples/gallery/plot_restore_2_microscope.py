"""
A microscope's stack with a measured point spread function
==========================================================

A microscope blurs along the optical axis more than across it. Its point spread function is measured on a bead that is
smaller than the resolution. Here both, the bead and the stack, are simulated.
"""

import matplotlib.pyplot as plt
import numpy as np

import scorethresh as st

rng = np.random.default_rng(0)
z, y, x = np.mgrid[-5:6, -4:5, -4:5]
psf = np.exp(-(z**2) / (2 * 1.8**2) - (y**2 + x**2) / (2 * 1.1**2))
psf /= psf.sum()

# The mean of 20 pictures of the bead, less the background. What is left of the noise is cut off, and the sum made 1.
bead = np.mean([20_000 * psf + rng.normal(100.0, 3.0, psf.shape) for _ in range(20)], axis=0) - 100.0
measured = np.where(bead > 3.0, bead, 0.0)
measured /= measured.sum()

# %%
# Threads and spots in a volume of 34 x 72 x 72, seen through the microscope.

clean = np.zeros((34, 72, 72))
for _ in range(14):
    t = np.linspace(0, 1, 400)
    start, end = rng.uniform(0, 1, (2, 3)) * clean.shape
    bend = np.sin(np.pi * t) * rng.uniform(-12, 12)
    line = (start + np.outer(t, end - start) + np.outer(bend, [0.1, 0.5, -0.5])).astype(int)
    inside = ((line >= 0) & (line < clean.shape)).all(axis=1)
    clean[tuple(line[inside].T)] = 1000.0
clean = st.Blur(st.gaussian_psf(0.6, ndim=3), "periodic")(clean)
microscope = st.Blur(psf)
stack = microscope(clean)
stack += rng.normal(0.0, 3.0, stack.shape)

found = st.Restorer(st.Blur(measured), steps=4).run(stack)
print(found.verdict)

inside = clean[tuple(slice(k // 2, k // 2 + n) for k, n in zip(psf.shape, stack.shape, strict=True))]
print(f"mean squared error of x: {np.mean((stack - inside) ** 2):.0f} before, "
      f"{np.mean((found.estimate - inside) ** 2):.0f} after")  # fmt: skip

figure, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained", height_ratios=[2, 1])
for column, (title, volume) in enumerate((("stack", stack), ("restored", found.estimate), ("clean", inside))):
    for ax, axis in zip(axes[:, column], (0, 1), strict=True):
        ax.imshow(volume.max(axis=axis), cmap="gray", vmin=0, vmax=np.percentile(inside.max(axis=0), 99))
        ax.set_axis_off()
    axes[0, column].set_title(f"{title}, from above and from the side")
plt.show()
