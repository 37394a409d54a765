"""The orthonormal discrete cosine transform as a matrix."""

from __future__ import annotations

import functools

import numpy as np

from .._validate import Array


@functools.cache
def dct_matrix(size: int) -> Array:
    """Return the orthonormal DCT-II of `size` entries, one frequency per row."""
    k, j = np.mgrid[:size, :size]
    out: Array = np.cos(np.pi * (j + 0.5) * k / size) * np.sqrt(np.where(k == 0, 1, 2) / size)
    return out
