"""Thresholding rules: the value, the derivative away from the jumps, and the jumps.

Every rule is odd, so corners and jumps are listed for positive y only. A rule is any object with the three
methods of `Rule`; all methods of the library work with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._validate import Array

__all__ = ["Bridge", "Firm", "Garrote", "Hard", "Piece", "PiecewiseLinear", "Rule", "Scad", "Soft"]


@runtime_checkable
class Rule(Protocol):
    """What a rule must offer; two more attributes are read where a rule has them.

    ``kinks(threshold)`` lists the magnitudes at which the rule is not smooth. Without it these are taken to be
    the threshold and the jumps. ``grain`` is the width, as a fraction of the magnitude, of the widest interval
    above the threshold and off the kinks on which the rule is a polynomial of degree 11 to machine precision.
    Without it 0.1 is taken. Both matter for compressed samples, the kinks for the oracle too.

    Examples
    --------
    Hard thresholding followed by a ridge penalty:

    >>> class HardRidge:
    ...     def __call__(self, y, threshold):
    ...         return np.where(np.abs(y) >= threshold, y / 1.1, 0.0)
    ...     def derivative(self, y, threshold):
    ...         return np.where(np.abs(y) > threshold, 1 / 1.1, 0.0)
    ...     def jumps(self, threshold):
    ...         return [(threshold, threshold / 1.1)]
    >>> isinstance(HardRidge(), Rule)
    True
    """

    def __call__(self, y: Any, threshold: Any) -> Any:
        """Return the thresholded `y`."""

    def derivative(self, y: Any, threshold: Any) -> Any:
        """Return the derivative at `y`, away from the jumps."""

    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return (position, height) of each jump on the positive side."""


class Piece(NamedTuple):
    """The rule equals ``intercept + slope * |y|`` from ``|y| = start`` on, up to the next piece."""

    start: Any
    intercept: Any
    slope: Any


class _Odd:
    """The half of a rule that is the same for all: signs, dtypes and the errors for bad input."""

    grain = 0.1

    def __call__(self, y: Any, threshold: Any) -> NDArray[Any]:
        """Return the thresholded `y`, float32 for float32 and float64 for integers."""
        y, threshold = _checked(y, threshold)
        out = np.copysign(self._value(np.abs(y), threshold), y) + 0.0  # + 0.0 turns -0.0 into 0.0
        return np.asarray(out).astype(y.dtype, copy=False)[()]

    def derivative(self, y: Any, threshold: Any) -> NDArray[Any]:
        """Return the derivative at `y`; at a jump or a corner, that of the piece nearer to 0.

        At threshold 0, where every rule is the identity, it is 1 also at 0.
        """
        y, threshold = _checked(y, threshold)
        return np.asarray(self._slope(np.abs(y), threshold)).astype(y.dtype, copy=False)[()]

    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return (position, height) of each jump on the positive side: none."""
        return ()

    def kinks(self, threshold: Any) -> Sequence[Any]:
        """Return the magnitudes at which the rule is not smooth."""
        return (threshold,)

    def _value(self, a: NDArray[Any], threshold: Any) -> NDArray[Any]:
        raise NotImplementedError

    def _slope(self, a: NDArray[Any], threshold: Any) -> NDArray[Any]:
        raise NotImplementedError


def _checked(y: Any, threshold: Any) -> tuple[NDArray[Any], Any]:
    y = _validate.real_array(y)
    if y.dtype.kind != "f":
        y = y.astype(np.float64)
    if np.isnan(y).any():
        _validate.finite(y)
    # The threshold is a float64, so float32 entries are compared with the very one that was given.
    return y, _validate.threshold(threshold)


class PiecewiseLinear(_Odd):
    """A rule made of straight pieces: a subclass states them in `pieces`, and its jumps if it has any.

    Both are called with arrays of thresholds, so they should be plain arithmetic. Positions of jumps must grow with the
    threshold. Risk curves of such a rule cost one pass over the sorted sample for all thresholds together.

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

    grain = np.inf

    def pieces(self, threshold: Any) -> Sequence[Piece]:
        """Return the pieces in ascending order, the first starting at 0."""
        raise NotImplementedError

    def kinks(self, threshold: Any) -> Sequence[Any]:
        """Return where one piece gives way to the next."""
        return [piece.start for piece in self.pieces(threshold)[1:]]

    def _value(self, a: NDArray[Any], threshold: Any) -> NDArray[Any]:
        first, *others = self.pieces(threshold)
        out = first.intercept + first.slope * a
        for piece in others:
            out = np.where(a >= piece.start, piece.intercept + piece.slope * a, out)
        return np.asarray(out)

    def _slope(self, a: NDArray[Any], threshold: Any) -> NDArray[Any]:
        first, *others = self.pieces(threshold)
        out = np.full(np.broadcast_shapes(a.shape, np.shape(threshold)), first.slope, dtype=np.float64)
        for piece in others:
            out = np.where((a > piece.start) | (piece.start == 0), piece.slope, out)
        return out


