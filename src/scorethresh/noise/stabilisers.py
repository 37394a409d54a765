"""Transforms after which the noise is the same everywhere, and the way back.

Arrays are (channels, parts, *shape); parts are the real and the imaginary one. A channel of None means that channels
were rotated into each other, so that only means over the channels make sense.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, cropped, working_precision
from .._validate import Array
from .clipping import MEAN_BOX
from .covariance import Covariance, White

# Noise levels up to this, and down to its inverse, fit into single precision with the values that they divide.
SINGLE_LEVELS = 1e15


class LocalNoise(NamedTuple):
    """The noise around an estimate.

    Its variance over that of the covariance, and the weight that turns squared errors to the units of y squared.
    """

    variance: Any
    weight: Any


class OwnVariances(NamedTuple):
    """The noise variance of entries of y in its own units.

    `unbiased` is a function of y that has it as its mean, whatever the signal is; `expected` is that at an estimate.
    """

    unbiased: Floats
    expected: Floats


class Moments(NamedTuple):
    """Means over entries of the noise variance and its square, over powers of `unit`, a typical noise level."""

    unit: float
    second: float
    fourth: float


class Stabiliser(abc.ABC):
    """What turns data into data with noise of one known covariance, and back.

    A subclass states `forward`, `inverse` and `slope`; the rest follows. `rotates` says whether channels may be
    rotated into each other afterwards: yes if the transform is linear.
    """

    rotates: ClassVar[bool] = False

    #: The noise covariance of stabilised values, of variance about 1.
    covariance: Covariance = White(1.0)
    #: The noise level that y is divided by; broadcasts against y.
    scale: Array = np.ones(1)
    #: The relative standard error of the noise level; 0 if it is given.
    level_error: float = 0.0
    #: Whether the inverse undoes clipping at the lower limit of the data.
    has_floor: ClassVar[bool] = False

    def level_at(self, means: Floats) -> Array:
        """Return the noise level in units of y where its mean is `means`; broadcasts against y."""
        return self.scale

    def may_be_constant(self, y: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return where constant regions, (*shape), may be noise all the same; None if nowhere."""
        return None

    def share_out_of_reach(self, y: NDArray[Any]) -> float:
        """Return the share of the entries of y that no signal with this noise makes."""
        return 0.0

    def limits_to_undo(self, limits: tuple[float, float]) -> tuple[float, float]:
        """Return clip limits of the data, but the lower one infinite if the inverse undoes clipping there."""
        return -math.inf if self.has_floor else limits[0], limits[1]

    def crop(self, place: tuple[slice, ...]) -> Stabiliser:
        """Return the stabiliser of a part of the data."""
        return self

    def curve_error(self, moments: Moments) -> float:
        """Return the relative standard error of a predicted error because stabilised noise is only roughly normal.

        The moments are those of the data.
        """
        return 0.0

    @abc.abstractmethod
    def forward(self, y: NDArray[Any]) -> Floats:
        """Return stabilised values."""

    @abc.abstractmethod
    def inverse(self, values: Floats) -> Floats:
        """Return the mean of y of which `values` are the stabilised means."""

    @abc.abstractmethod
    def slope(self, values: Floats) -> Floats:
        """Return the derivative of `inverse`."""

    def local_noise(self, values: Floats, channel: int | None, tile: tuple[slice, ...]) -> LocalNoise:
        """Return the noise around an estimate (parts, *tile) of stabilised values."""
        return LocalNoise(1.0, np.square(self.slope(values[0].astype(np.float64))))

    @property
    def has_own_variances(self) -> bool:
        """Whether the noise variances of y are known, not only those of stabilised values.

        If not, the risk is that of stabilised values, weighted by the slope. It is biased where that is bent.
        """
        return False

    def own_variances(self, y: Floats, means: Floats) -> OwnVariances:
        """Return the noise variances of y, whose estimate is `means`, if it has them."""
        raise NotImplementedError

    def error_weights(self, y: NDArray[Any], missing: NDArray[np.bool_] | None, channel: int | None) -> Floats | None:
        """Return how squared errors of stabilised values count in units of y: (*shape), None if all count alike.

        A common factor does not matter, if it is the same for all parts of the data. Far from 1, single precision ends.
        """
        from scipy.ndimage import uniform_filter

        means = y[:, 0].mean(axis=0, dtype=np.float32)
        known = means if missing is None else np.where(missing, np.float32(0), means)
        local: Floats = np.square(self.slope(self.forward(uniform_filter(known, MEAN_BOX))))
        return local.astype(np.float32)

    def moments(self, y: NDArray[Any], valid: NDArray[np.bool_] | None) -> Moments:
        """Return moments of the noise in valid entries."""
        known = y if valid is None else y[:, :, valid]
        square = np.square(self.slope(self.forward(known)))
        return Moments(1.0, float(square.mean()), float(np.square(square).mean()))


