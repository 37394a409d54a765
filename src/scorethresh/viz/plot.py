"""Plots with matplotlib. Axes in and out, so that they can be composed; without axes a new figure is made.

Lines, greys and markers tell things apart, not colours. Thresholds are in units of the noise level sigma, risks are
per entry and in units of sigma squared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validate import Array
from ..denoising.result import Denoised
from ..risk.curve import RiskCurve, finite_part
from ..risk.methods import Mixture
from ..sample.magnitudes import Magnitudes, default_thresholds
from ..select.threshold import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_bands", "plot_denoised", "plot_dof", "plot_risk", "plot_selection"]

# Of the histogram's bins, in units of sigma.
_BIN = 1 / 4


def plot_risk(curve: RiskCurve, ax: Axes | None = None, truth: RiskCurve | None = None) -> Axes:
    """Draw the risk against the threshold, with two standard errors on both sides and the least risk marked.

    Parameters
    ----------
    curve : RiskCurve
        Risks are divided by its size. A last threshold of infinity is drawn apart: all entries set to zero.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    truth : RiskCurve, optional
        The true risk, if it is known: ``risk_curve(y, curve.thresholds, sigma=..., method=Oracle(x0))``.

    Returns
    -------
    matplotlib Axes

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
    ax.fill_between(x[:n], (risk - error)[:n], (risk + error)[:n], color="0.85", label="± 2 standard errors")
    if truth is not None:
        m = finite_part(truth.thresholds).size
        ax.plot(truth.thresholds[:m] / curve.sigma, truth.risk[:m] / unit, "k--", lw=1.2, label="true risk")
    ax.plot(x[:n], risk[:n], "k-", lw=1.8, label="estimated risk")
    if n < x.size:
        ax.errorbar(x[n:], risk[n:], error[n:], fmt="ks", ms=5, mfc="white", capsize=3, label="all set to zero")
    k = int(np.argmin(curve.risk))
    where = f"at {x[k]:.3g} σ" if k < n else "with all set to zero"
    ax.plot(x[k], risk[k], "ko", ms=8, zorder=3, label=f"least: {risk[k]:.3g} σ² {where}")
    ax.set(xlabel=_threshold_label(curve.sigma), ylabel="risk per entry, in units of σ²")
    ax.legend(frameon=False)
    return ax


def plot_dof(curve: RiskCurve, ax: Axes | None = None) -> Axes:
    """Draw the degrees of freedom against the threshold, and those at the least risk."""
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
    """Draw the histogram of the magnitudes, the mixture fitted to them and the threshold that was chosen.

    Magnitudes more than 7 sigma beyond the universal threshold, which take no part in the fit, are counted in the
    legend only. For the risk: ``selection.curve.plot()``.
    """
    ax = _axes(ax)
    sigma = selection.curve.sigma
    y = selection.data
    sample = y if isinstance(y, Magnitudes) else Magnitudes.compress(y, sigma=sigma)
    edges, counts, beyond = _histogram(sample, sigma)
    points = np.linspace(edges[0], edges[-1], 600)
    fitted = Mixture().fit(sample, sigma=sigma).density(points * sigma, sigma) * sigma
    label = f"{sample.size - beyond} entries" + (f" (and {beyond} beyond)" if beyond else "")
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
        xlabel=f"magnitude, in units of σ = {sigma:.4g}",
        ylabel="entries per σ",
        yscale="log",
        xlim=(0, max(edges[-1], 1.05 * t if np.isfinite(t) else 0)),
        # A bin with one entry stands clear of the ground.
        ylim=(0.4 / _BIN, None),
    )
    ax.legend(frameon=False)
    return ax


