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
from ..noise.base import NoiseModel
from ..noise.clipping import find_clip_limits, near_clip_limits
from ..noise.covariance import Covariance, White
from ..noise.models import channel_levels
from ..noise.stabilisers import Stabiliser
from .converted import converted, may_be_converted
from .layout import Layout
from .regions import MIN_REGION, noise_free_mask
from .way_back import WayBack

# Channels are rotated into each other if their noise levels differ by at most this factor. Rotation spreads errors
# evenly over the channels: a noisy one gets worse if the others need less smoothing. On crops of astronaut, chelsea and
# coffee the error together over that alone was 0.70 at equal levels, 0.94 at a factor of 2, 1.03 at 3 and 5 at 20.
MOST_LEVEL_RATIO = 2.0

# How far from 1 the estimated noise level of a rotated channel must be to be used, at least, and over its standard
# error; and the least level that is used. Estimates of white noise scatter by 5%; 0.15 is three times that.
LEVEL_TOLERANCE, LEVEL_ERRORS, LEAST_LEVEL = 0.15, 3.0, 1e-3
# Levels of rotated channels are not estimated if more than this share of the entries is invalid or near a clip limit.
MOST_EXCLUDED = 0.9

# Up to this range over the noise level, single precision does not show in the result.
SINGLE_RANGE = 1e4


class Stabilised(NamedTuple):
    """Values of noise level 1, (channels, parts, *shape), and the way back.

    Large data of few bits are converted when parts of them are read, by `numpy.asarray`: see `ConvertedValues`.
    """

    values: Floats
    back: WayBack


class Centre(NamedTuple):
    """What is subtracted from stabilised values, per channel, and the precision in which they are treated."""

    offset: Array
    dtype: Any


def stabilise(
    layout: Layout, noise: NoiseModel, sample: Layout | None = None, known: Stabilised | None = None
) -> Stabilised | None:
    """Return data with noise of level 1 in every entry, or None if they hold no noise.

    The noise is measured on the data, or on a sample of them. If the sample is `known`, stabilised by itself, with
    noise in all channels, it is not looked at again.
    """
    unknown, sample = layout.unknown, layout if sample is None else sample
    model = noise.laid_out(layout.values, layout.channel_axis, unknown)
    if known is None:
        told = (not (model.spares_constants and is_constant_channel(c, sample.unknown)) for c in sample.values)
        noisy = np.array(list(told))
    else:
        noisy = known.back.noisy
    if not noisy.any():
        return None
    y, model = chosen_channels(layout.values, noisy), model.of_channels(noisy)
    sample_y = chosen_channels(sample.values, noisy)
    stabiliser = measured_stabiliser(model, sample_y, sample.unknown) if known is None else known.back.stabiliser
    if stabiliser is None:
        return None
    excluded = excluded_entries(model, stabiliser, y, unknown)
    if excluded is not None and excluded.all():
        return None
    limits = -math.inf, math.inf
    if model.clips and y.shape[1] == 1:
        limits = stabiliser.limits_to_undo(find_clip_limits(y, excluded))
    centre = None
    if sample is not layout and stabiliser.scale.size <= len(y):  # as for data in chunks, so that results agree
        if known is None:
            centre = centred(stabiliser, sample_y, excluded_entries(model, stabiliser, sample_y, sample.unknown))[1]
        else:
            centre = Centre(known.back.offset, known.values.dtype)
    if excluded is None and may_be_converted(stabiliser, y):
        values, offset = converted(stabiliser, y, None if centre is None else centre.offset)
        return Stabilised(
            values, WayBack(layout, noisy, stabiliser, offset, None, (stabiliser.covariance,), limits, None)
        )
    values, centre = centred(stabiliser, y, excluded, centre)
    rotation = rotation_of(stabiliser, len(y))
    values = rotated(rotation, values)
    covariances = (stabiliser.covariance,) * len(y)
    if rotation is not None and model.checks_channels:
        if sample is layout:
            covariances = rotated_covariances(values, y, excluded, stabiliser, limits)
        else:
            covariances = sampled_covariances(model, stabiliser, rotation, sample_y, sample.unknown, limits)
    valid = None if excluded is None else ~excluded
    return Stabilised(values, WayBack(layout, noisy, stabiliser, centre.offset, rotation, covariances, limits, valid))


