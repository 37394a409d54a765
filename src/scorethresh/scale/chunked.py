"""The doors for dask arrays: the functions that users call, with the same names."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from .. import _validate
from ..denoising.denoiser import Denoiser
from ..denoising.error_map import ErrorBlocks, joined
from ..denoising.noise_sample import is_sampled
from ..denoising.plan import named_bands, named_weights
from ..denoising.result import Denoised
from ..denoising.verdict import NO_NOISE
from ..denoising.way_back import EntrySums, WayBack
from ..risk.prediction import RiskSums
from .fit import Decisions, decide
from .lowrank import run_lowrank
from .rank import select_rank
from .result import LazyDenoised
from .samples import estimate_sigma, gather, loaded
from .source import read_source
from .tiles import denoised_tiles, estimates_of, sums_of

__all__ = ["applied", "denoise", "estimate_sigma", "gather", "loaded", "run", "run_lowrank", "select_rank"]

# A map of the error is kept for data of up to this many entries: its blocks take half a byte per entry.
MOST_MAPPED = 1 << 30


def denoise(y: Any, **options: Any) -> Any:
    """Return `scorethresh.denoise` of a dask array: a dask array with the same chunks."""
    return Denoiser(**options).run(y).estimate


def run(denoiser: Denoiser, y: Any) -> LazyDenoised:
    """Return `Denoiser.run` of a dask array."""
    source = read_source(y, denoiser.channel_axis, denoiser.mask, denoiser.sigma)
    if not is_sampled(source.shape):
        return _in_one_task(denoiser, y)
    options = denoiser.plan_options(complex_data=y.dtype.kind == "c")
    decisions = decide(source, denoiser, options)
    if decisions is None:
        return _unchanged(y)
    for failure in decisions.verdict.failures:
        _validate.warn(failure)
    return _lazy(y, decisions)


def applied(rule: Any, y: Any, threshold: float) -> Any:
    """Return a rule applied to a dask array, lazily."""
    return y.map_blocks(rule, threshold, dtype=rule(np.zeros(1, y.dtype), 1.0).dtype)


def _in_one_task(denoiser: Denoiser, y: Any) -> LazyDenoised:
    """Return what one task makes of data that are small."""
    import dask
    import dask.array as da

    whole = dask.delayed(denoiser.run, pure=True)(dask.delayed(np.asarray)(y))
    estimate = da.from_delayed(whole.estimate, y.shape, y.dtype).rechunk(y.chunks)
    mse, stderr = (_lazy_number(getattr(whole, name)) for name in ("predicted_mse", "stderr"))
    return LazyDenoised(estimate, mse, stderr, whole)


def _lazy_number(delayed: Any) -> Any:
    """Return an array of no axes, which `float` computes."""
    import dask
    import dask.array as da

    return da.from_delayed(dask.delayed(np.float64)(delayed), (), np.float64)


def _unchanged(y: Any) -> LazyDenoised:
    import dask
    import dask.array as da

    whole = dask.delayed(Denoised)(y, 0.0, 0.0, 0.0, (), {}, verdict=NO_NOISE)
    zero = da.zeros((), dtype=float)
    return LazyDenoised(y, zero, zero, whole, 0.0, (), {}, (), verdict=NO_NOISE, warnings=())


def _lazy(y: Any, decisions: Decisions) -> LazyDenoised:
    """Return the lazy result of decisions."""
    import dask
    import dask.array as da

    source, facts = decisions.source, decisions.facts
    found = denoised_tiles(decisions)
    estimate = estimates_of(found, y.dtype)
    estimate = estimate[0] if source.channel_axis is None else da.moveaxis(estimate, 0, source.channel_axis)
    estimate = estimate.rechunk(y.chunks)
    plans = tuple(some.plan for some in decisions.fitted)
    back = decisions.way_back(2 if y.dtype.kind == "c" else 1)
    known = {
        "sigma": back.sigma if source.sigma is None else source.sigma,
        "bands": named_bands(decisions.fitted),
        "weights": named_weights(decisions.fitted),
        "plans": plans,
        "noise": decisions.chosen.model.with_measured(facts.stabiliser),
        "verdict": str(decisions.verdict),
        "warnings": decisions.verdict.failures,
    }
    # From the pairs themselves: the tasks of arrays are fused, and would run twice.
    pairs = found.to_delayed()
    assembled = dask.delayed(_assembled)(list(pairs.ravel()), pairs.shape, source.channel_axis)
    sums = _tree_sum(sums_of(pairs))
    prediction = dask.delayed(_predicted, pure=True)(sums, dask.delayed(back, traverse=False), plans[0].filter_ratio)
    whole = dask.delayed(_denoised)(
        assembled, prediction, sums, dask.delayed((back, known), traverse=False), source.shape
    )
    mse, stderr = (_lazy_number(prediction[k]) for k in range(2))
    return LazyDenoised(estimate, mse, stderr, whole, **known)


def _assembled(pairs: list[Any], counts: tuple[int, ...], channel_axis: int | None) -> Any:
    """Return the estimate in memory, given the tiles in order and how many there are along each axis."""
    tiles = np.empty(len(pairs), object)
    for k, (estimate, _) in enumerate(pairs):
        tiles[k] = estimate
    whole = np.block(tiles.reshape(counts).tolist())
    return whole[0] if channel_axis is None else np.moveaxis(whole, 0, channel_axis)


# The sums of tiles: of the risk, of the entries, the number of outliers, and the sums of blocks.
_Sums = tuple[RiskSums, EntrySums, int, tuple[Any, ...]]


def _tree_sum(tiles: list[Any], width: int = 32) -> Any:
    """Return the sum over tiles, delayed: some at a time, always the same ones together."""
    import dask

    level = [dask.delayed(_add_tiles, pure=True)(tiles[k : k + width]) for k in range(0, len(tiles), width)]
    while len(level) > 1:
        level = [dask.delayed(_add_sums, pure=True)(level[k : k + width]) for k in range(0, len(level), width)]
    return level[0]


def _add_tiles(tiles: list[Any]) -> _Sums:
    risk = functools.reduce(operator.add, (tile.risk for tile in tiles))
    entries = functools.reduce(operator.add, (tile.entries for tile in tiles))
    return risk, entries, sum(tile.outliers for tile in tiles), tuple(b for tile in tiles for b in tile.blocks)


def _add_sums(parts: list[_Sums]) -> _Sums:
    risk = functools.reduce(operator.add, (part[0] for part in parts))
    entries = functools.reduce(operator.add, (part[1] for part in parts))
    return risk, entries, sum(part[2] for part in parts), tuple(b for part in parts for b in part[3])


def _predicted(sums: _Sums, back: WayBack, filter_ratio: Any) -> tuple[float, float]:
    return prediction_of(sums[0], sums[1], back, filter_ratio)


def prediction_of(risk: RiskSums, entries: EntrySums, back: WayBack, filter_ratio: Any) -> tuple[float, float]:
    """Return the predicted error and its standard error, given sums over all tiles."""
    found = back.predict(risk, entries, filter_ratio)
    return found.mse, found.stderr


def _denoised(estimate: Any, prediction: tuple[float, float], sums: _Sums, fixed: Any, shape: tuple[int, ...]) -> Any:
    """Return everything, computed."""
    back, known = fixed
    covariance, blocks = back.covariances[0], None
    if math.prod(shape) <= MOST_MAPPED:
        ratio = covariance.mean_squared_power / covariance.variance**2
        blocks = ErrorBlocks(shape, joined(shape, sums[3]), ratio, prediction[0])
    return Denoised(
        estimate,
        known["sigma"],
        *prediction,
        known["bands"],
        known["weights"],
        known["plans"],
        noise=known["noise"],
        verdict=known["verdict"],
        warnings=known["warnings"],
        outliers=sums[2],
        error_blocks=blocks,
    )
