"""Thresholds that users know from elsewhere: they pick one without estimating a risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _validate
from ..._validate import Array
from ...rules import Hard, Rule
from ...sample.magnitudes import Magnitudes, default_thresholds
from .base import Selector


@dataclass(frozen=True)
class Universal(Selector):
    """The universal threshold of Donoho and Johnstone, ``sigma sqrt(2 log P)``.

    Assumes pure noise, which it kills with probability near 1, and hardly any signal. Safe for very sparse signals in
    few entries; otherwise too high, and the more so the larger P: 3.3 times the least risk for 1% spikes at 5 sigma in
    65536 entries.

    >>> import scorethresh as st
    >>> round(st.select_threshold([0.1] * 99 + [9.0], sigma=1.0, method=Universal()).threshold, 3)
    3.035
    """

    def pick(self, y: Any, *, sigma: float, rule: Rule) -> float:
        """Return the threshold, which depends on the number of entries only."""
        return float(sigma * np.sqrt(2 * np.log(y.size)))


@dataclass(frozen=True)
class Fdr(Selector):
    """The threshold that keeps what Benjamini and Hochberg's procedure at level q calls non-zero.

    Assumes that false discoveries, not squared errors, are what matters. Adapts to sparsity, but keeps too little
    where many small means add up, and q has to be chosen.

    >>> import scorethresh as st
    >>> st.select_threshold([0.1] * 99 + [9.0], sigma=1.0, method=Fdr(0.05)).threshold
    9.0
    """

    q: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < _validate.number(self.q, "q") < 1:
            msg = f"q must lie strictly between 0 and 1, got {self.q}."
            raise ValueError(msg)

    def pick(self, y: Any, *, sigma: float, rule: Rule) -> float:
        """Return the least magnitude that is kept, or infinity if none is."""
        from scipy.special import ndtr

        sample = y if isinstance(y, Magnitudes) else Magnitudes.exact(y)
        if sample.cells is None:
            candidates = sample.nodes
            kept = np.arange(sample.size, 0, -1)
        else:  # at the edges of the cells
            candidates = sample.cells.thresholds
            above = np.append(np.cumsum(sample.weights[::-1])[::-1], 0.0)
            kept = np.rint(above[np.searchsorted(sample.nodes, candidates, side="right")])
        found = np.flatnonzero(2 * ndtr(-candidates / sigma) * sample.size <= self.q * kept)
        return float(candidates[found[0]]) if found.size else np.inf


@dataclass(frozen=True)
class CrossValidation(Selector):
    """Nason's two-fold cross-validation, on a vector of coefficients in their own order.

    Thresholds the even entries and compares them with the mean of their odd neighbours, and the other way round; then
    raises the threshold by ``(1 - log 2 / log P)^(-1/2)``, since half of the data did the choosing.

    Assumes that neighbours have nearly the same mean. Where large entries stand alone, as in the fine bands of a
    wavelet transform, nothing predicts them and they are killed.

    >>> import scorethresh as st
    >>> y = np.random.default_rng(0).normal(size=512) + np.repeat([0.0, 6.0, 0.0], [200, 40, 272])
    >>> 2 < st.select_threshold(y, sigma=1.0, method=CrossValidation()).threshold < 5
    True
    """

    def pick(self, y: Any, *, sigma: float, rule: Rule) -> float:
        """Return the threshold; needs the data in their order."""
        if isinstance(y, Magnitudes):
            msg = "CrossValidation needs the entries in their order, which a sample no longer has. Pass y itself."
            raise ValueError(msg)
        y = np.ravel(_validate.data(y)).astype(np.float64)
        if y.size < 4:
            return 0.0
        tried = default_thresholds(y.size, sigma)
        cost = np.zeros(tried.size)
        for fold in (0, 1):
            rest = y[1 - fold :: 2]
            there = y[fold::2][: rest.size]
            cost += _cost(rule, there, (rest + np.roll(rest, 1 - 2 * fold))[: there.size] / 2, tried)
        return float(tried[np.argmin(cost)] / np.sqrt(1 - np.log(2) / np.log(y.size)))


def _cost(rule: Rule, there: Array, mean: Array, tried: Array) -> Array:
    """Return, per threshold, the squared distance of the thresholded entries from what their neighbours say."""
    if not isinstance(rule, Hard):
        return np.array([np.square(rule(there, t) - mean).sum() for t in tried])
    order = np.argsort(np.abs(there))
    gain = np.append(0.0, np.cumsum((there * there - 2 * there * mean)[order]))
    cost: Array = np.square(mean).sum() + gain[-1] - gain[np.searchsorted(np.abs(there)[order], tried)]
    return cost
