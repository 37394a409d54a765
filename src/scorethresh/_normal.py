"""The standard normal density."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._validate import Array


def phi(u: Any) -> Array:
    """Return the standard normal density at `u`."""
    density: Array = np.exp(-0.5 * np.square(np.clip(u, -40, 40))) / np.sqrt(2 * np.pi)  # beyond 40 it is 0 anyway
    return density
