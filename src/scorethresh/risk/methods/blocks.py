"""SCORE for rules on the norms of blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._validate import Array
from ...rules import PiecewiseLinear, Radial, Rule, complete, jumps_of
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve, finite_part
from ..kernel import paper_bandwidth
from .base import BlockMethod

# The widest boxcar, in units of sigma. It trades bias at few blocks against variance.
MAX_BANDWIDTH = 0.5


@dataclass(frozen=True)
class BlockScore(BlockMethod):
    """SCORE for a rule on the norms of blocks, with a boxcar kernel for the density of the norms at the jump.

    See Also
    --------
    Score : SCORE for rules on entries.

    Notes
    -----
    For n blocks of d entries with norms r, and the radial rule g, the degrees of freedom are estimated by ::

        sum_i [g'(r_i) + (d - 1) g(r_i) / r_i] + height * #{position - h <= r_i < position + h} / (2 h)

    with one such last term per jump, ``h = min(6 sigma n^(-1/3), sigma / 2)``, and the risk by
    ``sum_i (r_i - g(r_i))^2 - n d sigma^2 + 2 sigma^2 DOF``. For hard thresholding of blocks this is
    ``d #{r_i >= t} + t * density(t)``. A rule on entries is the case d = 1.

    `stderr` is ``sigma^2 sqrt(2 n d)`` at every threshold: the standard deviation of the squared norm of the noise.
    It does not cover the noise of the kernel.

    The sample is that of the norms and must be exact: a boxcar has edges inside the cells of a compressed one.

    Examples
    --------
    >>> from scorethresh import Hard
    >>> norms = Magnitudes.exact([0.5, 1.0, 7.0])
    >>> BlockScore().curve(norms, np.array([3.0, np.inf]), sigma=1.0, rule=Radial(Hard(), 2)).risk
    array([-0.75, 44.25])
    """

    def resolution(self, size: int, sigma: float) -> float:
        """Return the half-width h of the boxcar for that many blocks."""
        return min(paper_bandwidth(size, sigma), MAX_BANDWIDTH * sigma)

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds, from a sample of norms."""
        rule = complete(rule)
        if sample.cells is not None:
            msg = "BlockScore needs an exact sample, got a compressed one. Pass Magnitudes.exact(norms)."
            raise ValueError(msg)
        entries = rule.block_size * sample.size
        tried = finite_part(thresholds)
        residual, dof = np.zeros((2, thresholds.size))
        with np.errstate(over="ignore"):  # the square of a norm may be infinite
            residual[tried.size :] = np.sum(sample.weights * np.square(sample.nodes))
            if tried.size:
                residual[: tried.size], dof[: tried.size] = _smooth_sums(sample, tried, rule)
                dof[: tried.size] += _jump_sum(sample, tried, rule, self.resolution(sample.size, sigma))
            risk = residual + sigma**2 * (2 * dof - entries)
        stderr = np.full(thresholds.size, sigma**2 * math.sqrt(2 * entries))
        return RiskCurve(thresholds, risk, dof, stderr, sample.size, sigma)


def _jump_sum(sample: Magnitudes, thresholds: Array, rule: Rule, h: float) -> Array:
    """Return the heights of the jumps times the boxcar estimates of the density of the norms there."""
    below = _cumulative(sample.weights)
    total = np.zeros(thresholds.size)
    for positions, heights in jumps_of(rule.rule if isinstance(rule, Radial) else rule, thresholds):
        first, last = (np.searchsorted(sample.nodes, positions + shift) for shift in (-h, h))
        total += heights * (below[last] - below[first]) / (2 * h)
    return total


def _smooth_sums(sample: Magnitudes, thresholds: Array, rule: Rule) -> tuple[Array, Array]:
    """Return, per threshold, the sums over the blocks of ``(r - g)^2`` and of the divergence off the jumps."""
    if isinstance(rule, Radial) and isinstance(rule.rule, PiecewiseLinear):
        return _straight_sums(sample, thresholds, rule.rule, rule.size)
    residual, dof = np.empty((2, thresholds.size))
    for k, t in enumerate(thresholds):
        residual[k] = sample.weights @ np.square(sample.nodes - rule(sample.nodes, t))
        dof[k] = sample.weights @ np.broadcast_to(rule.derivative(sample.nodes, t), sample.nodes.shape)
    return residual, dof


def _straight_sums(sample: Magnitudes, thresholds: Array, rule: PiecewiseLinear, size: int) -> tuple[Array, Array]:
    """Return what `_smooth_sums` does, for straight pieces ``g = a + b r``, from cumulative sums of powers of r.

    There ``(r - g)^2 = a^2 - 2 a (1 - b) r + (1 - b)^2 r^2`` and the divergence is ``d b + (d - 1) a / r``.
    """
    r = sample.nodes
    starts, a, b = (
        np.stack([np.broadcast_to(value, thresholds.shape) for value in values])
        for values in zip(*rule.pieces(thresholds), strict=True)
    )
    # A block at a start belongs to the piece above, which keeps ties.
    cuts = np.vstack([np.searchsorted(r, starts), np.full(thresholds.size, r.size)])
    cuts[0] = 0

    def total(factors: Array, power: Callable[[], Array]) -> Array:
        if not factors.any():
            return np.zeros(thresholds.size)
        within = np.diff(_cumulative(sample.weights * power())[cuts], axis=0)
        # Where the factor is 0 the sum may be infinite, or the difference of two infinities.
        sums: Array = np.multiply(factors, within, out=np.zeros(within.shape), where=factors != 0).sum(axis=0)
        return sums

    with np.errstate(over="ignore", invalid="ignore"):
        residual = (
            total(a**2, lambda: np.ones(r.size))
            + total(-2 * a * (1 - b), lambda: r)
            + total((1 - b) ** 2, lambda: np.square(r))
        )
        # A block of norm 0 has no direction: its ratio g / r is left out.
        ratio = total((size - 1) * a, lambda: np.divide(1, r, out=np.zeros(r.size), where=r > 0))
        dof = total(size * b, lambda: np.ones(r.size)) + ratio
    return residual, dof


def _cumulative(values: Array) -> Array:
    """Return the sums of the first 0, 1, 2, ... values."""
    sums = np.zeros(values.size + 1)
    np.cumsum(values, out=sums[1:])
    return sums
