"""SURE: the risk of continuous rules."""

from __future__ import annotations

from dataclasses import dataclass

from ..._validate import Array
from ...rules import Rule, entry_rule
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve
from ..stein import stein_curve
from .base import Method


@dataclass(frozen=True)
class Sure(Method):
    """Stein's Unbiased Risk Estimate: ``||y - x(y)||^2 - P sigma^2 + 2 sigma^2 sum_i x'(y_i)``.

    Unbiased for every continuous rule; refuses a rule that jumps, for which it is far too low.

    ``stderr`` covers what that of `Score` does; there is no bias to leave out.

    Examples
    --------
    >>> import scorethresh as st
    >>> st.risk_curve([0.3, -0.5, 4.0], [1.0], sigma=1.0, rule="soft", method=Sure()).risk
    array([0.34])
    """

    def resolution(self, size: int, sigma: float) -> float:
        """Return the scale on which the sample is looked at: the noise's own, for no kernel is used."""
        return sigma

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""
        rule = entry_rule(rule, self)
        if len(rule.jumps(sigma)):
            msg = (
                f"Sure cannot estimate the risk of {rule!r}: the rule jumps, and Stein's lemma leaves the jump out. "
                'Use Score(), or method="score".'
            )
            raise ValueError(msg)
        return stein_curve(sample, thresholds, sigma=sigma, rule=rule)
