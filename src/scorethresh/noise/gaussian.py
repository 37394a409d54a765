"""Gaussian noise in the units of the data: draws of it, and data that hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import Floats
from .._validate import Array
from .clipping import MEAN_BOX
from .covariance import Covariance
from .named import as_noise
from .stabilisers import Scaling, Stabiliser

__all__ = ["GaussianNoise", "Observed", "float_data", "observe"]

# Data are often made with seed 0. Draws must not be their noise, so every seed is mixed with this number.
STREAM = 20130522


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Noise of covariance ``Sigma = S C S``: S a level per entry, C a covariance of unit variance.

    Attributes
    ----------
    scale : ndarray
        The levels, in units of y (of one part, if y is complex); broadcasts against y.
    unit : Covariance
        C.
    """

    scale: Array
    unit: Covariance = Stabiliser.covariance

    def draws(self, like: Floats, count: int, seed: int) -> Iterator[Floats]:
        """Yield independent draws with the shape and dtype of `like`, always the same ones for a seed."""
        rng = np.random.default_rng([STREAM, seed])
        for _ in range(count):
            parts = self.unit.sample((1 + np.iscomplexobj(like), *like.shape), rng)
            drawn = parts[0] + 1j * parts[1] if len(parts) == 2 else parts[0]
            yield (self.scale * drawn).astype(like.dtype)

    def times(self, values: Floats) -> Floats:
        """Return ``Sigma values``."""
        out: Floats = self.scale * self.unit.times(self.scale * values)
        return out

    def energy(self, like: Floats, weights: Floats | None = None) -> float:
        """Return ``tr(W Sigma)`` for data like `like` and weights W: the mean of ``w' W w``."""
        per_entry = np.broadcast_to(np.square(self.scale), like.shape)
        total = per_entry.sum() if weights is None else (per_entry * weights).sum()
        return float(total * self.unit.variance * (1 + np.iscomplexobj(like)))

    def energy_variance(self, like: Floats, weights: Floats | None = None) -> float:
        """Return ``2 tr(W Sigma W Sigma)``, the variance of ``w' W w``; close to it if levels and noise vary both."""
        squares = np.square(np.square(self.scale) * (1.0 if weights is None else weights))
        total = np.broadcast_to(squares, like.shape).sum()
        return float(2 * total * self.unit.mean_squared_power * (1 + np.iscomplexobj(like)))


class Observed(NamedTuple):
    """Data with Gaussian noise, and the way back to the units of y.

    Attributes
    ----------
    values : ndarray
        y itself, or stabilised values if the noise depends on the signal.
    noise : GaussianNoise
        The noise in `values`.
    weights : ndarray or None
        What turns squared errors of `values` to the units of y squared. None if they are in these units.
    restore : callable
        Turns an estimate of the mean of `values` to the units of y.
    """

    values: Floats
    noise: GaussianNoise
    weights: Floats | None
    restore: Callable[[Floats], Floats]


def float_data(y: Any) -> Floats:
    """Return `y` as floats, real or complex, single precision kept; refuse what is empty or not finite."""
    a = np.asarray(y)
    if a.dtype.kind == "c" and not isinstance(y, np.ma.MaskedArray):
        single = a.dtype == np.complex64
        parts = _validate.data(np.stack([a.real, a.imag]))
        _validate.finite(parts)
        return a.astype(np.complex64 if single else np.complex128)
    a = _validate.data(y)
    _validate.finite(a)
    return a.astype(np.float32 if a.dtype == np.float32 else np.float64)


def observe(y: Any, noise: Any, sigma: Any) -> Observed:
    """Return data with Gaussian noise of a known covariance.

    Parameters
    ----------
    y : array_like
        The data, real or complex.
    noise, sigma
        As in `denoise`: a name, a `NoiseModel` or a power spectrum; a level, or one per entry. What is not given is
        estimated.
    """
    values = float_data(y)
    parts = np.stack([values.real, values.imag]) if np.iscomplexobj(values) else values[None]
    laid_out: NDArray[Any] = parts[None]
    stabiliser = as_noise(noise, sigma).laid_out(laid_out, None).measure(laid_out, None)
    if stabiliser is None:
        msg = "y holds no noise: its estimated level is 0. If y is noisy, pass sigma."
        raise ValueError(msg)
    if isinstance(stabiliser, Scaling):
        return Observed(values, GaussianNoise(stabiliser.scale[0, 0], stabiliser.covariance), None, lambda x: x)
    return _stabilised(laid_out, stabiliser)


def _stabilised(y: NDArray[Any], stabiliser: Stabiliser) -> Observed:
    """Return stabilised values; variance and slope are those at a local mean."""
    from scipy.ndimage import uniform_filter

    values = stabiliser.forward(y)[0, 0]
    around = stabiliser.local_noise(uniform_filter(values, MEAN_BOX)[None], 0, (slice(None),) * values.ndim)
    scale = np.sqrt(np.asarray(around.variance, np.float64))
    return Observed(
        values,
        GaussianNoise(scale, stabiliser.covariance),
        np.broadcast_to(np.asarray(around.weight, np.float64), values.shape),
        lambda x: stabiliser.inverse(x[None, None])[0, 0],
    )
