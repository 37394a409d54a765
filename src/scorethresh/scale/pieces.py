"""A piece of data in chunks, ready to be denoised: what runs in the workers. Nothing here knows of dask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, cropped
from .._validate import Array
from ..denoising.batch import Batch
from ..denoising.layout import Layout, as_parts, missing_entries
from ..denoising.noise_sample import OUTLIER_MARGIN, outliers_of
from ..denoising.places import Place, widened
from ..denoising.regions import REGION_MARGIN, constant_regions
from ..denoising.stabilise import Centre, centred, chosen_channels, rotated
from ..denoising.way_back import WayBack
from ..noise.base import NoiseModel
from ..noise.covariance import Covariance
from ..noise.stabilisers import Scaling, Stabiliser

# Why an entry is left out: it is missing, an outlier, or in a constant region.
MISSING, OUTLIER, CONSTANT = 1, 2, 4
# How far beyond a tile flags look.
FLAG_MARGIN = max(OUTLIER_MARGIN, REGION_MARGIN)
# What is added to the margin of a piece: local means, and boxes that fill small gaps, look this far.
FILL_MARGIN = 16


@dataclass(frozen=True, eq=False)
class NoiseFacts:
    """What is known of the noise of all the data; picklable. The data themselves come piece by piece.

    Attributes
    ----------
    model : NoiseModel
        Of the channels that hold noise.
    noisy : ndarray of bool
        Which channels do.
    stabiliser : Stabiliser
        Of these. If the noise level is a map, of a level of 1.
    channel_axis : int, optional
        The axis of y that the channels come from.
    rotation, covariances, clip_limits
        As in `WayBack`.
    centre : Centre
        What is subtracted from stabilised values.
    outlier_levels : tuple of float, optional
        What outliers have to exceed; None if they are not looked for.
    mean_squares : ndarray, optional
        The mean squared noise level of each channel, or of all, if it is a map.
    gaps : bool
        Whether some entries are left out. True until that is known.
    """

    model: NoiseModel
    noisy: NDArray[np.bool_]
    stabiliser: Stabiliser
    channel_axis: int | None
    rotation: Array | None
    covariances: tuple[Covariance, ...]
    clip_limits: tuple[float, float]
    centre: Centre
    outlier_levels: tuple[float, ...] | None = None
    mean_squares: Array | None = None
    gaps: bool = True


def layout_of(y: NDArray[Any], missing: NDArray[np.bool_] | None, channel_axis: int | None) -> Layout:
    """Return a piece, (channels, *shape), as a layout; missing entries are marked, or NaN."""
    parts = as_parts(y)
    return Layout(parts, missing_entries(parts, missing), channel_axis)


def flags_of(y: NDArray[Any], mask: NDArray[np.bool_] | None, facts: NoiseFacts, inner: Place) -> NDArray[np.uint8]:
    """Return why entries of a tile, (*shape), are left out; 0 where they hold noise.

    Parameters
    ----------
    y : ndarray
        The tile with a margin of at least FLAG_MARGIN, (channels, *shape).
    mask : ndarray of bool, optional
        True where entries are missing.
    facts : NoiseFacts
        What is known of the noise.
    inner : tuple of slice
        The place of the tile.
    """
    layout = layout_of(y, mask, facts.channel_axis)
    flags = np.zeros(tuple(s.stop - s.start for s in inner), np.uint8)
    if layout.missing is not None:
        flags[layout.missing[inner]] |= MISSING
    if facts.outlier_levels is not None:
        near, inside = widened(inner, OUTLIER_MARGIN, layout.shape)
        with np.errstate(all="ignore"):  # what is infinite is told when all tiles are known
            found = outliers_of(layout.crop(near), facts.outlier_levels)[inside]
        flags[found] |= OUTLIER
    if facts.model.spares_constants:
        near, inside = widened(inner, REGION_MARGIN, layout.shape)
        some = cropped(chosen_channels(layout.values, facts.noisy), near)
        regions = constant_regions(some)
        if regions is not None:
            noise = facts.stabiliser.may_be_constant(some)
            regions = regions if noise is None else regions & ~noise
            flags[regions[inside]] |= CONSTANT
    return flags


@dataclass(frozen=True, eq=False)
class Piece:
    """A tile with its margin: stabilised values, (channels, parts, *shape), and the way back."""

    values: Floats
    back: WayBack
    facts: NoiseFacts

    @classmethod
    def make(
        cls, y: NDArray[Any], flags: NDArray[np.uint8] | None, sigma: NDArray[Any] | None, facts: NoiseFacts
    ) -> Piece:
        """Return a piece, given as (channels, *shape), with its flags, if there are some, and its noise levels."""
        flags = np.zeros(y.shape[1:], np.uint8) if flags is None else flags
        missing, outliers = flags & MISSING > 0, flags & OUTLIER > 0
        layout = Layout(
            as_parts(y),
            missing if missing.any() else None,
            facts.channel_axis,
            None,
            outliers if outliers.any() else None,
        )
        excluded = flags > 0 if facts.gaps else None
        stabiliser = facts.stabiliser
        if sigma is not None:
            levels = sigma[:, None] if len(sigma) == 1 else sigma[facts.noisy, None]
            levels = levels if missing is None else np.where(flags & MISSING > 0, _typical(levels), levels)
            stabiliser = Scaling(levels.astype(np.float64))
        noisy = chosen_channels(layout.values, facts.noisy)
        if excluded is not None and excluded.all():
            values = np.zeros(noisy.shape, facts.centre.dtype)
        else:
            filled = excluded if excluded is not None and excluded.any() else None
            values = rotated(facts.rotation, centred(stabiliser, noisy, filled, facts.centre)[0])
        back = WayBack(
            layout,
            facts.noisy,
            stabiliser,
            facts.centre.offset,
            facts.rotation,
            facts.covariances,
            facts.clip_limits,
            None if excluded is None else ~excluded,
        )
        return cls(values, back, facts)

    def inner(self, place: Place) -> Piece:
        """Return a part of the piece."""
        return Piece(np.ascontiguousarray(cropped(self.values, place)), self.back.crop(place), self.facts)

    def batch(self, channel: int, guide: Floats | None = None) -> Batch:
        """Return a channel as a batch of one piece."""
        batch = self.back.batch(channel, self.values[channel], guide)
        if self.facts.mean_squares is None or batch.weights is None:
            return batch
        # Weights of a map are over its mean in the piece; those of all pieces must be comparable.
        squares = np.square(self.back.stabiliser.scale).mean(axis=tuple(range(1, self.values.ndim)))
        if self.facts.rotation is not None or len(squares) == 1:
            factor = squares.mean() / self.facts.mean_squares.mean()
        else:
            factor = squares[channel] / self.facts.mean_squares[channel]
        return replace(batch, weights=batch.weights * np.float32(factor))


def _typical(levels: NDArray[Any]) -> Any:
    """Return a level for entries without one."""
    known = levels[np.isfinite(levels) & (levels > 0)]
    return np.median(known) if known.size else 1.0
