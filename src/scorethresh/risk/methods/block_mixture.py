"""The risk of rules on the norms of blocks, from the distribution of their means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _validate
from ..._validate import Array
from ...rules import Rule, complete, jumps_of, kinks_of
from ...sample.magnitudes import Magnitudes, default_thresholds
from ..curve import RiskCurve, finite_part, or_infinity
from ..npmle_blocks import BlockMeans, fit_block_means, histogram
from ..stein import check_cells
from .base import BlockMethod
from .blocks import MAX_BANDWIDTH, block_curve, smooth_terms, threshold_chunks

# The widest interval of norms, in units of sigma, on which the density is integrated by two Gauss-Legendre nodes: to
# 1e-8 of it.
PANEL = 1 / 16
NODES, WEIGHTS = np.array([-1.0, 1.0]) / math.sqrt(3), np.ones(2)
# The fitted density is integrated this far beyond its last mean, in units of sigma.
TAIL = 9.0


@dataclass(frozen=True)
class BlockMixture(BlockMethod):
    """The exact risk under the fitted distribution of the means of blocks, from their norms.

    Parameters
    ----------
    null : float
        The number of blocks, added to the data, whose mean is known to be 0 in the first sparser fit. With ``null=0``
        there are no sparser fits: plain maximum likelihood.

    See Also
    --------
    Mixture : The same for rules on entries.
    BlockScore : SCORE with a kernel.

    Notes
    -----
    The norm of a block of d entries with noise of level sigma has a noncentral chi law, which depends on the norm of
    its mean. The method fits the distribution of the norms of the means by maximum likelihood [1]_, and returns
    Stein's formula under the fitted law of the norms, for any rule g on the norm: with n blocks, ::

        DOF  = n E [g'(r) + (d - 1) g(r) / r] + sum over jumps of height * n density(position)
        risk = n E (r - g(r))^2 - n d sigma^2 + 2 sigma^2 DOF

    It has no bandwidth. Norms far beyond the last threshold take no part in the fit; they enter the sums themselves.

    `stderr` is that of SCORE with a Gaussian kernel of 0.29 sigma, which is noisier, from norms in bins of sigma/20.

    References
    ----------
    .. [1] J. Kiefer and J. Wolfowitz, "Consistency of the maximum likelihood estimator in the presence of infinitely
       many incidental parameters", Annals of Mathematical Statistics 27, 1956, doi:10.1214/aoms/1177728066.

    Examples
    --------
    >>> import scorethresh as st
    >>> y = np.random.default_rng(0).normal(size=(1000, 4))
    >>> y[:50] += 3.0
    >>> chosen = st.select_threshold(y, sigma=1.0, block_axis=-1)
    >>> chosen.threshold, int(np.count_nonzero(chosen.estimate.any(axis=-1)))
    (4.25, 49)
    """

    null: float = 100.0

    def __post_init__(self) -> None:
        if not 0 <= _validate.number(self.null, "null") < np.inf:
            msg = f"null must be at least 0 and finite, got {self.null}."
            raise ValueError(msg)

    def fit(self, norms: Any, *, sigma: float, block_size: int) -> BlockMeans:
        """Return the distribution of the norms of the means, from norms or their sample."""
        sigma = _validate.noise_level(sigma)
        sample = norms if isinstance(norms, Magnitudes) else Magnitudes.exact(norms)
        d = _validate.whole(block_size, "block_size", 1)
        largest = float(default_thresholds(sample.size, sigma, d)[-2])
        return fit_block_means(sample, sigma=sigma, block_size=d, largest=largest, null=self.null)

    def resolution(self, size: int, sigma: float) -> float:
        """Return the bandwidth of the kernel behind the standard error: the fit needs no more than a histogram."""
        return MAX_BANDWIDTH * sigma

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds, from a sample of norms."""
        rule = complete(rule)
        d = rule.block_size
        tried, h = finite_part(thresholds), self.resolution(sample.size, sigma)
        if sample.cells is not None and tried.size:
            check_cells(sample.cells, tried, rule, h)
        noisy = block_curve(_binned(sample, sigma), thresholds, sigma=sigma, rule=rule, bandwidth=h)
        largest = float(tried.max(initial=0.0))
        means = fit_block_means(sample, sigma=sigma, block_size=d, largest=largest, null=self.null)
        norms, weights = _law(means, kinks_of(rule, tried) / sigma if tried.size else np.zeros(1))
        loss, dof = np.zeros((2, thresholds.size))
        with np.errstate(over="ignore", invalid="ignore"):
            for part in threshold_chunks(tried.size, norms.size, rule):
                loss[part], dof[part] = (
                    weights @ term for term in smooth_terms(norms * sigma, tried[part], rule, sigma)
                )
            for positions, heights in jumps_of(rule, tried) if tried.size else []:
                dof[: tried.size] += heights / sigma * means.density(positions / sigma)
            loss[tried.size :] = weights @ np.square(norms)
            risk = loss - d * sample.size + 2 * dof
            return RiskCurve(
                thresholds, or_infinity(risk) * sigma**2, or_infinity(dof), noisy.stderr, d * sample.size, sigma
            )


def _binned(sample: Magnitudes, sigma: float) -> Magnitudes:
    """Return the sample as a histogram: a node per bin, at the average of its norms."""
    near, _ = histogram(sample, sigma, math.inf)
    return Magnitudes(sigma * near.averages, near.counts, sample.size)


def _law(means: BlockMeans, kinks: Array) -> tuple[Array, Array]:
    """Return nodes and weights of the fitted law of the norms, in units of sigma: integrals between the kinks."""
    if not means.atoms.size:
        return means.far, means.far_counts
    end = math.sqrt(means.atoms.max() ** 2 + means.block_size) + TAIL
    edges = np.unique(np.concatenate([np.arange(0.0, end, PANEL), kinks[kinks < end], [end]]))
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    norms = (middle[:, None] + half[:, None] * NODES).ravel()
    fitted = BlockMeans(means.atoms, means.masses, np.empty(0), np.empty(0), means.block_size, means.gap)
    weights = (half[:, None] * WEIGHTS).ravel() * fitted.density(norms)
    return np.append(norms, means.far), np.append(weights, means.far_counts)
