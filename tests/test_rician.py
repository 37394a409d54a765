"""Magnitudes of complex noise: the transform, its inverse, the level, and the predicted error."""

import pickle
import warnings

import numpy as np
import pytest
import pywt

import oracles
import scorethresh as st
from scorethresh.noise.gaussian import observe
from scorethresh.noise.magnitude import WEIGHT_ERROR, MagnitudeTransform
from scorethresh.noise.rician import fit_magnitude_level

CAMERA = pywt.data.camera()[100:292, 120:312].astype(float)
DISC = np.hypot(*(np.indices(CAMERA.shape) - 96)) < 70


def magnitudes(signal, sigma, seed, coils=1):
    """The root of the sum of squares of complex noise, the signal in the first coil."""
    parts = sigma * np.random.default_rng(seed).normal(size=(2 * coils, *np.shape(signal)))
    parts[0] += signal
    return np.sqrt(np.square(parts).sum(axis=0))


def mean_of(f, signal, coils):
    """By the trapezoidal rule on a fine grid: tables are made of straight pieces."""
    y = np.linspace(max(signal - 12, 0), np.sqrt(signal**2 + 2 * coils) + 12, 40_001)
    return np.trapezoid(f(y) * oracles.magnitude_density(y, signal, coils), y)


@pytest.mark.parametrize("coils", [1, 4, 16])
@pytest.mark.parametrize("signal", [0.3, 1.0, 3.0, 9.0, 25.0])
def test_the_inverse_is_unbiased(signal, coils):
    """The mean of the transform, by quadrature of SciPy's density, comes back as the signal, at any noise level."""
    there = MagnitudeTransform(2.0, coils)
    mean = mean_of(lambda y: there.forward(2 * y), signal, coils)
    square = mean_of(lambda y: there.forward(2 * y) ** 2, signal, coils)
    # Without much signal the inverse is steep: 0.01 of the noise level in z is more in the signal.
    assert there.inverse(np.array([mean]))[0] == pytest.approx(2 * signal, abs=0.02 if signal > 0.5 else 0.1)
    assert there.local_noise(np.array([[mean]]), 0, ()).variance[0] == pytest.approx(square - mean**2, abs=5e-3)


@pytest.mark.parametrize("coils", [1, 8])
def test_the_transform_rises_and_makes_the_noise_even(coils):
    there = MagnitudeTransform(3.0, coils)
    y = np.linspace(-5, 500, 5000)
    assert (np.diff(there.forward(y)) > 0).all()
    back = there.inverse(there.forward(y))
    assert np.isfinite(back).all()
    assert (np.diff(back) >= 0).all()
    variances = [there.forward(magnitudes(np.full(50_000, 3 * s), 3.0, 1, coils)).var() for s in (0, 1, 2, 5, 40)]
    assert variances == pytest.approx(np.ones(5), abs=0.12 + 4 * np.sqrt(2 / 50_000))


@pytest.mark.parametrize("signal", [CAMERA, np.where(DISC, CAMERA, 0.0)])
def test_the_error_is_predicted(signal):
    """With and without a background, to the factor that one typical error for all regions leaves; see `TYPICAL_ERROR`.

    White noise predicts a tenth of the error, or less than nothing.
    """
    y = magnitudes(signal, 15.0, 3)
    found = st.Denoiser(noise=st.RicianNoise(sigma=15.0), choose="fast").run(y)
    true = np.mean((found.estimate - signal) ** 2)
    assert 0.5 * true < found.predicted_mse < 1.7 * true
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", st.AssumptionWarning)
        white = st.Denoiser(sigma=15.0, noise="white", choose="fast").run(y)
    of_white = np.mean((white.estimate - signal) ** 2)
    assert true < 0.7 * of_white
    assert white.predicted_mse < 0.2 * of_white


@pytest.mark.parametrize("signal", [CAMERA, np.where(DISC, CAMERA, 0.0), np.full((128, 128), 1e4)])
@pytest.mark.parametrize("coils", [1, 4])
def test_the_level_is_estimated(signal, coils):
    y = magnitudes(signal, 15.0, 4, coils)[None, None]
    found = st.RicianNoise(coils).measure(y, None)
    assert found.sigma == pytest.approx(15, rel=0.06)
    assert 0 < found.level_error < 0.06


def test_the_level_of_exact_variances_is_exact():
    """Means and variances by SciPy's law of Rice, to the distance of the levels that are tried."""
    from scipy.stats import rice

    signals = np.array([0.1, 0.5, 1.0, 2.0, 4.0, 9.0])
    means, variances = rice.mean(signals), rice.var(signals)
    sigma, _ = fit_magnitude_level(7 * means, 49 * variances, np.full(6, 0.1), 1)
    assert sigma == pytest.approx(7, rel=0.01)


def test_small_data_are_read_as_a_whole():
    found = st.RicianNoise().measure(magnitudes(np.full((24, 24), 100.0), 5.0, 5)[None, None], None)
    assert found.sigma == pytest.approx(5, rel=0.25)


def test_types_data_and_models_stay(rng):
    y = magnitudes(CAMERA[:64, :64], 15.0, 6).astype(np.float32)
    kept = y.copy()
    found = st.denoise(y, noise="rician", choose="fast")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(y, kept)
    assert (found >= 0).all()
    there = MagnitudeTransform(2.0, 3, 0.01)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(there)).forward(y), there.forward(y))


def test_an_estimator_of_the_users_gets_even_noise():
    seen = observe(magnitudes(CAMERA, 15.0, 7), st.RicianNoise(sigma=15.0), None)
    assert np.median(np.abs(np.diff(seen.values))) / 0.6745 / np.sqrt(2) == pytest.approx(1, abs=0.2)
    assert seen.restore(seen.values).shape == CAMERA.shape


@pytest.mark.parametrize("wrong", [{"coils": 0}, {"coils": 1.5}, {"coils": 65}, {"coils": True}])
def test_impossible_coils_are_refused(wrong):
    with pytest.raises(ValueError, match="coils must be a whole number from 1 to 64"):
        st.RicianNoise(**wrong)


def test_impossible_data_are_refused():
    with pytest.raises(ValueError, match="sigma"):
        st.RicianNoise(sigma=-1.0)
    with pytest.raises(ValueError, match="magnitudes of at least 0, got -1"):
        st.denoise(np.where(DISC, CAMERA, -1.0), noise="rician")
    with pytest.raises(ValueError, match="complex data"):
        st.denoise(CAMERA * 1j + CAMERA, noise="rician")


def test_the_weights_of_errors_are_uncertain():
    """By that share of the error, white noise of the same level on the same bright picture is predicted better."""
    clean = 100 + np.tile(CAMERA, (2, 2))
    y = magnitudes(clean, 10.0, 3)
    found = st.Denoiser(noise=st.RicianNoise(sigma=10.0), choose="fast").run(y)
    white = st.Denoiser(sigma=10.0, choose="fast").run(y)
    assert found.stderr**2 - white.stderr**2 == pytest.approx((WEIGHT_ERROR * found.predicted_mse) ** 2, rel=0.1)
