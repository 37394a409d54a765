"""Data with noise of level 1 in every entry, and the way back to the units of y."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._validate import Array
from ..frames.dct import dct_matrix
from ..frames.padding import fill_gaps
from ..noise.clipping import find_clip_limits, near_clip_limits, unclip
from ..noise.covariance import Covariance, White
from ..noise.models import NoiseModel, channel_levels
from ..noise.stabilisers import LocalNoise, Stabiliser
from ..risk.prediction import FilterRatio, NoiseEnergy, Prediction, RiskSums, predict
from .batch import Batch
from .layout import Layout

# Entries along each axis of the smallest constant region that is taken for a filled background, by the number of
# axes. Smaller ones may be alike by chance where a camera rounds; larger ones would leave narrow backgrounds noisy.
MIN_REGION = {1: 16, 2: 5, 3: 3}
# If fewer entries than this share equal their neighbours, no region is looked for. It saves time only.
MIN_EQUAL_SHARE = 1e-3

# Channels are rotated into each other if their noise levels differ by at most this factor. Rotation spreads errors
# evenly over the channels, which costs the quiet part of a noisy one. On crops of astronaut, chelsea and coffee the
# error together over that alone was 0.70 at equal levels, 0.94 at a factor of 2, 1.03 at 3, 1.7 at 4 and 5 at 20.
MOST_LEVEL_RATIO = 2.0

# How far from 1 the estimated noise level of a rotated channel must be to be used, and the least level that is used.
# Estimates of white noise are within 5% on nearly all images, so that 0.15 lets chance pass.
LEVEL_TOLERANCE, LEAST_LEVEL = 0.15, 1e-3
# Levels of rotated channels are not estimated if more than this share of the entries is invalid or near a clip limit.
MOST_EXCLUDED = 0.9

# Up to this range over the noise level, single precision does not show in the result.
SINGLE_RANGE = 1e4


class Restored(NamedTuple):
    """The result in the layout of y, the share of the noise variance that clipping left, and what rounding adds."""

    estimate: NDArray[Any]
    left: float
    rounding: float


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

    def batch(self, channel: int, values: Floats) -> Batch:
        """Return the values of a channel, (parts, *shape), as a batch of one piece."""
        weights = self.stabiliser.error_weights(self.y, self.layout.missing, self._channel(channel))
        return Batch(
            values[None], None if self.valid is None else self.valid[None], None if weights is None else weights[None]
        )

    def local_noise(self, channel: int, tile: tuple[slice, ...], estimate: Floats) -> LocalNoise:
        """Return the noise around the estimate of a tile; weights are 0 where there is none."""
        means = estimate if self.rotation is not None else estimate + self.offset[channel].astype(estimate.dtype)
        factor, weight = self.stabiliser.local_noise(means, self._channel(channel), tile)
        return LocalNoise(factor, weight if self.valid is None else weight * self.valid[tile])

    def _channel(self, channel: int) -> int | None:
        return None if self.rotation is not None else channel

    def restore(self, values: Floats) -> Restored:
        """Return denoised values in the units, the layout and the dtype of y."""
        if self.rotation is not None:
            values = np.tensordot(self.rotation.T.astype(values.dtype), values, axes=1)
        exact = np.float32 if self.y.dtype.itemsize <= 2 or self.y.dtype == np.float32 else np.float64
        dtype = np.result_type(values.dtype, exact)
        out = self.stabiliser.inverse(np.add(values, self.offset.astype(dtype), dtype=dtype))
        out, left = unclip(out, self.stabiliser.scale, self.clip_limits, self.valid)
        rounding = 0.0
        if self.layout.values.dtype.kind in "iu":
            rounding = float(np.square(out - np.rint(out)).mean(where=True if self.valid is None else self.valid))
        if not self.noisy.all():
            noisy, out = out, self.layout.values.astype(out.dtype)
            out[self.noisy] = noisy
        return Restored(self.layout.write(out, None if self.valid is None else ~self.valid), left, rounding)

    def predict(self, sums: RiskSums, restored: Restored, filter_ratio: FilterRatio) -> Prediction:
        """Return the predicted error per entry that is not missing, channels without noise included."""
        y, missing = self.y, self.layout.missing
        size = math.prod(self.layout.shape)
        noisy = size if self.valid is None else np.count_nonzero(self.valid)
        present = size if missing is None else size - np.count_nonzero(missing)
        unit, second, fourth = self.stabiliser.moments(y, self.valid)
        fourth *= float(np.mean([covariance.mean_squared_power for covariance in self.covariances]))
        energy = NoiseEnergy(noisy * y.shape[0] * y.shape[1], second, fourth, unit, restored.left)
        found = predict(sums, energy, filter_ratio)
        share = noisy / present * float(self.noisy.mean())
        return Prediction((found.mse + restored.rounding) * share, found.stderr * share)


class Stabilised(NamedTuple):
    """Values of noise level 1, (channels, parts, *shape), and the way back."""

    values: Floats
    back: WayBack


def stabilise(layout: Layout, noise: NoiseModel) -> Stabilised | None:
    """Return data with noise of level 1 in every entry, or None if they hold no noise."""
    model = noise.laid_out(layout.values, layout.channel_axis)
    noisy = np.array([not (model.spares_constants and _is_constant(c, layout.missing)) for c in layout.values])
    if not noisy.any():
        return None
    y = layout.values if noisy.all() else layout.values[noisy]
    model = model.of_channels(noisy)
    stabiliser = model.measure(y, layout.missing)
    if stabiliser is None:
        return None
    excluded = noise_free_mask(y, layout.missing) if model.spares_constants else layout.missing
    if excluded is not None and excluded.all():
        return None
    limits = -math.inf, math.inf
    if model.clips and y.shape[1] == 1:
        limits = find_clip_limits(y if excluded is None else y[..., ~excluded])
    values, offset = _centred(stabiliser, y, excluded)
    rotation = _rotation(stabiliser, len(y))
    if rotation is not None:
        values = np.tensordot(rotation.astype(values.dtype), values, axes=1)
    values = np.ascontiguousarray(values)
    covariances = (stabiliser.covariance,) * len(y)
    if rotation is not None and model.checks_channels:
        out = excluded
        if any(map(math.isfinite, limits)):
            near = near_clip_limits(y, stabiliser.scale, limits)
            out = near if excluded is None else near | excluded
        covariances = _rotated_covariances(values, out, stabiliser.covariance)
    valid = None if excluded is None else ~excluded
    return Stabilised(values, WayBack(layout, noisy, stabiliser, offset, rotation, covariances, limits, valid))


def _centred(stabiliser: Stabiliser, y: NDArray[Any], excluded: NDArray[np.bool_] | None) -> tuple[Floats, Array]:
    """Return stabilised values less their mean per channel, gaps filled; and these means."""
    with np.errstate(invalid="ignore", divide="ignore"):  # excluded entries may have no root or logarithm
        values = stabiliser.forward(y)
    if excluded is not None:
        values = fill_gaps(values, excluded)
    offset = values.mean(axis=tuple(range(1, values.ndim)), keepdims=True, dtype=np.float64)
    values -= offset.astype(values.dtype)
    if values.dtype == np.float64 and max(values.max(), -values.min()) < SINGLE_RANGE:
        values = values.astype(np.float32)
    return values, offset


def _rotation(stabiliser: Stabiliser, channels: int) -> Array | None:
    """Return the DCT across channels, which decorrelates colours; None if channels are better treated alone."""
    if channels == 1 or not stabiliser.rotates:
        return None
    levels = np.sqrt(np.square(stabiliser.scale).mean(axis=tuple(range(1, stabiliser.scale.ndim))))
    return dct_matrix(channels) if levels.max() <= MOST_LEVEL_RATIO * levels.min() else None


def _rotated_covariances(
    values: Floats, excluded: NDArray[np.bool_] | None, covariance: Covariance
) -> tuple[Covariance, ...]:
    """Return the covariance of every rotated channel.

    They differ if channels share their noise, as in grey stored as colours.
    """
    if excluded is not None and excluded.mean() >= MOST_EXCLUDED:
        return (covariance,) * len(values)
    found = channel_levels(values, excluded).ravel()
    return tuple(covariance if abs(level - 1) < LEVEL_TOLERANCE else White(max(level, LEAST_LEVEL)) for level in found)


def _is_constant(channel: NDArray[Any], missing: NDArray[np.bool_] | None) -> bool:
    known = channel if missing is None else channel[:, ~missing]
    return known.size >= MIN_REGION[1] and bool((known == known.flat[0]).all())


def noise_free_mask(y: NDArray[Any], missing: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Return which entries hold no noise: missing ones, and constant regions such as a filled background.

    `y` is (channels, parts, *shape). None if all hold noise.
    """
    from scipy.ndimage import binary_opening

    shape = y.shape[2:]
    same = np.ones(shape, bool)  # as the next entries along all axes
    for axis in range(len(shape)):
        for part in y.reshape(-1, *shape):
            ahead = np.moveaxis(part, axis, 0)
            np.moveaxis(same, axis, 0)[:-1] &= ahead[:-1] == ahead[1:]
    if np.count_nonzero(same) < MIN_EQUAL_SHARE * same.size:
        return missing
    same = np.asarray(binary_opening(same, np.ones((MIN_REGION[len(shape)],) * len(shape), bool)))
    for axis in range(len(shape)):
        along = np.moveaxis(same, axis, 0)
        along[1:] |= along[:-1].copy()
    if not same.any():
        return missing
    return same if missing is None else same | missing
