"""Arrays with names: the same names out."""

import numpy as np
import pytest

import scorethresh as st

xr = pytest.importorskip("xarray")


@pytest.fixture
def named(rng):
    values = rng.normal(size=(3, 40, 48)) + np.linspace(0.0, 20.0, 48)
    return xr.DataArray(values, dims=("c", "y", "x"), coords={"x": np.arange(48) * 0.5}, attrs={"units": "K"}, name="t")


def test_names_coordinates_attributes_and_chunks_are_kept(named):
    expected = st.Denoiser(sigma=1.0, choose="bands", channel_axis=0).run(named.values)
    for y in (named, named.chunk({"y": 20})):
        estimate = st.denoise(y, sigma=1.0, choose="bands", channel_axis="c")
        assert estimate.chunks == y.chunks
        xr.testing.assert_allclose(estimate.compute(), named.copy(data=expected.estimate))
        assert (estimate.dims, estimate.attrs, estimate.name) == (y.dims, y.attrs, "t")
    lazy = st.Denoiser(sigma=1.0, choose="bands", channel_axis="c").run(named.chunk())
    found = lazy.compute()
    assert found.estimate.dims == named.dims
    assert found.predicted_mse == float(lazy.predicted_mse.compute()) == expected.predicted_mse


def test_levels_and_masks_are_aligned_by_name(named):
    sigma = xr.DataArray(np.linspace(1.0, 2.0, 48), dims="x") * xr.ones_like(named[0].drop_vars("x"))
    mask = xr.zeros_like(named[0], dtype=bool)
    mask[3, 4] = True
    found = st.Denoiser(sigma=sigma.transpose("x", "y"), mask=mask, choose="bands", channel_axis="c").run(named)
    plain = st.Denoiser(sigma=sigma.values.reshape(sigma.shape), mask=mask.values, choose="bands", channel_axis=0)
    order = sigma.transpose("y", "x").values
    expected = st.Denoiser(sigma=order, mask=mask.values, choose="bands", channel_axis=0).run(named.values)
    assert plain.sigma.shape == sigma.shape
    np.testing.assert_array_equal(found.estimate.values, expected.estimate)
    with pytest.raises(ValueError, match="must have the dimensions"):
        st.denoise(named, sigma=sigma.rename(x="z"), channel_axis="c")


def test_thresholds_and_levels(named):
    y = (named - named.mean("x")).rename("d")
    for data in (y, y.chunk({"x": 7})):
        found = st.select_threshold(data, sigma=1.0)
        assert found.threshold == st.select_threshold(y.values, sigma=1.0).threshold
        assert found.estimate.dims == y.dims
        assert st.estimate_sigma(data) == st.estimate_sigma(y.values)
    batch = st.select_threshold(y, sigma=1.0, batch_axis="c")
    assert len(batch) == 3


def test_names_that_are_not_there(named):
    with pytest.raises(ValueError, match="no dimension 'z'"):
        st.denoise(named, channel_axis="z")
    with pytest.raises(TypeError, match="one of its variables"):
        st.denoise(named.to_dataset())


def test_a_batch_axis_has_a_name(rng):
    y = xr.DataArray(rng.normal(size=(3, 64)), dims=("beat", "time"))
    found = st.denoise(y, batch_axis="beat", choose="bands")
    assert found.dims == y.dims
    np.testing.assert_array_equal(found.data, st.denoise(y.data, batch_axis=0, choose="bands"))
