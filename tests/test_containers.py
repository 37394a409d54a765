"""Data with an index, a mask or units come back as what they were, with the numbers of the plain array."""

import typing

import numpy as np
import pytest

import scorethresh as st
from scorethresh.denoising import denoiser as denoiser_module
from scorethresh.noise import level

SIGNAL = np.sin(np.arange(400) / 20) * 10 + np.random.default_rng(0).normal(size=400)


def test_a_series_keeps_index_name_and_attributes():
    pd = pytest.importorskip("pandas")
    y = pd.Series(SIGNAL, index=pd.date_range("2026-01-01", periods=400, freq="h"), name="flow")
    y.attrs["station"] = "A"
    out = st.denoise(y, choose="bands")
    assert isinstance(out, pd.Series)
    assert (out.name, out.attrs) == ("flow", {"station": "A"})
    assert out.index.equals(y.index)
    np.testing.assert_array_equal(out.to_numpy(), st.denoise(SIGNAL, choose="bands"))


def test_missing_numbers_of_pandas_stay_missing():
    pd = pytest.importorskip("pandas")
    y = pd.Series(SIGNAL, dtype="Float64")
    y[7] = pd.NA
    out = st.denoise(y, choose="bands")
    assert list(np.flatnonzero(out.isna())) == [7]


def test_a_frame_keeps_columns_and_the_result_knows_its_error():
    pd = pytest.importorskip("pandas")
    y = pd.DataFrame({"a": SIGNAL, "b": SIGNAL[::-1]})
    found = st.Denoiser(choose="bands", channel_axis=1).run(y)
    assert list(found.estimate.columns) == ["a", "b"]
    plain = st.Denoiser(choose="bands", channel_axis=1).run(y.to_numpy())
    np.testing.assert_array_equal(found.estimate.to_numpy(), plain.estimate)
    assert repr(found) == repr(plain)
    assert found.predicted_psnr() == plain.predicted_psnr()
    np.testing.assert_array_equal(found.error_map(), plain.error_map())


@pytest.mark.parametrize("factor", [1.0, 1000.0])
def test_a_quantity_keeps_its_units_and_sigma_may_have_others(factor):
    """A level of 1 mV is 0.001 V: the estimate is the same."""
    pint = pytest.importorskip("pint")
    units = pint.UnitRegistry()
    y = SIGNAL * units.millivolt
    sigma = 1.0 * units.millivolt if factor == 1 else 0.001 * units.volt
    found = st.Denoiser(choose="bands", sigma=sigma).run(y)
    assert found.estimate.units == units.millivolt
    assert found.sigma == pytest.approx(1.0)
    np.testing.assert_allclose(found.estimate.magnitude, st.denoise(SIGNAL, sigma=1.0, choose="bands"), rtol=1e-12)
    with pytest.raises(ValueError, match=r"sigma has units, .*, but y has none"):
        st.Denoiser(choose="bands", sigma=sigma).run(pytest.importorskip("pandas").Series(SIGNAL))
    with pytest.raises(ValueError, match=r"sigma has units, .*, but y has none"):
        st.denoise(SIGNAL, choose="bands", sigma=sigma)


def test_a_quantity_without_units_of_sigma_takes_it_in_its_own():
    pint = pytest.importorskip("pint")
    y = SIGNAL * pint.UnitRegistry().kelvin
    np.testing.assert_array_equal(
        st.denoise(y, sigma=1.0, choose="bands").magnitude, st.denoise(SIGNAL, sigma=1.0, choose="bands")
    )


def test_a_masked_array_stays_one():
    y = np.ma.masked_greater(SIGNAL, 10.5)
    out = st.denoise(y, choose="bands")
    np.testing.assert_array_equal(out.mask, y.mask)


def test_containers_are_drawn(tmp_path):
    pd = pytest.importorskip("pandas")
    y = pd.DataFrame(np.add.outer(SIGNAL[:48], SIGNAL[:64]))
    denoiser = st.Denoiser(choose="bands")
    found = denoiser.run(y)
    from scorethresh.viz import write_report

    assert len(found.plot(y, error=True)) == 4
    write_report(tmp_path / "page.html", y, denoiser, found)
    assert "48 × 64, float64" in (tmp_path / "page.html").read_text(encoding="utf-8")


PICTURE = np.add.outer(SIGNAL[:40], SIGNAL[100:148])
BLUR = st.Blur(np.ones((3, 3)) / 9, boundary="periodic")


def in_pandas(a):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(a, index=np.arange(len(a)) * 10, columns=[f"c{k}" for k in range(a.shape[1])])


def in_pint(a):
    return a * pytest.importorskip("pint").UnitRegistry().millivolt


def in_xarray(a):
    xarray = pytest.importorskip("xarray")
    dims = ("time", "row", "column")[3 - a.ndim :]
    return xarray.DataArray(a, dims=dims, coords={dims[0]: np.arange(len(a)) * 10}, attrs={"units": "mV"}, name="v")


def in_dask(a):
    return in_xarray(a).chunk({"row": 16})


CONTAINERS = [in_pandas, in_pint, in_xarray, in_dask]


def numbers(container):
    return container.magnitude if hasattr(container, "magnitude") else np.asarray(container)


