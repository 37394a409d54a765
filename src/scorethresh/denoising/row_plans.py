"""Plans of many signals of one length, each with its own: what `fit_plan` does, for all at once.

Signals lie along the first axis of every array, (rows, size). What depends on their length alone is made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Floats
from .._validate import Array
from ..frames.signal_windows import SignalWindows
from ..noise.covariance import White
from ..risk.monte_carlo import LARGEST_RATIO, LEAST_RATIO
from .aggregate import simplex_minima
from .batch import Batch
from .experts.bands import BandThresholds, FrameNoise
from .experts.decisions import EntryDecisions
from .experts.nonlocal_ridge import PATCHES, NonlocalRidge
from .experts.windows import FIRST_STAGE, STRENGTH, THRESHOLD, GuidedWindows, WindowThresholds, windows_for
from .local import LocalExperts
from .plan import BLEND_RATIOS, Plan, PlanOptions
from .probe import PROBE_STEP, Probe
from .refine import Refinement
from .row_bands import RowBands, apply_row_bands, fit_row_bands
from .row_patches import run_row_steps


class RowEstimates(NamedTuple):
    """Estimates of signals and their divergences, per entry, (rows, size); the divergence may be (rows, 1)."""

    value: Floats
    divergence: Floats

    def total_divergence(self) -> Array:
        """Return the divergence of every row, summed over its entries."""
        total: Array = np.broadcast_to(self.divergence, self.value.shape).sum(axis=1, dtype=np.float64)
        return total


class RowPlans(NamedTuple):
    """The estimates of signals, and the plan of each."""

    estimates: RowEstimates
    plans: list[Plan]


class _Local(NamedTuple):
    """What local experts made of signals: the coefficients of the pilot in windows, the pilot, and what is blended."""

    pilot_coefficients: list[Floats]
    pilot: Floats
    values: list[Floats]


@dataclass(frozen=True, eq=False)
class RowBlend:
    """The experts of the blend for signals of one length and precision, before anything was chosen.

    Attributes
    ----------
    options : PlanOptions
        What the user chose.
    noises : tuple of FrameNoise
        Those of the wavelet frames.
    guides, guided : tuple
        Experts in windows. Both have the same windows.
    windows : tuple of SignalWindows
        These windows.
    probe : ndarray
        A draw of the noise, (1, size), the same for all.
    """

    options: PlanOptions
    noises: tuple[FrameNoise, ...]
    guides: tuple[WindowThresholds, ...]
    guided: tuple[GuidedWindows, ...]
    windows: tuple[SignalWindows, ...]
    probe: Floats

    @classmethod
    def make(cls, size: int, dtype: Any, options: PlanOptions) -> RowBlend:
        """Return the experts for white noise of level 1."""
        white, shape = White(1.0), (size,)
        used = windows_for(FIRST_STAGE, shape)
        guides = tuple(WindowThresholds.make(w, white) for w in used)
        return cls(
            options,
            tuple(FrameNoise.make(frame, white, 1, shape) for frame in options.frames(shape)),
            guides,
            tuple(GuidedWindows(guide.windows, guide.variance) for guide in guides),
            tuple(SignalWindows.make(guide.windows, size, guide.variance, dtype) for guide in guides),
            Probe.draw(Batch(np.zeros((1, 1, size), dtype)), white).noise[0],
        )

    def fit(self, y: Floats) -> RowPlans:
        """Choose thresholds and weights for signals of noise level 1, and return their estimates."""
        bands = [fit_row_bands(noise, y[:, None], self.options) for noise in self.noises]
        of_bands = [RowEstimates(found.value[:, 0], found.divergence[:, None]) for found in bands]
        pairs = [(some, some.coefficients(y)) for some in self.windows]
        first = [*of_bands, *(RowEstimates(*some.hard(c, THRESHOLD)) for some, c in pairs)]
        pilot_weights = least_risk_rows(y, [e.value for e in first], [e.total_divergence() for e in first])
        pilot = blend_rows(pilot_weights, [e.value for e in first])
        pilots = [some.coefficients(pilot) for some in self.windows]
        second = [RowEstimates(*w.guided(c, g, STRENGTH)) for (w, c), g in zip(pairs, pilots, strict=True)]
        blended = [*of_bands, *second]
        still = _Local(pilots, pilot, [e.value for e in blended])
        lengths = self._lengths(y)
        moved = self._moved(y + lengths * self.probe, bands, pilot_weights)
        corrections = self._corrections(len(bands), still, moved, lengths)
        divergences = [c * e.total_divergence() for c, e in zip(corrections.T, blended, strict=True)]
        weights = least_risk_rows(y, [e.value for e in blended], divergences)
        local = blend_row_estimates(weights, corrections, blended)
        plans = self._plans(bands, pilot_weights, corrections, weights)
        patches = PATCHES[1]
        if not self.options.refined or not patches.fit(y.shape[1:]):
            return RowPlans(local, plans)
        return self._refined(y, local, lengths, blend_rows(weights, moved.values), plans)

    def _lengths(self, y: Floats) -> Floats:
        """Return how far every signal is moved along the probe, (rows, 1): to the side that `Probe` looks at."""
        ahead = inner_rows(np.broadcast_to(self.probe, y.shape), y) >= 0
        return np.where(ahead, PROBE_STEP, -PROBE_STEP).astype(y.dtype)[:, None]

    def _moved(self, y: Floats, bands: list[RowBands], pilot_weights: Array) -> _Local:
        """Return what the local experts make of signals that were moved."""
        rule = self.options.rule
        values = [
            apply_row_bands(noise, rule, y[:, None], found.thresholds)[:, 0]
            for noise, found in zip(self.noises, bands, strict=True)
        ]
        pairs = [(some, some.coefficients(y)) for some in self.windows]
        pilot = blend_rows(pilot_weights, [*values, *(some.hard(c, THRESHOLD).value for some, c in pairs)])
        pilots = [some.coefficients(pilot) for some in self.windows]
        guided = [some.guided(c, g, STRENGTH).value for (some, c), g in zip(pairs, pilots, strict=True)]
        return _Local(pilots, pilot, [*values, *guided])

    def _corrections(self, bands: int, still: _Local, moved: _Local, lengths: Floats) -> Array:
        """Return the factors of the divergences, (rows, experts), as `fit_plan` finds them: 1 for wavelets."""
        out = np.ones((len(still.pilot), len(still.values)))
        for k, (some, pilot) in enumerate(zip(self.windows, still.pilot_coefficients, strict=True), bands):
            control = some.guided(some.coefficients(self.probe), pilot, STRENGTH).value
            out[:, k] = self._ratios((moved.values[k] - still.values[k]) / lengths, control)
        return out

    def _ratios(self, change: Floats, control: Floats) -> Array:
        """Return the derivative along the probe over that of a control, both projected onto it, of every row."""
        shown, expected = (inner_rows(np.broadcast_to(self.probe, some.shape), some) for some in (change, control))
        ratios: Array = np.clip(shown / np.maximum(expected, 1e-300), LEAST_RATIO, LARGEST_RATIO)
        return ratios

    def _refined(self, y: Floats, local: RowEstimates, lengths: Floats, pilot: Floats, plans: list[Plan]) -> RowPlans:
        """Return the plans with patches that look alike as the last stage; `pilot` is that of moved signals."""
        patches = PATCHES[1]
        steps = run_row_steps(patches, y, local.value, noise=np.broadcast_to(self.probe, y.shape))
        moved = run_row_steps(patches, y + lengths * self.probe, pilot, levels=steps.levels)
        corrections = np.ones((len(y), 2))
        corrections[:, 1] = self._ratios((moved.value - steps.value) / lengths, steps.response)
        both = [local, RowEstimates(steps.value, steps.divergence)]
        divergences = [c * e.total_divergence() for c, e in zip(corrections.T, both, strict=True)]
        weight = least_risk_rows(y, [e.value for e in both], divergences)[:, 1]
        estimates = blend_row_estimates(np.stack([1 - weight, weight], axis=1), corrections, both)
        found = zip(plans, steps.levels, corrections[:, 1], weight, strict=True)
        return RowPlans(
            estimates,
            [
                Plan(
                    plan.experts,
                    plan.corrections,
                    plan.weights,
                    plan.filter_ratio,
                    Refinement(NonlocalRidge(patches, tuple(map(float, levels))), float(c), float(w)),
                )
                for plan, levels, c, w in found
            ],
        )

    def _plans(self, bands: list[RowBands], pilot_weights: Array, corrections: Array, weights: Array) -> list[Plan]:
        """Return the plan of every row, without the last stage."""
        decisions, out = EntryDecisions(self.options.rule), []
        for row in range(len(weights)):
            thresholds = tuple(
                BandThresholds(noise, decisions, tuple(map(float, found.thresholds[row])))
                for noise, found in zip(self.noises, bands, strict=True)
            )
            experts = LocalExperts(thresholds, self.guides, tuple(map(float, pilot_weights[row])), self.guided)
            factors, shares = (tuple(map(float, some[row])) for some in (corrections, weights))
            out.append(Plan(experts, factors, shares, BLEND_RATIOS[1]))
        return out


def least_risk_rows(y: Floats, values: Sequence[Floats], divergences: Sequence[Array]) -> Array:
    """Return what `least_risk_weights` does of every row, (rows, experts)."""
    residuals = [value - y for value in values]
    gram = np.empty((len(y), len(values), len(values)))
    for i in range(len(values)):
        for j in range(i + 1):
            gram[:, i, j] = gram[:, j, i] = inner_rows(residuals[i], residuals[j])
    return simplex_minima(gram, np.stack(divergences, axis=1))


def blend_rows(weights: Array, values: Sequence[Floats]) -> Floats:
    """Return the weighted sum of estimates, with weights (rows, experts)."""
    out = np.zeros_like(values[0])
    for weight, value in zip(weights.T, values, strict=True):
        if weight.any():
            out += weight.astype(out.dtype)[:, None] * value
    return out


def blend_row_estimates(weights: Array, corrections: Array, estimates: Sequence[RowEstimates]) -> RowEstimates:
    """Return the weighted sum of estimates; divergences are multiplied by their corrections."""
    divergence: Floats = np.zeros((len(weights), 1))
    for factor, estimate in zip((weights * corrections).T, estimates, strict=True):
        divergence = divergence + factor[:, None] * estimate.divergence
    return RowEstimates(blend_rows(weights, [estimate.value for estimate in estimates]), divergence)


def inner_rows(a: Floats, b: Floats) -> Array:
    """Return the sum of ``a * b`` of every row, in double precision, as `inner` does of one signal."""
    out: Array = np.einsum("ij,ij->i", a, b, dtype=np.float64)
    return out
