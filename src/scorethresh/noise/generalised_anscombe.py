"""The generalised Anscombe transform of camera data: counts of electrons, read noise, a gain and an offset.

Counts are camera data without read noise and offset, with a gain of 1.

A pixel is ``y = offset + (P + read Z) / gain``, P of Poisson law, Z standard normal. So the variance is a line in the
mean,

    Var y = (E y - offset) / gain + (read / gain)^2.

References
----------
F. J. Anscombe, The transformation of Poisson, binomial and negative-binomial data, Biometrika 35 (1948) 246-254,
doi:10.1093/biomet/35.3-4.246.

F. Murtagh, J.-L. Starck, A. Bijaoui, Image restoration with noise suppression using a multiresolution support,
Astronomy and Astrophysics Supplement 112 (1995) 179-189.

M. Mäkitalo and A. Foi, Optimal inversion of the generalized Anscombe transformation for Poisson-Gaussian noise, IEEE
Transactions on Image Processing 22 (2013) 91-103, doi:10.1109/TIP.2012.2202675.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._normal import phi
from .._validate import Array
from .clipping import MEAN_BOX
from .moment_table import MomentTable
from .stabilisers import LocalNoise, Moments, OwnVariances, Stabiliser

# Largest mean in the table, in electrons. Beyond, the asymptotic inverse is right to seven digits without read noise.
LARGEST_TABULATED_MEAN = 200.0
# Entries of the table, evenly spaced in the root of the mean. Linear interpolation is right to 2e-5.
TABLE_SIZE = 2000
# Nodes of the trapezoidal rule over the read noise, and its reach in standard deviations. At the kink of the root, with
# read noise near 1, the error is 1e-5.
NODES, REACH = 401, 8.0
# Read noise, in electrons, beyond which the root is as good as its asymptote everywhere: its argument is then positive
# by as many standard deviations.
LARGE_READ = 30.0
# Standard deviations of the read noise under 0 electrons at which the root becomes its tangent. Without a tangent the
# noise is skewed where there is no light: on four development images with 1 electron in the mean and a read noise of
# 1.6, PSNR falls by 0.5 dB, with 5 electrons by 0.05. With 0.5 the variance without light is 0.75 to 0.98 for read
# noise from 1 to 8; with 0 it is 0.60 to 0.95, with 0.8 the noise is more skewed.
TANGENT = 0.5
# Least slope of the mean root, over that without a floor, at which means are told by it: about the share of the values
# above the floor.
LEAST_TOLD = 0.05
# Constant regions are taken for regions without noise where the noise level is at least this many steps of the data.
# Noise of one step makes 25 equal pixels once in 1e10.
MIN_STEPS = 1.0
# Standard deviations of the read noise below the offset beyond which the model makes no values.
UNLIKELY = 6.0
# Relative standard error of a predicted error, over the excess kurtosis of the noise. On 22 crops of 256 x 256 of
# development photographs with one count a pixel, whose excess is 1, predictions are 0 to 20% too low.
TAIL_ERROR = 0.25


@dataclass(frozen=True, eq=False)
class GeneralisedAnscombe(Stabiliser):
    """The generalised Anscombe transform of camera data, and its exact unbiased inverse.

    Attributes
    ----------
    gain, offset, read : float
        Electrons per unit of the data, the value without light, and the read noise in electrons.
    floor : float
        The value below which the data were clipped.
    step : float
        The distance of neighbouring values of the data; 0 if they are continuous.
    level_error : float
        Relative standard error of the noise level; 0 if it is given.

    Notes
    -----
    ``2 sqrt(gain (y - offset) + 3/8 + read^2)``, continued by its tangent below half a standard deviation of the read
    noise under the offset. Its noise variance is close to 1 from 3 electrons on; below, it is tabulated.
    """

    gain: float
    offset: float
    read: float
    floor: float = -math.inf
    step: float = 0.0
    level_error: float = 0.0
    has_floor: ClassVar[bool] = True

    @property
    def _floor(self) -> float:
        """The floor in electrons. One that the model does not reach is none, which saves tables."""
        floor = self.gain * (self.floor - self.offset)
        return floor if self.read > 0 and floor > -UNLIKELY * self.read - 1 else -math.inf

    @property
    def _table(self) -> MomentTable:
        return _moments(self.read, self._floor)

    def curve_error(self, moments: Moments) -> float:
        """Return what few electrons do: their law has heavier tails than the normal one."""
        electrons = moments.second - self.read**2
        return min(TAIL_ERROR * electrons / moments.second**2, 1.0)

    def share_out_of_reach(self, y: NDArray[Any]) -> float:
        """Return the share of the entries of y that lie too far below the value without light."""
        return float(np.mean(self.gain * (y.astype(np.float64) - self.offset) < -UNLIKELY * self.read - 1))

    def forward(self, y: NDArray[Any]) -> Floats:
        """Return the generalised Anscombe transform."""
        return _root(self.gain * (y.astype(np.float64) - self.offset), self.read)

    def inverse(self, values: Floats) -> Floats:
        """Return the mean of y."""
        last = self._table.means[-1]
        beyond = np.maximum(values, last)
        # Squares from the end of the table on, without a step there.
        electrons = self._table.inverse(np.minimum(values, last)) + (beyond**2 - last**2) / 4
        out: Floats = self.offset + electrons / self.gain
        return out.astype(np.result_type(values.dtype, np.float32), copy=False)

    def slope(self, values: Floats) -> Floats:
        """Return the derivative of `inverse`."""
        within = values < self._table.means[-1]
        out: Floats = np.where(within, self._table.slope(values), values / 2) / self.gain
        return out

    def variance_of(self, means: Any) -> Array:
        """Return the noise variance of y at means, at least that without light."""
        electrons = np.maximum(self.gain * (np.asarray(means, np.float64) - self.offset), 0.0)
        return (electrons + self.read**2) / self.gain**2

    def level_at(self, means: Floats) -> Array:
        """Return the noise level of y at means."""
        return np.sqrt(self.variance_of(means))

    def local_noise(self, values: Floats, channel: int | None, tile: tuple[slice, ...]) -> LocalNoise:
        """Return the noise around an estimate; the variance of the root is below 1 for few electrons."""
        means = values[0].astype(np.float64)
        return LocalNoise(self._table.variance(means), np.square(self.slope(means)))

    @property
    def has_own_variances(self) -> bool:
        """Whether nothing was clipped."""
        return self._floor == -math.inf

    def own_variances(self, y: Floats, means: Floats) -> OwnVariances:
        """Return the noise variances: a line in y has the mean that it has in the mean of y."""
        return OwnVariances((self.gain * (y - self.offset) + self.read**2) / self.gain**2, self.variance_of(means))

    def error_weights(self, y: NDArray[Any], missing: NDArray[np.bool_] | None, channel: int | None) -> Floats | None:
        """Return the noise variance at the local mean, plus 3/8: the square of the slope, in electrons."""
        from scipy.ndimage import uniform_filter

        means = y[:, 0].mean(axis=0, dtype=np.float64) if channel is None else y[channel, 0].astype(np.float64)
        known = means if missing is None else np.where(missing, self.offset, means)
        electrons = np.maximum(uniform_filter(self.gain * (known - self.offset), MEAN_BOX), 0.0)
        weights: Floats = electrons + (self.read**2 + 0.375)
        return weights.astype(np.float32)

    def moments(self, y: NDArray[Any], valid: NDArray[np.bool_] | None) -> Moments:
        """Return moments of the noise in valid entries: its variance is a line in the mean."""
        known = (y if valid is None else y[:, :, valid]).astype(np.float64)
        electrons = self.gain * (known - self.offset)
        # No electron at all says that one would be much.
        second = max(float(electrons.mean()), 1 / electrons.size) + self.read**2
        # The square of a noisy variance is too large by the variance of y.
        fourth = float(np.square(electrons + self.read**2).mean()) - second
        return Moments(1 / self.gain, second, max(fourth, second**2))

    def may_be_constant(self, y: NDArray[Any]) -> NDArray[np.bool_]:
        """Return where the noise is so weak that neighbours may be equal by chance; y is (channels, parts, *shape)."""
        weak = self.level_at(y) < MIN_STEPS * self.step
        likely = y >= self.offset - UNLIKELY * self.read / self.gain - self.step
        return np.asarray((weak & likely).any(axis=(0, 1)))


def _root(electrons: Array, read: float) -> Array:
    """Return the root, and its tangent below `TANGENT` standard deviations of the read noise under 0 electrons."""
    start = -TANGENT * read
    least = start + 0.375 + read**2
    light, dark = np.maximum(electrons, start), np.minimum(electrons - start, 0.0)
    out: Array = 2 * np.sqrt(light + (0.375 + read**2)) + dark / math.sqrt(least)
    return out


@functools.lru_cache(maxsize=16)
def _moments(read: float, floor: float) -> MomentTable:
    """Tabulate the moments of the root, over the Poisson law of electrons and the normal law of the read noise.

    Values below `floor`, in electrons, are clipped.
    """
    if read > LARGE_READ and floor == -math.inf:
        means = np.linspace(0, np.sqrt(LARGEST_TABULATED_MEAN), TABLE_SIZE) ** 2
        return MomentTable.of(means, 2 * np.sqrt(means + read**2 + 0.125), np.ones(means.size))
    largest = max(LARGEST_TABULATED_MEAN, floor + REACH * read)
    means = np.linspace(0, np.sqrt(largest), TABLE_SIZE) ** 2
    nodes = np.linspace(-REACH, REACH, NODES) if read > 0 else np.zeros(1)
    weights = phi(nodes) / phi(nodes).sum()
    if read > LARGE_READ:  # electrons are as good as normal
        roots = _root(np.maximum(means[:, None] + np.sqrt(means + read**2)[:, None] * nodes, floor), read)
        root_means, squares = roots @ weights, roots**2 @ weights
    else:
        counts = np.arange(largest + 15 * np.sqrt(largest))
        roots = _root(np.maximum(counts[:, None] + read * nodes, floor), read)
        log_factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 log 0
            log_powers = np.where(counts == 0, 0.0, counts * np.log(means)[:, None])
        law = np.exp(log_powers - means[:, None] - log_factorials)
        root_means, squares = law @ (roots @ weights), law @ (roots**2 @ weights)
    # Means that hardly leave the floor cannot be told: their roots are all the same.
    told = np.gradient(root_means, means) > LEAST_TOLD / np.sqrt(means + read**2 + 0.375)
    start = int(np.argmax(told))
    return MomentTable.of(*(each[start:] for each in (means, root_means, squares - root_means**2)))
