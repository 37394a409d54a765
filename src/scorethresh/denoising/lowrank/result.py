"""What the low-rank denoiser returns, and how its error is predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Floats
from ..._containers import values_of
from ..._validate import Array
from .evened import SeriesWayBack
from .measured import MeasuredSeries
from .series import Series
from .sums import PatchSums

__all__ = ["ErrorMaps", "LowRankDenoised", "mean_and_maps", "predict_risk", "predict_series", "predicted_error"]

# Relative spread of the error of an entry about the noise that passed. It trades the noise of the map against its bias.
FILTER_SPREAD = 0.3
# Relative error of what doubtful weights add to the predicted error. On simulated magnitudes that part was 0.9 to 2.2
# times too large.
WEIGHT_DOUBT = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class LowRankDenoised:
    """What a `LowRankDenoiser` found.

    Attributes
    ----------
    estimate : ndarray, or what y is
        The denoised series, with the shape, dtype and units of y. Entries that were masked, NaN or constant are as
        they were.
    sigma : ndarray
        The noise level at every entry of a volume, given or estimated; of one part, if y is complex or holds
        magnitudes; its root mean square over the volumes, if it depends on the signal. 0 where there is none.
    rank : ndarray
        The mean rank of the patches that cover an entry, their mean over the patch not counted.
    predicted_mse : float
        Prediction of the mean squared error per entry and volume (of one part, if y is complex), in units of y squared,
        over the entries that hold noise.
    stderr : float
        Standard error of `predicted_mse`.
    patch : tuple of int
        The size of the patches.
    risk, filtered : ndarray
        Two readings of the error at every entry of a volume: Stein's, which is unbiased and noisy, and the noise that
        passed, which is neither. `error_map` combines them.

    See Also
    --------
    LowRankDenoiser : makes it.
    """

    estimate: Any
    sigma: Array
    rank: Array
    predicted_mse: float
    stderr: float
    patch: tuple[int, ...]
    risk: Array
    filtered: Array

    @classmethod
    def unchanged(cls, series: Series) -> LowRankDenoised:
        """Return the result for a series without noise."""
        shape = series.valid.shape
        zeros = [np.zeros(shape) for _ in range(4)]
        return cls(series.original.copy(), zeros[0], zeros[1], 0.0, 0.0, (), zeros[2], zeros[3])

    def error_map(self) -> Array:
        """Return the predicted mean squared error at every entry of a volume, averaged over its neighbourhood.

        Returns
        -------
        ndarray
            In units of y squared; NaN where there is no noise.

        Notes
        -----
        Two readings are averaged by their precision. Stein's estimate varies by ``2 sigma^4`` per volume. The noise
        that passed, ``sigma^2`` times the divergence, is the error of an estimator of least risk. It is scaled to the
        predicted error of the whole, and trusted to 30%.
        """
        known = self.sigma > 0
        if not known.any():
            return np.full(self.sigma.shape, np.nan)
        volumes = self.estimate.size / self.sigma.size * (2 if np.iscomplexobj(values_of(self.estimate)) else 1)
        count = self._around(known.astype(float))
        risk, filtered, noise = (
            self._around(np.where(known, a, 0.0)) / np.maximum(count, 1e-12)
            for a in (self.risk, self.filtered, self.sigma**2)
        )
        scale = self.predicted_mse / max(float(self.filtered[known].mean()), 1e-300)
        filtered = filtered * (scale if scale > 0 else 1.0)
        entries = np.maximum(count * np.prod(self._window()), 1.0) * volumes
        of_risk, of_filter = 2 * noise**2 / entries, (FILTER_SPREAD * filtered) ** 2
        out = (risk * of_filter + filtered * of_risk) / np.maximum(of_risk + of_filter, 1e-300)
        return np.where(known, np.maximum(out, 0.0), np.nan)

    def _window(self) -> tuple[int, ...]:
        return tuple(min(max(size, 5), n) for size, n in zip(self.patch, self.sigma.shape, strict=True))

    def _around(self, a: Array) -> Array:
        from scipy.ndimage import uniform_filter

        return np.asarray(uniform_filter(a, self._window(), mode="constant"))

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a small picture and the numbers."""
        from ...viz.notebook import lowrank_html

        return lowrank_html(self)

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


