"""Bootstraps in closed form: what they tend to with infinitely many draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import _validate
from ..._validate import Array
from ...rules import Rule, entry_rule
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve, finite_part
from ..gaussian import expectations, row_blocks, smooth_nodes
from ..stein import killed_sums, standard_error, stein_curve
from .base import Method


@dataclass(frozen=True)
class CoupledBootstrap(Method):
    """The coupled bootstrap of Oliveira, Lei and Tibshirani, at infinitely many draws.

    Adds noise of variance ``alpha sigma^2`` to y and estimates, without bias, the risk at the noise level
    ``sigma sqrt(1 + alpha)`` that results. ``debias`` extrapolates to alpha = 0 by ``2 CB(alpha) - CB(2 alpha)``.

    Assumes nothing about the means. Fails when alpha is large (the risk is that of a noisier problem: 5% too high or
    more at alpha = 0.05 without `debias`) and gets noisy when it is small; in effect it is SCORE with a bandwidth of
    ``sqrt(alpha) sigma`` and a smoothed rule.

    ``stderr`` covers what that of `Score` does.

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
        """Return the spread of the added noise."""
        return float(np.sqrt(self.alpha) * sigma)

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
        dof, risk, square = sums
        stderr = standard_error(risk, square, sample.size)
        return RiskCurve(thresholds, risk * sigma**2, dof, stderr * sigma**2, sample.size, sigma)


@dataclass(frozen=True)
class LittleBootstrap(Method):
    """Degrees of freedom from small perturbations of y, at infinitely many draws.

    ``DOF = sum_i cov(Z, x(y_i + h Z)) / h`` with h = `scale` times sigma: Breiman's little bootstrap, Ye's generalised
    degrees of freedom, and with ``scale=1`` Efron's parametric bootstrap around y.

    Assumes that the rule may be replaced by its smoothed version in the degrees of freedom, while the residual stays
    that of the rule itself. Hence a bias of order ``scale^2``, and too many degrees of freedom for ``scale=1``: the
    perturbed data are noisier than the data.

    ``stderr`` covers what that of `Score` does, to the extent that the residual and the degrees of freedom are
    independent.

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
        """Return the spread of the perturbations."""
        return self.scale * sigma

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
        return RiskCurve(thresholds, risk, dof, stderr, sample.size, sigma)
