"""
Denoise a signal
================

An electrocardiogram with noise added, 1024 samples. The noise level is estimated from the signal itself.
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt

import scorethresh as st

clean = pywt.data.ecg().astype(float)
noisy = clean + np.random.default_rng(0).normal(scale=10.0, size=clean.shape)

found = st.Denoiser().run(noisy)
print(f"noise level        {found.sigma:.1f} estimated, 10 true")
print(f"mean squared error {found.predicted_mse:.0f} +- {found.stderr:.0f} predicted, ", end="")
print(f"{np.mean((found.estimate - clean) ** 2):.0f} true, 100 before")

# %%
# A few heartbeats:

figure, axes = plt.subplots(2, 1, figsize=(9, 5), sharex=True, sharey=True, layout="constrained")
top, bottom = axes
top.plot(noisy, color="0.7", lw=0.8, label="noisy")
top.plot(found.estimate, color="C0", lw=1.4, label="denoised")
bottom.plot(clean, color="0.3", lw=1.0, label="clean")
bottom.plot(found.estimate, color="C0", lw=1.4, label="denoised")
bottom.set(xlim=(100, 500), xlabel="sample")
for ax in axes:
    ax.legend(frameon=False, loc="upper right")

# %%
# Every wavelet band has its own threshold. Level 1 is the finest: noise dominates, and most coefficients are removed.
# At coarse levels the signal dominates, and little is removed.

bands = [band for band in found.bands if band.name.startswith("sym8")]
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.bar(range(1, len(bands) + 1), [100 * band.kept for band in bands], color="C0")
ax.set(xlabel="level of the sym8 wavelet", ylabel="coefficients kept, %")
plt.show()
