"""Plots with matplotlib. Each takes axes and returns them; without axes it makes a figure.

Everything is black or grey: line styles and markers tell things apart, in print too. Thresholds are in units of the
noise level sigma. Risks are per entry, in units of sigma squared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._containers import values_of
from .._validate import Array, missing_extra
from ..denoising.result import Denoised
from ..risk.curve import RiskCurve, finite_part
from ..risk.methods import BlockMixture, Mixture
from ..sample.magnitudes import Magnitudes, default_thresholds
from ..select.threshold import Selection
from .panels import draw_image, draw_signal, panels_of
from .pictures import check_same_shape, display_axis, without_container

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_bands", "plot_denoised", "plot_dof", "plot_risk", "plot_selection"]

# Width of the histogram's bins, in units of sigma. Narrower ones are noisy, wider ones hide the shape of the noise.
BIN_WIDTH = 1 / 4
# The histogram ends this far beyond the last default threshold, in units of sigma. `Mixture` ignores larger entries.
HISTOGRAM_MARGIN = 6


def plot_risk(
    curve: RiskCurve,
    ax: Axes | None = None,
    truth: RiskCurve | None = None,
    *,
    label: str = "",
    color: Any = "k",
) -> Axes:
    """Draw the risk against the threshold, with two standard errors, and mark the minimum.

    Parameters
    ----------
    curve : RiskCurve
        The curve. A threshold of infinity, which sets all entries to zero, is drawn as a separate point.
    ax : matplotlib.axes.Axes, optional
        Axes to draw in. By default a new figure.
    truth : RiskCurve, optional
        The true risk, if it is known: ``risk_curve(y, curve.thresholds, sigma=..., method=Oracle(x0))``.
    label : str
        The name of the curve in the legend. Give one to each of several curves in the same axes.
    color : color
        Of its line and, paler, of its standard errors.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn in.

    See Also
    --------
    scorethresh.risk_curve : Estimate the risk.
    plot_dof : Draw the degrees of freedom.

    Examples
    --------
    >>> import scorethresh as st
    >>> curve = st.risk_curve(np.arange(100.0), sigma=3.0)
    >>> from matplotlib.figure import Figure
    >>> curve.plot(Figure().subplots()).get_xlabel()
    'threshold, in units of σ = 3'
    """
    if truth is not None and (not isinstance(truth, RiskCurve) or truth.size != curve.size):
        msg = (
            f"truth must be the risk curve of the same {curve.size} entries, got {truth!r}. "
            "Try risk_curve(y, curve.thresholds, sigma=..., method=Oracle(x0))."
        )
        raise ValueError(msg)
    ax = _axes(ax)
    unit = curve.size * curve.sigma**2
    x = _positions(curve)
    n = finite_part(curve.thresholds).size
    risk, error = curve.risk / unit, 2 * curve.stderr / unit
    band = f"{label}, ± 2 standard errors" if label else "± 2 standard errors"
    ax.fill_between(x[:n], (risk - error)[:n], (risk + error)[:n], color=color, alpha=0.15, lw=0, label=band)
    if truth is not None:
        m = finite_part(truth.thresholds).size
        ax.plot(truth.thresholds[:m] / curve.sigma, truth.risk[:m] / unit, "k--", lw=1.2, label="true risk")
    ax.plot(x[:n], risk[:n], "-", color=color, lw=1.8, label=label or "estimated risk")
    if n < x.size:
        zero = f"{label}, all set to zero" if label else "all set to zero"
        ax.errorbar(x[n:], risk[n:], error[n:], fmt="s", color=color, ms=5, mfc="white", capsize=3, label=zero)
    k = int(np.argmin(curve.risk))
    where = f"at {x[k]:.3g} σ" if k < n else "with all set to zero"
    least = f"{label}, least" if label else "least"
    ax.plot(x[k], risk[k], "o", color=color, ms=8, zorder=3, label=f"{least}: {risk[k]:.3g} σ² {where}")
    ax.set(xlabel=_threshold_label(curve.sigma), ylabel="risk per entry, in units of σ²")
    ax.legend(frameon=False)
    return ax


def plot_dof(curve: RiskCurve, ax: Axes | None = None) -> Axes:
    """Draw the degrees of freedom against the threshold, and mark those at the minimum of the risk.

    Parameters
    ----------
    curve : RiskCurve
        The curve. A threshold of infinity, which sets all entries to zero, is drawn as a separate point.
    ax : matplotlib.axes.Axes, optional
        Axes to draw in. By default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn in.

    See Also
    --------
    plot_risk : Draw the risk.
    """
    ax = _axes(ax)
    x = _positions(curve)
    n = finite_part(curve.thresholds).size
    k = int(np.argmin(curve.risk))
    ax.plot(x[:n], curve.dof[:n], "k-", lw=1.8, label="estimated degrees of freedom")
    if n < x.size:
        ax.plot(x[n:], curve.dof[n:], "ks", ms=5, mfc="white", label="all set to zero")
    ax.plot(x[k], curve.dof[k], "ko", ms=8, zorder=3, label=f"at the least risk: {curve.dof[k]:.4g}")
    ax.set(xlabel=_threshold_label(curve.sigma), ylabel=f"degrees of freedom, of {curve.size} entries")
    ax.legend(frameon=False)
    return ax


def plot_selection(selection: Selection, ax: Axes | None = None) -> Axes:
    """Draw the histogram of the magnitudes, the fitted mixture and the chosen threshold.

    Parameters
    ----------
    selection : Selection
        The result of `scorethresh.select_threshold`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw in. By default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn in.

    See Also
    --------
    plot_risk : Draw the risk, ``selection.curve.plot()``.

    Notes
    -----
    Magnitudes more than 7 sigma above the universal threshold are ignored by the fit. They are not drawn; the legend
    gives their number.
    """
    ax = _axes(ax)
    sigma = selection.curve.sigma
    blocks = selection.blocks
    y = selection.data if blocks is None else blocks.norms
    sample = y if isinstance(y, Magnitudes) else Magnitudes.compress(y, sigma=sigma)
    edges, counts, beyond = _histogram(sample, sigma, 1 if blocks is None else blocks.size)
    points = np.linspace(edges[0], edges[-1], 600)
    if blocks is None:
        fitted = Mixture().fit(sample, sigma=sigma).density(points * sigma, sigma) * sigma
    else:
        fitted = BlockMixture().fit(sample, sigma=sigma, block_size=blocks.size).density(points)
    label = f"{sample.size - beyond} {'entries' if blocks is None else 'blocks'}" + (
        f" (and {beyond} beyond)" if beyond else ""
    )
    ax.stairs(counts / np.diff(edges), edges, fill=True, color="0.8", label=label)
    ax.plot(points, fitted, "k-", lw=1.5, label="fitted mixture")
    t = selection.threshold / sigma
    if np.isfinite(t):
        ax.axvline(t, color="k", ls="--", lw=1.5, label=f"threshold {t:.3g} σ = {selection.threshold:.4g}")
        title = f"threshold {t:.3g} σ ({selection.status})"
    else:
        title = "all entries set to zero"
    ax.set(
        title=title,
        xlabel=f"{'magnitude' if blocks is None else 'norm'}, in units of σ = {sigma:.4g}",
        ylabel=f"{'entries' if blocks is None else 'blocks'} per σ",
        yscale="log",
        xlim=(0, max(edges[-1], 1.05 * t if np.isfinite(t) else 0)),
        # A bin with a single entry remains visible on the logarithmic axis.
        ylim=(0.4 / BIN_WIDTH, None),
    )
    ax.legend(frameon=False)
    return ax


def plot_denoised(
    found: Denoised, y: Any = None, axes: Any = None, *, channel_axis: int | None = None, error: bool = False
) -> Any:
    """Draw the noisy data, the estimate, their difference, and perhaps the map of the predicted error.

    Parameters
    ----------
    found : Denoised
        The result of `scorethresh.Denoiser.run`.
    y : array_like, optional
        The noisy data. Without it only the estimate is drawn.
    axes : sequence of matplotlib.axes.Axes, optional
        Three axes to draw in, or one if y is not given; one more with `error`. By default a new figure.
    channel_axis : int, optional
        The axis of channels, as given to the denoiser. If None, the last of three axes is drawn as colours if it has 3
        or 4 entries.
    error : bool
        Whether to draw the root of `Denoised.error_map` too.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        The axes drawn in.

    See Also
    --------
    plot_bands : Draw the thresholds of the wavelet bands.
    scorethresh.viz.write_report : Write a page with sliders.

    Notes
    -----
    Signals are drawn as lines, one per channel. Of a volume the middle slice is drawn. Complex data are drawn by their
    modulus. Three channels are drawn as colours, and so are the first three of four. Of any other number of channels
    of an image, the middle one is drawn.
    """
    found, y = without_container(found), values_of(y)
    if y is not None:
        check_same_shape(y, found.estimate)
    panels = panels_of(found, y, display_axis(found.estimate.shape, channel_axis), error=error)
    count, signals = len(panels), panels[0].shown.ndim == 2
    if axes is None:
        size, rows, columns = ((9.0, 2.2 * count), count, 1) if signals else ((4.4 * count, 4.0), 1, count)
        axes = new_axes(rows, columns, figsize=size, squeeze=False, sharex=True)
    axes = np.asarray(axes, dtype=object).ravel()
    if axes.size != count:
        msg = f"axes must be {count}, got {axes.size}. Try plt.subplots(1, {count})[1]."
        raise ValueError(msg)
    label = f"{'magnitude' if np.iscomplexobj(found.estimate) else 'value'}, in units of y"
    for ax, panel in zip(axes, panels, strict=True):
        (draw_signal if signals else draw_image)(ax, panel, label)
    if signals:
        axes[-1].set_xlabel("sample")
    return axes


def plot_bands(found: Denoised, ax: Axes | None = None) -> Axes:
    """Draw the threshold of every wavelet band, in units of its noise level, and the fraction of coefficients kept.

    Parameters
    ----------
    found : Denoised
        The result of `scorethresh.Denoiser.run`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw in. By default a new figure, as high as the number of bands needs.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn in.

    See Also
    --------
    plot_denoised : Draw the data and the estimate.
    """
    if ax is None:
        ax = new_axes(1, 1, figsize=(7.0, max(2.0, 0.22 * len(found.bands) + 1.0)))
    t = np.array([band.threshold / band.sigma for band in found.bands])
    finite = np.isfinite(t)
    last = 1.1 * t[finite].max(initial=1.0)
    rows = np.arange(t.size)
    ax.hlines(rows, 0, np.where(finite, t, last), color="0.75", lw=1)
    ax.plot(t[finite], rows[finite], "ko", ms=6, label="threshold")
    if not finite.all():
        ax.plot(np.full((~finite).sum(), last), rows[~finite], "k>", ms=7, mfc="white", label="all set to zero")
    for row, band in enumerate(found.bands):
        at = (1.06 * last, row)
        ax.annotate(f"{band.kept:.1%} kept", at, va="center", fontsize="small", annotation_clip=False)
    ax.set_yticks(rows, [band.name for band in found.bands])
    ax.set(xlabel="threshold over the noise level of the band", ylabel="band", xlim=(0, 1.3 * last))
    ax.invert_yaxis()
    if t.size:
        ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    return ax


def _axes(ax: Axes | None) -> Axes:
    return new_axes(1, 1) if ax is None else ax


def new_axes(rows: int, columns: int, **options: Any) -> Any:
    """Return the axes of a new figure. Only here is matplotlib imported."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        error = missing_extra("matplotlib", "plot")
        raise error from None
    return plt.subplots(rows, columns, layout="constrained", **options)[1]


