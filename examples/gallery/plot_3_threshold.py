"""
Choose a threshold
==================

Of 2000 coefficients, 3% hold signal. Which ones should be kept? Each method gives an answer. Here the truth is known,
so we can compute the loss of each.
"""

import matplotlib.pyplot as plt
import numpy as np

import scorethresh as st

rng = np.random.default_rng(4)
x0 = np.where(rng.random(2000) < 0.03, rng.laplace(scale=5.0, size=2000), 0.0)
y = x0 + rng.normal(size=x0.size)

chosen = st.select_threshold(y, sigma=1.0)
print(chosen)

# %%
# Coefficients above the threshold are kept.

kept = np.abs(y) >= chosen.threshold
figure, ax = plt.subplots(figsize=(9, 3.5), layout="constrained")
ax.plot(np.flatnonzero(~kept), y[~kept], ".", color="0.75", ms=3, label="killed")
ax.plot(np.flatnonzero(kept), y[kept], ".", color="C0", ms=6, label="kept")
for side in (1, -1):
    ax.axhline(side * chosen.threshold, color="C3", lw=1, label="threshold" if side > 0 else None)
ax.set(xlabel="coefficient", xlim=(0, y.size))
figure.legend(frameon=False, loc="outside upper right", ncols=3)

# %%
# All methods, with the squared error of each for this draw of noise. One draw is an anecdote; :doc:`the evidence
# </evidence>` has means over many.

for name, selection in st.compare(y, sigma=1.0).items():
    kept = np.count_nonzero(selection.estimate)
    loss = np.sum((selection.estimate - x0) ** 2)
    print(f"{name:10} threshold {selection.threshold:.2f}  keeps {kept:4}  error {loss:4.0f}")

# %%
# Pure noise: it is best to keep nothing, and the selection says so.

nothing = st.select_threshold(rng.normal(size=2000), sigma=1.0)
print(nothing.status, "-", nothing.status.remedy)
plt.show()
