"""SCORE: the risk of rules that jump, with a kernel at the jump."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _validate
from .._validate import Array
from ..curve import RiskCurve
from ..density import paper_bandwidth
from ..magnitudes import Magnitudes
from ..rules import Rule
from ..stein import stein_curve

BANDWIDTHS = {"paper": paper_bandwidth}


@dataclass(frozen=True)
class Score:
    """Stein COnsistent Risk Estimator (Deledalle, Peyré and Fadili, 2013), for any rule with or without jumps.

    For hard thresholding of P entries the degrees of freedom are estimated by ::

        #{|y_i| > t} + t sqrt(sigma^2 + h^2) / (sqrt(2 pi) sigma h)
                       * sum_i [exp(-(y_i + t)^2 / 2h^2) + exp(-(y_i - t)^2 / 2h^2)]

    and the risk by ``||y - x(y)||^2 - P sigma^2 + 2 sigma^2 DOF``. For another rule the count becomes the sum of its
    derivatives, and the factor t the height of its jump. Both estimates, over P, are consistent if h falls to 0
    more slowly than 1/P.

    Parameters
    ----------
    bandwidth : "paper", float or callable
        The bandwidth h of the kernel. ``"paper"`` is ``6 sigma / P^(1/3)``; a number is in units of y; a callable
        is given P and sigma.

    Notes
    -----
    ``stderr`` is the standard deviation of the sum of P independent terms, from their spread over the entries. It
    covers the noise in the estimate at a fixed threshold; it is right when all means are equal and too large
    otherwise, because the spread of the means is counted too. It doesn't cover the bias, of order ``(h / sigma)^2``
    of the jump's part; nor the choice of the threshold: the least risk of a curve is too low on average; nor the
    distance of the loss of this one draw from its mean, the risk.

    An entry that equals a threshold counts as below it in the formula, as in the paper, though the rule keeps it.
    With continuous noise that has probability zero.

    Examples
    --------
    >>> import scorethresh as st
    >>> y = np.array([0.3, -0.5, 4.0, 0.1])
    >>> curve = st.risk_curve(y, [1.0, 2.0], sigma=1.0, method=Score(bandwidth=0.5))
    >>> curve.dof.round(3), curve.risk.round(3)
    (array([2.172, 1.028]), array([ 0.694, -1.595]))
    """

    bandwidth: str | float | Callable[[int, float], float] = "paper"

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str):
            _validate.choice("bandwidth", self.bandwidth, BANDWIDTHS)
        elif not callable(self.bandwidth):
            _positive(self.bandwidth)

    def resolution(self, size: int, sigma: float) -> float:
        """Return the bandwidth for that many entries."""
        if isinstance(self.bandwidth, str):
            return BANDWIDTHS[self.bandwidth](size, sigma)
        return _positive(self.bandwidth(size, sigma) if callable(self.bandwidth) else self.bandwidth)

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""
        bandwidth = self.resolution(sample.size, sigma)
        return stein_curve(sample, thresholds, sigma=sigma, rule=rule, bandwidth=bandwidth)


def _positive(bandwidth: float) -> float:
    value = _validate.number(bandwidth, "bandwidth")
    if not 0 < value < np.inf:
        msg = f'bandwidth must be positive and finite, got {bandwidth}. The paper\'s choice: bandwidth="paper".'
        raise ValueError(msg)
    return value
