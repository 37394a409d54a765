"""Variances fitted by combinations of columns, robustly: some readings are far too large."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._validate import Array
from .medians import quantiles
from .windows import TINY

__all__ = ["VarianceFit", "fit_many_variances", "fit_variances"]

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
    """Coefficients, their covariance and the misfit; of many fits along the first axes."""

    coefficients: Array
    covariance: Array
    misfit: Any


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
    found = fit_many_variances(design[None], variances[None], spread[None], base)
    return VarianceFit(found.coefficients[0], found.covariance[0], float(found.misfit[0]))


def fit_many_variances(design: Array, variances: Array, spread: Array, base: Any = 0.0) -> VarianceFit:
    """Return what `fit_variances` does of many sets of readings, along the first axis of all but the base."""
    base = np.broadcast_to(base, variances.shape)
    best, loss = _best_starts(design, variances, spread, base)
    left = np.flatnonzero(loss < math.inf)
    d, v, s, b, start, loss = (some[left] for some in (design, variances, spread, base, best, loss))
    for _ in range(ROUNDS):
        if not left.size:
            break
        turned = np.swapaxes(d, 1, 2)
        fitted = b + _times(d, start)
        r = np.log(v / fitted) / s
        weights = 1 / (1 + (r / OUTLYING) ** 2) / (s * fitted) ** 2
        step = _solved(turned @ (weights[..., None] * d), _times(turned, weights * fitted * s * r))
        trials = start[:, None] + SHARES[:, None] * step[:, None]
        losses = _loss(b[:, None] + trials @ turned, v, s)
        better = losses < loss[:, None]
        chosen = np.arange(left.size), better.argmax(axis=1)
        fell, before = better[chosen], loss
        start = np.where(fell[:, None], trials[chosen], start)
        loss = np.where(fell, losses[chosen], before)
        best[left] = start
        going = before - loss >= SETTLED
        if not going.all():
            left = left[going]
            d, v, s, b, start, loss = (some[going] for some in (d, v, s, b, start, loss))
    fitted = np.maximum(base + _times(design, best), TINY)
    r = np.log(variances / fitted) / spread
    robust = 1 / (1 + (r / OUTLYING) ** 2)
    freedom = max(r.shape[1] - design.shape[2], 1)
    misfit = (robust * r**2).sum(axis=1) / robust.sum(axis=1) * r.shape[1] / freedom
    information = np.swapaxes(design, 1, 2) @ ((robust / (spread * fitted) ** 2)[..., None] * design)
    units = np.eye(design.shape[2])
    inverse = np.stack([_solved(information, np.broadcast_to(unit, best.shape)) for unit in units], axis=1)
    return VarianceFit(best, inverse * np.maximum(misfit, 1.0)[:, None, None], misfit)


def _times(matrices: Array, vectors: Array) -> Array:
    """Return the products of matrices and vectors, along the first axis."""
    out: Array = (matrices @ vectors[..., None])[..., 0]
    return out


def _solved(normal: Array, right: Array) -> Array:
    """Return the shortest solutions of normal equations; by Cramer's rule if they are two, and far from singular."""
    out, told = np.empty_like(right), np.zeros(len(right), bool)
    if right.shape[1] == 2:
        a, b, c = normal[:, 0, 0], normal[:, 0, 1], normal[:, 1, 1]
        determinant = a * c - b * b
        told = determinant > LEAST_DETERMINANT * a * c
        np.divide(c * right[:, 0] - b * right[:, 1], determinant, out=out[:, 0], where=told)
        np.divide(a * right[:, 1] - b * right[:, 0], determinant, out=out[:, 1], where=told)
    for k in np.flatnonzero(~told) if not told.all() else ():
        out[k] = np.linalg.lstsq(normal[k], right[k], rcond=None)[0]
    return out


def _loss(fitted: Array, variances: Array, spread: Array) -> Array:
    """Return the sums of Cauchy's losses of fits, (sets, fits, readings); infinite if a fit is not always positive."""
    positive = fitted.min(axis=2) > 0
    ratios = variances[:, None] / np.where(positive[..., None], fitted, 1.0)
    distances = np.log(ratios) / spread[:, None] / OUTLYING
    return np.where(positive, np.log1p(distances**2).sum(axis=2), np.inf)


def _best_starts(design: Array, variances: Array, spread: Array, base: Array) -> tuple[Array, Array]:
    """Return the best of some coefficients, and their losses.

    They are multiples of the first column, and what passes through two readings by the first two columns.
    """
    sets, _, size = design.shape
    rest = np.maximum(variances - base, TINY)
    starts = np.zeros((sets, 3, size))
    # The last makes positive what can be.
    starts[:, :, 0] = np.stack(quantiles(rest / design[:, :, 0], (0.5, 0.9, 1.0)), axis=1)
    if size > 1:
        i, j = np.tril_indices(rest.shape[1], -1)
        one, other = design[:, :, 0], design[:, :, 1]
        determinant = one[:, j] * other[:, i] - one[:, i] * other[:, j]
        told = one[:, i] * other[:, j] != one[:, j] * other[:, i]
        through = np.zeros((sets, i.size, size))  # where two readings tell no line there is none, of infinite loss
        first = rest[:, j] * other[:, i] - rest[:, i] * other[:, j]
        second = one[:, j] * rest[:, i] - one[:, i] * rest[:, j]
        np.divide(first, determinant, out=through[:, :, 0], where=told)
        np.divide(second, determinant, out=through[:, :, 1], where=told)
        starts = np.concatenate([starts, through], axis=1)
    losses = _loss(base[:, None] + starts @ np.swapaxes(design, 1, 2), variances, spread)
    best = np.arange(sets), np.argmin(losses, axis=1)
    return starts[best], losses[best]
