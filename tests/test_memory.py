"""Peak memory, and parts of the data: what is done slab by slab, row by row or piece by piece is as at once."""

import itertools
import tracemalloc
import weakref

import numpy as np
import pytest
import pywt

import scorethresh as st
from scorethresh import _arrays
from scorethresh._arrays import slabs
from scorethresh.denoising import converted, places
from scorethresh.denoising.aggregate import blend
from scorethresh.denoising.batch import Batch
from scorethresh.denoising.experts.nonlocal_ridge import PATCHES, NonlocalRidge
from scorethresh.denoising.local import LocalRows
from scorethresh.denoising.stabilise import centred
from scorethresh.denoising.tiles import row_bands
from scorethresh.frames import patches as patches_module
from scorethresh.frames.patch_stream import shared
from scorethresh.frames.wavelets import Decimated, Undecimated
from scorethresh.noise import windows
from scorethresh.risk.estimate import Estimate

CAMERA = pywt.data.camera()
MEGABYTE = 1 << 20


def image(rng, shape, dtype=np.uint8, level=12.0):
    tiled = np.tile(CAMERA, (3, 3))[: shape[0], : shape[1]]
    y = tiled + rng.normal(0.0, level, shape)
    return np.clip(np.rint(y), 0, 255).astype(dtype) if np.dtype(dtype).kind in "iu" else y.astype(dtype)


