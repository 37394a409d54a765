"""A checked inverse problem, and what goes in and comes out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import Floats, as_integers
from ..risk.probe_terms import inner
from .channels import PerChannel
from .plug_and_play import FIRST_LEVEL, PENALTY
from .prior import Prior

# The largest magnitude that y may have, and the inverse of the smallest: squares beyond leave the range of doubles.
LARGEST = 1e150

__all__ = ["Problem", "determined_share", "read_data", "written"]


@dataclass(frozen=True, eq=False)
class Problem:
    """A checked problem, in double precision, channels first."""

    a: PerChannel
    data: Floats
    sigma: float
    x0: Floats | None
    prior: Prior
    steps: int
    last_level: float

    @property
    def x_sigma(self) -> float:
        """The noise level in units of x."""
        return self.sigma / self.a.gain

    @property
    def complex_domain(self) -> bool:
        """Whether x is complex."""
        return np.iscomplexobj(self.data) and not self.a.real

    def start(self, data: Floats) -> Floats:
        """Return the first iterate: that of the user, or what the data suggest."""
        return self.a.first_guess(data) if self.x0 is None else self.x0

    def data_range(self) -> float:
        """Return the range of the first iterate, of the part where it is wider."""
        x = self.a.visible(self.start(self.data))
        return float(max(np.ptp(x.real), np.ptp(x.imag)))


def read_data(y: Any, channel_axis: int | None) -> NDArray[Any]:
    """Return y as (channels, *shape), floats; refuse what is no array of numbers."""
    if isinstance(y, np.ma.MaskedArray):
        msg = "y is a masked array. Pass its data and the mask as operator: restore(y.data, Mask(~y.mask))."
        raise TypeError(msg)
    a = _validate.as_array(y)
    if a.dtype.kind == "c":
        _validate.data(a.real)
        values = a.astype(np.complex64 if a.dtype == np.complex64 else np.complex128)
    else:
        values = _validate.data(a).astype(np.float32 if a.dtype == np.float32 else np.float64)
    _check_range(values)
    if channel_axis is None:
        return values[None]
    whole = isinstance(channel_axis, int | np.integer) and not isinstance(channel_axis, bool)
    if not whole or not -a.ndim <= channel_axis < a.ndim:
        msg = f"channel_axis must be an axis of y, which has {a.ndim}, got {channel_axis!r}. For the last axis: -1."
        raise ValueError(msg)
    return np.moveaxis(values, channel_axis, 0)


def _check_range(values: NDArray[Any]) -> None:
    """Refuse values whose squares leave the range of doubles; NaN and infinity are left to who knows the operator."""
    size = np.abs(values)
    largest = float(size.max(initial=0.0, where=np.isfinite(size)))
    if largest and not 1 / LARGEST <= largest <= LARGEST:
        msg = (
            f"the largest magnitude in y is {largest:.3g}, beyond the range from {1 / LARGEST:g} to {LARGEST:g} in "
            f"which squares can be computed. Rescale y and sigma: divide them by {largest:.0e}."
        )
        raise ValueError(msg)


def written(x: Floats, dtype: np.dtype[Any], channel_axis: int | None, *, integers: bool) -> NDArray[Any]:
    """Return the estimate with the precision of y, and as integers if y holds some and x has its units."""
    out = x[0] if channel_axis is None else np.moveaxis(x, 0, channel_axis)
    if dtype.kind in "iu" and integers:
        return as_integers(out, dtype)
    if dtype in (np.float32, np.complex64):
        return out.astype(np.complex64 if np.iscomplexobj(out) else np.float32)
    return np.ascontiguousarray(out)


def determined_share(problem: Problem) -> float:
    """Return ``tr(A' A (A' A + penalty)^-1) / n``, at the penalty of the first step, from one random probe."""
    a = problem.a.a
    rng = np.random.default_rng(0)
    probe: Floats = rng.normal(size=a.shape)
    if problem.complex_domain:
        probe = probe + 1j * rng.normal(size=a.shape)
    spread = max(FIRST_LEVEL * problem.data_range(), problem.x_sigma)
    kept = a.proximal(a.forward(probe), np.zeros_like(probe), PENALTY * (problem.sigma / spread) ** 2)
    return min(max(inner(probe, kept) / inner(probe, probe), 0.0), 1.0)
