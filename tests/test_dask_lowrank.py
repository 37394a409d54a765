"""Series in chunks: the same as in memory, for any chunks."""

import warnings

import numpy as np
import pytest

import scorethresh as st
from scorethresh.denoising.lowrank import choice, common_basis, noise_map, sums

da = pytest.importorskip("dask.array")
import dask  # noqa: E402


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Regions of few entries, so that there are several."""
    for module in (common_basis, noise_map, choice, sums):
        monkeypatch.setattr(module, "REGION_ENTRIES", 200)
    with dask.config.set(scheduler="synchronous"):
        yield


def series(rng, shape=(26, 31, 12), kind="f"):
    clean = np.einsum("xr,yr,tr->xyt", *(rng.normal(size=(n, 2)) for n in shape))
    noisy = 5 * clean + rng.normal(size=shape)
    return noisy + 1j * rng.normal(size=shape) if kind == "c" else noisy


def check(y, chunks, **options):
    """Everything is equal: blocks are added up in the same order."""
    denoiser = st.LowRankDenoiser(**options)
    lazy = da.from_array(y, chunks=chunks)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        expected = denoiser.run(y)
    with warnings.catch_warnings(record=True) as told_lazily:
        warnings.simplefilter("always")
        found = denoiser.run(lazy)
        whole = found.compute()
    ours = [[str(w.message) for w in some if w.category is st.AssumptionWarning] for some in (told, told_lazily)]
    assert ours[0] == ours[1]
    assert found.estimate.chunks == lazy.chunks
    assert whole.estimate.dtype == y.dtype
    for name in ("estimate", "sigma", "rank", "risk", "filtered"):
        # Levels and bases are read off views in memory, and off copies here: the order of sums may differ.
        np.testing.assert_allclose(getattr(whole, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(whole.error_map(), expected.error_map(), rtol=1e-9)
    assert whole.predicted_mse == pytest.approx(expected.predicted_mse, rel=1e-9)
    assert whole.stderr == pytest.approx(expected.stderr, rel=1e-9)
    assert whole.patch == expected.patch == found.patch
    assert float(found.predicted_mse.compute()) == whole.predicted_mse
    return whole


@pytest.mark.parametrize("chunks", [(26, 31, 12), (7, 5, 4), (2, 31, 1), ((1, 24, 1), (3, 1, 27), (5, 7)), (26, 1, 12)])
def test_chunks_do_not_matter(rng, chunks):
    """Smaller than a patch, of one entry, and uneven."""
    check(series(rng), chunks)


@pytest.mark.parametrize(
    "options", [{"sigma": 1.0}, {"patch": 4, "step": 1}, {"patch": (3, 7), "step": (3, 2), "sigma": 1.0}]
)
def test_patches_and_levels_are_those_in_memory(rng, options):
    check(series(rng), (8, 8, 12), **options)


def test_volumes_axes_and_types_are_those_in_memory(rng):
    volumes = series(rng, (9, 10, 8 * 6)).reshape(9, 10, 8, 6).astype(np.float32)
    check(volumes, (4, 10, 3, 6), patch=3)
    check(np.moveaxis(series(rng), -1, 0), (5, 9, 9), series_axis=0, sigma=1.0)
    check(np.rint(20 * series(rng)).astype(np.int16), (13, 9, 12))
    check(series(rng, kind="c"), (13, 9, 12))


def test_gaps_and_maps_are_those_in_memory(rng):
    y = series(rng)
    y[3:6, 4:9, 2] = np.nan
    y[20:, 25:] = 3.0
    mask = np.zeros(y.shape[:2], bool)
    mask[10:13] = True
    check(y, (11, 4, 5), mask=mask, sigma=np.linspace(1.0, 2.0, y[..., 0].size).reshape(y.shape[:2]))
    assert check(y, (11, 4, 5), mask=mask).estimate[11, 0, 0] == y[11, 0, 0]


@pytest.mark.parametrize(("sigma", "doubt"), [(0.6, "no negative entries"), (4.0, "below zero")])
def test_doubts_are_those_in_memory(rng, sigma, doubt):
    """Magnitudes have no negative entries; a level that is far too high makes the error negative."""
    y = np.abs(2.0 + rng.normal(size=(26, 31, 12)))
    with pytest.warns(st.AssumptionWarning, match=doubt):
        st.LowRankDenoiser(sigma=sigma).run(y)
    check(y, (8, 31, 12), sigma=sigma)


def test_series_without_noise_stay(rng):
    y = np.full((12, 12, 6), 2.0)
    found = st.LowRankDenoiser().run(da.from_array(y, chunks=5))
    whole = found.compute()
    np.testing.assert_array_equal(whole.estimate, y)
    assert whole.predicted_mse == float(found.stderr.compute()) == 0.0


def test_what_is_no_series_is_told_before_the_work(rng):
    def broken(block):
        msg = "must not be read"
        raise AssertionError(msg)

    y = da.zeros((20, 20, 8), chunks=10).map_blocks(broken, dtype=float, meta=np.empty((0, 0, 0)))
    for data, options, match in [
        (y[..., :3], {}, "3 volumes along series_axis"),
        (y[0], {}, "must have 3 axes"),
        (y, {"series_axis": 3}, "series_axis must be an axis"),
        (y, {"noise": "rician"}, "of a dask array is not supported"),
        (y, {"mask": np.zeros((3, 3), bool)}, "mask must have the shape"),
        (y[:0], {}, "y is empty"),
    ]:
        with pytest.raises(ValueError, match=match):
            st.LowRankDenoiser(**options).run(data)


def test_names_are_kept(rng):
    xr = pytest.importorskip("xarray")
    y = xr.DataArray(series(rng), dims=("y", "x", "time"), attrs={"units": "K"}).transpose("time", "y", "x")
    expected = st.denoise_lowrank(y.values, series_axis=0, sigma=1.0)
    for data in (y, y.chunk({"x": 9})):
        estimate = st.denoise_lowrank(data, series_axis="time", sigma=1.0)
        assert (estimate.dims, estimate.attrs, estimate.chunks) == (y.dims, y.attrs, data.chunks)
        np.testing.assert_allclose(estimate.values, expected, atol=1e-9)
    whole = st.LowRankDenoiser(series_axis="time", sigma=1.0).run(y.chunk({"x": 9})).compute()
    assert whole.estimate.dims == y.dims
