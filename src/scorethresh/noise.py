"""The noise level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _validate

__all__ = ["estimate_sigma"]

# Daubechies' high-pass filter of four taps: unit energy, and blind to constants and slopes.
_HIGH_PASS = np.array([1 - 3**0.5, -(3 - 3**0.5), 3 + 3**0.5, -(1 + 3**0.5)]) / 32**0.5

# The median of |N(0, 1)|.
_MEDIAN = 0.6744897501960817

# Whether a wavelet transform is needed.
_DOMAINS = {"coefficients": False, "samples": True}


def estimate_sigma(y: Any, *, domain: str | None = None) -> float:
    """Estimate the standard deviation of white noise, robustly against the signal under it.

    Parameters
    ----------
    y : array_like
        Noisy coefficients, or a noisy signal, image or volume.
    domain : {"coefficients", "samples"}, optional
        ``"coefficients"``: most entries are noise around zero, and the estimate is the median of ``|y|`` over 0.6745.
        ``"samples"``: y is smooth, and the estimate is that of its finest wavelet band (Daubechies 2, detail along
        every axis), without zeros, which come from constant regions. By default a vector is taken to hold
        coefficients, an array of two or more dimensions samples: for a one-dimensional signal say
        ``domain="samples"``.

    Returns
    -------
    float
        In units of y. Signal in the entries used makes it too large: by 6% if 5% of them are far from zero.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> print(round(estimate_sigma(rng.normal(0.0, 3.0, 10_000)), 1))
    3.0
    >>> image = np.add.outer(np.arange(128.0), np.arange(128.0))
    >>> print(round(estimate_sigma(image + rng.normal(0.0, 3.0, image.shape)), 1))
    3.0
    """
    y = _validate.data(y)
    _validate.finite(y)
    if domain is None:
        domain = "coefficients" if y.ndim == 1 else "samples"
    if _validate.choice("domain", domain, _DOMAINS):
        floor = 16 * np.finfo(y.dtype).eps * np.abs(y).max() if y.dtype.kind == "f" else 0.0
        for axis in range(y.ndim):
            if y.shape[axis] >= _HIGH_PASS.size:
                y = _detail(y, axis)
        y = y[np.abs(y) > floor]
    sigma = float(np.median(np.abs(y))) / _MEDIAN if y.size else 0.0
    if not sigma > 0:
        msg = (
            "the noise level of y comes out as 0: at least half of the entries looked at are 0. Pass sigma, or "
            "leave constant regions out of y."
        )
        raise ValueError(msg)
    return sigma


def _detail(y: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return the finest detail along an axis, every other entry, where the filter lies inside of y."""
    y = np.moveaxis(y, axis, -1)
    count = (y.shape[-1] - _HIGH_PASS.size) // 2 + 1
    taps = [g * y[..., j : j + 2 * count - 1 : 2] for j, g in enumerate(_HIGH_PASS.tolist())]
    return np.moveaxis(taps[0] + taps[1] + taps[2] + taps[3], -1, axis)
