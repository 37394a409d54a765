"""The noise level of a series, entry by entry, read off the smaller singular values of its patches."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._arrays import Floats
from ..._validate import Array
from ...noise.bulk import BulkFit, fit_bulk
from .common_basis import REGION_ENTRIES, common_basis
from .patches import PatchBlock, PatchGrid
from .series import Series, SeriesLike
from .shrinkage import gram_eigenvalues
from .sums import BLOCK_BYTES

__all__ = ["NoiseMap", "energy_correction", "estimate_noise_map", "level_surface", "patch_levels"]

# A patch needs this share of valid entries to tell the level. Fewer leave rims of masks to their neighbours.
MIN_VALID_SHARE = 0.5
# The least share of all noise that must lie outside of the bases for the correction.
MIN_OUTSIDE_SHARE = 0.2
# If less than the first lies outside, the squared level may be wrong by the second. On simulated data it was 0.9 and
# 0.3% for diffusion and hyperspectral data, 0.5 to 0.65 and 1.6 to 3.7% for a video.
LOW_RANK_SHARE = 0.7
HIDDEN_SHARE = 0.03


class NoiseMap(NamedTuple):
    """The noise level of one part at every entry, and the relative error that all its squares may have in common."""

    levels: Array
    common_error: float = 0.0


def estimate_noise_map(series: SeriesLike) -> NoiseMap:
    """Estimate the noise level of one part at every entry.

    Parameters
    ----------
    series : SeriesLike
        The data.

    Returns
    -------
    NoiseMap
        The level, (*shape); 0 everywhere if there is no noise.

    Warns
    -----
    AssumptionWarning
        If no patch tells its level.

    Notes
    -----
    Patches of at least as many entries as there are volumes do not overlap here. The level of each is fitted by
    `fit_bulk`. The map is the median over neighbouring patches, so that patches with signal of high rank do not matter,
    interpolated linearly between their centres. Its mean is then corrected: what whole regions hold outside of their
    common basis is noise, and far more of it.
    """
    out = level_surface(series, _levels_of)
    if not out.all():
        return NoiseMap(np.zeros(out.shape))
    correction, error = energy_correction(series, out)
    return NoiseMap(out * correction, error)


def level_surface(series: SeriesLike, levels_of: Callable[..., Array], *maps: Array) -> Array:
    """Return the noise level at every entry, from levels of patches that do not overlap.

    Parameters
    ----------
    series : SeriesLike
        The data.
    levels_of : callable
        Takes a part of the series, a `PatchBlock` and the maps there, returns the level of every patch, NaN where it
        cannot be told. With ``doubted=True`` it returns what was found all the same.
    *maps : ndarray
        More that is known of every entry.
    """
    shape, volumes = series.valid.shape, series.volumes
    patch = _wide_patch(shape, volumes)
    grid = PatchGrid(shape, patch, patch)
    blocks = grid.blocks(max(1, BLOCK_BYTES // (8 * series.parts * volumes * math.prod(patch))))
    levels = np.empty(tuple(map(len, grid.corners())))
    for block, found in zip(blocks, series.map(levels_of, blocks, *maps), strict=True):
        levels[block.place] = found.reshape(tuple(map(len, block.corners)))
    if np.isfinite(levels).any():
        return _interpolated(_local_median(levels), grid)
    msg = (
        "The noise level cannot be told from the series: its patches are not of low rank, or hold too few entries "
        "or volumes. The median of what was found is used. Pass sigma if it is known."
    )
    _validate.warn(msg)
    doubted = np.concatenate(series.map(functools.partial(levels_of, doubted=True), blocks, *maps))
    return np.full(shape, np.nanmedian(doubted) if np.isfinite(doubted).any() else 0.0)


def _wide_patch(shape: tuple[int, ...], volumes: int) -> tuple[int, ...]:
    """Return the smallest cube of at least as many entries as there are volumes, as far as it fits."""
    size = 3
    while math.prod(min(size, n) for n in shape) < volumes and size < max(shape):
        size += 1
    return tuple(min(size, n) for n in shape)


def energy_correction(series: SeriesLike, levels: Array) -> tuple[float, float]:
    """Return by what the levels are too low, and the relative error that is left in their squares.

    The energy outside of the bases of whole regions is that of noise, and of signal too weak to be detected. One such
    component, just below the edge, may hide in every region of V entries and N volumes, k of them in the basis: a share
    ``sqrt(N/V) / (N - k)`` of the energy.
    """
    ones = (1,) * levels.ndim
    regions = PatchGrid(levels.shape, ones, ones).blocks(REGION_ENTRIES)
    energy, count, hidden = np.sum(series.map(_energy_outside, regions, levels), axis=0)
    outside = count / (series.valid.sum() * series.volumes)
    if outside < LOW_RANK_SHARE:
        msg = (
            f"The series is not of low rank: {1 - outside:.0%} of the combinations of its volumes hold signal, and "
            "weaker signal passes for noise. The noise level is too high by a few per cent, the predicted error too "
            "low. Pass sigma if it is known."
        )
        _validate.warn(msg)
    # A basis of nearly all volumes leaves too little noise to tell.
    if outside < MIN_OUTSIDE_SHARE:
        return 1.0, HIDDEN_SHARE
    error = hidden / count if outside >= LOW_RANK_SHARE else HIDDEN_SHARE
    return float(np.sqrt(energy / count)), float(error)


def _energy_outside(part: Series, block: PatchBlock, levels: Array) -> tuple[float, float, float]:
    """Return the energy of a region outside of its basis, how many numbers it is of, and what may hide in it."""
    valid, volumes = part.valid, part.volumes
    y = part.values[valid] / (levels[valid] * np.sqrt(part.parts))[:, None]
    basis = common_basis(y.astype(np.complex128 if part.parts == 2 else np.float64))
    k = basis.inside.size
    return float(basis.outside.sum()), max(len(y) - k, 0) * (volumes - k), float(np.sqrt(len(y) * volumes))


def _levels_of(part: Series, block: PatchBlock, *, doubted: bool = False) -> Array:
    """Return the level of every patch of a block; NaN where it cannot be told, unless doubt does not matter."""
    values = block.cut(part.values).astype(np.complex128 if part.parts == 2 else np.float64)
    return patch_levels(values, block.cut(part.valid), doubted=doubted)


def patch_levels(values: Floats, valid: NDArray[np.bool_], *, doubted: bool = False) -> Array:
    """Return the noise level of one part in every patch, (patches, entries, volumes), in double precision.

    NaN where it cannot be told, unless doubt does not matter.
    """
    volumes, parts = values.shape[-1], 2 if np.iscomplexobj(values) else 1
    eigenvalues, counts = gram_eigenvalues(values, valid)
    out = np.full(len(values), np.nan)
    for i, (one, count) in enumerate(zip(np.sqrt(eigenvalues), counts.tolist(), strict=True)):
        rows = count - 1
        if rows > 0 and count >= MIN_VALID_SHARE * valid.shape[1]:
            fit: BulkFit = fit_bulk(one[: min(rows, volumes)], rows, volumes)
            if doubted or not fit.reason:
                out[i] = fit.sigma / np.sqrt(parts)
    return out


def _local_median(levels: Array) -> Array:
    """Return the median of a patch and its neighbours; patches that tell nothing take it from those around them."""
    while np.isnan(levels).any():
        unknown = np.isnan(levels)
        around = _neighbours(np.pad(levels, 1, constant_values=np.nan))[unknown]
        some = np.isfinite(around).any(axis=-1)
        filled = np.full(len(around), np.nan)
        filled[some] = np.nanmedian(around[some], axis=-1)
        levels = levels.copy()
        levels[unknown] = filled
    padded = levels
    for axis, n in enumerate(levels.shape):
        # A level that rises up to the border goes on beyond it, or the median would lag behind.
        width = [(1, 1) if a == axis else (0, 0) for a in range(levels.ndim)]
        padded = np.pad(padded, width, mode="reflect", reflect_type="odd") if n > 1 else np.pad(padded, width, "edge")
    out: Array = np.median(_neighbours(padded), axis=-1)
    return out


def _neighbours(padded: Array) -> Array:
    """Return every entry and those around it along the last axis, without the outermost layer."""
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3,) * padded.ndim)
    return windows.reshape(*windows.shape[: padded.ndim], -1)


def _interpolated(levels: Array, grid: PatchGrid) -> Array:
    """Return the levels between the centres of the patches; beyond the outermost they go on at most half a step."""
    out = levels
    for axis, (corners, size, n) in enumerate(zip(grid.corners(), grid.patch, grid.shape, strict=True)):
        if len(corners) == 1:
            out = np.repeat(out, n, axis)
            continue
        centres = np.array(corners) + (size - 1) / 2
        low = np.clip(np.searchsorted(centres, np.arange(n), side="right") - 1, 0, len(corners) - 2)
        share = (np.arange(n) - centres[low]) / (centres[low + 1] - centres[low])
        share = np.clip(share, -0.5, 1.5).reshape([-1 if a == axis else 1 for a in range(out.ndim)])
        out = np.take(out, low, axis) * (1 - share) + np.take(out, low + 1, axis) * share
    return np.clip(out, levels.min() / 2, levels.max() * 2)
