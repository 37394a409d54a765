"""A plot of the risk against the parameters that were tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..select.parameter_result import ParameterCurve
from ..select.space import LOG_FACTOR, is_number
from .plot import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_parameter"]

# Up to this many parameters are written below the axis.
MAX_LABELS = 16


def plot_parameter(curve: ParameterCurve, ax: Axes | None = None) -> Axes:
    """Draw the risk against the parameter, with two standard errors, and mark the least.

    Parameters
    ----------
    curve : ParameterCurve
        The curve. If one number varies it is the axis. Else parameters are drawn in the order of their risk.
    ax : matplotlib.axes.Axes, optional
        Axes to draw in. By default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn in.

    See Also
    --------
    scorethresh.select_parameter : Choose a parameter.

    Notes
    -----
    Standard errors are those of each point as an estimate of its squared error. The errors of neighbouring points are
    nearly the same, so the shape of the curve is known far better than its height.
    """
    if ax is None:
        ax = new_axes(1, 1)
    unit = curve.noise_energy
    risk, error = curve.risk / unit, 2 * curve.stderr / unit
    name, x = _varying(curve)
    order = np.argsort(risk if x is None else x, kind="stable")
    best = int(np.argmin(risk))
    label = f"least: {risk[best]:.3g}, at {shown_parameter(curve.parameters[best])}"
    if x is None:
        places = np.empty(risk.size)
        places[order] = np.arange(risk.size)
        ax.errorbar(np.arange(risk.size), risk[order], error[order], fmt="k.", capsize=2, label="± 2 standard errors")
        if risk.size <= MAX_LABELS:
            ax.set_xticks(
                range(risk.size), [shown_parameter(curve.parameters[k]) for k in order], rotation=30, ha="right"
            )
        ax.plot(places[best], risk[best], "ko", ms=8, zorder=3, label=label)
    else:
        low, high = (risk - error)[order], (risk + error)[order]
        ax.fill_between(x[order], low, high, color="0.85", label="± 2 standard errors")
        ax.plot(x[order], risk[order], "k.-", lw=1.8, label="estimated risk")
        ax.plot(x[best], risk[best], "ko", ms=8, zorder=3, label=label)
        if x.min() > 0 and x.max() >= LOG_FACTOR * x.min():
            ax.set_xscale("log")
    if risk.min() < 1 < risk.max():
        ax.axhline(1.0, color="k", ls=":", lw=1, label="y itself")
    ax.set(xlabel=name, ylabel="risk over that of y")
    ax.legend(frameon=False)
    return ax


def _varying(curve: ParameterCurve) -> tuple[str, Any]:
    """Return the name and the values of the number that varies; None for the values if there is not just one."""
    rows = [p if isinstance(p, dict) else {"parameter": p} for p in curve.parameters]
    names = [name for name in rows[0] if len({repr(row[name]) for row in rows}) > 1] or list(rows[0])
    if len(names) == 1 and all(is_number(row[names[0]]) for row in rows):
        return names[0], np.array([row[names[0]] for row in rows], dtype=np.float64)
    return "parameters, by risk", None


def shown_parameter(parameter: Any) -> str:
    """Return a parameter in few characters."""
    if isinstance(parameter, dict):
        return ", ".join(f"{name}={shown_parameter(value)}" for name, value in parameter.items())
    return f"{parameter:.4g}" if isinstance(parameter, float) else str(parameter)
