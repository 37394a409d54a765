"""The risk from the distribution of the means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _validate
from ..._validate import Array
from ...rules import Rule, entry_rule
from ...sample.magnitudes import Magnitudes, default_thresholds
from ..curve import RiskCurve, finite_part
from ..gaussian import risk_at
from ..kernel import Kernel
from ..npmle import Means, fit_means
from ..stein import stein_curve
from .base import Method


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

    `stderr` is that of SCORE with a Gaussian kernel of half a sigma, which is noisier.

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
        noisy = stein_curve(sample, thresholds, sigma=sigma, rule=rule, kernel=Kernel("gaussian", 0.5, False))
        tried = finite_part(thresholds)
        means = fit_means(sample, sigma=sigma, largest=float(tried.max(initial=0.0)), null=self.null)
        risk, dof = risk_at(rule, thresholds, means.atoms, means.masses, sigma)
        return RiskCurve(thresholds, risk, dof, noisy.stderr, sample.size, sigma)
