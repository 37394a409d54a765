"""More probes for the parameters that may be the best: a race."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validate import Array
from ..risk.probe_terms import RiskTerms

__all__ = ["Race", "comparing_step", "paired_risks"]

# The step over the noise level with which parameters are compared, times the fifth root of the number of entries, and
# the largest one. A wide step sees jumps better, and blurs. On development data (seven pictures, seven signals, two
# noise levels) 0.2 to 0.3 had the least regrets at 1024 and at 16384 entries. Trees had 1.22 with 0.1, 1.02 with 0.2
# and 1.04 with 0.45. Hard thresholds and total variation change by less than 0.01 up to 0.3, and are worse from 0.45.
STEP_FACTOR = 1.4
MAX_STEP = 0.3
# A parameter stays in the race if its risk is less than this many standard errors above the least, 2, and if that
# standard error is more than this share of the least, 0.02. From 2 to 3 and from 0.01 to 0.05 regrets do not change on
# the development data, and calls do by a tenth.
MIN_ERRORS = 2.0
MATTERING_SHARE = 0.02
# Entries that the probes of the first round cover together, and the least number of probes.
FIRST_ENTRIES = 2048
MIN_PROBES = 2
# The most probes over those of the first round.
MOST_ROUNDS = 4

Rows = list[RiskTerms]


def comparing_step(size: int) -> float:
    """Return the step over the noise level with which parameters of data with that many entries are compared.

    Notes
    -----
    Risks are those at noise ``sqrt(1 + h^2)`` times as strong. That moves the best parameter by some h^2, and adds h^4
    to the error of the choice, up to factors. Jumps give the risk a variance of ``1 / (size h)``. The sum is least at
    ``size^(-1/5)``, up to a factor. The risk itself wants a smaller step: its bias is h^2.
    """
    return float(min(STEP_FACTOR * size ** (-1 / 5), MAX_STEP))


@dataclass(frozen=True)
class Race:
    """How many probes a parameter gets.

    Attributes
    ----------
    start, first, last : int
        The number for all, for those that are not hopeless, and the most for those that may be the best.
    """

    start: int
    first: int
    last: int

    @classmethod
    def for_size(cls, size: int) -> Race:
        """Return the race for data of that many entries."""
        first = max(MIN_PROBES, math.ceil(FIRST_ENTRIES / size))
        return cls(first // 2, first, MOST_ROUNDS * first)

    def run(
        self, rows: list[Rows], noise_energy: float, more: Callable[[Sequence[int], int, int], list[Rows]]
    ) -> list[Rows]:
        """Return what the probes tell of every parameter, with more of them where it matters.

        Parameters
        ----------
        rows : list of list of RiskTerms
            One list per parameter, one row per probe.
        noise_energy : float
            The risk of y itself.
        more : callable
            Takes numbers of parameters, the first and the last number of probes, and returns the rows of the probes in
            between.

        Notes
        -----
        Probes are the same for all parameters, so the differences of their risks vary far less than the risks do. The
        standard error of a difference is that over the probes. Two or four probes say little of it, so its square is
        averaged with the mean over all parameters that are compared. Risks that are known to 2% are good enough: a
        choice between them costs less.

        The first half of the probes serves to leave out what is hopeless, by a bound on that error.
        """
        rows = [list(own) for own in rows]
        running, probes = np.arange(len(rows)), self.start
        while probes < self.last:
            if probes < self.first:
                running = running[_not_hopeless([rows[p] for p in running])]
            else:
                risks = np.array([[row.loss + 2 * row.divergence for row in rows[p]] for p in running]).T - noise_energy
                running = running[_may_be_best(risks)]
            if running.size < 2:
                break
            start, probes = probes, min(2 * probes, self.last if probes >= self.first else self.first)
            for p, found in zip(running, more(running.tolist(), start, probes), strict=True):
                rows[p] += found
        return rows


def _not_hopeless(rows: list[Rows]) -> NDArray[np.int64]:
    """Return which parameters are not worse than the best by more than the probes may deceive.

    Notes
    -----
    One probe tells no spread. That of ``2 <w, d>`` over the probes is at most ``sqrt(8 d' Sigma d)``, about, and that
    of a difference at most the sum of two.
    """
    means = np.mean([[row.loss + 2 * row.divergence for row in own] for own in rows], axis=1)
    spread = np.sqrt(8 * np.mean([[row.of_slope for row in own] for own in rows], axis=1) / len(rows[0]))
    best = int(np.argmin(means))
    return np.flatnonzero(means - means[best] <= MIN_ERRORS * (spread + spread[best]))


def _may_be_best(risks: Array) -> NDArray[np.int64]:
    """Return which columns may have the least mean, and the column that has it; rows are probes."""
    probes = len(risks)
    means = risks.mean(axis=0)
    best = int(np.argmin(means))
    squares = np.var(risks - risks[:, [best]], axis=0, ddof=1)
    others = np.arange(means.size) != best
    if not others.any():
        return np.array([best])
    squares = (squares * (probes - 1) + squares[others].mean()) / probes
    error = np.sqrt(squares / probes)
    unsure = (means - means[best] < MIN_ERRORS * error) & (error > MATTERING_SHARE * max(means[best], 0.0))
    unsure[best] = True
    return np.flatnonzero(unsure)


def paired_risks(risks: list[Array]) -> Array:
    """Return the mean risk of every parameter; those with fewer probes are compared with the best on their own probes.

    Parameters
    ----------
    risks : list of ndarray
        The risk of every parameter by each of its probes. The first probes are the same for all.

    Notes
    -----
    A probe moves the risks of all parameters alike. So a parameter with few probes has the mean risk of the best one
    over all probes, plus their difference over those few.
    """
    most = max(map(len, risks))
    full = [p for p, own in enumerate(risks) if len(own) == most]
    best = min(full, key=lambda p: float(risks[p].mean()))
    reference = risks[best]
    return np.array([reference.mean() + (own - reference[: len(own)]).mean() for own in risks])
