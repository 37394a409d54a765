"""The noise level."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _validate
from ._validate import Array

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
    y = y.astype(np.float64)
    if _validate.choice("domain", domain, _DOMAINS):
        if max(y.shape) < _HIGH_PASS.size:
            msg = f"y is too small to tell noise from signal, with shape {y.shape}. Pass sigma."
            raise ValueError(msg)
        for axis in range(y.ndim):
            if y.shape[axis] >= _HIGH_PASS.size:
                y = _detail(y, axis)
        y = y[y != 0]
    sigma = float(np.median(np.abs(y))) / _MEDIAN if y.size else 0.0
    if not sigma > 0:
        msg = (
            "the noise level of y comes out as 0: at least half of the entries looked at are 0. Pass sigma, or "
            "leave constant regions out of y."
        )
        raise ValueError(msg)
    return sigma


def _detail(y: Array, axis: int) -> Array:
    """Return the finest detail along an axis, every other entry, where the filter lies inside of y.

    The filter is applied to differences, so that the detail of constant regions is exactly 0.
    """
    y = np.moveaxis(y, axis, -1)
    step = y[..., 1:] - y[..., :-1]
    count = (y.shape[-1] - _HIGH_PASS.size) // 2 + 1
    a, b, c = (step[..., j : j + 2 * count - 1 : 2] for j in range(3))
    # The taps add up to 0: g0 y0 + ... + g3 y3 = -g0 (y1 - y0) - (g0 + g1)(y2 - y1) + g3 (y3 - y2).
    out: Array = -_HIGH_PASS[0] * a - (_HIGH_PASS[0] + _HIGH_PASS[1]) * b + _HIGH_PASS[3] * c
    return np.moveaxis(out, -1, axis)
