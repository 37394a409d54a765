"""The risk curve: what every method returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validate import Array

__all__ = ["RiskCurve"]


def finite_part(thresholds: Array) -> Array:
    """Return the finite thresholds; infinite ones come last and mean kill everything."""
    return thresholds[: np.searchsorted(thresholds, np.inf)]


def or_infinity(sums: Array) -> Array:
    """Return the sums with infinity wherever an overflow left no finite number."""
    return np.where(np.isfinite(sums), sums, np.inf)


@dataclass(frozen=True, eq=False, repr=False)
class RiskCurve:
    """Risk and degrees of freedom against the threshold.

    Attributes
    ----------
    thresholds : ndarray
        Ascending, in units of y; the last may be infinity: kill everything.
    risk : ndarray
        Estimate of ``E ||x(y) - x0||^2``, summed over the entries, in units of y squared. It may be negative; it is
        infinite if squares exceed the largest double.
    dof : ndarray
        Estimate of the degrees of freedom ``sum_i cov(y_i, x(y)_i) / sigma^2``.
    stderr : ndarray
        Standard error of `risk`. What it covers depends on the method; see there.
    size : int
        The number of entries.
    sigma : float
        The noise level.
    misfit : float
        How far the data are from the law that the method fits to them; NaN if it fits none, and for sums of curves.
        See `Selection`.

    See Also
    --------
    risk_curve : Make one.
    Magnitudes : Samples, which add up too.

    Notes
    -----
    Curves of disjoint parts of the data, at the same thresholds, noise level and bandwidth, add up to the curve of the
    whole: ``a + b``. The paper's bandwidth depends on the number of entries. With it, add the samples instead.

    Examples
    --------
    >>> from scorethresh import risk_curve
    >>> curve = risk_curve([0.5, -0.2, 8.0], [1.0, 4.0], sigma=1.0, method="jansen")
    >>> curve
    <RiskCurve: 2 thresholds, 3 entries, sigma 1; least risk -0.7036 at threshold 4>
    >>> (curve + curve).size
    6
    """

    thresholds: Array
    risk: Array
    dof: Array
    stderr: Array
    size: int
    sigma: float
    misfit: float = float("nan")

    def __add__(self, other: RiskCurve) -> RiskCurve:
        if not isinstance(other, RiskCurve):
            return NotImplemented
        if self.sigma != other.sigma or not np.array_equal(self.thresholds, other.thresholds):
            msg = "curves with different thresholds or noise levels cannot be added. Compute both at the same ones."
            raise ValueError(msg)
        return RiskCurve(
            self.thresholds,
            self.risk + other.risk,
            self.dof + other.dof,
            np.hypot(self.stderr, other.stderr),
            self.size + other.size,
            self.sigma,
        )

    def __radd__(self, other: int) -> RiskCurve:
        """Let `sum` start from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def plot(self, ax: Any = None, truth: RiskCurve | None = None, *, label: str = "", color: Any = "k") -> Any:
        """Draw the risk against the threshold, perhaps over other curves: `scorethresh.viz.plot_risk`."""
        from ..viz.plot import plot_risk

        return plot_risk(self, ax, truth, label=label, color=color)

    def to_frame(self) -> Any:
        """Return the curve as a pandas DataFrame: columns threshold, risk, dof and stderr."""
        import pandas as pd

        columns = {"threshold": self.thresholds, "risk": self.risk, "dof": self.dof, "stderr": self.stderr}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        k = int(np.argmin(self.risk))
        return (
            f"<RiskCurve: {self.thresholds.size} thresholds, {self.size} entries, sigma {self.sigma:.4g}; "
            f"least risk {self.risk[k]:.4g} at threshold {self.thresholds[k]:.4g}>"
        )
