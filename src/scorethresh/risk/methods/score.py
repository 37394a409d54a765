"""SCORE: the risk of rules that jump, with an estimate of the density at the jump."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from ... import _validate
from ..._validate import Array
from ...rules import Rule, entry_rule
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve, finite_part
from ..direct import direct_curve
from ..kernel import Kernel, narrowest, paper_bandwidth, plugin_bandwidth
from ..npmle import fit_means
from ..stein import add_jump, stein_curve
from .base import Method

# The bandwidths that have names, with the kernels that each serves; and the default bandwidth of each density.
BANDWIDTHS = {"paper": ("gaussian",), "plugin": ("gaussian", "order4", "sinc")}
DENSITIES = {"gaussian": "paper", "order4": "plugin", "sinc": "plugin", "mixture": None}

# The standard error of a mixture's curve is that of a kernel with this bandwidth, in units of sigma. A wider kernel
# would understate it near the jump.
STDERR_KERNEL = Kernel("gaussian", 0.5, False)


@dataclass(frozen=True)
class Score(Method):
    """Stein COnsistent Risk Estimator (SCORE), for any rule with or without jumps.

    Parameters
    ----------
    bandwidth : "paper", "plugin", float or callable, optional
        The bandwidth h of the kernel. ``"paper"``, the default of the Gaussian kernel, is ``6 sigma / P^(1/3)``: right
        for 1e5 entries, too wide for fewer than 1e4. ``"plugin"``, the default of the others, has the least mean
        squared error at each threshold. A number is in units of y; a callable is given P and sigma.
    density : {"gaussian", "order4", "sinc", "mixture"}
        How the density at the jump is estimated: by a kernel of that shape, or from the distribution of the means
        (see `Mixture`).
    factor : bool
        Whether the Gaussian kernel carries the paper's factor ``sqrt(1 + h^2 / sigma^2)``. The factor lowers the bias
        only for means closer than 0.7 sigma to the threshold.

    See Also
    --------
    paper_bandwidth : The paper's bandwidth.
    Mixture : The default method, which picks better thresholds at few entries.
    Sure : For rules that do not jump.

    Notes
    -----
    For hard thresholding of P entries the degrees of freedom are estimated by ::

        #{|y_i| > t} + t sqrt(sigma^2 + h^2) / (sqrt(2 pi) sigma h)
                       * sum_i [exp(-(y_i + t)^2 / 2h^2) + exp(-(y_i - t)^2 / 2h^2)]

    and the risk by ``||y - x(y)||^2 - P sigma^2 + 2 sigma^2 DOF`` [1]_. For another rule the count becomes the sum of
    its derivatives, and the factor t the height of its jump. Divided by P, both estimates are consistent if h falls
    to 0 more slowly than 1/P.

    `stderr` is the standard deviation of the sum of P independent terms, from their spread over the entries. It
    covers the noise of the estimate at a fixed threshold. It is right if all means are equal. Otherwise it is too
    large, because it includes the spread of the means. It covers neither the bias, of order ``(h / sigma)^2`` of the
    jump's part, nor the choice of the threshold (the least risk of a curve is too low on average), nor the difference
    between the loss of this draw and the risk. With the mixture it is that of a Gaussian kernel of half a sigma,
    which is noisier.

    An entry that equals a threshold counts as below it in the formula, as in the paper, although the rule keeps it.
    With continuous noise this has probability zero.

    References
    ----------
    .. [1] C.-A. Deledalle, G. Peyré and J. Fadili, "Stein COnsistent Risk Estimator (SCORE) for hard thresholding",
       SPARS 2013, hal-00776303.

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
    _jump: _Jump = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        default = _validate.choice("density", self.density, DENSITIES)
        if self.bandwidth is None:
            object.__setattr__(self, "bandwidth", default)
        object.__setattr__(self, "_jump", _as_jump(self.bandwidth, self.density, self.factor))

    def resolution(self, size: int, sigma: float) -> float:
        """Return the narrowest bandwidth for that many entries."""
        return self._jump.narrowest(size, sigma)

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""
        return self._jump.curve(sample, thresholds, sigma=sigma, rule=entry_rule(rule, self))

    def direct(self, y: NDArray[Any], thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve | None:
        """Return the curve from the entries themselves if that is faster, which it is at few thresholds; else None."""
        if not isinstance(self._jump, _FixedKernel):
            return None
        kernel = self._jump.kernel(y.size, sigma)
        return direct_curve(y, thresholds, sigma=sigma, rule=entry_rule(rule, self), kernel=kernel)


class _Jump(Protocol):
    """A way to estimate the density at the jumps: the variants of SCORE."""

    def narrowest(self, size: int, sigma: float) -> float: ...

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve: ...


@dataclass(frozen=True)
class _FixedKernel:
    """A kernel of one bandwidth for all thresholds."""

    shape: str
    bandwidth: Callable[[int, float], float]
    factor: bool

    def narrowest(self, size: int, sigma: float) -> float:
        h = _positive(self.bandwidth(size, sigma))
        # Kernels reach over cells of a fraction of h: beyond these bounds their number or their width overflows.
        if not 1e-9 <= h / sigma <= 1e9:
            msg = f"bandwidth must lie between 1e-9 and 1e9 times sigma = {sigma}, got {h}."
            raise ValueError(msg)
        return h

    def kernel(self, size: int, sigma: float) -> Kernel:
        return Kernel(self.shape, self.narrowest(size, sigma) / sigma, self.factor)

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        kernel = self.kernel(sample.size, sigma)
        return stein_curve(sample, thresholds, sigma=sigma, rule=rule, kernel=kernel)


@dataclass(frozen=True)
class _PluginKernel:
    """A kernel with the bandwidth of least mean squared error at each threshold."""

    shape: str
    factor: bool

    def narrowest(self, size: int, sigma: float) -> float:
        return narrowest(self.shape, size) * sigma

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        kernel = Kernel(self.shape, plugin_bandwidth(self.shape, sample, sigma, self.factor), self.factor)
        return stein_curve(sample, thresholds, sigma=sigma, rule=rule, kernel=kernel)


@dataclass(frozen=True)
class _MixtureDensity:
    """The density of the fitted distribution of the means, convolved with the noise."""

    def narrowest(self, size: int, sigma: float) -> float:
        return sigma / 2

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        tried = finite_part(thresholds)
        means = fit_means(sample, sigma=sigma, largest=float(tried.max(initial=0.0)))
        smooth = stein_curve(sample, thresholds, sigma=sigma, rule=rule)
        curve = add_jump(smooth, rule, lambda positions: means.density(positions, sigma))
        noisy = stein_curve(sample, thresholds, sigma=sigma, rule=rule, kernel=STDERR_KERNEL)
        return dataclasses.replace(curve, stderr=noisy.stderr)


def _as_jump(bandwidth: str | float | Callable[[int, float], float] | None, density: str, factor: bool) -> _Jump:
    """Return the variant for the options of `Score`; refuse options that do not go together."""
    if density == "mixture":
        if bandwidth is not None:
            msg = f'density="mixture" has no bandwidth, got {bandwidth!r}. Leave it out.'
            raise ValueError(msg)
        return _MixtureDensity()
    factor = factor and density == "gaussian"
    if isinstance(bandwidth, str):
        if density not in _validate.choice("bandwidth", bandwidth, BANDWIDTHS):
            msg = f'bandwidth="paper" belongs to density="gaussian", got {density!r}. Use bandwidth="plugin".'
            raise ValueError(msg)
        known: dict[str, _Jump] = {
            "plugin": _PluginKernel(density, factor),
            "paper": _FixedKernel(density, paper_bandwidth, factor),
        }
        return known[bandwidth]
    if callable(bandwidth):
        return _FixedKernel(density, bandwidth, factor)
    return _FixedKernel(density, _Constant(_positive(bandwidth)), factor)


@dataclass(frozen=True)
class _Constant:
    """A bandwidth that depends on nothing."""

    bandwidth: float

    def __call__(self, size: int, sigma: float) -> float:
        return self.bandwidth


def _positive(bandwidth: float | None) -> float:
    return _validate.positive(bandwidth, "bandwidth", ' The paper\'s choice: bandwidth="paper".')
