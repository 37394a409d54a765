"""What a file holds, how to read it, and what may be wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Data with noise in them never shrink by so much; a file of this size that claims to is a bomb, or empty of noise.
_BOMB_RATIO = 100
_BOMB_BYTES = 1 << 30


class FileError(ValueError):
    """A file that cannot be read or written; the message says what to do."""


@dataclass(frozen=True, eq=False)
class Data:
    """What a file holds.

    Attributes
    ----------
    values : ndarray
        The numbers to be denoised.
    format : str
        The name of the format that they came in.
    channel_axis : int, optional
        The axis of colours, counted from the end.
    stack_axis : int, optional
        The axis of pages, columns or points in time: each is denoised by itself.
    alpha : ndarray, optional
        Opacity: further channels, which are left alone.
    kept : object
        What the writer of the same format needs besides.
    """

    values: NDArray[Any]
    format: str
    channel_axis: int | None = None
    stack_axis: int | None = None
    alpha: NDArray[Any] | None = None
    kept: Any = None

    def parts(self) -> list[NDArray[Any]]:
        """Return the arrays that are denoised one by one."""
        return [self.values] if self.stack_axis is None else list(np.moveaxis(self.values, self.stack_axis, 0))

    def joined(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return parts, by now denoised, as one array."""
        return parts[0] if self.stack_axis is None else np.stack(parts, axis=self.stack_axis)

    def single(self) -> Data:
        """Return the data with one channel and no axis for it if all channels are equal: grey stored in colours, say.

        Equal channels have equal noise; a denoiser that takes it for independent would leave most of it.
        """
        if self.channel_axis is None or self.stack_axis not in (None, 0) or not self.values.shape[self.channel_axis]:
            return self
        first = np.take(self.values, [0], axis=self.channel_axis)
        if not np.array_equal(self.values, np.broadcast_to(first, self.values.shape), equal_nan=True):
            return self
        return replace(self, values=first.squeeze(self.channel_axis), channel_axis=None)

    def repeated(self, one: NDArray[Any]) -> NDArray[Any]:
        """Return one channel, by now denoised, as often as there are channels."""
        assert self.channel_axis is not None
        return np.repeat(
            np.expand_dims(one, self.channel_axis), self.values.shape[self.channel_axis], self.channel_axis
        )

    def everything(self) -> NDArray[Any]:
        """Return the values and the opacity in one array."""
        if self.alpha is None or self.channel_axis is None:
            return self.values
        if self.alpha.dtype != self.values.dtype:
            msg = f"opacity of dtype {self.alpha.dtype} does not go with {self.values.dtype}. Leave --dtype out."
            raise FileError(msg)
        return np.concatenate([self.values, self.alpha], axis=self.channel_axis)


@dataclass(frozen=True)
class How:
    """How to read: which columns of a table, whether pages are one volume, which axis of a bare array is of colours."""

    columns: tuple[str, ...] = ()
    volume: bool = False
    channel_axis: int | None = None


def first_line(error: BaseException) -> str:
    """Return what an error says, in short."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def check_bomb(path: Path, claimed: int) -> None:
    """Raise if a file claims to hold so many bytes that it may be made to fill the memory."""
    if claimed > max(_BOMB_BYTES, _BOMB_RATIO * path.stat().st_size):
        msg = (
            f"{path} claims to hold {claimed / 2**30:.1f} GiB, {claimed / path.stat().st_size:.0f} times its size, and "
            "may be a decompression bomb. If you trust it, save it without compression."
        )
        raise FileError(msg)