_KILLED = Piece(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Hard(PiecewiseLinear):
    """Keep entries with ``|y| >= threshold`` and set the rest to zero; a tie is kept.

    >>> Hard()(np.array([1.0, 2.0, -3.0]), 2.0)
    array([ 0.,  2., -3.])
    >>> Hard().jumps(2.0)
    [(2.0, 2.0)]
    """

    def pieces(self, threshold: Any) -> Sequence[Piece]:
        """Return zero below the threshold and the identity above."""
        return _KILLED, Piece(threshold, 0.0, 1.0)

    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return the one jump, as high as the threshold."""
        return [(threshold, threshold)]


@dataclass(frozen=True)
class Soft(PiecewiseLinear):
    """Shrink every entry by the threshold: ``sign(y) max(|y| - threshold, 0)``.

    >>> Soft()(np.array([1.0, 2.0, -3.0]), 2.0)
    array([ 0.,  0., -1.])
    """

    def pieces(self, threshold: Any) -> Sequence[Piece]:
        """Return zero below the threshold and ``|y| - threshold`` above."""
        return _KILLED, Piece(threshold, -threshold, 1.0)


@dataclass(frozen=True)
class Firm(PiecewiseLinear):
    """Zero up to the threshold, the identity from ``ratio * threshold`` on, a straight line between.

    ``Firm(gamma)`` is the minimiser of the MCP penalty with parameter gamma.

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
        return _KILLED, Piece(threshold, -threshold * slope, slope), Piece(self.ratio * threshold, 0.0, 1.0)


@dataclass(frozen=True)
class Scad(PiecewiseLinear):
    """The minimiser of the SCAD penalty of Fan and Li: soft near the threshold, the identity beyond ``a * threshold``.

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
            _KILLED,
            Piece(threshold, -threshold, 1.0),
            Piece(2 * threshold, -threshold * (self.a / (self.a - 2)), slope),
            Piece(self.a * threshold, 0.0, 1.0),
        )


@dataclass(frozen=True)
class Garrote(_Odd):
    """Shrink large entries less: ``y - threshold^2 / y`` above the threshold, zero below.

    >>> Garrote()(np.array([1.0, 2.0, -4.0]), 2.0)
    array([ 0.,  0., -3.])
    """

    def _value(self, a: NDArray[Any], threshold: Any) -> NDArray[Any]:
        kept = (a >= threshold) & (a > 0)
        ratio = np.divide(threshold, a, out=np.zeros(kept.shape), where=kept)
        return np.where(kept, a * ((1 - ratio) * (1 + ratio)), 0.0)

    def _slope(self, a: NDArray[Any], threshold: Any) -> NDArray[Any]:
        kept = a > threshold
        ratio = np.divide(threshold, a, out=np.zeros(kept.shape), where=kept)
        return np.where(kept | (threshold == 0), 1 + ratio**2, 0.0)


@dataclass(frozen=True)
class Bridge(_Odd):
    """The minimiser of ``(x - y)^2 / 2 + c |x|^q`` with 0 < q < 1; half thresholding is ``q = 1/2``.

    ``threshold`` is where the rule jumps, from 0 to ``2 (1 - q) / (2 - q)`` times the threshold; it fixes c.

    >>> Bridge(0.5).jumps(3.0)
    [(3.0, 2.0)]
    >>> Bridge(0.5)(np.array([2.9, 3.0, -30.0]), 3.0).round(4)
    array([  0.    ,   2.    , -29.7407])
    """

    q: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < _validate.number(self.q, "q") < 1:
            msg = f"q must lie strictly between 0 and 1, got {self.q}. For q = 0: Hard(); for q = 1: Soft()."
            raise ValueError(msg)

    @property
    def grain(self) -> float:  # type: ignore[override]
        """The branch point of the inverse of ``x + c q x^(q-1)`` lies below the threshold, ever closer as q nears 1."""
        x = (self.q / 2) ** (1 / (2 - self.q)) * self._rise
        branch = x + self._c * self.q * x ** (self.q - 1)
        return float(0.3 * (1 - branch))

    @property
    def _rise(self) -> float:
        """The height of the jump at threshold 1."""
        return 2 * (1 - self.q) / (2 - self.q)

    @property
    def _c(self) -> float:
        """The penalty's factor c at threshold 1."""
        return float(self._rise ** (2 - self.q) / (2 * (1 - self.q)))

    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return the one jump."""
        return [(threshold, self._rise * threshold)]

    def _solve(self, u: NDArray[Any]) -> NDArray[np.float64]:
        """Return the x >= `_rise` with ``x + c q x^(q-1) = u``, for u >= 1.

        The left side is convex and increasing there, so Newton's steps from x = u fall monotonically to the root.
        """
        b = self._c * self.q
        x = np.array(u, dtype=np.float64)
        for _ in range(60):
            slope = b * x ** (self.q - 2)
            step = (x + slope * x - u) / (1 - (1 - self.q) * slope)
            x -= step
            # Convergence is quadratic: the error that is left is the square of this step.
            if np.all(np.abs(step) <= 1e-9 * x):
                break
        return x

    def _value(self, a: NDArray[Any], threshold: Any) -> NDArray[Any]:
        return self._kept(a, threshold, a >= threshold, lambda x, t: t * x, a)

    def _slope(self, a: NDArray[Any], threshold: Any) -> NDArray[Any]:
        b = self._c * self.q * (1 - self.q)
        kept = (a > threshold) | (threshold == 0)
        return self._kept(a, threshold, kept, lambda x, t: 1 / (1 - b * x ** (self.q - 2)), 1.0)

    def _kept(self, a: NDArray[Any], threshold: Any, kept: NDArray[Any], what: Any, unshrunk: Any) -> NDArray[Any]:
        """Return ``what`` of the root where `kept`, 0 elsewhere; at threshold 0 nothing is shrunk."""
        a, t, kept, unshrunk = np.broadcast_arrays(a, threshold, kept, unshrunk)
        out = np.where(kept & (t == 0), unshrunk, 0.0)
        solve = kept & (t > 0)
        out[solve] = what(self._solve(a[solve] / t[solve]), t[solve])
        return np.asarray(out)


def jumps_of(rule: Rule, thresholds: Array) -> list[tuple[Array, Array]]:
    """Return (positions, heights) of each of the rule's jumps, one value per threshold."""
    if isinstance(rule, _Odd):
        found = [np.broadcast_arrays(p, h, thresholds)[:2] for p, h in rule.jumps(thresholds)]
        return [(np.array(p, dtype=np.float64), np.array(h, dtype=np.float64)) for p, h in found]
    rows = [list(rule.jumps(float(t))) for t in thresholds]
    most = max(map(len, rows), default=0)
    # Where a rule has fewer jumps than elsewhere, the others have no height.
    table = np.array([row + [(t, 0.0)] * (most - len(row)) for row, t in zip(rows, thresholds, strict=True)])
    return [(table[:, j, 0].copy(), table[:, j, 1].copy()) for j in range(most)]


def kinks_of(rule: Rule, thresholds: Array) -> Array:
    """Return all magnitudes at which the rule is not smooth for one of the thresholds, sorted."""
    parts: list[Any] = [thresholds]
    if isinstance(rule, _Odd):
        parts += rule.kinks(thresholds)
    elif hasattr(rule, "kinks"):
        parts += [rule.kinks(float(t)) for t in thresholds]
    parts += [positions for positions, _ in jumps_of(rule, thresholds)]
    return np.unique(np.concatenate([np.ravel(np.asarray(p, dtype=np.float64)) for p in parts]))


RULES: dict[str, type[Any]] = {
    "hard": Hard,
    "soft": Soft,
    "firm": Firm,
    "garrote": Garrote,
    "scad": Scad,
    "bridge": Bridge,
}


def as_rule(rule: str | Rule) -> Rule:
    """Return the rule of that name, or `rule` itself."""
    if isinstance(rule, str):
        made: Rule = _validate.choice("rule", rule, RULES)()
        return made
    if isinstance(rule, type) or not isinstance(rule, Rule):
        msg = f"rule must be a name or an object with __call__, derivative and jumps, got {rule!r}."
        raise TypeError(msg)
    return rule
