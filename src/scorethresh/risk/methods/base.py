"""The contracts of a method, which estimates a risk, and of a selector, which picks a threshold without one."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from ..._validate import Array
from ...rules import Rule
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve

__all__ = ["BlockMethod", "Method", "Selector", "missing_members"]

# Required members, with what the error says about each.
METHOD_MEMBERS = {
    "resolution": "resolution(size, sigma) returns the narrowest bandwidth that the method will use",
    "curve": "curve(sample, thresholds, *, sigma, rule) returns the RiskCurve",
}
SELECTOR_MEMBERS = {"pick": "pick(y, *, sigma, rule) returns the threshold"}


class Method(abc.ABC):
    """A way to estimate the risk of a rule from a sample.

    A method is a subclass, or any object that has the two members. It never sees y, only the distribution of the
    magnitudes.

    See Also
    --------
    Selector : A way to pick a threshold without estimating a risk.

    Examples
    --------
    Stein's formula without the jump, for comparison:

    >>> import numpy as np, scorethresh as st
    >>> class Naive:
    ...     def resolution(self, size, sigma):
    ...         return sigma
    ...     def curve(self, sample, thresholds, *, sigma, rule):
    ...         dof = np.array([sample.weights @ rule.derivative(sample.nodes, t) for t in thresholds])
    ...         loss = np.array([sample.weights @ (sample.nodes - rule(sample.nodes, t)) ** 2 for t in thresholds])
    ...         risk = loss + sigma**2 * (2 * dof - sample.size)
    ...         return st.RiskCurve(thresholds, risk, dof, np.zeros(dof.size), sample.size, sigma)
    >>> isinstance(Naive(), Method)
    True
    >>> st.risk_curve([0.3, -0.5, 4.0], [1.0], sigma=1.0, method=Naive()).dof
    array([1.])
    """

    @abc.abstractmethod
    def resolution(self, size: int, sigma: float) -> float:
        """Return the bandwidth of the narrowest kernel that the method will lay over the sample."""

    @abc.abstractmethod
    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""

    def choose(self, sample: Magnitudes, curve: RiskCurve, *, rule: Rule) -> int:
        """Return the index of the threshold to take: of least risk, unless a method says otherwise."""
        return int(np.argmin(curve.risk))

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return not missing_members(other, METHOD_MEMBERS) if cls is Method else NotImplemented


class BlockMethod(Method):
    """A method that also treats rules on the norms of blocks; the sample is that of the norms."""


class Selector(abc.ABC):
    """A way to pick a threshold without estimating a risk.

    A selector is a subclass, or any object that has the member `pick`.

    See Also
    --------
    Method : A way to estimate the risk of a rule.

    Examples
    --------
    >>> class ThreeSigma:
    ...     def pick(self, y, *, sigma, rule):
    ...         return 3 * sigma
    >>> isinstance(ThreeSigma(), Selector)
    True
    """

    @abc.abstractmethod
    def pick(self, y: Any, *, sigma: float, rule: Rule) -> float:
        """Return the threshold for the data, or for a sample of magnitudes if it suffices."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return not missing_members(other, SELECTOR_MEMBERS) if cls is Selector else NotImplemented


def missing_members(thing: object, required: dict[str, str]) -> list[str]:
    """Return the names of the required members that `thing` lacks."""
    return [name for name in required if not callable(getattr(thing, name, None))]
