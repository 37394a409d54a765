"""The risk by fitted means for many small samples at once: what `Mixture` does, without standard errors.

The means of all fits lie on one grid, in units of the noise level. So the expectations of a rule at all thresholds and
means are one table, and the curves of all samples are one product with it.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._kernels import fit_mixture_rows
from .._threads import thread_map
from .._validate import Array
from ..rules import Hard, Rule
from ..sample.magnitudes import SMALL, default_thresholds
from .choice import noise_limit
from .gaussian import expectations
from .npmle import BIN, CLEAR, CLOSE, FITTED_BEYOND, SPACING, distribution_misfit

__all__ = ["MOST_ENTRIES", "RowChoices", "choose_rows"]

# Entries of a sample, at most: larger ones are compressed, and are better treated one by one.
MOST_ENTRIES = SMALL
# Rows that a thread treats at once.
ROWS_AT_ONCE = 64


class RowChoices(NamedTuple):
    """Of every row, in units of its noise level: the threshold, risk and degrees of freedom there, and the misfit.

    Misfits are 0 unless they were asked for.
    """

    thresholds: Array
    risks: Array
    dof: Array
    misfits: Array


class _Table(NamedTuple):
    """Thresholds, and risk and degrees of freedom of an entry at each of them (rows) and each mean (columns)."""

    thresholds: Array
    risk: Array
    dof: Array


@functools.lru_cache(maxsize=8)
def _table(rule: Rule, size: int) -> _Table:
    """Return the table for samples of a size. Means end where every rule leaves entries as they are."""
    thresholds = default_thresholds(size, 1.0)
    tried = thresholds[:-1]
    means: Array = SPACING * np.arange(int((tried[-1] + FITTED_BEYOND) / SPACING) + 3, dtype=np.float64)
    found = expectations(rule, tried, means, 1.0)
    risk = np.concatenate([found.error, np.square(means)[None]])
    return _Table(thresholds, risk, np.concatenate([found.dof, np.zeros((1, means.size))]))


def choose_rows(z: Array, rule: Rule, null: float, *, misfits: bool = False) -> RowChoices:
    """Choose a threshold for every row of `z`, (rows, entries), data with noise of level 1.

    Parameters
    ----------
    z : ndarray of float64
        At most MOST_ENTRIES per row.
    rule : Rule
        On entries; must be hashable.
    null : float
        As in `Mixture`.
    misfits : bool
        Whether to compare the fits with the data, which takes as long as a fit of sparse data.
    """
    parts = [z[k : k + ROWS_AT_ONCE] for k in range(0, len(z), ROWS_AT_ONCE)]
    found = thread_map(lambda part: _choose(np.ascontiguousarray(part), rule, null, misfits=misfits), parts)
    return RowChoices(*(np.concatenate(some) for some in zip(*found, strict=True)))


def _choose(z: Array, rule: Rule, null: float, *, misfits: bool) -> RowChoices:
    count, size = z.shape
    table = _table(rule, size)
    magnitudes = np.abs(z)
    last = table.thresholds[-2] + FITTED_BEYOND
    near = magnitudes <= last
    masses = fit_mixture_rows(
        magnitudes,
        last=last,
        bin_width=BIN,
        columns=table.risk.shape[1],
        spacing=SPACING,
        null=null,
        clear=np.sqrt(2 * np.log(size)) + CLEAR,
        close=CLOSE,
    ).masses
    found = _misfits(magnitudes, near, int(last / BIN) + 2, masses) if misfits else np.zeros(count)
    risk, dof = masses @ table.risk.T, masses @ table.dof.T
    # Entries beyond the fit, at their average: all rules leave them as they are, but for infinity.
    beyond = size - near.sum(axis=1)
    some = np.flatnonzero(beyond)
    if some.size:
        average = np.where(near[some], 0.0, magnitudes[some]).sum(axis=1) / beyond[some]
        error, freedom = _beyond(rule, table.thresholds[:-1], average)
        risk[some, :-1] += error.T * beyond[some, None]
        dof[some, :-1] += freedom.T * beyond[some, None]
        risk[some, -1] += beyond[some] * np.square(average)
    best = _within_noise(magnitudes, table.thresholds, risk)
    rows = np.arange(count)
    return RowChoices(table.thresholds[best], risk[rows, best], dof[rows, best], found)


def _beyond(rule: Rule, thresholds: Array, means: Array) -> tuple[Array, Array]:
    """Return error and degrees of freedom of an entry at thresholds (rows) and means (columns) far above the noise."""
    if isinstance(rule, Hard):  # it cuts them off with a probability of 1e-9, and else leaves them with their noise
        error, dof = np.ones((2, thresholds.size, means.size))
        return error, dof
    found = expectations(rule, thresholds, means, 1.0)
    return found.error, found.dof


def _misfits(magnitudes: Array, near: NDArray[np.bool_], bins: int, masses: Array) -> Array:
    """Return the misfit of every row, given the number of entries that have each mean."""
    counts, sums = _histograms(magnitudes, near, bins)
    out = np.zeros(len(masses))
    for k in np.flatnonzero(counts.any(axis=1)):
        used, atoms = np.flatnonzero(counts[k]), np.flatnonzero(masses[k])
        n, means = counts[k, used], np.multiply(SPACING, atoms, dtype=np.float64)
        out[k] = distribution_misfit(sums[k, used] / n, n, means, masses[k, atoms])
    return out


def _histograms(magnitudes: Array, near: NDArray[np.bool_], bins: int) -> tuple[Array, Array]:
    """Return the numbers and the sums of the entries of every bin of every row, of those that are near."""
    count = len(magnitudes)
    keys = np.floor(np.where(near, magnitudes, 0.0) / BIN).astype(np.int64) + bins * np.arange(count)[:, None]
    keys, values = keys[near], magnitudes[near]
    numbers = np.bincount(keys, minlength=count * bins).astype(np.float64)
    sums = np.bincount(keys, values, minlength=count * bins).astype(np.float64)
    return numbers.reshape(count, bins), sums.reshape(count, bins)


def _within_noise(magnitudes: Array, thresholds: Array, risk: Array) -> NDArray[np.intp]:
    """Return what `choose_within_noise` does, for every row."""
    best: NDArray[np.intp] = np.argmin(risk, axis=1)
    limit = noise_limit(magnitudes.shape[1])
    inside = int(np.searchsorted(thresholds, limit, side="right"))
    if inside == 0:
        return best
    above = np.flatnonzero(best >= inside)
    kept, beyond = ((magnitudes[above] >= t).sum(axis=1) for t in (thresholds[best[above], None], limit))
    lower = above[(kept == 0) | (kept != beyond)]
    best[lower] = np.argmin(risk[lower, :inside], axis=1)
    return best
