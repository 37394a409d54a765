"""Jansen's estimator: the density at the jump is that of pure noise."""

from __future__ import annotations

from dataclasses import dataclass

from ..._normal import phi
from ..._validate import Array
from ...rules import Rule, entry_rule
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve
from ..stein import add_jump, stein_curve
from .base import Method


@dataclass(frozen=True)
class Jansen(Method):
    """Jansen's estimator: Stein's formula with the density of pure noise at the jump.

    See Also
    --------
    Score : Estimates the density at the jump from the data.

    Notes
    -----
    For hard thresholding ``DOF = n1 + 2 P t phi(t)``, with t the threshold over sigma and n1 the number of entries
    above it.

    It assumes that nearly all means are 0. It is then nearly unbiased and less noisy than any kernel. For dense
    signals it misses the entries that the signal brings near the threshold, 35 to 67% of the degrees of freedom, and
    it picks a threshold that is too low.

    `stderr` is that of the part without the jump; the jump's part is not random here. As with `Score`, it includes
    the spread of the means.

    References
    ----------
    M. Jansen, "Information criteria for variable selection under sparsity", Biometrika 101, 2014,
    doi:10.1093/biomet/ast055.

    Examples
    --------
    >>> import numpy as np, scorethresh as st
    >>> st.risk_curve(np.zeros(100), [3.0], sigma=1.0, method=Jansen()).dof.round(2)
    array([2.66])
    """

    def resolution(self, size: int, sigma: float) -> float:
        """Return the noise level: no kernel is used."""
        return sigma

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""
        rule = entry_rule(rule, self)
        smooth = stein_curve(sample, thresholds, sigma=sigma, rule=rule)
        return add_jump(smooth, rule, lambda positions: 2 * sample.size * phi(positions / sigma) / sigma)
