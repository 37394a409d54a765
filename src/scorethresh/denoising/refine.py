"""The last stage of the blend: patches that look alike, beside the local estimate that they were compared in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .._arrays import Floats
from .._threads import thread_map
from ..noise.covariance import Covariance, White
from ..risk.estimate import Estimate
from .aggregate import blend, least_risk_weights
from .batch import Batch
from .experts.nonlocal_ridge import PATCHES, NonlocalRidge, no_report
from .local import LocalRows
from .probe import Probe


@dataclass(frozen=True, eq=False)
class Refinement:
    """The non-local expert, and how it is blended with the local estimate.

    Attributes
    ----------
    expert : NonlocalRidge
        The expert; the local estimate is its pilot.
    correction : float
        Its divergence by Monte Carlo over the analytic one.
    weight : float
        Its weight; the local estimate has the rest.
    """

    expert: NonlocalRidge
    correction: float
    weight: float

    def apply(self, batch: Batch, local: Estimate, done: Callable[[], None] = no_report) -> Estimate:
        """Return the blend of a batch, given its local estimate. `done` is called after every step."""
        return self._blended(local, self.expert.apply(batch, local.value, done))

    def rows(self, batch: Batch, local: LocalRows) -> Iterator[tuple[slice, Estimate]]:
        """Yield the blend of a batch of one piece from its first rows to its last, with their place.

        Rows of the local estimate are not looked at again after the blend of them.
        """
        guide = None if batch.guide is None else batch.guide[0]
        for found in self.expert.rows(batch.values[0], local.value, guide, local.make):
            before = Estimate(local.value[None, :, found.rows], local.taken_divergence(found.rows.stop)[None])
            yield found.rows, self._blended(before, Estimate(found.value[None], found.divergence[None]))

    def _blended(self, local: Estimate, found: Estimate) -> Estimate:
        return blend((1 - self.weight, self.weight), (1.0, self.correction), [local, found])


class FittedRefinement(NamedTuple):
    """The refinement, and its estimate of the batch that it was fitted to."""

    refinement: Refinement
    estimate: Estimate


def fit_refinement(
    batch: Batch, covariance: Covariance, local: Estimate, probe: Probe, pilots: Sequence[Floats]
) -> FittedRefinement | None:
    """Fit the non-local expert and its weight to a batch.

    Parameters
    ----------
    batch : Batch
        What is denoised.
    covariance : Covariance
        Of its noise.
    local : Estimate
        Its local estimate.
    probe : Probe
        A draw of the noise.
    pilots : sequence of ndarray
        The local estimates of the probe's data as they are, and of each way in which it moves them.

    Returns
    -------
    FittedRefinement or None
        None for correlated noise, which the weights of patches do not allow for, and for data of too few patches.
    """
    patches = PATCHES[len(batch.shape)]
    if not isinstance(covariance, White) or not patches.fit(batch.shape):
        return None
    noise = probe.noise if probe.whole else None
    expert, steps = NonlocalRidge.fit(patches, covariance.variance**0.5, batch, local.value, noise)
    still = steps if probe.whole else expert.steps(Batch(probe.y, guide=probe.guide), pilots[0], probe.noise)
    moves = zip(probe.moved, pilots[1:], strict=True)
    moved = thread_map(lambda move: expert.apply(Batch(move[0], guide=probe.guide), move[1]).value, moves)
    correction = probe.ratio(probe.derivative(still.value, moved), still.response)
    divergences = [e.total_divergence(batch.error_weights) for e in (local, steps.estimate)]
    divergences[1] *= correction
    weight = float(least_risk_weights(batch, [local.value, steps.value], divergences)[1])
    refinement = Refinement(expert, correction, weight)
    return FittedRefinement(refinement, blend((1 - weight, weight), (1.0, correction), [local, steps.estimate]))
