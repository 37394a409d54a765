"""The last stage of the blend: patches that look alike, beside the local estimate that they were compared in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from .._arrays import Floats
from .._threads import thread_map
from ..noise.covariance import Covariance, White
from ..risk.estimate import Estimate
from ..risk.monte_carlo import Response
from .aggregate import blend, least_risk_weights
from .batch import Batch
from .experts.nonlocal_ridge import PATCHES, NonlocalRidge, no_report
from .probe import PROBE_STEP, Probe

# For the derivative, references lie this many times farther apart: that saves time.
PROBE_SPARSITY = 2


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
        found = self.expert.apply(batch, local.value, done)
        return blend((1 - self.weight, self.weight), (1.0, self.correction), [local, found])


class FittedRefinement(NamedTuple):
    """The refinement, and its estimate of the batch that it was fitted to."""

    refinement: Refinement
    estimate: Estimate


def fit_refinement(
    batch: Batch, covariance: Covariance, local: Estimate, probe: Probe, response: Response
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
    response : Response
        How the local estimate responds to it.

    Returns
    -------
    FittedRefinement or None
        None for correlated noise, which the weights of patches do not allow for, and for data of too few patches.
    """
    patches = PATCHES[len(batch.shape)]
    if not isinstance(covariance, White) or not patches.fit(batch.shape):
        return None
    expert, estimate = NonlocalRidge.fit(patches, covariance.variance**0.5, batch, local.value)
    correction = _correction(expert.sparser(PROBE_SPARSITY), probe, response)
    divergences = [e.total_divergence(batch.error_weights) for e in (local, estimate)]
    divergences[1] *= correction
    weight = float(least_risk_weights(batch, [local.value, estimate.value], divergences)[1])
    refinement = Refinement(expert, correction, weight)
    return FittedRefinement(refinement, blend((1 - weight, weight), (1.0, correction), [local, estimate]))


def _correction(expert: NonlocalRidge, probe: Probe, response: Response) -> float:
    """Return the divergence through pilot, groups and all steps over that of the last step alone."""

    def at(move: float) -> Floats:
        shift = probe.y.dtype.type(move)
        moved = Batch(probe.y + shift * probe.direction, guide=probe.guide)
        return expert.apply(moved, response.mean + shift * response.derivative).value

    ahead, behind = thread_map(at, (PROBE_STEP, -PROBE_STEP))
    control = expert.response(Batch(probe.y, guide=probe.guide), response.mean, probe.noise)
    return probe.ratio((ahead - behind) / (2 * PROBE_STEP), control)
