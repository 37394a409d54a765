"""A linear map between arrays of known shapes, and what can be computed with any such map."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from ..risk.probe_terms import inner

__all__ = ["LinearMap", "conjugate_gradients", "mean_gain", "operator_norm"]

# Conjugate gradients stop when the residual has shrunk by this factor, or after so many steps.
CG_TOLERANCE = 1e-3
CG_STEPS = 100

# Steps of the power iteration. The norm is too low by a few percent if the largest singular values are close, which
# leaves gradient steps stable: they are stable up to a factor of two.
POWER_STEPS = 30
# Probes of the mean gain. With one, that of a blur of 100 x 100 entries is off by a few percent, which changes nothing.
GAIN_PROBES = 4


class LinearMap(abc.ABC):
    """The operator A for one shape of data.

    Attributes
    ----------
    shape : tuple of int
        The shape of x. It may exceed what the user wants to see; `visible` cuts that out.
    data_shape : tuple of int
        The shape of ``A x``.
    real : bool
        Whether x is real though data are complex.
    gain : float
        The unit of y over that of x: noise of level sigma in y stands for one of level ``sigma / gain`` in x.
    """

    shape: tuple[int, ...]
    data_shape: tuple[int, ...]
    real: bool = False
    gain: float = 1.0

    @abc.abstractmethod
    def forward(self, x: Floats) -> Floats:
        """Return ``A x``."""

    @abc.abstractmethod
    def adjoint(self, y: Floats) -> Floats:
        """Return ``A' y``, A' the conjugate transpose."""

    def gather(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the data among the numbers of the user's array y, in the shape `data_shape`."""
        return y

    def spread(self, data: Floats) -> NDArray[Any]:
        """Return data in the shape of the user's array."""
        return data

    def visible(self, x: Floats) -> Floats:
        """Return the part of x that the user wants."""
        return x

    def embed(self, x: Floats) -> Floats:
        """Return an x whose visible part is given."""
        return x

    def first_guess(self, data: Floats) -> Floats:
        """Return an x to start from: ``A' y``, scaled to fit the data."""
        back = self.adjoint(data)
        ahead = self.forward(back)
        energy = inner(ahead, ahead)
        return back * (inner(back, back) / energy) if energy else back

    def noise_level(self, data: Floats) -> float | None:
        """Return the noise level read off the data, None if they do not tell."""
        return None

    def normal(self, x: Floats) -> Floats:
        """Return ``A' A x``."""
        return self.adjoint(self.forward(x))

    def precondition(self, penalty: float) -> Callable[[Floats], Floats] | None:
        """Return an approximation of ``(A' A + penalty)^-1``, if there is a good one."""
        return None

    def proximal(self, data: Floats, z: Floats, penalty: float, start: Floats | None = None) -> Floats:
        """Return ``argmin ||y - A x||^2 + penalty ||x - z||^2``.

        Parameters
        ----------
        data : ndarray
            y.
        z : ndarray
            What x shall be close to.
        penalty : float
            How much so.
        start : ndarray, optional
            An approximate solution, for maps that iterate.

        Notes
        -----
        The solution is ``z + (A' A + penalty)^-1 A' (y - A z)``: written as a correction of z, it does not lose digits
        if the penalty is small.
        """
        move = self.adjoint(data - self.forward(z))
        return z + conjugate_gradients(
            lambda x: self.normal(x) + penalty * x,
            move,
            start=None if start is None else start - z,
            precondition=self.precondition(penalty),
        )


def conjugate_gradients(
    apply: Callable[[Floats], Floats],
    right: Floats,
    *,
    start: Floats | None = None,
    precondition: Callable[[Floats], Floats] | None = None,
    tolerance: float = CG_TOLERANCE,
    steps: int = CG_STEPS,
) -> Floats:
    """Solve ``apply(x) = right`` for a positive definite linear function.

    Parameters
    ----------
    apply : callable
        Takes and returns arrays like `right`, real or complex.
    right : ndarray
        The right-hand side.
    start : ndarray, optional
        Where to start; 0 by default.
    precondition : callable, optional
        An approximate inverse of `apply`.
    tolerance : float
        Stop when the norm of the residual is below this share of that of `right`.
    steps : int
        Stop after so many steps at the latest.

    References
    ----------
    M. R. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear systems", J. Res. Natl. Bur. Stand.
    49 (1952), doi:10.6028/jres.049.044.
    """
    x = np.zeros_like(right) if start is None else start.astype(right.dtype)
    residual = right.copy() if start is None else right - apply(x)
    enough = tolerance**2 * inner(right, right)
    direction = np.zeros_like(right)
    last = 1.0
    for _ in range(steps):
        if inner(residual, residual) <= enough:
            break
        turned = residual if precondition is None else precondition(residual)
        gain = inner(residual, turned)
        direction = turned + (gain / last) * direction if direction.any() else turned.copy()
        applied = apply(direction)
        length = gain / inner(direction, applied)
        x += length * direction
        residual -= length * applied
        last = gain
    return x


def random_array(a: LinearMap, rng: np.random.Generator, *, complex_domain: bool) -> Floats:
    """Return white noise in the shape of x."""
    return rng.normal(size=a.shape) + (1j * rng.normal(size=a.shape) if complex_domain else 0.0)


def mean_gain(a: LinearMap, *, complex_domain: bool = False, seed: int = 0) -> float:
    """Return the root mean square of the singular values of A, from random probes.

    Notes
    -----
    It serves as `LinearMap.gain` of operators of other packages. It was better than the largest singular value by 0.02
    to 2.3 dB for Radon transforms of 30 and 90 angles (camera, coins and astronaut at 96 x 96), and by 0.1 to 0.2 dB
    for blurs (the first two).
    """
    rng = np.random.default_rng(seed)
    probes = [random_array(a, rng, complex_domain=complex_domain) for _ in range(GAIN_PROBES)]
    seen = [a.forward(probe) for probe in probes]
    return math.sqrt(sum(inner(y, y) for y in seen) / sum(inner(x, x) for x in probes))


def operator_norm(a: LinearMap, *, complex_domain: bool = False, seed: int = 0) -> float:
    """Return the largest singular value of A, by power iteration from a random start."""
    x = random_array(a, np.random.default_rng(seed), complex_domain=complex_domain)
    value = 0.0
    for _ in range(POWER_STEPS):
        x /= math.sqrt(inner(x, x))
        x = a.normal(x)
        value = math.sqrt(inner(x, x))
        if not value:
            return 0.0
    return math.sqrt(value)
