"""Stein's formula at a few thresholds, in one pass over the entries for each: nothing is sorted."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import MOST_PIECES, stein_sums
from .._threads import cores, thread_map
from .._validate import Array
from ..rules import PiecewiseLinear, Rule, jumps_of
from .curve import RiskCurve
from .kernel import Kernel
from .stein import risk_terms, standard_error

# With many thresholds, compressing the sample first is faster. The limit was not tuned.
MOST_THRESHOLDS = 4
# With fewer entries per thread, a second thread costs more than it saves.
_ENTRIES_PER_THREAD = 1 << 17
# Entries and thresholds beyond this many sigma are left to `stein_curve`, which allows for overflow.
_LARGEST = 1e50


def direct_curve(
    y: NDArray[Any], thresholds: Array, *, sigma: float, rule: Rule, kernel: Kernel | None = None
) -> RiskCurve | None:
    """Return what `stein_curve` does, from the entries themselves; None if it is not made for them.

    It serves up to 4 finite thresholds, rules of up to 4 straight pieces with at most one jump, Gaussian kernels of one
    bandwidth, and contiguous data of float32 or float64.
    """
    flat = y.reshape(-1) if y.flags.c_contiguous and y.dtype in (np.float32, np.float64) else None
    served = isinstance(rule, PiecewiseLinear) and 0 < thresholds.size <= MOST_THRESHOLDS
    if flat is None or not served or not 0 < thresholds[0] <= thresholds[-1] < _LARGEST * sigma:
        return None
    assert isinstance(rule, PiecewiseLinear)
    jumps = jumps_of(rule, thresholds) if kernel is not None else []
    if kernel is not None and (kernel.shape != "gaussian" or callable(kernel.bandwidth)):
        return None
    h = 1.0 if kernel is None else float(kernel.bandwidth)  # type: ignore[arg-type]
    slopes, (starts, coefficients) = risk_terms(rule, thresholds, sigma)
    if len(jumps) > 1 or not 2 <= len(slopes) <= MOST_PIECES:
        return None
    shares = flat.size // _ENTRIES_PER_THREAD
    parts = [flat] if shares < 2 else np.array_split(flat, min(cores(), shares))
    sums = np.empty((3, thresholds.size))
    for k in range(thresholds.size):
        position, height = (jumps[0][0][k], jumps[0][1][k]) if jumps else (0.0, 0.0)
        sums_of = functools.partial(
            stein_sums,
            sigma=sigma,
            starts=np.array([start[k] for start in starts]),
            terms=np.concatenate([slopes[:, None, k], coefficients[:, :, k]], axis=1),
            position=position / sigma,
            bandwidth=h,
            limit=_LARGEST * sigma,
        )
        found = [part for part in thread_map(sums_of, parts) if part is not None]
        if len(found) < len(parts):
            return None
        dof, risk, square, k1, k2, ks = np.sum(found, axis=0)
        share = kernel.normalisation(h) * height / sigma if kernel is not None else 0.0
        sums[:, k] = dof + share * k1, risk + 2 * share * k1, square + 4 * share * (ks + share * k2)
    dof, risk, square = sums
    stderr = standard_error(risk, square, flat.size)
    return RiskCurve(thresholds, risk * sigma**2, dof, stderr * sigma**2, flat.size, sigma)
