"""The plan: what is done to every tile of a channel, chosen once on a sample of it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .._arrays import Floats
from .._threads import thread_map
from ..frames.wavelets import Decimated, Frame, Undecimated, default_levels, wavelet
from ..noise.covariance import Covariance
from ..risk.estimate import Estimate
from ..risk.methods import Method, Selector
from ..risk.prediction import FilterRatio
from ..rules import Rule
from .aggregate import blend, blend_values, least_risk_weights
from .batch import Batch
from .experts.bands import Band, BandThresholds, FrameNoise
from .experts.decisions import Decisions, decisions_for
from .experts.fit_bands import FittedBands, fit_bands
from .experts.windows import FIRST_STAGE, SECOND_STAGE, GuidedWindows, WindowThresholds, windows_for
from .local import LocalExperts, LocalValues
from .probe import Probe
from .refine import Refinement, fit_refinement

# By the number of axes: the wavelets of the blend, and that of bands alone. Smooth wavelets suit signals.
BLENDED_WAVELETS = {1: ("haar", "sym8"), 2: ("haar",), 3: ("haar",)}
BANDS_WAVELET = {1: "sym8", 2: "haar", 3: "haar"}

# Entries of a signal from which its experts are fitted one after the other, for the sake of memory: wavelets of twelve
# levels hold fourteen arrays as long as the signal.
LONG = 1 << 18

# The error against the divergence, by the number of axes, for thresholds of wavelets alone and for blends, refined or
# not. By maximum likelihood on 11 photographs, 8 signals and 24 volumes for development at four to six noise levels the
# exponents are 0.96, 0.87 and 1.01 for wavelets, 1.06, 1.01 and 1.11 for blends, give or take 0.02; of volumes made of
# photographs 1.05, of ellipsoids 1.19. For blends of 14 signals of 256 to 16384 samples the median is 1.09; with 1.05
# predicted PSNRs are 0.5 dB too low in the median, with 1.1 and 1.15 0.1 dB and -0.4 dB. Clock and moon, which the
# evidence reports on, had a say in using the divergence at all.
BANDS_RATIOS = {1: FilterRatio(0.95), 2: FilterRatio(0.87), 3: FilterRatio(1.0)}
BLEND_RATIOS = {1: FilterRatio(1.1), 2: FilterRatio(1.0), 3: FilterRatio(1.1)}


@dataclass(frozen=True, eq=False)
class PlanOptions:
    """What the user chose: a blend, perhaps `refined`, or thresholds by `fit` alone; in which frame and how.

    `decide` returns the decisions for a number of parts, a rule and a method.
    """

    blended: bool
    refined: bool
    fit: Callable[..., FittedBands]
    wavelet: str | None
    levels: int | None
    undecimated: bool
    rule: Rule
    method: Method | Selector | None
    decide: Callable[..., Decisions] = decisions_for

    def frames(self, shape: tuple[int, ...]) -> list[Frame]:
        """Return the wavelet frames for data of a shape."""
        ndim = len(shape)
        names = [self.wavelet or BANDS_WAVELET[ndim]]
        if self.blended and self.wavelet is None:
            names = list(BLENDED_WAVELETS[ndim])
        kind = Undecimated if self.undecimated else Decimated
        return [kind(name, self._levels(shape)) for name in names]

    def _levels(self, shape: tuple[int, ...]) -> int:
        if self.levels is not None:
            most = max(int(math.log2(max(shape))), 1)
            if self.levels > most:
                msg = f"levels must be at most {most} for data of shape {shape}, got {self.levels}."
                raise ValueError(msg)
            return int(self.levels)
        levels = default_levels(shape)
        if not self.undecimated:  # beyond, borders would reach everywhere
            taps = wavelet(self.wavelet or BANDS_WAVELET[len(shape)]).dec_len
            levels = min(levels, max(int(math.log2(max(min(shape) / max(taps - 1, 1), 1))), 1))
        return levels


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Experts with all their parameters, and the weights of their blend. Frozen and picklable; `apply` is pure.

    Attributes
    ----------
    experts : LocalExperts
        The first stages.
    corrections : tuple of float
        The divergence by Monte Carlo over the analytic one, for each expert that is blended.
    weights : tuple of float
        Of these in the blend.
    filter_ratio : FilterRatio
        How the error of such a blend compares with its divergence.
    refinement : Refinement, optional
        The last stage. Without it, the estimate is the local one.
    """

    experts: LocalExperts
    corrections: tuple[float, ...]
    weights: tuple[float, ...]
    filter_ratio: FilterRatio
    refinement: Refinement | None = None

    @property
    def used(self) -> list[bool]:
        """Which of the experts that are blended have a weight."""
        return [weight > 0 for weight in self.weights]

    @property
    def local_reach(self) -> int:
        """How far an entry of the estimate before the refinement lies, at most, from the data that it depends on."""
        return self.experts.reach(self.used)

    @property
    def reach(self) -> int:
        """How far an entry of the estimate lies, at most, from the data that it depends on."""
        return self.local_reach + (0 if self.refinement is None else self.refinement.expert.reach)

    @property
    def step(self) -> int:
        """Tiles and their margins must be multiples of it, so that windows lie where they lie in the whole."""
        return math.lcm(self.experts.step, 1 if self.refinement is None else self.refinement.expert.step)

    @property
    def named_weights(self) -> dict[str, float]:
        """The weights by the names of the experts; empty if there is no blend."""
        if not self.experts.guided:
            return {}
        last = {} if self.refinement is None else {self.refinement.expert.name: self.refinement.weight}
        local = 1 - sum(last.values())
        return {e.name: local * w for e, w in zip(self.experts.blended, self.weights, strict=True)} | last

    def __repr__(self) -> str:
        weights = self.named_weights or {self.experts.thresholds[0].name: 1.0}
        return f"<Plan: {', '.join(f'{name} {weight:.1%}' for name, weight in weights.items())}>"

    def apply(self, batch: Batch) -> Estimate:
        """Return the estimate of a batch with its divergence."""
        local = self.local(batch)
        return local if self.refinement is None else self.refinement.apply(batch, local)

    def local(self, batch: Batch) -> Estimate:
        """Return the estimate before the refinement."""
        weights, corrections = (tuple(itertools.compress(v, self.used)) for v in (self.weights, self.corrections))
        return blend(weights, corrections, self.experts.estimates(batch, self.used))


