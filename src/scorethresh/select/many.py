"""Many small samples at once, each with its own threshold."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._threads import thread_map
from .._validate import Array
from ..risk.methods import Mixture
from ..risk.mixture_rows import MOST_ENTRIES, choose_rows
from ..rules import Rule, as_rule
from .misfit import MAX_MISFIT, warn_of_misfit
from .selection import Selection

__all__ = ["SelectionBatch", "batch_levels", "select_many"]


@dataclass(frozen=True, eq=False, repr=False)
class SelectionBatch:
    """The thresholds of many samples: what `select_threshold` returns if `batch_axis` is given.

    Attributes
    ----------
    threshold, risk, dof, misfit : ndarray
        As in `Selection`, one per sample.
    rule : Rule
        The rule.
    data : ndarray
        The data, as they were passed.
    batch_axis : int
        The axis along which samples lie.
    one : callable
        Selects the threshold of one sample, given its place, with its whole curve: ``batch[k]`` calls it.

    See Also
    --------
    select_threshold : Returns this.
    """

    threshold: Array
    risk: Array
    dof: Array
    misfit: Array
    rule: Rule
    data: NDArray[Any]
    batch_axis: int
    one: Callable[[int], Selection]

    def __len__(self) -> int:
        return self.threshold.size

    def __getitem__(self, k: int) -> Selection:
        """Return the selection of one sample, with its curve; it is computed anew."""
        return self.one(range(len(self))[k])

    @functools.cached_property
    def estimate(self) -> NDArray[Any]:
        """The rule applied to every sample at its threshold, with the shape of the data."""
        rows = np.moveaxis(self.data, self.batch_axis, 0)
        out = np.stack([self.rule(row, float(t)) for row, t in zip(rows, self.threshold, strict=True)])
        return np.moveaxis(out, 0, self.batch_axis)

    def __repr__(self) -> str:
        low, high = self.threshold.min(), self.threshold.max()
        return (
            f"<SelectionBatch: {len(self)} samples, thresholds {low:.6g} to {high:.6g}, estimated risk "
            f"{self.risk.sum():.4g} in all>"
        )


@dataclass(frozen=True, eq=False)
class _OneOfMany:
    """What chooses the threshold of one sample. It can be pickled."""

    find: Callable[..., Selection]
    rows: NDArray[Any]
    levels: Array
    options: dict[str, Any]

    def __call__(self, k: int) -> Selection:
        return self.find(self.rows[k], sigma=float(self.levels[k]), **self.options)


def batch_levels(sigma: Any, count: int) -> Array:
    """Return the noise level of each of `count` samples, given one number or one per sample."""
    if np.ndim(sigma) == 0:
        return np.full(count, _validate.noise_level(sigma))
    levels = _validate.real_array(sigma, "sigma").astype(np.float64)
    if levels.shape != (count,):
        msg = f"sigma must be one number, or one per sample, of shape ({count},), got shape {levels.shape}."
        raise ValueError(msg)
    for extreme in (levels.min(), levels.max()):
        _validate.noise_level(float(extreme))
    return levels


def rows_of(y: Any, batch_axis: int) -> tuple[NDArray[Any], int]:
    """Return y with the samples along its first axis, and the axis they come from, counted from the first."""
    data = _validate.data(y)
    if data.ndim < 2 or isinstance(batch_axis, bool) or not -data.ndim <= batch_axis < data.ndim:
        msg = f"batch_axis must be one of several axes of y, which has shape {data.shape}, got {batch_axis!r}."
        raise ValueError(msg)
    return np.moveaxis(data, batch_axis, 0), batch_axis % data.ndim


def select_many(
    find: Callable[..., Selection], y: Any, sigma: Any, batch_axis: int, *, pooled: bool, **options: Any
) -> SelectionBatch:
    """Choose a threshold for every sample along an axis, or one for all.

    Parameters
    ----------
    find : callable
        What chooses one: takes a sample, `sigma` and the options.
    y, sigma, batch_axis, pooled, **options
        As in `select_threshold`.
    """
    rows, axis = rows_of(y, batch_axis)
    levels, rule, method = batch_levels(sigma, len(rows)), as_rule(options["rule"]), options["method"]
    one = _OneOfMany(find, rows, levels, options)
    data = np.asarray(y)
    if pooled:
        flat = rows.reshape(len(rows), -1) / levels[:, None]
        found = find(flat, sigma=1.0, **options)
        share = np.square(levels) / len(rows)
        numbers = found.threshold * levels, found.risk * share, found.dof / len(rows) + 0 * levels
        batch = SelectionBatch(*numbers, np.full(len(rows), found.misfit), rule, data, axis, one)
    elif _is_fast(rows, method, options):
        _validate.finite(rows)
        z = rows.reshape(len(rows), -1).astype(np.float64) / levels[:, None]
        chosen = choose_rows(z, rule, method.null, misfits=True)
        numbers = chosen.thresholds * levels, chosen.risks * levels**2, chosen.dof
        batch = SelectionBatch(*numbers, chosen.misfits, rule, data, axis, one)
    else:
        each = thread_map(one, range(len(rows)))
        names = ("threshold", "risk", "dof", "misfit")
        columns: list[Array] = [np.array([getattr(found, name) for found in each]) for name in names]
        batch = SelectionBatch(columns[0], columns[1], columns[2], columns[3], rule, data, axis, one)
    worst = int(np.argmax(np.nan_to_num(np.abs(batch.misfit))))
    # Of many samples some exceed the limit by chance, one in 5000.
    if np.count_nonzero(np.abs(batch.misfit) > MAX_MISFIT) > max(1, len(batch) // 1000):
        warn_of_misfit(float(batch.misfit[worst]), float(levels[worst]))
    return batch


def _is_fast(rows: NDArray[Any], method: Any, options: dict[str, Any]) -> bool:
    """Tell whether all samples can be treated at once."""
    small = rows[0].size <= MOST_ENTRIES and rows.dtype.kind != "c"
    plain = isinstance(method, Mixture) and options["thresholds"] is None and options["block_axis"] is None
    return small and plain and is_hashable(as_rule(options["rule"]))


def is_hashable(rule: Rule) -> bool:
    """Tell whether a rule can be looked up in a table; those of users may not."""
    try:
        hash(rule)
    except TypeError:
        return False
    return rule.block_size == 1
