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
    """Stein's unbiased risk estimate (SURE), for rules that do not jump.

    See Also
    --------
    Score : For rules that jump.

    Notes
    -----
    The risk is estimated by ``||y - x(y)||^2 - P sigma^2 + 2 sigma^2 sum_i x'(y_i)`` [1]_. This is unbiased for every
    continuous rule. A rule that jumps is refused, because the estimate would be far too low.

    `stderr` covers the same as that of `Score`; there is no bias.

    References
    ----------
    .. [1] C. M. Stein, "Estimation of the mean of a multivariate normal distribution", Annals of Statistics 9, 1981,
       doi:10.1214/aos/1176345632.

    Examples
    --------
    >>> import scorethresh as st
    >>> st.risk_curve([0.3, -0.5, 4.0], [1.0], sigma=1.0, rule="soft", method=Sure()).risk
    array([0.34])
    """

    def resolution(self, size: int, sigma: float) -> float:
        """Return the noise level: no kernel is used."""
        return sigma

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""
        rule = entry_rule(rule, self)
        if len(rule.jumps(sigma)):
            msg = (
                f"Sure cannot estimate the risk of {rule!r}: the rule jumps, and Stein's lemma misses the jump. "
                'Use Score(), or method="score".'
            )
            raise ValueError(msg)
        return stein_curve(sample, thresholds, sigma=sigma, rule=rule)
