"""
Keep or kill vectors
====================

Complex coefficients, or vectors of several channels, are often kept or set to zero as a whole, by their norm. A common
threshold is chosen from the norms.
"""

import matplotlib.pyplot as plt
import numpy as np

import scorethresh as st

rng = np.random.default_rng(1)
signal = np.where(rng.random(3000) < 0.05, 4.5 * np.exp(2j * np.pi * rng.random(3000)), 0.0)
y = signal + rng.normal(size=3000) + 1j * rng.normal(size=3000)

chosen = st.select_threshold(y, sigma=1.0)
print(chosen)

# %%
# The norm of a block of noise has a chi law, and around a mean a noncentral one. The fitted mixture of these gives the
# risk at every threshold.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
chosen.plot(axes[0])
chosen.curve.plot(axes[1])

# %%
# If real and imaginary parts are thresholded apart, a number survives if one part does. The error is larger.

apart = np.empty_like(y)
apart.real = st.select_threshold(y.real, sigma=1.0).estimate
apart.imag = st.select_threshold(y.imag, sigma=1.0).estimate
for name, estimate in (("together", chosen.estimate), ("parts apart", apart), ("nothing done", y)):
    print(f"{name:12} squared error {np.sum(np.abs(estimate - signal) ** 2):6.0f}")
print(f"{'predicted':12} squared error {chosen.risk:6.0f} +- {chosen.curve.stderr[chosen.curve.risk.argmin()]:.0f}")

# %%
# Vectors of any length work alike: name their axis.

vectors = rng.normal(size=(1000, 8))
vectors[:50] += 1.5
print(st.select_threshold(vectors, sigma=1.0, block_axis=-1))
plt.show()
