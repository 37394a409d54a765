"""
The risk curve
==============

The risk of hard thresholding against the threshold: the true risk, computed from the clean picture, and estimates from
the noisy picture alone.
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st


def details(image):
    """Return the detail coefficients of an orthogonal wavelet transform, as a vector."""
    _, *levels = pywt.wavedec2(image, "db4", mode="periodization", level=4)
    return np.concatenate([band.ravel() for level in levels for band in level])


sigma = 20.0
clean = pywt.data.camera().astype(float)
noisy = clean + np.random.default_rng(0).normal(scale=sigma, size=clean.shape)
y = details(noisy)
thresholds = np.linspace(0.0, 5.0, 201) * sigma

curves = {}
for method in ("mixture", "score", "jansen"):
    curves[method] = st.risk_curve(y, thresholds, sigma=sigma, method=method)
truth = st.risk_curve(y, thresholds, sigma=sigma, method=st.Oracle(details(clean)))

# %%
# The mixture and SCORE follow the truth. Jansen's estimator assumes that all coefficients near the threshold are noise.
# It is too low where the signal adds coefficients there.

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.plot(thresholds / sigma, truth.risk / y.size, color="k", lw=3, alpha=0.3, label="true")
for name, curve in curves.items():
    (line,) = ax.plot(thresholds / sigma, curve.risk / y.size, lw=1.3, label=name)
    best = np.argmin(curve.risk)
    ax.plot(thresholds[best] / sigma, curve.risk[best] / y.size, "o", color=line.get_color())
ax.set(xlabel="threshold / sigma", ylabel="risk per coefficient", ylim=(0, 450))
ax.legend(frameon=False)

# %%
# Why not Stein's unbiased estimate? Without the jump, the degrees of freedom would be the number of coefficients kept,
# which is too low. ``Sure`` refuses the hard rule. Here is the count that it would have used.

count = np.array([np.count_nonzero(np.abs(y) >= t) for t in thresholds])
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ax.semilogy(thresholds / sigma, truth.dof, color="k", lw=3, alpha=0.3, label="true")
ax.semilogy(thresholds / sigma, curves["score"].dof, label="score")
ax.semilogy(thresholds / sigma, count, ls="--", label="coefficients kept")
ax.set(xlabel="threshold / sigma", ylabel="degrees of freedom")
ax.legend(frameon=False)
plt.show()
