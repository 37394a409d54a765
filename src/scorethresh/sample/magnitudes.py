"""Samples of the magnitudes |y|: exact, or compressed to a few thousand weighted nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._kernels import MOMENTS_TO_WEIGHTS, NODES, ORDER, deposit
from .._lazy_data import lazy_module
from .._threads import cores, thread_map
from .._validate import Array
from ..rules import Rule, as_rule
from .cells import Cells

__all__ = ["Magnitudes"]

# Steps of the grid of thresholds per sigma. At the minimum, half a step off costs less than 0.02% of the risk.
STEPS = 64
# Samples of up to this many entries are evaluated exactly, on a grid twice as coarse (0.07%): their own noise is far
# larger.
SMALL = 4096
# By default a sample is compressed for thresholds up to those of this many entries, and for kernels of the width that
# the paper's formula gives for that many.
_THRESHOLDS_FOR = 1e12
_KERNELS_FOR = 1e8

# With fewer entries per thread, a second thread costs more than it saves.
_ENTRIES_PER_THREAD = 1 << 18
# Entries that are converted at once if y is not a contiguous array of floats: a buffer of at most 8 MB.
_BUFFER = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class Magnitudes:
    """The magnitudes of a set of entries, as weighted nodes: ``sum_i g(|y_i|) = sum_k weights[k] g(nodes[k])``.

    Make one with `exact` (a node per entry) or `compress` (12 nodes per cell: a few thousand, whatever the size of the
    data). Samples add up: ``a + b`` is the sample of both sets together.

    Attributes
    ----------
    nodes, weights : ndarray of float64
        Ascending nodes and their weights. Weights of a compressed sample may be negative.
    size : int
        The number of entries.
    cells : Cells or None
        The intervals of a compressed sample; None for an exact one.
    moments : ndarray or None
        Sums of polynomials over the entries of every cell; None for an exact sample.

    See Also
    --------
    risk_curve : Estimate risks from a sample.

    Notes
    -----
    Cell j keeps ``sum_i p_q(t_i)`` over its entries, q < 12, with t the position in the cell scaled to [-1, 1] and p_q
    a product of Chebyshev polynomials: of T_1, T_2, T_4 and T_8 for the bits of q. Sums of any function that is a
    polynomial of degree 11 on every cell follow exactly. Cells are so narrow that kernels and rules are such
    polynomials to machine precision, and thresholds are edges of cells.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=100_000)
    >>> whole = Magnitudes.compress(y, sigma=1.0)
    >>> parts = sum(Magnitudes.compress(part, sigma=1.0) for part in np.array_split(y, 7))
    >>> whole.size == parts.size, np.allclose(whole.weights, parts.weights)
    (True, True)
    """

    nodes: Array
    weights: Array
    size: int
    cells: Cells | None = None
    moments: Array | None = field(default=None)

    @classmethod
    def exact(cls, y: Any) -> Magnitudes:
        """Return the sample with one node per entry.

        Parameters
        ----------
        y : array_like
            Real numbers, of any shape.

        Returns
        -------
        Magnitudes
            The sample.
        """
        lazy = lazy_module(y)
        y = _validate.data(y if lazy is None else lazy.loaded(y))
        _validate.finite(y)
        y = y if y.dtype.kind == "f" else y.astype(np.float64)
        nodes = np.sort(np.abs(y), axis=None).astype(np.float64, copy=False)
        return cls(nodes, np.ones(nodes.size), nodes.size)

    @classmethod
    def compress(
        cls,
        y: Any,
        *,
        sigma: float,
        thresholds: Any = None,
        rule: str | Rule = "hard",
        bandwidth: float | None = None,
    ) -> Magnitudes:
        """Return the sample on a few thousand nodes that give the same risk curves to machine precision.

        One pass over `y`, in its own dtype and without a copy, on all cores (or as many as the environment variable
        OMP_NUM_THREADS allows). The number of threads changes the rounding of the weights only.

        Parameters
        ----------
        y : array_like
            Real numbers, of any shape. May be a part of the data: samples made with the same keywords add up. A dask
            array is read chunk by chunk.
        sigma : float
            The noise level.
        thresholds : array_like, optional
            Thresholds at which curves will be computed. The default serves steps of sigma/64 up to 8.4 sigma.
        rule : str or Rule
            The rule whose curves will be computed. Rules that bend elsewhere than at the threshold (firm, SCAD) or are
            not made of straight pieces (garrote, bridge) need cells of their own.
        bandwidth : float, optional
            The narrowest kernel that will be used, in units of `y`. The default serves the paper's choice up to
            1e8 entries.

        Returns
        -------
        Magnitudes
            The sample.
        """
        sigma = _validate.noise_level(sigma)
        if thresholds is None:
            thresholds = default_thresholds(_THRESHOLDS_FOR, sigma)
        if bandwidth is None:
            bandwidth = 6 * sigma / _KERNELS_FOR ** (1 / 3)
        bandwidth = _validate.positive(bandwidth, "bandwidth")
        return gather(y, Cells.make(_validate.thresholds(thresholds), as_rule(rule), sigma, bandwidth))

    def points(self) -> tuple[Array, Array]:
        """Return the magnitudes, ascending, and how many entries each stands for: one, or those of a cell.

        The magnitude of a cell is the average of its entries. Cells without entries are left out.

        >>> Magnitudes.exact([3.0, -1.0]).points()
        (array([1., 3.]), array([1., 1.]))
        """
        if self.cells is None or self.moments is None:
            return self.nodes, self.weights
        used = self.moments[:, 0] > 0
        counts = self.moments[used, 0]
        return self.cells.middle[used] + self.cells.half[used] * (self.moments[used, 1] / counts), counts

    def __add__(self, other: Magnitudes) -> Magnitudes:
        if not isinstance(other, Magnitudes):
            return NotImplemented
        if self.cells is None and other.cells is None:
            nodes = np.sort(np.concatenate([self.nodes, other.nodes]), kind="stable")
            return Magnitudes(nodes, np.ones(nodes.size), nodes.size)
        if self.cells is None or self.cells != other.cells:
            msg = (
                "these samples do not lie on the same cells, so they cannot be added. Compress both with the same "
                "sigma, thresholds, rule and bandwidth, or make both exact."
            )
            raise ValueError(msg)
        return _from_moments(self.cells, self.moments + other.moments)  # type: ignore[operator]

    def __radd__(self, other: int) -> Magnitudes:
        """Let `sum` start from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __repr__(self) -> str:
        kind = "exact" if self.cells is None else f"compressed to {self.nodes.size} nodes"
        return f"<Magnitudes: {self.size} entries, {kind}>"


