"""The first two stages of the denoiser: experts that look at their neighbourhood only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from .._arrays import Floats
from .._threads import thread_map
from ..risk.estimate import Estimate
from .aggregate import blend_values
from .batch import Batch
from .experts.bands import BandThresholds
from .experts.base import Expert


class LocalValues(NamedTuple):
    """What local experts made of data: the pilot, and the estimates by thresholds and by guided experts."""

    pilot: Floats
    values: list[Floats]


@dataclass(frozen=True, eq=False)
class LocalExperts:
    """Experts that look at windows around an entry only, in two stages.

    Attributes
    ----------
    thresholds : tuple of BandThresholds
        Wavelet experts. They are blended, and they guide.
    guides : tuple of Expert
        Experts that only guide.
    pilot_weights : tuple of float
        Of both in the pilot.
    guided : tuple of Expert
        Experts that a pilot guides.
    """

    thresholds: tuple[BandThresholds, ...]
    guides: tuple[Expert, ...] = ()
    pilot_weights: tuple[float, ...] = (1.0,)
    guided: tuple[Expert, ...] = ()

    @property
    def blended(self) -> tuple[Expert, ...]:
        """Those that are blended."""
        return (*self.thresholds, *self.guided)

    @property
    def reach(self) -> int:
        """How far an entry of an estimate lies, at most, from the data that it depends on."""
        first = max(expert.reach for expert in (*self.thresholds, *self.guides))
        return first + max((expert.reach for expert in self.guided), default=0)

    @property
    def step(self) -> int:
        """The least common multiple of their steps."""
        return math.lcm(*(expert.step for expert in (*self.blended, *self.guides)))

    def apply(self, batch: Batch) -> list[Estimate]:
        """Return the estimates that are blended."""
        first = [expert.apply(batch) for expert in (*self.thresholds, *self.guides)]
        pilot = blend_values(self.pilot_weights, [estimate.value for estimate in first]) if self.guided else None
        return [*first[: len(self.thresholds)], *(expert.apply(batch, pilot) for expert in self.guided)]

    def values(self, y: Floats) -> LocalValues:
        """Return the pilot and the values of the estimates that are blended, without their divergences."""
        first = thread_map(lambda expert: expert.value(y), (*self.thresholds, *self.guides))
        pilot = blend_values(self.pilot_weights, first)
        guided = thread_map(lambda expert: expert.value(y, pilot), self.guided)
        return LocalValues(pilot, [*first[: len(self.thresholds)], *guided])