@dataclass(frozen=True, eq=False)
class Scaling(Stabiliser):
    """Division by the noise level: one number, one per channel, or a map."""

    scale: Array = field()
    covariance: Covariance = Stabiliser.covariance
    level_error: float = 0.0
    rotates: ClassVar[bool] = True

    @property
    def varies(self) -> bool:
        """Whether the noise level is a map."""
        return self.scale.size > len(self.scale)

    def crop(self, place: tuple[slice, ...]) -> Scaling:
        """Return the division by the noise level of a part of the data."""
        return Scaling(cropped(self.scale, place), self.covariance, self.level_error) if self.varies else self

    def forward(self, y: NDArray[Any]) -> Floats:
        """Return ``y / scale``, in single precision if y is of 16 bits or single precision itself."""
        dtype = self._precision(working_precision(y.dtype))
        out: Floats = y.astype(dtype, order="C")  # sums depend on the layout, by rounding
        out /= self.scale.astype(dtype)
        return out

    def inverse(self, values: Floats) -> Floats:
        """Return ``values * scale``."""
        out: Floats = values * self.scale.astype(self._precision(values.dtype))
        return out

    def slope(self, values: Floats) -> Floats:
        """Return the noise level."""
        return self.scale

    def local_noise(self, values: Floats, channel: int | None, tile: tuple[slice, ...]) -> LocalNoise:
        """Return the noise around an estimate: its variance is the same everywhere."""
        weight: Any = self._squared(channel)
        return LocalNoise(1.0, cropped(weight, tile) if self.varies else float(weight.mean()))

    def error_weights(self, y: NDArray[Any], missing: NDArray[np.bool_] | None, channel: int | None) -> Floats | None:
        """Return the squared noise level over its mean; None if it is the same everywhere."""
        if not self.varies:
            return None
        squared = self._squared(channel)
        weights: Floats = np.broadcast_to(squared / squared.mean(), y.shape[2:]).astype(np.float32)
        return weights

    def moments(self, y: NDArray[Any], valid: NDArray[np.bool_] | None) -> Moments:
        """Return moments of the noise in valid entries."""
        unit = float(self.scale.max())
        scale = self.scale / unit
        if valid is not None and self.varies:
            scale = np.broadcast_to(scale, (*scale.shape[:2], *valid.shape))[:, :, valid]
        return Moments(unit, float((scale**2).mean()), float((scale**4).mean()))

    def _precision(self, dtype: Any) -> Any:
        """Return the dtype, or double precision if noise levels need it."""
        fits = self.scale.min() >= 1 / SINGLE_LEVELS and self.scale.max() <= SINGLE_LEVELS
        return dtype if fits else np.float64

    def _squared(self, channel: int | None) -> Array:
        """Return the squared noise level of a channel, (*shape) or of one entry; its mean over channels if None."""
        square = np.square(self.scale[:, 0])
        out: Array = square.mean(axis=0) if channel is None or len(square) == 1 else square[channel]
        return out


@dataclass(frozen=True)
class Transformed(Stabiliser):
    """A stabiliser made of three functions: there, back, and the derivative of the way back."""

    there: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]
    back_slope: Callable[[Floats], Floats]

    def forward(self, y: NDArray[Any]) -> Floats:
        """Return stabilised values."""
        return self.there(y)

    def inverse(self, values: Floats) -> Floats:
        """Return means in units of y."""
        return self.back(values)

    def slope(self, values: Floats) -> Floats:
        """Return the derivative of `inverse`."""
        return self.back_slope(values)
