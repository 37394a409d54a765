"""The data of a file, and how to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The name of one part along the stack axis, by format.
_PART_NAMES = {"TIFF": "page", "CSV": "column", "NIfTI": "volume"}


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
        TIFF: whether the pages are one volume rather than separate pictures.
    channel_axis : int, optional
        NPY: the axis of colours or channels.
    """

    columns: tuple[str, ...] = ()
    volume: bool = False
    channel_axis: int | None = None


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
        The axis of colours or channels, counted from the end.
    stack_axis : int, optional
        The axis of pages, columns or volumes. Each of these parts is denoised by itself.
    alpha : ndarray, optional
        Opacity: further channels, which are not denoised.
    metadata : object
        What the writer of the same format needs besides the numbers.
    """

    values: NDArray[Any]
    format: str
    channel_axis: int | None = None
    stack_axis: int | None = None
    alpha: NDArray[Any] | None = None
    metadata: Any = None

    def parts(self) -> list[NDArray[Any]]:
        """Return the arrays that are denoised one by one."""
        return [self.values] if self.stack_axis is None else list(np.moveaxis(self.values, self.stack_axis, 0))

    def part_name(self, index: int) -> str:
        """Return the name of a part for messages, such as ``page 9 of 16``."""
        return f"{_PART_NAMES.get(self.format, 'part')} {index + 1} of {len(self.parts())}"

    def join_parts(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return denoised parts as one array, laid out like `values`."""
        return parts[0] if self.stack_axis is None else np.stack(parts, axis=self.stack_axis)

    def merge_equal_channels(self) -> Data:
        """Return the data with one channel and no channel axis if all channels are equal, else unchanged.

        Equal channels, such as grey stored as RGB, have equal noise. A denoiser that takes it for independent would
        leave most of it.
        """
        if self.channel_axis is None or self.stack_axis not in (None, 0) or not self.values.shape[self.channel_axis]:
            return self
        first = np.take(self.values, [0], axis=self.channel_axis)
        if not np.array_equal(self.values, np.broadcast_to(first, self.values.shape), equal_nan=True):
            return self
        return replace(self, values=first.squeeze(self.channel_axis), channel_axis=None)

    def repeat_channel(self, channel: NDArray[Any]) -> NDArray[Any]:
        """Return one channel repeated for every channel of `values`: undoes `merge_equal_channels`."""
        if self.channel_axis is None:
            return channel
        times = self.values.shape[self.channel_axis]
        return np.repeat(np.expand_dims(channel, self.channel_axis), times, self.channel_axis)

    def with_alpha(self) -> NDArray[Any]:
        """Return the values and the opacity as one array."""
        if self.alpha is None or self.channel_axis is None:
            return self.values
        if self.alpha.dtype != self.values.dtype:
            msg = f"opacity of dtype {self.alpha.dtype} does not go with {self.values.dtype}. Leave --dtype out."
            raise FileError(msg)
        return np.concatenate([self.values, self.alpha], axis=self.channel_axis)
