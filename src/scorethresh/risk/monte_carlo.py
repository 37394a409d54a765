"""The divergence and the risk of any estimator, from its response to random probes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import _validate
from .._arrays import Floats
from .._threads import thread_map
from ..noise.gaussian import GaussianNoise, observe
from .black_box import BlackBox
from .probe_terms import MonteCarloRisk, Response, RiskTerms, check_units, inner, risk_of_terms, risk_terms

__all__ = [
    "Divergence",
    "MonteCarloRisk",
    "ProbePlan",
    "Response",
    "antithetic_responses",
    "default_probes",
    "default_step",
    "divergence",
    "divergence_ratio",
    "inner",
    "monte_carlo_divergence",
    "monte_carlo_risk",
    "probe_rows",
]

# Bounds of a ratio of two divergences. One probe on few entries may give nonsense; a pilot that depends on the data
# adds at most a small multiple of the divergence for a given pilot.
LEAST_RATIO, LARGEST_RATIO = 0.5, 20.0

# Entries that the probes of one evaluation cover together, and the least number of probes. More probes cost calls;
# fewer make the divergence noisier than the residual.
PROBED_ENTRIES = 8192
MIN_PROBES = 2
# The largest step, over the noise level. It matters below 32 entries.
MAX_STEP = 0.5


def entries(y: Floats) -> int:
    """Return the number of entries, real and imaginary parts counted."""
    return int(y.size * (1 + np.iscomplexobj(y)))


def default_step(size: int) -> float:
    """Return the step over the noise level for that many entries: ``size^(-1/5)``, the rate of a kernel's bandwidth."""
    return float(min(size ** (-1 / 5), MAX_STEP))


def default_probes(size: int) -> int:
    """Return the number of probes for that many entries: 2 from 4096 on, more below."""
    return max(MIN_PROBES, math.ceil(PROBED_ENTRIES / size))


def antithetic_responses(
    estimator: Callable[[Floats], Sequence[Floats]],
    y: Floats,
    direction: Floats,
    step: float,
    *,
    threads: bool = True,
) -> list[Response]:
    """Return how each output of an estimator responds to a move along a direction.

    Parameters
    ----------
    estimator : callable
        Takes data of the shape of y, returns one or more arrays of that shape.
    y : ndarray
        The data.
    direction : ndarray
        The direction d, as y.
    step : float
        The derivative is ``(x(y + step d) - x(y - step d)) / (2 step)``. A small step misses jumps, a large one
        blurs. With d a draw of the noise, a jump shows in the entries within some step noise levels of it.
    threads : bool
        Whether both calls may run at once. Functions of users may not bear it.

    Returns
    -------
    list of Response
        One per output.
    """
    moved = y.real.dtype.type(step) * direction
    sides = [y + moved, y - moved]
    ahead, behind = thread_map(estimator, sides) if threads else map(estimator, sides)
    return [Response((a + b) / 2, (a - b) / (2 * step)) for a, b in zip(ahead, behind, strict=True)]


def monte_carlo_divergence(
    estimator: Callable[[Floats], Floats], y: Floats, probes: Sequence[Floats], step: float
) -> tuple[float, float]:
    """Estimate ``tr(Sigma dx/dy)``, jumps included, from draws of the noise.

    Parameters
    ----------
    estimator : callable
        Takes and returns arrays of the shape of y.
    y : ndarray
        The data.
    probes : sequence of ndarray
        Independent draws w of the noise, of covariance Sigma.
    step : float
        That of `antithetic_responses`.

    Returns
    -------
    value, stderr : float
        The mean of ``<w, dx/dw>`` over the probes, and its standard error; infinite for one probe.

    Notes
    -----
    ``E <w, J w> = tr(Sigma J)`` for w of covariance Sigma.

    References
    ----------
    S. Ramani, T. Blu, M. Unser, "Monte-Carlo SURE", IEEE Trans. Image Process. 17 (2008), doi:10.1109/TIP.2008.2001404.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=10_000)
    >>> value, stderr = monte_carlo_divergence(lambda z: 0.3 * z, y, rng.normal(size=(4, y.size)), step=0.1)
    >>> abs(value - 3000) < 4 * stderr
    True
    """
    found = [
        inner(probe, antithetic_responses(lambda z: (estimator(z),), y, probe, step)[0].derivative) for probe in probes
    ]
    stderr = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else np.inf
    return float(np.mean(found)), stderr