def chosen_channels(values: NDArray[Any], noisy: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the channels that hold noise, as a view if all do; it cannot be written to."""
    y = values.view() if noisy.all() else values[noisy]
    y.flags.writeable = False  # a model of the user's must not change the data
    return y


def measured_stabiliser(model: NoiseModel, y: NDArray[Any], unknown: NDArray[np.bool_] | None) -> Stabiliser | None:
    """Return what the model says of data, checked; None if there is no noise."""
    stabiliser: Any = model.measure(y, unknown)
    if stabiliser is not None and not isinstance(stabiliser, Stabiliser):
        name = type(model).__name__
        msg = f"{name}.measure must return a Stabiliser, or None if there is no noise, got {stabiliser!r}."
        raise TypeError(msg)
    return stabiliser


def excluded_entries(
    model: NoiseModel, stabiliser: Stabiliser, y: NDArray[Any], unknown: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Return which entries, (*shape), are unknown or hold no noise; None if all hold noise."""
    excluded = noise_free_mask(y, unknown) if model.spares_constants else unknown
    constant_noise = stabiliser.may_be_constant(y) if excluded is not unknown else None
    if excluded is None or constant_noise is None:
        return excluded
    return excluded & ~constant_noise if unknown is None else excluded & ~constant_noise | unknown


def centred(
    stabiliser: Stabiliser, y: NDArray[Any], excluded: NDArray[np.bool_] | None, centre: Centre | None = None
) -> tuple[Floats, Centre]:
    """Return stabilised values less their mean per channel, gaps filled; and these means, unless they are given."""
    with np.errstate(invalid="ignore", divide="ignore"):  # excluded entries may have no root or logarithm
        values = stabiliser.forward(y)
    if excluded is not None:
        values = fill_gaps(values, excluded)
    given = centre is not None
    if centre is None:
        offset = values.mean(axis=tuple(range(1, values.ndim)), keepdims=True, dtype=np.float64)
        centre = Centre(offset, values.dtype)
    values -= centre.offset.astype(values.dtype)
    if not given and values.dtype == np.float64 and max(values.max(), -values.min()) < SINGLE_RANGE:
        centre = Centre(centre.offset, np.float32)
    return values.astype(centre.dtype, copy=False), centre


def rotated(rotation: Array | None, values: Floats) -> Floats:
    """Return the channels rotated into each other, contiguous."""
    if rotation is not None:
        values = np.tensordot(rotation.astype(values.dtype), values, axes=1)
    return np.ascontiguousarray(values)


def rotation_of(stabiliser: Stabiliser, channels: int) -> Array | None:
    """Return the DCT across channels, which decorrelates colours; None if channels are better treated alone."""
    if channels == 1 or not stabiliser.rotates:
        return None
    levels = np.sqrt(np.square(stabiliser.scale).mean(axis=tuple(range(1, stabiliser.scale.ndim))))
    return dct_matrix(channels) if levels.max() <= MOST_LEVEL_RATIO * levels.min() else None


def rotated_covariances(
    values: Floats,
    y: NDArray[Any],
    excluded: NDArray[np.bool_] | None,
    stabiliser: Stabiliser,
    limits: tuple[float, float],
) -> tuple[Covariance, ...]:
    """Return the covariance of every rotated channel; `values` are rotated, `y` is not.

    They differ if channels share their noise, as in grey stored as colours. Most structure is in the mean of the
    channels, the first one, and little in their differences. A rotation keeps the sum of the variances, so the first is
    what the others leave of it.
    """
    covariance = stabiliser.covariance
    if any(map(math.isfinite, limits)):
        near = near_clip_limits(y, stabiliser.scale, limits)
        excluded = near if excluded is None else near | excluded
    if excluded is not None and excluded.mean() >= MOST_EXCLUDED:
        return (covariance,) * len(values)
    read, error = channel_levels(values, excluded, peaks=False)
    tolerance = max(LEVEL_TOLERANCE, LEVEL_ERRORS * error)
    found = np.where(np.abs(read.ravel() - 1) < tolerance, 1.0, read.ravel())
    rest = len(found) - float(np.square(found[1:]).sum())
    levels = [math.sqrt(rest) if rest > 0 else found[0], *found[1:]]
    return tuple(covariance if abs(level - 1) < tolerance else White(max(level, LEAST_LEVEL)) for level in levels)


def sampled_covariances(
    model: NoiseModel,
    stabiliser: Stabiliser,
    rotation: Array,
    y: NDArray[Any],
    unknown: NDArray[np.bool_] | None,
    limits: tuple[float, float],
) -> tuple[Covariance, ...]:
    """Return the covariance of every rotated channel, told by a sample of the data."""
    excluded = excluded_entries(model, stabiliser, y, unknown)
    values = rotated(rotation, centred(stabiliser, y, excluded)[0])
    return rotated_covariances(values, y, excluded, stabiliser, limits)


def is_constant_channel(channel: NDArray[Any], missing: NDArray[np.bool_] | None) -> bool:
    """Tell whether all known entries of a channel, (parts, *shape), are equal, and not too few to tell."""
    known = channel if missing is None else channel[:, ~missing]
    return known.size >= MIN_REGION[1] and bool((known == known.flat[0]).all())
