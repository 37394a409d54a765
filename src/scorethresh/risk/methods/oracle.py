"""The true risk, from the true means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import _validate
from ..._validate import Array
from ...rules import Rule, entry_rule
from ...sample.magnitudes import SMALL, Magnitudes
from ..curve import RiskCurve
from ..gaussian import risk_at, smooth_nodes
from .base import Method


@dataclass(frozen=True, eq=False)
class Oracle(Method):
    """The exact risk ``E ||x(y) - x0||^2`` and degrees of freedom, for experiments with known means.

    Parameters
    ----------
    x0 : array_like
        The true means, one per entry of y.

    See Also
    --------
    Score, Mixture : Estimates that do not need the means.

    Notes
    -----
    Rules made of straight pieces, such as hard thresholding, have a closed form. At one mean x, with
    ``a = (-t - x) / sigma``, ``b = (t - x) / sigma`` and ``p0 = Phi(b) - Phi(a)``, the risk of hard thresholding is
    ``sigma^2 (1 - p0 + b phi(b) - a phi(a)) + x^2 p0``. Other rules are integrated by quadrature.

    `stderr` is 0: nothing is estimated. More than 4096 means are compressed; results then differ by rounding of the
    largest value on the curve.

    Examples
    --------
    >>> import scorethresh as st
    >>> curve = st.risk_curve([0.3, 5.2], [2.0], sigma=1.0, method=Oracle([0.0, 5.0]))
    >>> curve.risk.round(4), curve.dof.round(4)
    (array([1.2806]), array([1.269]))
    """

    x0: Any
    _means: Magnitudes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        x0 = _validate.data(self.x0, "x0")
        _validate.finite(x0, "x0")
        means, counts = np.unique(np.abs(x0.astype(np.float64)), return_counts=True)
        object.__setattr__(self, "_means", Magnitudes(means, counts.astype(np.float64), x0.size))

    def resolution(self, size: int, sigma: float) -> float:
        """Return the noise level: only the size of the sample is used."""
        return sigma

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the true risk of `rule` at the thresholds."""
        rule = entry_rule(rule, self)
        if self._means.size != sample.size:
            msg = f"x0 has {self._means.size} entries and y has {sample.size}. Pass one mean per entry."
            raise ValueError(msg)
        x, weights = self._means.nodes, self._means.weights
        if x.size > SMALL:  # the risk at a mean varies on the scale of sigma
            x, weights = smooth_nodes(self._means, sigma / 4)
        risk, dof = risk_at(rule, thresholds, x, weights, sigma)
        return RiskCurve(thresholds, risk, dof, np.zeros(thresholds.size), sample.size, sigma)
