"""The panels of `plot_denoised`: noisy data, estimate, removed noise, predicted error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..denoising.result import Denoised
from .pictures import displayed, value_range
from .views import error_of_channels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Removed noise is drawn from black to white within this many rms values. Fewer saturate, more hide structure.
REMOVED_RANGE = 3

LINE_STYLES = ("-", "--", ":", "-.")


class Panel(NamedTuple):
    """A `displayed` array, its title, the values at the ends of the colours, and their map."""

    shown: NDArray[Any]
    title: str
    limits: tuple[float, float]
    colours: str = "gray"


def panels_of(found: Denoised, y: Any, axis: int | None, *, error: bool = False) -> list[Panel]:
    """Return the panels: noisy, denoised, removed; the second alone without y; perhaps the predicted error."""
    return [*_data_panels(found, y, axis), *([_error_panel(found, axis)] if error else [])]


def _error_panel(found: Denoised, axis: int | None) -> Panel:
    """Return the panel of the predicted error, whose map has no axis of channels."""
    shown = displayed(np.sqrt(error_of_channels(found, np.shape(found.estimate), axis)), None)
    return Panel(shown, "predicted error (rms)", (0.0, float(shown.max())), "cividis")


def _data_panels(found: Denoised, y: Any, axis: int | None) -> list[Panel]:
    estimate = found.estimate
    after = displayed(estimate, axis)
    denoised = Panel(after, f"denoised, predicted rms error {_rms(found.predicted_mse):.3g}", value_range(after))
    if y is None:
        return [denoised]
    # Integers are subtracted as floats: unsigned ones would wrap around.
    removed = displayed(np.asarray(y, dtype=np.result_type(estimate.dtype, float)) - estimate, axis)
    rms = _rms(float(np.nanmean(np.square(removed))))
    low = 0.0 if np.iscomplexobj(estimate) else -REMOVED_RANGE * rms  # a modulus is never negative
    return [
        Panel(displayed(y, axis), "noisy", denoised.limits),
        denoised,
        Panel(removed, f"removed, rms {rms:.3g}", (low, REMOVED_RANGE * rms)),
    ]


def draw_signal(ax: Axes, panel: Panel, label: str) -> None:
    """Draw a line per channel."""
    ax.plot(panel.shown, lw=0.8, color="k")
    for line, style in zip(ax.get_lines(), LINE_STYLES * panel.shown.shape[1], strict=False):
        line.set_linestyle(style)
    ax.set(title=panel.title, ylabel=label)


def draw_image(ax: Axes, panel: Panel, label: str) -> None:
    """Draw grey values with a colour bar, or colours without one."""
    low, high = panel.limits
    if high <= low:
        high = low + 1
    if panel.shown.shape[-1] == 3:
        # Removed noise has both signs. Scaled by its limits, mid-grey is zero.
        ax.imshow(np.clip((panel.shown - low) / (high - low), 0, 1))
    else:
        image = ax.imshow(panel.shown[..., 0], cmap=panel.colours, vmin=low, vmax=high)
        ax.figure.colorbar(image, ax=ax, label=label, shrink=0.85)
    ax.set(title=panel.title, xticks=[], yticks=[])


def _rms(mse: float) -> float:
    return float(np.sqrt(max(mse, 0.0)))
