"""The divergence of any estimator, from its response to a random probe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import Floats
from .._threads import thread_map

__all__ = ["Response", "antithetic_responses", "divergence_ratio", "inner", "monte_carlo_divergence"]

# Bounds of a ratio of two divergences. One probe on few entries may give nonsense; a pilot that depends on the data
# adds at most a small multiple of the divergence for a given pilot.
LEAST_RATIO, LARGEST_RATIO = 0.5, 20.0


def inner(a: Floats, b: Floats) -> float:
    """Return the sum of ``a * b``, in double precision."""
    return float(np.einsum("i,i->", a.reshape(-1), b.reshape(-1), dtype=np.float64))


class Response(NamedTuple):
    """An output of an estimator: its mean at two points on both sides of the data, and its derivative between them."""

    mean: Floats
    derivative: Floats


def antithetic_responses(
    estimator: Callable[[Floats], Sequence[Floats]], y: Floats, direction: Floats, step: float
) -> list[Response]:
    """Return how each output of an estimator responds to a move along a direction.

    Parameters
    ----------
    estimator : callable
        Takes data of the shape of y, returns one or more arrays of that shape.
    y : ndarray
        The data.
    direction : ndarray
        The direction d, as y.
    step : float
        The derivative is ``(x(y + step d) - x(y - step d)) / (2 step)``. A small step misses jumps, a large one
        blurs. With d a draw of the noise, a jump shows in the entries within some step noise levels of it.

    Returns
    -------
    list of Response
        One per output.
    """
    moved = y.dtype.type(step) * direction
    ahead, behind = thread_map(estimator, [y + moved, y - moved])
    return [Response((a + b) / 2, (a - b) / (2 * step)) for a, b in zip(ahead, behind, strict=True)]


def monte_carlo_divergence(
    estimator: Callable[[Floats], Floats], y: Floats, probes: Sequence[Floats], step: float
) -> tuple[float, float]:
    """Estimate ``tr(Sigma dx/dy)``, jumps included, from draws of the noise.

    Parameters
    ----------
    estimator : callable
        Takes and returns arrays of the shape of y.
    y : ndarray
        The data.
    probes : sequence of ndarray
        Independent draws w of the noise, of covariance Sigma.
    step : float
        That of `antithetic_responses`.

    Returns
    -------
    value, stderr : float
        The mean of ``<w, dx/dw>`` over the probes, and its standard error; infinite for one probe.

    Notes
    -----
    ``E <w, J w> = tr(Sigma J)`` for w of covariance Sigma.

    References
    ----------
    S. Ramani, T. Blu, M. Unser, "Monte-Carlo SURE", IEEE Trans. Image Process. 17 (2008), doi:10.1109/TIP.2008.2001404.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=10_000)
    >>> value, stderr = monte_carlo_divergence(lambda z: 0.3 * z, y, rng.normal(size=(4, y.size)), step=0.1)
    >>> abs(value - 3000) < 4 * stderr
    True
    """
    found = [
        inner(probe, antithetic_responses(lambda z: (estimator(z),), y, probe, step)[0].derivative) for probe in probes
    ]
    stderr = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else np.inf
    return float(np.mean(found)), stderr


def divergence_ratio(probe: Floats, response: Floats, control: Floats) -> float:
    """Return ``<probe, response> / <probe, control>``, the factor by which a divergence differs from a known one.

    Both are responses to the same probe, so that most of its randomness cancels: the ratio varies far less than
    either product.
    """
    ratio = inner(probe, response) / max(inner(probe, control), 1e-300)
    return min(max(ratio, LEAST_RATIO), LARGEST_RATIO)
