"""From denoised values of noise level 1 back to the units and the layout of y, with a predicted error."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, cropped, slabs, working_precision
from .._validate import Array
from ..noise.clipping import unclip_part
from ..noise.covariance import Covariance
from ..noise.stabilisers import LocalNoise, Moments, Stabiliser
from ..risk.prediction import FilterRatio, NoiseEnergy, Prediction, RiskSums, predict_all
from .batch import Batch
from .layout import Layout


@dataclass(frozen=True)
class EntrySums:
    """What a prediction has to know of the entries of a part of the data; parts add up.

    Attributes
    ----------
    size, present, noisy : int
        The number of entries of one channel: all, those that are known, and those that hold noise.
    unit, second, fourth : float
        A typical noise level; sums over noisy entries of the noise variance over `unit` squared, and of its square over
        `unit` to the fourth.
    clipped : float
        The same of the variance that clipping took, over `unit` squared.
    rounding : float
        The sum over noisy entries of what rounding adds to the squared error.
    """

    size: int = 0
    present: int = 0
    noisy: int = 0
    unit: float = 0.0
    second: float = 0.0
    fourth: float = 0.0
    clipped: float = 0.0
    rounding: float = 0.0

    def __add__(self, other: EntrySums) -> EntrySums:
        unit = max(self.unit, other.unit)
        a, b = (some.unit / unit if unit else 0.0 for some in (self, other))
        return EntrySums(
            self.size + other.size,
            self.present + other.present,
            self.noisy + other.noisy,
            unit,
            self.second * a**2 + other.second * b**2,
            self.fourth * a**4 + other.fourth * b**4,
            self.clipped * a**2 + other.clipped * b**2,
            self.rounding + other.rounding,
        )


class Restored(NamedTuple):
    """The result in the layout of y, the share of the noise variance that clipping left, and what rounding adds."""

    estimate: NDArray[Any]
    unclipped_share: float
    rounding: float


class OwnRisk(NamedTuple):
    """Of every entry, in the units of y squared: the squared residual less the noise variance, and that variance.

    Both are 0 or do not matter where an entry is not `valid`.
    """

    excess: Floats
    variance: Floats
    valid: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class WayBack:
    """From stabilised values to the units and the layout of y.

    Attributes
    ----------
    layout : Layout
        The data as they came.
    noisy : ndarray of bool
        Which channels hold noise. The others stay as they are.
    stabiliser : Stabiliser
        Of the noisy channels.
    offset : ndarray
        What was subtracted from stabilised values, per channel.
    rotation : ndarray, optional
        The orthonormal matrix that channels were rotated by.
    covariances : tuple of Covariance
        Of the noise in the rotated channels.
    clip_limits : tuple of float
        Where values were cut off; infinite if they were not.
    valid : ndarray of bool, optional
        (*shape), False where entries are missing or in constant regions.
    """

    layout: Layout
    noisy: NDArray[np.bool_]
    stabiliser: Stabiliser
    offset: Array
    rotation: Array | None
    covariances: tuple[Covariance, ...]
    clip_limits: tuple[float, float]
    valid: NDArray[np.bool_] | None

    @property
    def y(self) -> NDArray[Any]:
        """The channels that hold noise, not copied if all do."""
        return self.layout.values if self.noisy.all() else self.layout.values[self.noisy]

    @property
    def clipped(self) -> bool:
        """Whether there are clip limits."""
        return any(map(math.isfinite, self.clip_limits))

    @property
    def holds_noise(self) -> bool:
        """Whether all entries hold noise as the model says: none is left out, and none was clipped."""
        return self.valid is None and not self.clipped

    @property
    def sigma(self) -> float | Array:
        """The noise level: one number, one per channel, or a map; 0 for channels without noise."""
        scale = self.stabiliser.scale
        if scale.size == 1:
            return float(scale.reshape(()))
        varies = scale.size > len(scale)
        shape = self.layout.shape if varies else (1,) * len(self.layout.shape)
        whole = np.zeros((len(self.noisy), *shape))
        whole[self.noisy] = scale[:, 0]
        if not varies:
            return whole.ravel()
        axis = self.layout.channel_axis
        return whole[0] if axis is None else np.moveaxis(whole, 0, axis)

    def crop(self, place: tuple[slice, ...]) -> WayBack:
        """Return the way back of a part of the data."""
        stabiliser, valid = self.stabiliser.crop(place), None if self.valid is None else self.valid[place]
        return dataclasses.replace(self, layout=self.layout.crop(place), stabiliser=stabiliser, valid=valid)

    def batch(self, channel: int, values: Floats, guide: Floats | None = None) -> Batch:
        """Return the values of a channel, (parts, *shape), as a batch of one piece; see `Batch` for the guide."""
        weights = self.stabiliser.error_weights(self.y, self.layout.unknown, self._channel(channel))
        more = (None if a is None else a[None] for a in (self.valid, weights, guide))
        return Batch(values[None], *more)

    def local_noise(self, channel: int, tile: tuple[slice, ...], estimate: Floats) -> LocalNoise:
        """Return the noise around the estimate of a tile; weights are 0 where there is none."""
        # After a linear transform the noise does not depend on the mean, so its offset need not be added.
        means = estimate if self.stabiliser.rotates else estimate + self.offset[channel].astype(estimate.dtype)
        factor, weight = self.stabiliser.local_noise(means, self._channel(channel), tile)
        return LocalNoise(factor, weight if self.valid is None else weight * self.valid[tile])

    def own_risk(self, channel: int, tile: tuple[slice, ...], estimate: Floats) -> OwnRisk | None:
        """Return what the risk of a tile needs in the units of y; None if it is told by stabilised values."""
        if not self.stabiliser.has_own_variances:
            return None
        y = self.y[channel, 0][tile].astype(np.float64)
        valid = np.ones((1,) * y.ndim, bool) if self.valid is None else self.valid[tile]
        y = np.where(valid, y, 0.0)
        means = self.stabiliser.inverse(estimate[0].astype(np.float64) + self.offset[channel, 0])
        own = self.stabiliser.own_variances(y, means)
        return OwnRisk(np.where(valid, np.square(y - means) - own.unbiased, 0.0), own.expected, valid)

    def _channel(self, channel: int) -> int | None:
        return None if self.rotation is not None else channel

    def restore(self, channels: Sequence[Floats] | Floats) -> Restored:
        """Return denoised channels, (parts, *shape) each, in the units, the layout and the dtype of y."""
        y = self.layout.values
        out = np.empty(y.shape, y.dtype)
        unit = float(np.max(self.stabiliser.scale))
        sums = np.zeros(3)
        for rows in slabs(self.layout.shape):
            place = (rows, *(slice(0, n) for n in self.layout.shape[1:]))
            part = self if rows == slice(0, len(y[0, 0])) else self.crop(place)
            means, *some = part.means_in_units(np.stack([cropped(channel, place) for channel in channels]), unit)
            kept = None if part.valid is None else ~part.valid
            if kept is not None and part.layout.outliers is not None:
                kept &= ~part.layout.outliers
            out[:, :, rows] = part.layout.completed(means, kept, None if self.noisy.all() else self.noisy)
            sums += some
        lost, total, rounding = sums
        valid = math.prod(self.layout.shape) if self.valid is None else int(np.count_nonzero(self.valid))
        rounding /= max(valid * int(np.count_nonzero(self.noisy)) * y.shape[1], 1)
        return Restored(self.layout.write(out), max(1 - lost / total, 0.0) if total else 1.0, float(rounding))

    def means_in_units(self, values: Floats, unit: float) -> tuple[Floats, float, float, float]:
        """Return denoised values in the units of y, with three sums over valid entries.

        These are the noise variance that clipping took and that of all, over `unit` squared, and the squared rounding
        errors.
        """
        if self.rotation is not None:
            values = np.tensordot(self.rotation.T.astype(values.dtype), values, axes=1)
        dtype = np.result_type(values.dtype, working_precision(self.y.dtype))
        out = self.stabiliser.inverse(np.add(values, self.offset.astype(dtype), dtype=dtype))
        lost = total = rounding = 0.0
        if self.clipped:
            out, lost, total = unclip_part(out, self.stabiliser.level_at(out), self.clip_limits, self.valid, unit)
        if self.layout.values.dtype.kind in "iu":
            where = True if self.valid is None else self.valid
            rounding = float(np.square(out - np.rint(out)).sum(where=where, dtype=np.float64))
        return out, lost, total, rounding

    def entry_sums(self, restored: Restored) -> EntrySums:
        """Return what the prediction has to know of the entries."""
        missing, size = self.layout.unknown, math.prod(self.layout.shape)
        noisy = size if self.valid is None else int(np.count_nonzero(self.valid))
        present = size if missing is None else size - int(np.count_nonzero(missing))
        if not noisy:
            return EntrySums(size, present)
        unit, second, fourth = self.stabiliser.moments(self.y, self.valid)
        clipped = (1 - restored.unclipped_share) * second
        return EntrySums(
            size, present, noisy, unit, noisy * second, noisy * fourth, noisy * clipped, noisy * restored.rounding
        )

    def predict(self, sums: RiskSums, entries: EntrySums, filter_ratio: FilterRatio) -> Prediction:
        """Return the predicted error per entry that is not missing, channels without noise included.

        Outliers are taken to be as wrong as the others. The sums may be those of parts of the data, added up.
        """
        return predict_rows([self], [sums], [entries], filter_ratio)[0]

    def noise_energy(self, entries: EntrySums) -> NoiseEnergy:
        """Return what the prediction has to know of the noise."""
        second, fourth = entries.second / entries.noisy, entries.fourth / entries.noisy
        fourth *= float(np.mean([covariance.mean_squared_power for covariance in self.covariances]))
        count = entries.noisy * int(np.count_nonzero(self.noisy)) * self.layout.values.shape[1]
        share_left = 1 - entries.clipped / entries.second
        return NoiseEnergy(count, second, fourth, entries.unit, share_left, self.stabiliser.level_error)

    def per_known_entry(self, found: Prediction, entries: EntrySums) -> Prediction:
        """Return a prediction per entry that is not missing, given that per entry that holds noise."""
        moments = Moments(entries.unit, entries.second / entries.noisy, entries.fourth / entries.noisy)
        stderr = math.hypot(found.stderr, self.stabiliser.curve_error(moments) * found.mse)
        share = entries.noisy / entries.present * float(self.noisy.mean())
        mse = found.mse + entries.rounding / entries.noisy
        return Prediction(mse * share, stderr * share, found.score)


def predict_rows(
    backs: Sequence[WayBack], sums: Sequence[RiskSums], entries: Sequence[EntrySums], filter_ratio: FilterRatio
) -> list[Prediction]:
    """Return what `WayBack.predict` does of many samples."""
    energies = [back.noise_energy(some) for back, some in zip(backs, entries, strict=True)]
    found = zip(backs, predict_all(sums, energies, filter_ratio), entries, strict=True)
    return [back.per_known_entry(prediction, some) for back, prediction, some in found]
