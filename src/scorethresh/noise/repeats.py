"""Values that repeat: those of bits and labels, of cameras, of whole numbers."""

from __future__ import annotations

import math

import numpy as np

from .._arrays import Floats

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
    values, times = np.unique(sample_of(y), return_counts=True)
    if times.size and 2 * np.count_nonzero(times == 1) <= times.size:
        return True
    gaps = np.diff(values)
    if gaps.size < MIN_GAPS or values[-1] - values[0] > MOST_STEPS * values.size * gaps.min():
        return False
    multiples = gaps / gaps.min()
    return bool(np.abs(multiples - np.rint(multiples)).max() < EVEN_TOLERANCE)


def rounding_step(y: Floats) -> float:
    """Return the step to which y was rounded: 0 if values do not repeat, NaN if they do but not at even steps.

    Units other than the step leave rounding errors in the values. Larger ones than `STEP_TOLERANCE` are uneven steps,
    as after a curve of tones.
    """
    if not has_repeated_values(y):
        return 0.0
    values = np.unique(sample_of(y))
    gaps = np.diff(values)
    gaps = gaps[gaps > 8 * np.finfo(y.dtype).eps * np.abs(values).max()]
    if not gaps.size:
        return math.nan
    step = float(np.median(gaps[gaps < 1.5 * gaps.min()]))
    multiples = gaps[gaps < 9.5 * step] / step
    return step if np.abs(multiples - np.rint(multiples)).max() < STEP_TOLERANCE else math.nan
