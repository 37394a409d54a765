"""What a restoration returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._containers import values_of

__all__ = ["RestorationStep", "Restored"]


class RestorationStep(NamedTuple):
    """One step of a restoration.

    Attributes
    ----------
    level : float
        The noise level that the prior was told, or the threshold.
    residual : float
        ``||y - A x||^2`` over its mean if x were the truth. Far below 1 the estimate fits noise, far above 1 it misses
        signal.
    change : float
        Root mean square change of x in this step.
    predicted_mse, stderr : float
        As in `Restored`, after this step; NaN if it was not predicted.
    """

    level: float
    residual: float
    change: float
    predicted_mse: float
    stderr: float


@dataclass(frozen=True, eq=False, repr=False)
class Restored:
    """What a `Restorer` found.

    Attributes
    ----------
    estimate : ndarray, or what y is
        The restored x, in the units of x.
    sigma : float
        The noise level of y, given or estimated (of one part, if y is complex).
    predicted_mse : float
        Prediction of the mean squared error of ``A x``, not of x, per entry of y: the prediction risk
        ``||A x - A x0||^2 / y.size``. NaN if ``predict=False``.
    stderr : float
        Its standard error, for a known noise level.
    determined : float
        The share of x that the data determine, between 0 and 1. The rest was filled in by the prior, and the data
        cannot say how well.
    trace : tuple of RestorationStep
        One row per step.
    step : int
        The step whose estimate is returned: the last one, or for iterative hard thresholding that of least risk.
    verdict : str
        What can be said of the result, in words.

    See Also
    --------
    Restorer : makes it.
    """

    estimate: Any
    sigma: float
    predicted_mse: float
    stderr: float
    determined: float
    trace: tuple[RestorationStep, ...]
    step: int
    verdict: str

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a small picture, the numbers, and what to do."""
        from ..viz.notebook import restored_html

        return restored_html(self)

    def __repr__(self) -> str:
        estimate = values_of(self.estimate)
        predicted = f" predicted mse of A x {self.predicted_mse:.4g} +- {self.stderr:.2g};"
        return (
            f"<Restored: {' x '.join(map(str, estimate.shape))} {estimate.dtype}, sigma {self.sigma:.4g};"
            f"{'' if math.isnan(self.predicted_mse) else predicted} {len(self.trace)} steps; "
            f"{self.determined:.0%} of x determined by the data>"
        )
