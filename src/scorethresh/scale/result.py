"""What the denoiser returns for data in chunks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _validate
from ..denoising.result import PEAKS, Denoised, peak_ratio

__all__ = ["LazyDenoised"]


@dataclass(frozen=True, eq=False, repr=False)
class LazyDenoised:
    """What a `Denoiser` found in a dask array. What needs all of the data is not computed yet.

    Attributes
    ----------
    estimate : dask array
        The denoised data, with the shape, dtype and chunks of y.
    predicted_mse, stderr : dask array
        The predicted mean squared error and its standard error: arrays without axes.
    sigma, bands, weights, plans, noise, verdict, warnings
        As in `Denoised`, and known already: they were decided on crops. Arrays of up to 2^22 entries are treated in one
        task; of these they are None, and `compute` returns them.
    like : DataArray, optional
        y, if it has names, which the estimate gets.

    See Also
    --------
    Denoised : what `compute` returns. It has the map of errors, which is as large as the data.

    Notes
    -----
    Estimate and prediction are made by the same tasks. To compute one after the other does the work twice: use
    `compute`, or ``dask.compute(found.estimate, found.predicted_mse)``.
    """

    estimate: Any
    predicted_mse: Any
    stderr: Any
    whole: Any
    sigma: Any = None
    bands: Any = None
    weights: Any = None
    plans: Any = None
    noise: Any = None
    verdict: Any = None
    warnings: Any = None
    like: Any = None

    def compute(self, **options: Any) -> Denoised:
        """Compute everything at once.

        Parameters
        ----------
        **options
            As in `dask.compute`, such as ``scheduler="processes"``.

        Returns
        -------
        Denoised
            As of data in memory. The estimate has to fit into memory; if it does not, store `estimate` instead.
        """
        import dask

        found: Denoised = dask.compute(self.whole, **options)[0]
        return found if self.like is None else replace(found, estimate=self.like.copy(data=found.estimate))

    def predicted_psnr(self, data_range: float | None = None) -> Any:
        """Return the predicted peak signal-to-noise ratio in decibels, as a dask array without axes.

        Parameters
        ----------
        data_range : float, optional
            As in `Denoised.predicted_psnr`. If it is the range of the estimate, compute both together.
        """
        import dask
        import dask.array as da

        given: Any = PEAKS.get(self.estimate.dtype.name)
        if data_range is not None:
            given = _validate.positive(data_range, "data_range")
        elif given is None:
            estimate = da.asarray(self.estimate)
            sizes = da.abs(estimate) if estimate.dtype.kind == "c" else estimate
            known = da.where(da.isfinite(sizes), sizes, np.nan).astype(np.float64)
            given = da.nanmax(known) - da.nanmin(known)
        ratio = dask.delayed(peak_ratio, pure=True)(given, self.predicted_mse)
        return da.from_delayed(dask.delayed(np.float64)(ratio), (), np.float64)

    def __repr__(self) -> str:
        sigma = "" if self.sigma is None else f", sigma {np.min(self.sigma):.4g}"
        return f"<LazyDenoised: {' x '.join(map(str, self.estimate.shape))} {self.estimate.dtype}{sigma}>"
