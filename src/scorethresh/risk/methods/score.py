"""SCORE: the risk of rules that jump, with an estimate of the density at the jump."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from ... import _validate
from ..._validate import Array
from ...rules import Rule
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve, finite_part
from ..kernel import Kernel, narrowest, paper_bandwidth, plugin_width
from ..npmle import fit_means
from ..stein import add_jump, stein_curve

BANDWIDTHS = {"paper": "gaussian", "plugin": "gaussian order4 sinc"}
DENSITIES = {"gaussian": "paper", "order4": "plugin", "sinc": "plugin", "mixture": None}


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
    bandwidth : "paper", "plugin", float or callable, optional
        The bandwidth h of the kernel. ``"paper"``, the default of the Gaussian kernel, is ``6 sigma / P^(1/3)``: right
        for 1e5 entries, too wide for fewer than 1e4. ``"plugin"``, the default of the others, has least mean squared
        error at each threshold. A number is in units of y; a callable is given P and sigma.
    density : {"gaussian", "order4", "sinc", "mixture"}
        How the density at the jump is estimated: by a kernel of that shape, or from the distribution of the means
        (see `Mixture`).
    factor : bool
        Whether the Gaussian kernel carries the paper's factor ``sqrt(1 + h^2 / sigma^2)``. It lowers the bias only
        for means closer than 0.7 sigma to the threshold.

    Notes
    -----
    ``stderr`` is the standard deviation of the sum of P independent terms, from their spread over the entries. It
    covers the noise in the estimate at a fixed threshold; it is right when all means are equal and too large
    otherwise, because the spread of the means is counted too. It doesn't cover the bias, of order ``(h / sigma)^2``
    of the jump's part; nor the choice of the threshold: the least risk of a curve is too low on average; nor the
    distance of the loss of this one draw from its mean, the risk. With the mixture it is that of a Gaussian kernel
    of half a sigma, which is noisier.

    An entry that equals a threshold counts as below it in the formula, as in the paper, though the rule keeps it.
    With continuous noise that has probability zero.

    Examples
    --------
    >>> import numpy as np, scorethresh as st
    >>> y = np.array([0.3, -0.5, 4.0, 0.1])
    >>> curve = st.risk_curve(y, [1.0, 2.0], sigma=1.0, method=Score(bandwidth=0.5))
    >>> curve.dof.round(3), curve.risk.round(3)
    (array([2.172, 1.028]), array([ 0.694, -1.595]))
    """

    bandwidth: str | float | Callable[[int, float], float] | None = None
    density: str = "gaussian"
    factor: bool = True

    def __post_init__(self) -> None:
        default = _validate.choice("density", self.density, DENSITIES)
        if self.bandwidth is None:
            object.__setattr__(self, "bandwidth", default)
        elif self.density == "mixture":
            msg = f'density="mixture" has no bandwidth, got {self.bandwidth!r}. Leave it out.'
            raise ValueError(msg)
        elif isinstance(self.bandwidth, str):
            if self.density not in _validate.choice("bandwidth", self.bandwidth, BANDWIDTHS):
                msg = f'bandwidth="paper" belongs to density="gaussian", got {self.density!r}. Use bandwidth="plugin".'
                raise ValueError(msg)
        elif not callable(self.bandwidth):
            _positive(self.bandwidth)

    def resolution(self, size: int, sigma: float) -> float:
        """Return the narrowest bandwidth for that many entries."""
        if self.density == "mixture":
            return sigma / 2
        if self.bandwidth == "plugin":
            return narrowest(self.density, size) * sigma
        if isinstance(self.bandwidth, str):
            return paper_bandwidth(size, sigma)
        h = _positive(self.bandwidth(size, sigma) if callable(self.bandwidth) else self.bandwidth)
        if not 1e-9 <= h / sigma <= 1e9:
            msg = f"bandwidth must lie between 1e-9 and 1e9 times sigma = {sigma}, got {h}."
            raise ValueError(msg)
        return h

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""
        if self.density == "mixture":
            return mixture_jump(sample, thresholds, sigma=sigma, rule=rule)
        factor = self.factor and self.density == "gaussian"
        if self.bandwidth == "plugin":
            kernel = Kernel(self.density, plugin_width(self.density, sample, sigma, factor), factor)
        else:
            kernel = Kernel(self.density, self.resolution(sample.size, sigma) / sigma, factor)
        return stein_curve(sample, thresholds, sigma=sigma, rule=rule, kernel=kernel)


def mixture_jump(sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
    """Return Stein's formula with the density at the jumps from the distribution of the means."""
    tried = finite_part(thresholds)
    means = fit_means(sample, sigma=sigma, largest=float(tried.max(initial=0.0)))
    smooth = stein_curve(sample, thresholds, sigma=sigma, rule=rule)
    curve = add_jump(smooth, rule, lambda positions: means.density(positions, sigma))
    noisy = stein_curve(sample, thresholds, sigma=sigma, rule=rule, kernel=Kernel("gaussian", 0.5, False))
    return dataclasses.replace(curve, stderr=noisy.stderr)


def _positive(bandwidth: float | None) -> float:
    return _validate.positive(bandwidth, "bandwidth", ' The paper\'s choice: bandwidth="paper".')
