"""The scree plot: singular values, the bulk of the noise, its edge, and the risk of every threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..noise.bulk import bulk_quantiles
from ..risk.curve import finite_part
from ..select.rank import RankSelection
from .plot import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_rank"]


def plot_rank(selection: RankSelection, axes: Any = None) -> Any:
    """Draw the singular values with the bulk of the noise, and the risk against the threshold.

    Parameters
    ----------
    selection : RankSelection
        The result of `scorethresh.select_rank` for one matrix.
    axes : sequence of matplotlib.axes.Axes, optional
        Two axes to draw in. By default a new figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        The axes drawn in: singular values on the left, risk on the right.

    See Also
    --------
    plot_risk : Draw the risk alone.
    """
    if np.ndim(selection.rank):
        msg = f"the selection is that of a stack of {np.size(selection.rank)} matrices. Plot one: selection[0].plot()."
        raise ValueError(msg)
    axes = np.asarray(new_axes(1, 2, figsize=(10.0, 4.0)) if axes is None else axes, dtype=object).ravel()
    if axes.size != 2:
        msg = f"axes must be 2, got {axes.size}. Try plt.subplots(1, 2)[1]."
        raise ValueError(msg)
    _draw_values(axes[0], selection)
    _draw_risk(axes[1], selection)
    return axes


def _draw_values(ax: Axes, selection: RankSelection) -> None:
    s, rank = selection.singular_values, int(selection.rank)
    m, n = selection.estimate.shape[-2:]
    unit = selection.sigma * np.sqrt(2 if np.iscomplexobj(selection.estimate) else 1)
    index = np.arange(1, s.size + 1)
    ax.plot(index[:rank], s[:rank], "ko", ms=5, label=f"kept: {rank}")
    ax.plot(index[rank:], s[rank:], "ko", ms=4, mfc="white", label=f"removed: {s.size - rank}")
    rest = min(m, n) - rank
    if rest > 0 and unit > 0:
        shares = 1 - (np.arange(rest) + 0.5) / rest
        bulk = unit * bulk_quantiles(m - rank, n - rank, shares)
        ax.plot(np.arange(rank + 1, rank + rest + 1), bulk, "-", color="0.6", lw=2, zorder=0, label="noise, expected")
        ax.axhline(unit * (np.sqrt(m) + np.sqrt(n)), color="k", ls=":", lw=1, label="edge of the noise")
    if np.isfinite(selection.threshold):
        ax.axhline(selection.threshold, color="k", ls="--", lw=1, label=f"threshold {selection.threshold:.4g}")
    positive = s[s > 0]
    wide = positive.size > 1 and positive[0] > 30 * np.median(positive)
    ax.set(
        title=f"rank {rank} ({selection.status}), σ = {selection.sigma:.4g}",
        xlabel="index",
        ylabel="singular value, in units of y",
        yscale="log" if wide else "linear",
    )
    ax.legend(frameon=False)


def _draw_risk(ax: Axes, selection: RankSelection) -> None:
    curve = selection.curve
    count = finite_part(curve.thresholds).size
    unit = curve.size * curve.sigma**2 or 1.0
    t, risk, error = curve.thresholds[:count], curve.risk[:count] / unit, 2 * curve.stderr[:count] / unit
    ax.fill_between(t, risk - error, risk + error, color="0.85", label="± 2 standard errors")
    ax.plot(t, risk, "k-", lw=1.5, label="estimated risk")
    if np.isfinite(selection.threshold):
        ax.plot(selection.threshold, selection.risk / unit, "ko", ms=7, label="taken")
    ax.axhline(curve.risk[-1] / unit, color="k", ls=":", lw=1, label="all set to zero")
    ax.set(xlabel="threshold, in units of y", ylabel="risk per entry, in units of σ²")
    ax.legend(frameon=False)
