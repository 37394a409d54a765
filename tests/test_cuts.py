"""Parts cut out of dask arrays: those of NumPy, whatever the chunks, by few tasks."""

import itertools

import numpy as np
import pytest

import scorethresh as st
from scorethresh.denoising.places import widened

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

from scorethresh.scale.cuts import Chunks, Cut, Tile, tile_graph, tile_results  # noqa: E402
from scorethresh.scale.grid import Grid  # noqa: E402


def parts(tile, shared, *arrays):
    return tile, shared, arrays


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [((50,), 7), ((50,), ((1, 48, 1),)), ((20, 30), (20, 30)), ((20, 30), ((3, 17), (1, 9, 20))), ((9, 8, 11), 4)],
)
def test_parts_are_those_of_numpy(rng, shape, chunks):
    y = rng.normal(size=(2, *shape))
    lazy, mask = da.from_array(y, chunks=(1, *da.core.normalize_chunks(chunks, shape))), y[0] > 0
    places = [tuple(slice(*sorted(rng.choice(n + 1, 2, replace=False))) for n in shape) for _ in range(20)]
    tiles = [Tile(place, place) for place in places]
    shared = dask.delayed({"a": 1})
    found = tile_results(parts, tiles, [Chunks(lazy), None, Chunks(da.from_array(mask, chunks=5))], shared)
    for place, (tile, given, (some, nothing, flags)) in zip(places, found, strict=True):
        assert (tile.wide, given, nothing) == (place, {"a": 1}, None)
        np.testing.assert_array_equal(some, y[(slice(None), *place)])
        np.testing.assert_array_equal(flags, mask[place])
        assert (some.dtype, flags.dtype) == (y.dtype, bool)


def test_a_tile_lies_in_what_is_read_for_it():
    grid = Grid(((0, 5, 12), (0, 3, 9)), 2)
    y = np.arange(12 * 9).reshape(12, 9)
    for index, tile in grid.tiles.items():
        np.testing.assert_array_equal(y[tile.wide][tile.inner], y[grid.tile(index)])
        assert tile.wide == widened(tile.place, 2, (12, 9))[0]


def test_small_parts_are_cut_out_where_their_chunk_lies():
    """A quarter of a chunk, in one of three tasks, goes with it; a corner is cut out first."""
    y = da.ones((40, 40), chunks=20)
    tiles = {(0,): Tile(*[(slice(0, 25), slice(0, 15))] * 2)}
    name, graph = tile_graph(parts, tiles, [Chunks(y)])
    tasks = graph.layers[name]
    assert len(tasks) == 2
    ((_, _, keys),) = [task for key, task in tasks.items() if key[0] == name]
    assert keys[0] == (y.name, 0, 0)
    assert keys[1] in tasks
    assert dask.get(dict(graph), keys[1]).shape == (5, 15)


def test_chunks_that_are_none_or_left_out_are_zero():
    cut = Cut((6,), np.uint8, ((slice(0, 2),), (slice(2, 4),)), ((slice(1, 3),), (slice(0, 2),)))
    ones, twos = np.ones(3, np.uint8), np.full(4, 2, np.uint8)
    np.testing.assert_array_equal(cut([ones, twos]), [1, 1, 2, 2, 0, 0])
    np.testing.assert_array_equal(cut([None, twos]), [0, 0, 2, 2, 0, 0])
    assert cut([None, None]) is None
    y = da.from_array(np.arange(1, 13), chunks=4)
    tiles = [Tile((slice(a, b),), (slice(a, b),)) for a, b in ((0, 12), (2, 6), (4, 8))]
    (_, _, [whole]), (_, _, [some]), (_, _, [nothing]) = tile_results(parts, tiles, [Chunks(y, frozenset({(0,)}))])
    np.testing.assert_array_equal(whole, [1, 2, 3, 4] + 8 * [0])
    np.testing.assert_array_equal(some, [3, 4, 0, 0])
    assert nothing is None
    assert tile_results(parts, tiles, [Chunks(y, frozenset())])[0][2] == (None,)


def test_graphs_of_other_tiles_have_other_names():
    y = da.ones((40,), chunks=20)
    given = [(y, (0, 9)), (y, (0, 10)), (da.zeros((40,), chunks=20), (0, 9))]
    names = {tile_graph(parts, {(0,): Tile((slice(*at),), (slice(*at),))}, [Chunks(x)])[0] for x, at in given}
    names.add(tile_graph(parts, {(0,): Tile((slice(0, 9),), (slice(0, 9),))}, [Chunks(y, frozenset({(0,)}))])[0])
    assert len(names) == 4


@pytest.mark.parametrize("place", [(slice(3, 7), slice(0, 9)), (slice(5, 6), slice(2, 4)), (slice(0, 5), slice(3, 4))])
def test_tiles_that_share_entries_with_a_place_are_found(place):
    grid = Grid(((0, 5, 12), (0, 3, 9)), 2)
    marked = np.zeros((12, 9), bool)
    marked[place] = True
    expected = {index for index in itertools.product(range(2), repeat=2) if marked[grid.tile(index)].any()}
    assert grid.touched([place]) == expected


def test_data_are_denoised_by_few_tasks(rng, monkeypatch):
    """One task per chunk and tile, one per part of a neighbour that a tile looks at, and three per tile for sums."""
    y = (9 * np.sin(np.arange(2304.0) / 30)[:, None] + rng.normal(size=(2304, 2048))).astype(np.float32)
    lazy = st.Denoiser(choose="bands", levels=2).run(da.from_array(y, chunks=(768, 1024)))
    (optimised,) = dask.optimize(lazy.estimate)
    chunks, tiles = 6, 32
    neighbours = 2 * 2 * tiles  # tiles meet at most two chunks along each axis
    assert len(dict(optimised.__dask_graph__())) <= chunks + neighbours + 3 * tiles
