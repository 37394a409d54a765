"""The way back from transformed magnitudes, where errors near zero signal count by their size."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from ..._arrays import Floats
from ..._validate import Array
from ...noise.magnitude import MagnitudeTransform, magnitude_tables
from ...noise.stabilisers import LocalNoise
from .evened import SeriesWayBack

__all__ = ["MagnitudeWayBack"]

# Standard deviations of errors for which weights are tabulated, in noise levels: evenly spaced logarithms. Beyond, the
# last one serves; a series is denoised to 0.05 to 0.3.
ERRORS = np.geomspace(0.02, 0.64, 16)
# Transformed values, relative to that without signal, for which weights are tabulated. Beyond 6 they are 1 to 1%.
VALUES = np.linspace(-1.5, 6.0, 751)


@dataclass(frozen=True, eq=False)
class MagnitudeWayBack(SeriesWayBack):
    """The way back from transformed magnitudes.

    Notes
    -----
    Without signal, an error e of transformed values becomes one of the order of the root of e. So the mean square of an
    error over that of transformed values depends on its size, which the divergence tells.

    Transformed values below that without signal arise by error alone. There variances and weights are continued as odd
    functions about that point. So errors of an estimate to both sides cancel on average; if the functions stayed
    constant, their mean would be too large.

    The divergence is known per entry, and taken to be the same for all volumes. It is lower in dark volumes, whose
    errors weigh most. So what they add to the predicted error is rough: up to twice too high on simulated data.
    """

    stabiliser: MagnitudeTransform

    def local_noise(self, values: Floats, error: Array) -> LocalNoise:
        """Return the noise around an estimate of one volume, for errors of that variance."""
        from scipy.ndimage import map_coordinates

        table = magnitude_tables(self.stabiliser.coils).transformed
        beyond = values - table.means[0]
        size = np.sqrt(np.clip(error, ERRORS[0] ** 2, ERRORS[-1] ** 2))
        row = np.log(size / ERRORS[0]) / math.log(ERRORS[1] / ERRORS[0])
        column = (beyond - VALUES[0]) / (VALUES[1] - VALUES[0])
        weight = map_coordinates(_weights(self.stabiliser.coils), [row, column], order=1, mode="nearest")
        upper = table.variance(table.means[0] + np.abs(beyond))
        variance = np.where(beyond < 0, 2 * table.variances[0] - upper, upper)
        return LocalNoise(variance, np.square(self.scale) * weight)

    def doubtful_weight(self, weight: Array) -> Array | float:
        """Return what weak signal adds to the weights; with much signal they are the square of the level."""
        return weight - np.square(self.scale)

    def level_map(self, variance: Array) -> Array:
        """Return the noise level of a real or imaginary part, (*shape)."""
        return self.scale


@functools.lru_cache(maxsize=8)
def _weights(coils: int) -> Array:
    """Return ``E (nu(z + e) - nu(z))^2 / E e^2`` for normal e, one row for each of `ERRORS`, at `VALUES`."""
    table = magnitude_tables(coils).transformed
    x, w = np.polynomial.hermite_e.hermegauss(48)
    z = table.means[0] + np.abs(VALUES)[:, None]
    rows = [np.square(table.inverse(z + error * x) - table.inverse(z)) @ (w / w.sum()) / error**2 for error in ERRORS]
    at_zero = np.array(rows)[:, [np.argmin(np.abs(VALUES))]]
    return np.where(VALUES < 0, np.maximum(2 * at_zero - rows, 0.0), rows)
