"""What is decided before anything is denoised: the noise, and the plans of all channels."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from .._threads import one_thread_per_task
from ..denoising.batch import Batch, joined_batches
from ..denoising.crops import BLOCK_SIDE, crops_within
from ..denoising.denoiser import Denoiser
from ..denoising.layout import Layout
from ..denoising.noise_sample import noise_sample, outlier_levels
from ..denoising.places import Place, widened
from ..denoising.plan import FittedPlan, PlanOptions, fit_plan
from ..denoising.stabilise import (
    centred,
    chosen_channels,
    excluded_entries,
    is_constant_channel,
    measured_stabiliser,
    rotation_of,
    sampled_covariances,
)
from ..denoising.tiles import local_estimate, local_margin
from ..denoising.value_range import ValueRange
from ..denoising.verdict import Verdict, judge
from ..denoising.way_back import WayBack
from ..noise.base import ChosenNoise
from ..noise.concentration import middle
from ..noise.named import as_noise
from ..noise.stabilisers import Scaling
from .cuts import Tile, tile_results
from .grid import Grid
from .pieces import FILL_MARGIN, NoiseFacts, Piece
from .source import Source, mean_squares, range_of
from .statistics import Statistics, TileStatistics, tile_statistics


class Decisions(NamedTuple):
    """The data with their flags, the noise, the plans, and whether the noise model holds."""

    source: Source
    chosen: ChosenNoise
    facts: NoiseFacts
    fitted: list[FittedPlan]
    verdict: Verdict

    def way_back(self, parts: int) -> WayBack:
        """Return a way back that holds no data: what a prediction and the noise level need."""
        facts, ndim = self.facts, len(self.source.shape)
        empty = Layout(np.zeros((len(facts.noisy), parts, *(1,) * ndim)), None, self.source.channel_axis)
        return WayBack(
            empty,
            facts.noisy,
            facts.stabiliser,
            facts.centre.offset,
            facts.rotation,
            facts.covariances,
            facts.clip_limits,
            None,
        )


def decide(source: Source, denoiser: Denoiser, options: PlanOptions) -> Decisions | None:
    """Measure the noise and fit the plans; None if there is no noise. The data are read once, some crops twice."""
    known = measure(source, denoiser)
    if known is None:
        range_of(source).check()
        return None
    source, chosen, facts, scores = known
    fitted: list[FittedPlan] = []
    for k in range(len(facts.covariances)):
        guided = bool(fitted) and facts.rotation is not None and options.refined
        batch = _crops(source, facts, k, scores, fitted[0] if guided else None)
        cap = math.sqrt(2 * math.log(batch.values.shape[1] * math.prod(source.shape)))
        fitted.append(fit_plan(batch, facts.covariances[k], source.shape, options, cap))
    return Decisions(source, chosen, facts, fitted, _verdict(source, chosen, facts, fitted[0]))


class _Known(NamedTuple):
    source: Source
    chosen: ChosenNoise
    facts: NoiseFacts
    statistics: Statistics


def measure(source: Source, denoiser: Denoiser) -> _Known | None:
    """Return the noise, told by crops, and what all tiles tell; None if there is no noise."""
    noise = as_noise(denoiser.noise, 1.0 if source.sigma is not None else denoiser.sigma)
    if not noise.sampled:
        msg = (
            f"{type(noise).__name__} measures the noise of all data at once, which are in chunks. Set its member "
            "sampled = True if crops tell as much, or load y: y.compute()."
        )
        raise TypeError(msg)
    if noise.slices:
        with_slices = source.with_slices_as_channels()
        if with_slices is not source:
            source, noise = with_slices, noise.of_slices()
    sample = noise_sample(source.shape, source.layouts)
    _check_sample(sample, source)
    chosen = noise.chosen_for(sample.values, sample.missing)
    levels = outlier_levels(sample) if noise.finds_outliers else None
    sample = dataclasses.replace(sample, outliers=chosen.outliers)
    like = np.broadcast_to(np.zeros((), sample.values.dtype), (*sample.values.shape[:2], *source.shape))
    model = chosen.model.laid_out(like, source.piece_axis)
    unknown = sample.unknown
    noisy = np.array([not (model.spares_constants and is_constant_channel(c, unknown)) for c in sample.values])
    if not noisy.any():
        return None
    model, y = model.of_channels(noisy), chosen_channels(sample.values, noisy)
    squares = None
    if source.sigma is None:
        stabiliser = measured_stabiliser(model, y, unknown)
    else:
        squares = mean_squares(source.sigma)
        squares = squares if len(squares) == 1 else squares[noisy]
        stabiliser = Scaling(np.sqrt(squares).reshape(-1, 1, *(1,) * len(source.shape)))
    if stabiliser is None:
        return None
    excluded = excluded_entries(model, stabiliser, y, unknown)
    if excluded is not None and excluded.all():
        return None
    rotation, count = rotation_of(stabiliser, len(y)), len(y)
    facts = NoiseFacts(
        model,
        noisy,
        stabiliser,
        source.piece_axis,
        rotation,
        (stabiliser.covariance,) * count,
        (-math.inf, math.inf),
        centred(stabiliser, y, excluded)[1],
        levels,
        squares,
    )
    source = source.with_flags(facts)
    found, flagged = _statistics(source, facts)
    source, facts = source.with_flags_at(flagged), dataclasses.replace(facts, gaps=bool(flagged))
    if model.clips and y.shape[1] == 1:
        facts = dataclasses.replace(facts, clip_limits=stabiliser.limits_to_undo(found.clip_limits))
    if rotation is not None and model.checks_channels:
        of_channels = sampled_covariances(model, stabiliser, rotation, y, unknown, facts.clip_limits)
        facts = dataclasses.replace(facts, covariances=of_channels)
    return _Known(source, chosen, facts, found)


def _check_sample(sample: Layout, source: Source) -> None:
    """Refuse crops that cannot tell the noise."""
    if sample.missing is not None and sample.missing.all():
        msg = "no entry is known in any of the crops that tell the noise: NaN or masked. Crop y to its known part."
        raise ValueError(msg)
    try:
        ValueRange.of(sample.values, sample.missing).check()
    except ValueError:
        range_of(source).check()  # all the data say it in the words for data in memory


def _statistics(source: Source, facts: NoiseFacts) -> tuple[Statistics, list[Place]]:
    """Return what all tiles tell, and those tiles that have flags; refuse data that cannot be denoised."""
    import dask

    grid = Grid.make(source.shape, FILL_MARGIN, BLOCK_SIDE[len(source.shape)])
    tiles, shared = list(grid.tiles.values()), dask.delayed((facts, grid.shape), pure=True, traverse=False)
    told = tile_results(_statistics_of_tile, tiles, source.chunks, shared)
    found = Statistics.join(told, source.shape)
    found.range.check()
    sizes = (math.prod(s.stop - s.start for s in tile.place) for tile in tiles)
    flagged = [tile.place for tile, some, size in zip(tiles, told, sizes, strict=True) if some.valid < size]
    return found, flagged


@one_thread_per_task
def _statistics_of_tile(
    tile: Tile, shared: tuple[NoiseFacts, tuple[int, ...]], y: Any, flags: Any, sigma: Any
) -> TileStatistics:
    facts, shape = shared
    with np.errstate(all="ignore"):  # infinite entries and fill values are told when all tiles are known
        return tile_statistics(Piece.make(y, flags, sigma, facts), tile, shape)


def _crops(source: Source, facts: NoiseFacts, k: int, found: Statistics, first: FittedPlan | None) -> Batch:
    """Return the crops of a channel that its plan is fitted to; with a guide if the first channel has a plan."""
    places = crops_within(source.shape, found.ends, found.scores[k])
    margin = FILL_MARGIN
    if first is not None:
        margin += local_margin(first.plan)
    wide = [widened(place, margin, source.shape) for place in places]
    pieces = source.pieces([place for place, _ in wide], facts)
    batches = []
    for piece, (_, inner) in zip(pieces, wide, strict=True):
        guide = None
        if first is not None:
            guide = local_estimate(first.plan, piece.batch(0), inner)[0]
        batch = piece.batch(k).crops([inner])  # weights are local means, so that they need the margin
        batches.append(batch if guide is None else dataclasses.replace(batch, guide=guide[None]))
    return joined_batches(batches)


def _verdict(source: Source, chosen: ChosenNoise, facts: NoiseFacts, fitted: FittedPlan) -> Verdict:
    """Return whether the noise model holds, told by the middle of the data."""
    plan = fitted.plan
    place = middle(source.shape)
    step = plan.step
    margin = -(-(plan.reach + FILL_MARGIN) // step) * step
    aligned = tuple(slice(s.start // step * step, s.stop) for s in place)
    wide, _ = widened(aligned, margin, source.shape)
    inner = tuple(slice(s.start - w.start, s.stop - w.start) for s, w in zip(place, wide, strict=True))
    (piece,) = source.pieces([wide], facts)
    estimate = plan.apply(piece.batch(0)).value[0]
    part = piece.inner(inner)
    return judge(chosen, part.back, part.values[0], estimate[(slice(None), *inner)])