def default_thresholds(size: float, sigma: float, block_size: int = 1) -> Array:
    """Return the grid from 0 past the universal threshold of that many entries, then infinity: kill everything.

    Norms of blocks of d entries of pure noise stay below ``sigma (sqrt(2 log P) + sqrt(d))`` with high probability.
    """
    steps = STEPS if size > SMALL else STEPS // 2
    last = int(np.ceil(steps * (np.sqrt(2 * np.log(max(size, 1))) + np.sqrt(block_size))))
    return np.append(np.arange(last + 1) * (sigma / steps), np.inf)


def gather(y: Any, cells: Cells) -> Magnitudes:
    """Return the sample of `y` on the given cells: one pass over the data, in threads."""
    lazy = lazy_module(y)
    if lazy is not None:
        return lazy.gather(y, cells)  # type: ignore[no-any-return]
    y = _validate.data(y)
    dtype = np.dtype(np.float32 if y.dtype.kind == "f" and y.dtype.itemsize <= 4 else np.float64)
    parts = max(1, min(cores(), y.size // _ENTRIES_PER_THREAD))
    moments, table = np.zeros((parts, len(cells), ORDER)), cells.table
    bad = 0
    for chunk in _chunks(y, dtype):
        split = zip(np.array_split(chunk, parts), moments, strict=True)
        bad += sum(thread_map(lambda part: deposit(part[0], table, part[1]), split))
    if bad:
        raise _validate.not_finite(bad, y.size)
    return _from_moments(cells, moments.sum(axis=0) if parts > 1 else moments[0])


def _chunks(y: NDArray[Any], dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """Yield `y` as contiguous vectors of that dtype: `y` itself if it is one, else buffers."""
    chunks: Iterator[NDArray[Any]] = np.nditer(  # type: ignore[call-overload]
        y,
        flags=["external_loop", "buffered", "growinner"],
        op_flags=[["readonly", "contig", "aligned"]],
        op_dtypes=[dtype],
        casting="same_kind",
        order="K",
        buffersize=_BUFFER,
    )
    return chunks


def _from_moments(cells: Cells, moments: Array) -> Magnitudes:
    used = np.flatnonzero(moments[:, 0])
    nodes = cells.middle[used, None] + cells.half[used, None] * NODES
    # Rounding must not carry a node out of a cell that is a few units in the last place wide.
    nodes = nodes.clip(np.nextafter(cells.edges[used, None], np.inf), cells.edges[used + 1, None])
    weights = moments[used] @ MOMENTS_TO_WEIGHTS
    size = int(moments[:, 0].sum())
    return Magnitudes(nodes.ravel(), weights.ravel(), size, cells, moments)
