"""The true risk, from the true means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _validate
from .._validate import Array
from ..cells import Cells
from ..curve import RiskCurve
from ..magnitudes import SMALL, Magnitudes, gather
from ..rules import PiecewiseLinear, Rule, Soft, jumps_of

# Panels of two sigma with this many Gauss-Legendre points integrate a smooth rule against the normal density.
_PANELS = np.arange(-10.0, 10.1, 2.0)
_POINTS = 24


@dataclass(frozen=True, eq=False)
class Oracle:
    """The exact risk ``E ||x(y) - x0||^2`` and degrees of freedom, for experiments in which the means are known.

    In closed form for rules of straight pieces, such as hard thresholding; by quadrature for others.

    Parameters
    ----------
    x0 : array_like
        The true means, as many as there are entries in y.

    Notes
    -----
    ``stderr`` is 0: nothing is estimated. With more than 4096 means these are compressed, which keeps every figure
    to rounding of the largest on the curve.

    Examples
    --------
    >>> import scorethresh as st
    >>> curve = st.risk_curve([0.3, 5.2], [2.0], sigma=1.0, method=Oracle([0.0, 5.0]))
    >>> curve.risk.round(4), curve.dof.round(4)
    (array([1.2806]), array([1.269]))
    """

    x0: Any
    _means: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        x0 = _validate.data(self.x0, "x0")
        _validate.finite(x0, "x0")
        object.__setattr__(self, "_means", x0)

    def resolution(self, size: int, sigma: float) -> float:
        """Return the noise level: nothing finer in the sample matters, for only its size is used."""
        return sigma

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the true risk of `rule` at the thresholds."""
        if self._means.size != sample.size:
            msg = f"x0 has {self._means.size} entries and y has {sample.size}. Pass one mean per entry."
            raise ValueError(msg)
        x, weights = self._nodes(sigma)
        risk, dof = np.zeros((2, thresholds.size))
        for k, t in enumerate(thresholds):
            if np.isinf(t):
                risk[k] = weights @ x**2
                continue
            if isinstance(rule, PiecewiseLinear):
                r, d = _straight(rule, t, x, sigma)
            else:
                r, d = _smooth(rule, t, x, sigma)
            for positions, heights in jumps_of(rule, np.array([t])):
                a, height = positions[0] / sigma, heights[0] / sigma
                d += height * (_phi(x - a) + _phi(x + a))
            risk[k], dof[k] = weights @ r, weights @ d
        return RiskCurve(thresholds, risk * sigma**2, dof, np.zeros(thresholds.size), sample.size, sigma)

    def _nodes(self, sigma: float) -> tuple[Array, Array]:
        """Return the means' magnitudes in units of sigma, and how much each counts."""
        means = self._means
        if means.size <= SMALL:
            x, counts = np.unique(np.abs(means.astype(np.float64)), return_counts=True)
            return x / sigma, counts.astype(np.float64)
        # The risk at a mean varies on the scale of sigma: cells of a kernel of half that, up to where it is flat.
        grid = np.arange(0.0, 41.0) * (sigma / 4)
        compressed = gather(means, Cells.make(grid, Soft(), sigma / 2))
        return compressed.nodes / sigma, compressed.weights


def _phi(u: Array) -> Array:
    density: Array = np.exp(-0.5 * u * u) / np.sqrt(2 * np.pi)
    return density


def _straight(rule: PiecewiseLinear, threshold: float, x: Array, sigma: float) -> tuple[Array, Array]:
    """Return E (rule(Y) - x)^2 and E rule'(Y) for Y ~ N(x, 1) and every x, from the moments of cut normals.

    On a piece, with U = Y - x, the error is ``c + b U``: the rule is odd, so the pieces of negative Y are those of
    positive Y with the sign of the mean turned.
    """
    from scipy.special import ndtr

    pieces = [(piece.start / sigma, piece.intercept / sigma, piece.slope) for piece in rule.pieces(threshold)]
    ends = [start for start, _, _ in pieces[1:]] + [np.inf]
    risk, dof = np.zeros_like(x), np.zeros_like(x)
    for (start, a, b), end in zip(pieces, ends, strict=True):
        if not end > start:
            continue
        for mean in (x, -x):
            low, high = start - mean, end - mean
            # The mass of the interval from its own side of 0, so that no small difference is lost.
            mass = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
            at_low, at_high = _phi(low), _phi(high)
            first = at_low - at_high
            second = mass + low * at_low - (high * at_high if np.isfinite(end) else 0.0)
            c = a + (b - 1) * mean
            risk += c * c * mass + 2 * c * b * first + b * b * second
            dof += b * mass
    return risk, dof


def _smooth(rule: Rule, threshold: float, x: Array, sigma: float) -> tuple[Array, Array]:
    """Return what `_straight` does, by Gauss-Legendre quadrature between the kinks of the rule."""
    kinks = np.ravel(rule.kinks(threshold) if hasattr(rule, "kinks") else [threshold]) / sigma
    marks = np.concatenate([kinks, -kinks])[:, None] - x[None, :]
    marks = np.sort(np.concatenate([np.broadcast_to(_PANELS[:, None], (_PANELS.size, x.size)), marks.clip(-10, 10)]), 0)
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    middle, half = (marks[1:] + marks[:-1]) / 2, (marks[1:] - marks[:-1]) / 2
    u = middle[..., None] + half[..., None] * points
    mass = half[..., None] * weights * _phi(u)
    y = (x[:, None] + u) * sigma
    error = np.asarray(rule(y, threshold)) / sigma - x[:, None]
    risk, slope = (mass * error**2).sum(axis=(0, 2)), (mass * rule.derivative(y, threshold)).sum(axis=(0, 2))
    return risk, slope