class ChosenPlan(NamedTuple):
    """The plan, and the bands that it was fitted to."""

    plan: Plan
    bands: tuple[Band, ...]


class FittedPlan(NamedTuple):
    """The plan, its estimate of the batch that it was fitted to, before and after the refinement, and the bands."""

    plan: Plan
    local: Estimate
    estimate: Estimate
    bands: tuple[Band, ...]

    @property
    def chosen(self) -> ChosenPlan:
        """What was chosen, without estimates."""
        return ChosenPlan(self.plan, self.bands)


def named_bands(fitted: Sequence[FittedPlan | ChosenPlan]) -> tuple[Band, ...]:
    """Return the bands of all channels, with the channel they are of if there are several."""
    several = len(fitted) > 1
    pairs = ((k, band) for k, some in enumerate(fitted) for band in some.bands)
    return tuple(replace(band, channel=k if several else None) for k, band in pairs)


def named_weights(fitted: Sequence[FittedPlan | ChosenPlan]) -> dict[str, float]:
    """Return the weights of all experts by their names, with the channel if there are several."""
    several = len(fitted) > 1
    pairs = ((k, pair) for k, some in enumerate(fitted) for pair in some.plan.named_weights.items())
    return {f"channel {k} {name}" if several else name: weight for k, (name, weight) in pairs}


