"""The non-local expert: patches that look alike in the pilot, wherever they lie, are estimated from each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Floats, slabs
from ...frames.patch_stream import InputRows, StreamedRows, band_groups, combined_rows, matched_groups, shared
from ...frames.patches import Patches
from ...risk.estimate import Estimate
from ..batch import Batch
from .base import Expert

# Patches by the number of axes. Chosen on 14 photographs at four noise levels. References 3 apart in place of 4, and a
# search of 24 in place of 18, gain 0.01 dB and take time; patches of 36 or 100 entries lose 0.07 dB, a search of 12
# loses 0.03. In signals, references 32 apart in place of 16 lose 0.01 dB in 17 signals at three noise levels and take
# half the time; 48 apart lose 0.03.
PATCHES = {1: Patches((64,), 32, 512), 2: Patches((8, 8), 4, 18), 3: Patches((4, 4, 4), 3, 6)}

# The share of the noise that each step leaves in the data, for the next one to remove. Chosen on the same photographs:
# two steps lose 0.06 dB, four gain nothing, and 0.1 more or less costs 0.01 dB.
KEPT_NOISE = (0.6, 0.3, 0.0)
# The share of the data's own products in each step: what the pilot has lost is in the data only. None in the first step
# loses 0.07 dB, twice as much 0.03; more in the second loses 0.01.
DATA_SHARES = (0.2, 0.0, 0.0)

# How often progress is reported: after matching, and after every step.
REPORTS = 1 + len(KEPT_NOISE)


def no_report() -> None:
    """Report no progress."""


def all_made(stop: int) -> None:
    """Make no more rows of a pilot that is complete."""


class Steps(NamedTuple):
    """All that the steps made: the estimate, the divergence, the last step's response to noise, the noise levels."""

    value: Floats
    divergence: Floats
    response: Floats
    levels: tuple[float, ...]

    @property
    def estimate(self) -> Estimate:
        """The estimate with its divergence."""
        return Estimate(self.value, self.divergence)


@dataclass(frozen=True, eq=False)
class NonlocalRidge(Expert):
    """Ridge regression among patches that look alike, in steps that each remove a part of the noise.

    Attributes
    ----------
    patches : Patches
        Their sides, and where they are looked for.
    levels : tuple of float
        The noise level of the data at each step.

    Notes
    -----
    A step estimates every patch by the combination of its group that has the least risk if the pilot were the truth.
    A part of what it removed is given back, so that the next step, with a better pilot, decides on it. The divergence
    takes groups, pilot and the data of the last step as given; Monte Carlo has to correct it.

    References
    ----------
    S. Herbreteau, C. Kervrann, "Towards a unified view of unsupervised non-local methods for image denoising: the
    NL-Ridge approach", ICIP 2022, arXiv:2203.00570.
    S. Herbreteau, C. Kervrann, "Linear combinations of patches are unreasonably effective for single-image denoising"
    (LIChI), 2022, arXiv:2212.00422.
    """

    patches: Patches
    levels: tuple[float, ...]

    @classmethod
    def fit(
        cls, patches: Patches, sigma: float, batch: Batch, pilot: Floats, noise: Floats | None = None
    ) -> tuple[NonlocalRidge, Steps]:
        """Return the expert for noise of level sigma, and what `steps` makes of the batch."""
        steps = _run(patches, (sigma,), batch, pilot, noise)
        return cls(patches, steps.levels), steps

    @property
    def name(self) -> str:
        """What it is called."""
        return "patches that look alike"

    @property
    def reach(self) -> int:
        """How far it reaches, in all steps."""
        return len(KEPT_NOISE) * self.patches.reach

    @property
    def step(self) -> int:
        """The distance of references."""
        return self.patches.step

    def apply(self, batch: Batch, pilot: Floats | None = None, done: Callable[[], None] = no_report) -> Estimate:
        """Return the estimate of a batch with its divergence, for a given pilot; `done` is called REPORTS times."""
        if pilot is None:
            msg = "patches are compared in a pilot. Pass a first estimate of the same shape."
            raise ValueError(msg)
        return self.steps(batch, pilot, done=done).estimate

    def rows(
        self, y: Floats, pilot: Floats, guide: Floats | None = None, make: Callable[[int], None] = all_made
    ) -> Iterator[StreamedRows]:
        """Yield what `apply` makes of one piece, (parts, *shape), from its first rows to its last.

        Every step follows the one before it as soon as that has left enough rows behind, so that no step is held whole.
        `make(stop)` is called before rows of the pilot up to `stop` are looked at.
        """
        shape = y.shape[1:]
        groups = band_groups(self.patches, shape)
        matched = matched_groups(self.patches, pilot if guide is None else guide, groups, make)
        flow = _first_inputs(pilot, y, make)
        steps = zip(shared(matched, len(KEPT_NOISE)), self.levels, KEPT_NOISE, DATA_SHARES, strict=True)
        for places, level, kept, share in steps:
            found = combined_rows(self.patches, shape, groups, places, flow, (level, share))
            flow = _next_inputs(found, y.dtype.type(kept * self.levels[0] / level))
        variance = y.dtype.type(self.levels[0] ** 2)
        for rows, value, divergence, data in found:
            yield StreamedRows(rows, value, variance * divergence, data)

    def steps(
        self, batch: Batch, pilot: Floats, noise: Floats | None = None, done: Callable[[], None] = no_report
    ) -> Steps:
        """Return all that it makes of a batch.

        The response is what the last step makes of `noise`, (pieces, any number of parts, *shape), given the patches
        and the pilot of the batch. It costs less than a step of its own.
        """
        return _run(self.patches, self.levels, batch, pilot, noise, done)


