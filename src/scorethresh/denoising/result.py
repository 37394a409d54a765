"""What the denoiser returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _validate
from .._containers import squares_like, values_of
from .._validate import Array
from ..noise.base import NoiseModel
from ..noise.models import WhiteNoise
from .error_map import ErrorBlocks
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
        The denoised data, with the shape, dtype and units of y. A masked array if y was one; so are Series and
        DataFrames of pandas, and quantities of pint.
    sigma : float or ndarray
        The noise level, given or estimated; one per channel if there are channels. For Poisson noise 1, that of the
        stabilised data.
    predicted_mse : float
        Prediction of the mean squared error per entry (of one part, if y is complex), in the units of y squared. It is
        never negative; `warnings` say so if the estimated risk was.
    stderr : float
        Standard error of `predicted_mse`. If the noise level was estimated, its uncertainty is part of it.
    bands : tuple of Band
        Threshold, noise level, kept fraction and risk curve of every wavelet band, in units of `sigma`.
    weights : dict
        The weight of each expert in the blend, per channel.
    plans : tuple of Plan
        What was done, per channel: frozen, picklable, to be applied to other tiles.
    noise : NoiseModel
        The noise model that was used: the one given, or that which fits the data.
    verdict : str
        Whether the noise model holds, in words, and what to do if it does not.
    warnings : tuple of str
        The assumptions that fail, one sentence each. They were shown as `AssumptionWarning` too.
    outliers : int
        Entries that were replaced because they stand alone far from their neighbours.
    error_blocks : ErrorBlocks, optional
        What `error_map` is drawn from.

    See Also
    --------
    Denoiser : makes it.
    """

    estimate: Any
    sigma: float | Array
    predicted_mse: float
    stderr: float
    bands: tuple[Band, ...]
    weights: dict[str, float]
    plans: tuple[Plan, ...] = ()
    noise: NoiseModel = field(default_factory=WhiteNoise)
    verdict: str = ""
    warnings: tuple[str, ...] = ()
    outliers: int = 0
    error_blocks: ErrorBlocks | None = None

    def error_map(self) -> Any:
        """Return the predicted squared error at every entry, in the units of y squared.

        Returns
        -------
        ndarray, or what y is
            Of the shape of one channel, averaged over channels; its mean is `predicted_mse` if no entry is missing.
            Each value tells about a neighbourhood: a Gaussian of standard deviation 12 pixels in images, 6 voxels in
            volumes, 96 samples in signals. Zeros if there was no noise.

        Notes
        -----
        Take the root for an error in the units of y. Within a neighbourhood, errors are larger at edges.
        """
        if self.error_blocks is None:
            if np.ndim(self.predicted_mse):
                msg = "there is no map of the error of a batch. Denoise one sample by itself: Denoiser(...).run(y[k])."
                raise ValueError(msg)
            return squares_like(np.zeros(np.shape(values_of(self.estimate))), self.estimate)
        return squares_like(self.error_blocks.map(), self.estimate)

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
            estimate = values_of(self.estimate)
            estimate = np.abs(estimate) if np.iscomplexobj(estimate) else estimate
            known = np.ma.getdata(estimate)[np.isfinite(estimate)].astype(np.float64)
            return peak_ratio(PEAKS.get(estimate.dtype.name) or float(np.ptp(known)), self.predicted_mse)
        return peak_ratio(_validate.positive(data_range, "data_range"), self.predicted_mse)

    def plot(self, y: Any = None, axes: Any = None, *, channel_axis: int | None = None, error: bool = False) -> Any:
        """Draw y, the estimate, what was removed and the map of errors: `scorethresh.viz.plot_denoised`."""
        from ..viz.plot import plot_denoised

        return plot_denoised(self, y, axes, channel_axis=channel_axis, error=error)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a small picture, the verdict, the numbers."""
        from ..viz.notebook import denoised_html

        return denoised_html(self)

    def __repr__(self) -> str:
        estimate = values_of(self.estimate)
        low, high = np.min(self.sigma), np.max(self.sigma)
        level = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        kept = f", {np.mean([b.kept for b in self.bands]):.1%} of their coefficients kept" if self.bands else ""
        return (
            f"<Denoised: {' x '.join(map(str, estimate.shape))} {estimate.dtype}, {self.noise.name}, "
            f"sigma {level}; predicted mse {np.mean(self.predicted_mse):.4g} +- {np.mean(self.stderr):.2g}; "
            f"{len(self.bands)} bands{kept}. {self.verdict}>"
        )


def peak_ratio(data_range: float, mse: float) -> float:
    """Return a peak signal-to-noise ratio in decibels; infinity if there is no range, or no error."""
    return 10 * math.log10(data_range**2 / mse) if data_range > 0 and mse > 0 else math.inf
