"""
Denoise a volume
================

Three axes of space are denoised as a whole: neighbouring slices help each other.
"""

import matplotlib.pyplot as plt
import numpy as np

import scorethresh as st

z, y, x = np.mgrid[-1:1:32j, -1:1:80j, -1:1:80j]
clean = 100.0 * (x**2 + y**2 + z**2 < 0.8) + 60.0 * ((x - 0.3) ** 2 + y**2 + z**2 < 0.1)
clean += 15 * np.sin(12 * x) * (clean > 0)
noisy = clean + np.random.default_rng(0).normal(0.0, 25.0, clean.shape)

found = st.Denoiser().run(noisy)
slices = np.stack([st.denoise(one) for one in noisy[14:18]])
whole, apart = (np.sqrt(np.mean((a - clean[14:18]) ** 2)) for a in (found.estimate[14:18], slices))
print(f"error in four slices: {whole:.1f} as a volume, {apart:.1f} slice by slice, 25 before")

# %%
# The middle slice:

found.plot(noisy)
plt.show()
