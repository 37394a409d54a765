"""Rules that bend everywhere above the threshold: garrote and bridge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .base import Odd

__all__ = ["Bridge", "Garrote"]

# Entries beyond this many thresholds: the bridge rule shrinks them by less than rounding.
UNSHRUNK_BEYOND = 1e17


@dataclass(frozen=True)
class Garrote(Odd):
    """The non-negative garrote: ``y - threshold^2 / y`` above the threshold, zero below.

    See Also
    --------
    Firm, Scad : Other continuous rules that shrink large entries less than `Soft` does.

    References
    ----------
    H.-Y. Gao, "Wavelet shrinkage denoising using the non-negative garrote", Journal of Computational and Graphical
    Statistics 7, 1998, doi:10.1080/10618600.1998.10474789.

    Examples
    --------
    >>> Garrote()(np.array([1.0, 2.0, -4.0]), 2.0)
    array([ 0.,  0., -3.])
    """

    def value(self, magnitude: NDArray[Any], threshold: Any) -> NDArray[Any]:
        """Return the rule at non-negative magnitudes."""
        kept = (magnitude >= threshold) & (magnitude > 0)
        ratio = np.divide(threshold, magnitude, out=np.zeros(kept.shape), where=kept)
        return np.where(kept, magnitude * ((1 - ratio) * (1 + ratio)), 0.0)

    def slope(self, magnitude: NDArray[Any], threshold: Any) -> NDArray[Any]:
        """Return the derivative at non-negative magnitudes."""
        kept = magnitude > threshold
        ratio = np.divide(threshold, magnitude, out=np.zeros(kept.shape), where=kept)
        return np.where(kept | (threshold == 0), 1 + ratio**2, 0.0)


@dataclass(frozen=True)
class Bridge(Odd):
    """The rule of the bridge penalty: the minimiser of ``(x - y)^2 / 2 + c |x|^q``.

    Parameters
    ----------
    q : float
        The power of the penalty, strictly between 0 and 1. ``q = 1/2`` is half thresholding.

    See Also
    --------
    Hard, Soft : The limits for q = 0 and q = 1.

    Notes
    -----
    The threshold is where the rule jumps, from 0 to ``2 (1 - q) / (2 - q)`` times the threshold; it fixes c. Above it
    the rule is the larger root of ``x + c q x^(q-1) = y``, found by Newton's method.

    References
    ----------
    K. Knight and W. Fu, "Asymptotics for lasso-type estimators", Annals of Statistics 28, 2000,
    doi:10.1214/aos/1015957397.
    Z. Xu, X. Chang, F. Xu and H. Zhang, "L1/2 regularization: a thresholding representation theory and a fast
    solver", IEEE Transactions on Neural Networks and Learning Systems 23, 2012, doi:10.1109/TNNLS.2012.2197412.

    Examples
    --------
    >>> Bridge(0.5).jumps(3.0)
    [(3.0, 2.0)]
    >>> Bridge(0.5)(np.array([2.9, 3.0, -30.0]), 3.0).round(4)
    array([  0.    ,   2.    , -29.7407])
    """

    q: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < _validate.number(self.q, "q") < 1:
            msg = f"q must lie strictly between 0 and 1, got {self.q}. For q = 0: Hard(); for q = 1: Soft()."
            raise ValueError(msg)

    @property
    def polynomial_width(self) -> float:  # type: ignore[override]
        """Three tenths of the distance from the threshold to the branch point of the inverse of ``x + c q x^(q-1)``.

        The branch point lies below the threshold, and the closer the nearer q is to 1.
        """
        x = (self.q / 2) ** (1 / (2 - self.q)) * self._height
        branch = x + self._c * self.q * x ** (self.q - 1)
        return float(0.3 * (1 - branch))

    @property
    def _height(self) -> float:
        """The height of the jump at threshold 1."""
        return 2 * (1 - self.q) / (2 - self.q)

    @property
    def _c(self) -> float:
        """The penalty's factor c at threshold 1."""
        return float(self._height ** (2 - self.q) / (2 * (1 - self.q)))

    def jumps(self, threshold: Any) -> Sequence[tuple[Any, Any]]:
        """Return the one jump."""
        return [(threshold, self._height * threshold)]

    def value(self, magnitude: NDArray[Any], threshold: Any) -> NDArray[Any]:
        """Return the rule at non-negative magnitudes."""
        return self._where_kept(magnitude, threshold, magnitude >= threshold, lambda x, t: t * x, magnitude)

    def slope(self, magnitude: NDArray[Any], threshold: Any) -> NDArray[Any]:
        """Return the derivative at non-negative magnitudes."""
        b = self._c * self.q * (1 - self.q)
        kept = (magnitude > threshold) | (threshold == 0)
        return self._where_kept(magnitude, threshold, kept, lambda x, t: 1 / (1 - b * x ** (self.q - 2)), 1.0)

    def _where_kept(
        self, magnitude: NDArray[Any], threshold: Any, kept: NDArray[Any], of_root: Callable[..., Any], unshrunk: Any
    ) -> NDArray[Any]:
        """Return ``of_root(root, threshold)`` where `kept`, 0 elsewhere; `unshrunk` far above the threshold."""
        a, t, kept, unshrunk = np.broadcast_arrays(magnitude, threshold, kept, unshrunk)
        far = a / UNSHRUNK_BEYOND >= t  # also where the threshold is 0
        out = np.where(kept & far, unshrunk, 0.0)
        solve = kept & ~far
        out[solve] = of_root(self._root(a[solve] / t[solve]), t[solve])
        return np.asarray(out)

    def _root(self, u: NDArray[Any]) -> NDArray[np.float64]:
        """Return the x >= `_height` with ``x + c q x^(q-1) = u``, for u >= 1.

        The left side is convex and increasing there, so Newton's steps from x = u fall monotonically to the root.
        """
        b = self._c * self.q
        x = np.array(u, dtype=np.float64)
        for _ in range(60):
            slope = b * x ** (self.q - 2)
            step = (x + slope * x - u) / (1 - (1 - self.q) * slope)
            x -= step
            # Convergence is quadratic: the remaining error is of the order of this step squared.
            if np.all(np.abs(step) <= 1e-9 * x):
                break
        return x
