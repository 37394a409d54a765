"""Methods: ways to estimate the risk of a rule from a sample."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from ... import _validate
from ..._validate import Array
from ...rules import Rule
from ...sample.magnitudes import Magnitudes
from ..curve import RiskCurve
from ..npmle import Means
from .bootstrap import CoupledBootstrap, LittleBootstrap
from .jansen import Jansen
from .mixture import Mixture
from .oracle import Oracle
from .score import Score
from .selectors import CrossValidation, Fdr, Selector, Universal
from .sure import Sure

__all__ = [
    "CoupledBootstrap",
    "CrossValidation",
    "Fdr",
    "Jansen",
    "LittleBootstrap",
    "Means",
    "Method",
    "Mixture",
    "Oracle",
    "Score",
    "Selector",
    "Sure",
    "Universal",
    "as_method",
]


@runtime_checkable
class Method(Protocol):
    """What a method must offer. It never sees y, only the distribution of its magnitudes."""

    def resolution(self, size: int, sigma: float) -> float:
        """Return the bandwidth of the narrowest kernel that the method will lay over the sample."""

    def curve(self, sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule) -> RiskCurve:
        """Return the estimated risk of `rule` at the thresholds."""


METHODS: dict[str, type[Any]] = {
    "score": Score,
    "sure": Sure,
    "jansen": Jansen,
    "bootstrap": CoupledBootstrap,
    "little": LittleBootstrap,
    "mixture": Mixture,
    "universal": Universal,
    "fdr": Fdr,
    "cv": CrossValidation,
}


def as_method(method: str | Method | Selector) -> Method | Selector:
    """Return the method of that name with its defaults, or `method` itself."""
    if isinstance(method, str):
        made: Method | Selector = _validate.choice("method", method, METHODS)()
        return made
    if isinstance(method, type) or not isinstance(method, Method | Selector):
        msg = f"method must be a name or an object such as Score(), got {method!r}."
        raise TypeError(msg)
    return method
