"""Checked wrappers of the loops over patches that look alike: `match_patches` and `ridge_groups`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import loader
from .checks import check_array, float_dtype

Floats = NDArray[Any]
Sides = tuple[int, int, int]

# The same as in the loops: entries of a patch, and patches in a group.
PATCH_SIZE = 64
MEMBERS = 32
# References of signals are so far apart, and vectors may read as many blocks of this length beyond a signal.
APART, FOLDED_MARGIN = 32, 40
# The lengths of a row of a patch that the loop is made for.
ROW_LENGTHS = (4, 8, 64)
# The places of patches are integers of 32 bits.
_MOST_ENTRIES = 2**31 - 1
# Squares of larger noise levels, or of smaller ones than the inverse, leave single precision.
_MOST_LEVEL = 1e15


def match_patches(
    x: Floats, patch: Sides, rows: NDArray[np.int64], columns: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return, for every reference, the first entries of the patches around it that are most like it.

    Parameters
    ----------
    x : ndarray of float32 or float64, shape (parts, nz, ny, nx)
        The data. Differences are summed over the parts.
    patch : tuple of int
        The sides of a patch: 64 entries in all; the last one is 4, 8 or 64.
    rows : ndarray of int64, shape (rows, 2)
        Where references start along z and y.
    columns : ndarray of int64
        Where they start along x, ascending. There is a reference at every row and column.
    offsets : ndarray of int64, shape (candidates, 3)
        Where patches lie relative to the reference; the first one is 0. Earlier ones win ties.

    Returns
    -------
    ndarray of int32, shape (rows * columns, MEMBERS)
        Indices into the flat data of one part, the nearest patch first. Where there are too few patches, the reference
        stands for the rest.
    """
    dtype = float_dtype("x", x)
    check_array("x", x, dtype, (None,) * 4)
    _check_patch(patch, x.shape)
    for name, a, sides in ("rows", rows, (0, 1)), ("columns", columns, (2,)):
        check_array(name, a, np.int64, (None, 2) if name == "rows" else (None,))
        last = [x.shape[1 + axis] - patch[axis] for axis in sides]
        if not a.size or a.min() < 0 or (a > last).any():
            msg = f"{name} must hold at least one start, from 0 to {last}, got {a.tolist()[:4]} ..."
            raise ValueError(msg)
    if (np.diff(columns) <= 0).any():
        msg = f"columns must ascend, got {columns.tolist()[:9]} ..."
        raise ValueError(msg)
    check_array("offsets", offsets, np.int64, (None, 3))
    if not len(offsets) or offsets[0].any() or offsets.min() < -_MOST_ENTRIES or offsets.max() > _MOST_ENTRIES:
        msg = f"offsets must start with (0, 0, 0) and fit 32 bits, got {offsets.tolist()[:2]} ..."
        raise ValueError(msg)
    places = np.empty((len(rows) * columns.size, MEMBERS), np.int32)
    scratch = 3 * x.shape[3] + columns.size
    if patch[2] == PATCH_SIZE:
        scratch = (len(x) + 1) * (x.shape[3] + APART * FOLDED_MARGIN)
    sums, nearest = np.empty(scratch, dtype), np.empty((len(places), MEMBERS + 1), dtype)
    loader.call(
        f"match_patches_{dtype.name}",
        *(len(x), np.array(x.shape[1:], np.int64), np.array(patch, np.int64), x),
        *(len(rows), rows, columns.size, columns, len(offsets), offsets, sums, nearest, places),
    )
    return places


class Ridge(NamedTuple):
    """How `ridge_groups` weighs patches.

    Attributes
    ----------
    level : float
        The noise level of the data.
    share : float
        The share of the data's own products, from 0 to 1; the rest are the pilot's.
    least_power : float
        The noise power that a combination lets through counts as at least this. A patch is weighted by its inverse.
    """

    level: float
    share: float
    least_power: float


class GroupSums(NamedTuple):
    """Sums over patches, from entry `first` of the flat data on.

    `total` holds weighted estimates, (parts or more, length); `weight` and `divergence`, (length,), hold the weights,
    and these times the divergence per entry over the noise variance.
    """

    first: int
    total: Floats
    weight: Floats
    divergence: Floats


