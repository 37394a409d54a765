"""The blend of experts of least estimated risk."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._arrays import Floats, slabs
from .._validate import Array
from ..risk.estimate import Estimate
from ..risk.monte_carlo import inner
from .batch import Batch

# Weights are multiples of one over this, a power of 2, so that their sum is exactly 1.
WEIGHT_STEPS = 1 << 24


def least_risk_weights(batch: Batch, values: Sequence[Floats], divergences: Sequence[float]) -> Array:
    """Return the weights, non-negative and of sum 1, of the blend of least estimated risk.

    Parameters
    ----------
    batch : Batch
        The data y, and how squared errors are weighted.
    values : sequence of ndarray
        The experts' estimates of it.
    divergences : sequence of float
        Their divergences, weighted and summed over all entries.

    Notes
    -----
    Up to a constant the risk is ``|sum_k a_k r_k|^2 + 2 sum_k a_k div_k`` with residuals ``r_k = x_k - y``.
    """
    y, weights = batch.values, batch.error_weights
    gram = np.zeros((len(values), len(values)))
    for piece, rows in itertools.product(range(len(y)), slabs(batch.shape)):
        at = piece, slice(None), rows
        residuals = [value[at] - y[at] for value in values]
        if weights is not None:
            root = np.sqrt(weights[piece, rows]).astype(y.dtype)
            residuals = [r * root for r in residuals]
        for i, j in itertools.combinations_with_replacement(range(len(values)), 2):
            gram[i, j] += inner(residuals[i], residuals[j])
    gram = np.triu(gram) + np.triu(gram, 1).T
    return simplex_minimum(gram, np.asarray(divergences, dtype=np.float64))


def simplex_minimum(gram: Array, divergences: Array) -> Array:
    """Return the minimiser of ``a' gram a + 2 a' divergences`` over non-negative weights a of sum 1."""
    best: Array = simplex_minima(gram[None], divergences[None])[0]
    return best


def simplex_minima(gram: Array, divergences: Array) -> Array:
    """Return what `simplex_minimum` does for many problems, along the first axis.

    There are few experts, so every set of those with positive weight is tried.
    """
    problems, count = divergences.shape
    # In units near 1, which the weights' sum of 1 has. A power of 2 makes the result the same in all units.
    exponents = -np.frexp(np.trace(gram, axis1=1, axis2=2))[1]
    gram, divergences = np.ldexp(gram, exponents[:, None, None]), np.ldexp(divergences, exponents[:, None])
    best, least = np.full((problems, count), 1 / count), np.full(problems, np.inf)
    rows = np.arange(problems)
    for size in range(1, count + 1):
        sets = np.array(list(itertools.combinations(range(count), size)))
        part = gram[:, sets[:, :, None], sets[:, None, :]]
        pull = divergences[:, sets]
        a = _stationary_points(part, pull)
        risk = (a * ((part @ a[..., None])[..., 0] + 2 * pull)).sum(axis=-1)
        risk[(a.min(axis=-1) < 0) | (np.abs(a.sum(axis=-1) - 1) >= 1e-6)] = np.inf
        chosen = risk.argmin(axis=1)
        better = np.flatnonzero(risk[rows, chosen] < least)
        chosen = chosen[better]
        least[better] = risk[better, chosen]
        best[better] = 0
        best[better[:, None], sets[chosen]] = a[better, chosen]
    # Without their last digits, which differ with the order of sums: patches that look alike would magnify that.
    out: Array = np.rint(best * WEIGHT_STEPS) / WEIGHT_STEPS
    out[np.arange(problems), out.argmax(axis=1)] += 1 - out.sum(axis=1)
    return out


def _stationary_points(gram: Array, divergences: Array) -> Array:
    """Return the stationary points under ``sum(a) = 1`` of many problems, along the first axes.

    The last unknown of the equations is a Lagrange multiplier. Of experts that are alike it is the shortest solution.
    """
    size = divergences.shape[-1]
    if size == 1:
        return np.ones(divergences.shape)
    system = np.ones((*divergences.shape[:-1], size + 1, size + 1))
    system[..., :-1, :-1] = gram
    system[..., -1, -1] = 0
    right = np.append(-divergences, np.ones((*divergences.shape[:-1], 1)), axis=-1)[..., None]
    inverse = np.linalg.pinv(system, rcond=np.finfo(np.float64).eps * (size + 1), hermitian=True)
    a: Array = (inverse @ right)[..., :-1, 0]
    return a


def blend_values(weights: Sequence[float], values: Sequence[Floats]) -> Floats:
    """Return the weighted sum of arrays, in their dtype."""
    out = np.zeros_like(values[0])
    for weight, value in zip(weights, values, strict=True):
        if weight > 0:
            add_scaled(out, weight, value)
    return out


def add_scaled(out: Floats, weight: float, value: Floats) -> None:
    """Add values times a weight to `out`, in its dtype; both are (pieces, parts, *shape)."""
    for piece, rows in itertools.product(range(len(out)), slabs(out.shape[2:])):
        at = piece, slice(None), rows
        out[at] += out.dtype.type(weight) * value[at]


def blend(weights: Sequence[float], corrections: Sequence[float], estimates: Iterable[Estimate]) -> Estimate:
    """Return the weighted sum of estimates, taken one by one; divergences are multiplied by their corrections.

    At least one weight is positive.
    """
    value: Any = None
    divergence: Any = None
    for weight, correction, estimate in zip(weights, corrections, estimates, strict=True):
        if weight > 0:
            value = np.zeros_like(estimate.value) if value is None else value
            add_scaled(value, weight, estimate.value)
            each = weight * correction * estimate.divergence
            if divergence is None:
                divergence = each
            else:  # in the precision of the larger one: a mean per piece is a double
                divergence, each = sorted((divergence, each), key=np.size, reverse=True)
                divergence += each.astype(divergence.dtype)
        del estimate  # frees it before the next one is made
    return Estimate(value, divergence)
