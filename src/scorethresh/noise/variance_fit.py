"""Variances fitted by combinations of columns, robustly: some readings are far too large."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._validate import Array
from .medians import quantiles
from .windows import TINY

__all__ = ["VarianceFit", "fit_variances"]

# Standard errors beyond which a reading counts little: Cauchy's weight. Texture makes some readings far too large.
OUTLYING = 2.0
# Rounds of reweighting; the change after 10 is below 1e-3 of a standard error. They end where the loss hardly falls:
# 1e-9 is a change by 1e-4 of a standard error.
ROUNDS = 20
SETTLED = 1e-9
# Least determinant of two equations over the product of their diagonal. Ten digits are left, where one is enough.
LEAST_DETERMINANT = 1e-6
# Shares of a step that are tried.
SHARES = 0.5 ** np.arange(8)


class VarianceFit(NamedTuple):
    """Coefficients, their covariance and the misfit."""

    coefficients: Array
    covariance: Array
    misfit: float


def fit_variances(design: Array, variances: Array, spread: Array, base: Any = 0.0) -> VarianceFit:
    """Fit ``base + design @ coefficients`` to variances of relative errors `spread`, robustly.

    Parameters
    ----------
    design : ndarray, shape (readings, coefficients)
        Columns to be combined.
    variances, spread : ndarray
        Readings and their relative standard errors.
    base : float or ndarray
        The part of the variances that is known.

    Returns
    -------
    VarianceFit
        By Gauss-Newton steps on the loss that `fit_variance_line` states.
    """
    starts = _starts(design, variances, base)
    losses = _loss(base + starts @ design.T, variances, spread)
    best, loss = starts[np.argmin(losses)], float(losses.min())
    for _ in range(ROUNDS if loss < math.inf else 0):
        fitted = base + design @ best
        r = np.log(variances / fitted) / spread
        weights = 1 / (1 + (r / OUTLYING) ** 2) / (spread * fitted) ** 2
        normal = design.T @ (weights[:, None] * design)
        step = _solved(normal, design.T @ (weights * fitted * spread * r))
        trials = best + SHARES[:, None] * step
        losses = _loss(base + trials @ design.T, variances, spread)
        better = np.flatnonzero(losses < loss)
        if not better.size:
            break
        best, before, loss = trials[better[0]], loss, float(losses[better[0]])
        if before - loss < SETTLED:
            break
    fitted = np.maximum(base + design @ best, TINY)
    r = np.log(variances / fitted) / spread
    robust = 1 / (1 + (r / OUTLYING) ** 2)
    freedom = max(len(r) - design.shape[1], 1)
    misfit = float((robust * r**2).sum() / robust.sum() * len(r) / freedom)
    information = design.T @ ((robust / (spread * fitted) ** 2)[:, None] * design)
    inverse = np.stack([_solved(information, unit) for unit in np.eye(len(best))])
    return VarianceFit(best, inverse * max(misfit, 1.0), misfit)


def _solved(normal: Array, right: Array) -> Array:
    """Return the shortest solution of normal equations; by Cramer's rule if they are two, and far from singular."""
    if len(right) == 2:
        (a, b), (_, c) = normal.tolist()
        determinant = a * c - b * b
        if determinant > LEAST_DETERMINANT * a * c:
            first, second = right.tolist()
            return np.array([(c * first - b * second) / determinant, (a * second - b * first) / determinant])
    return np.asarray(np.linalg.lstsq(normal, right, rcond=None)[0], dtype=np.float64)


def _loss(fitted: Array, variances: Array, spread: Array) -> Array:
    """Return the sums of Cauchy's losses of fits (rows); infinite if one is not positive everywhere."""
    positive = fitted.min(axis=1) > 0
    distances = np.log(variances / np.where(positive[:, None], fitted, 1.0)) / spread / OUTLYING
    return np.where(positive, np.log1p(distances**2).sum(axis=1), np.inf)


def _starts(design: Array, variances: Array, base: Any) -> Array:
    """Return multiples of the first column, and what passes through two readings by the first two columns, as rows."""
    rest = np.maximum(variances - base, TINY)
    first = np.zeros((3, design.shape[1]))
    first[:, 0] = quantiles(rest / design[:, 0], (0.5, 0.9, 1.0))  # the last makes positive what can be
    if design.shape[1] == 1:
        return first
    i, j = np.tril_indices(len(rest), -1)
    told = design[i, 0] * design[j, 1] != design[i, 1] * design[j, 0]
    pairs = np.stack([j[told], i[told]], axis=1)
    through = np.zeros((len(pairs), design.shape[1]))
    through[:, :2] = np.linalg.solve(design[pairs][:, :, :2], rest[pairs][..., None])[..., 0]
    return np.concatenate([first, through])
