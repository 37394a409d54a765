"""Rules made of straight pieces: hard, soft, firm, SCAD, and the step between hard and soft."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .base import Odd

__all__ = ["Firm", "Hard", "Piece", "PiecewiseLinear", "Scad", "Soft", "Step"]


class Piece(NamedTuple):
    """A straight piece of a rule: ``intercept + slope * |y|`` from ``|y| = start`` up to the next piece.

    See Also
    --------
    PiecewiseLinear : A rule made of such pieces.
    """

    start: Any
    intercept: Any
    slope: Any


class PiecewiseLinear(Odd):
    """Base class of rules made of straight pieces.

    A subclass states its `pieces`, and its `jumps` if it has any. Both are called with arrays of thresholds, so they
    should be plain arithmetic. The positions of jumps must grow with the threshold.

    See Also
    --------
    Rule : What every rule must have.

    Notes
    -----
    A risk curve of such a rule takes one pass over the sorted sample, however many thresholds it has.

    Examples
    --------
    >>> class HardRidge(PiecewiseLinear):
    ...     def pieces(self, threshold):
    ...         return Piece(0.0, 0.0, 0.0), Piece(threshold, 0.0, 1 / 1.1)
    ...     def jumps(self, threshold):
    ...         return [(threshold, threshold / 1.1)]
    >>> HardRidge()(np.array([1.0, -2.2]), 2.0)
    array([ 0., -2.])
    """

    polynomial_width = np.inf

    @abc.abstractmethod
    def pieces(self, threshold: Any) -> Sequence[Piece]:
        """Return the pieces in ascending order; the first starts at 0."""

    def kinks(self, threshold: Any) -> Sequence[Any]:
        """Return the starts of all pieces but the first."""
        return [piece.start for piece in self.pieces(threshold)[1:]]

    def value(self, magnitude: NDArray[Any], threshold: Any) -> NDArray[Any]:
        """Return the rule at non-negative magnitudes; a magnitude at a start belongs to the piece above it."""
        first, *others = self.pieces(threshold)
        out = first.intercept + first.slope * magnitude
        for piece in others:
            out = np.where(magnitude >= piece.start, piece.intercept + piece.slope * magnitude, out)
        return np.asarray(out)

    def slope(self, magnitude: NDArray[Any], threshold: Any) -> NDArray[Any]:
        """Return the slope; a magnitude at a start above 0 belongs to the piece below it."""
        first, *others = self.pieces(threshold)
        out = np.full(np.broadcast_shapes(magnitude.shape, np.shape(threshold)), first.slope, dtype=np.float64)
        for piece in others:
            out = np.where((magnitude > piece.start) | (piece.start == 0), piece.slope, out)
        return out


_ZERO = Piece(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Hard(PiecewiseLinear):
    """Keep entries with ``|y| >= threshold`` and set the rest to zero.

    See Also
    --------
    Soft, Step : ``Hard = Soft + Step``.

    Notes
    -----
    ``HT(y) = y 1(|y| >= threshold)``. A tie is kept. The rule jumps by the threshold, so Stein's lemma does not apply
    to it; SCORE adds what the lemma leaves out [1]_. It minimises ``(x - y)^2 / 2 + (threshold^2 / 2) 1(x != 0)``.

    References
    ----------
    .. [1] C.-A. Deledalle, G. Peyré and J. Fadili, "Stein COnsistent Risk Estimator (SCORE) for hard thresholding",
       SPARS 2013, hal-00776303.

    Examples
    --------
    >>> Hard()(np.array([1.0, 2.0, -3.0]), 2.0)
    array([ 0.,  2., -3.])
    >>> Hard().jumps(2.0)
    [(2.0, 2.0)]
    """

    def pieces(self, threshold: Any) -> Sequence[Piece]:
        """Return zero below the threshold and the identity above."""
        return _ZERO, Piece(threshold, 0.0, 1.0)

    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return the one jump, as high as the threshold."""
        return [(threshold, threshold)]


@dataclass(frozen=True)
class Soft(PiecewiseLinear):
    """Shrink every entry by the threshold: ``sign(y) max(|y| - threshold, 0)``.

    See Also
    --------
    Hard, Firm, Garrote

    Notes
    -----
    The rule is continuous, and `Sure` is unbiased for it [1]_. It minimises ``(x - y)^2 / 2 + threshold |x|``.

    References
    ----------
    .. [1] D. L. Donoho and I. M. Johnstone, "Adapting to unknown smoothness via wavelet shrinkage", Journal of the
       American Statistical Association 90, 1995, doi:10.1080/01621459.1995.10476626.

    Examples
    --------
    >>> Soft()(np.array([1.0, 2.0, -3.0]), 2.0)
    array([ 0.,  0., -1.])
    """

    def pieces(self, threshold: Any) -> Sequence[Piece]:
        """Return zero below the threshold and ``|y| - threshold`` above."""
        return _ZERO, Piece(threshold, -threshold, 1.0)


