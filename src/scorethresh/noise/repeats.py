"""Values that repeat: those of bits and labels, of cameras, of whole numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._validate import Array

# Largest error of a rounding step, in steps. Single precision leaves some hundredths in data of 16 bits; a curve of
# tones stretches steps by several tenths.
STEP_TOLERANCE = 0.1
# Data of so many entries with so few different values hold no noise: rounded noise of one rounding step makes seven.
MANY_ENTRIES, FEW_VALUES = 256, 4
# Fewest distances of values that tell a step, and the largest error of a multiple of it. That eight others are as near
# to a multiple by chance has a probability of 1e-13.
MIN_GAPS, EVEN_TOLERANCE = 9, 0.01
# Steps within the range of the data, per value, at most. If there are far more, equal neighbours are not by chance; and
# all numbers are multiples of what their precision resolves.
MOST_STEPS = 16
# Entries of the data that tell their centre and whether values repeat. Both are the same for any large sample.
SAMPLE_SIZE = 100_000


def sample_of(y: Floats) -> Floats:
    """Return known entries of y, about `SAMPLE_SIZE` of them if there are more."""
    some = y.reshape(-1)[:: max(y.size // SAMPLE_SIZE, 1)]
    return some[~np.isnan(some)]


def has_few_values(y: Floats) -> bool:
    """Return whether many entries have few different values: bits, dots, labels. Noise would make more of them."""
    if y.size < MANY_ENTRIES:
        return False
    sample = sample_of(y)
    # A few entries tell that of most data.
    return all(np.unique(some).size <= FEW_VALUES for some in (sample[: 4 * FEW_VALUES], sample))


def has_repeated_values(y: Floats) -> bool:
    """Return whether values repeat, in any units: most occur more than once, or all are multiples of a step.

    The first tells pictures of a camera, the second short records of whole numbers.
    """
    return bool(have_repeated_values(y[None])[0])


def have_repeated_values(y: Floats) -> NDArray[np.bool_]:
    """Return of which samples, (samples, *shape), values repeat; see `has_repeated_values`."""
    rows = y.reshape(len(y), -1)
    if np.isnan(rows).any() or rows.shape[1] >= 2 * SAMPLE_SIZE:
        known = [sample_of(row) for row in rows]
        return np.array([some.size > 0 and bool(_repeat(some[None])[0]) for some in known])
    return _repeat(rows)


def _repeat(values: Floats) -> NDArray[np.bool_]:
    """Return in which rows values repeat; all are known."""
    ordered = np.sort(values, axis=1)
    gaps = np.diff(ordered, axis=1)
    ends = np.ones((len(gaps), 1), bool)
    differs = np.concatenate([ends, gaps > 0, ends], axis=1)
    different = np.count_nonzero(differs, axis=1) - 1
    repeated: NDArray[np.bool_] = 2 * np.count_nonzero(differs[:, 1:] & differs[:, :-1], axis=1) <= different
    smallest = np.min(gaps, axis=1, where=gaps > 0, initial=np.inf)
    few_steps = ordered[:, -1] - ordered[:, 0] <= MOST_STEPS * different * smallest
    for k in np.flatnonzero(~repeated & (different > MIN_GAPS) & few_steps):
        multiples = gaps[k][gaps[k] > 0] / smallest[k]
        repeated[k] = np.abs(multiples - np.rint(multiples)).max() < EVEN_TOLERANCE
    return repeated


def rounding_step(y: Floats) -> float:
    """Return the step to which y was rounded: 0 if values do not repeat, NaN if they do but not at even steps.

    Units other than the step leave rounding errors in the values. Larger ones than `STEP_TOLERANCE` are uneven steps,
    as after a curve of tones.
    """
    return float(rounding_steps(y[None])[0])


def rounding_steps(y: Floats) -> Array:
    """Return the step to which each sample, (samples, *shape), was rounded; see `rounding_step`."""
    return np.array([_step(row) if known else 0.0 for row, known in zip(y, have_repeated_values(y), strict=True)])


def _step(y: Floats) -> float:
    """Return the step of values that repeat; NaN if it is not even."""
    values = np.unique(sample_of(y))
    gaps = np.diff(values)
    gaps = gaps[gaps > 8 * np.finfo(y.dtype).eps * np.abs(values).max()]
    if not gaps.size:
        return math.nan
    step = float(np.median(gaps[gaps < 1.5 * gaps.min()]))
    multiples = gaps[gaps < 9.5 * step] / step
    return step if np.abs(multiples - np.rint(multiples)).max() < STEP_TOLERANCE else math.nan
