"""One operator for every channel of the data, and the data as the operator takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .linear_map import LinearMap

__all__ = ["PerChannel"]


class PerChannel(LinearMap):
    """A map that is applied to every channel; arrays have a leading axis of channels."""

    def __init__(self, a: LinearMap, channels: int) -> None:
        self.a, self.shape, self.data_shape, self.real = a, (channels, *a.shape), (channels, *a.data_shape), a.real
        self.gain = a.gain

    def _each(self, function: Callable[..., NDArray[Any]], *arrays: NDArray[Any]) -> NDArray[Any]:
        return np.stack([function(*some) for some in zip(*arrays, strict=True)])

    def gather(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the data among the numbers of every channel."""
        return self._each(self.a.gather, y)

    def spread(self, data: Floats) -> NDArray[Any]:
        """Return data in the shape of the user's array."""
        return self._each(self.a.spread, data)

    def forward(self, x: Floats) -> Floats:
        """Return ``A x`` of every channel."""
        return self._each(self.a.forward, x)

    def adjoint(self, y: Floats) -> Floats:
        """Return ``A' y`` of every channel."""
        return self._each(self.a.adjoint, y)

    def visible(self, x: Floats) -> Floats:
        """Return the part of every channel that the user wants."""
        return self._each(self.a.visible, x)

    def embed(self, x: Floats) -> Floats:
        """Return an x whose visible part is given."""
        return self._each(self.a.embed, x)

    def first_guess(self, data: Floats) -> Floats:
        """Return an x to start from."""
        return self._each(self.a.first_guess, data)

    def noise_level(self, data: Floats) -> float | None:
        """Return the root mean square of the levels of the channels."""
        levels = [self.a.noise_level(channel) for channel in data]
        return None if None in levels else float(np.sqrt(np.mean(np.square(np.array(levels, float)))))

    def proximal(self, data: Floats, z: Floats, penalty: float, start: Floats | None = None) -> Floats:
        """Return ``argmin ||y - A x||^2 + penalty ||x - z||^2`` of every channel."""
        starts = z if start is None else start
        return self._each(lambda y, near, first: self.a.proximal(y, near, penalty, first), data, z, starts)