def volume(rng, side):
    z, y, x = np.mgrid[:side, :side, :side].astype(np.float32)
    return (9 * np.sin(z / 9 + y / 7) + 20 * (x > side // 3) + rng.normal(0, 3, z.shape)).astype(np.float32)


def peak_of(run):
    """Return the largest number of bytes that were allocated at once, beyond those before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        run()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("choose", ["bands", "fast", "blend"])
@pytest.mark.parametrize("kind", ["whole", "8 bits", "large 8 bits", "double", "signal", "volume"])
def test_peak_memory_is_at_most_eight_times_the_input_and_100_megabytes(rng, monkeypatch, choose, kind):
    """NumPy reports its arrays to tracemalloc. The C library keeps more: docs/scale.md says how much."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    y = {
        "whole": lambda: image(rng, (1000, 1000)),
        "8 bits": lambda: image(rng, (1400, 1300)),
        "large 8 bits": lambda: np.tile(image(rng, (1536, 1536)), (2, 2)),
        "double": lambda: image(rng, (1400, 1300), np.float64),
        "signal": lambda: (9 * np.sin(np.arange(1e6) / 90) + rng.normal(size=1_000_000)).astype(np.float32),
        "volume": lambda: volume(rng, 100),
    }[kind]()
    st.denoise(y[(slice(0, 64),) * y.ndim], choose=choose)  # what is loaded and kept at the first call
    assert peak_of(lambda: st.Denoiser(choose=choose).run(y)) < 8 * y.nbytes + 100 * MEGABYTE


def test_local_rows_are_made_when_they_are_needed_and_held_until_they_are_taken():
    made = []

    def bands():
        for k in range(3):
            made.append(k)
            yield np.full((4, 2), k, np.float32)

    rows = LocalRows(np.zeros((1, 12, 2), np.float32), bands())
    rows.make(3)
    assert made == [0]
    rows.make(5)
    assert made == [0, 1]
    np.testing.assert_array_equal(rows.taken_divergence(5)[:, 0], [0, 0, 0, 0, 1])
    rows.make(12)
    assert made == [0, 1, 2]
    np.testing.assert_array_equal(rows.taken_divergence(12)[:, 1], [1, 1, 1, 2, 2, 2, 2])


@pytest.mark.parametrize("shape", [(300, 200), (30, 20, 12), (700,)])
def test_values_that_are_converted_when_they_are_read_are_those_converted_at_once(rng, monkeypatch, shape):
    monkeypatch.setattr(converted, "TILE_ENTRIES", dict.fromkeys((1, 2, 3), 500))
    monkeypatch.setattr(_arrays, "SLAB_ENTRIES", 300)
    y = np.rint(rng.normal(100, 12, shape)).astype(np.uint8)
    layout, _, (values, back) = st.Denoiser(sigma=12.0).stabilised(y)
    expected, centre = centred(back.stabiliser, layout.values, None)
    assert isinstance(values, converted.ConvertedValues)
    assert (values.shape, values.dtype, len(values)) == (expected.shape, expected.dtype, 1)
    np.testing.assert_allclose(back.offset, centre.offset, rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(values), expected)
    place = (..., slice(3, 17))
    np.testing.assert_array_equal(np.asarray(values[0][place]), expected[0][place])


@pytest.mark.parametrize(
    ("dtype", "kind"), [(np.float32, "plain"), (np.int32, "plain"), (np.uint8, "gaps"), (np.uint8, "map")]
)
def test_other_values_are_arrays(rng, monkeypatch, dtype, kind):
    monkeypatch.setattr(converted, "TILE_ENTRIES", {2: 500})
    y = np.rint(rng.normal(100, 12, (60, 50))).astype(dtype)
    sigma = np.full(y.shape, 12.0) + np.arange(50) if kind == "map" else 12.0
    mask = rng.random(y.shape) < 0.1 if kind == "gaps" else None
    assert isinstance(st.Denoiser(sigma=sigma, mask=mask).stabilised(y)[2].values, np.ndarray)


def test_bands_of_tiles_hold_every_tile_once():
    tiles = places.tiles_of((4000, 3000))
    for count in (1, 4, 9, 1000):
        bands = list(row_bands(tiles, count))
        assert [tile for _, band in bands for tile in band] == tiles
        assert [bands[0][0].start, bands[-1][0].stop] == [0, 4000]
        assert all(a.stop == b.start for (a, _), (b, _) in itertools.pairwise(bands))
        assert all(len(band) >= count for _, band in bands[:-1])


@pytest.mark.parametrize(
    ("shape", "overlap"), [((1000,), 0), ((1000,), 1), ((7, 40), 1), ((3, 1000), 0), ((5, 4, 9), 2)]
)
def test_slabs_hold_every_row_once_and_the_overlap_twice(monkeypatch, shape, overlap):
    monkeypatch.setattr(_arrays, "SLAB_ENTRIES", 100)
    found = list(slabs(shape, overlap))
    assert len(found) > 1
    starts = [rows.start for rows in found]
    assert starts[0] == 0
    assert found[-1].stop == shape[0]
    for before, after in itertools.pairwise(found):
        assert before.stop - overlap == after.start


@pytest.mark.parametrize("kind", ["clipped", "gaps", "salt", "signal", "volume", "colours", "counts"])
def test_results_do_not_depend_on_the_slabs(rng, monkeypatch, kind):
    gaps = image(rng, (150, 170), np.float32)
    gaps[rng.random(gaps.shape) < 0.05] = np.nan
    salt = image(rng, (150, 170))
    some = rng.random(salt.shape) < 0.02
    salt[some] = 255 * rng.integers(0, 2, np.count_nonzero(some))
    y = {
        "clipped": image(rng, (150, 170), level=40.0),
        "gaps": gaps,
        "salt": salt,
        "signal": np.sin(np.arange(3000) / 40.0) + rng.normal(0, 0.3, 3000),
        "volume": volume(rng, 24),
        "colours": np.stack([image(rng, (90, 80)), image(rng, (90, 80)), 255 - image(rng, (90, 80))]),
        "counts": rng.poisson(CAMERA[:150, :170] / 4.0),
    }[kind]
    options = {"choose": "fast", "channel_axis": 0 if kind == "colours" else None}
    whole = st.Denoiser(**options).run(y)
    for module in (_arrays, windows):
        monkeypatch.setattr(module, "SLAB_ENTRIES", 700)
    found = st.Denoiser(**options).run(y)
    assert found.noise.name == whole.noise.name
    assert found.outliers == whole.outliers
    assert (whole.outliers > 0) == (kind == "salt")
    np.testing.assert_allclose(found.sigma, whole.sigma, rtol=1e-12)
    np.testing.assert_allclose(found.estimate, whole.estimate, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose([found.predicted_mse, found.stderr], [whole.predicted_mse, whole.stderr], rtol=1e-9)


@pytest.mark.parametrize("shape", [(200, 70), (4000,), (70, 13, 14)])
@pytest.mark.parametrize("parts", [1, 2])
def test_patches_combined_row_by_row_are_those_at_once(rng, monkeypatch, shape, parts):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(patches_module, "BAND", 1)
    monkeypatch.setattr(_arrays, "SLAB_ENTRIES", 600)
    y, pilot, guide = rng.normal(size=(3, parts, *shape)).astype(np.float32)
    expert = NonlocalRidge(PATCHES[len(shape)], (1.0, 0.65, 0.32))
    for guided in (None, guide):
        whole = expert.apply(Batch(y[None], guide=None if guided is None else guided[None]), pilot[None])
        found = list(expert.rows(y, pilot, guided))
        assert len(found) > 1
        assert [rows.rows.start for rows in found[1:]] == [rows.rows.stop for rows in found[:-1]]
        np.testing.assert_array_equal(np.concatenate([rows.value for rows in found], axis=1), whole.value[0])
        np.testing.assert_array_equal(np.concatenate([rows.divergence for rows in found]), whole.divergence[0])


def test_shared_items_are_freed_once_all_have_read_them():
    class Item:
        """Anything that can be counted."""

    alive = weakref.WeakSet()

    def source():
        for _ in range(20):
            yield (item := Item())
            alive.add(item)
            del item

    first, second = shared(source(), 2)
    seen = [id(next(first)) for _ in range(4)]
    assert len(alive) == 3  # and the one that was yielded last
    assert [id(next(second)) for _ in range(4)] == seen
    assert not alive
    assert len(list(second)) == len(list(first)) == 16


@pytest.mark.parametrize("frame", [Undecimated("haar", 3), Undecimated("db2", 2), Decimated("db2", 2)])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_visit_sees_the_bands_that_are_shrunk(rng, frame, ndim):
    y = rng.normal(size=(2, 1, 24, 21, 18)[: 2 + ndim])
    shrunk, seen = {}, {}
    frame.apply(y, lambda k, c: shrunk.setdefault(k, c.copy()), ndim)
    frame.visit(y, lambda k, c: seen.update({k: c.copy()}), ndim)
    assert sorted(shrunk) == sorted(seen) == list(range(frame.levels * (2**ndim - 1)))
    for k, c in seen.items():
        np.testing.assert_array_equal(c, shrunk[k])


def test_thresholds_of_crops_are_chosen_on_all_of_them(rng):
    """Piece by piece, or all at once: pieces side by side hold the same coefficients but for those at the seams."""
    y = image(rng, (512, 512), np.float64)[None, None] / 12
    found = st.Denoiser(sigma=1.0, choose="bands", levels=2).run(y[0, 0])
    expert = found.plans[0].experts.thresholds[0]
    pieces = Batch(np.concatenate([y[..., :256, :], y[..., 256:, :]]))
    run = expert.apply(pieces)
    for k in range(2):
        alone = expert.apply(Batch(pieces.values[k : k + 1]))
        np.testing.assert_array_equal(run.value[k], alone.value[0])
    np.testing.assert_array_equal(expert.value(pieces.values), run.value)


def test_experts_without_a_weight_are_left_out(rng):
    """The estimate is the blend of all, as it was; what only they reach is not looked at."""
    y = (CAMERA[100:260, 180:340] + rng.normal(0.0, 5.0, (160, 160))).astype(np.float32)
    plan = st.Denoiser(sigma=5.0, choose="fast").run(y).plans[0]
    assert not all(plan.used)
    batch = Batch((y[None, None] - y.mean()) / np.float32(5))
    everything = list(plan.experts.estimates(batch, [True] * len(plan.weights)))
    expected, found = blend(plan.weights, plan.corrections, everything), plan.local(batch)
    np.testing.assert_allclose(found.value, expected.value, atol=1e-5)
    np.testing.assert_allclose(found.total_divergence(), expected.total_divergence(), rtol=1e-6)
    # Windows of 8 are used, those of 32 are not. The pilot needs 31 entries more.
    assert plan.used[1]
    assert not plan.used[3]
    assert plan.local_reach < plan.experts.reach([True] * len(plan.weights)) == 31 + 31


def test_a_mean_divergence_has_the_weighted_sum_of_its_map(rng):
    value, divergence, weights = rng.normal(size=(2, 1, 5, 6)), rng.random((2, 5, 6)), rng.random((2, 5, 6))
    weights[1] = 0
    estimate = Estimate(value, divergence)
    for some in (None, weights):
        found = estimate.without_map(some)
        assert found.divergence.shape == (2, 1, 1)
        assert found.total_divergence(some) == pytest.approx(estimate.total_divergence(some), rel=1e-12)
    assert found.without_map() is found


def test_larger_data_are_cut_into_tiles_of_a_share_of_what_is_treated_whole():
    entries = places.TILE_ENTRIES[2]
    assert len(places.tiles_of((1024, entries // 1024))) == 1
    tiles = places.tiles_of((1024, entries // 1024 + 8), 8)
    assert max(np.prod([s.stop - s.start for s in tile]) for tile in tiles) <= entries // places.TILES_PER_WHOLE[2]
