"""Patches that look alike in many signals of one length: what `Patches` does, for all at once.

Signals lie side by side as planes of a volume. Patches are compared along them only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._kernels import Ridge, match_patches, ridge_signals
from .._validate import Array
from .patches import LEAST_POWER, Patches, reference_starts, search_offsets
from .windows import WindowEstimate


def match_rows(patches: Patches, x: Floats) -> NDArray[np.int32]:
    """Return what `Patches.match` does of every row of `x`, (rows, size), as indices into all of it."""
    rows = np.stack([np.arange(len(x)), np.zeros(len(x), np.int64)], axis=1)
    columns = reference_starts(x.shape[1], patches.block[0], patches.step)
    volume, offsets = np.ascontiguousarray(x)[None, :, None], search_offsets(1, patches.search)
    return match_patches(volume, (1, 1, patches.block[0]), rows, columns, offsets)


def combine_rows(
    patches: Patches, places: NDArray[np.int32], pilot: Floats, data: Floats, levels: Array, share: float
) -> WindowEstimate:
    """Return what `Patches.combine` does of every row.

    Parameters
    ----------
    patches, places
        The patches, and what `match_rows` returned.
    pilot : ndarray
        (rows, size).
    data : ndarray
        (parts, rows, size). Parts beyond the first are combined as that is.
    levels : ndarray
        The noise level of the data of every row.
    share : float
        As in `Patches.combine`.

    Returns
    -------
    WindowEstimate
        The value is like the data, the divergence like the pilot.
    """
    x, y = np.ascontiguousarray(pilot), np.ascontiguousarray(data)
    sums = ridge_signals(x, y, places, levels, Ridge(1.0, share, LEAST_POWER))
    value, divergence = sums.total / sums.weight, sums.divergence / sums.weight
    return WindowEstimate(value.reshape(y.shape), divergence.reshape(x.shape))
