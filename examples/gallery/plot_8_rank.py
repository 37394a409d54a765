"""
How many components are real?
=============================

A matrix of measurements is often a few components and noise. Its singular values show how many: those of noise end at a
known edge. `select_rank` estimates the error of every rank from the noisy matrix alone.
"""

import matplotlib.pyplot as plt
import numpy as np

import scorethresh as st

rng = np.random.default_rng(0)
left, right = (np.linalg.qr(rng.normal(size=(n, 6)))[0] for n in (120, 60))
signal = (left * [60.0, 40.0, 30.0, 22.0, 17.0, 14.0]) @ right.T
y = signal + rng.normal(size=signal.shape)

found = st.select_rank(y)
print(found)
found.plot()

# %%
# The noise level was not given: it was read off the smaller singular values. The matrix without noise is known here, so
# the choice can be checked. The sixth component is so weak that it hardly matters whether it is kept.

u, s, v = np.linalg.svd(y, full_matrices=False)
losses = [np.sum(((u[:, :k] * s[:k]) @ v[:k] - signal) ** 2) for k in range(10)]
for k, loss in enumerate(losses):
    print(f"rank {k}: squared error {loss:6.0f}" + (" (chosen)" if k == found.rank else ""))
print(f"predicted for rank {found.rank}: {found.risk:.0f} +- {found.stderr:.0f}")

# %%
# Singular values of the noisy matrix are too large. Shrinking those that are kept has less error than any rank.

shrunk = st.select_rank(y, rule="shrink")
error = np.sum((shrunk.estimate - signal) ** 2)
print(f"shrunk: squared error {error:.0f}, predicted {shrunk.risk:.0f} +- {shrunk.stderr:.0f}")
plt.show()
