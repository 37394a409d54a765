"""The data of a file, and how to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


class FileError(ValueError):
    """A file that cannot be read or written; the message says what to do."""


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file.

    Attributes
    ----------
    columns : tuple of str
        CSV: names of columns, or their numbers from 1. Empty: the only column of numbers.
    volume : bool
        TIFF, DICOM: whether the pages are one volume rather than separate pictures.
    channel_axis : int, optional
        NPY, NPZ, Zarr, FITS: the axis of colours or channels.
    axes : str
        TIFF, DICOM, NPY, NPZ, Zarr, FITS: a letter per axis, such as ``ZCYX``; empty: what the file says.
    key : str
        NPZ, Zarr: the name of the array; FITS: that of the extension. Empty: the only one.
    """

    columns: tuple[str, ...] = ()
    volume: bool = False
    channel_axis: int | None = None
    axes: str = ""
    key: str = ""


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of a file, the meaning of their axes, and its metadata.

    Attributes
    ----------
    values : ndarray
        The numbers to denoise.
    format : str
        The name of the format that they were read from.
    channel_axis : int, optional
        The axis of colours or channels that are denoised together, counted from the end.
    stack_axes : tuple of int
        The axes of pages, channels, columns or volumes. Each of these parts is denoised by itself.
    stack_names : tuple of str
        What one part along each of `stack_axes` is called, such as ``page``.
    splits : tuple of int
        Where parts of different length end in `values`, which then has one axis: all but the last.
    alpha : ndarray, optional
        Opacity: further channels, which are not denoised.
    metadata : object
        What the writer of the same format needs besides the numbers.
    understood : str
        What was understood of the axes, in words; empty if there is nothing to tell.
    """

    values: NDArray[Any]
    format: str
    channel_axis: int | None = None
    stack_axes: tuple[int, ...] = ()
    stack_names: tuple[str, ...] = ()
    splits: tuple[int, ...] = ()
    alpha: NDArray[Any] | None = None
    metadata: Any = None
    understood: str = ""

    @property
    def stack_shape(self) -> tuple[int, ...]:
        """How many parts there are along each of `stack_axes`, or in all if they differ in length."""
        return (len(self.splits) + 1,) if self.splits else tuple(self.values.shape[k] for k in self.stack_axes)

    @property
    def part_channel_axis(self) -> int | None:
        """The axis of channels in a part, counted from the end."""
        if self.channel_axis is None:
            return None
        behind = [k for k in self.stack_axes if k % self.values.ndim > self.channel_axis % self.values.ndim]
        return self.channel_axis + len(behind)

    def parts(self) -> list[NDArray[Any]]:
        """Return the arrays that are denoised one by one."""
        if self.splits:
            return np.split(self.values, self.splits)
        if not self.stack_axes:
            return [self.values]
        moved = np.moveaxis(self.values, self.stack_axes, range(len(self.stack_axes)))
        return [moved[index] for index in np.ndindex(self.stack_shape)]

    def part_name(self, index: int) -> str:
        """Return the name of a part for messages, such as ``page 9 of 16``."""
        shape = self.stack_shape
        places = np.unravel_index(index, shape)
        return ", ".join(
            f"{name} {place + 1} of {n}" for name, place, n in zip(self.stack_names, places, shape, strict=True)
        )

    def join_parts(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return denoised parts as one array, laid out like `values`."""
        if self.splits:
            return np.concatenate(parts)
        if not self.stack_axes:
            return parts[0]
        stacked = np.stack(parts).reshape(*self.stack_shape, *parts[0].shape)
        return np.moveaxis(stacked, range(len(self.stack_axes)), self.stack_axes)

    def merge_equal_channels(self) -> Data:
        """Return the data with one channel and no channel axis if all channels are equal, else unchanged.

        Equal channels, such as grey stored as RGB, have equal noise. A denoiser that takes it for independent would
        leave most of it.
        """
        axis = self.channel_axis
        if axis is None or not self.values.shape[axis] or self.part_channel_axis != axis:
            return self
        first = np.take(self.values, [0], axis=axis)
        if not np.array_equal(self.values, np.broadcast_to(first, self.values.shape), equal_nan=True):
            return self
        return replace(self, values=first.squeeze(axis), channel_axis=None)

    def repeat_channel(self, channel: NDArray[Any]) -> NDArray[Any]:
        """Return one channel repeated for every channel of `values`: undoes `merge_equal_channels`."""
        if self.channel_axis is None:
            return channel
        times = self.values.shape[self.channel_axis]
        return np.repeat(np.expand_dims(channel, self.channel_axis), times, self.channel_axis)

    def with_opacity(self, count: int) -> Data:
        """Return the data with the last `count` channels set aside as opacity."""
        if self.channel_axis is None or not count:
            return self
        values, alpha = np.split(self.values, [self.values.shape[self.channel_axis] - count], axis=self.channel_axis)
        return replace(self, values=values, alpha=alpha)

    def with_alpha(self) -> NDArray[Any]:
        """Return the values and the opacity as one array."""
        if self.alpha is None or self.channel_axis is None:
            return self.values
        if self.alpha.dtype != self.values.dtype:
            msg = f"opacity of dtype {self.alpha.dtype} does not go with {self.values.dtype}. Leave --dtype out."
            raise FileError(msg)
        return np.concatenate([self.values, self.alpha], axis=self.channel_axis)
