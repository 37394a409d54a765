"""A function of the data about which nothing is known, with its results checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Floats

__all__ = ["BlackBox"]

# How far two results for the same data may differ, over the step times the noise level: by this share in the root mean
# square. It moves the divergence by 1% of a standard deviation of the noise's energy. Sums in threads differ by far
# less, random numbers by far more.
REPEAT_TOLERANCE = 0.01


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A user's function of the data.

    Attributes
    ----------
    function : callable
        Takes data, returns an array of their shape.
    name : str
        What errors call it.
    """

    function: Callable[[Floats], Any]
    name: str = "estimator"

    def __call__(self, y: Floats) -> Floats:
        """Return the function of a copy of y, an array of floats of the same shape; refuse anything else."""
        try:
            found = self.function(y.copy())
        except Exception as error:
            error.add_note(f"It was raised by {self.name}, called with an array of shape {y.shape}.")
            raise
        out: Floats = np.asarray(found)
        if out.shape != y.shape:
            msg = (
                f"{self.name} returned {_described(out)} for data of shape {y.shape}. It must return an estimate of "
                "the shape of the data: reshape, crop or pad it inside of the function."
            )
            raise ValueError(msg)
        if out.dtype.kind not in "fiub" + np.iscomplexobj(y) * "c":
            msg = f"{self.name} returned dtype {out.dtype} for data of dtype {y.dtype}. It must return real numbers."
            raise TypeError(msg)
        if out.dtype.kind not in "fc":
            out = out.astype(np.float64)
        bad = out.size - int(np.isfinite(out).sum())
        if bad:
            msg = (
                f"{self.name} returned {bad} NaN or infinite entries out of {out.size}. Leave this parameter out, or "
                "replace them inside of the function."
            )
            raise ValueError(msg)
        return out

    def check_repeatable(self, y: Floats, step: Any) -> None:
        """Raise if two calls with the same data differ by more than rounding; the step of a probe is in units of y."""
        difference = np.abs(self(y) - self(y)) / step
        if np.sqrt(np.mean(np.square(difference))) > REPEAT_TOLERANCE:
            msg = (
                f"{self.name} returned another result when it was called again with the same data (they differ by up "
                f"to {difference.max():.3g} steps). Fix the seed of its random numbers, or average over them."
            )
            raise ValueError(msg)


def _described(out: Floats) -> str:
    return f"shape {out.shape}" if out.dtype != object else "something that is no array of numbers"
