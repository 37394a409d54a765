"""The DCT of windows of many signals of one length: what `Windows` does, for all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, reflect_index
from .._kernels import ShrunkWindows, average_windows, shrink_windows
from .windows import JUMP_HALF_WIDTH, WindowEstimate, Windows, traces_of


@dataclass(frozen=True, eq=False)
class SignalWindows:
    """Windows of signals, with all that depends on their length alone.

    Coefficients are arrays of (rows, windows, side). The result of a row does not depend on the others.

    Attributes
    ----------
    windows : Windows
        Of one axis.
    size : int
        Of a signal.
    index : ndarray
        Where the entries of the extended signal lie in the signal.
    variance : ndarray
        The noise variance of every coefficient.
    trace : ndarray
        By what a coefficient of a window counts in the divergence, (windows, side).
    """

    windows: Windows
    size: int
    index: NDArray[np.int64]
    variance: Floats
    trace: Floats

    @classmethod
    def make(cls, windows: Windows, size: int, variance: Floats, dtype: Any) -> SignalWindows:
        """Return the windows for signals of a size and precision."""
        (b,), step = windows.block, windows.step
        index = reflect_index(np.arange(1 - b, size + b - 1 + -(size + b - 2) % step), size)
        trace = (variance * traces_of(b, step, size)).astype(dtype)
        return cls(windows, size, index, np.ascontiguousarray(variance, dtype), trace)

    def coefficients(self, y: Floats) -> Floats:
        """Return the coefficients of signals (rows, size)."""
        from scipy import fft

        (b,), step = self.windows.block, self.windows.step
        padded = np.take(y, self.index, axis=-1)
        views = np.lib.stride_tricks.sliding_window_view(padded, b, axis=-1)[:, ::step]
        return np.ascontiguousarray(fft.dct(views, norm="ortho"))

    def hard(self, coefficients: Floats, threshold: float) -> WindowEstimate:
        """Return what `Windows.hard` does, (rows, size), given coefficients."""
        dtype = self.variance.dtype
        cut = (threshold * np.sqrt(self.variance, dtype=np.float64)).astype(dtype)
        cut[0] = 0  # the mean is kept
        ends = [np.square(cut * dtype.type(f)) for f in (1 - JUMP_HALF_WIDTH, 1, 1 + JUMP_HALF_WIDTH)]
        height = 0.5 / JUMP_HALF_WIDTH
        return self._averaged(shrink_windows(coefficients, None, np.stack(ends), self.variance, self.trace, height))

    def guided(self, coefficients: Floats, pilot: Floats, strength: float) -> WindowEstimate:
        """Return what `Windows.guided` does, (rows, size), given coefficients; those of the data may be of one row."""
        cut = (strength * self.variance.astype(np.float64)).astype(self.variance.dtype)
        cut[0] = 0  # the mean is kept
        return self._averaged(shrink_windows(coefficients, pilot, cut, self.variance, self.trace, 0.0))

    def _averaged(self, shrunk: ShrunkWindows) -> WindowEstimate:
        from scipy import fft

        entries = np.ascontiguousarray(fft.idct(shrunk.coefficients, norm="ortho", overwrite_x=True))
        windows = ShrunkWindows(entries, shrunk.weight, shrunk.divergence)
        return WindowEstimate(*average_windows(windows, self.size, self.windows.step))
