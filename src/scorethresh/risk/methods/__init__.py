"""Methods: ways to estimate the risk of a rule from a sample; and selectors, which do without a risk."""

from __future__ import annotations

from typing import Any

from ... import _validate
from ..npmle import Means
from .base import METHOD_MEMBERS, SELECTOR_MEMBERS, BlockMethod, Method, Selector, missing_members
from .block_mixture import BlockMixture
from .blocks import BlockScore
from .bootstrap import CoupledBootstrap, LittleBootstrap
from .jansen import Jansen
from .mixture import Mixture
from .oracle import Oracle
from .score import Score
from .selectors import CrossValidation, Fdr, Universal
from .sure import Sure

__all__ = [
    "BLOCK_METHODS",
    "METHODS",
    "BlockMethod",
    "BlockMixture",
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

# Those for rules on the norms of blocks.
BLOCK_METHODS: dict[str, type[Any]] = {"score": BlockScore, "mixture": BlockMixture}


def as_method(method: Any, *, blocks: bool = False) -> Method | Selector:
    """Return the method of that name with its defaults, for entries or for blocks, or `method` itself.

    Raises
    ------
    TypeError
        If `method` is a class, or lacks a required member; the error names the member.
    """
    if isinstance(method, str):
        if blocks and method in METHODS and method not in BLOCK_METHODS:
            msg = f"method {method!r} treats entries one by one. For blocks there are 'mixture' and 'score'."
            raise ValueError(msg)
        made: Method | Selector = _validate.choice("method", method, BLOCK_METHODS if blocks else METHODS)()
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
