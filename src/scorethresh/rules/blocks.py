"""Rules on blocks of entries: a rule on entries, applied to the norm of the block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .base import Rule, entry_rule

__all__ = ["Blocks", "Radial", "as_blocks"]


@dataclass(frozen=True)
class Radial(Rule):
    """A rule g applied to the norm r of a block of entries y: the block becomes ``g(r) y / r``.

    All members are functions of the norm.

    Parameters
    ----------
    rule : Rule
        The rule g on the norm.
    size : int
        The number of entries in a block. Complex numbers are blocks of 2.

    Notes
    -----
    Away from the jumps the divergence of a block of d entries is ``g'(r) + (d - 1) g(r) / r``. A jump of g adds its
    height times the density of the norms at its position, as for entries.

    Examples
    --------
    >>> from scorethresh import Hard
    >>> rule = Radial(Hard(), 2)
    >>> rule(np.array([1.0, 5.0]), 3.0), rule.derivative(np.array([1.0, 5.0]), 3.0)
    (array([0., 5.]), array([0., 2.]))
    """

    rule: Rule
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", entry_rule(self.rule, Radial))
        if not (isinstance(self.size, int | np.integer) and self.size >= 1):
            msg = f"size must be a whole number of at least 1, got {self.size!r}. It is the length of a block."
            raise ValueError(msg)

    @property
    def block_size(self) -> int:  # type: ignore[override]
        """The number of entries in a block."""
        return int(self.size)

    @property
    def polynomial_width(self) -> float:  # type: ignore[override]
        """That of the rule, but at most the default: the divergence contains ``1 / r``."""
        return min(self.rule.polynomial_width, Rule.polynomial_width)

    def __call__(self, y: Any, threshold: Any) -> Any:
        """Return the norms after thresholding, from the norms `y`."""
        return self.rule(y, threshold)

    def derivative(self, y: Any, threshold: Any) -> NDArray[np.float64]:
        """Return the divergence of each block at the norms `y`, away from the jumps."""
        r = np.asarray(y, dtype=np.float64)
        slope = np.asarray(self.rule.derivative(r, threshold), dtype=np.float64)
        # At r = 0 the ratio tends to the slope.
        ratio = np.divide(self.rule(r, threshold), r, out=slope.copy(), where=r > 0)
        divergence: NDArray[np.float64] = slope + (self.size - 1) * ratio
        return divergence

    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return (position, height) of each jump of the rule on the norm."""
        return self.rule.jumps(threshold)

    def kinks(self, threshold: Any) -> Sequence[Any]:
        """Return the norms at which the rule is not smooth."""
        return self.rule.kinks(threshold)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Data whose entries are decided on together: along an axis, and real and imaginary parts.

    Attributes
    ----------
    y : ndarray
        The data.
    axis : int or None
        The axis of the blocks. None if every complex number is a block of its own.
    """

    y: NDArray[Any]
    axis: int | None

    @property
    def size(self) -> int:
        """The number of entries in a block, real and imaginary parts counted."""
        length = 1 if self.axis is None else self.y.shape[self.axis]
        return int(length * (1 + np.iscomplexobj(self.y)))

    @property
    def norms(self) -> NDArray[np.float64]:
        """The norm of every block."""
        magnitudes: NDArray[np.float64] = np.abs(self.y).astype(np.float64)
        return magnitudes if self.axis is None else np.hypot.reduce(magnitudes, axis=self.axis)

    def apply(self, rule: Rule, threshold: float) -> NDArray[Any]:
        """Return the data with every block scaled as the rule scales its norm, in the precision of the data."""
        norms = self.norms
        # The rule returns 0 or more; a block of norm 0 stays.
        factor = np.divide(rule(norms, threshold), norms, out=np.zeros_like(norms), where=norms > 0)
        kept = factor if self.axis is None else np.expand_dims(factor, self.axis)
        single = self.y.dtype in (np.float32, np.complex64)
        out: NDArray[Any] = self.y * kept.astype(np.float32 if single else np.float64)
        return out


def as_blocks(y: Any, axis: Any) -> Blocks:
    """Return data as blocks along an axis, checked; without an axis y must be complex."""
    a = _validate.as_array(y)
    # Their parts are checked as any real data are.
    whole = a.dtype.kind != "c" or isinstance(y, np.ma.MaskedArray)
    _validate.data(y if whole else np.stack([a.real, a.imag]))
    if axis is not None:
        axis = _validate.whole(axis, "block_axis", -a.ndim, f" y has {a.ndim} axes.")
        if axis >= a.ndim:
            msg = f"block_axis must be below {a.ndim}, the number of axes of y, got {axis}."
            raise ValueError(msg)
        if a.ndim == 1:
            msg = (
                f"y has one axis, so block_axis={axis} makes it a single block, which tells nothing. Pass blocks as "
                "rows, y.reshape(-1, size), with block_axis=-1."
            )
            raise ValueError(msg)
    bad = a.size - int(np.isfinite(a).sum())
    if bad:
        msg = f"y holds {bad} NaN or infinite entries out of {a.size}. Leave their blocks out, or fill them in."
        raise ValueError(msg)
    return Blocks(a if a.dtype.kind in "fc" else a.astype(np.float64), axis)