class Divergence(NamedTuple):
    """A divergence and its standard error over the probes."""

    value: float
    stderr: float


def divergence(
    estimator: Any,
    y: Any,
    *,
    sigma: Any,
    step: float | None = None,
    probes: int | None = None,
    seed: int = 0,
) -> Divergence:
    """Estimate the divergence of any function of the data, jumps included.

    Parameters
    ----------
    estimator : callable
        ``estimator(y)`` returns an array of the shape of y. It must return the same for the same y.
    y : array_like
        Noisy data, real or complex, of any shape.
    sigma : float or array_like
        The noise level in units of y (of one part, if y is complex): a number, or one per entry.
    step : float, optional
        How far the data are moved along a probe, in noise levels. By default ``P^(-1/5)``, P the number of entries:
        0.25 at 1024, 0.10 at 1e5.
    probes : int, optional
        The number of random directions; each costs two calls. By default 2, and more below 4096 entries.
    seed : int
        The probes are the same for the same seed.

    Returns
    -------
    value, stderr : float
        ``tr(Sigma dx/dy)``, in units of y squared, Sigma the noise covariance; divided by ``sigma**2`` it is the
        degrees of freedom. The standard error is that over the probes, for the given y.

    See Also
    --------
    select_parameter : Choose a parameter of the function by its risk.
    RiskCurve : Degrees of freedom of thresholding rules, without Monte Carlo.

    Notes
    -----
    With ``w`` a draw of the noise and h the step, the estimate is the mean over probes of ::

        <w, x(y + h w) - x(y - h w)> / (2 h)

    Its mean over the data is the divergence at noise ``sqrt(1 + h^2)`` times as strong. The step decides what is
    seen. A jump is seen by entries within about h noise levels of it. So with a tiny step, as in Monte Carlo SURE [1]_,
    hardly any entry sees a jump: the value is that of the smooth part alone, in almost every draw. With a large
    step the estimator is judged at more noise than there is. The default shrinks like the bandwidth of a kernel
    estimate, for the same reason: its bias is of order h^2 and its variance of order ``1 / (P h)``.

    The standard error is ``sqrt(2 d' Sigma d / probes)``, d the derivative along a probe. It is exact for symmetric
    linear functions and hard thresholds.

    References
    ----------
    .. [1] S. Ramani, T. Blu, M. Unser, "Monte-Carlo SURE", IEEE Trans. Image Process. 17 (2008),
       doi:10.1109/TIP.2008.2001404.

    Examples
    --------
    Hard thresholding of noise at 2.5 has 2 P [sf(2.5) + 2.5 phi(2.5)] = 10007 degrees of freedom, 88% of them
    at the jump. A tiny step misses these.

    >>> y = np.random.default_rng(1).normal(size=100_000)
    >>> hard = lambda y: np.where(np.abs(y) >= 2.5, y, 0.0)
    >>> print("%.0f +- %.0f" % divergence(hard, y, sigma=1.0))
    9956 +- 310
    >>> print("%.0f" % divergence(hard, y, sigma=1.0, step=1e-6).value)
    1184
    """
    if not callable(estimator):
        msg = f"estimator must be a function of y, got {estimator!r}. With parameters: lambda y: f(y, parameter)."
        raise TypeError(msg)
    if sigma is None:
        _validate.noise_level(sigma)
    values, noise, _, _ = observe(y, "white", sigma)
    check_units(values, noise)
    plan = ProbePlan.make(values, step=step, probes=probes, seed=seed)
    found = monte_carlo_risk(BlackBox(estimator), values, noise, plan)
    return Divergence(found.divergence, found.divergence_stderr)


