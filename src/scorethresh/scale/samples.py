"""Samples of the magnitudes of a dask array, and its noise level: sums that add up."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _validate
from .._arrays import working_precision
from .._threads import one_thread_per_task
from .._validate import Array
from ..denoising.noise_sample import MEASURED_WHOLE, noise_sample
from ..noise.level import Domain, sample_level
from ..noise.level import estimate_sigma as estimate_in_memory
from ..noise.medians import MEDIAN_OF_NORMAL
from ..sample.cells import Cells
from ..sample.magnitudes import Magnitudes
from ..sample.magnitudes import gather as gather_in_memory
from .source import read_source

# Samples that a task adds up.
WIDTH = 16
# Bits of a magnitude, as a double, that the first pass does not look at when the median is found: 2^19 bins.
LOW_BITS = 44


def gather(y: Any, cells: Cells) -> Magnitudes:
    """Return the sample of a dask array on given cells: one pass, chunk by chunk, added up as a tree."""
    import dask

    _check(y)
    one = dask.delayed(one_thread_per_task(gather_in_memory), pure=True)
    add = dask.delayed(_added, pure=True)
    shared = dask.delayed(cells, traverse=False)
    level = [one(block, shared) for block in y.to_delayed().ravel()]
    while len(level) > 1:
        level = [add(level[k : k + WIDTH]) for k in range(0, len(level), WIDTH)]
    found: Magnitudes = dask.compute(level[0])[0]
    return found


@one_thread_per_task
def _added(samples: list[Magnitudes]) -> Magnitudes:
    return sum(samples[1:], samples[0])


def loaded(y: Any) -> Any:
    """Return a dask array in memory."""
    _check(y)
    return y.compute()


def _check(y: Any) -> None:
    """Refuse what is no array of real numbers, before anything is read."""
    _validate.data(np.empty((1,) * y.ndim if y.size else (0,), y.dtype))


def estimate_sigma(y: Any, *, domain: Domain | None = None) -> float:
    """Return `scorethresh.estimate_sigma` of a dask array.

    The median of coefficients is exact, in two passes. The level of samples is told by crops if there are more than
    2^22 of them.
    """
    _check(y)
    domain = domain or ("coefficients" if y.ndim == 1 else "samples")
    if _validate.choice("domain", domain, {"coefficients": False, "samples": True}):
        if y.size <= MEASURED_WHOLE:
            return estimate_in_memory(y.compute(), domain=domain)
        source = read_source(y, None, None, None)
        sample = noise_sample(source.shape, source.layouts)
        values = sample.values[0, 0].astype(working_precision(y.dtype))
        if sample.missing is not None:
            values[sample.missing] = np.nan
        level = sample_level(values)
    else:
        level = median_magnitude(y) / MEDIAN_OF_NORMAL
    if not level > 0:
        msg = "the noise level of y comes out as 0: most entries used are 0. Pass sigma, or crop constant parts."
        raise ValueError(msg)
    return level


def median_magnitude(y: Any) -> float:
    """Return the median of the magnitudes of a dask array, exactly.

    The bits of a positive double grow with it. One pass counts the leading bits, a second one collects the distinct
    values around the middle. What all tasks return does not grow with the data, but for values that are all different.
    """
    import dask

    blocks = y.to_delayed().ravel()
    counts = sum(dask.compute(*(dask.delayed(_leading_bits)(block) for block in blocks)))
    total, at = int(counts.sum()), np.cumsum(counts)
    if total != y.size:
        raise _validate.not_finite(y.size - total, y.size)
    ranks = [(total - 1) // 2, total // 2]
    bins = np.searchsorted(at, ranks, side="right")
    found = dask.compute(*(dask.delayed(_values_between)(block, int(bins[0]), int(bins[1])) for block in blocks))
    values, times = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(values)
    upto = np.cumsum(times[order]) + (at[bins[0] - 1] if bins[0] else 0)
    middle = values[order][np.searchsorted(upto, ranks, side="right")]
    return float(middle.mean())


def _bits(y: Any) -> Any:
    return np.abs(np.asarray(y, np.float64)).ravel()


def _leading_bits(y: Any) -> Any:
    values = _bits(y)
    values = values[np.isfinite(values)]
    return np.bincount((values.view(np.uint64) >> np.uint64(LOW_BITS)).astype(np.int64), minlength=1 << 19)


def _values_between(y: Any, low: int, high: int) -> tuple[Array, Any]:
    values = _bits(y)
    leading = values.view(np.uint64) >> np.uint64(LOW_BITS)
    return np.unique(values[(leading >= low) & (leading <= high)], return_counts=True)
