"""
Denoise a colour picture
========================

Name the axis of colours. They are denoised together, because edges lie at the same places.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import scorethresh as st

clean = load_sample_image("flower.jpg")[130:322, 230:486]
rng = np.random.default_rng(0)
noisy = np.clip(clean + rng.normal(0.0, 25.0, clean.shape), 0, 255).astype(np.uint8)

found = st.Denoiser(channel_axis=-1).run(noisy)
print(found)

# %%
# The picture keeps its type, 8 bits per colour. The last panel is the predicted error: where the flower has edges, more
# of it is left.

axes = found.plot(noisy, channel_axis=-1, error=True)
true = np.sqrt(np.mean((found.estimate.astype(float) - clean) ** 2))
print(f"error {found.predicted_mse**0.5:.1f} predicted, {true:.1f} true")
plt.show()
