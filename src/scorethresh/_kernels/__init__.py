"""Compiled loops, each behind one function that checks its arguments.

The loops read and write raw memory: an array of the wrong dtype, size or layout would make them read or overwrite what
lies beside it. The rest of the package reaches them only through the functions listed here.
"""

from __future__ import annotations

from .eigen import MOST_SIDE, EigenStack, symmetric_eigen
from .frame import WindowShrinkage, dilated, sliding_dct
from .mixture import fit_mixture, fit_mixture_rows
from .moments import MOMENTS_TO_WEIGHTS, NODES, ORDER, TO_WEIGHTS
from .patches import MEMBERS, PATCH_SIZE, Ridge, match_patches, ridge_groups, ridge_signals
from .sample import COARSE, FINE, CellTable, CutGaussian, PiecewiseQuadratic, deposit, kernel_sums
from .signal_windows import ShrunkWindows, average_windows, shrink_windows
from .stein import MOST_PIECES, stein_sums

__all__ = [
    "COARSE",
    "FINE",
    "MEMBERS",
    "MOMENTS_TO_WEIGHTS",
    "MOST_PIECES",
    "MOST_SIDE",
    "NODES",
    "ORDER",
    "PATCH_SIZE",
    "TO_WEIGHTS",
    "CellTable",
    "CutGaussian",
    "EigenStack",
    "PiecewiseQuadratic",
    "Ridge",
    "ShrunkWindows",
    "WindowShrinkage",
    "average_windows",
    "deposit",
    "dilated",
    "fit_mixture",
    "fit_mixture_rows",
    "kernel_sums",
    "match_patches",
    "ridge_groups",
    "ridge_signals",
    "shrink_windows",
    "sliding_dct",
    "stein_sums",
    "symmetric_eigen",
]
