"""Large data of few bits as values of noise level 1, which are made when they are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, slabs
from ..noise.stabilisers import Scaling, Stabiliser
from .places import TILE_ENTRIES


@dataclass(frozen=True, eq=False)
class ConvertedValues:
    """Data divided by their noise level, less an offset. Indexing gives another view; `numpy.asarray` converts it.

    Values of single precision take 4 times as much as data of 8 bits. Tiles are converted in the cache.

    Attributes
    ----------
    y : ndarray
        The data.
    scaling : Scaling
        By one noise level.
    offset : ndarray
        Of one entry.
    """

    y: NDArray[Any]
    scaling: Scaling
    offset: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the data."""
        return self.y.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the values."""
        return np.dtype(np.float32)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: Any) -> ConvertedValues:
        return ConvertedValues(self.y[index], self.scaling, self.offset)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        out = self.scaling.forward(self.y[None, None, None, None]).reshape(self.y.shape)
        out -= self.offset.reshape(()).astype(out.dtype)
        return out if dtype is None else out.astype(dtype, copy=False)


def may_be_converted(stabiliser: Stabiliser, y: NDArray[Any]) -> bool:
    """Tell whether data, (channels, parts, *shape), can be stabilised part by part, and that saves memory.

    That holds for one channel of 8 or 16 bits and of more than one tile, all of the same noise level.
    """
    one = isinstance(stabiliser, Scaling) and stabiliser.scale.size == 1 and y.shape[:2] == (1, 1)
    large = y[0, 0].size > TILE_ENTRIES[y.ndim - 2]
    return one and large and y.dtype.itemsize <= 2 and stabiliser.forward(y[..., :1]).dtype == np.float32


def converted(stabiliser: Stabiliser, y: NDArray[Any], offset: Floats | None) -> tuple[Floats, Floats]:
    """Return values that are made when they are read, and their offset: their mean, unless it is given."""
    scaling = cast(Scaling, stabiliser)
    if offset is None:
        total = sum(float(scaling.forward(y[:, :, rows]).sum(dtype=np.float64)) for rows in slabs(y.shape[2:]))
        offset = np.full((1,) * y.ndim, total / math.prod(y.shape))
    # It serves as an array wherever parts are read.
    return cast(Floats, ConvertedValues(y, scaling, offset)), offset
