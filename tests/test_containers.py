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


def test_the_types_name_the_strings_that_are_known():
    for function in (st.denoise, st.Denoiser):
        assert set(typing.get_args(typing.get_type_hints(function)["choose"])) == set(denoiser_module.CHOICES)
    assert set(typing.get_args(level.Domain)) == {"coefficients", "samples"}
