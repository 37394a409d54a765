"""Thresholds in wavelet bands for many samples of one shape, each with its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._arrays import Floats, cropped
from .._validate import Array
from ..risk.methods import Mixture
from ..risk.mixture_rows import choose_rows
from ..rules import Hard, Rule
from .experts.bands import FrameNoise, divergence_with_borders
from .experts.decisions import EntryDecisions
from .plan import PlanOptions


class RowBands(NamedTuple):
    """Estimates (rows, 1, *shape), their divergence per entry (rows,), and thresholds (rows, bands)."""

    value: Floats
    divergence: Array
    thresholds: Array


def fit_row_bands(noise: FrameNoise, values: Floats, options: PlanOptions, *, pooled: bool = False) -> RowBands:
    """Return what `fit_bands` does, for all samples at once.

    Parameters
    ----------
    noise : FrameNoise
        Of white noise of level 1.
    values : ndarray
        (rows, 1, *shape).
    options : PlanOptions
        The rule, and a mixture as the method.
    pooled : bool
        Whether all samples share their thresholds and degrees of freedom.
    """
    shape = values.shape[2:]
    inside = noise.frame.inside(shape)
    decisions = EntryDecisions(options.rule)
    null = options.method.null if isinstance(options.method, Mixture) else Mixture().null
    chosen: dict[int, Array] = {}
    divergence = np.full(len(values), noise.mean_share)

    def shrink(k: int, coefficients: Floats) -> Floats:
        band, c = noise.bands[k], cropped(coefficients, inside)
        z = c.reshape(len(c), -1).astype(np.float64)
        if pooled:
            shared, curve = decisions.select(z, band.sigma)
            chosen[k] = np.full(len(z), shared)
            dof = curve.dof[np.searchsorted(curve.thresholds, shared)] / len(z)
        else:
            found = choose_rows(z / band.sigma, options.rule, null)
            chosen[k], dof = found.thresholds * band.sigma, found.dof
        per_entry = band.share * dof / z.shape[1] + np.zeros(len(z))
        if band.border:
            triples = zip(c, chosen[k], per_entry, strict=True)
            per_entry = np.array([divergence_with_borders(band, *some) for some in triples])
        divergence[...] += per_entry
        return shrink_rows(options.rule, coefficients, chosen[k])

    value = noise.frame.apply(values, shrink, len(shape))
    return RowBands(value, divergence, np.stack([chosen[k] for k in sorted(chosen)], axis=1))


def apply_row_bands(noise: FrameNoise, rule: Rule, values: Floats, thresholds: Array) -> Floats:
    """Return what `BandThresholds.value` does, with thresholds (rows, bands)."""
    return noise.frame.apply(values, lambda k, c: shrink_rows(rule, c, thresholds[:, k]), values.ndim - 2)


def shrink_rows(rule: Rule, c: Floats, thresholds: Array) -> Floats:
    """Return coefficients after thresholding, each row at its own, in their dtype."""
    if isinstance(rule, Hard):
        cut = thresholds.astype(c.dtype).reshape(-1, *(1,) * (c.ndim - 1))
        kept: Floats = np.multiply(c, np.abs(c) >= cut)
        return kept
    decisions = EntryDecisions(rule)
    return np.stack([decisions.shrink(piece, float(t)) for piece, t in zip(c, thresholds, strict=True)])
