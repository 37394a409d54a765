"""The rank of a dask array with one long side: its singular values by a tree of small factorisations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._threads import one_blas_thread, one_thread_per_task
from ..risk.singular_values import Shape
from ..select.rank import NOISES, RankSelection, checked_rank, warn_about_level
from ..select.spectra import RULES, Decision, decide, decide_correlated, decide_partial

__all__ = ["select_rank"]

# The shorter side of a matrix, at most: two matrices of this side, 1 GB, have to fit into memory.
MOST_COLUMNS = 8192
# Factors that a task joins.
WIDTH = 8


class _Rows(NamedTuple):
    """What is known of some rows: their triangular factor, NaN and infinite entries, and the largest magnitude."""

    factor: NDArray[Any]
    bad: int
    largest: float


def select_rank(
    matrix: Any,
    *,
    sigma: Any = None,
    rule: str = "hard",
    noise: str = "white",
    row_covariance: Any = None,
    column_covariance: Any = None,
    max_rank: int | None = None,
) -> RankSelection:
    """Return `scorethresh.select_rank` of a dask array, tall or wide.

    All is known at the call but the estimate, which is a dask array.

    Notes
    -----
    With ``Y = Q R``, the singular values and right vectors of Y are those of R. R is that of the triangular factors of
    parts of the rows, one below the other. So they are joined as a tree, and no task sees more than some rows. Unlike
    sums of ``Y'Y``, this loses no digits.
    """
    spectral, white = _validate.choice("rule", rule, RULES), _validate.choice("noise", noise, NOISES)
    _check(matrix, sigma, row_covariance, column_covariance, white=white)
    m, n = matrix.shape
    bound = None if max_rank is None else checked_rank(max_rank, min(m, n))
    tall = matrix if m >= n else matrix.T
    rows = _factored(tall)
    if rows.bad:
        remedy = "Drop their rows or columns, or fill them in."
        msg = f"matrix holds {rows.bad} NaN or infinite entries out of {m * n}. {remedy}"
        raise ValueError(msg)
    if (sigma is None or max_rank is not None) and rows.largest > math.sqrt(1e308 / (m * n)):
        msg = f"matrix holds magnitudes up to {rows.largest:.3g}, whose squares overflow. Divide it by them first."
        raise ValueError(msg)
    with one_blas_thread():
        _, s, vh = np.linalg.svd(rows.factor, full_matrices=False)
    s, vh = s[: min(m, n)], vh[: min(m, n)]
    shape = Shape(m, n, 2 if matrix.dtype.kind == "c" else 1)
    level = None if sigma is None else _validate.noise_level(sigma)
    if not white:
        decision = decide_correlated(s, shape, spectral, bound)
    elif bound is not None and bound < s.size:
        decision = decide_partial(s[:bound], float(np.square(s).sum()), shape, level, spectral)
    else:
        decision = decide(s, shape, level, spectral)
    warn_about_level({decision.reason} - {""})
    return _selection(matrix, tall, decision, s if bound is None else s[:bound], vh)


def _check(matrix: Any, sigma: Any, *covariances: Any, white: bool) -> None:
    """Refuse what cannot be treated in chunks."""
    if matrix.dtype.kind not in "biufc":
        msg = f"matrix must hold numbers, got dtype {matrix.dtype}."
        raise TypeError(msg)
    if matrix.ndim != 2 or not matrix.size or min(matrix.shape) > MOST_COLUMNS:
        msg = (
            f"a dask array must be one matrix whose shorter side has at most {MOST_COLUMNS} entries, got shape "
            f"{matrix.shape}. If it fits into memory, pass matrix.compute()."
        )
        raise ValueError(msg)
    if any(covariance is not None for covariance in covariances):
        msg = "covariances of a dask array are not supported. Whiten it first, or pass matrix.compute()."
        raise ValueError(msg)
    if not white and sigma is not None:
        msg = "noise='correlated' takes neither sigma nor covariances: nothing is known of such noise."
        raise ValueError(msg)


def _factored(tall: Any) -> _Rows:
    """Return the triangular factor of all rows, by one pass."""
    import dask

    # At least as many rows per task as there are columns: fewer would not make the data smaller.
    each = max(tall.shape[1], max(tall.chunks[0]))
    one, join = (dask.delayed(one_thread_per_task(f), pure=True) for f in (_factor, _joined))
    level = [one(block) for block in tall.rechunk((each, -1)).to_delayed().ravel()]
    while len(level) > 1:
        level = [join(level[k : k + WIDTH]) for k in range(0, len(level), WIDTH)]
    rows: _Rows = dask.compute(level[0])[0]
    return rows


def _factor(block: Any) -> _Rows:
    """Return what is known of the rows of a chunk."""
    y = np.asarray(block)
    known = np.isfinite(y)
    work = np.where(known, y, 0).astype(np.complex128 if y.dtype.kind == "c" else np.float64)
    # Small integers and halves have squares that do not overflow.
    largest = float(np.abs(work).max()) if y.dtype.kind in "fc" and y.dtype.itemsize >= 8 else 0.0
    factor: NDArray[Any] = np.asarray(np.linalg.qr(work, mode="r"))
    return _Rows(factor, int(y.size - np.count_nonzero(known)), largest)


def _joined(parts: list[_Rows]) -> _Rows:
    """Return what is known of the rows of several parts."""
    factor: NDArray[Any] = np.asarray(np.linalg.qr(np.concatenate([part.factor for part in parts]), mode="r"))
    return _Rows(factor, sum(part.bad for part in parts), max(part.largest for part in parts))


def _selection(matrix: Any, tall: Any, decision: Decision, s: NDArray[Any], vh: NDArray[Any]) -> RankSelection:
    """Return the decision, with the estimate as a lazy array in the chunks of the matrix."""
    k = decision.values.size
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = np.where(decision.values > 0, decision.values / s[:k], 0.0)
    basis = vh[:k].conj().T
    dtype = matrix.dtype if matrix.dtype.kind in "fc" else np.dtype(np.float64)
    # Two thin products in place of one with a square matrix.
    thin, back = (basis * gains)[:, gains > 0], basis.conj().T[gains > 0]
    whole = tall.rechunk({1: -1})
    estimate = whole.map_blocks(_projected, thin, back, dtype, dtype=dtype, meta=np.empty((0, 0), dtype))
    estimate = (estimate if tall is matrix else estimate.T).rechunk(matrix.chunks)
    return RankSelection(
        rank=int(np.count_nonzero(decision.values)),
        threshold=decision.threshold,
        singular_values=s,
        estimate=estimate,
        risk=decision.risk,
        dof=decision.dof,
        stderr=decision.stderr,
        sigma=decision.sigma,
        status=decision.status,
        curve=decision.curve,
    )


def _projected(block: NDArray[Any], thin: NDArray[Any], back: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return rows on the kept singular vectors, shrunk."""
    out: NDArray[Any] = ((block.astype(thin.dtype) @ thin) @ back).astype(dtype)
    return out
