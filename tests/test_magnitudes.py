import os
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import scorethresh as st
from helpers import mixed, spikes
from scorethresh.rules import as_rule
from scorethresh.sample.cells import Cells


def same(a, b, rel=1e-13):
    assert a.size == b.size
    np.testing.assert_array_equal(a.nodes, b.nodes)
    scale = np.abs(a.weights).max()
    np.testing.assert_allclose(a.weights, b.weights, rtol=0, atol=rel * scale)


def test_exact_sample_is_the_sorted_magnitudes(rng):
    y = rng.normal(size=(7, 5))
    sample = st.Magnitudes.exact(y)
    assert sample.nodes.tolist() == sorted(abs(v) for v in y.ravel().tolist())
    assert sample.weights.tolist() == [1.0] * 35
    assert (sample.size, sample.cells) == (35, None)


@pytest.mark.parametrize("sigma", [1.0, 1.37, 1e-150, 1e150])
def test_compressed_sums_are_those_of_the_data(rng, sigma):
    """Sums of functions that are smooth on the scale of the bandwidth, over all entries and above an edge."""
    y = mixed(rng, 30_000)
    sample = st.Magnitudes.compress(sigma * y, sigma=sigma)
    z, a = sample.nodes / sigma, np.abs(y)
    h = 6 / 1e8 ** (1 / 3)
    for f in (np.ones_like, np.square, lambda v: np.exp(-0.5 * ((v - 1) / h) ** 2), lambda v: 1 / (1 + v * v)):
        assert sample.weights @ f(z) == pytest.approx(f(a).sum(), rel=1e-12)
    for edge in (3 / 64, 1.0, 5.5):
        assert sample.weights[sample.nodes > edge * sigma].sum() == pytest.approx((a > edge).sum(), rel=1e-12)
        below = sample.nodes <= edge * sigma
        assert sample.weights[below] @ z[below] ** 2 == pytest.approx((a[a <= edge] ** 2).sum(), rel=1e-12)


def test_an_entry_on_an_edge_belongs_below_it():
    """As in the paper's indicator |y| > threshold; also where the lookup has to step over several edges."""
    edges = np.array([0.0, 1e-9, 0.1, 0.25, 0.3, 1.0, 1.0 + 2e-16, 2.5, 100.0])
    sample = st.Magnitudes.compress(np.repeat(edges, 3), sigma=1.0, thresholds=edges)
    for edge in edges[1:]:
        assert sample.weights[sample.nodes <= edge].sum() == pytest.approx(3 * (edges <= edge).sum(), abs=1e-8)


@given(
    y=some.lists(some.floats(-1e300, 1e300), min_size=1, max_size=40),
    edges=some.lists(some.floats(0, 1e6), min_size=1, max_size=8),
)
def test_every_entry_finds_its_cell(y, edges):
    """Counts at the thresholds, for entries and thresholds of any size and spacing."""
    edges = np.unique(edges)
    y = np.append(y, edges)
    sample = st.Magnitudes.compress(y, sigma=1.0, thresholds=edges, bandwidth=1.0)
    for edge in edges[edges > 0]:
        count = (np.abs(y) <= edge).sum()
        assert sample.weights[sample.nodes <= edge].sum() == pytest.approx(count, abs=1e-9)


@given(seed=some.integers(0, 2**32 - 1), parts=some.integers(2, 9), exact=some.booleans())
def test_parts_add_up_to_the_whole(seed, parts, exact):
    rng = np.random.default_rng(seed)
    y = mixed(rng, 2000)
    cuts = np.sort(rng.integers(1, 1999, parts - 1))
    make = st.Magnitudes.exact if exact else lambda part: st.Magnitudes.compress(part, sigma=1.0)
    same(make(y), sum(make(part) for part in np.split(y, np.unique(cuts))))


