"""Rules x(y, threshold): value, derivative and jumps, on entries and on the norms of blocks."""

from __future__ import annotations

from typing import Any

from .. import _validate
from .base import Odd, Rule, complete, entry_rule, jumps_of, kinks_of, original
from .blocks import Blocks, Radial, as_blocks
from .piecewise import Firm, Hard, Piece, PiecewiseLinear, Scad, Soft, Step
from .smooth import Bridge, Garrote

__all__ = [
    "RULES",
    "Blocks",
    "Bridge",
    "Firm",
    "Garrote",
    "Hard",
    "Odd",
    "Piece",
    "PiecewiseLinear",
    "Radial",
    "Rule",
    "Scad",
    "Soft",
    "Step",
    "as_blocks",
    "as_rule",
    "complete",
    "entry_rule",
    "jumps_of",
    "kinks_of",
    "original",
]

RULES: dict[str, type[Rule]] = {
    "hard": Hard,
    "soft": Soft,
    "step": Step,
    "firm": Firm,
    "garrote": Garrote,
    "scad": Scad,
    "bridge": Bridge,
}


def as_rule(rule: Any) -> Rule:
    """Return the rule of that name, or `rule` itself, with all members of `Rule`."""
    if isinstance(rule, str):
        if rule == "posterior":
            msg = "rule 'posterior' has no threshold. Use scorethresh.shrink(y), or threshold_coeffs for bands."
            raise ValueError(msg)
        return _validate.choice("rule", rule, RULES)()
    return complete(rule)
