"""The contract of a rule: the members it must have, those it may have, and the check on first use."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._validate import Array

__all__ = ["Odd", "Rule", "complete", "entry_rule", "jumps_of", "kinks_of"]

_JUMPS = "the (position, height) of each jump at positive y, or an empty list"
# Required members, with what the error says about each.
REQUIRED = {
    "__call__": "__call__(y, threshold) returns the thresholded y",
    "derivative": "derivative(y, threshold) returns the derivative at y, away from the jumps",
    "jumps": f"jumps(threshold) returns {_JUMPS}",
}


class Rule(abc.ABC):
    """A thresholding rule: an odd function x(y, threshold), its derivative and its jumps.

    A rule is a subclass, or any object that has the three required members. An object that is not a subclass gets
    the defaults for the optional members that it lacks.

    Attributes
    ----------
    polynomial_width : float
        Optional. The widest interval, as a fraction of the magnitude, on which the rule is a polynomial of degree 11
        to machine precision. It holds for intervals above the threshold that contain no kink. Compressed samples
        use it. The default is 0.1; rules that are straight between their kinks have infinity.
    block_size : int
        Optional. How many entries one decision is about: 1 (the default) for a rule on entries; more for a rule on
        the norms of blocks.

    See Also
    --------
    PiecewiseLinear : Base class of rules made of straight pieces; their risk curves are the fastest.

    Notes
    -----
    Required: ``__call__``, ``derivative`` and ``jumps``. Optional: ``kinks``, ``polynomial_width``, ``block_size``.
    All methods take every rule through these members: the degrees of freedom are the sum of the derivatives plus, per
    jump, its height times the density of the entries at its position.

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

    polynomial_width: ClassVar[float] = 0.1
    block_size: ClassVar[int] = 1

    @abc.abstractmethod
    def __call__(self, y: Any, threshold: Any) -> Any:
        """Return the thresholded `y`."""

    @abc.abstractmethod
    def derivative(self, y: Any, threshold: Any) -> Any:
        """Return the derivative at `y`, away from the jumps."""

    @abc.abstractmethod
    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return (position, height) of each jump on the positive side."""

    def kinks(self, threshold: Any) -> Sequence[Any]:
        """Return the magnitudes at which the rule is not smooth; the positions of jumps may be left out.

        Optional. The default is the threshold.
        """
        return (threshold,)

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        if cls is not Rule:
            return NotImplemented
        # A class has a __call__ of its own, that of its metaclass, which getattr would find.
        return all(any(name in base.__dict__ for base in other.__mro__) for name in REQUIRED)


@dataclass(frozen=True, repr=False)
class CompletedRule(Rule):
    """A user's rule that is no subclass of `Rule`, with the defaults for the optional members that it lacks.

    Other attributes are those of the user's rule.
    """

    original: Any

    def __call__(self, y: Any, threshold: Any) -> Any:
        """Return the thresholded `y`."""
        return self._checked("__call__", self.original(y, threshold), y, threshold)

    def derivative(self, y: Any, threshold: Any) -> Any:
        """Return the derivative at `y`, away from the jumps."""
        return self._checked("derivative", self.original.derivative(y, threshold), y, threshold)

    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return (position, height) of each jump on the positive side."""
        found: Any = self.original.jumps(threshold)
        try:
            jumps = [(float(position), float(height)) for position, height in found]
        except (TypeError, ValueError):
            jumps = [(np.nan, np.nan)]
        if np.isnan(jumps).any():
            msg = f"jumps of the rule {self!r} gave {found!r} at the threshold {threshold}. Return {_JUMPS}."
            raise ValueError(msg)
        return jumps

    def kinks(self, threshold: Any) -> Sequence[Any]:
        """Return the magnitudes at which the rule is not smooth."""
        own = getattr(self.original, "kinks", super().kinks)
        found: Sequence[Any] = own(threshold)
        return found

    @property
    def polynomial_width(self) -> float:  # type: ignore[override]
        """That of the user's rule; `grain` is its former name."""
        former = getattr(self.original, "grain", Rule.polynomial_width)
        return float(getattr(self.original, "polynomial_width", former))

    @property
    def block_size(self) -> int:  # type: ignore[override]
        """That of the user's rule."""
        return int(getattr(self.original, "block_size", Rule.block_size))

    def _checked(self, member: str, found: Any, y: Any, threshold: Any) -> Any:
        """Return what a member of the user's rule gave, if it is one number per entry of y or one for all."""
        shape, kind = np.broadcast_shapes(np.shape(y), np.shape(threshold)), np.asarray(found).dtype.kind
        if kind not in "biuf":
            got = f"{type(found).__name__} {found!r}" if found is not None else "None"
        elif np.shape(found) not in (shape, ()):
            got = f"an array of shape {np.shape(found)}"
        elif np.isnan(found).any():
            got = f"{int(np.isnan(found).sum())} NaN"
        else:
            return found
        msg = (
            f"{member} of the rule {self!r} gave {got} for y of shape {np.shape(y)} and the threshold {threshold}. "
            "Return one real number per entry of y."
        )
        raise ValueError(msg)

    def __getattr__(self, name: str) -> Any:
        if name == "original" or name.startswith("__"):  # absent while an object is unpickled
            raise AttributeError(name)
        return getattr(self.original, name)

    def __repr__(self) -> str:
        return repr(self.original)