def fit_plan(
    batch: Batch, covariance: Covariance, shape: tuple[int, ...], options: PlanOptions, cap: float = math.inf
) -> FittedPlan:
    """Choose thresholds and weights on a batch.

    Parameters
    ----------
    batch : Batch
        The whole channel as one piece, or crops of it.
    covariance : Covariance
        Of its noise.
    shape : tuple of int
        Of the whole channel.
    options : PlanOptions
        What the user chose.
    cap : float
        The largest threshold, over the noise level of its band.
    """
    decisions = options.decide(batch.values.shape[1], options.rule, options.method)
    # What borders do to the variance is computed for undecimated frames only.
    noises = [
        FrameNoise.make(frame, covariance, len(shape), shape if options.undecimated else None)
        for frame in options.frames(shape)
    ]
    if not options.blended:
        return _fit_bands_alone(options.fit(noises[0], decisions, batch, cap), batch, covariance)
    guides = [WindowThresholds.make(w, covariance) for w in windows_for(FIRST_STAGE, shape)]
    fits: list[Callable[[], Any]] = [functools.partial(fit_bands, noise, decisions, batch, cap) for noise in noises]
    weighted = batch.error_weights
    fits += [lambda: [guide.apply(batch).without_map(weighted) for guide in guides]]
    *fitted, guiding = thread_map(lambda run: run(), fits, 1 if len(shape) == 1 and batch.values.size > LONG else None)
    guided = tuple(GuidedWindows.make(w, covariance) for w in windows_for(SECOND_STAGE, shape))
    first = [*(found.estimate for found in fitted), *guiding]
    thresholds = tuple(found.expert for found in fitted)
    bands = tuple(band for found in fitted for band in found.bands)
    pilot_weights = _pilot_weights(batch, first)
    pilot = blend_values(pilot_weights, [estimate.value for estimate in first])
    del first[len(thresholds) :], guiding, fitted, fits  # frees memory before guided windows need some
    blended = [*first, *_guided_estimates(guided, batch, pilot)]
    local = LocalExperts(thresholds, tuple(guides), pilot_weights, guided)
    probe = Probe.draw(batch, covariance)
    still = LocalValues(pilot, [e.value for e in blended]) if probe.whole else local.values(probe.y)
    moved = [local.values(y) for y in probe.moved]
    corrections = _corrections(probe, local, still, moved)
    divergences = [c * e.total_divergence(batch.error_weights) for c, e in zip(corrections, blended, strict=True)]
    weights = tuple(map(float, least_risk_weights(batch, [e.value for e in blended], divergences)))
    estimate = blend(weights, corrections, blended)
    plan = Plan(local, corrections, weights, BLEND_RATIOS[len(shape)])
    pilots = [blend_values(weights, some.values) for some in (still, *moved)]
    del first, blended, still, moved, pilot  # frees memory before the refinement needs some
    refined = None
    if options.refined:
        refined = fit_refinement(batch, covariance, estimate, probe, pilots)
    if refined is None:
        return FittedPlan(plan, estimate, estimate, bands)
    return FittedPlan(replace(plan, refinement=refined.refinement), estimate, refined.estimate, bands)


def _guided_estimates(guided: Sequence[GuidedWindows], batch: Batch, pilot: Floats) -> list[Estimate]:
    """Return the estimates of a batch by guided windows; where divergences of crops arise does not matter."""
    weights, sums_suffice = batch.error_weights, len(batch.values) > 1

    def second(expert: GuidedWindows) -> Estimate:
        estimate = expert.apply(batch, pilot)
        return estimate.without_map(weights) if sums_suffice else estimate

    return thread_map(second, guided)


def _fit_bands_alone(found: FittedBands, batch: Batch, covariance: Covariance) -> FittedPlan:
    """Return the plan of a wavelet expert alone."""
    correction = 1.0
    if batch.error_weights is not None:
        correction = gap_correction(Probe.draw(batch, covariance), found.expert)
    plan = Plan(LocalExperts((found.expert,)), (correction,), (1.0,), BANDS_RATIOS[len(batch.shape)])
    estimate = blend((1.0,), (correction,), [found.estimate])
    return FittedPlan(plan, estimate, estimate, found.bands)


def _pilot_weights(batch: Batch, first: Sequence[Estimate]) -> tuple[float, ...]:
    """Return the weights of the pilot: equal ones, but for signals, where wavelets and windows differ far more."""
    if len(batch.shape) > 1:
        return (1 / len(first),) * len(first)
    divergences = [estimate.total_divergence(batch.error_weights) for estimate in first]
    return tuple(map(float, least_risk_weights(batch, [e.value for e in first], divergences)))


def gap_correction(probe: Probe, expert: BandThresholds) -> float:
    """Return the divergence with gaps filled from their neighbours over that without gaps."""
    if not probe.has_gaps:
        return 1.0
    return probe.ratio(*expert.response(probe.y, [probe.direction, probe.noise]))


def _corrections(
    probe: Probe, local: LocalExperts, still: LocalValues, moved: Sequence[LocalValues]
) -> tuple[float, ...]:
    """Return the factors of the divergences of all local experts.

    The pilot depends on y as well, and so do filled gaps. The derivative along the probe is taken by differences,
    through the pilot, and compared with the response for a pilot that does not move.
    """
    controls = thread_map(lambda expert: expert.value(probe.noise, still.pilot), local.guided)
    ratios = [gap_correction(probe, expert) for expert in local.thresholds]
    for k, control in enumerate(controls, len(ratios)):
        derivative = probe.derivative(still.values[k], [some.values[k] for some in moved])
        ratios.append(probe.ratio(derivative, control))
    return tuple(ratios)