@dataclass(frozen=True)
class Step(PiecewiseLinear):
    """The difference between hard and soft thresholding: 0 below the threshold, ``threshold * sign(y)`` from it on.

    See Also
    --------
    Hard, Soft

    Notes
    -----
    This is D of the decomposition ``HT = ST + D`` in [1]_, which isolates the jump of hard thresholding. The rule here
    is odd and keeps ties, like `Hard`, so the decomposition also holds at ``y = -threshold``. At threshold 0 the rule
    is 0 everywhere.

    References
    ----------
    .. [1] C.-A. Deledalle, G. Peyré and J. Fadili, "Stein COnsistent Risk Estimator (SCORE) for hard thresholding",
       SPARS 2013, hal-00776303.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, -3.0])
    >>> Step()(y, 2.0)
    array([ 0.,  2., -2.])
    >>> Soft()(y, 2.0) + Step()(y, 2.0) == Hard()(y, 2.0)
    array([ True,  True,  True])
    """

    def pieces(self, threshold: Any) -> Sequence[Piece]:
        """Return zero below the threshold and the threshold above."""
        return _ZERO, Piece(threshold, threshold, 0.0)

    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return the one jump, as high as the threshold."""
        return [(threshold, threshold)]


@dataclass(frozen=True)
class Firm(PiecewiseLinear):
    """Firm thresholding: 0 up to the threshold, the identity from ``ratio * threshold`` on, a straight line between.

    Parameters
    ----------
    ratio : float
        Where the identity begins, over the threshold; above 1.

    See Also
    --------
    Hard, Soft : The limits for a ratio of 1 and of infinity.

    Notes
    -----
    ``Firm(gamma)`` minimises ``(x - y)^2 / 2`` plus the MCP penalty with parameter gamma.

    References
    ----------
    H.-Y. Gao and A. G. Bruce, "WaveShrink with firm shrinkage", Statistica Sinica 7, 1997.
    C.-H. Zhang, "Nearly unbiased variable selection under minimax concave penalty", Annals of Statistics 38, 2010,
    doi:10.1214/09-AOS729.

    Examples
    --------
    >>> Firm(2.0)(np.array([1.0, 3.0, -5.0]), 2.0)
    array([ 0.,  2., -5.])
    """

    ratio: float = 2.0

    def __post_init__(self) -> None:
        if not 1 < _validate.number(self.ratio, "ratio") < np.inf:
            msg = f"ratio must be above 1 and finite, got {self.ratio}. For ratio 1: Hard(); for infinity: Soft()."
            raise ValueError(msg)

    def pieces(self, threshold: Any) -> Sequence[Piece]:
        """Return zero, the steep line and the identity."""
        slope = self.ratio / (self.ratio - 1)
        return _ZERO, Piece(threshold, -threshold * slope, slope), Piece(self.ratio * threshold, 0.0, 1.0)


@dataclass(frozen=True)
class Scad(PiecewiseLinear):
    """The rule of the SCAD penalty: soft up to twice the threshold, the identity beyond ``a * threshold``.

    Parameters
    ----------
    a : float
        Where the identity begins, over the threshold; above 2. Fan and Li suggest 3.7.

    See Also
    --------
    Firm : The rule of the MCP penalty, which also leaves large entries alone.

    References
    ----------
    J. Fan and R. Li, "Variable selection via nonconcave penalized likelihood and its oracle properties", Journal of
    the American Statistical Association 96, 2001, doi:10.1198/016214501753382273.

    Examples
    --------
    >>> Scad(3.0)(np.array([1.0, 3.0, 5.0, -7.0]), 2.0)
    array([ 0.,  1.,  4., -7.])
    """

    a: float = 3.7

    def __post_init__(self) -> None:
        if not 2 < _validate.number(self.a, "a") < np.inf:
            msg = f"a must be above 2 and finite, got {self.a}. Fan and Li suggest 3.7."
            raise ValueError(msg)

    def pieces(self, threshold: Any) -> Sequence[Piece]:
        """Return zero, soft thresholding, the steep line and the identity."""
        slope = (self.a - 1) / (self.a - 2)
        return (
            _ZERO,
            Piece(threshold, -threshold, 1.0),
            Piece(2 * threshold, -threshold * (self.a / (self.a - 2)), slope),
            Piece(self.a * threshold, 0.0, 1.0),
        )