def _positions(curve: RiskCurve) -> Array:
    """Return the thresholds in units of sigma, with infinity placed 5% beyond the largest finite one."""
    finite = finite_part(curve.thresholds) / curve.sigma
    beyond = 1.05 * finite.max(initial=0.0) or 1.0
    return np.append(finite, np.full(curve.thresholds.size - finite.size, beyond))


def _threshold_label(sigma: float) -> str:
    return f"threshold, in units of σ = {sigma:.4g}"


def _histogram(sample: Magnitudes, sigma: float, block_size: int) -> tuple[Array, Array, int]:
    """Return the edges of the bins in units of sigma, their counts, and the number of entries beyond the last edge."""
    largest = float(sample.nodes.max()) / sigma
    limit = min(largest, float(default_thresholds(sample.size, 1.0, block_size)[-2]) + HISTOGRAM_MARGIN)
    edges = np.arange(0.0, limit + 2 * BIN_WIDTH, BIN_WIDTH)
    if sample.cells is not None:  # a compressed sample has counts per cell only
        known = sample.cells.edges / sigma
        edges = np.unique(known[np.searchsorted(known, edges[edges <= known[-1]])])
    counts = np.histogram(sample.nodes / sigma, edges, weights=sample.weights)[0].round()
    return edges, counts, sample.size - int(counts.sum())
