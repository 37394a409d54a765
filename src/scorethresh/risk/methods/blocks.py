"""SCORE for rules on the norms of blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._normal import phi
from ..._validate import Array
from ...rules import Hard, Odd, Radial, Rule, complete, jumps_of
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve, finite_part, or_infinity
from ..kernel import REACH_EXACT, PiecewisePolynomial, kernel_sums, paper_bandwidth
from ..stein import check_cells, standard_error
from .base import BlockMethod

# The widest kernel, in units of sigma. It trades bias at few blocks against variance: a boxcar of half a sigma to
# either side has this standard deviation.
MAX_BANDWIDTH = 0.5 / math.sqrt(3)
# Pairs of a block and a threshold that are evaluated at once: arrays that fit into a processor's cache.
CHUNK = 1 << 16


@dataclass(frozen=True)
class BlockScore(BlockMethod):
    """SCORE for a rule on the norms of blocks, with a Gaussian kernel for the density of the norms at the jump.

    See Also
    --------
    BlockMixture : The default for blocks, which needs no bandwidth.
    Score : SCORE for rules on entries.

    Notes
    -----
    For n blocks of d entries with norms r, and the radial rule g, the degrees of freedom are estimated by ::

        sum_i [g'(r_i) + (d - 1) g(r_i) / r_i] + height * sum_i phi((position - r_i) / h) / h

    with one such last term per jump, ``h = min(6 n^(-1/3), 1/2) sigma / sqrt(3)``, and the risk by
    ``sum_i (r_i - g(r_i))^2 - n d sigma^2 + 2 sigma^2 DOF``. For hard thresholding of blocks this is
    ``d #{r_i > t} + t * density(t)``. A rule on entries is the case d = 1.

    `stderr` comes from the spread of the blocks' terms, as that of `Score`.

    Examples
    --------
    >>> import scorethresh as st
    >>> y = np.random.default_rng(0).normal(size=(1000, 4))
    >>> y[:50] += 3.0
    >>> st.select_threshold(y, sigma=1.0, block_axis=-1, method=BlockScore()).threshold
    4.375
    """

    def resolution(self, size: int, sigma: float) -> float:
        """Return the bandwidth h for that many blocks."""
        return min(paper_bandwidth(size, sigma) / math.sqrt(3), MAX_BANDWIDTH * sigma)

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds, from a sample of norms."""
        return block_curve(sample, thresholds, sigma=sigma, rule=rule, bandwidth=self.resolution(sample.size, sigma))


def block_curve(sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule, bandwidth: float) -> RiskCurve:
    """Return Stein's formula for a rule on norms, the jumps included by a Gaussian kernel of that bandwidth."""
    rule = complete(rule)
    d = rule.block_size
    tried = finite_part(thresholds)
    if sample.cells is not None and tried.size:
        check_cells(sample.cells, tried, rule, bandwidth)
    # Rows: dof, risk, and the sum over blocks of the squared terms of the risk; in units of sigma.
    sums = np.zeros((3, thresholds.size))
    hard = isinstance(rule, Radial) and isinstance(rule.rule, Hard)
    with np.errstate(over="ignore", invalid="ignore"):
        if tried.size:
            add = _hard_sums if hard else _general_sums
            sums[:, : tried.size] = add(sample, tried, rule, sigma, bandwidth)
        killed = np.square(sample.nodes / sigma) - d
        sums[1:, tried.size :] = np.array([sample.weights @ killed, sample.weights @ killed**2])[:, None]
        dof, risk, square = or_infinity(sums)
        stderr = standard_error(risk, square, sample.size)
        return RiskCurve(thresholds, risk * sigma**2, dof, stderr * sigma**2, d * sample.size, sigma)


def _general_sums(sample: Magnitudes, thresholds: Array, rule: Rule, sigma: float, bandwidth: float) -> Array:
    """Return dof, risk and squares for any rule: the definition."""
    sums = np.empty((3, thresholds.size))
    jumps = jumps_of(rule, thresholds)
    for part in threshold_chunks(thresholds.size, sample.nodes.size, rule):
        loss, dof = smooth_terms(sample.nodes, thresholds[part], rule, sigma)
        for positions, heights in jumps:
            distance = np.clip((sample.nodes[:, None] - positions[part]) / bandwidth, -50, 50)
            dof = dof + heights[part] / bandwidth * phi(distance)
        risk = loss - rule.block_size + 2 * dof
        sums[:, part] = [sample.weights @ dof, sample.weights @ risk, sample.weights @ risk**2]
    return sums


def _hard_sums(sample: Magnitudes, thresholds: Array, rule: Rule, sigma: float, bandwidth: float) -> Array:
    """Return what `_general_sums` does, for hard thresholding: cumulative sums, and compiled sums at the jump.

    A block's term of the risk is ``r^2 - d`` below the threshold and d above it, in units of sigma.
    """
    d, z, h = rule.block_size, sample.nodes / sigma, bandwidth / sigma
    # Blocks at the threshold belong below it, except at 0, where the rule is the identity.
    cut = np.where(thresholds > 0, np.searchsorted(sample.nodes, thresholds, side="right"), 0)
    killed = np.square(z) - d
    below = np.zeros((3, z.size + 1))
    np.cumsum(sample.weights * [np.ones_like(z), killed, killed**2], axis=1, out=below[:, 1:])
    kept = sample.size - np.rint(below[0, cut])
    # Sums of norms moved up by this much have no mirror image, as norms have none.
    shift = REACH_EXACT * h
    moved = Magnitudes(sample.nodes + shift * sigma, sample.weights, sample.size)
    first, last = [shift**2 - d, -2 * shift, 1.0], [d, 0.0, 0.0]
    coefficients = np.repeat(np.array([first, last])[:, :, None], thresholds.size, axis=2)
    terms = PiecewisePolynomial([thresholds + shift * sigma], coefficients)
    k1, k2, ks = kernel_sums(moved, thresholds / sigma + shift, terms, sigma=sigma, bandwidth=h)
    share = thresholds / (np.sqrt(2 * np.pi) * bandwidth)
    dof = d * kept + share * k1
    squares = below[2, cut] + d**2 * kept + 4 * share * (ks + share * k2)
    return np.stack([dof, below[1, cut] + d * kept + 2 * share * k1, squares])


def threshold_chunks(thresholds: int, nodes: int, rule: Rule) -> Iterator[slice]:
    """Yield slices of the thresholds for which all nodes are evaluated at once: one by one for a user's own rule."""
    step = max(CHUNK // max(nodes, 1), 1) if _takes_arrays(rule) else 1
    for start in range(0, thresholds, step):
        yield slice(start, min(start + step, thresholds))


def smooth_terms(norms: Array, thresholds: Array, rule: Rule, sigma: float) -> tuple[Array, Array]:
    """Return ``(r - g)^2`` in units of sigma, and the divergence off the jumps; rows are norms, columns thresholds."""
    r, t = norms[:, None], thresholds if _takes_arrays(rule) else float(thresholds[0])
    value = np.asarray(rule(r, t), dtype=np.float64)
    divergence = np.broadcast_to(rule.derivative(r, t), (norms.size, thresholds.size))
    return np.square((r - value) / sigma), divergence


def _takes_arrays(rule: Rule) -> bool:
    return isinstance(rule.rule if isinstance(rule, Radial) else rule, Odd)
