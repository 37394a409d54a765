"""Where the error is large: the predicted error, block by block and smoothed."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Floats
from .._validate import Array

# Side of a block by the number of axes: small against the smoothing below, and large enough to save memory.
BLOCK_SIDES = {1: 64, 2: 8, 3: 4}
# Standard deviation of the Gaussian that smooths over blocks. A wider one lowers the noise of the estimated risk, and
# loses details of the map. On 11 development photographs at noise 15 and 40 the deviance of the true error of blocks
# from the map, the mean of q - 1 - log q with the ratio q, is 0.21 and 0.32; with 1.25 it is 0.23 and 0.34.
SMOOTHING = 1.0
# The error against the divergence from place to place, both over the noise variance, is a power with this exponent:
# places that keep little of the noise are flat, and little is lost there. With 1, as for whole images, the map is too
# flat. From 1.2 to 1.4 the deviance changes by 0.01.
LOCAL_EXPONENT = 1.3
# Relative spread of the error about this power, from place to place. With 0.7 the deviance is lower by 0.01, and the
# tenths of least predicted error are worse off (0.74 of it at noise 40, with 1 0.91); with 1.4 it is higher by 0.02.
LOCAL_SPREAD = 1.0

Place = tuple[slice, ...]


class BlockSums(NamedTuple):
    """Sums over the blocks of a tile, (4, *blocks), and the index of the first block along each axis.

    The sums are those of the risk, of the divergence, of the noise variance, and of the number of entries with noise.
    """

    start: tuple[int, ...]
    sums: Array


def block_sums(tile: Place, risk: Floats, divergence: Floats, variance: Any, weight: Any) -> BlockSums:
    """Return the sums over the blocks of a tile.

    Parameters
    ----------
    tile : tuple of slice
        Its place in the whole.
    risk, divergence : ndarray
        Per entry, in units of stabilised values.
    variance : float or ndarray
        Of the noise, per entry.
    weight : float or ndarray
        That turns squared errors to the units of y squared; 0 where there is no noise.
    """
    side = BLOCK_SIDES[len(tile)]
    starts = [
        np.r_[place.start, np.arange(-(-(place.start + 1) // side) * side, place.stop, side)] - place.start
        for place in tile
    ]
    counts = functools.reduce(
        np.multiply.outer, (np.diff(some, append=n) for some, n in zip(starts, risk.shape, strict=True))
    )

    def total(values: Any) -> Array:
        if np.ndim(values) == 0:
            constant: Array = np.multiply(values, counts, dtype=np.float64)
            return constant
        out = np.broadcast_to(values, risk.shape)
        for axis, some in enumerate(starts):
            out = np.add.reduceat(out, some, axis=axis, dtype=np.float64)
        return out

    sums = [total(np.multiply(a, weight, dtype=np.float64)) for a in (risk, divergence, variance)]
    sums.append(total(np.greater(weight, 0)))
    return BlockSums(tuple(place.start // side for place in tile), np.stack(sums))


def joined(shape: tuple[int, ...], tiles: Iterable[BlockSums]) -> Array:
    """Return the sums over all blocks of data of a shape, (4, *blocks)."""
    side = BLOCK_SIDES[len(shape)]
    out = np.zeros((4, *(-(-n // side) for n in shape)))
    for start, sums in tiles:
        ends = zip(start, sums.shape[1:], strict=True)
        out[(slice(None), *(slice(first, first + count) for first, count in ends))] += sums
    return out


@dataclass(frozen=True, eq=False)
class ErrorBlocks:
    """Sums over blocks, from which a map of the predicted error is drawn.

    Attributes
    ----------
    shape : tuple of int
        Of one channel.
    sums : ndarray
        (4, *blocks), all channels together; see `BlockSums`.
    fourth : float
        The mean squared power of the noise over its squared variance: 1 if it is white.
    mse : float
        The predicted error of the whole, per entry.
    """

    shape: tuple[int, ...]
    sums: Array = field(repr=False)
    fourth: float
    mse: float

    @property
    def noise_rms(self) -> float:
        """The root mean square of the noise, where there is some."""
        return math.sqrt(float(self.sums[2].sum() / max(self.sums[3].sum(), 1.0)))

    def map(self) -> Array:
        """Return the predicted squared error at every entry.

        Notes
        -----
        In the neighbourhood of a block the two readings of `predict`, the estimated risk and a power of the divergence,
        are averaged by their precision, as for the whole. The result is scaled so that its mean is that of the
        whole.
        """
        from scipy.ndimage import gaussian_filter, map_coordinates

        risk, divergence, variance, count = (gaussian_filter(a, SMOOTHING, mode="reflect") for a in self.sums)
        ndim, side = len(self.shape), BLOCK_SIDES[len(self.shape)]
        blocks = (2 * math.sqrt(math.pi) * SMOOTHING) ** ndim  # as many independent ones vary as little
        known = np.maximum(count, np.finfo(float).tiny)
        unit = self.noise_rms**2 or 1.0  # squares of some units overflow
        risk, divergence, variance = (a / known / unit for a in (risk, divergence, variance))
        kept = np.maximum(divergence, 0.0) / np.maximum(variance, np.finfo(float).tiny)
        filtered = variance * kept**LOCAL_EXPONENT
        of_risk = (2 * self.fourth * variance**2 + 2 * variance * filtered) / np.maximum(count * blocks, 1.0)
        of_filter = (LOCAL_SPREAD * filtered) ** 2
        total = np.maximum(of_risk + of_filter, np.finfo(float).tiny)
        local = np.maximum(risk * of_filter + filtered * of_risk, 0.0) / total
        # A block may never be told to be free of error: a tenth of what the divergence says is left.
        local = np.maximum(local, 0.1 * filtered) * count / side**ndim
        places = [
            np.clip((np.arange(n) + 0.5) / side - 0.5, 0, m - 1) for n, m in zip(self.shape, count.shape, strict=True)
        ]
        out: Array = map_coordinates(local, np.meshgrid(*places, indexing="ij"), order=1, mode="nearest")
        mean = float(out.mean())
        return out * (max(self.mse, 0.0) / mean) if mean > 0 and self.mse > 0 else out
