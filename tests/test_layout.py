"""Layout: whatever comes in goes out in the same shape, dtype and kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import scorethresh as st
from scorethresh.denoising.layout import read_layout
from scorethresh.denoising.value_range import LARGEST, SMALLEST

DTYPES = [np.float16, np.float32, np.float64, np.uint8, np.int16, np.uint64, np.complex64, np.complex128, ">f4", ">c16"]


@settings(max_examples=60, deadline=None)
@given(
    shape=hs.lists(hs.integers(1, 6), min_size=1, max_size=4),
    dtype=hs.sampled_from(DTYPES),
    seed=hs.integers(0, 99),
    data=hs.data(),
)
def test_reading_and_writing_are_inverse(shape, dtype, seed, data):
    channel_axis = data.draw(hs.sampled_from([None, *range(-len(shape), len(shape))]))
    if not 1 <= len(shape) - (channel_axis is not None) <= 3:
        return
    rng = np.random.default_rng(seed)
    y = (rng.uniform(0, 100, size=shape) + (1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else 0)).astype(
        dtype
    )
    layout = read_layout(y, channel_axis, None)
    assert layout.values.ndim == 2 + len(layout.shape)
    out = layout.unchanged()
    assert out.dtype == y.dtype
    np.testing.assert_array_equal(out, y)
    slices = layout.with_slices_as_channels()
    np.testing.assert_array_equal(slices.unchanged(), y)


def test_entries_that_are_kept_come_from_the_data():
    y = np.arange(6.0).reshape(2, 3)
    layout = read_layout(y, None, None)
    kept = np.array([[True, False, False], [False, False, True]])
    out = layout.write(layout.completed(np.full((1, 1, 2, 3), -1.0), kept))
    np.testing.assert_array_equal(out, [[0, -1, -1], [-1, -1, 5]])


def test_few_slices_are_channels_and_many_are_not():
    assert read_layout(np.zeros((40, 5, 50)), None, None).with_slices_as_channels().values.shape == (5, 1, 40, 50)
    assert read_layout(np.zeros((2, 64)), None, None).with_slices_as_channels().values.shape == (2, 1, 64)
    for shape in ((9, 40, 40), (3, 64), (8, 31, 40), (64,)):
        layout = read_layout(np.zeros(shape), None, None)
        assert layout.with_slices_as_channels() is layout


def test_a_masked_array_stays_one(rng):
    """It once came back as a plain array, and what was masked looked like data."""
    y = np.ma.array(rng.normal(size=(40, 40)) * 10, mask=rng.random((40, 40)) < 0.1, fill_value=-5.0)
    found = st.denoise(y, sigma=10.0)
    assert isinstance(found, np.ma.MaskedArray)
    np.testing.assert_array_equal(found.mask, y.mask)
    assert found.fill_value == -5.0
    np.testing.assert_array_equal(found.data[y.mask], y.data[y.mask])
    assert np.abs(found).mean() < 0.5 * np.abs(y).mean()
    result = st.Denoiser(sigma=10.0).run(y)
    assert result.predicted_psnr() > 0
    assert "Denoised" in repr(result)
    colours = np.ma.array(rng.normal(size=(32, 32, 3)), mask=np.zeros((32, 32, 3), bool))
    colours.mask[3, 4, 1] = True
    np.testing.assert_array_equal(st.denoise(colours, sigma=1.0, channel_axis=-1).mask, colours.mask)
    found[0, 0] = np.ma.masked
    found.mask[:] = True
    assert not y.mask.all()  # the result has a mask of its own
    still = st.denoise(np.ma.array(np.ones((32, 32)), mask=np.eye(32, dtype=bool)))
    assert isinstance(still, np.ma.MaskedArray)


@pytest.mark.parametrize("power", [-200, 160])
def test_units_out_of_range_are_refused(rng, power):
    """Data times 1e-200 once came back as they were, without a word."""
    y = rng.normal(size=(40, 40)) * 10.0**power
    with pytest.raises(ValueError, match=r"largest magnitude in y .* Rescale it: y / "):
        st.denoise(y)


@pytest.mark.parametrize("power", [-151, 151])
def test_units_in_range_are_treated_alike(rng, power):
    y = rng.normal(size=(40, 40)) + np.repeat([0.0, 9.0], 20)
    assert SMALLEST < 10.0**power < LARGEST
    found = st.denoise(y * 10.0**power) / 10.0**power
    np.testing.assert_allclose(found, st.denoise(y), atol=1e-3)


def test_an_entry_masked_in_one_channel_is_missing(rng):
    y, mask = rng.normal(size=(6, 7, 3)), np.zeros((6, 7, 3), bool)
    mask[2, 3, 1] = mask[4, 5] = True
    assert set(zip(*np.nonzero(read_layout(y, -1, mask).missing), strict=True)) == {(2, 3), (4, 5)}
    y[mask] = np.nan
    np.testing.assert_array_equal(read_layout(y, -1, None).missing, mask.any(axis=-1))


def test_constant_channels_keep_every_digit(rng):
    """Integers beyond 2^53 are no doubles."""
    y = np.stack([rng.integers(0, 100, (40, 40)), np.full((40, 40), 2**53 + 1)], axis=-1)
    found = st.denoise(y, sigma=20.0, channel_axis=-1)
    np.testing.assert_array_equal(found[..., 1], y[..., 1])
    assert (found[..., 0] != y[..., 0]).any()


@pytest.mark.parametrize("value", [1e20, -9.97e36])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fill_values_are_named(rng, value, dtype):
    """One of them made all other entries NaN once."""
    y = rng.normal(size=(40, 50)).astype(dtype)
    y[3, 4] = value
    with pytest.raises(ValueError, match=r"y holds .*e\+.* a fill value\? Mark it as missing: mask="):
        st.denoise(y)
    masked = st.denoise(y, mask=np.isclose(y, dtype(value)))
    assert np.isfinite(masked).all()
    y[3, 4] = 1e6  # a large outlier is none
    assert np.isfinite(st.denoise(y)).all()
