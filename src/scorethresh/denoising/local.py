"""The first two stages of the denoiser: experts that look at their neighbourhood only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._arrays import Floats
from .._threads import thread_map
from ..risk.estimate import Estimate
from .aggregate import add_scaled, blend_values
from .batch import Batch
from .experts.bands import BandThresholds
from .experts.base import Expert


class LocalRows:
    """The local estimate of a channel, made band by band from its first rows to its last, as far as it is asked for.

    Parameters
    ----------
    value : ndarray
        (parts, *shape), to be filled by the bands.
    bands : iterator
        Fills the next rows, and yields their divergence, (rows, ...).
    """

    def __init__(self, value: Floats, bands: Iterator[Floats]) -> None:
        self.value, self._bands = value, bands
        self._divergence = value[0, :0]  # of the rows that were made and not taken
        self._taken = 0

    def make(self, stop: int) -> None:
        """Make the rows up to `stop`, if they are not there."""
        while self._taken + len(self._divergence) < stop:
            self._divergence = np.concatenate([self._divergence, next(self._bands)])

    def taken_divergence(self, stop: int) -> Floats:
        """Return the divergence of the rows up to `stop` that was not taken before. It is not held any longer."""
        count = stop - self._taken
        out, self._divergence = self._divergence[:count], self._divergence[count:].copy()
        self._taken = stop
        return out.copy()


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

    def reach(self, used: Sequence[bool]) -> int:
        """Return how far an entry of an estimate lies, at most, from the data that it depends on.

        `used` says which of those that are blended count.
        """
        first = max(expert.reach for expert in (*self.thresholds, *self.guides))
        guided = zip(self.guided, used[len(self.thresholds) :], strict=True)
        return first + max((expert.reach for expert, some in guided if some), default=0)

    @property
    def step(self) -> int:
        """The least common multiple of their steps."""
        return math.lcm(*(expert.step for expert in (*self.blended, *self.guides)))

    def estimates(self, batch: Batch, used: Sequence[bool]) -> Iterator[Estimate]:
        """Yield the estimates of the blended experts that are used, one by one, so that few exist at once."""
        count = len(self.thresholds)
        if not any(used[count:]):
            yield from (expert.apply(batch) for expert, some in zip(self.thresholds, used[:count], strict=True) if some)
            return
        pilot = np.zeros_like(batch.values)
        for k, (expert, weight) in enumerate(zip((*self.thresholds, *self.guides), self.pilot_weights, strict=True)):
            if k < count and used[k]:
                estimate = expert.apply(batch)
                add_scaled(pilot, weight, estimate.value)
                yield estimate
                del estimate
            elif weight > 0:
                add_scaled(pilot, weight, expert.value(batch.values))
        for expert, some in zip(self.guided, used[count:], strict=True):
            if some:
                yield expert.apply(batch, pilot)

    def values(self, y: Floats) -> LocalValues:
        """Return the pilot and the values of the estimates that are blended, without their divergences."""
        first = thread_map(lambda expert: expert.value(y), (*self.thresholds, *self.guides))
        pilot = blend_values(self.pilot_weights, first)
        guided = thread_map(lambda expert: expert.value(y, pilot), self.guided)
        return LocalValues(pilot, [*first[: len(self.thresholds)], *guided])
