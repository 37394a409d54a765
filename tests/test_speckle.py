"""Multiplicative noise: the logarithm, its inverse, the looks, and the predicted error."""

import pickle

import mpmath
import numpy as np
import pytest
import pywt

import scorethresh as st
from scorethresh.noise.speckle import LOW_READING, LogTransform, looks_of

CAMERA = pywt.data.camera()[100:292, 120:312].astype(float)


def speckled(clean, looks, seed):
    return clean * np.random.default_rng(seed).gamma(looks, 1 / looks, clean.shape)


@pytest.mark.parametrize("looks", [0.7, 1.0, 4.0, 44.0])
def test_the_inverse_is_unbiased(looks):
    """Mean and variance of the logarithm of a gamma factor, by quadrature with mpmath."""

    def mean_of(f):
        density = lambda g: looks**looks * g ** (looks - 1) * mpmath.exp(-looks * g) / mpmath.gamma(looks)  # noqa: E731
        return mpmath.quad(lambda t: f(t) * density(mpmath.exp(t)) * mpmath.exp(t), [-60 / looks, -2, 0, 2, 5])

    there = LogTransform(looks, 1e-9)
    first = mean_of(lambda t: t)
    variance = float(mean_of(lambda t: (t - first) ** 2))
    assert there.level**2 == pytest.approx(variance, rel=1e-6)
    stabilised = (float(first) + np.log(30.0)) / there.level
    assert there.inverse(np.array([stabilised]))[0] == pytest.approx(30, rel=1e-6)
    fourth = float(mean_of(lambda t: (t - first) ** 4))
    excess = fourth / variance**2 - 3
    assert looks_of(there.level * (1 - LOW_READING * excess)) == pytest.approx(looks, rel=1e-6)


def test_the_slope_is_the_derivative_of_the_inverse():
    there, z = LogTransform(5.0, 1e-9), np.linspace(-3, 9, 50)
    numeric = (there.inverse(z + 1e-5) - there.inverse(z - 1e-5)) / 2e-5
    np.testing.assert_allclose(there.slope(z), numeric, rtol=1e-7)


def test_moments_are_those_of_the_noise(rng):
    """The mean and the mean square of the variance x^2 / looks; 1e6 draws, whose fourth powers scatter by 0.5%."""
    clean = rng.uniform(1, 9, size=(1, 1, 1000, 1000))
    found = LogTransform(10.0, 1e-9).moments(speckled(clean, 10.0, 3), None)
    assert found.second * found.unit**2 == pytest.approx(np.mean(clean**2 / 10), rel=0.01)
    assert found.fourth * found.unit**4 == pytest.approx(np.mean((clean**2 / 10) ** 2), rel=0.03)


@pytest.mark.parametrize("looks", [1.0, 5.0])
def test_the_noise_variance_of_an_entry_is_unbiased(looks):
    """Its mean over 4e5 draws is 9 / looks, to 4 standard errors."""
    y = speckled(np.full(400_000, 3.0), looks, 1)
    found = LogTransform(looks, 1e-9).own_variances(y, np.array([3.0]))
    assert found.unbiased.mean() == pytest.approx(9 / looks, abs=4 * found.unbiased.std() / y.size**0.5)
    assert y.var() == pytest.approx(9 / looks, rel=0.03)
    assert found.expected[0] == pytest.approx(9 / looks, rel=1e-12)


@pytest.mark.parametrize("looks", [10, 44])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_error_is_predicted(looks, seed):
    clean = CAMERA + 5
    found = st.Denoiser(noise=st.SpeckleNoise(looks), choose="fast").run(speckled(clean, looks, seed))
    true = np.mean((found.estimate - clean) ** 2)
    assert abs(found.predicted_mse - true) < 3 * found.stderr


@pytest.mark.parametrize("looks", [1.0, 4.0, 44.0])
def test_looks_are_estimated(looks):
    """The level of the logarithm is right to 3%, so the looks to about 6%."""
    found = st.SpeckleNoise().measure(speckled(CAMERA + 20, looks, 2)[None, None], None)
    assert found.looks == pytest.approx(looks, rel=0.08)
    assert 0 < found.level_error < 0.06


def test_a_gaussian_factor_is_speckle_too():
    clean = CAMERA + 5
    y = clean * (1 + 0.15 * np.random.default_rng(4).normal(size=clean.shape))
    found = st.Denoiser(noise="speckle", choose="fast").run(y)
    true = np.mean((found.estimate - clean) ** 2)
    assert true < np.mean((st.denoise(y, noise="white", choose="fast") - clean) ** 2)
    assert found.predicted_mse == pytest.approx(true, rel=0.4)


def test_negative_intensities_are_refused_unless_they_are_missing():
    """No factor makes them. Raised to a small value, they were far outliers of the logarithm."""
    y = speckled(CAMERA, 20, 5)
    y[0, 50] = -3.0
    with pytest.raises(ValueError, match="at least 0, got -3"):
        st.denoise(y, noise=st.SpeckleNoise(20), choose="fast")
    found = st.denoise(y, noise=st.SpeckleNoise(20), choose="fast", mask=y < 0)
    assert np.isfinite(found).all()
    assert found[0, 50] == -3


def test_zeros_are_fine():
    y = speckled(CAMERA, 20, 5)
    y[:40, :40] = 0.0
    found = st.denoise(y.astype(np.float32), noise=st.SpeckleNoise(20), choose="fast")
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert found[:35, :35].max() < 0.01 * y.mean()


def test_a_transform_survives_pickling():
    there, y = LogTransform(4.0, 0.1, 0.02), np.linspace(-1, 9, 20)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(there)).forward(y), there.forward(y))


@pytest.mark.parametrize("wrong", [0, -1, np.nan, 1e9, "many"])
def test_impossible_looks_are_refused(wrong):
    with pytest.raises(ValueError, match="looks must be a number from"):
        st.SpeckleNoise(wrong)


def test_data_without_a_positive_mean_are_refused():
    with pytest.raises(ValueError, match="positive in the mean"):
        st.denoise(-CAMERA, noise="speckle")