def complete(rule: Any) -> Rule:
    """Return a rule that has all members: `rule` itself, or with the defaults for what it lacks.

    Raises
    ------
    TypeError
        If `rule` is a class, or lacks a required member; the error names the member.
    """
    if isinstance(rule, Rule) and Rule in type(rule).__mro__:
        return rule
    missing = [name for name in REQUIRED if not callable(getattr(rule, name, None))]
    if isinstance(rule, type) or len(missing) == len(REQUIRED):
        made = f" Make an object of it: {rule.__name__}()." if isinstance(rule, type) else ""
        msg = f"rule must be a name or an object with __call__, derivative and jumps, got {rule!r}.{made}"
        raise TypeError(msg)
    if missing:
        members = ", ".join(f"`{name}`" for name in missing)
        told = "; ".join(REQUIRED[name] for name in missing)
        msg = f"rule {rule!r} lacks {members}: {told}. See the section on rules in CONTRIBUTING.md."
        raise TypeError(msg)
    return CompletedRule(rule)


def original(rule: Rule) -> Any:
    """Return the object that the user passed."""
    return rule.original if isinstance(rule, CompletedRule) else rule


def entry_rule(rule: Any, method: object) -> Rule:
    """Return the rule with all members; refuse a rule on blocks, which `method` does not treat."""
    checked = complete(rule)
    if checked.block_size > 1:
        msg = (
            f"{method!r} treats entries one by one, got the rule {rule!r} on blocks of {checked.block_size} entries. "
            "Use BlockMixture() or BlockScore()."
        )
        raise ValueError(msg)
    return checked


class Odd(Rule):
    """Base class of rules that takes care of signs, dtypes and errors; all members accept arrays of thresholds.

    A subclass states `value` and `slope` for magnitudes, and its `jumps` if it has any.
    """

    def __call__(self, y: Any, threshold: Any) -> NDArray[Any]:
        """Return the thresholded `y`: float32 for float32, float64 for integers."""
        y, threshold = _checked(y, threshold)
        out = np.copysign(self.value(np.abs(y), threshold), y) + 0.0  # + 0.0 turns -0.0 into 0.0
        return np.asarray(out).astype(y.dtype, copy=False)[()]

    def derivative(self, y: Any, threshold: Any) -> NDArray[Any]:
        """Return the derivative at `y`; at a jump or a kink, the derivative just below it.

        At threshold 0 the kinks lie at 0, and the derivative at 0 is the one just above.
        """
        y, threshold = _checked(y, threshold)
        return np.asarray(self.slope(np.abs(y), threshold)).astype(y.dtype, copy=False)[()]

    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return (position, height) of each jump on the positive side: none."""
        return ()

    @abc.abstractmethod
    def value(self, magnitude: NDArray[Any], threshold: Any) -> NDArray[Any]:
        """Return the rule at non-negative magnitudes."""

    @abc.abstractmethod
    def slope(self, magnitude: NDArray[Any], threshold: Any) -> NDArray[Any]:
        """Return the derivative at non-negative magnitudes."""


def _checked(y: Any, threshold: Any) -> tuple[NDArray[Any], Any]:
    y = _validate.real_array(y)
    if y.dtype.kind != "f":
        y = y.astype(np.float64)
    if np.isnan(y).any():
        _validate.finite(y)
    # The threshold stays float64: rounded to float32 it could pass an entry.
    return y, _validate.threshold(threshold)


def jumps_of(rule: Rule, thresholds: Array) -> list[tuple[Array, Array]]:
    """Return (positions, heights) of each of the rule's jumps, one value per threshold."""
    if isinstance(rule, Odd):
        found = [np.broadcast_arrays(p, h, thresholds)[:2] for p, h in rule.jumps(thresholds)]
        return [(np.array(p, dtype=np.float64), np.array(h, dtype=np.float64)) for p, h in found]
    rows = [list(rule.jumps(float(t))) for t in thresholds]
    most = max(map(len, rows), default=0)
    # A rule may have fewer jumps at some thresholds: fill up with jumps of height 0.
    table = np.array([row + [(t, 0.0)] * (most - len(row)) for row, t in zip(rows, thresholds, strict=True)])
    return [(table[:, j, 0].copy(), table[:, j, 1].copy()) for j in range(most)]


def kinks_of(rule: Rule, thresholds: Array) -> Array:
    """Return all magnitudes at which the rule is not smooth for one of the thresholds, sorted."""
    parts: list[Any] = [thresholds]
    parts += rule.kinks(thresholds) if isinstance(rule, Odd) else [rule.kinks(float(t)) for t in thresholds]
    parts += [positions for positions, _ in jumps_of(rule, thresholds)]
    return np.unique(np.concatenate([np.ravel(np.asarray(p, dtype=np.float64)) for p in parts]))
