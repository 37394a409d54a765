"""Series whose noise depends on the signal: a transform makes it even, and its unbiased inverse leads back."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from ..._arrays import Floats
from ..._validate import Array
from ...noise.stabilisers import LocalNoise, Stabiliser
from .series import Series

__all__ = ["SeriesWayBack", "even_out", "local_levels"]

# Side of the boxes over which transformed values are averaged to tell their noise level, about that of patches. It
# trades the noise of the mean against its blur; the level changes by a tenth at most.
LOCAL_BOX = 5


@dataclass(frozen=True, eq=False)
class SeriesWayBack:
    """The way from transformed values, whose noise is even, back to the units of y.

    Attributes
    ----------
    stabiliser : Stabiliser
        The transform.
    scale : ndarray
        What y was divided by before, (*shape).
    """

    stabiliser: Stabiliser
    scale: Array

    def restored(self, values: Floats) -> Floats:
        """Return estimates in the units of y, (*shape, volumes)."""
        out = np.moveaxis(self.stabiliser.inverse(np.moveaxis(values, -1, 0)[:, None])[:, 0], 0, -1)
        return np.asarray(out * self.scale[..., None])

    def local_noise(self, values: Floats, error: Array) -> LocalNoise:
        """Return the noise around an estimate of one volume: its variance, and the weight of squared errors.

        `error` is the variance of the errors of transformed values, about, (*shape); here it does not matter.
        """
        found = _noise_around(self.stabiliser, values)
        return LocalNoise(found.variance, np.square(self.scale) * found.weight)

    def doubtful_weight(self, weight: Array) -> Array | float:
        """Return the part of the weights of squared errors that may be wrong by half."""
        return 0.0

    def level_map(self, variance: Array) -> Array:
        """Return the noise level to report, given the mean variance over the volumes in units of y, (*shape)."""
        return np.sqrt(variance)


def even_out(series: Series, stabiliser: Stabiliser, scale: Array) -> Series:
    """Return the series with even noise; y is divided by the scale first."""
    values = stabiliser.forward(np.moveaxis(series.values / scale[..., None], -1, 0)[:, None])[:, 0]
    return dataclasses.replace(series, values=np.where(series.valid[..., None], np.moveaxis(values, 0, -1), 0.0))


def local_levels(evened: Series, stabiliser: Stabiliser) -> Array:
    """Return the noise level of transformed values at local means, averaged over the volumes, (*shape)."""
    from scipy.ndimage import uniform_filter

    valid = evened.valid
    share = np.maximum(uniform_filter(valid.astype(float), LOCAL_BOX), 1e-9)
    total = np.zeros(valid.shape)
    for k in range(evened.values.shape[-1]):
        means = uniform_filter(np.where(valid, evened.values[..., k], 0.0), LOCAL_BOX) / share
        total += np.broadcast_to(_noise_around(stabiliser, means).variance, valid.shape)
    return np.asarray(np.sqrt(total / evened.values.shape[-1]))


def _noise_around(stabiliser: Stabiliser, values: Floats) -> LocalNoise:
    """Return the noise around transformed values of one volume."""
    return stabiliser.local_noise(values[None], 0, (slice(None),) * values.ndim)
