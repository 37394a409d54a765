"""What the low-rank denoiser returns, and how its error is predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._validate import Array
from .patch_sums import PatchSums
from .series import Series

__all__ = ["LowRankDenoised", "predict_risk", "predict_series"]


@dataclass(frozen=True, eq=False, repr=False)
class LowRankDenoised:
    """What a `LowRankDenoiser` found.

    Attributes
    ----------
    estimate : ndarray
        The denoised series, with the shape, dtype and units of y. Entries that were masked, NaN or constant are as
        they were.
    sigma : ndarray
        The noise level at every entry of a volume, given or estimated; of one part, if y is complex. 0 where there is
        none.
    rank : ndarray
        The mean rank of the patches that cover an entry, their mean over the patch not counted.
    predicted_mse : float
        Prediction of the mean squared error per entry and volume (of one part, if y is complex), in units of y squared,
        over the entries that hold noise.
    stderr : float
        Standard error of `predicted_mse`.
    patch : tuple of int
        The size of the patches.

    See Also
    --------
    LowRankDenoiser : makes it.
    """

    estimate: NDArray[Any]
    sigma: Array
    rank: Array
    predicted_mse: float
    stderr: float
    patch: tuple[int, ...]
    risk: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def unchanged(cls, series: Series) -> LowRankDenoised:
        """Return the result for a series without noise."""
        shape = series.valid.shape
        return cls(series.original.copy(), np.zeros(shape), np.zeros(shape), 0.0, 0.0, (), np.zeros(shape))

    def error_map(self) -> Array:
        """Return the predicted mean squared error at every entry of a volume, averaged over a patch around it.

        Returns
        -------
        ndarray
            In units of y squared; NaN where there is no noise. Patches overlap, so neighbours are alike.
        """
        from scipy.ndimage import uniform_filter

        known = self.sigma > 0
        if not known.any():
            return np.full(self.sigma.shape, np.nan)
        share = uniform_filter(known.astype(float), self.patch, mode="constant")
        mean = uniform_filter(np.where(known, self.risk, 0.0), self.patch, mode="constant")
        return np.where(known, np.maximum(mean / np.maximum(share, 1e-12), 0.0), np.nan)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.estimate.shape))
        known = self.sigma[self.sigma > 0]
        level = f"{np.median(known):.4g}" if known.size else "0"
        ranks = self.rank[self.sigma > 0]
        rank = f"{np.median(ranks):.1f}" if ranks.size else "0"
        return (
            f"<LowRankDenoised: {shape} {self.estimate.dtype}, median sigma {level}, median rank {rank}; predicted mse "
            f"{self.predicted_mse:.4g} +- {self.stderr:.2g}>"
        )


def predict_series(
    series: Series, levels: Array, sums: PatchSums, patch: tuple[int, ...], common_error: float = 0.0
) -> LowRankDenoised:
    """Return the weighted mean of the patches, with the maps and the predicted error.

    The squares of the levels may all be wrong by the relative `common_error`.
    """
    value, risk = _mean_and_risk(series, levels, sums)
    volumes, parts = series.values.shape[-1], series.parts
    known = series.valid
    level = np.where(known, levels, 0.0)
    mse = float(risk[known].mean())
    # The variance of the estimate of a risk, per real number: 2 sigma^4, plus 4 sigma^2 times the error.
    variance = (2 * level[known] ** 4 + 4 * level[known] ** 2 * max(mse, 0.0)).mean() / (known.sum() * volumes * parts)
    variance += (common_error * (level[known] ** 2).mean()) ** 2
    rank = sums.rank / np.where(sums.weight > 0, sums.weight, 1.0)
    return LowRankDenoised(series.restored(value), level, rank, mse, math.sqrt(variance), patch, risk)


def predict_risk(series: Series, levels: Array, sums: PatchSums) -> float:
    """Return the estimated risk summed over the entries, in units of the noise level."""
    return float((_mean_and_risk(series, levels, sums)[1] / levels**2).sum())


def _mean_and_risk(series: Series, levels: Array, sums: PatchSums) -> tuple[Floats, Array]:
    """Return the weighted mean of the patches, and the estimated risk of an entry: per volume and part, 0 if not valid.

    The mean overwrites the sums, for the sake of memory.
    """
    volumes, parts = series.values.shape[-1], series.parts
    weight = np.where(sums.weight > 0, sums.weight, 1.0)
    unit = levels * np.sqrt(parts)
    value = sums.value
    value *= (unit / weight).astype(value.real.dtype)[..., None]
    residual = np.zeros(levels.shape)
    for k in range(volumes):  # one volume at a time needs no array of the size of y
        residual += np.abs(series.values[..., k] - value[..., k]).astype(np.float64) ** 2
    risk = (residual + unit**2 * (2 * sums.divergence / weight - volumes)) / (volumes * parts)
    return value, np.where(series.valid, risk, 0.0)
