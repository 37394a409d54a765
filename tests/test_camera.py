"""Camera noise: its transform, the way back, its parameters, and the predicted error."""

import pickle

import numpy as np
import pytest
import pywt

import oracles
import scorethresh as st
from scorethresh.noise.generalised_anscombe import GeneralisedAnscombe

CAMERA = pywt.data.camera().astype(float)
GAIN, OFFSET, READ = 0.46, 100.0, 1.6


def exposed(electrons, seed, gain=GAIN, offset=OFFSET, read=READ):
    """What a camera makes of the light."""
    rng = np.random.default_rng(seed)
    return offset + (rng.poisson(electrons) + read * rng.normal(size=np.shape(electrons))) / gain


@pytest.mark.parametrize("read", [0.0, 0.4, 1.6, 6.0])
@pytest.mark.parametrize("mean", [0.0, 0.3, 3.0, 30.0])
def test_the_inverse_is_unbiased(mean, read):
    """The mean of the transform, by quadrature, comes back as the mean of the data; the variance is the tabulated one.

    Tables are interpolated linearly, and integrated with 401 nodes across two kinks.
    """
    first, variance = oracles.camera_moments(mean, read)
    root = GeneralisedAnscombe(GAIN, OFFSET, read)
    assert root.inverse(np.array([first]))[0] == pytest.approx(OFFSET + mean / GAIN, abs=2e-3)
    assert root.local_noise(np.array([[first]]), 0, ()).variance[0] == pytest.approx(variance, abs=2e-3)


@pytest.mark.parametrize("read", [0.8, 3.0])
def test_values_clipped_from_below_come_back(read):
    first, variance = oracles.camera_moments(1.5, read, floor=0.0)
    root = GeneralisedAnscombe(GAIN, 0.0, read, floor=0.0)
    assert root.inverse(np.array([first]))[0] == pytest.approx(1.5 / GAIN, abs=3e-3)
    assert root.local_noise(np.array([[first]]), 0, ()).variance[0] == pytest.approx(variance, abs=3e-3)


@pytest.mark.parametrize("electrons", [1, 5, 20, 100])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_error_is_predicted(electrons, seed):
    crop = CAMERA[100:292, 120:312]
    light = crop / crop.mean() * electrons
    y = exposed(light, [electrons, seed])
    found = st.Denoiser(noise=st.CameraNoise(GAIN, OFFSET, READ), choose="fast").run(y)
    true = np.mean((found.estimate - OFFSET - light / GAIN) ** 2)
    assert true < 0.4 * np.mean((y - OFFSET - light / GAIN) ** 2)
    assert abs(found.predicted_mse - true) < 3 * found.stderr


@pytest.mark.parametrize(
    "given", [{}, {"read": READ}, {"offset": OFFSET}, {"gain": GAIN}, {"offset": OFFSET, "read": READ}]
)
def test_parameters_are_estimated(given):
    """The level at the mean, which the prediction needs, is right to three standard errors and 5%."""
    light = CAMERA[:256, :256] / 255 * 60
    y = exposed(light, 5)[None, None]
    found = st.CameraNoise(**given).measure(y, None)
    assert found.gain == pytest.approx(GAIN, rel=0.15)
    level, true = found.level_at(OFFSET + 30 / GAIN), np.sqrt(30 + READ**2) / GAIN
    assert level == pytest.approx(true, rel=0.05)
    assert 0 < found.level_error < 0.05
    for name, value in given.items():
        assert getattr(found, name) == value
    if given:
        assert found.offset == pytest.approx(OFFSET, abs=5)
        assert found.read == pytest.approx(READ, abs=3)


def test_a_gain_that_enters_the_variance_twice_is_found():
    """The read noise makes most of the variance, through the gain squared."""
    y = exposed(CAMERA[:256, :256] / 255 * 60, 6, read=10.0)[None, None]
    assert st.CameraNoise(offset=OFFSET, read=10.0).measure(y, None).gain == pytest.approx(GAIN, rel=0.05)


def test_a_transform_survives_pickling(rng):
    root = GeneralisedAnscombe(GAIN, OFFSET, READ, level_error=0.01)
    y = rng.normal(100, 5, size=(1, 1, 6, 6))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(root)).forward(y), root.forward(y))


@pytest.mark.parametrize(
    "wrong", [{"gain": -1.0}, {"gain": 0}, {"gain": np.nan}, {"read": -1}, {"offset": np.inf}, {"read": "much"}]
)
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be a number"):
        st.CameraNoise(**wrong)


def test_an_offset_above_the_data_is_refused(rng):
    """All entries came out as the offset, with a predicted error far below the true one."""
    y = 100 + rng.poisson(40.0, (64, 64)) / GAIN
    with pytest.raises(ValueError, match="offset must be the value of y without light, got 300"):
        st.Denoiser(noise=st.CameraNoise(GAIN, 300.0, READ), choose="fast").run(y)