def _first_inputs(pilot: Floats, y: Floats, make: Callable[[int], None]) -> Iterator[InputRows]:
    """Yield the inputs of the first step."""
    for rows in slabs(y.shape[1:]):
        make(rows.stop)
        yield InputRows(pilot[:, rows], np.asarray(y[:, rows]))


def _next_inputs(found: Iterator[StreamedRows], kept: Any) -> Iterator[InputRows]:
    """Yield the inputs of the next step: what a step made, and the data with a share of what it removed."""
    for rows in found:
        yield InputRows(rows.value, _give_back(rows.value, rows.data, kept))


def _give_back(value: Floats, data: Floats, kept: Any) -> Floats:
    """Return the estimate of a step with a share of what it removed from the data."""
    out: Floats = data - value
    out *= kept
    out += value
    return out


def _run(
    patches: Patches,
    levels: Sequence[float],
    batch: Batch,
    pilot: Floats,
    noise: Floats | None = None,
    done: Callable[[], None] = no_report,
) -> Steps:
    """Run all steps. Levels that are not given are found: from the second step on, what was left in the data."""
    y = batch.values
    parts, count = y.shape[1], len(KEPT_NOISE)
    known, found = list(levels), list[float]()
    places = [patches.match(piece) for piece in (pilot if batch.guide is None else batch.guide)]
    done()
    data, x = y, pilot
    for step, (kept, share) in enumerate(zip(KEPT_NOISE, DATA_SHARES, strict=True)):
        if step == len(known):
            removed = y - data if batch.valid is None else np.moveaxis(y - data, 1, -1)[batch.valid]
            known.append(max(known[0] - float(np.std(removed, dtype=np.float64)), KEPT_NOISE[step - 1] * known[0]))
            del removed
        level = known[step]
        found.append(level)
        last = step == count - 1
        more = 0 if noise is None or not last else noise.shape[1]
        new, response = np.empty_like(y), np.empty((len(y), more, *batch.shape), y.dtype)
        divergence = np.empty((len(y), *batch.shape), y.dtype) if last else None
        for k, piece in enumerate(data):
            both = piece if noise is None or not more else np.concatenate([piece, noise[k]])
            estimate = patches.combine(places[k], x[k], both, level, share)
            del both
            new[k], response[k] = estimate.value[:parts], estimate.value[parts:]
            if divergence is not None:
                divergence[k] = estimate.divergence
            del estimate  # frees memory before the next one is made
        x = new
        data = _give_back(x, data, y.dtype.type(kept * known[0] / level))
        done()
    assert divergence is not None
    divergence *= y.dtype.type(known[0] ** 2)
    return Steps(x, divergence, response, tuple(found))