def plot_denoised(found: Denoised, y: Any = None, axes: Any = None, *, channel_axis: int | None = None) -> Any:
    """Draw the noisy data, the estimate and what was removed: signals as lines, of volumes the middle slice.

    Parameters
    ----------
    found : Denoised
        What a `Denoiser` found.
    y : array_like, optional
        The data it was run on. Without it only the estimate is drawn.
    axes : sequence of matplotlib Axes, optional
        Three, or without y one. By default those of a new figure.
    channel_axis : int, optional
        That of the denoiser. By default a third axis of length 3 or 4 is taken for colours.

    Returns
    -------
    ndarray of matplotlib Axes
    """
    estimate = found.estimate
    if y is not None and np.shape(y) != estimate.shape:
        msg = f"y must have the shape of the estimate, {estimate.shape}, got {np.shape(y)}. Pass the data denoised."
        raise ValueError(msg)
    if channel_axis is None and estimate.ndim == 3 and estimate.shape[-1] in (3, 4):
        channel_axis = -1
    after = view(estimate, channel_axis)
    count, signals = 1 if y is None else 3, after.ndim == 2
    if axes is None:
        size, rows, columns = ((9.0, 2.2 * count), count, 1) if signals else ((4.4 * count, 4.0), 1, count)
        axes = _new_axes(rows, columns, figsize=size, squeeze=False, sharex=True)
    axes = np.asarray(axes, dtype=object).ravel()
    if axes.size != count:
        msg = f"axes must be {count}, got {axes.size}. Try plt.subplots(1, {count})[1]."
        raise ValueError(msg)
    panels = [(after, f"denoised, predicted rms error {_root(found.predicted_mse):.3g}", limits(after))]
    if y is not None:
        before = view(y, channel_axis)
        removed = view(np.asarray(y, dtype=np.result_type(estimate.dtype, float)) - estimate, channel_axis)
        rms = _root(float(np.nanmean(np.square(removed))))
        sign = 0 if np.iscomplexobj(estimate) else -1
        panels.insert(0, (before, "noisy", limits(after)))
        panels.append((removed, f"removed, rms {rms:.3g}", (3 * sign * rms, 3 * rms)))
    what = "magnitude" if np.iscomplexobj(estimate) else "value"
    for ax, (shown, title, ends) in zip(axes, panels, strict=True):
        if signals:
            ax.plot(shown, lw=0.8, color="k")
            for line, style in zip(ax.get_lines(), ("-", "--", ":", "-.") * shown.shape[1], strict=False):
                line.set_linestyle(style)
            ax.set(title=title, ylabel=f"{what}, in units of y")
            continue
        # Colours have no colour bar, and what was removed of them may be negative: grey is zero.
        colours = shown.shape[-1] == 3
        low, high = ends if ends[1] > ends[0] else (ends[0], ends[0] + 1)
        image = np.clip((shown - low) / (high - low), 0, 1) if colours else shown[..., 0]
        drawn = ax.imshow(image, cmap="gray", vmin=None if colours else low, vmax=None if colours else high)
        ax.set(title=title, xticks=[], yticks=[])
        if not colours:
            ax.figure.colorbar(drawn, ax=ax, label=f"{what}, in units of y", shrink=0.85)
    if signals:
        axes[-1].set_xlabel("sample")
    return axes


def plot_bands(found: Denoised, ax: Axes | None = None) -> Axes:
    """Draw the threshold of every wavelet band over the noise level of the band, and the fraction that was kept."""
    if ax is None:
        ax = _new_axes(1, 1, figsize=(7.0, max(2.0, 0.22 * len(found.bands) + 1.0)))
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


def view(a: Any, channel_axis: int | None) -> Any:
    """Return what is shown of an array: (samples, channels) of a signal, else (rows, columns, 1 or 3 colours).

    Complex numbers by their magnitude, volumes by their middle slice; of channels that are not colours the middle one.
    """
    a = np.asarray(a)
    a = np.abs(a) if np.iscomplexobj(a) else a
    a = a[..., None] if channel_axis is None else np.moveaxis(a, channel_axis, -1)
    if a.ndim == 4:
        a = a[len(a) // 2]
    if a.ndim == 2:
        return a
    if a.shape[-1] in (3, 4):
        return a[..., :3]
    middle = a.shape[-1] // 2
    return a[..., middle : middle + 1]


def limits(shown: NDArray[Any]) -> tuple[float, float]:
    """Return the range of what is shown, but for missing entries."""
    known = shown[~np.isnan(shown)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)


def _axes(ax: Axes | None) -> Axes:
    return _new_axes(1, 1) if ax is None else ax


def _new_axes(rows: int, columns: int, **options: Any) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        msg = 'plots need matplotlib, which is not installed. Try pip install "scorethresh[plot]".'
        raise ImportError(msg) from None
    return plt.subplots(rows, columns, layout="constrained", **options)[1]


def _positions(curve: RiskCurve) -> Array:
    """Return the thresholds over sigma, with infinity a little beyond the rest."""
    finite = finite_part(curve.thresholds) / curve.sigma
    beyond = 1.05 * finite.max(initial=0.0) or 1.0
    return np.append(finite, np.full(curve.thresholds.size - finite.size, beyond))


def _threshold_label(sigma: float) -> str:
    return f"threshold, in units of σ = {sigma:.4g}"


def _root(square: float) -> float:
    return float(np.sqrt(max(square, 0.0)))


def _histogram(sample: Magnitudes, sigma: float) -> tuple[Array, Array, int]:
    """Return edges of bins, in units of sigma, their counts, and the number of entries beyond the last."""
    largest = float(sample.nodes.max()) / sigma
    limit = min(largest, float(default_thresholds(sample.size, 1.0)[-2]) + 6)
    edges = np.arange(0.0, limit + 2 * _BIN, _BIN)
    if sample.cells is not None:  # only whole cells can be counted
        known = sample.cells.edges / sigma
        edges = np.unique(known[np.searchsorted(known, edges[edges <= known[-1]])])
    counts = np.histogram(sample.nodes / sigma, edges, weights=sample.weights)[0].round()
    return edges, counts, sample.size - int(counts.sum())
