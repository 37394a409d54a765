"""An estimate with its divergence: what can be scored, tuned, blended and predicted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import Floats

__all__ = ["Estimate"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """What an estimator made of data, and how much of the noise it let through.

    Attributes
    ----------
    value : ndarray
        The estimate x(y). In the denoiser: (pieces, parts, *shape), parts being the real and imaginary one.
    divergence : ndarray
        ``tr(Sigma dx/dy)``, Sigma the noise covariance, the derivative with every jump included. Per entry where it is
        known per entry, summed over the parts: (pieces, *shape). Else its mean per entry: (pieces, 1, ...).

    Notes
    -----
    The risk is estimated by ``||y - x||^2 - tr(Sigma) + 2 divergence``.
    """

    value: Floats
    divergence: Floats

    def total_divergence(self, weights: Floats | None = None) -> float:
        """Return the divergence summed over all entries, each times its weight."""
        each = np.broadcast_to(self.divergence, self.value[:, 0].shape)
        return float((each if weights is None else each * weights).sum(dtype=np.float64))

    def without_map(self, weights: Floats | None = None) -> Estimate:
        """Return the estimate with the mean of the divergence in each piece, which has the same weighted sum."""
        axes = tuple(range(1, self.divergence.ndim))
        if self.divergence.size == len(self.divergence):
            return self
        if weights is None:
            return Estimate(self.value, self.divergence.mean(axis=axes, keepdims=True, dtype=np.float64))
        total = (self.divergence * weights).sum(axis=axes, keepdims=True, dtype=np.float64)
        count = weights.sum(axis=axes, keepdims=True, dtype=np.float64)
        return Estimate(self.value, np.divide(total, count, out=np.zeros_like(total), where=count > 0))
