"""Bootstraps in closed form: their limits for infinitely many draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import _validate
from ..._validate import Array
from ...rules import Rule, entry_rule
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve, finite_part, or_infinity
from ..gaussian import expectations, row_blocks, smooth_nodes
from ..stein import killed_sums, standard_error, stein_curve
from .base import Method


@dataclass(frozen=True)
class CoupledBootstrap(Method):
    """The coupled bootstrap at infinitely many draws.

    Parameters
    ----------
    alpha : float
        The variance of the added noise, over that of the noise.
    debias : bool
        Whether to extrapolate to alpha = 0, by ``2 CB(alpha) - CB(2 alpha)``.

    See Also
    --------
    LittleBootstrap : Perturbs y for the degrees of freedom only.

    Notes
    -----
    The coupled bootstrap [1]_ adds noise of variance ``alpha sigma^2`` to y. It estimates, without bias, the risk at
    the noise level ``sigma sqrt(1 + alpha)`` of the sum. With h = ``sqrt(alpha) sigma`` and Y ~ N(y_i, h^2) it is ::

        sum_i E (Y - x(Y))^2 - P (sigma^2 + h^2) + 2 (sigma^2 + h^2) sum_i cov(Y, x(Y)) / h^2

    It assumes nothing about the means. If alpha is large it fails, because the risk is that of a noisier problem: at
    alpha = 0.05 without `debias`, 5% too high or more. If alpha is small it is noisy. In effect it is SCORE with a
    bandwidth of ``sqrt(alpha) sigma`` and a smoothed rule.

    `stderr` covers the same as that of `Score`.

    References
    ----------
    .. [1] N. L. Oliveira, J. Lei and R. J. Tibshirani, "Unbiased risk estimation in the normal means problem via
       coupled bootstrap techniques", 2021, arXiv:2111.09447.

    Examples
    --------
    >>> import numpy as np, scorethresh as st
    >>> st.risk_curve(np.arange(10.0), [3.0], sigma=1.0, method=CoupledBootstrap(0.05)).dof.round(2)
    array([13.37])
    """

    alpha: float = 0.05
    debias: bool = True

    def __post_init__(self) -> None:
        _validate.positive(self.alpha, "alpha")

    def resolution(self, size: int, sigma: float) -> float:
        """Return the standard deviation of the added noise."""
        return float(np.sqrt(self.alpha) * sigma)

    @np.errstate(over="ignore", invalid="ignore")
    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""
        rule = entry_rule(rule, self)
        nodes, weights = smooth_nodes(sample, 0.6 * self.resolution(sample.size, sigma))
        steps = [(2.0, self.alpha), (-1.0, 2 * self.alpha)] if self.debias else [(1.0, self.alpha)]
        tried = finite_part(thresholds)
        sums = np.zeros((3, thresholds.size))
        sums[1:, tried.size :] = killed_sums(sample, sigma)[:, None]
        for part in row_blocks(tried.size, nodes.size):
            terms = np.zeros((2, part.stop - part.start, nodes.size))
            for factor, alpha in steps:
                found = expectations(rule, tried[part], nodes, np.sqrt(alpha) * sigma)
                terms[0] += factor * found.dof
                terms[1] += factor * (found.residual / sigma**2 - (1 + alpha) + 2 * (1 + alpha) * found.dof)
            sums[:2, part] = terms @ weights
            sums[2, part] = np.square(terms[1]) @ weights
        dof, risk, square = or_infinity(sums)
        stderr = standard_error(risk, square, sample.size)
        return RiskCurve(thresholds, risk * sigma**2, dof, stderr * sigma**2, sample.size, sigma)


@dataclass(frozen=True)
class LittleBootstrap(Method):
    """Degrees of freedom from small perturbations of y, at infinitely many draws.

    Parameters
    ----------
    scale : float
        The standard deviation of the perturbations, over sigma.

    See Also
    --------
    CoupledBootstrap : Perturbs y for the residual, too.

    Notes
    -----
    ``DOF = sum_i cov(Z, x(y_i + h Z)) / h`` with h = `scale` times sigma. This is Breiman's little bootstrap [1]_ and
    Ye's generalised degrees of freedom [2]_; with ``scale=1`` it is Efron's parametric bootstrap around y.

    The degrees of freedom are those of a smoothed rule, while the residual is that of the rule itself. The bias is of
    order ``scale^2``. With ``scale=1`` there are too many degrees of freedom, because the perturbed data are noisier
    than the data.

    `stderr` covers the same as that of `Score`, if the residual and the degrees of freedom are independent.

    References
    ----------
    .. [1] L. Breiman, "The little bootstrap and other methods for dimensionality selection in regression", Journal of
       the American Statistical Association 87, 1992, doi:10.1080/01621459.1992.10475276.
    .. [2] J. Ye, "On measuring and correcting the effects of data mining and model selection", Journal of the
       American Statistical Association 93, 1998, doi:10.1080/01621459.1998.10474094.

    Examples
    --------
    >>> import numpy as np, scorethresh as st
    >>> st.risk_curve(np.arange(10.0), [3.0], sigma=1.0, method=LittleBootstrap(0.5)).dof.round(2)
    array([9.54])
    """

    scale: float = 0.5

    def __post_init__(self) -> None:
        _validate.positive(self.scale, "scale")

    def resolution(self, size: int, sigma: float) -> float:
        """Return the standard deviation of the perturbations."""
        return self.scale * sigma

    @np.errstate(over="ignore", invalid="ignore")
    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""
        rule = entry_rule(rule, self)
        smooth = stein_curve(sample, thresholds, sigma=sigma, rule=rule)
        h = self.resolution(sample.size, sigma)
        nodes, weights = smooth_nodes(sample, 0.6 * h)
        tried = finite_part(thresholds)
        dof, square = np.zeros((2, thresholds.size))
        for part in row_blocks(tried.size, nodes.size):
            found = expectations(rule, tried[part], nodes, h).dof
            dof[part], square[part] = found @ weights, np.square(found) @ weights
        stderr = np.hypot(smooth.stderr, 2 * sigma**2 * standard_error(dof, square, sample.size))
        risk = smooth.risk + 2 * sigma**2 * (dof - smooth.dof)
        return RiskCurve(thresholds, or_infinity(risk), or_infinity(dof), or_infinity(stderr), sample.size, sigma)
