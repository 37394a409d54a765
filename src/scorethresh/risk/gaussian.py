"""Expectations of a rule under a Gaussian: the exact risk of given means, by closed forms or quadrature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .._kernels import NODES, TO_WEIGHTS
from .._normal import phi
from .._validate import Array
from ..rules import PiecewiseLinear, Rule, jumps_of
from ..sample.magnitudes import Magnitudes
from .curve import finite_part, or_infinity

# Smooth rules are integrated by this many Gauss-Legendre points on each panel of two standard deviations. More points
# cost time in proportion.
_PANELS = np.arange(-10.0, 10.1, 2.0)
_POINTS = 24
# Means and thresholds are cut off at this many standard deviations, so that their differences are finite.
_HUGE = 1e300
# Bounds the memory of one block of (threshold, mean) pairs: some ten arrays of 8 MB.
_PAIRS_AT_ONCE = 1_000_000


class Expectations(NamedTuple):
    """Means over Y ~ N(mean, sd^2), per threshold (rows) and mean (columns)."""

    residual: Array  # E (Y - x(Y))^2
    error: Array  # E (x(Y) - mean)^2
    dof: Array  # cov(Y, x(Y)) / sd^2, jumps included


def expectations(rule: Rule, thresholds: Array, means: Array, sd: float) -> Expectations:
    """Return the expectations for finite thresholds and non-negative means; infinity where squares overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.minimum(means / sd, _HUGE)
        if isinstance(rule, PiecewiseLinear):
            residual, error, dof = _straight(rule, np.minimum(thresholds[:, None] / sd, _HUGE), x[None, :], sd)
        else:
            rows = [_smooth(rule, float(t), x, sd) for t in thresholds]
            residual, error, dof = (np.array(part) for part in zip(*rows, strict=True))
        for positions, heights in jumps_of(rule, thresholds):
            a, height = np.minimum(positions[:, None] / sd, _HUGE), heights[:, None] / sd
            density = phi(x - a) + phi(x + a)
            dof += np.where(density > 0, height * density, 0.0)
        found = residual * sd**2, error * sd**2, dof
    return Expectations(*map(or_infinity, found))


def _straight(rule: PiecewiseLinear, t: Array, x: Array, sd: float) -> tuple[Array, Array, Array]:
    """Return the three expectations, in units of sd, from the moments of truncated normals.

    On a piece, with U = Y - x, the error is ``c + b U`` and the residual ``-c + (1 - b) U``. The rule is odd: its
    pieces for negative Y are those for positive Y with the sign of the mean turned.
    """
    from scipy.special import ndtr

    pieces = [(piece.start / sd, piece.intercept / sd, piece.slope) for piece in rule.pieces(t * sd)]
    ends = [start for start, _, _ in pieces[1:]] + [np.inf]
    residual, error, dof = np.zeros((3, *np.broadcast_shapes(t.shape, x.shape)))
    for (start, a, b), end in zip(pieces, ends, strict=True):
        for mean in (x, -x):
            low, high = start - mean, end - mean
            # Tails of the interval's own side of 0, so that a small difference keeps its digits.
            mass = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
            at_low, at_high = phi(low), phi(high)
            first = at_low - at_high
            second = mass + low * at_low - np.where(np.isfinite(high), high, 0.0) * at_high
            c = a + (b - 1) * mean
            squared = c * (c * mass)  # in this order: where the mass is 0, c may be too large for its square
            residual += squared - 2 * c * (1 - b) * first + (1 - b) ** 2 * second
            error += squared + 2 * c * b * first + b * b * second
            dof += b * mass
    return residual, error, dof


def _smooth(rule: Rule, threshold: float, x: Array, sd: float) -> tuple[Array, Array, Array]:
    """Return what `_straight` does, for one threshold, by Gauss-Legendre quadrature between the kinks of the rule."""
    kinks = np.ravel(rule.kinks(threshold)) / sd
    kinks = np.minimum(np.concatenate([kinks, *([p / sd] for p, _ in rule.jumps(threshold))]), _HUGE)
    marks = np.concatenate([kinks, -kinks])[:, None] - x[None, :]
    panels = np.broadcast_to(_PANELS[:, None], (_PANELS.size, x.size))
    marks = np.sort(np.concatenate([panels, marks.clip(-10, 10)]), axis=0)
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    middle, half = (marks[1:] + marks[:-1]) / 2, (marks[1:] - marks[:-1]) / 2
    u = middle[..., None] + half[..., None] * points
    mass = half[..., None] * weights * phi(u)
    y = ((x[:, None] + u) * sd).clip(-_HUGE, _HUGE)
    value = np.asarray(rule(y, threshold)) / sd

    def mean(values: Array) -> Array:
        total: Array = (mass * values).sum(axis=(0, 2))
        return total

    return mean((y / sd - value) ** 2), mean((value - x[:, None]) ** 2), mean(rule.derivative(y, threshold))


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices over the rows of a matrix, each of at most a million entries."""
    step = max(1, _PAIRS_AT_ONCE // max(columns, 1))
    for k in range(0, rows, step):
        yield slice(k, min(k + step, rows))


def risk_at(rule: Rule, thresholds: Array, means: Array, weights: Array, sigma: float) -> tuple[Array, Array]:
    """Return the exact risk and degrees of freedom of weighted means; the last threshold may be infinite."""
    tried = finite_part(thresholds)
    risk, dof = np.zeros((2, thresholds.size))
    with np.errstate(over="ignore", invalid="ignore"):
        for part in row_blocks(tried.size, means.size):
            found = expectations(rule, tried[part], means, sigma)
            risk[part], dof[part] = found.error @ weights, found.dof @ weights
        risk[tried.size :] = weights @ means**2
    return or_infinity(risk), or_infinity(dof)


def smooth_nodes(sample: Magnitudes, width: float) -> tuple[Array, Array]:
    """Return fewer nodes and weights that serve functions which are smooth on cells of that width.

    Nodes are replaced only in cells that hold more than 12 of them. Sums up to a threshold are not kept.
    """
    with np.errstate(over="ignore"):
        place = sample.nodes / width
    cell = np.floor(place)
    cells, where, counts = np.unique(cell, return_inverse=True, return_counts=True)
    crowded = (counts > NODES.size) & np.isfinite(cells)
    if not crowded.any():
        return sample.nodes, sample.weights
    inside = crowded[where]
    slot = (np.cumsum(crowded) - 1)[where[inside]]
    t = 2 * (place[inside] - cell[inside]) - 1
    before, this = np.ones_like(t), t
    moments = np.empty((NODES.size, int(crowded.sum())))
    for q in range(NODES.size):
        moments[q] = np.bincount(slot, before * sample.weights[inside], minlength=moments.shape[1])
        before, this = this, 2 * t * this - before
    nodes = (cells[crowded, None] + (1 + NODES) / 2) * width
    return (
        np.concatenate([nodes.ravel(), sample.nodes[~inside]]),
        np.concatenate([(moments.T @ TO_WEIGHTS).ravel(), sample.weights[~inside]]),
    )
