"""The risk from the distribution of the means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _validate
from ..._normal import phi
from ..._validate import Array
from ...rules import Rule, entry_rule
from ...sample.magnitudes import Magnitudes, default_thresholds
from ..choice import choose_within_noise
from ..curve import RiskCurve, finite_part, or_infinity
from ..gaussian import expectations, row_blocks
from ..mixture_error import parameter_covariance, parameters_of
from ..npmle import Means, fit_means
from ..stein import check_cells
from .base import Method

# Integrals over the fitted density take points at this distance, in units of sigma, and end this far beyond its last
# mean. Sums over points converge fast for smooth functions: half the distance changes no standard error by 1e-6.
_POINTS = 0.2
_TAIL = 9.0


@dataclass(frozen=True)
class Mixture(Method):
    """The exact risk under the fitted distribution of the means (the NPMLE of Kiefer and Wolfowitz, and sparser fits).

    Parameters
    ----------
    null : float
        The number of entries, added to the data, whose mean is known to be 0 in the first sparser fit. With
        ``null=0`` there are no sparser fits: plain maximum likelihood.

    See Also
    --------
    Means : The fitted distribution.
    Score : ``Score(density="mixture")`` takes only the density at the jump from the fit.

    Notes
    -----
    The method fits the distribution G of the ``|x0_i|`` by maximum likelihood [1]_ and returns ``P E (x(Y) - x0)^2``
    under it, for any rule. It has no bandwidth: the density of y is a mixture of normals of width sigma, and only such
    densities are fitted.

    The most likely G overfits: it explains the largest noise by means. It is averaged with two sparser fits. In the
    first, `null` more entries have mean 0; in the second, every mean is 0 or at least ``sigma (sqrt(2 log P) + 3)``.
    A sparser fit takes part only if its log-likelihood is at most 2 below the largest.

    The method relies on white Gaussian noise of level sigma more than others do: it takes heavy tails for signal. A
    few hundred entries determine G poorly, and the level of the risk more poorly still.

    The threshold of least risk is taken, with one exception. Up to a limit near ``sqrt(2 log P + 2 log log P)`` any may
    be taken; there, pure noise has a risk of ``sigma^2 / 2`` in all. One above is taken only if it keeps something, and
    every entry beyond the limit, which noise alone hardly makes.

    `stderr` is that of the fit, by the delta method: the parameters are the masses and places of the fitted means, and
    the energy of means below sigma. It is right for dense signals, and up to three times too large for sparse ones. The
    risk itself is biased. It is too high for sparse signals, for the most likely G takes some noise for signal: by 7
    sigma^2 for pure noise in 1000 entries, of which 0.1 would be true. It is too low if many means lie just below the
    threshold: by 13% for 10% Laplace(3).

    References
    ----------
    .. [1] J. Kiefer and J. Wolfowitz, "Consistency of the maximum likelihood estimator in the presence of infinitely
       many incidental parameters", Annals of Mathematical Statistics 27, 1956, doi:10.1214/aoms/1177728066.

    Examples
    --------
    >>> import scorethresh as st
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> y[:20] += 6.0
    >>> st.select_threshold(y, sigma=1.0, method=Mixture()).threshold
    3.46875
    """

    null: float = 100.0

    def __post_init__(self) -> None:
        if not 0 <= _validate.number(self.null, "null") < np.inf:
            msg = f"null must be at least 0 and finite, got {self.null}."
            raise ValueError(msg)

    def fit(self, y: Any, *, sigma: float) -> Means:
        """Return the distribution of the means of y, or of its sample, with the duality gap of the fit.

        Entries more than 7 sigma above the universal threshold take no part.

        >>> y = np.repeat([0.1, -5.0], 50)
        >>> means = Mixture(null=0).fit(y, sigma=1.0)
        >>> means.atoms[:-1], means.masses[:-1].round(), means.gap < 1e-4
        (array([0., 5.]), array([50., 50.]), True)
        """
        sigma = _validate.noise_level(sigma)
        sample = y if isinstance(y, Magnitudes) else Magnitudes.exact(y)
        return fit_means(sample, sigma=sigma, largest=default_thresholds(sample.size, sigma)[-2], null=self.null)

    def resolution(self, size: int, sigma: float) -> float:
        """Return half of the noise level: the fit needs no more than a histogram."""
        return sigma / 2

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""
        rule = entry_rule(rule, self)
        tried = finite_part(thresholds)
        if sample.cells is not None and tried.size:
            check_cells(sample.cells, tried, rule, self.resolution(sample.size, sigma))
        means = fit_means(sample, sigma=sigma, largest=float(tried.max(initial=0.0)), null=self.null)
        risk, dof, stderr = _evaluate(rule, thresholds, means, sigma)
        return RiskCurve(thresholds, risk, dof, stderr, sample.size, sigma, means.misfit)

    def choose(self, sample: Magnitudes, curve: RiskCurve, *, rule: Rule) -> int:
        """Return the index of the least risk that the data support; see the notes."""
        return choose_within_noise(sample, curve, 1)


def _evaluate(rule: Rule, thresholds: Array, means: Means, sigma: float) -> tuple[Array, Array, Array]:
    """Return risk, degrees of freedom and, by the delta method, the standard error of the risk."""
    n, masses = means.fitted, means.masses
    at, change, covariance = _fitted_parameters(means, sigma)
    # An entry that was not fitted is taken as its own mean, which it tells to within sigma. At finite thresholds all
    # rules leave those of the last atom as they are.
    far, last = means.atoms[n:-1], means.atoms.size
    ends = slice(last, last + far.size), slice(last + far.size, last + 2 * far.size)
    every = np.concatenate([means.atoms, far + sigma / 2, far - sigma / 2, at[n:] * sigma])
    own = np.append(np.arange(n), np.arange(last + 2 * far.size, every.size))
    risk, dof, variance = np.zeros((3, thresholds.size))
    with np.errstate(over="ignore", invalid="ignore"):
        for part, error, freedom in _per_mean(rule, thresholds, every, sigma):
            risk[part], dof[part] = error[:, :last] @ masses, freedom[:, :last] @ masses
            units = error / sigma / sigma
            slope = units[:, own] @ change
            variance[part] = np.einsum("tj,tj->t", slope @ covariance, slope)
            variance[part] += np.square(units[:, ends[0]] - units[:, ends[1]]) @ masses[n:-1]
        if masses[-1] > 0:
            variance[finite_part(thresholds).size :] += masses[-1] * (2 * means.atoms[-1] / sigma) ** 2
        stderr = np.sqrt(np.maximum(or_infinity(variance), 0)) * sigma**2
    return or_infinity(risk), or_infinity(dof), stderr


def _fitted_parameters(means: Means, sigma: float) -> tuple[Array, Array, Array]:
    """Return means in units of sigma, how the values at them change with the parameters of the fit, and the covariance.

    The first means are the atoms of the fit.
    """
    if not means.fitted:
        return np.empty(0), np.empty((0, 0)), np.empty((0, 0))
    parameters = parameters_of(means.atoms[: means.fitted] / sigma, means.masses[: means.fitted])
    points = np.arange(_POINTS / 2, parameters.means.max() + _TAIL, _POINTS)[:, None]
    densities = phi(points - parameters.means) + phi(points + parameters.means)
    covariance = parameter_covariance(parameters, densities, np.full(points.size, _POINTS))
    return parameters.means, parameters.combinations, covariance


def _per_mean(rule: Rule, thresholds: Array, means: Array, sigma: float) -> Iterator[tuple[slice, Array, Array]]:
    """Yield blocks of thresholds, and risk and degrees of freedom of an entry at each of them and each mean."""
    tried = finite_part(thresholds)
    for part in row_blocks(tried.size, means.size):
        found = expectations(rule, tried[part], means, sigma)
        yield part, found.error, found.dof
    if tried.size < thresholds.size:
        yield slice(tried.size, None), np.square(means)[None, :], np.zeros((1, means.size))
