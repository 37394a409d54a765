import numpy as np
import pytest
import pywt

import scorethresh as st


def test_mad_of_coefficients(rng):
    y = rng.normal(scale=2.5, size=999)
    y[:30] += 100
    expected = sorted(np.abs(y))[499] / 0.6744897501960817
    assert st.estimate_sigma(y) == pytest.approx(expected)


@pytest.mark.parametrize("image", ["camera", "ascent"])
def test_images_within_five_per_cent(rng, image):
    y = getattr(pywt.data, image)() + rng.normal(scale=25, size=(512, 512))
    assert st.estimate_sigma(y) == pytest.approx(25, rel=0.05)


def test_the_filter_is_that_of_daubechies(rng):
    y = rng.normal(size=(20, 22))
    inside = pywt.dwt2(y, "db2")[1][2][1:-1, 1:-1]
    assert st.estimate_sigma(y) == pytest.approx(np.median(np.abs(inside)) / 0.6744897501960817)


def test_signals_need_their_domain_said(rng):
    t = np.linspace(0, 1, 4096)
    y = 50 * np.sin(12 * t) + rng.normal(scale=0.7, size=t.size)
    assert st.estimate_sigma(y, domain="samples") == pytest.approx(0.7, rel=0.05)
    assert st.estimate_sigma(y) > 10


def test_volumes_integers_and_thin_arrays(rng):
    volume = (100 + rng.normal(scale=9, size=(30, 31, 32))).astype(np.int16)
    assert st.estimate_sigma(volume) == pytest.approx(9, rel=0.05)
    assert st.estimate_sigma(volume[:, :1, :]) == pytest.approx(9, rel=0.15)
    assert st.estimate_sigma(volume.astype(np.float32)) == pytest.approx(st.estimate_sigma(volume), rel=1e-6)


def test_constant_regions_do_not_count(rng):
    y = np.zeros((256, 256))
    y[:100, :100] = rng.normal(scale=3, size=(100, 100))
    assert st.estimate_sigma(y) == pytest.approx(3, rel=0.1)


def test_scale(rng):
    y = rng.normal(size=(40, 50))
    for c in (1e-150, 7.0, 1e150):
        assert st.estimate_sigma(c * y) == pytest.approx(c * st.estimate_sigma(y), rel=1e-12)


def test_errors():
    with pytest.raises(ValueError, match="noise level of y comes out as 0"):
        st.estimate_sigma(np.ones((8, 8)))
    with pytest.raises(ValueError, match="noise level of y comes out as 0"):
        st.estimate_sigma([0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"unknown domain 'sample'\. Did you mean 'samples'"):
        st.estimate_sigma([1.0, 2.0], domain="sample")
    with pytest.raises(ValueError, match="y holds 1 NaN"):
        st.estimate_sigma([1.0, np.nan])
