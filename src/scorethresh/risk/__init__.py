"""Stein's formula with jumps: the risk and the degrees of freedom, estimated."""