def same_kind(out, y):
    """Check that a result is what y is, with its labels or units."""
    assert type(out) is type(y)
    if hasattr(y, "magnitude"):
        assert out.units == y.units
    elif hasattr(y, "dims"):
        assert (out.dims, out.attrs, out.name) == (y.dims, y.attrs, y.name)
        assert all(out.coords[k].equals(y.coords[k]) for k in y.coords)
    else:
        assert out.index.equals(y.index)
        assert out.columns.equals(y.columns)


@pytest.mark.parametrize("wrapped", CONTAINERS)
def test_a_restored_array_is_what_came_in(wrapped, tmp_path):
    from scorethresh.viz import write_restoration_report

    y = wrapped(PICTURE)
    restorer = st.Restorer(BLUR, sigma=1.0, steps=2, predict=False)
    plain, found = restorer.run(PICTURE), restorer.run(y)
    same_kind(found.estimate, y)
    np.testing.assert_array_equal(numbers(found.estimate), plain.estimate)
    same_kind(st.restore(y, BLUR, sigma=1.0, steps=2), y)
    assert repr(found) == repr(plain)
    assert found._repr_html_() == plain._repr_html_()
    write_restoration_report(tmp_path / "page.html", y, found)


@pytest.mark.parametrize("wrapped", CONTAINERS)
def test_a_restored_array_of_another_shape_has_no_labels(wrapped):
    found = st.restore(wrapped(PICTURE), st.Downsample(2), sigma=1.0, steps=2)
    assert found.shape == (80, 96)
    assert hasattr(found, "units") == (wrapped is in_pint)
    assert wrapped is in_pint or type(found) is np.ndarray


@pytest.mark.parametrize("wrapped", CONTAINERS)
def test_the_estimate_of_a_chosen_parameter_is_what_came_in(wrapped):
    from scipy.ndimage import gaussian_filter

    def smooth(y, width):
        assert type(y) is np.ndarray
        return gaussian_filter(y, width)

    y = wrapped(PICTURE)
    plain, found = (st.select_parameter(smooth, a, [0.5, 1.0, 2.0], sigma=1.0, seed=3) for a in (PICTURE, y))
    same_kind(found.estimate, y)
    np.testing.assert_array_equal(numbers(found.estimate), plain.estimate)
    assert (found.parameter, found.risk, found.calls) == (plain.parameter, plain.risk, plain.calls)


@pytest.mark.parametrize("wrapped", [in_pint, in_xarray, in_dask])
def test_a_series_of_images_is_what_came_in(wrapped):
    rng = np.random.default_rng(0)
    clean = np.einsum("tr,xr,yr->txy", *(rng.normal(size=(n, 2)) for n in (12, 20, 16)))
    plain_y = clean + rng.normal(size=clean.shape)
    y = wrapped(plain_y)
    plain, found = (st.LowRankDenoiser(sigma=1.0, series_axis=0).run(a) for a in (plain_y, y))
    same_kind(found.estimate, y)
    if wrapped is in_dask:
        assert "median sigma 1, patches of" in repr(found)
        found = found.compute()
    np.testing.assert_allclose(numbers(found.estimate), plain.estimate, rtol=1e-9, atol=1e-9)
    assert repr(found) == repr(plain)
    np.testing.assert_allclose(found.error_map(), plain.error_map(), rtol=1e-9, atol=1e-9)
    if hasattr(y, "dims"):
        level = in_xarray(np.ones(clean.shape[1:])).rename("level")
        named = st.denoise_lowrank(y, sigma=level.transpose("column", "row"), series_axis="time")
        np.testing.assert_array_equal(named.to_numpy(), plain.estimate)


def test_levels_with_units_are_those_of_y():
    pint = pytest.importorskip("pint")
    units = pint.UnitRegistry()
    y, level = PICTURE * units.millivolt, 0.001 * units.volt
    np.testing.assert_allclose(
        st.restore(y, BLUR, sigma=level, steps=2).magnitude, st.restore(PICTURE, BLUR, sigma=1.0, steps=2), rtol=1e-9
    )
    for call in (
        lambda: st.restore(PICTURE, BLUR, sigma=level),
        lambda: st.denoise_lowrank(np.ones((8, 8, 8)), sigma=level),
        lambda: st.select_parameter(np.clip, PICTURE, [1.0], sigma=level),
    ):
        with pytest.raises(ValueError, match=r"sigma has units, .*, but y has none"):
            call()


@pytest.mark.parametrize("wrapped", [in_pandas, in_pint, in_xarray])
def test_the_map_of_errors_has_the_labels_of_y_and_its_units_squared(wrapped):
    y = wrapped(PICTURE)
    found = st.Denoiser(sigma=1.0, choose="bands").run(y)
    errors = found.error_map()
    np.testing.assert_array_equal(numbers(errors), st.Denoiser(sigma=1.0, choose="bands").run(PICTURE).error_map())
    if wrapped is in_pint:
        assert errors.units == y.units**2
    else:
        assert type(errors) is type(y)
        assert errors.attrs == {}, "the units of y are not those of its square"


def test_the_types_name_the_strings_that_are_known():
    for function in (st.denoise, st.Denoiser):
        assert set(typing.get_args(typing.get_type_hints(function)["choose"])) == set(denoiser_module.CHOICES)
    assert set(typing.get_args(level.Domain)) == {"coefficients", "samples"}