@dataclass(frozen=True)
class ProbePlan:
    """How an estimator is probed: the step over the noise level, how many probes, and their seed."""

    step: float
    probes: int
    seed: int = 0

    @classmethod
    def make(cls, y: Floats, *, step: Any = None, probes: Any = None, seed: Any = 0) -> ProbePlan:
        """Return the plan for data like y, checked; what is None gets its default."""
        size = entries(y)
        return cls(
            default_step(size) if step is None else _validate.positive(step, "step"),
            default_probes(size) if probes is None else _validate.whole(probes, "probes", 1),
            _validate.whole(seed, "seed", 0, " It makes the probes the same in every run."),
        )


def monte_carlo_risk(
    estimator: Callable[[Floats], Floats],
    y: Floats,
    noise: GaussianNoise,
    plan: ProbePlan,
    weights: Floats | None = None,
) -> MonteCarloRisk:
    """Estimate the risk of an estimator, jumps included, from calls at ``y + h w`` and ``y - h w``.

    Parameters
    ----------
    estimator : callable
        Takes and returns arrays of the shape of y.
    y : ndarray
        The data, real or complex.
    noise : GaussianNoise
        The noise in y, of covariance Sigma.
    plan : ProbePlan
        The step h and the probes w.
    weights : ndarray, optional
        Weights W of the squared errors.

    Returns
    -------
    MonteCarloRisk
        The estimate of ``E (x - x0)' W (x - x0)``, and of ``tr(W Sigma dx/dy)``.

    Notes
    -----
    With x+ and x- the estimates at ``y + h w`` and ``y - h w``, and d their difference over 2 h, the risk is the mean
    over probes of ::

        mean(|y - x+|^2, |y - x-|^2) - tr(W Sigma) + 2 <W w, d>

    It is unbiased for the risk at noise ``sqrt(1 + h^2)`` times as strong. The residual is taken where the
    divergence is: at y an estimator that stops by the data may stop at another step.

    The error of this estimate about the loss ``|x - x0|^2`` has, for a given y, the variance
    ``4 r' W Sigma W r + 4 tr(Sigma W J Sigma W J) - 2 tr(Sigma W Sigma W)`` [1]_, r the residual and J the derivative.
    The middle term is estimated by ``d' W Sigma W d``, which is too large for estimators that jump. The spread over the
    probes is added.

    References
    ----------
    .. [1] P. C. Bellec, C.-H. Zhang, "Second-order Stein: SURE for SURE and other applications in high-dimensional
       inference", Annals of Statistics 49 (2021), arXiv:1811.04121.
    """
    return risk_of_terms(probe_rows(estimator, y, noise, plan, weights), y, noise, weights)


def probe_rows(
    estimator: Callable[[Floats], Floats],
    y: Floats,
    noise: GaussianNoise,
    plan: ProbePlan,
    weights: Floats | None = None,
    *,
    start: int = 0,
) -> list[RiskTerms]:
    """Return what each probe of a plan tells of the risk, from number `start` on; see `monte_carlo_risk`."""
    rows = []
    for probe in itertools.islice(noise.draws(y, plan.probes, plan.seed), start, None):
        [response] = antithetic_responses(lambda z: (estimator(z),), y, probe, plan.step, threads=False)
        rows.append(risk_terms(response, y, probe, noise, plan.step, weights))
    return rows


def divergence_ratio(probe: Floats, response: Floats, control: Floats) -> float:
    """Return ``<probe, response> / <probe, control>``, the factor by which a divergence differs from a known one.

    Both are responses to the same probe, so that most of its randomness cancels: the ratio varies far less than
    either product.
    """
    ratio = inner(probe, response) / max(inner(probe, control), 1e-300)
    return min(max(ratio, LEAST_RATIO), LARGEST_RATIO)