def ridge_groups(pilot: Floats, data: Floats, patch: Sides, places: NDArray[np.int32], ridge: Ridge) -> GroupSums:
    """Estimate every patch by a combination of its group, and add the estimates up.

    Parameters
    ----------
    pilot : ndarray of float32 or float64, shape (parts, nz, ny, nx)
        A first estimate.
    data : ndarray, shape (parts or more, nz, ny, nx)
        The data. Parts beyond those of the pilot do not decide; they are combined as the data are.
    patch : tuple of int
        The sides of a patch, as in `match_patches`.
    places : ndarray of int32, shape (groups, MEMBERS)
        What `match_patches` returned.
    ridge : Ridge
        Levels and weights.

    Returns
    -------
    GroupSums
        The sums.

    Notes
    -----
    Columns are patches, less the mean over the group. With P those of the pilot, D those of the data and n their number
    of entries, the combinations are ``T = I - n level^2 ((1-s) (P'P + n level^2 I) + s D'D)^-1`` and the estimates D T.
    The divergence of a patch is its diagonal entry of T, plus what changes through the mean.
    """
    dtype = float_dtype("data", data)
    check_array("data", data, dtype, (None,) * 4)
    check_array("pilot", pilot, dtype, (None, *data.shape[1:]))
    if not 0 < len(pilot) <= len(data):
        msg = f"pilot must have at least one part, and no more than the data ({len(data)}), got {len(pilot)}."
        raise ValueError(msg)
    _check_patch(patch, data.shape)
    check_array("places", places, np.int32, (None, MEMBERS))
    _, _, ny, nx = data.shape
    pz, py, px = patch
    size = math.prod(data.shape[1:])
    rows = (np.arange(pz, dtype=np.int64)[:, None] * ny + np.arange(py, dtype=np.int64)).ravel() * nx
    if not len(places) or places.min() < 0 or int(places.max()) + int(rows[-1]) + px > size:
        msg = f"places must name at least one group of patches within {size} entries, got shape {places.shape}."
        raise ValueError(msg)
    level, share, least_power = map(float, ridge)
    _check_ridge(ridge)
    first = int(places.min())
    length = int(places.max()) + int(rows[-1]) + px - first
    total, (weight, divergence) = np.zeros((len(data), length), dtype), np.zeros((2, length), dtype)
    loader.call(
        f"ridge_groups_{dtype.name}",
        *(len(pilot), len(data) - len(pilot), np.array(data.shape[1:], np.int64), np.array(patch, np.int64), rows),
        *(pilot, data),
        *(level, share, least_power, len(places), places, first, length, total, weight, divergence),
    )
    return GroupSums(first, total, weight, divergence)


def ridge_signals(
    pilot: Floats, data: Floats, places: NDArray[np.int32], levels: NDArray[np.float64], ridge: Ridge
) -> GroupSums:
    """Do what `ridge_groups` does for signals of one length, each with a noise level of its own.

    Parameters
    ----------
    pilot : ndarray of float32 or float64, shape (signals, size)
        A first estimate.
    data : ndarray, shape (parts, signals, size)
        The data. Parts beyond the first do not decide.
    places : ndarray of int32, shape (signals * groups, MEMBERS)
        Indices into all signals, those of the first signal first. No group may mix signals.
    levels : ndarray of float64, shape (signals,)
        Noise levels.
    ridge : Ridge
        Weights. Its level is not used.

    Returns
    -------
    GroupSums
        The sums, for all entries.
    """
    dtype = float_dtype("data", data)
    check_array("data", data, dtype, (None,) * 3)
    check_array("pilot", pilot, dtype, data.shape[1:])
    check_array("places", places, np.int32, (None, MEMBERS))
    check_array("levels", levels, np.float64, (len(pilot),))
    signals, size = pilot.shape
    if not data.size or size < PATCH_SIZE or pilot.size > _MOST_ENTRIES or len(places) % signals or not len(places):
        msg = f"there must be signals of {PATCH_SIZE} entries or more with as many groups each, got {pilot.shape}."
        raise ValueError(msg)
    each = places.reshape(signals, -1)
    starts = size * np.arange(signals)
    if (each.min(axis=1) < starts).any() or (each.max(axis=1) > starts + size - PATCH_SIZE).any():
        msg = f"the patches of a group must lie in one signal of {size} entries."
        raise ValueError(msg)
    for level in (levels.min(), levels.max()):
        _check_ridge(Ridge(float(level), ridge.share, ridge.least_power))
    total, (weight, divergence) = np.zeros((len(data), pilot.size), dtype), np.zeros((2, pilot.size), dtype)
    loader.call(
        f"ridge_signals_{dtype.name}",
        *(signals, size, len(data) - 1, pilot, data, levels, float(ridge.share), float(ridge.least_power)),
        *(len(places) // signals, places, total, weight, divergence),
    )
    return GroupSums(0, total, weight, divergence)


def _check_ridge(ridge: Ridge) -> None:
    """Raise unless levels and weights are those that the loops are made for."""
    level, share, least_power = map(float, ridge)
    if not (1 / _MOST_LEVEL <= level <= _MOST_LEVEL and 0 <= share <= 1 and 0 < least_power < math.inf):
        limits = f"level from {1 / _MOST_LEVEL:g} to {_MOST_LEVEL:g}, share from 0 to 1, least_power above 0"
        msg = f"a ridge must have {limits}, got {ridge}."
        raise ValueError(msg)


def _check_patch(patch: Sides, shape: tuple[int, ...]) -> None:
    """Raise unless the loops are made for patches of these sides and the data hold one."""
    if len(patch) != 3 or math.prod(patch) != PATCH_SIZE or min(patch) < 1 or patch[2] not in ROW_LENGTHS:
        msg = f"the sides of a patch must have product {PATCH_SIZE}, the last one in {ROW_LENGTHS}, got {patch}."
        raise ValueError(msg)
    if not shape[0] or any(n < b for n, b in zip(shape[1:], patch, strict=True)):
        msg = f"the data must hold a patch of {patch}, got shape {shape}."
        raise ValueError(msg)
    if math.prod(shape[1:]) > _MOST_ENTRIES:
        msg = f"one part must have at most {_MOST_ENTRIES} entries, got shape {shape}. Split the data."
        raise ValueError(msg)
