"""What the report displays: the slices, channels or pages of data, before and after, with what was removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validate import Array
from ..denoising.denoiser import Denoiser
from ..denoising.layout import read_layout
from ..denoising.result import Denoised
from .pictures import COLOURS, display_axis

# Most entries displayed along each axis, by the number of axes. Larger parts make larger files: a picture of 1024 by
# 1024 takes 3 MB. Slices of volumes are smaller, because there are several; so are colours, which take three times the
# space.
MOST_SHOWN = {1: (1 << 18,), 2: (1024, 1024), 3: (256, 256)}
MOST_SHOWN_COLOURS = 576
# Most slices, channels or pages.
MOST_VIEWS = 12


class View(NamedTuple):
    """A picture, or a line, of the data.

    Attributes
    ----------
    label : str
        Which slice, channel or page it is; empty if there is only one.
    before, after : ndarray
        (samples,) or (rows, columns, 1 or 3). Missing entries are NaN. Complex numbers are shown by their modulus.
    removed : ndarray
        What was removed, of the same shape; its real part if the data are complex.
    error : ndarray
        The predicted root mean squared error at each entry, (samples,) or (rows, columns).
    """

    label: str
    before: NDArray[Any]
    after: NDArray[Any]
    removed: NDArray[Any]
    error: Array


class Shown(NamedTuple):
    """The views of an array, and in words which part of it they show."""

    views: list[View]
    words: str


def spread(count: int, most: int = MOST_VIEWS) -> list[int]:
    """Return at most so many of the numbers below a count: all, or some at even distances, the middle one included."""
    if count <= most:
        return list(range(count))
    step = count / most
    return [int((k + 0.5) * step) for k in range(most)]


def views_of(y: Any, denoiser: Denoiser, found: Denoised) -> Shown:
    """Return what is displayed of data and estimate: all of a picture, slices of a volume, channels of a signal."""
    shape = found.estimate.shape
    axis = display_axis(shape, denoiser.channel_axis)
    missing = missing_entries(y, denoiser)
    arrays = [np.ma.getdata(y), np.ma.getdata(found.estimate), removed_from(y, found)]
    if missing is not None:
        arrays = [np.where(missing, np.nan, a) for a in arrays]
    # Channels last, one if there are none.
    before, after, removed = (a[..., None] if axis is None else np.moveaxis(a, axis, -1) for a in arrays)
    if np.iscomplexobj(before):
        before, after = np.abs(before), np.abs(after)
    error = np.sqrt(error_of_channels(found, shape, axis))
    sides, channels = before.shape[:-1], before.shape[-1]
    part = _middle(sides, channels)
    slices = spread(sides[0]) if len(sides) == 3 else [None]
    kinds = _channels_shown(len(sides), channels)
    views = []
    for number in slices:
        for kind in kinds:
            place: Any = part if number is None else (number, *part)
            words = [] if number is None else [f"slice {number + 1} of {sides[0]}"]
            words += [] if kind is None or len(kinds) == 1 else [f"channel {kind + 1} of {channels}"]
            chosen: Any = slice(0, 3) if kind is None else kind if len(sides) == 1 else slice(kind, kind + 1)
            shown = [a[place][..., chosen] for a in (before, after, removed)]
            views.append(View(", ".join(words), shown[0], shown[1], shown[2], error[place]))
    return Shown(views, _part_words(sides, part, slices))


def removed_from(y: Any, found: Denoised) -> NDArray[Any]:
    """Return what was removed from y, as floats; its real part if y is complex."""
    estimate = np.ma.getdata(found.estimate)
    # Integers are subtracted as floats: unsigned ones would wrap around.
    removed: NDArray[Any] = np.asarray(np.ma.getdata(y), dtype=np.result_type(estimate.dtype, np.float32)) - estimate
    return removed.real


def missing_entries(y: Any, denoiser: Denoiser) -> NDArray[np.bool_] | None:
    """Return where entries of y are missing, in the shape of y; None if none is."""
    missing = read_layout(y, denoiser.channel_axis, denoiser.mask).missing
    if missing is None:
        return None
    if denoiser.channel_axis is not None:
        missing = np.expand_dims(missing, denoiser.channel_axis)
    return np.broadcast_to(missing, np.shape(y))


def error_of_channels(found: Denoised, shape: tuple[int, ...], axis: int | None) -> Array:
    """Return the map of the predicted squared error without the axis of channels, and with all others."""
    error: Array = found.error_map()
    if error.ndim < len(shape):
        if axis is not None:
            return error
        # Slices that the denoiser took for channels have one map for all.
        return np.broadcast_to(np.expand_dims(error, shape.index(min(shape))), shape)
    return error if axis is None else error.mean(axis=axis)


def _channels_shown(ndim: int, channels: int) -> list[int | None]:
    """Return the channels that have a view of their own; None stands for three colours in one."""
    if ndim > 1 and channels in COLOURS:
        return [None]
    return [channels // 2] if ndim == 3 else [*spread(channels)]


def _middle(sides: Sequence[int], channels: int) -> tuple[slice, ...]:
    """Return the middle of a signal, a picture or a slice, small enough to be displayed."""
    most = MOST_SHOWN[len(sides)]
    if len(sides) > 1 and channels > 1:
        most = tuple(min(n, MOST_SHOWN_COLOURS) for n in most)
    shown = list(sides)[-len(most) :]
    starts = [max(n - m, 0) // 2 for n, m in zip(shown, most, strict=True)]
    return tuple(slice(s, s + min(m, n)) for s, m, n in zip(starts, most, shown, strict=True))


def _part_words(sides: Sequence[int], part: tuple[slice, ...], slices: Sequence[int | None]) -> str:
    """Say which part of data with these sides is displayed."""
    words = []
    shown = sides[-len(part) :]
    if any(s.stop - s.start < n for s, n in zip(part, shown, strict=True)):
        names = ("samples",) if len(part) == 1 else ("rows", "columns")
        words.append(
            "the middle: "
            + " and ".join(
                f"{name} {s.start} to {s.stop - 1} of {n}" for name, s, n in zip(names, part, shown, strict=True)
            )
        )
    if len(sides) == 3 and len(slices) < sides[0]:
        words.append(f"{len(slices)} of {sides[0]} slices")
    return "; ".join(words)