def predict_series(measured: MeasuredSeries, sums: PatchSums, patch: tuple[int, ...]) -> LowRankDenoised:
    """Return the weighted mean of the patches, with the maps and the predicted error."""
    series, levels, way_back = measured.series, measured.levels, measured.way_back
    value, maps = mean_and_maps(series, levels, sums, way_back)
    known = series.valid
    mse, stderr = predicted_error(maps, known, series.volumes * series.parts, measured.level_error)
    rank = sums.rank / np.where(sums.weight > 0, sums.weight, 1.0)
    if way_back is not None:
        value = way_back.restored(value)
        levels = way_back.level_map(maps.noise)
    level = np.where(known, levels, 0.0)
    return LowRankDenoised(series.restored(value), level, rank, mse, stderr, patch, maps.risk, maps.filtered)


def predict_risk(series: Series, levels: Array, sums: PatchSums) -> float:
    """Return the estimated risk summed over the entries, in units of the noise level."""
    return float((mean_and_maps(series, levels, sums)[1].risk / levels**2).sum())


def predicted_error(maps: ErrorMaps, known: NDArray[np.bool_], numbers: int, level_error: float) -> tuple[float, float]:
    """Return the predicted error and its standard error, given maps of `numbers` real numbers per entry."""
    mse = float(maps.risk[known].mean())
    # In units of a typical level: fourth powers of small or large ones would leave the range of doubles.
    unit = math.sqrt(float(maps.noise[known].max()))
    squares, error = maps.noise[known] / unit**2, max(mse / unit**2, 0.0)
    # The variance of the estimate of a risk, per real number: 2 sigma^4, plus 4 sigma^2 times the error.
    variance = (2 * squares**2 + 4 * squares * error).mean() / (known.sum() * numbers)
    common = level_error * squares.mean(), WEIGHT_DOUBT * float(maps.doubt[known].mean()) / unit**2
    return mse, unit**2 * math.sqrt(variance + common[0] ** 2 + common[1] ** 2)


class ErrorMaps(NamedTuple):
    """The estimated risk of an entry, the noise that passed, the noise variance, and the risk by doubtful weights.

    All per volume and part, in units of y. The first two are 0 where entries are not valid.
    """

    risk: Array
    filtered: Array
    noise: Array
    doubt: Array


def mean_and_maps(
    series: Series, levels: Array, sums: PatchSums, way_back: SeriesWayBack | None = None
) -> tuple[Floats, ErrorMaps]:
    """Return the weighted mean of the patches, and the maps of its error.

    The mean overwrites the sums, for the sake of memory.
    """
    volumes, parts = series.values.shape[-1], series.parts
    weight = np.where(sums.weight > 0, sums.weight, 1.0)
    unit = levels * np.sqrt(parts)
    value = sums.value
    value *= (unit / weight).astype(value.real.dtype)[..., None]
    share = sums.divergence / (weight * volumes)
    risk, noise, doubt = (np.zeros(levels.shape) for _ in range(3))
    for k in range(volumes):  # one volume at a time needs no array of the size of y
        squared = np.abs(series.values[..., k] - value[..., k]).astype(np.float64) ** 2
        if way_back is None:
            risk += squared + unit**2 * (2 * share - 1)
            noise += unit**2
        else:
            local = way_back.local_noise(value[..., k], unit**2 * share)
            own = squared + local.variance * (2 * share - 1)
            risk += local.weight * own
            doubt += way_back.doubtful_weight(local.weight) * own
            noise += local.weight * local.variance
    known, entries = series.valid, volumes * parts
    risk += entries * series.rounding_error
    risk, filtered = (np.where(known, a / entries, 0.0) for a in (risk, noise * share))
    return value, ErrorMaps(risk, filtered, noise / entries, doubt / entries)
