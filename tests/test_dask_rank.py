"""The rank of a matrix in chunks: the same as in memory, for any chunks."""

import numpy as np
import pytest

import scorethresh as st

da = pytest.importorskip("dask.array")


def low_rank(rng, shape, rank=3, kind="f"):
    left, right = rng.normal(size=(shape[0], rank)), rng.normal(size=(rank, shape[1]))
    y = 3 * left @ right + rng.normal(size=shape)
    return y + 1j * rng.normal(size=shape) if kind == "c" else y


def same(found, expected, tolerance=1e-9):
    np.testing.assert_allclose(found.singular_values, expected.singular_values, rtol=tolerance)
    for name in ("rank", "status"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("threshold", "risk", "dof", "stderr", "sigma"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-6), name
    assert found.estimate.dtype == expected.estimate.dtype
    scale = np.abs(expected.estimate).max()
    np.testing.assert_allclose(found.estimate.compute(), expected.estimate, atol=tolerance * scale)


@pytest.mark.parametrize("chunks", [(1, 1), (7, 20), (200, 3), ((3, 150, 47), (1, 18, 1)), (200, 20)])
@pytest.mark.parametrize("wide", [False, True])
def test_chunks_do_not_matter(rng, chunks, wide):
    """Chunks of one entry, of uneven sizes, and fewer rows than columns in each."""
    y = low_rank(rng, (200, 20))
    lazy = da.from_array(y, chunks=chunks)
    y, lazy = (y.T, lazy.T) if wide else (y, lazy)
    found = st.select_rank(lazy)
    same(found, st.select_rank(y))
    assert found.estimate.chunks == lazy.chunks
    assert found.rank == 3


@pytest.mark.parametrize(
    "options",
    [{"sigma": 1.0, "rule": "shrink"}, {"rule": "soft"}, {"noise": "correlated"}, {"sigma": 50.0}],
)
@pytest.mark.parametrize("kind", ["f", "c"])
def test_rules_and_noises_are_those_in_memory(rng, options, kind):
    y = low_rank(rng, (300, 30), kind=kind)
    same(st.select_rank(da.from_array(y, chunks=(64, 11)), **options), st.select_rank(y, **options))


def test_integers_and_single_precision_keep_their_types(rng):
    y = 10 * low_rank(rng, (150, 12))
    for data in (np.rint(y).astype(np.int16), y.astype(np.float32)):
        same(st.select_rank(da.from_array(data, chunks=(40, 12))), st.select_rank(data), 1e-6)


def test_a_bound_on_the_rank_needs_no_iteration(rng):
    """In memory the leading values are found by iteration, to 1%. Here they are exact."""
    y = low_rank(rng, (300, 40))
    found = st.select_rank(da.from_array(y, chunks=(50, 40)), max_rank=8)
    expected = st.select_rank(y, max_rank=8)
    assert (found.rank, found.singular_values.size) == (expected.rank, 8) == (3, 8)
    np.testing.assert_allclose(found.singular_values[:3], np.linalg.svd(y, compute_uv=False)[:3])
    assert found.sigma == pytest.approx(expected.sigma, rel=0.01)


def test_small_singular_values_keep_their_digits(rng):
    """A product with its transpose would lose all below 1e-8 of the largest."""
    u, v = (np.linalg.qr(rng.normal(size=(n, 10)))[0] for n in (400, 10))
    s = np.logspace(0, -11, 10)
    found = st.select_rank(da.from_array((u * s) @ v.T, chunks=(33, 10)), sigma=1e-14)
    np.testing.assert_allclose(found.singular_values, s, rtol=1e-3)


def test_what_cannot_be_treated_in_chunks_is_told(rng):
    y = da.from_array(rng.normal(size=(60, 8)), chunks=(10, 8))
    bad = da.where(da.arange(60, chunks=10)[:, None] == 3, np.nan, y)
    for matrix, options, match in [
        (bad, {}, "8 NaN or infinite entries out of 480"),
        (y[None], {}, "one matrix whose shorter side"),
        (da.zeros((9000, 9000)), {}, "at most 8192 entries"),
        (y, {"column_covariance": np.eye(8)}, "covariances of a dask array"),
        (y, {"noise": "correlated", "sigma": 1.0}, "takes neither sigma"),
        (y, {"max_rank": 9}, "whole number from 1 to 8"),
        (y * 1e200, {}, "squares overflow"),
    ]:
        with pytest.raises(ValueError, match=match):
            st.select_rank(matrix, **options)


def test_names_are_kept(rng):
    xr = pytest.importorskip("xarray")
    y = xr.DataArray(low_rank(rng, (80, 9)), dims=("time", "channel"), attrs={"units": "V"})
    for matrix in (y, y.chunk({"time": 13})):
        estimate = st.select_rank(matrix).estimate
        assert (estimate.dims, estimate.attrs, estimate.chunks) == (y.dims, y.attrs, matrix.chunks)
        np.testing.assert_allclose(estimate.values, st.select_rank(y.values).estimate, atol=1e-9)
