"""What is done to an entry: x(y, threshold), with its derivative and its jumps."""

from .base import Bridge, Firm, Garrote, Hard, Piece, PiecewiseLinear, Rule, Scad, Soft, as_rule, jumps_of, kinks_of

__all__ = [
    "Bridge",
    "Firm",
    "Garrote",
    "Hard",
    "Piece",
    "PiecewiseLinear",
    "Rule",
    "Scad",
    "Soft",
    "as_rule",
    "jumps_of",
    "kinks_of",
]
