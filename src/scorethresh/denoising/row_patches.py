"""The non-local expert on many signals of one length: what `NonlocalRidge` does, for all at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._arrays import Floats
from .._validate import Array
from ..frames.patch_rows import combine_rows, match_rows
from ..frames.patches import Patches
from .experts.nonlocal_ridge import DATA_SHARES, KEPT_NOISE


class RowSteps(NamedTuple):
    """All that the steps made, (rows, size): estimates, divergences and the response to noise; levels (rows, steps)."""

    value: Floats
    divergence: Floats
    response: Floats
    levels: Array


def run_row_steps(
    patches: Patches, y: Floats, pilot: Floats, *, levels: Array | None = None, noise: Floats | None = None
) -> RowSteps:
    """Run all steps on signals with noise of level 1, (rows, size).

    Levels that are not given are found, as `NonlocalRidge.fit` does. Without `noise`, the response is empty.
    """
    places = match_rows(patches, pilot)
    data, x, last = y, pilot, len(KEPT_NOISE) - 1
    found = np.ones((len(y), len(KEPT_NOISE))) if levels is None else levels
    for step, (kept, share) in enumerate(zip(KEPT_NOISE, DATA_SHARES, strict=True)):
        if step and levels is None:
            left = 1.0 - np.std(y - data, axis=1, dtype=np.float64)
            found[:, step] = np.maximum(left, KEPT_NOISE[step - 1])
        both = data[None] if noise is None or step < last else np.stack([data, noise])
        estimate = combine_rows(patches, places, x, both, np.ascontiguousarray(found[:, step]), share)
        x = estimate.value[0]
        data = x + (kept / found[:, step, None]).astype(y.dtype) * (data - x)
    response = estimate.value[1] if noise is not None else np.empty((0, y.shape[1]), y.dtype)
    return RowSteps(x, estimate.divergence, response, found)
