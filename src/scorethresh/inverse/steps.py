"""The methods step by step, on the data and on data moved along a probe."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._arrays import Floats
from .._progress import Progress
from ..noise.gaussian import GaussianNoise
from ..risk.monte_carlo import default_step, entries
from ..risk.probe_terms import MonteCarloRisk, Response, check_units, inner, risk_of_terms, risk_terms
from .iht import IHT_STEPS, iht, thresholds
from .linear_map import operator_norm
from .plug_and_play import Iterate, noise_levels, plug_and_play
from .problem import Problem
from .result import RestorationStep

__all__ = ["METHODS", "Algorithm", "Found", "run_steps"]

# If the step is chosen by its risk: how many steps without a lower one end the run, once half of them are done. On 14
# problems on camera and coins it changes no choice and saves a fifth of the steps.
PATIENCE = 3

# What is said of the risk if it is not estimated.
UNKNOWN = MonteCarloRisk(math.nan, math.nan, math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A method for one problem.

    Attributes
    ----------
    iterates : callable
        Yields iterates for data. Data that are moved along a probe get the same schedule.
    steps : int
        How many iterates there are.
    chosen_by_risk : bool
        Whether the iterate of least estimated risk is returned; else the last one.
    """

    iterates: Callable[[Floats], Iterator[Iterate]]
    steps: int
    chosen_by_risk: bool = False


def plug_and_play_algorithm(problem: Problem) -> Algorithm:
    """Return plug-and-play restoration as a function of the data."""
    levels = noise_levels(problem.data_range(), problem.x_sigma, problem.steps, problem.last_level)
    return Algorithm(
        lambda data: plug_and_play(problem.a, data, problem.sigma, levels, problem.prior, problem.start(data)),
        problem.steps,
    )


def iht_algorithm(problem: Problem) -> Algorithm:
    """Return iterative hard thresholding as a function of the data."""
    norm = operator_norm(problem.a.a, complex_domain=problem.complex_domain)
    levels = thresholds(problem.data_range(), problem.sigma, norm, problem.steps)
    return Algorithm(
        lambda data: iht(problem.a, data, norm, levels, problem.start(data)), len(levels), chosen_by_risk=True
    )


class Method(NamedTuple):
    """A way to restore: its algorithm, its number of steps (None: that of the operator), whether it takes a prior."""

    algorithm: Callable[[Problem], Algorithm]
    steps: int | None
    takes_prior: bool


METHODS = {
    "plug-and-play": Method(plug_and_play_algorithm, None, takes_prior=True),
    "iht": Method(iht_algorithm, IHT_STEPS, takes_prior=False),
}


class Found(NamedTuple):
    """The iterate that is returned, its number, and a row per step."""

    x: Floats
    step: int
    trace: tuple[RestorationStep, ...]


class RiskProbe:
    """Runs an algorithm on data moved along a probe, in step with the run on the data themselves."""

    def __init__(self, problem: Problem, algorithm: Algorithm, seed: int) -> None:
        self.a, self.data = problem.a, problem.data
        self.noise = GaussianNoise(np.array(problem.sigma))
        check_units(self.data, self.noise)
        self.length = default_step(entries(self.data))
        [self.probe] = self.noise.draws(self.data, 1, seed)
        moved = self.length * self.probe
        self.runs = zip(algorithm.iterates(self.data + moved), algorithm.iterates(self.data - moved), strict=True)

    def next_risk(self) -> MonteCarloRisk:
        """Return the risk of ``A x`` after the next step."""
        ahead, behind = (self.a.forward(x) for x, _ in next(self.runs))
        response = Response((ahead + behind) / 2, (ahead - behind) / (2 * self.length))
        terms = risk_terms(response, self.data, self.probe, self.noise, self.length)
        return risk_of_terms([terms], self.data, self.noise)


def run_steps(problem: Problem, algorithm: Algorithm, seed: int | None, bar: Progress) -> Found:
    """Run an algorithm; if a seed for the probe is given, estimate the risk of ``A x`` after every step."""
    a, data, size = problem.a, problem.data, entries(problem.data)
    probe = None if seed is None else RiskProbe(problem, algorithm, seed)
    rows: list[RestorationStep] = []
    last = a.visible(problem.start(data))
    best, step, least = last, 0, math.inf
    for x, level in algorithm.iterates(data):
        risk = UNKNOWN if probe is None else probe.next_risk()
        seen = a.visible(x)
        rest, move = data - a.forward(x), seen - last
        rows.append(
            RestorationStep(
                level,
                inner(rest, rest) / (size * problem.sigma**2),
                math.sqrt(inner(move, move) / entries(move)),
                risk.risk / size,
                risk.stderr / size,
            )
        )
        last = seen
        if not algorithm.chosen_by_risk or risk.risk < least:
            best, step, least = last, len(rows) - 1, risk.risk
        bar.step()
        if algorithm.chosen_by_risk and 2 * len(rows) >= algorithm.steps and len(rows) - 1 - step >= PATIENCE:
            break
    return Found(best, step, tuple(rows))
