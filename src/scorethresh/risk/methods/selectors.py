"""Selectors: well-known thresholds that need no estimate of the risk."""

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
    """The universal threshold, ``sigma sqrt(2 log P)``.

    See Also
    --------
    Mixture : The default method, which adapts to the signal.

    Notes
    -----
    The threshold sets pure noise to zero with probability near 1 [1]_. It is safe for very sparse signals in few
    entries. Otherwise it is too high, and the more so the larger P: for 1% spikes at 5 sigma in 65536 entries the risk
    is 3.3 times the least.

    References
    ----------
    .. [1] D. L. Donoho and I. M. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81, 1994,
       doi:10.1093/biomet/81.3.425.

    Examples
    --------
    >>> import scorethresh as st
    >>> round(st.select_threshold([0.1] * 99 + [9.0], sigma=1.0, method=Universal()).threshold, 3)
    3.035
    """

    def pick(self, y: Any, *, sigma: float, rule: Rule) -> float:
        """Return the threshold; it depends on the number of entries only."""
        return float(sigma * np.sqrt(2 * np.log(y.size)))


@dataclass(frozen=True)
class Fdr(Selector):
    """The threshold that keeps the entries which the Benjamini-Hochberg procedure declares non-zero.

    Parameters
    ----------
    q : float
        The level of the false discovery rate, strictly between 0 and 1.

    See Also
    --------
    Universal, CrossValidation

    Notes
    -----
    The threshold is the least ``|y_(k)|`` whose p-value is at most ``q k / P``, k its rank among the largest [1]_. It
    controls false discoveries, not squared errors. It adapts to sparsity, but keeps too little if many small means add
    up, and q has to be chosen.

    References
    ----------
    .. [1] F. Abramovich, Y. Benjamini, D. L. Donoho and I. M. Johnstone, "Adapting to unknown sparsity by controlling
       the false discovery rate", Annals of Statistics 34, 2006, doi:10.1214/009053606000000074.

    Examples
    --------
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
    """Two-fold cross-validation on a vector of coefficients in their own order.

    See Also
    --------
    Universal, Fdr

    Notes
    -----
    The even entries are thresholded and compared with the mean of their odd neighbours, and the other way round. The
    best threshold is raised by the factor ``(1 - log 2 / log P)^(-1/2)``, because half of the data chose it [1]_.

    Neighbours are assumed to have nearly the same mean. Large entries that stand alone, as in the fine bands of a
    wavelet transform, are not predicted by their neighbours and are set to zero.

    References
    ----------
    .. [1] G. P. Nason, "Wavelet shrinkage using cross-validation", Journal of the Royal Statistical Society B 58,
       1996, doi:10.1111/j.2517-6161.1996.tb02094.x.

    Examples
    --------
    >>> import scorethresh as st
    >>> y = np.random.default_rng(0).normal(size=512) + np.repeat([0.0, 6.0, 0.0], [200, 40, 272])
    >>> 2 < st.select_threshold(y, sigma=1.0, method=CrossValidation()).threshold < 5
    True
    """

    def pick(self, y: Any, *, sigma: float, rule: Rule) -> float:
        """Return the threshold; it needs the data in their order."""
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
    """Return, per threshold, the squared distance of the thresholded entries from the means of their neighbours."""
    if not isinstance(rule, Hard):
        return np.array([np.square(rule(there, t) - mean).sum() for t in tried])
    order = np.argsort(np.abs(there))
    gain = np.append(0.0, np.cumsum((there * there - 2 * there * mean)[order]))
    cost: Array = np.square(mean).sum() + gain[-1] - gain[np.searchsorted(np.abs(there)[order], tried)]
    return cost
