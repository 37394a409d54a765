"""Small data of one shape that are treated together: their thresholds, and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, cropped
from .._validate import Array
from ..noise.base import ChosenNoise
from ..noise.covariance import White
from ..risk.curve import RiskCurve
from ..risk.methods import Mixture, as_method
from ..risk.mixture_rows import MOST_ENTRIES, choose_rows
from ..select.many import is_hashable
from ..select.threshold import risk_curve
from .experts.bands import BandThresholds, FrameNoise, divergence_with_borders
from .experts.decisions import EntryDecisions
from .experts.fit_bands import fit_bands
from .local import LocalExperts
from .plan import BANDS_RATIOS, Plan, PlanOptions
from .tiles import tile_risk
from .verdict import NO_NOISE, judge
from .way_back import WayBack


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
        return risk_curve(c, thresholds, sigma=sigma, rule=self.rule, method="score")


def can_be_together(options: PlanOptions, row: Any) -> bool:
    """Tell whether samples can be treated at once: thresholds in undecimated bands, chosen by the default method."""
    method = as_method("mixture") if options.method is None else options.method
    plain = options.fit is fit_bands and not options.blended and options.undecimated
    fast = isinstance(method, Mixture) and is_hashable(options.rule)
    return plain and fast and row.size <= MOST_ENTRIES and not isinstance(row, np.ma.MaskedArray)


def is_plain(row: Row) -> bool:
    """Tell whether a sample has no gaps, channels, parts or weights, and white noise."""
    plain = row.values.shape[:2] == (1, 1) and row.back.valid is None and row.back.covariances[0] == White(1.0)
    return plain and row.back.batch(0, row.values[0]).weights is None


def denoise_bands(rows: Sequence[Any], options: PlanOptions, *, pooled: bool = False) -> list[Found]:
    """Return what thresholds in bands make of samples of one precision: what `fit_bands` does, for all at once.

    If they are `pooled`, all share their thresholds and degrees of freedom.
    """
    values = np.concatenate([row.values for row in rows])
    shape = values.shape[2:]
    noise = FrameNoise.make(options.frames(shape)[0], White(1.0), len(shape), shape)
    inside = noise.frame.inside(shape)
    decisions = EntryDecisions(options.rule)
    null = options.method.null if isinstance(options.method, Mixture) else Mixture().null
    chosen: dict[int, Array] = {}
    divergence = np.full(len(values), noise.mean_share)

    def shrink(k: int, coefficients: Floats) -> Floats:
        band, c = noise.bands[k], cropped(coefficients, inside)
        z = c.reshape(len(c), -1).astype(np.float64)
        if pooled:
            shared, curve = decisions.select(z, band.sigma)
            chosen[k] = np.full(len(z), shared)
            dof = curve.dof[np.searchsorted(curve.thresholds, shared)] / len(z)
        else:
            found = choose_rows(z / band.sigma, options.rule, null)
            chosen[k], dof = found.thresholds * band.sigma, found.dof
        per_entry = band.share * dof / z.shape[1] + np.zeros(len(z))
        if band.border:
            triples = zip(c, chosen[k], per_entry, strict=True)
            per_entry = np.array([divergence_with_borders(band, *some) for some in triples])
        divergence[...] += per_entry
        pairs = zip(coefficients, chosen[k], strict=True)
        return np.stack([decisions.shrink(piece, float(t)) for piece, t in pairs])

    value = noise.frame.apply(values, shrink, len(shape))
    thresholds = np.stack([chosen[k] for k in sorted(chosen)], axis=1)
    out = []
    for row, x, each, t in zip(rows, value, divergence, thresholds, strict=True):
        expert = BandThresholds(noise, EntryDecisions(options.rule), tuple(map(float, t)))
        plan = Plan(LocalExperts((expert,)), (1.0,), (1.0,), BANDS_RATIOS[len(shape)])
        out.append(finished(row, x, np.broadcast_to(each, shape), plan))
    return out


def finished(row: Row, value: Floats, divergence: Floats, plan: Plan) -> Found:
    """Return a sample in its own units, with its prediction."""
    back = row.back
    whole = tuple(slice(0, n) for n in value.shape[1:])
    sums = tile_risk(row.values[0], value, divergence, back, 0, whole).sums
    restored = back.restore(value[None])
    prediction = back.predict(sums, back.entry_sums(restored), plan.filter_ratio)
    verdict = judge(row.chosen, back, row.values[0], value)
    noise = row.chosen.model.with_measured(back.stabiliser)
    sigma: Any = back.sigma
    mse, stderr = prediction.mse, prediction.stderr
    return Found(restored.estimate, sigma, mse, stderr, (plan,), noise, verdict.failures, str(verdict))
