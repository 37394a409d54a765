"""Patches that look alike, combined from the first row of the data to the last: few rows are held at once."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._kernels import Ridge, ridge_groups
from .._threads import cores, thread_map
from .patches import LEAST_POWER, Patches, as_volume, reference_starts

T = TypeVar("T")

# Where references start along the first axis, in bands; and where the patches of their groups start.
Starts = list[NDArray[np.int64]]
Places = list[NDArray[np.int32]]


class StreamedRows(NamedTuple):
    """Rows of the data along their first axis, (parts, rows, ...): what was made of them, and what they were."""

    rows: slice
    value: Floats
    divergence: Floats
    data: Floats


class InputRows(NamedTuple):
    """The next rows of the pilot and of the data, (parts, rows, ...)."""

    pilot: Floats
    data: Floats


def band_groups(patches: Patches, shape: tuple[int, ...]) -> list[Starts]:
    """Return where references start along the first axis: bands of them, as many in a group as there are cores."""
    starts = reference_starts(shape[0], patches.block[0], patches.step)
    each = patches.band_rows(shape)
    bands = [starts[i : i + each] for i in range(0, len(starts), each)]
    return [bands[i : i + cores()] for i in range(0, len(bands), cores())]


def matched_groups(patches: Patches, x: Floats, groups: list[Starts], make: Callable[[int], None]) -> Iterator[Places]:
    """Yield what `Patches.match` returns, for the bands of one group after the other.

    `make(stop)` is called before rows up to `stop` are looked at.
    """
    for bands in groups:
        make(min(int(bands[-1][-1]) + patches.search + patches.block[0], x.shape[1]))
        yield [patches.match(x, starts) for starts in bands]


def shared(items: Iterable[T], readers: int) -> list[Iterator[T]]:
    """Return iterators over the same items, each of which is freed once all have read it.

    `itertools.tee` frees 57 at a time: those are the places of patches of most of the data.
    """
    source, waiting = iter(items), [deque[T]() for _ in range(readers)]

    def read(own: deque[T]) -> Iterator[T]:
        while True:
            if not own:
                try:
                    item = next(source)
                except StopIteration:
                    return
                for each in waiting:
                    each.append(item)
                del item
            yield own.popleft()

    return [read(own) for own in waiting]


def combined_rows(
    patches: Patches,
    shape: tuple[int, ...],
    groups: list[Starts],
    places: Iterable[Places],
    source: Iterator[InputRows],
    ridge: tuple[float, float],
) -> Iterator[StreamedRows]:
    """Yield what `Patches.combine` returns, rows by rows, as soon as no more group reaches them.

    Parameters
    ----------
    patches : Patches
        Their sides, and where they are looked for.
    shape : tuple of int
        Of the data.
    groups : list
        What `band_groups` returned.
    places : iterable
        What `matched_groups` yields.
    source : iterator
        Yields all rows of pilot and data, in order.
    ridge : (float, float)
        The noise level of the data, and the share of their own products.
    """
    width, top = math.prod(shape[1:]), patches.search + patches.block[0]
    held = next(source)
    parts = len(held.data)
    sums = np.zeros((parts + 2, 0), held.data.dtype)  # estimates, weights, divergences of the rows that are held
    first = 0
    for k, (bands, found) in enumerate(zip(groups, places, strict=True)):
        last = min(int(bands[-1][-1]) + top, shape[0])
        while first + held.data.shape[1] < last:
            held = InputRows(*(np.concatenate(pair, axis=1) for pair in zip(held, next(source), strict=True)))
        sums = np.pad(sums, ((0, 0), (0, max((last - first) * width - sums.shape[1], 0))))
        _add_groups(patches, held, [at - np.int32(first * width) for at in found], ridge, sums)
        final = shape[0] if k == len(groups) - 1 else max(int(groups[k + 1][0][0]) - patches.search, first)
        count = final - first
        done = sums[:, : count * width]
        means = (done[[*range(parts), parts + 1]] / done[parts]).reshape(-1, count, *shape[1:])
        rows = StreamedRows(slice(first, final), means[:parts], means[parts], held.data[:, :count].copy())
        # Copies, so that no more than these rows are held while others work on those that are done.
        held, sums, first = InputRows(*(a[:, count:].copy() for a in held)), sums[:, count * width :].copy(), final
        del done, means, found
        if count:
            yield rows
        del rows


def _add_groups(patches: Patches, held: InputRows, places: Places, ridge: tuple[float, float], sums: Floats) -> None:
    """Add what the groups of some bands make of the rows that are held."""
    x, y = (np.ascontiguousarray(a).reshape(len(a), *as_volume(a.shape[1:])) for a in held)
    weights, block, parts = Ridge(*ridge, LEAST_POWER), as_volume(patches.block), len(y)
    for some in thread_map(lambda at: ridge_groups(x, y, block, at, weights), places):
        part = slice(some.first, some.first + some.weight.size)
        sums[:parts, part] += some.total
        sums[parts, part] += some.weight
        sums[parts + 1, part] += some.divergence
