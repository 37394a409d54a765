"""The size of the patches: given, or of least estimated risk on samples of the series."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._validate import Array
from .common_basis import REGION_ENTRIES
from .patches import PatchBlock, PatchGrid
from .result import predict_risk
from .series import Series, SeriesLike
from .sums import denoise_patches, regions_of

__all__ = ["candidate_grids", "choose_grid"]

# Sizes to choose from, by the number of axes, and the number of regions to choose on, at most; at most the share of all
# regions, or small series would be denoised thrice for the choice alone. The divergence of patches of 3 x 3 was 3% too
# low on a video.
CANDIDATES = {2: (4, 6, 8), 3: (3, 4, 5)}
SAMPLES = 2
SAMPLED_SHARE = 0.25


def candidate_grids(patch: Any, step: Any, shape: tuple[int, ...]) -> list[PatchGrid]:
    """Return the grids of patches to choose from: one if the size is given."""
    if patch is None:
        sizes = {tuple(min(size, n) for n in shape) for size in CANDIDATES[len(shape)]}
        patches = sorted(size for size in sizes if math.prod(size) > 1)
        if not patches:
            msg = f"y must have more than one entry per volume, got volumes of shape {shape}. Use select_threshold."
            raise ValueError(msg)
    else:
        patches = [_checked_patch(patch, shape)]
    return [PatchGrid(shape, size, _step_of(step, size, given=patch is not None)) for size in patches]


def choose_grid(series: SeriesLike, levels: Array, grids: list[PatchGrid]) -> PatchGrid:
    """Return the grid of least estimated risk on a few regions.

    Notes
    -----
    All sizes see the same noise, so their risks differ by far less than by their standard errors.
    """
    if len(grids) == 1:
        return grids[0]
    ones = (1,) * series.valid.ndim
    regions = PatchGrid(series.valid.shape, ones, ones).blocks(REGION_ENTRIES)
    fullest = sorted(regions, key=lambda block: -int(series.valid[block.region].sum()))[: max(1, len(regions) // 2)]
    count = max(1, min(SAMPLES, int(SAMPLED_SHARE * len(regions))))
    samples = fullest[:: max(1, -(-len(fullest) // count))]
    return min(grids, key=lambda grid: sum(series.map(functools.partial(_risk, grid), samples, levels)))


def _risk(grid: PatchGrid, part: Series, region: PatchBlock, levels: Array) -> float:
    """Return the estimated risk of patches in a region, in units of the noise level."""
    shape = part.valid.shape
    patch = tuple(min(size, n) for size, n in zip(grid.patch, shape, strict=True))
    sums = denoise_patches(part, levels, regions_of(PatchGrid(shape, patch, grid.step)), lambda: None)
    return predict_risk(part, levels, sums)


def _checked_patch(patch: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    sizes = _sizes(patch, "patch", len(shape))
    if any(size > n for size, n in zip(sizes, shape, strict=True)):
        msg = f"patch must fit into the data, of shape {shape}, got {sizes}. Choose a smaller one, or leave it out."
        raise ValueError(msg)
    if math.prod(sizes) < 2:
        msg = f"patch must hold at least 2 entries, got {sizes}. Choose a larger one, or leave it out."
        raise ValueError(msg)
    return sizes


def _step_of(step: Any, patch: tuple[int, ...], *, given: bool) -> tuple[int, ...]:
    if step is None:
        return tuple(max(1, (size - 1) // 2) for size in patch)
    sizes = _sizes(step, "step", len(patch))
    if given and any(s > p for s, p in zip(sizes, patch, strict=True)):
        msg = f"step must not exceed the patch, {patch}, or entries are left out, got {sizes}. Choose a smaller one."
        raise ValueError(msg)
    return tuple(min(s, p) for s, p in zip(sizes, patch, strict=True))


def _sizes(value: Any, name: str, ndim: int) -> tuple[int, ...]:
    each = (value,) * ndim if np.ndim(value) == 0 else tuple(value)
    whole = all(isinstance(v, int | np.integer) and not isinstance(v, bool) and v >= 1 for v in each)
    if len(each) != ndim or not whole:
        msg = f"{name} must be a whole number of at least 1, or {ndim} of them, one per axis, got {value!r}."
        raise ValueError(msg)
    return tuple(int(v) for v in each)