@pytest.mark.parametrize(
    "change",
    [
        lambda y: -y,
        lambda y: y[::-1],
        lambda y: np.repeat(y, 2)[::2],
        lambda y: np.asfortranarray(y.reshape(50, 40, 20)),
        lambda y: y.reshape(50, 40, 20).transpose(1, 0, 2),
        lambda y: np.stack([y, y], axis=1)[:, 0],
        lambda y: np.broadcast_to(y, (1, y.size)),
        lambda y: y.astype(">f8"),
        lambda y: np.frombuffer(b"x" + y.tobytes(), offset=1),  # not aligned
        lambda y: y.astype(np.longdouble),
        lambda y: y.tolist(),
    ],
)
def test_order_sign_strides_and_storage_do_not_matter(rng, change):
    y = mixed(rng, 40_000)
    y.flags.writeable = False
    same(st.Magnitudes.compress(y, sigma=1.0), st.Magnitudes.compress(change(y), sigma=1.0))
    same(st.Magnitudes.exact(y), st.Magnitudes.exact(change(y)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_any_real_dtype(rng, dtype):
    y = np.abs(rng.normal(scale=20, size=5000)).astype(dtype)
    for make in (st.Magnitudes.exact, lambda v: st.Magnitudes.compress(v, sigma=7.0)):
        same(make(y), make(y.astype(float)))


def test_strided_chunks_larger_than_the_buffer(rng):
    y = rng.normal(size=5_000_000)
    same(st.Magnitudes.compress(y[::2], sigma=1.0), st.Magnitudes.compress(y[::2].copy(), sigma=1.0), rel=1e-12)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_thread_count_changes_rounding_only(rng, monkeypatch, threads):
    """Three threads also on machines with fewer cores; 800,000 entries are enough for three."""
    y = mixed(rng, 800_000)
    whole = st.Magnitudes.compress(y, sigma=1.0)
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(threads), raising=False)
    same(whole, st.Magnitudes.compress(y, sigma=1.0))


def test_concurrent_callers_do_not_disturb_each_other(rng):
    parts = [rng.normal(size=200_000) for _ in range(4)]
    out = [None] * 4
    threads = [
        threading.Thread(target=lambda i=i: out.__setitem__(i, st.Magnitudes.compress(parts[i], sigma=1.0)))
        for i in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for sample, part in zip(out, parts, strict=True):
        same(sample, st.Magnitudes.compress(part, sigma=1.0))


def test_memory_does_not_grow_with_the_data():
    """At most 64 MB beyond the input for any size; three million strided float32 entries would be 12 MB a copy."""
    peaks = []
    for size in (100_000, 3_000_000):
        y = np.ones((size, 2), dtype=np.float32)[:, 0]
        tracemalloc.start()
        st.Magnitudes.compress(y, sigma=1.0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 32e6
    assert peaks[1] < peaks[0] + 9e6


@pytest.mark.parametrize("thresholds", [[3.0], [2.0, 8.0]])
def test_cells_keep_the_shape_of_the_noise_around_few_thresholds(rng, thresholds):
    """The mixture sees the same histogram in a compressed sample as in an exact one: equal to rounding."""
    y = spikes(rng, 30_000)
    y[5000:8000] += rng.laplace(scale=2, size=3000)
    sample = st.Magnitudes.compress(y, sigma=1.0, thresholds=thresholds, bandwidth=0.5)
    compressed, exact = (st.risk_curve(s, thresholds, sigma=1.0).risk for s in (sample, st.Magnitudes.exact(y)))
    np.testing.assert_allclose(compressed, exact, rtol=1e-9)


def test_cells_stay_few_when_thresholds_are_far_apart():
    cells = Cells.make(np.array([0.0, 1.0, 1e6, 1e100]), as_rule("hard"), 1.0, 0.01)
    assert len(cells) < 10_000
    assert cells.have(cells.thresholds).all()


def test_too_many_cells_is_an_error_that_says_so():
    with pytest.raises(ValueError, match=r"100000 thresholds up to 10000\.0 with bandwidth 0\.01 need .* cells"):
        st.Magnitudes.compress(np.ones(3), sigma=1.0, thresholds=np.linspace(0, 1e4, 100_000), bandwidth=0.01)


def test_samples_on_other_cells_do_not_add(rng):
    a, b = (st.Magnitudes.compress(rng.normal(size=10), sigma=s) for s in (1.0, 2.0))
    for other in (b, st.Magnitudes.exact([1.0])):
        with pytest.raises(ValueError, match="do not lie on the same cells"):
            a + other
    with pytest.raises(TypeError):
        a + 1


def test_not_finite_entries_are_counted_not_spread(rng):
    y = rng.normal(size=300_000).astype(np.float32)
    y[[5, 70_000, 299_999]] = np.nan, np.inf, -np.inf
    for make in (st.Magnitudes.exact, lambda v: st.Magnitudes.compress(v, sigma=1.0)):
        with pytest.raises(ValueError, match=r"y holds 3 NaN or infinite entries out of 300000.*np\.isfinite"):
            make(y)


def test_repr_tells_the_kind(rng):
    assert repr(st.Magnitudes.exact([1.0, 2.0])) == "<Magnitudes: 2 entries, exact>"
    assert "2 entries, compressed to 24 nodes" in repr(st.Magnitudes.compress([1.0, 2.0], sigma=1.0))


def test_cells_are_shared_by_calls_that_need_the_same(rng):
    """And by no others: each number that they depend on makes cells of its own."""
    thresholds, rule = np.linspace(0, 4, 50), st.Hard()
    first = Cells.make(thresholds, rule, 1.0, 0.1)
    assert Cells.make(thresholds.copy(), st.Hard(), 1.0, 0.1) is first
    others = [
        Cells.make(2 * thresholds, rule, 1.0, 0.1),
        Cells.make(thresholds, st.Firm(), 1.0, 0.1),
        Cells.make(thresholds, st.Garrote(), 1.0, 0.1),
        Cells.make(thresholds, rule, 1.5, 0.1),
        Cells.make(thresholds, rule, 1.0, 0.2),
    ]
    assert all(other != first for other in others)
    with pytest.raises(ValueError, match="read-only"):
        first.thresholds[0] = 1.0
