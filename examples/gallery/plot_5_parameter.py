"""
Tune a denoiser of your own
===========================

Any function of the data and a parameter can be tuned, from the noisy data alone. Here a wavelet denoiser with one hard
threshold for all details, as many people write it. It jumps: a coefficient is kept or set to zero.
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st


def denoise(y, threshold):
    lowest, *details = pywt.wavedec2(y, "db4", mode="periodization", level=4)
    kept = [tuple(pywt.threshold(band, threshold, "hard") for band in level) for level in details]
    return pywt.waverec2([lowest, *kept], "db4", mode="periodization")


clean = pywt.data.camera()[60:316, 120:376].astype(float)
noisy = clean + np.random.default_rng(0).normal(scale=20.0, size=clean.shape)

thresholds = np.linspace(20.0, 110.0, 19)
found = st.select_parameter(denoise, noisy, thresholds, sigma=20.0)
print(found)

# %%
# The clean picture is known here, so the choice can be checked. The usual step of Monte Carlo SURE is tiny. It misses
# the jumps, takes thresholding for far less noisy than it is, and keeps too much.

loss = np.array([np.mean((denoise(noisy, t) - clean) ** 2) for t in thresholds])
tiny = st.select_parameter(denoise, noisy, thresholds, sigma=20.0, step=1e-4)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
found.plot(ax)
ax.plot(thresholds, loss / 20.0**2, "C3--", label="true error")
ax.plot(thresholds, tiny.curve.risk / tiny.curve.noise_energy, "C0:", label="with a tiny step")
ax.set(xlabel="threshold", ylim=(0, 1.2))
ax.legend(frameon=False)
for name, chosen in (("this step", found), ("a tiny step", tiny)):
    print(f"{name}: threshold {chosen.parameter:.0f}, true error {loss[list(thresholds).index(chosen.parameter)]:.0f}")
print(f"the best: threshold {thresholds[loss.argmin()]:.0f}, true error {loss.min():.0f}")
plt.show()
