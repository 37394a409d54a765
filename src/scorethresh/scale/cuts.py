"""Parts of dask arrays, cut out of the chunks that hold them: few tasks, and every entry is copied once."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..denoising.places import Place
from .allocator import reuse_freed_memory

# A part of less than this share of its chunk is cut out by a task of its own, where the chunk lies, so that no more is
# moved. A larger one is cut out by the task that needs it, which saves the scheduler a task.
SMALL_SHARE = 0.25


class Tile(NamedTuple):
    """A tile, and what is read for it: its place in the data, and that with its margin."""

    place: Place
    wide: Place

    @property
    def inner(self) -> Place:
        """The place of the tile in what is read."""
        return tuple(slice(s.start - w.start, s.stop - w.start) for s, w in zip(self.place, self.wide, strict=True))


# What runs in the workers: it gets a tile, what all tasks share, and a part of each array; None if that has no part.
TileFunction = Callable[..., Any]


@dataclass(frozen=True)
class Chunks:
    """A dask array that parts are cut out of. Axes before those of the places are taken whole.

    Attributes
    ----------
    x : dask array
        Its chunks may be None, which stands for zeros.
    blocks : frozenset of tuple of int, optional
        Of which chunks it consists, if the others are known to be None.
    together : bool
        Whether small parts go with their chunks, too: where most chunks are None, or small themselves.
    """

    x: Any
    blocks: frozenset[tuple[int, ...]] | None = None
    together: bool = False


@dataclass(frozen=True)
class Cut:
    """How a part is put together: its shape and dtype, where pieces go, and where in their chunks they lie.

    Entries that no piece holds are zero.
    """

    shape: tuple[int, ...]
    dtype: Any
    there: tuple[Place, ...]
    here: tuple[Place, ...]

    def __call__(self, chunks: Sequence[Any]) -> NDArray[Any] | None:
        """Return the part, given the chunks; None if all of them are."""
        if all(chunk is None for chunk in chunks):
            return None
        held = sum(_size(there) for there, chunk in zip(self.there, chunks, strict=True) if chunk is not None)
        whole = held == math.prod(self.shape)
        if whole and len(chunks) == 1 and chunks[0].shape == self.shape:
            return np.asarray(chunks[0])
        out: NDArray[Any] = (np.empty if whole else np.zeros)(self.shape, self.dtype)
        for there, here, chunk in zip(self.there, self.here, chunks, strict=True):
            if chunk is not None:
                out[there] = chunk[here]
        return out


@dataclass(frozen=True)
class Slice:
    """Cuts a small part out of a chunk, where that lies."""

    here: Place

    def __call__(self, chunk: Any) -> Any:
        """Return a copy of the part, which does not keep the chunk in memory."""
        return None if chunk is None else np.array(chunk[self.here])


@dataclass(frozen=True)
class TileTask:
    """Runs a function of a tile."""

    function: TileFunction
    tile: Tile
    cuts: tuple[Cut, ...]

    def __call__(self, shared: Any, *chunks: Sequence[Any]) -> Any:
        """Return what the function makes of the chunks."""
        reuse_freed_memory()
        return self.function(self.tile, shared, *(cut(some) for cut, some in zip(self.cuts, chunks, strict=True)))


@dataclass
class _Cutter:
    """Cuts parts out of an array, and collects the tasks for small ones."""

    source: Chunks
    tasks: dict[Any, Any]
    edges: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.edges = [list(itertools.accumulate(sizes, initial=0)) for sizes in self.source.x.chunks]

    def cut(self, place: Place) -> tuple[Cut, list[Any]]:
        """Return how a part is put together, and the keys of what it is made of."""
        x = self.source.x
        place = (*(slice(0, n) for n in x.shape[: x.ndim - len(place)]), *place)
        there, here, keys = [], [], []
        for pieces in itertools.product(*map(_pieces_along, self.edges, place)):
            block = tuple(piece[0] for piece in pieces)
            if self.source.blocks is not None and block not in self.source.blocks:
                continue
            key, inside = (x.name, *block), tuple(piece[2] for piece in pieces)
            if not self.source.together and _size(inside) < SMALL_SHARE * math.prod(
                x.chunks[k][i] for k, i in enumerate(block)
            ):
                ends = (end for s in inside for end in (s.start, s.stop))
                small = (f"part-{x.name}", *block, *ends)
                self.tasks[small] = (Slice(inside), key)
                key, inside = small, tuple(slice(0, s.stop - s.start) for s in inside)
            there.append(tuple(piece[1] for piece in pieces))
            here.append(inside)
            keys.append(key)
        return Cut(tuple(s.stop - s.start for s in place), x.dtype, tuple(there), tuple(here)), keys


def _size(place: Place) -> int:
    return math.prod(s.stop - s.start for s in place)


def _pieces_along(edges: Sequence[int], part: slice) -> list[tuple[int, slice, slice]]:
    """Return which chunks a part meets along an axis, where the pieces lie in the part, and where in the chunk."""
    found = []
    for k in range(bisect.bisect_right(edges, part.start) - 1, len(edges) - 1):
        start, stop = max(edges[k], part.start), min(edges[k + 1], part.stop)
        if edges[k] >= part.stop:
            break
        if start < stop:
            there = slice(start - part.start, stop - part.start)
            found.append((k, there, slice(start - edges[k], stop - edges[k])))
    return found


def tile_graph(
    function: TileFunction,
    tiles: Mapping[tuple[int, ...], Tile],
    sources: Iterable[Chunks | None],
    shared: Any = None,
) -> tuple[str, Any]:
    """Return a name, and a graph of tasks with the keys ``(name, *index)``, one for every tile.

    Parameters
    ----------
    function : callable
        What runs: see `TileFunction`.
    tiles : mapping
        The tiles by their index.
    sources : iterable of Chunks
        What the function gets parts of, with the margins of the tiles; None for a part that is None.
    shared : Delayed, optional
        What all tasks get.
    """
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph

    given = [some if some is None or some.blocks is None or some.blocks else None for some in sources]
    known = [(None, None) if some is None else (some.x.name, sorted(some.blocks or ())) for some in given]
    ends = [[(s.start, s.stop) for s in (*tile.place, *tile.wide)] for tile in tiles.values()]
    token = tokenize(known, repr((list(tiles), ends)), None if shared is None else shared.key)
    name = f"{function.__name__.strip('_')}-{token}"
    tasks: dict[Any, Any] = {}
    cutters = [None if some is None else _Cutter(some, tasks) for some in given]
    nothing: tuple[Cut, list[Any]] = Cut((), None, (), ()), []
    for index, tile in tiles.items():
        parts = [nothing if cutter is None else cutter.cut(tile.wide) for cutter in cutters]
        task = TileTask(function, tile, tuple(cut for cut, _ in parts))
        tasks[(name, *index)] = (task, None if shared is None else shared.key, *(keys for _, keys in parts))
    needed = [some.x for some in given if some is not None] + ([] if shared is None else [shared])
    return name, HighLevelGraph.from_collections(name, tasks, needed)


def tile_results(
    function: TileFunction,
    tiles: Sequence[Tile],
    sources: Iterable[Chunks | None],
    shared: Any = None,
) -> list[Any]:
    """Compute what a function makes of tiles, in their order; see `tile_graph`."""
    import dask
    from dask.delayed import Delayed

    name, graph = tile_graph(function, {(k,): tile for k, tile in enumerate(tiles)}, sources, shared)
    return list(dask.compute(*(Delayed((name, k), graph, layer=name) for k in range(len(tiles)))))
