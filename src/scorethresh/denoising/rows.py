"""Small data of one shape that are treated together: their thresholds, and what is known of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._threads import cores, thread_map
from .._validate import Array
from ..noise.base import ChosenNoise
from ..noise.covariance import White
from ..risk.curve import RiskCurve
from ..risk.methods import Mixture, Score, as_method
from ..risk.mixture_rows import MOST_ENTRIES, choose_rows
from ..risk.prediction import RiskSums, risk_sums
from ..select.many import is_hashable
from ..select.threshold import risk_curve
from .experts.bands import BandThresholds, FrameNoise
from .experts.decisions import EntryDecisions
from .experts.fit_bands import fit_bands
from .local import LocalExperts
from .plan import BANDS_RATIOS, Plan, PlanOptions
from .row_bands import fit_row_bands
from .row_plans import RowBlend
from .tiles import entry_risk
from .verdict import NO_NOISE, Case, judge_all
from .way_back import Restored, WayBack, predict_rows

# It estimates divergences under a shared plan.
SCORE = Score()
# Entries that are transformed at once. More save little, and their coefficients leave the cache. Half of them or twice
# as many take 3 to 5% more time in bands of 1024 entries. In blends half of them take 4% more; twice as many take 4%
# less, and twice the memory.
BAND_ENTRIES = 1 << 17
BLEND_ENTRIES = 1 << 16


class Row(NamedTuple):
    """One sample: its noise, and what was made of it before its way back."""

    chosen: ChosenNoise
    back: WayBack
    values: Floats


class Found(NamedTuple):
    """What was found in one sample."""

    estimate: NDArray[Any]
    sigma: Any
    mse: float
    stderr: float
    plans: tuple[Plan, ...] = ()
    noise: Any = None
    failures: tuple[str, ...] = ()
    verdict: str = NO_NOISE


@dataclass(frozen=True)
class QuickDecisions(EntryDecisions):
    """The same thresholds as by default in small bands, without risk curves and standard errors."""

    def select(self, c: Floats, sigma: float) -> tuple[float, RiskCurve]:
        """Return the threshold of least estimated risk, and the risk there."""
        found = choose_rows(c.reshape(1, -1).astype(np.float64) / sigma, self.rule, Mixture().null)
        at = found.thresholds * sigma
        return float(at[0]), RiskCurve(at, found.risks * sigma**2, found.dof, np.zeros(1), c.size, sigma)


@dataclass(frozen=True)
class ScoreDecisions(EntryDecisions):
    """Decisions that are made already. Of each sample only the divergence is estimated, by SCORE."""

    def default_curve(self, c: Floats, thresholds: Array, sigma: float) -> RiskCurve:
        """Return the risk at thresholds."""
        if thresholds.size == 1 and np.isinf(thresholds[0]):  # nothing is left, and nothing varies
            risk = np.atleast_1d(np.square(c, dtype=np.float64).sum() - c.size * sigma**2)
            return RiskCurve(thresholds, risk, np.zeros(1), np.zeros(1), c.size, sigma)
        # Entries side by side are read as they are; others would be sorted first.
        c = np.ascontiguousarray(c)
        found = SCORE.direct(c, thresholds, sigma=sigma, rule=self.rule)
        return risk_curve(c, thresholds, sigma=sigma, rule=self.rule, method=SCORE) if found is None else found


def can_be_together(options: PlanOptions, row: Any) -> bool:
    """Tell whether samples can be treated at once: the blend of signals, or thresholds in undecimated bands.

    Thresholds must be chosen by the default method.
    """
    if row.size > MOST_ENTRIES or isinstance(row, np.ma.MaskedArray):
        return False
    if options.blended:
        return options.method is None and row.ndim == 1
    method = as_method("mixture") if options.method is None else options.method
    fast = isinstance(method, Mixture) and is_hashable(options.rule)
    return options.fit is fit_bands and options.undecimated and fast


def is_plain(row: Row) -> bool:
    """Tell whether a sample has no gaps, channels, parts or weights, and white noise."""
    plain = row.values.shape[:2] == (1, 1) and row.back.valid is None and row.back.covariances[0] == White(1.0)
    return plain and row.back.batch(0, row.values[0]).weights is None


def denoise_together(rows: Sequence[Row], options: PlanOptions, *, pooled: bool = False) -> list[Found]:
    """Return what plans of their own make of plain samples of one precision.

    If they are `pooled`, all share their thresholds and degrees of freedom; there is no such blend.
    """
    shape, dtype = rows[0].values.shape[2:], rows[0].values.dtype
    if options.blended:
        blend = RowBlend.make(shape[0], dtype, options)
        return _in_parts(lambda some: _blends(some, blend), rows, BLEND_ENTRIES)
    noise = FrameNoise.make(options.frames(shape)[0], White(1.0), len(shape), shape)
    if pooled:
        return _thresholds(rows, noise, options, pooled=True)
    return _in_parts(lambda some: _thresholds(some, noise, options, pooled=False), rows, BAND_ENTRIES)


def _in_parts(treat: Callable[[Sequence[Row]], list[Found]], rows: Sequence[Row], most: int) -> list[Found]:
    """Treat rows in threads, of at most so many entries at once."""
    each = min(most // rows[0].values.size, -(-len(rows) // cores()))
    parts = [rows[k : k + each] for k in range(0, len(rows), each)]
    return [one for found in thread_map(treat, parts) for one in found]


def _blends(rows: Sequence[Row], blend: RowBlend) -> list[Found]:
    """Return the blends of signals."""
    (value, divergence), plans = blend.fit(np.concatenate([row.values[0] for row in rows]))
    return finished(rows, value[:, None], np.broadcast_to(divergence, value.shape), plans)


def _thresholds(rows: Sequence[Row], noise: FrameNoise, options: PlanOptions, *, pooled: bool) -> list[Found]:
    """Return what thresholds in bands make of samples."""
    values = np.concatenate([row.values for row in rows])
    bands = fit_row_bands(noise, values, options, pooled=pooled)
    decisions, ndim = EntryDecisions(options.rule), values.ndim - 2
    experts = [BandThresholds(noise, decisions, tuple(map(float, each))) for each in bands.thresholds]
    plans = [Plan(LocalExperts((expert,)), (1.0,), (1.0,), BANDS_RATIOS[ndim]) for expert in experts]
    divergence = bands.divergence.reshape(-1, *(1,) * ndim)
    return finished(rows, bands.value, np.broadcast_to(divergence, (len(rows), *values.shape[2:])), plans)


def finished(rows: Sequence[Row], values: Floats, divergences: Floats, plans: Sequence[Plan]) -> list[Found]:
    """Return plain samples in their own units, with their predictions.

    Parameters
    ----------
    rows : sequence of Row
        The samples, of one shape and precision.
    values : ndarray
        Their estimates, (rows, 1, *shape).
    divergences : ndarray
        Of their entries, (rows, *shape).
    plans : sequence of Plan
        What they were made by.
    """
    whole = tuple(slice(0, n) for n in values.shape[2:])
    treated = []
    for row, value, divergence, plan in zip(rows, values, divergences, plans, strict=True):
        risk = entry_risk(row.values[0], value, divergence, row.back, 0, whole)
        sums = risk_sums(risk.risk, risk.divergence, risk.weight)
        treated.append(Treated(row, value, sums, row.back.restore(value[None]), (plan,)))
    return found_in(treated)


class Treated(NamedTuple):
    """A sample, its first channel without noise, the sums of its risk, the result, and the plans."""

    row: Row
    value: Floats
    sums: RiskSums
    restored: Restored
    plans: tuple[Plan, ...]


def found_in(samples: Sequence[Treated]) -> list[Found]:
    """Return what was found in samples of one shape and precision: they are judged and predicted side by side."""
    backs, sums = [some.row.back for some in samples], [some.sums for some in samples]
    entries = [back.entry_sums(some.restored) for back, some in zip(backs, samples, strict=True)]
    predictions = predict_rows(backs, sums, entries, samples[0].plans[0].filter_ratio)
    verdicts = judge_all([Case(s.row.chosen, s.row.back, s.row.values[0], s.value) for s in samples])
    out = []
    for some, back, verdict, prediction in zip(samples, backs, verdicts, predictions, strict=True):
        chosen, told = some.row.chosen, verdict.with_prediction(prediction)
        noise, sigma = chosen.model.with_measured(back.stabiliser), back.sigma
        mse, stderr = prediction.mse, prediction.stderr
        out.append(Found(some.restored.estimate, sigma, mse, stderr, some.plans, noise, told.failures, str(told)))
    return out
