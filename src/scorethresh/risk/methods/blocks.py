"""SCORE for rules on the norms of blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._normal import phi
from ..._validate import Array
from ...rules import Odd, Radial, Rule, complete, jumps_of
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve, finite_part, or_infinity
from ..kernel import paper_bandwidth
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
    jumps = jumps_of(rule, tried) if tried.size else []
    with np.errstate(over="ignore", invalid="ignore"):
        for part in threshold_chunks(tried.size, sample.nodes.size, rule):
            loss, dof = smooth_terms(sample.nodes, tried[part], rule, sigma)
            for positions, heights in jumps:
                distance = np.clip((sample.nodes[:, None] - positions[part]) / bandwidth, -50, 50)
                dof = dof + heights[part] / bandwidth * phi(distance)
            risk = loss - d + 2 * dof
            sums[:, part] = [sample.weights @ dof, sample.weights @ risk, sample.weights @ risk**2]
        killed = np.square(sample.nodes / sigma) - d
        sums[1:, tried.size :] = np.array([sample.weights @ killed, sample.weights @ killed**2])[:, None]
        dof, risk, square = or_infinity(sums)
        stderr = standard_error(risk, square, sample.size)
        return RiskCurve(thresholds, risk * sigma**2, dof, stderr * sigma**2, d * sample.size, sigma)


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
