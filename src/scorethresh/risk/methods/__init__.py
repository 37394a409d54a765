"""Methods: ways to estimate the risk of a rule from a sample; and selectors, which do without a risk."""

from __future__ import annotations

from typing import Any

from ... import _validate
from ..npmle import Means
from .base import METHOD_MEMBERS, SELECTOR_MEMBERS, BlockMethod, Method, Selector, missing_members
from .blocks import BlockScore
from .bootstrap import CoupledBootstrap, LittleBootstrap
from .jansen import Jansen
from .mixture import Mixture
from .oracle import Oracle
from .score import Score
from .selectors import CrossValidation, Fdr, Universal
from .sure import Sure

__all__ = [
    "METHODS",
    "BlockMethod",
    "BlockScore",
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


def as_method(method: Any) -> Method | Selector:
    """Return the method of that name with its defaults, or `method` itself.

    Raises
    ------
    TypeError
        If `method` is a class, or lacks a required member; the error names the member.
    """
    if isinstance(method, str):
        made: Method | Selector = _validate.choice("method", method, METHODS)()
        return made
    if not isinstance(method, type) and isinstance(method, Method | Selector):
        return method
    missing = missing_members(method, METHOD_MEMBERS)
    if isinstance(method, type) or len(missing) == len(METHOD_MEMBERS):
        made_of = f" Make an object of it: {method.__name__}()." if isinstance(method, type) else ""
        msg = f"method must be a name or an object such as Score(), got {method!r}.{made_of}"
        raise TypeError(msg)
    [name] = missing
    told = f"{METHOD_MEMBERS[name]}. Or give it `pick` instead: {SELECTOR_MEMBERS['pick']}"
    msg = f"method {method!r} lacks `{name}`: {told}. See the section on methods in CONTRIBUTING.md."
    raise TypeError(msg)
