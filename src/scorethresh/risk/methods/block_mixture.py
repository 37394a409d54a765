"""The risk of rules on the norms of blocks, from the distribution of their means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ... import _validate
from ..._validate import Array
from ...rules import Rule, complete, jumps_of, kinks_of
from ...sample.magnitudes import Magnitudes, default_thresholds
from ..choice import choose_within_noise
from ..curve import RiskCurve, finite_part, or_infinity
from ..mixture_error import parameter_covariance, parameters_of
from ..npmle import largest_difference
from ..npmle_blocks import BlockMeans, Histogram, block_density, fit_block_means, fitted_limit, histogram
from ..stein import check_cells
from .base import BlockMethod
from .blocks import MAX_BANDWIDTH, smooth_terms, threshold_chunks

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

    The threshold, `stderr` and the bias of the risk are as for entries: see `Mixture`.

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
        """Return the widest bandwidth of `BlockScore`: the fit needs no more than a histogram."""
        return MAX_BANDWIDTH * sigma

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds, from a sample of norms."""
        rule = complete(rule)
        d = rule.block_size
        tried, h = finite_part(thresholds), self.resolution(sample.size, sigma)
        if sample.cells is not None and tried.size:
            check_cells(sample.cells, tried, rule, h)
        largest = float(tried.max(initial=0.0))
        means = fit_block_means(sample, sigma=sigma, block_size=d, largest=largest, null=self.null)
        law = _law(means, kinks_of(rule, tried) / sigma if tried.size else np.zeros(1))
        loss, dof = np.zeros((2, thresholds.size, law.weights.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for part in threshold_chunks(tried.size, law.norms.size, rule):
                loss[part], dof[part] = (
                    term.T @ law.weights for term in smooth_terms(law.norms * sigma, tried[part], rule, sigma)
                )
            for positions, heights in jumps_of(rule, tried) if tried.size else []:
                dof[: tried.size] += (heights / sigma)[:, None] * _densities(means, law.means, positions / sigma)
            loss[tried.size :] = np.square(law.norms) @ law.weights
            risk = loss - d * law.counts + 2 * dof
            stderr = _standard_error(means, law, risk[:, 1:], thresholds / sigma) * sigma**2
            totals = or_infinity(risk[:, 0]) * sigma**2, or_infinity(dof[:, 0])
            near, _ = histogram(sample, sigma, fitted_limit(largest / sigma, d))
            return RiskCurve(thresholds, *totals, stderr, d * sample.size, sigma, _misfit(near, law))

    def choose(self, sample: Magnitudes, curve: RiskCurve, *, rule: Rule) -> int:
        """Return the index of the least risk that the data support, as for entries."""
        return choose_within_noise(sample, curve, complete(rule).block_size)


class _Law(NamedTuple):
    """The fitted law of the norms, in units of sigma, as a quadrature whose panels end at the kinks.

    Attributes
    ----------
    norms : ndarray
        The nodes: those of the fit, then norms that took no part in it.
    weights : ndarray
        Per node, those of all blocks (first column), and of one block with each mean (columns).
    counts : ndarray
        The number of blocks in every column.
    means : ndarray
        Those of the columns but the first; the first of these are the atoms of the fit.
    edges : ndarray
        The ends of the panels, two nodes each.
    """

    norms: Array
    weights: Array
    counts: Array
    means: Array
    edges: Array


def _law(means: BlockMeans, kinks: Array) -> _Law:
    """Return the fitted law: integrals between the kinks."""
    every, end = np.empty(0), 0.0
    if means.atoms.size:
        every = parameters_of(means.atoms, means.masses).means
        end = math.sqrt(means.atoms.max() ** 2 + means.block_size) + TAIL
    edges = np.unique(np.concatenate([np.arange(0.0, end, PANEL), kinks[kinks < end], [end]]))
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    norms = (middle[:, None] + half[:, None] * NODES).ravel()
    weights = np.zeros((norms.size + means.far.size, 1 + every.size))
    weights[: norms.size] = (half[:, None] * WEIGHTS).reshape(-1, 1) * _densities(means, every, norms, far=False)
    weights[norms.size :, 0] = means.far_counts
    counts = np.append(means.masses.sum() + means.far_counts.sum(), np.ones(every.size))
    return _Law(np.append(norms, means.far), weights, counts, every, edges)


def _densities(means: BlockMeans, every: Array, norms: Array, *, far: bool = True) -> Array:
    """Return the density of all norms (first column), and of the norm of one block with each mean."""
    one = block_density(norms, every, means.block_size)
    total = one[:, : means.atoms.size] @ means.masses
    return np.column_stack([total + means.far_density(norms) if far else total, one])


def _standard_error(means: BlockMeans, law: _Law, risks: Array, thresholds: Array) -> Array:
    """Return the standard error of the risk by the delta method; all in units of sigma."""
    variance = np.zeros(thresholds.size)
    if means.atoms.size:
        parameters = parameters_of(means.atoms, means.masses)
        inside = slice(2 * (law.edges.size - 1))
        share = np.diff(law.edges).repeat(2) / 2
        densities = law.weights[inside, 1:] / share[:, None]
        slope = risks @ parameters.combinations
        covariance = parameter_covariance(parameters, densities, share)
        variance = np.einsum("tj,tj->t", slope @ covariance, slope)
    # A norm that took no part in the fit stands for its mean; killed, it adds its square.
    spread = np.append(0.0, np.cumsum(means.far_counts * np.square(2 * means.far)))
    variance += spread[np.searchsorted(means.far, thresholds)]
    return or_infinity(np.sqrt(np.maximum(variance, 0)))


def _misfit(near: Histogram, law: _Law) -> float:
    """Return the largest difference between the distributions of the n norms and of the fit, times the root of n."""
    if not near.counts.size or law.edges.size < 2:
        return 0.0
    inside = 2 * (law.edges.size - 1)
    fitted = np.append(0.0, np.cumsum(law.weights[:inside, 0].reshape(-1, 2).sum(axis=1)))
    return largest_difference(*near, np.interp(near.averages, law.edges, fitted))
