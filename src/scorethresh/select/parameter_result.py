"""What the choice of a parameter returns."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validate import Array

__all__ = ["ParameterCurve", "ParameterSelection", "ParameterStatus"]


class ParameterStatus(enum.StrEnum):
    """Where the least risk was found; `remedy` says what to do about it.

    ``"interior"``: between the ends of what was tried. ``"edge"``: a number at an end of its values or range.
    ``"worse than y"``: no parameter is expected to beat the data themselves.

    Examples
    --------
    >>> ParameterStatus.EDGE.remedy
    'The least risk is at an end of what was tried. Widen the range if the parameter may go further.'
    """

    INTERIOR = "interior"
    EDGE = "edge"
    WORSE = "worse than y"

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _REMEDIES[self]


_REMEDIES = {
    ParameterStatus.INTERIOR: "Nothing: parameters on both sides were tried.",
    ParameterStatus.EDGE: (
        "The least risk is at an end of what was tried. Widen the range if the parameter may go further."
    ),
    ParameterStatus.WORSE: (
        "The estimated risk is larger than that of y itself. Check that sigma is not too small, and that the "
        "parameters are in the units of y."
    ),
}


@dataclass(frozen=True, eq=False, repr=False)
class ParameterCurve:
    """The estimated risk at every parameter that was tried.

    Attributes
    ----------
    parameters : tuple
        The parameters: values, or dicts. Those of a single range ascend; others are in the order in which they were
        tried.
    risk, stderr : ndarray
        Estimate of ``E ||x(y) - x0||^2``, summed over the entries, and its standard error.
    dof : ndarray
        Estimate of the degrees of freedom.
    size : int
        The number of entries, real and imaginary parts counted.
    noise_energy : float
        The risk of y itself, ``tr(Sigma)``.
    """

    parameters: tuple[Any, ...]
    risk: Array
    stderr: Array
    dof: Array
    size: int
    noise_energy: float

    def plot(self, ax: Any = None) -> Any:
        """Draw the risk against the parameter: `scorethresh.viz.parameter.plot_parameter`."""
        from ..viz.parameter import plot_parameter

        return plot_parameter(self, ax)

    def __repr__(self) -> str:
        k = int(np.argmin(self.risk))
        return (
            f"<ParameterCurve: {len(self.parameters)} parameters, {self.size} entries; least risk {self.risk[k]:.4g} "
            f"at {self.parameters[k]!r}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ParameterSelection:
    """The parameter of least estimated risk, with the estimate and the risk at all parameters.

    Attributes
    ----------
    parameter : object
        The parameter, as the estimator takes it; a dict if parameters were named.
    estimate : ndarray, or what y is
        The estimate at that parameter, from y itself, with the shape of y.
    risk, stderr : float
        The estimated risk, summed over the entries, in units of y squared; and its standard error, as an estimate of
        the squared error of `estimate`, for a known noise level. By default the risk is estimated with a smaller step
        than those of the curve, which are for 2 to 4% more noise.
    dof : float
        The estimated degrees of freedom.
    curve : ParameterCurve
        All parameters that were tried.
    calls : int
        How often the estimator was called.
    status : ParameterStatus
        ``"interior"``, ``"edge"`` or ``"worse than y"``; ``status.remedy`` says what to do.
    sigma : float or ndarray
        The noise level, given or estimated: of stabilised values if the noise depends on the signal.

    See Also
    --------
    select_parameter : Returns this.
    """

    parameter: Any
    estimate: Any
    risk: float
    stderr: float
    dof: float
    curve: ParameterCurve
    calls: int
    status: ParameterStatus
    sigma: float | Array

    def plot(self, ax: Any = None) -> Any:
        """Draw the risk against the parameter: `scorethresh.viz.parameter.plot_parameter`."""
        from ..viz.parameter import plot_parameter

        return plot_parameter(self.curve, ax)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a small picture, the numbers, and what to do."""
        from ..viz.notebook import parameter_html

        return parameter_html(self)

    def __repr__(self) -> str:
        return (
            f"<ParameterSelection: {self.parameter!r} ({self.status}), estimated risk {self.risk:.4g} +- "
            f"{self.stderr:.2g}, degrees of freedom {self.dof:.4g} of {self.curve.size}; {self.calls} calls>"
        )
