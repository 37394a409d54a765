"""What the denoiser returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._validate import Array
from .experts.bands import Band
from .plan import Plan

__all__ = ["Band", "Denoised"]

# The peak of integer images, whatever values occur in them.
PEAKS = {"uint8": 255.0, "uint16": 65535.0}


@dataclass(frozen=True, eq=False, repr=False)
class Denoised:
    """What a `Denoiser` found.

    Attributes
    ----------
    estimate : ndarray
        The denoised data, with the shape, dtype and units of y. A masked array if y was one.
    sigma : float or ndarray
        The noise level, given or estimated; one per channel if there are channels. For Poisson noise 1, that of the
        stabilised data.
    predicted_mse : float
        Prediction of the mean squared error per entry (of one part, if y is complex), in the units of y squared. Below
        zero it says that `sigma` is too large.
    stderr : float
        Standard error of `predicted_mse`, for a known noise level.
    bands : tuple of Band
        Threshold, noise level, kept fraction and risk curve of every wavelet band, in units of `sigma`.
    weights : dict
        The weight of each expert in the blend, per channel.
    plans : tuple of Plan
        What was done, per channel: frozen, picklable, to be applied to other tiles.

    See Also
    --------
    Denoiser : makes it.
    """

    estimate: NDArray[Any]
    sigma: float | Array
    predicted_mse: float
    stderr: float
    bands: tuple[Band, ...]
    weights: dict[str, float]
    plans: tuple[Plan, ...] = field(default=())

    def predicted_psnr(self, data_range: float | None = None) -> float:
        """Return the predicted peak signal-to-noise ratio in decibels.

        Parameters
        ----------
        data_range : float, optional
            That of the clean data. By default 255 for 8-bit data, 65535 for 16-bit, else the range of the finite
            entries of the estimate.

        Returns
        -------
        float
            Infinity if no error is predicted, or if the estimate is constant.
        """
        if data_range is None:
            estimate = np.abs(self.estimate) if np.iscomplexobj(self.estimate) else self.estimate
            known = np.ma.getdata(estimate)[np.isfinite(estimate)].astype(np.float64)
            data_range = PEAKS.get(estimate.dtype.name) or float(np.ptp(known))
            if not data_range:
                return math.inf
        if self.predicted_mse <= 0:
            return math.inf
        return 10 * math.log10(_validate.positive(data_range, "data_range") ** 2 / self.predicted_mse)

    def plot(self, y: Any = None, axes: Any = None, *, channel_axis: int | None = None) -> Any:
        """Draw y, the estimate and what was removed: `scorethresh.viz.plot_denoised`."""
        from ..viz.plot import plot_denoised

        return plot_denoised(self, y, axes, channel_axis=channel_axis)

    def __repr__(self) -> str:
        low, high = np.min(self.sigma), np.max(self.sigma)
        level = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        kept = f", {np.mean([b.kept for b in self.bands]):.1%} of their coefficients kept" if self.bands else ""
        return (
            f"<Denoised: {' x '.join(map(str, self.estimate.shape))} {self.estimate.dtype}, sigma {level}; predicted "
            f"mse {self.predicted_mse:.4g} +- {self.stderr:.2g}; {len(self.bands)} bands{kept}>"
        )
