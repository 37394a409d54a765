"""Shrinkage by the posterior mean, for the least error rather than a decision to keep or kill."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._threads import thread_map
from ..noise.level import estimate_sigma
from ..risk.npmle import fit_means
from ..risk.posterior import TRUSTED, posterior_mean
from ..sample.magnitudes import Magnitudes
from .many import batch_levels, rows_of
from .misfit import warn_of_negative_risk

__all__ = ["PosteriorMean", "Shrunk", "shrink"]


@dataclass(frozen=True, eq=False, repr=False)
class Shrunk:
    """The posterior means of noisy data.

    Attributes
    ----------
    estimate : ndarray
        The posterior mean of every entry, with the shape of y, and its dtype if that is a float.
    risk, dof : float
        Estimated risk (in units of y squared) and degrees of freedom, summed over the entries. Of a batch, arrays.
    means : Means
        The fitted distribution of the means. Its last atom holds the entries beyond 26 sigma. Of a batch, a tuple.
    sigma : float
        The noise level that was used. Of a batch, an array.

    See Also
    --------
    shrink : Returns this.
    """

    estimate: NDArray[Any]
    risk: Any
    dof: Any
    means: Any
    sigma: Any

    def __repr__(self) -> str:
        low, high = np.min(self.sigma), np.max(self.sigma)
        level = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
        return (
            f"<Shrunk: estimated risk {np.sum(self.risk):.4g}, degrees of freedom {np.sum(self.dof):.4g} of "
            f"{self.estimate.size}, sigma {level}>"
        )


@dataclass(frozen=True)
class PosteriorMean:
    """Shrinkage of every entry to its posterior mean; ``threshold_coeffs(coeffs, rule=PosteriorMean())`` takes it.

    See Also
    --------
    shrink : The same as a function, with the formulas.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> y[:50] += 7.0
    >>> PosteriorMean().run(y, sigma=1.0).estimate[:3].round(2)
    array([7.15, 7.15, 7.16])
    """

    def run(self, y: Any, *, sigma: float | None = None) -> Shrunk:
        """Return the posterior means of y, as `shrink` does."""
        y = _validate.data(y)
        _validate.finite(y)
        level = _validate.noise_level(estimate_sigma(y) if sigma is None else sigma)
        means = fit_means(Magnitudes.exact(y), sigma=level, largest=TRUSTED * level, null=0.0)
        with np.errstate(over="ignore"):  # entries that overflow are far beyond the fit
            z = np.ravel(y).astype(np.float64) / level
        # The last atom is the average of all entries beyond the fit. It says nothing about any of them.
        found = posterior_mean(z, means.atoms[:-1] / level, means.masses[:-1])
        changed = found.mean != z
        residual = z[changed] - found.mean[changed]
        dof = float(found.derivative.sum()) + found.fit_dof
        risk = level**2 * (float(residual @ residual) - z.size + 2 * dof)
        warn_of_negative_risk(risk, level**2 * math.sqrt(2 * z.size))
        estimate = np.array(y, dtype=y.dtype if y.dtype.kind == "f" else np.float64)
        estimate[changed.reshape(y.shape)] = found.mean[changed] * level
        return Shrunk(estimate, risk, dof, means, level)


def shrink(y: Any, *, sigma: Any = None, batch_axis: int | None = None, pooled: bool = False) -> Shrunk:
    """Estimate every mean by its posterior mean under the fitted distribution of the means.

    It has less error than thresholding, but sets nothing exactly to zero.

    Parameters
    ----------
    y : array_like
        Noisy coefficients ``x0 + w`` with w white Gaussian, real, of any shape. Their order plays no part.
    sigma : float, optional
        Standard deviation of w. By default it is estimated by `estimate_sigma`. For a batch one number, or one per
        sample.
    batch_axis : int, optional
        The axis along which many samples lie, each of which gets a distribution of its own. Then risk, degrees of
        freedom and noise level are arrays, and the distributions a tuple.
    pooled : bool
        Whether the samples of a batch share one distribution, over their noise levels.

    Returns
    -------
    Shrunk
        The estimate, its risk and degrees of freedom, and the fitted distribution.

    See Also
    --------
    select_threshold : Keep or kill every entry.
    threshold_coeffs : With ``rule="posterior"``, shrink every band of a wavelet transform.
    Means : The fitted distribution.

    Notes
    -----
    The distribution of the ``|x0_i|``, with masses G_k at m_k, is the most likely one [1]_. Each m_k stands for both
    signs, so that the estimate is odd. In units of sigma it is [2]_ [3]_ ::

        x(y) = sum_k G_k m_k (phi(y - m_k) - phi(y + m_k)) / sum_k G_k (phi(y - m_k) + phi(y + m_k))

    Its derivative is the posterior variance. The degrees of freedom are the sum of these, and those of the fit, for G
    follows the data, too: ``tr (F'F)^-1 A'A``, with ``F_ik`` the likelihood of m_k at y_i over that of the mixture
    and ``A_ik`` its derivative. The risk is Stein's, ``||y - x||^2 - P sigma^2 + 2 sigma^2 dof``. Its standard
    deviation is of the order of ``sigma^2 sqrt(2 P)``, so the risk of a sparse signal may come out negative.

    The means are fitted to entries up to 26 sigma. Beyond, the estimate is y itself. From 20 to 26 sigma it goes over
    in a straight line, so that it does not jump.

    The estimate relies on Gaussian noise of level sigma. It takes heavy tails for signal.

    References
    ----------
    .. [1] J. Kiefer and J. Wolfowitz, "Consistency of the maximum likelihood estimator in the presence of infinitely
       many incidental parameters", Annals of Mathematical Statistics 27, 1956, doi:10.1214/aoms/1177728066.
    .. [2] W. Jiang and C.-H. Zhang, "General maximum likelihood empirical Bayes estimation of normal means", Annals of
       Statistics 37, 2009, doi:10.1214/08-AOS638.
    .. [3] B. Efron, "Two modeling strategies for empirical Bayes estimation", Statistical Science 29, 2014,
       doi:10.1214/13-STS455.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> y[:50] += 7.0
    >>> shrunk = shrink(y, sigma=1.0)
    >>> shrunk
    <Shrunk: estimated risk -24.41, degrees of freedom 36.2 of 1000, sigma 1>
    >>> import scorethresh as st
    >>> truth = np.where(np.arange(1000) < 50, 7.0, 0.0)
    >>> kept = st.select_threshold(y, sigma=1.0).estimate
    >>> [round(float(np.sum((x - truth) ** 2))) for x in (kept, shrunk.estimate)]
    [72, 18]
    """
    _validate.pooled(pooled, batch_axis)
    if batch_axis is None:
        return PosteriorMean().run(y, sigma=sigma)
    return _shrink_many(y, sigma, batch_axis, pooled=pooled)


def _shrink_many(y: Any, sigma: Any, batch_axis: int, *, pooled: bool) -> Shrunk:
    """Shrink every sample along an axis, each by itself or all by one distribution."""
    rows, axis = rows_of(y, batch_axis)
    count = len(rows)
    if pooled:
        levels = batch_levels(estimate_sigma(np.ravel(rows)) if sigma is None else sigma, count)
        over = levels.reshape(-1, *(1,) * (rows.ndim - 1))
        found = PosteriorMean().run(rows / over, sigma=1.0)
        estimate = (found.estimate * over).astype(rows.dtype if rows.dtype.kind == "f" else np.float64)
        share = np.full(count, 1 / count)
        risk, dof, means = found.risk * share * levels**2, found.dof * share, (found.means,) * count
    else:
        given = [None] * count if sigma is None else list(batch_levels(sigma, count))
        each = thread_map(
            lambda pair: PosteriorMean().run(np.ravel(pair[0]), sigma=pair[1]), zip(rows, given, strict=True)
        )
        estimate = np.stack([found.estimate for found in each]).reshape(rows.shape)
        risk, dof, levels = (np.array([getattr(found, name) for found in each]) for name in ("risk", "dof", "sigma"))
        means = tuple(found.means for found in each)
    return Shrunk(np.moveaxis(estimate, 0, axis), risk, dof, means, levels)
