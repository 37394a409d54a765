"""The power of the flattest windows of an image at three bands of frequencies: does it end in white noise?

White noise has the same power at all frequencies. Structure falls steeply with the frequency, so that the power of
noise is left at high ones. If it still falls there, slowly and steadily, texture is everywhere, and nothing tells how
much of the power is noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .texture import flat_count
from .windows import WindowSet, frequency_sums, relative_frequencies

# Relative frequencies of the bands.
LOW, MIDDLE, HIGH = (0.15, 0.35), (0.35, 0.6), (0.7, 1.0)
# The power of the middle over that of the high band, from which texture is in all windows, and up to which it may be as
# large as the noise there; and the power of the low over that of the middle band, up to which it does. On 1440 crops of
# 11 development photographs, 64 to 192 pixels a side, at noise 2 to 20, all levels that were read 1.5 times too high or
# more have 1.35 or more in the first; those crops that came out worse at noise 5 or more 1.37 to 1.9, and 1.53 to 2.15
# in the second. Of a thousand crops whose level is right, 23 are in these ranges.
MIN_TEXTURE, MOST_TEXTURE, MOST_SLOPE = 1.35, 2.0, 2.25
# Fewest flat windows, if they did not overlap: for the limits above, and if there are no more. With 10 alone, one of
# nine crops of 128 x 128 full of grass (camera) passes for noise of a camera; with 40 alone, 5 of 120 crops of 48 x 48
# at noise 5 come out worse than they went in. With both, none and 1 do.
FEWEST_WINDOWS = 40, 10
# Images of fewer entries are called small: there, texture in all windows lowers the level, and is no speckle.
SMALL_IMAGE = 1 << 15


class FlatPower(NamedTuple):
    """Mean squared coefficients of the flattest windows, in units of the data squared."""

    low: float
    middle: float
    high: float

    @property
    def is_textured(self) -> bool:
        """Whether the power falls slowly and steadily up to the highest frequencies."""
        return self.low < MOST_SLOPE * self.middle and MIN_TEXTURE < self.middle / self.high < MOST_TEXTURE


def flat_power(windows: WindowSet) -> FlatPower | None:
    """Return the power of the flattest windows of an image; None if there are too few windows.

    Half of the frequencies, those with an even or an odd sum, rank the windows, the other half is read.
    """
    counts = [flat_count(windows, fewest) for fewest in FEWEST_WINDOWS]
    count = next((count for count in counts if count < len(windows.coefficients)), 0)
    if not count:
        return None
    energy = np.square(windows.coefficients)
    frequency, parity = relative_frequencies(windows.block).ravel(), frequency_sums(windows.block).ravel() % 2
    powers = np.zeros(3)
    for half in (0, 1):
        ranking = energy @ ((frequency > 0) & (frequency < HIGH[0]) & (parity == half)).astype(energy.dtype)
        mean = energy[np.argpartition(ranking, count)[:count]].mean(axis=0, dtype=np.float64)
        read = [(frequency >= start) & (frequency < end) & (parity != half) for start, end in (LOW, MIDDLE)]
        powers += [mean[band].mean() / 2 for band in (*read, frequency >= HIGH[0])]
    return FlatPower(*powers.tolist())
