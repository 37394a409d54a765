"""Estimates of the noise spectrum."""

import functools

import numpy as np
import pytest
import pywt
from scipy import fft

from helpers import texture
from scorethresh.noise.covariance import Stationary
from scorethresh.noise.spectrum import estimate_spectrum, spectrum_from_dct
from scorethresh.noise.texture import BLUR_WIDTHS, split_texture


def dct_matrix(size):
    return fft.dct(np.eye(size), norm="ortho", axis=0)


def blurred(rng, shape, width):
    """Return noise of level 1 and its power spectrum."""
    power = functools.reduce(
        np.multiply.outer, [np.exp(-((2 * np.pi * np.fft.fftfreq(n) * width) ** 2)) for n in shape]
    )
    power /= power.mean()
    return np.fft.ifftn(np.fft.fftn(rng.normal(size=shape)) * np.sqrt(power)).real, power


@pytest.mark.parametrize(
    ("clean", "block"),
    [(pywt.data.camera(), 16), (pywt.data.demo_signal("Doppler", 16384) * 60, 64), (np.zeros((40, 44, 48)), 8)],
)
def test_the_spectrum_under_a_signal(rng, clean, block):
    noise, power = blurred(rng, clean.shape, 1.0)
    found = estimate_spectrum(clean + 20 * noise)
    filters = [dct_matrix(block)] * clean.ndim
    seen, true = (Stationary(p).filter_variances(filters) for p in (found, 400 * power))
    noisy = true > 10  # elsewhere any signal is more
    assert np.exp(np.mean(np.log(seen / true)[noisy])) == pytest.approx(1, rel=0.15)
    assert np.std(np.log(seen / true)[noisy]) < 0.35


def test_waves_in_all_windows_are_not_noise(rng):
    """No window is flat at low frequencies, where the power of the waves is a hundred times that of the noise."""
    u, v = np.indices((192, 192))
    found = estimate_spectrum(60 * np.sin(u / 9) * np.cos(v / 11) + 5 * rng.normal(size=u.shape))
    assert 20 < found.mean() < 50  # without the bound on low frequencies, 900 or more
    assert np.median(found) == pytest.approx(25, rel=0.1)


def log_error(found, true):
    """Return the mean logarithm of found over true power, where there is noise, as windows see it."""
    filters = [dct_matrix(16 if found.ndim == 2 else 8)] * found.ndim
    seen, expected = (Stationary(p).filter_variances(filters) for p in (found, true))
    return np.mean(np.log(seen / expected)[expected > 0.02 * expected.max()])


@pytest.mark.parametrize("shape", [(384, 384), (64, 64, 64)])
@pytest.mark.parametrize("width", [0.6, 1.0])
def test_the_spectrum_under_texture(rng, shape, width):
    """In the flattest windows there is some twice the power of the noise."""
    noise, power = blurred(rng, shape, width)
    assert log_error(estimate_spectrum(texture(rng, shape) + 20 * noise), 400 * power) == pytest.approx(0, abs=0.35)


def test_noise_of_any_spectrum_where_windows_are_flat(rng):
    """White noise and blurred noise together are no blurred noise, but could be taken for that and texture."""
    noise, power = blurred(rng, (512, 512), 1.5)
    y = pywt.data.camera() + 20 * noise + 10 * rng.normal(size=(512, 512))
    assert log_error(estimate_spectrum(y), 400 * power + 100) == pytest.approx(0, abs=0.1)


def test_power_of_texture_and_blurred_noise_is_told_apart(rng):
    frequency = np.hypot(*np.indices((16, 16))) * np.pi / 16
    noise, growth = 9 * np.exp(-((BLUR_WIDTHS[9] * frequency) ** 2)), rng.gamma(2.0, size=(16, 16)) / (0.1 + frequency)
    for times in (0.0, 0.5, 2.0):
        found, misfit = split_texture(noise + times * growth, growth, frequency > 0.2)
        np.testing.assert_allclose(found, noise)
        assert misfit < 1e-20


@pytest.mark.parametrize("shape", [(64,), (200,), (16, 16), (100, 100), (3, 200), (3, 3, 50), (20, 20, 20)])
def test_few_windows_make_neither_more_noise_nor_less(shape):
    """The median of few squares is up to 2.2 times too large in the mean, which is allowed for."""
    powers = [estimate_spectrum(np.random.default_rng(k).normal(size=shape)).mean() for k in range(40)]
    assert np.mean(powers) == pytest.approx(1, abs=4 * np.std(powers) / 40**0.5 + 0.05)


@pytest.mark.parametrize("shape", [(500,), (61, 64), (20, 22, 24)])
def test_windows_see_the_spectrum_that_was_made_for_them(shape):
    """A smooth spectrum is seen by windows as it was given; where it is flat, to rounding."""
    block = {1: (64,), 2: (16, 16), 3: (8, 8, 8)}[len(shape)]
    np.testing.assert_allclose(spectrum_from_dct(np.full(block, 3.0), shape), 3, rtol=1e-12)
    power = functools.reduce(np.multiply.outer, [np.exp(-2 * (np.arange(b) / b) ** 2) for b in block])
    seen = Stationary(spectrum_from_dct(power, shape)).filter_variances([dct_matrix(b) for b in block])
    np.testing.assert_allclose(seen, power, rtol=0.03 * len(shape))


def test_no_window_without_gaps():
    y = np.arange(400.0).reshape(20, 20) ** 1.5
    y[::5, ::5] = np.nan
    with pytest.raises(ValueError, match="no window of 16 x 16 entries without NaN"):
        estimate_spectrum(y)


def test_constant_regions_have_no_spectrum(rng):
    y = np.full((256, 256), 7.0)
    y[:, :100] += rng.normal(scale=3, size=(256, 100))
    assert estimate_spectrum(y).mean() == pytest.approx(9, rel=0.5)
