"""Checked wrappers of the loops over a sample of magnitudes: `deposit` and `kernel_sums`."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import loader
from .checks import check_array, check_output, float_dtype
from .moments import MOMENTS_TO_WEIGHTS, NODES, ORDER

Array = NDArray[np.float64]

# The same as in deposit.c: the shifts that turn the bits of a double into a key.
FINE = 43
COARSE = 50

# exp(-2 z a / h^2), a mirrored kernel over the direct one, is below 1e-17 if z a exceeds this many h^2.
MIRRORED_CUT = 19.6


@dataclass(frozen=True, eq=False)
class CellTable:
    """Intervals of ``|y|`` for `deposit`, and how the interval of an entry is found.

    Attributes
    ----------
    edges
        Ascending. Cell j holds ``edges[j] < |y| <= edges[j + 1]``; the first one also holds ``edges[0]``.
    middle, scale
        The moments of cell j are those of ``(|y| - middle[j]) * scale[j]``.
    table, unit, first_key
        Up to ``edges[tail_cell]``, `table` holds the cell of an entry or one before, by the fine key of ``|y| * unit``
        less `first_key`. The fine key of a double is its bits shifted by `FINE`, the coarse one by `COARSE`.
    tail_cell, tail_key
        Beyond ``edges[tail_cell]``, edges are the values at which the coarse key changes. `tail_key` is the coarse
        key of ``edges[tail_cell]``.
    """

    edges: Array
    middle: Array
    scale: Array
    table: NDArray[np.int32]
    unit: float
    first_key: int
    tail_cell: int
    tail_key: int

    def __post_init__(self) -> None:
        check_array("edges", self.edges, np.float64, (None,))
        cells = self.edges.size - 1
        if cells < 1 or not (self.edges[1:] >= self.edges[:-1]).all():
            msg = f"edges must be at least 2 ascending numbers, got {self.edges}."
            raise ValueError(msg)
        check_array("middle", self.middle, np.float64, (cells,))
        check_array("scale", self.scale, np.float64, (cells,))
        check_array("table", self.table, np.int32, (None,))
        if not self.table.size or self.table.min() < 0 or self.table.max() >= cells:
            msg = f"table must hold cells from 0 to {cells - 1}, got {self.table}."
            raise ValueError(msg)
        if not 0 <= operator.index(self.tail_cell) <= cells:
            msg = f"tail_cell must lie between 0 and {cells}, got {self.tail_cell}."
            raise ValueError(msg)
        key = int(self.edges[self.tail_cell].view(np.int64)) >> COARSE
        if operator.index(self.tail_key) != key:
            msg = f"tail_key must be the key of edges[{self.tail_cell}], {key}, got {self.tail_key}."
            raise ValueError(msg)
        if max(abs(operator.index(self.first_key)), self.table.size, cells) >= 1 << 30:
            msg = f"first_key and the sizes of table and edges must be below 2^30, got {self.first_key}."
            raise ValueError(msg)


def deposit(y: NDArray[Any], cells: CellTable, moments: Array) -> int:
    """Add the moments of every ``|y|`` to the row of its cell: see `moments.chebyshev_of_products`.

    Parameters
    ----------
    y : ndarray of float32 or float64
        A vector.
    cells : CellTable
        The cells.
    moments : ndarray of float64, shape (cells, ORDER)
        Added to. Entries that are not finite, or lie beyond the last edge, are left out.

    Returns
    -------
    int
        The number of entries that were left out.
    """
    dtype = float_dtype("y", y)
    check_array("y", y, dtype, (None,))
    count = cells.edges.size - 1
    inputs = {"y": y, "edges": cells.edges, "middle": cells.middle, "scale": cells.scale, "table": cells.table}
    check_output("moments", moments, np.float64, (count, ORDER), **inputs)
    left_out: int = loader.call(
        f"deposit_{dtype.name}",
        *(y.size, y, count, cells.edges, cells.middle, cells.scale, cells.table.size, cells.table),
        *(float(cells.unit), cells.first_key, cells.tail_cell, cells.tail_key, moments),
    )
    return left_out


class CutGaussian(NamedTuple):
    """The kernel ``exp(-u^2 / 2 bandwidth^2)``, cut off where ``|u|`` exceeds `reach` bandwidths.

    Over `polynomial_width` bandwidths it is a polynomial of degree ``ORDER - 1``, to the precision that is wanted: many
    entries so close together are replaced by few. 0 keeps all entries.
    """

    bandwidth: float
    reach: float
    polynomial_width: float = 0.0


class PiecewiseQuadratic(NamedTuple):
    """A function of an entry z and a point k: ``sum_q coefficients[p, q, k] z^q`` on piece p.

    Entry i is on piece p at the points ``bounds[p + 1, i] <= k < bounds[p, i]``; bounds ascend with the entries. The
    shapes are (pieces + 1, entries) of int64 and (pieces, 3, points) of float64.
    """

    bounds: NDArray[np.int64]
    coefficients: Array


def kernel_sums(z: Array, weights: Array, points: Array, kernel: CutGaussian, factor: PiecewiseQuadratic) -> Array:
    """Return per point the weighted sums over the entries of K, K^2 and K s.

    Parameters
    ----------
    z, weights : ndarray of float64
        Entries, ascending and non-negative, and their weights.
    points : ndarray of float64
        Ascending and non-negative.
    kernel : CutGaussian
        ``K = exp(-(z-a)^2 / 2 bandwidth^2) + exp(-(z+a)^2 / 2 bandwidth^2)`` at the point a.
    factor : PiecewiseQuadratic
        The function s.

    Returns
    -------
    ndarray of float64, shape (3, points)
        The three sums.
    """
    check_array("z", z, np.float64, (None,))
    check_array("weights", weights, np.float64, z.shape)
    check_array("points", points, np.float64, (None,))
    check_array("coefficients", factor.coefficients, np.float64, (None, 3, points.size))
    pieces = len(factor.coefficients)
    check_array("bounds", factor.bounds, np.int64, (pieces + 1, z.size))
    h = float(kernel.bandwidth)
    if not 0 < h < np.inf:
        msg = f"bandwidth must be positive and finite, got {h}."
        raise ValueError(msg)
    if kernel.polynomial_width > 0 and not (z[1:] >= z[:-1]).all():
        msg = f"z must ascend, so that neighbours can be replaced, got {z}."
        raise ValueError(msg)
    out, scratch = np.zeros((3, points.size)), np.empty((2, points.size))
    loader.call(
        "kernel_sums",
        *(z.size, z, weights, float(kernel.reach * h), MIRRORED_CUT * h * h, pieces, factor.bounds),
        *(points.size, points, _even_step(points, h), float(0.5 * np.log2(np.e) / h**2)),
        *(float(kernel.polynomial_width * h), NODES, MOMENTS_TO_WEIGHTS, factor.coefficients, scratch, out),
    )
    return out


def _even_step(points: Array, h: float) -> float:
    """Return the step of an even grid that is dense enough for the recursion of the loop; 0 for other points."""
    if points.size < 64:
        return 0.0
    steps = np.diff(points)
    step = float(points[-1] - points[0]) / steps.size
    even = 0 < step < h / 4 and abs(steps - step).max() < 4e-16 * points[-1]
    return step if even else 0.0
