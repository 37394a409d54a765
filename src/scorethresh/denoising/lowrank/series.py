"""A series of images or volumes as the low-rank denoiser sees it: the volumes last, and which entries hold data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._arrays import Floats
from ..._threads import thread_map
from ..._validate import Array
from .patches import PatchBlock

__all__ = ["Series", "SeriesLike", "level_map", "masked_entries", "read_series"]

T = TypeVar("T")

# Fewer volumes say nothing of the noise: a patch has hardly more noise than signal in it.
MIN_VOLUMES = 5


class SeriesLike(Protocol):
    """What the noise and the size of patches are chosen on: a `Series`, or one that is not in memory."""

    @property
    def valid(self) -> NDArray[np.bool_]:
        """As in `Series`."""

    @property
    def parts(self) -> int:
        """As in `Series`."""

    @property
    def volumes(self) -> int:
        """As in `Series`."""

    def map(self, function: Callable[..., T], blocks: Sequence[PatchBlock], *maps: Array) -> list[T]:
        """As in `Series`. The function must be picklable."""


@dataclass(frozen=True, eq=False)
class Series:
    """Volumes, or images, along the last axis.

    Attributes
    ----------
    values : ndarray
        (*shape, volumes), floating; 0 where `valid` is False.
    valid : ndarray of bool
        Which entries hold noise: not masked, without NaN, not constant over the volumes; (*shape).
    original : ndarray
        As it was passed.
    axis : int
        The axis of the series in `original`.
    """

    values: Floats
    valid: NDArray[np.bool_]
    original: NDArray[Any]
    axis: int

    @property
    def parts(self) -> int:
        """The real parts of an entry: 2 if complex."""
        return 2 if np.iscomplexobj(self.values) else 1

    @property
    def rounding_error(self) -> float:
        """The mean squared error by rounding the estimate to the dtype of the original."""
        return 1 / 12 if self.original.dtype.kind in "iu" else 0.0

    @property
    def volumes(self) -> int:
        """The number of volumes."""
        return int(self.values.shape[-1])

    def part(self, region: tuple[slice, ...]) -> Series:
        """Return a region of it, as views, without the original."""
        return Series(self.values[region], self.valid[region], self.original[:0], self.axis)

    def map(self, function: Callable[..., T], blocks: Sequence[PatchBlock], *maps: Array) -> list[T]:
        """Return ``function(part, block, *maps)`` for all blocks, in threads: the part and the maps of its region."""

        def one(block: PatchBlock) -> T:
            return function(self.part(block.region), block, *(a[block.region] for a in maps))

        return thread_map(one, blocks)

    def restored(self, estimate: Floats) -> NDArray[Any]:
        """Return the estimate in the layout and dtype of the original, which fills in what is not valid."""
        out = np.moveaxis(estimate, -1, self.axis)
        keep = np.expand_dims(~self.valid, self.axis)
        plain = np.ma.getdata(self.original)
        if plain.dtype.kind in "iu":
            limits = np.iinfo(plain.dtype)
            out = np.clip(np.rint(out), limits.min, limits.max)
        out = np.where(keep, plain, out.astype(plain.dtype))
        if isinstance(self.original, np.ma.MaskedArray):
            return np.ma.array(out, mask=self.original.mask)
        return out


def read_series(y: Any, axis: Any, mask: Any) -> Series:
    """Return y as a series; refuse what is none."""
    original = y if isinstance(y, np.ma.MaskedArray) else _validate.as_array(y)
    plain = np.ma.getdata(original)
    if plain.dtype.kind not in "fiuc":
        msg = f"y must hold numbers, got dtype {plain.dtype}. Convert it first: np.asarray(y, dtype=float)."
        raise TypeError(msg)
    if plain.ndim not in (3, 4):
        msg = f"y must have 3 axes (images in a series) or 4 (volumes in a series), got shape {plain.shape}."
        raise ValueError(msg)
    if not isinstance(axis, int | np.integer) or isinstance(axis, bool) or not -plain.ndim <= axis < plain.ndim:
        msg = f"series_axis must be an axis of y, which has {plain.ndim}, got {axis!r}. Axes count from 0."
        raise ValueError(msg)
    if plain.size == 0:
        msg = f"y is empty, with shape {plain.shape}. Pass at least one entry."
        raise ValueError(msg)
    moved = np.moveaxis(plain, axis, -1)
    if moved.shape[-1] < MIN_VOLUMES:
        msg = (
            f"y has {moved.shape[-1]} volumes along series_axis={axis}, in shape {plain.shape}; {MIN_VOLUMES} are "
            "needed. Check series_axis. For few volumes denoise each by itself: denoise(y, channel_axis=...)."
        )
        raise ValueError(msg)
    dtype = np.result_type(moved.dtype, np.float32) if moved.dtype.kind in "fc" else np.float64
    valid: NDArray[Any] = np.asarray(np.isfinite(moved).all(axis=-1) & (moved != moved[..., :1]).any(axis=-1))
    if isinstance(original, np.ma.MaskedArray):
        valid = valid & ~np.moveaxis(np.ma.getmaskarray(original), axis, -1).any(axis=-1)
    if mask is not None:
        valid = valid & ~masked_entries(mask, moved.shape[:-1], plain.shape, int(axis))
    values = np.where(valid[..., None], moved, 0).astype(dtype)
    _validate.moderate(values)
    return Series(values, valid, original, int(axis))


def masked_entries(mask: Any, shape: tuple[int, ...], whole: tuple[int, ...], axis: int) -> NDArray[np.bool_]:
    """Return which entries are masked, (*shape), for a mask per entry or per entry and volume."""
    m = np.asarray(mask)
    if m.dtype != bool:
        msg = f"mask must be boolean, True where entries are missing, got dtype {m.dtype}. Try mask.astype(bool)."
        raise TypeError(msg)
    if m.shape == shape:
        return m
    if m.shape == whole:
        return np.asarray(np.moveaxis(m, axis, -1).any(axis=-1))
    msg = f"mask must have the shape of one volume, {shape}, or of y, {whole}, got {m.shape}."
    raise ValueError(msg)


def level_map(sigma: Any, shape: tuple[int, ...], valid: Any = True) -> Floats:
    """Return the given noise level as an array that broadcasts against one volume; 1 where entries are not valid."""
    if np.ndim(sigma) == 0:
        return np.full((1,) * len(shape), _validate.noise_level(sigma))
    levels = _validate.real_array(sigma, "sigma").astype(np.float64)
    if levels.shape != shape:
        msg = f"sigma must be one number, or a map with the shape of one volume, {shape}, got shape {levels.shape}."
        raise ValueError(msg)
    levels = np.where(valid, levels, 1.0)
    _validate.level_map(levels)
    return levels
