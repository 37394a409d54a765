"""Experts on the DCT of overlapping windows: thresholds, and shrinkage guided by a pilot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..._arrays import Floats
from ..._validate import Array
from ...frames.signal_windows import SignalWindows
from ...frames.windows import WindowEstimate, Windows
from ...noise.covariance import Covariance, White
from ...risk.estimate import Estimate
from ..batch import Batch
from .base import Expert

# The threshold over the noise level, and the strength of the guided shrinkage. Lower ones leave noise, higher ones
# blur. Both were chosen on camera, coins and brick.
THRESHOLD = 2.7
STRENGTH = 0.7

# By the number of axes, windows of the first stage (thresholds) and of the second (guided). Longer windows resolve
# oscillations, shorter ones edges.
FIRST_STAGE = {
    1: (Windows((128,), 8), Windows((1024,), 64)),
    2: (Windows((8, 8)), Windows((16, 16), 4), Windows((32, 32), 8)),
    3: (Windows((4, 4, 4)),),
}
SECOND_STAGE = {
    1: FIRST_STAGE[1],
    2: FIRST_STAGE[2],
    3: FIRST_STAGE[3],
}
# Entries of signals whose windows, 16 times as many, are treated at once. Longer ones are treated in chunks.
MOST_AT_ONCE = 1 << 16
# Windows up to this side are used for smaller data too: reflection extends these.
SMALL_WINDOW = 16


def windows_for(stage: dict[int, tuple[Windows, ...]], shape: tuple[int, ...]) -> list[Windows]:
    """Return the windows of a stage that fit data of a shape."""
    return [w for w in stage[len(shape)] if w.block[0] <= max(*shape, SMALL_WINDOW)]


@dataclass(frozen=True, eq=False)
class _OnWindows(Expert):
    """Windows, and the noise variance of each of their coefficients."""

    windows: Windows
    variance: Array

    @classmethod
    def make(cls, windows: Windows, covariance: Covariance) -> Self:
        """Return the expert for noise of a covariance. The DCT is orthonormal: white noise stays what it is."""
        if isinstance(covariance, White):
            return cls(windows, np.full(windows.block, covariance.variance))
        return cls(windows, covariance.filter_variances(windows.filters()))

    @property
    def reach(self) -> int:
        """How far it reaches."""
        return self.windows.reach

    @property
    def step(self) -> int:
        """The step of its windows."""
        return self.windows.step


class WindowThresholds(_OnWindows):
    """Hard thresholds in windows. They serve to guide only."""

    @property
    def name(self) -> str:
        """What it is called."""
        return f"thresholds in windows of {self.windows.block[0]}"

    def apply(self, batch: Batch, pilot: Floats | None = None) -> Estimate:
        """Return the estimate of a batch with its divergence."""
        y = batch.values
        if not are_short_signals(y):
            return _each(lambda piece: self.windows.hard(piece, self.variance, THRESHOLD), y)
        windows = SignalWindows.make(self.windows, y.shape[2], self.variance, y.dtype)
        return _in_parts(lambda some: windows.hard(windows.coefficients(some), THRESHOLD), y)


class GuidedWindows(_OnWindows):
    """Shrinkage in windows by the coefficients g of a pilot: ``g^2 / (g^2 + strength variance)``, linear in y."""

    @property
    def name(self) -> str:
        """What it is called."""
        return f"guided windows of {self.windows.block[0]}"

    def apply(self, batch: Batch, pilot: Floats | None = None) -> Estimate:
        """Return the estimate of a batch with its divergence, for a given pilot."""
        if pilot is None:
            msg = "guided windows need a pilot. Pass a first estimate of the same shape."
            raise ValueError(msg)
        y = batch.values
        if not are_short_signals(y):
            return _each(lambda piece, g: self.windows.guided(piece, g, self.variance, STRENGTH), y, pilot)
        windows = SignalWindows.make(self.windows, y.shape[2], self.variance, y.dtype)

        def guided(data: Floats, guide: Floats) -> WindowEstimate:
            return windows.guided(windows.coefficients(data), windows.coefficients(guide), STRENGTH)

        return _in_parts(guided, y, pilot)


def are_short_signals(values: Floats) -> bool:
    """Tell whether values, (pieces, parts, *shape), are real signals whose windows fit into memory at once."""
    return values.shape[1] == 1 and values.ndim == 3 and values.shape[2] <= MOST_AT_ONCE


def _in_parts(shrink: Callable[..., WindowEstimate], *batches: Floats) -> Estimate:
    """Return what `shrink` makes of signals, (pieces, 1, size), as many at once as fit into memory."""
    most = MOST_AT_ONCE // batches[0].shape[2]
    parts = (slice(k, k + most) for k in range(0, len(batches[0]), most))
    values, divergences = zip(*(shrink(*(batch[part, 0] for batch in batches)) for part in parts), strict=True)
    return Estimate(np.concatenate(values)[:, None], np.concatenate(divergences))


def _each(shrink: Callable[..., WindowEstimate], *batches: Floats) -> Estimate:
    """Return what `shrink` makes of every piece."""
    value: Any = None
    divergence: Any = None
    for k, pieces in enumerate(zip(*batches, strict=True)):
        found = shrink(*pieces)
        if value is None:  # not before, when the loops need memory
            value, divergence = np.empty_like(batches[0]), np.empty_like(batches[0][:, 0])
        value[k], divergence[k] = found
        del found
    return Estimate(value, divergence)
