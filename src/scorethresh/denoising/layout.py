"""Data of any shape and dtype as channels of real parts, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import as_integers, cropped
from .value_range import ValueRange

# By the number of axes: an axis of at most this length is treated as channels, if the others have MIN_PLANE entries
# or more. Wavelets and windows find little to do along so short an axis.
MOST_SLICES = {1: 0, 2: 2, 3: 8}
MIN_PLANE = 32


@dataclass(frozen=True, eq=False)
class Layout:
    """Data as (channels, parts, *shape).

    Attributes
    ----------
    values : ndarray
        In the dtype of y. Parts are the real and the imaginary one, if y is complex.
    missing : ndarray of bool, optional
        (*shape), True where an entry is NaN or masked in any channel.
    channel_axis : int, optional
        The axis of y that the channels come from.
    masked : MaskedArray, optional
        y itself, if it was one.
    outliers : ndarray of bool, optional
        (*shape), True where an entry is known but says nothing. It is estimated from its neighbours.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None
    channel_axis: int | None
    masked: Any = None
    outliers: NDArray[np.bool_] | None = None

    @property
    def unknown(self) -> NDArray[np.bool_] | None:
        """Where entries are missing or outliers; None if none is."""
        if self.missing is None or self.outliers is None:
            return self.outliers if self.missing is None else self.missing
        return self.missing | self.outliers

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one channel."""
        return self.values.shape[2:]

    def crop(self, place: tuple[slice, ...]) -> Layout:
        """Return a part of the data."""
        return replace(
            self,
            values=cropped(self.values, place),
            missing=None if self.missing is None else self.missing[place],
            outliers=None if self.outliers is None else self.outliers[place],
            masked=None,
        )

    def with_slices_as_channels(self) -> Layout:
        """Return a volume of few slices, or a picture of two rows, as channels; other data as they are."""
        shape = self.shape
        few = min(shape) <= MOST_SLICES[len(shape)] and sorted(shape)[1] >= MIN_PLANE
        if self.channel_axis is not None or self.missing is not None or not few:
            return self
        axis = shape.index(min(shape))
        return replace(self, values=np.moveaxis(self.values[0], 1 + axis, 0), channel_axis=axis)

    def completed(
        self, out: NDArray[Any], kept: NDArray[np.bool_] | None, channels: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Return `out`, as (channels, parts, *shape), in the dtype of y and with what y has to add.

        `out` holds the channels that are True in `channels`, all by default; the others come from y. So do entries that
        are `kept`, (*shape).
        """
        dtype = self.values.dtype
        out = as_integers(out, dtype) if dtype.kind in "iu" else out.astype(dtype, copy=False)
        if channels is not None:
            some, out = out, self.values.copy()
            out[channels] = some
        if kept is not None:
            out[:, :, kept] = self.values[:, :, kept]
        return out

    def write(self, out: NDArray[Any]) -> NDArray[Any]:
        """Return `out`, as (channels, parts, *shape) and in the dtype of y, in the layout of y.

        A masked array stays one.
        """
        dtype = self.values.dtype
        if out.shape[1] == 2:  # not by 1j, which times infinity is NaN
            joined = np.empty_like(out[:, 0], dtype=np.result_type(out.dtype, 1j).newbyteorder(dtype.byteorder))
            joined.real, joined.imag = out[:, 0], out[:, 1]
        else:
            joined = out[:, 0]
        result = joined[0] if self.channel_axis is None else np.moveaxis(joined, 0, self.channel_axis)
        if self.masked is None:
            return result
        # A mask of its own: writing to the result must not change y.
        mask, fill = np.ma.getmaskarray(self.masked).copy(), self.masked.fill_value
        return np.ma.array(result, mask=mask, fill_value=fill, hard_mask=self.masked.hardmask)

    def unchanged(self) -> NDArray[Any]:
        """Return a copy of y."""
        return self.write(self.values.copy())


def read_layout(y: Any, channel_axis: int | None, mask: Any) -> Layout:
    """Return y as channels of real parts; refuse what cannot be denoised."""
    masked = y if isinstance(y, np.ma.MaskedArray) else None
    if masked is not None:
        if mask is not None:
            msg = "mask is given twice: y is a masked array. Leave one out."
            raise ValueError(msg)
        a, mask = np.asarray(y.data), np.ma.getmaskarray(y)
    else:
        a = _validate.as_array(y)
        mask = None if mask is None else np.asarray(mask)
    check_dtypes(a, mask)
    a, mask = with_channels_first(a, mask, channel_axis)
    parts = as_parts(a)
    missing = missing_entries(parts, mask)
    ValueRange.of(parts, missing).check()
    return Layout(parts, missing, channel_axis, masked)


def as_parts(a: NDArray[Any]) -> NDArray[Any]:
    """Return (channels, *shape) as (channels, parts, *shape)."""
    if a.dtype.kind != "c":
        return a[:, None]
    return np.stack([a.real, a.imag], axis=1).astype(a.real.dtype, copy=False)


def check_dtypes(a: NDArray[Any], mask: NDArray[Any] | None) -> None:
    """Refuse data that are no numbers, masks that are no booleans, and empty data."""
    if a.dtype.kind not in "iufc":
        msg = f"y must hold numbers, got dtype {a.dtype}. Convert it first: np.asarray(y, dtype=float)."
        raise TypeError(msg)
    if mask is not None and mask.dtype != bool:
        msg = f"mask must hold booleans, True where entries are missing, got dtype {mask.dtype}. Try mask.astype(bool)."
        raise TypeError(msg)
    if a.size == 0:
        msg = f"y is empty, with shape {a.shape}. Pass at least one entry."
        raise ValueError(msg)


def with_channels_first(
    a: NDArray[Any], mask: NDArray[Any] | None, channel_axis: int | None
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return y as (channels, *shape) and the mask as (*shape)."""
    shape = a.shape
    if channel_axis is not None:
        whole = isinstance(channel_axis, int | np.integer) and not isinstance(channel_axis, bool)
        if not whole or not -a.ndim <= channel_axis < a.ndim:
            msg = f"channel_axis must be an axis of y, which has {a.ndim}, got {channel_axis!r}. For the last axis: -1."
            raise ValueError(msg)
        if mask is not None and mask.shape == a.shape:
            mask = cast(Any, mask.any(axis=channel_axis))  # lazy if the mask is
        a = np.moveaxis(a, channel_axis, 0)
    else:
        a = a[None]
    if not 1 <= a.ndim - 1 <= 3:
        msg = (
            f"y must have one to three axes beside that of channels, got shape {shape}. For a stack or colours "
            "name the axis, channel_axis=...; else denoise one after the other."
        )
        raise ValueError(msg)
    if mask is not None and mask.shape != a.shape[1:]:
        msg = f"mask must have the shape of one channel, {a.shape[1:]}, got {mask.shape}."
        raise ValueError(msg)
    return a, mask


def missing_entries(parts: NDArray[Any], mask: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Return where entries are masked, or NaN in some channel or part; None if none is."""
    if parts.dtype.kind == "f":
        bad = np.isnan(parts).any(axis=(0, 1))
        if bad.any():
            mask = bad if mask is None else mask | bad
    return mask if mask is not None and mask.any() else None
