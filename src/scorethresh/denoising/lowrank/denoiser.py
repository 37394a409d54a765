"""Series of images and volumes: local low rank, with a prediction of the error."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._containers import in_order, in_units, run_inside, values_of
from ..._lazy_data import axis_of, lazy_module
from ..._progress import Progress
from ..._threads import one_blas_thread
from ..._validate import Array
from .choice import candidate_grids, choose_grid
from .measured import as_series_noise, measure_noise
from .result import LowRankDenoised, predict_series
from .series import Series, level_map, read_series
from .sums import denoise_patches, regions_of

__all__ = ["LowRankDenoiser", "NegativeTail", "denoise_lowrank", "doubt_about", "negative_tail"]

# Negative entries that must be missing for a warning. Gaussian noise leaves out that many once in 1e13 series; if
# errors of the estimate and the level treble the count, once in 20,000.
MIN_MISSING = 30.0
# Volumes in which they are counted, about. All would take time.
COUNTED = 8


@dataclass(frozen=True, kw_only=True)
class LowRankDenoiser:
    """Denoise series of images or volumes; `run` returns the estimate and everything known about it.

    The parameters are those of `denoise_lowrank`.

    See Also
    --------
    denoise_lowrank : the same in one call, which returns the estimate alone.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.einsum("xr,yr,tr->xyt", *(rng.normal(size=(n, 3)) for n in (24, 24, 30)))
    >>> found = LowRankDenoiser(sigma=1.0).run(clean + rng.normal(size=clean.shape))
    >>> bool(found.predicted_mse < 0.3)
    True
    """

    sigma: Any = None
    noise: Any = "white"
    series_axis: Any = -1
    patch: Any = None
    step: Any = None
    mask: Any = None
    progress: bool | float = False

    def __post_init__(self) -> None:
        _, sigma = as_series_noise(self.noise, values_of(self.sigma))
        if sigma is not None and np.ndim(sigma) == 0:
            level_map(sigma, ())

    def run(self, y: Any) -> LowRankDenoised:
        """Denoise y.

        Parameters
        ----------
        y : array_like
            As in `denoise_lowrank`.

        Returns
        -------
        LowRankDenoised
            The estimate, noise and rank maps, the predicted error and its standard error.

        Warns
        -----
        AssumptionWarning
            If the noise level cannot be told, if the series is not of low rank, if the predicted error is negative, or
            if y looks like magnitudes of complex data.
        """
        lazy = lazy_module(y)
        if lazy is not None:
            return lazy.run_lowrank(self, y)  # type: ignore[no-any-return]
        mask = values_of(in_order(self.mask, y))
        named = {"series_axis": axis_of(y, self.series_axis), "mask": mask}
        inside = run_inside(y, self.sigma, lambda a, sigma: dataclasses.replace(self, **named, sigma=sigma).run(a))
        if inside is not None:
            return inside  # type: ignore[no-any-return]
        series = read_series(y, self.series_axis, mask)
        model, sigma = as_series_noise(self.noise, in_units(self.sigma, None))
        shape = series.valid.shape
        given = None if sigma is None else np.broadcast_to(level_map(sigma, shape, series.valid), shape)
        grids = candidate_grids(self.patch, self.step, shape)
        if not series.valid.any():
            return LowRankDenoised.unchanged(series)
        with one_blas_thread():
            measured = measure_noise(series, model, given)
            if measured is None:
                return LowRankDenoised.unchanged(series)
            grid = choose_grid(measured.series, measured.levels, grids)
            blocks = regions_of(grid)
            with Progress("denoise", len(blocks), self.progress) as progress:
                sums = denoise_patches(measured.series, measured.levels, blocks, progress.step)
        found = predict_series(measured, sums, grid.patch)
        tail = negative_tail(measured.series, found.estimate, found.sigma) if measured.way_back is None else None
        doubt = doubt_about(found.predicted_mse, found.stderr, tail)
        if doubt:
            _validate.warn(doubt)
        return found


class NegativeTail(NamedTuple):
    """Whether there are negative entries; how many Gaussian noise would have made among those that were counted."""

    any: bool = False
    expected: float = 0.0
    counted: int = 0
    total: int = 0

    def __add__(self, other: Any) -> NegativeTail:
        parts = zip(self[1:], other[1:], strict=True)
        return NegativeTail(self.any or other.any, *(a + b for a, b in parts))

    @property
    def missing(self) -> float:
        """How many negative entries are missing."""
        return 0.0 if self.any or not self.counted else self.expected / self.counted * self.total


def doubt_about(mse: float, stderr: float, tail: NegativeTail | None) -> str:
    """Return why the predicted error cannot be trusted; empty if it can. `tail` is that of Gaussian noise only."""
    if mse < -3 * stderr:
        return (
            f"The predicted error is below zero, {mse:.3g} ± {stderr:.2g}, and cannot be "
            "trusted: sigma is too large, or the noise is another one. Leave sigma out, use noise='rician' for "
            "magnitudes of complex data, or pass the complex data."
        )
    if tail is not None and tail.missing > MIN_MISSING:
        return (
            f"y has no negative entries, where Gaussian noise would have made about {tail.missing:.0f}: it holds "
            "magnitudes of complex data, or is clipped at 0. Their bias stays, and the predicted error, which is "
            "too low, knows nothing of it. Use noise='rician' for magnitudes, or pass the complex data."
        )
    return ""


def negative_tail(series: Series, estimate: NDArray[Any], sigma: Array) -> NegativeTail:
    """Return how many negative entries Gaussian noise around the estimate would have made."""
    if series.parts == 2 or (series.values < 0).any():
        return NegativeTail(any=True)
    from scipy.special import ndtr

    volumes = series.volumes
    means = np.moveaxis(np.ma.getdata(estimate), series.axis, -1)[..., :: max(1, volumes // COUNTED)]
    ratios = means[series.valid] / sigma[series.valid, None]
    return NegativeTail(False, float(ndtr(-ratios).sum()), ratios.size, int(series.valid.sum()) * volumes)


def denoise_lowrank(
    y: Any,
    *,
    sigma: Any = None,
    noise: Any = "white",
    series_axis: int | str = -1,
    patch: Any = None,
    step: Any = None,
    mask: Any = None,
    progress: bool | float = False,
) -> Any:
    """Remove noise from a series of images or volumes: diffusion and functional MRI, hyperspectral cubes, videos.

    Parameters
    ----------
    y : array_like
        Three axes (images) or four (volumes), one of them the series, with at least 5 images or volumes. Real, integer
        or complex.
    sigma : float or array_like, optional
        The noise level in units of y (of one part, if y is complex): a number, or a map with the shape of one volume.
        By default it is estimated as a map. With ``noise="rician"`` it is that of a real or imaginary part.
    noise : {"white", "rician", "poisson", "camera", "speckle"} or NoiseModel
        The noise, as in `denoise`. ``"rician"`` is for magnitudes of complex data; `RicianNoise` takes the number of
        coils. Noise that depends on the signal is made even by a transform, and estimates are turned back without bias.
    series_axis : int or str
        The axis of the series: directions, time, wavelengths. Its name, if y is a DataArray.
    patch : int or tuple of int, optional
        The size of the patches along the other axes. By default the one of least estimated risk on samples of y: 3, 4
        or 5 for volumes, 4, 6 or 8 for images.
    step : int or tuple of int, optional
        The distance of neighbouring patches. By default a little less than half a patch. 1 is slowest and best.
    mask : array_like of bool, optional
        True where entries are missing, in the shape of one volume or of y. They are left out and given back as they
        were. Entries with NaN, and entries that are constant over the series, are treated alike.
    progress : bool or float
        Whether to show a progress bar, by tqdm: on standard error, or in a notebook. A number shows it only if the work
        takes more than that many seconds.

    Returns
    -------
    ndarray, or what y is
        With the shape and dtype of y. Masked arrays, DataArrays and quantities stay what they are.

    See Also
    --------
    LowRankDenoiser : returns noise and rank maps and the predicted error too.
    select_rank : does so for a single matrix.
    denoise : denoises one image or volume.

    Notes
    -----
    The entries of a region in all volumes form a matrix. Combinations of the volumes that hold nothing but noise over a
    whole region, of some 4000 entries, are removed first. Then the entries of each patch form a small matrix, which is
    nearly of low rank because neighbours behave alike. Its mean over the patch is removed, and its singular values are
    shrunk so that the risk is least (see `select_rank`). An entry lies in many patches. Their estimates are averaged,
    each weighted by one over its predicted error. The divergence of all that is known, and so is the risk.

    By default the noise is taken to be Gaussian. Magnitudes of complex data (Rician noise) then keep their bias, and
    the predicted error knows nothing of it; an `AssumptionWarning` says so if negative entries are missing. With
    ``noise="rician"`` magnitudes are transformed [3]_, and the estimate is the magnitude without noise.

    References
    ----------
    .. [1] J. Veraart et al., "Denoising of diffusion MRI using random matrix theory", NeuroImage 142 (2016),
       doi:10.1016/j.neuroimage.2016.08.016.
    .. [2] M. Gavish and D. L. Donoho, "Optimal shrinkage of singular values", IEEE Transactions on Information Theory
       63 (2017), arXiv:1405.7511.
    .. [3] A. Foi, "Noise estimation and removal in MR imaging: the variance-stabilization approach", IEEE International
       Symposium on Biomedical Imaging (2011), doi:10.1109/ISBI.2011.5872758.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.einsum("xr,yr,tr->xyt", *(rng.normal(size=(n, 3)) for n in (24, 24, 30)))
    >>> noisy = clean + rng.normal(size=clean.shape)
    >>> bool(np.mean((denoise_lowrank(noisy) - clean) ** 2) < 0.3)
    True
    """
    options = {name: value for name, value in locals().items() if name != "y"}
    return LowRankDenoiser(**options).run(y).estimate
