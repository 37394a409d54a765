"""Data with noise of level 1 in every entry."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._validate import Array
from ..frames.dct import dct_matrix
from ..frames.padding import fill_gaps
from ..noise.clipping import find_clip_limits, near_clip_limits
from ..noise.covariance import Covariance, White
from ..noise.models import NoiseModel, channel_levels
from ..noise.stabilisers import Stabiliser
from .layout import Layout
from .way_back import WayBack

# Entries along each axis of the smallest constant region that is taken for a filled background, by the number of
# axes. Smaller ones may be alike by chance where a camera rounds; larger ones would leave narrow backgrounds noisy.
MIN_REGION = {1: 16, 2: 5, 3: 3}
# If fewer entries than this share equal their neighbours, no region is looked for. It saves time, and misses regions
# that are small against the data.
MIN_EQUAL_SHARE = 1e-3

# Channels are rotated into each other if their noise levels differ by at most this factor. Rotation spreads errors
# evenly over the channels: a noisy one gets worse if the others need less smoothing. On crops of astronaut, chelsea and
# coffee the error together over that alone was 0.70 at equal levels, 0.94 at a factor of 2, 1.03 at 3 and 5 at 20.
MOST_LEVEL_RATIO = 2.0

# How far from 1 the estimated noise level of a rotated channel must be to be used, and the least level that is used.
# Estimates of white noise scatter by 5%; 0.15 is three times that.
LEVEL_TOLERANCE, LEAST_LEVEL = 0.15, 1e-3
# Levels of rotated channels are not estimated if more than this share of the entries is invalid or near a clip limit.
MOST_EXCLUDED = 0.9

# Up to this range over the noise level, single precision does not show in the result.
SINGLE_RANGE = 1e4


class Stabilised(NamedTuple):
    """Values of noise level 1, (channels, parts, *shape), and the way back."""

    values: Floats
    back: WayBack


def stabilise(layout: Layout, noise: NoiseModel) -> Stabilised | None:
    """Return data with noise of level 1 in every entry, or None if they hold no noise."""
    model = noise.laid_out(layout.values, layout.channel_axis, layout.missing)
    noisy = np.array([not (model.spares_constants and _is_constant(c, layout.missing)) for c in layout.values])
    if not noisy.any():
        return None
    y = layout.values if noisy.all() else layout.values[noisy]
    y = y.view()
    y.flags.writeable = False  # a model of the user's must not change the data
    model = model.of_channels(noisy)
    stabiliser: Any = model.measure(y, layout.missing)
    if stabiliser is None:
        return None
    if not isinstance(stabiliser, Stabiliser):
        name = type(model).__name__
        msg = f"{name}.measure must return a Stabiliser, or None if there is no noise, got {stabiliser!r}."
        raise TypeError(msg)
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
