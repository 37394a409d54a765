"""What `select_threshold` returns."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._lazy_data import is_named, lazy_module, unnamed
from ..risk.curve import RiskCurve
from ..rules import Blocks, Rule
from ..sample.magnitudes import Magnitudes
from .status import Status

__all__ = ["Selection"]


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The threshold of least estimated risk, with the estimate and the risk curve.

    Attributes
    ----------
    threshold : float
        In units of y; infinity sets everything to zero.
    risk, dof : float
        The estimates at that threshold, summed over the entries.
    estimate : ndarray
        The rule applied to y at that threshold, with the shape of y. It is computed on first access, from y as it
        is then.
    curve : RiskCurve
        All thresholds that were tried.
    status : Status
        ``"interior"``, ``"keeps all"``, ``"kills all"`` or ``"edge"``; ``status.remedy`` says what to do.
    rule : Rule
        The rule, as it was passed.
    data : array_like or Magnitudes
        The data, as they were passed; not a copy.
    blocks : Blocks or None
        The data as blocks, if they were decided on by their norms.
    misfit : float
        How far y is from signal plus Gaussian noise of level sigma, if the method is a mixture; else NaN.

    See Also
    --------
    select_threshold : Returns this.

    Notes
    -----
    The misfit is ``sqrt(n) (F_n - F)`` where it is largest in size: the statistic of Kolmogorov and Smirnov with its
    sign. F_n is the distribution of the n magnitudes that were fitted, F the fitted one. If the assumptions hold, its
    size is 0.7 in the median, or less, and above 2 in one of 5000 samples. It is positive if y has more small
    magnitudes than noise of level sigma leaves: sigma is too high, or the noise is heavy-tailed, varies in strength,
    or is missing from some entries. It cannot tell a sigma that is too low: what the noise has too much passes for a
    dense signal. Of correlated noise it may be large for no other reason.
    """

    threshold: float
    risk: float
    dof: float
    curve: RiskCurve
    status: Status
    rule: Rule
    data: Any = None
    blocks: Blocks | None = None

    @property
    def misfit(self) -> float:
        """How far y is from signal plus Gaussian noise of level sigma."""
        return self.curve.misfit

    @functools.cached_property
    def estimate(self) -> NDArray[Any]:
        """The rule applied to y at the threshold."""
        if isinstance(self.data, Magnitudes):
            msg = "a sample of magnitudes has no estimate. Apply the rule to y: selection.rule(y, selection.threshold)."
            raise AttributeError(msg)
        data = unnamed(self.data)
        lazy = lazy_module(data)
        out: NDArray[Any]
        if self.blocks is not None:
            out = self.blocks.apply(self.rule, self.threshold)
        elif lazy is not None:
            out = lazy.applied(self.rule, data, self.threshold)
        else:
            out = self.rule(np.asarray(data), self.threshold)
        return self.data.copy(data=out) if is_named(self.data) else out

    def plot(self, ax: Any = None) -> Any:
        """Draw the histogram of y, the fitted mixture and the threshold: `scorethresh.viz.plot_selection`."""
        from ..viz.plot import plot_selection

        return plot_selection(self, ax)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a small picture, the numbers, and what to do."""
        from ..viz.notebook import selection_html

        return selection_html(self)

    def __repr__(self) -> str:
        return (
            f"<Selection: threshold {self.threshold:.6g} ({self.status}), estimated risk {self.risk:.4g}, "
            f"degrees of freedom {self.dof:.4g} of {self.curve.size}>"
        )
