"""Noise whose rows and columns have known covariances: whitened, and the risk in the units of y."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..risk.singular_values import Shape, kernel_at, spectral_divergence, weighted_divergence
from .spectra import Decision

__all__ = ["Whitening", "whitening"]


@dataclass(frozen=True, eq=False)
class Whitening:
    """The covariances between rows and between columns of the noise, and their symmetric roots."""

    row: NDArray[Any]
    row_root: NDArray[Any]
    column: NDArray[Any]
    column_root: NDArray[Any]

    def apply(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return y with white noise."""
        half = np.linalg.solve(self.row_root, y)
        return np.swapaxes(np.linalg.solve(self.column_root.T, np.swapaxes(half, -1, -2)), -1, -2)

    def undo(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return what was whitened in units of y."""
        out: NDArray[Any] = self.row_root @ y @ self.column_root
        return out

    def in_units_of_y(
        self, decision: Decision, parts: tuple[NDArray[Any], ...], shape: Shape, residual: float
    ) -> Decision:
        """Return the decision with risk and degrees of freedom of the estimate that was transformed back.

        Notes
        -----
        ``tr(Sigma dx/dy)`` of the whole is the divergence of the whitened estimator weighted by both covariances.
        """
        u, s, vh = parts
        unit = decision.sigma * np.sqrt(shape.parts)
        if not unit:
            return decision
        z, values = s / unit, decision.values / unit
        between = (u.conj().T @ self.row @ u, vh @ self.column @ vh.conj().T)
        totals = (float(np.trace(self.row).real), float(np.trace(self.column).real))
        dof = weighted_divergence(z, values, decision.slopes, shape, between, totals)
        # The jump of the white estimator, weighted where it happens.
        jump = decision.dof / shape.parts - spectral_divergence(z, values, decision.slopes, shape)
        near = kernel_at(z, decision.threshold / unit, shape)
        weights = np.diag(between[0]).real * np.diag(between[1]).real
        dof += jump * float(near @ weights) / max(float(near.sum()), 1e-300)
        spread = np.sum(np.abs(self.row) ** 2) * np.sum(np.abs(self.column) ** 2) / shape.entries
        return dataclasses.replace(
            decision,
            risk=residual - unit**2 * (totals[0] * totals[1] - 2 * dof),
            dof=shape.parts * dof,
            stderr=decision.stderr * float(np.sqrt(spread)),
        )


def whitening(row: Any, column: Any, m: int, n: int) -> Whitening | None:
    """Return what whitens noise of the given covariances between rows and columns; None if neither is given."""
    if row is None and column is None:
        return None
    return Whitening(*_root(row, m, "row_covariance"), *_root(column, n, "column_covariance"))


def _root(covariance: Any, size: int, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a covariance and its symmetric root; refuse what is none."""
    if covariance is None:
        return np.eye(size), np.eye(size)
    c = np.asarray(covariance)
    c = c.astype(np.complex128) if c.dtype.kind == "c" else _validate.real_array(c, name).astype(np.float64)
    if c.shape != (size, size):
        msg = f"{name} must have shape ({size}, {size}), got {c.shape}."
        raise ValueError(msg)
    if not np.isfinite(c).all() or not np.allclose(c, c.conj().T, rtol=1e-8, atol=1e-12 * np.abs(c).max()):
        msg = f"{name} must be finite and symmetric. Take its symmetric part: (c + c.conj().T) / 2."
        raise ValueError(msg)
    values, vectors = np.linalg.eigh(c)
    if not values[0] > size * np.finfo(float).eps * values[-1]:
        msg = f"{name} must be positive definite, got the eigenvalue {values[0]:.3g}. Add a little to its diagonal."
        raise ValueError(msg)
    return c, (vectors * np.sqrt(values)) @ vectors.conj().T
