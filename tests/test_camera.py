"""Camera noise: its transform, the way back, its parameters, and the predicted error."""

import pickle

import numpy as np
import pytest
import pywt

import oracles
import scorethresh as st
from scorethresh.noise.generalised_anscombe import TAIL_ERROR, GeneralisedAnscombe
from scorethresh.noise.stabilisers import Moments

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


@pytest.mark.parametrize("electrons", [0.2, 1.0, 7.0])
def test_the_noise_variance_of_a_pixel_is_unbiased(electrons):
    """Its mean over 4e5 draws is the variance of the draws, to 4 standard errors; at the mean it is that exactly."""
    root, y = GeneralisedAnscombe(GAIN, OFFSET, READ), exposed(np.full(400_000, electrons), 3)
    mean = OFFSET + electrons / GAIN
    found = root.own_variances(y, np.array([mean]))
    variance = (electrons + READ**2) / GAIN**2
    assert found.unbiased.mean() == pytest.approx(variance, abs=4 * found.unbiased.std() / y.size**0.5)
    assert y.var() == pytest.approx(variance, rel=0.02)
    assert found.expected[0] == pytest.approx(variance, rel=1e-12)


def test_the_risk_in_units_of_the_data_is_unbiased():
    """Of means of eight roots, whose divergence is 1/8, one count a pixel: to 4 standard errors over 4000 draws.

    By stabilised values the risk is 0.013 too high.
    """
    root, light = GeneralisedAnscombe(1.0, 0.0, 0.0), np.repeat([0.6, 1.4], 128)
    rng = np.random.default_rng(0)
    risks, errors = [], []
    for _ in range(4000):
        y = rng.poisson(light).astype(float)
        means = root.inverse(root.forward(y).reshape(-1, 8).mean(axis=1)).repeat(8)
        own = root.own_variances(y, means)
        risks.append(np.mean((y - means) ** 2 - own.unbiased + 2 * own.expected / 8))
        errors.append(np.mean((means - light) ** 2))
    gap = np.array(risks) - errors
    assert abs(gap.mean()) < 4 * gap.std() / 4000**0.5 < 0.008


def test_few_electrons_make_predictions_uncertain():
    """By the excess kurtosis of the noise, m / (m + read^2)^2."""
    root, y = GeneralisedAnscombe(GAIN, OFFSET, READ), exposed(np.full((1, 1, 400, 400), 2.0), 4)
    excess = 2.0 / (2.0 + READ**2) ** 2
    assert root.curve_error(root.moments(y, None)) == pytest.approx(TAIL_ERROR * excess, rel=0.02)
    assert GeneralisedAnscombe(1.0, 0.0, 0.0).curve_error(Moments(1.0, 1e-6, 1e-12)) == 1


def test_no_light_at_all_is_no_noise():
    found = st.Denoiser(noise="poisson", choose="fast").run(np.zeros((64, 64)))
    assert not found.estimate.any()
    assert found.predicted_mse == 0


def test_a_constant_channel_of_counts_holds_no_noise(rng):
    """Such as an opaque alpha channel. It took its own mean off the risk of the others."""
    light = 20 + 10 * np.sin(np.arange(96) / 9) * np.ones((96, 1))
    counts = np.stack([rng.poisson(light), np.full(light.shape, 255), rng.poisson(light)], axis=-1)
    found = st.Denoiser(noise="poisson", channel_axis=-1, choose="fast").run(counts)
    alone = st.Denoiser(noise="poisson", channel_axis=-1, choose="fast").run(counts[..., [0, 2]])
    assert (found.estimate[..., 1] == 255).all()
    assert found.predicted_mse == pytest.approx(2 / 3 * alone.predicted_mse, rel=1e-6)


@pytest.mark.parametrize("read", [1.0, 3.0, 29.9, 30.1, 100.0])
@pytest.mark.parametrize("floor", [0.0, 15.0, 150.0])
def test_tables_of_clipped_light_rise(read, floor):
    """Means that are hardly ever above the floor have no place in them: the slope there was infinite, or noise."""
    table = GeneralisedAnscombe(1.0, 0.0, read, floor=floor)._table
    assert (np.diff(table.means) > 0).all()
    assert (table.slopes > 0).all()
    assert (table.slopes < 21 * np.sqrt(table.parameters + read**2 + 0.375)).all()


def test_large_read_noise_is_clipped_too(rng):
    """The mean of the dark, cut off at 0, came back as 0.4 times a read noise above 30 electrons."""
    y = np.maximum(100 * rng.normal(size=(128, 128)), 0)
    y[:, 64:] = rng.poisson(400, (128, 64)) + 100 * rng.normal(size=(128, 64))
    found = st.Denoiser(noise=st.CameraNoise(1.0, 0.0, 100.0), choose="fast").run(np.maximum(y, 0))
    assert found.estimate[:, :48].mean() < 5


def test_clipping_above_the_offset_is_predicted(rng):
    """By NaN, or by 1e6 times the error. The rest of the bias of what was cut off is not seen: a factor of 2."""
    y, x = np.sin(np.linspace(0, 6, 64)), np.cos(np.linspace(0, 6, 64))
    light = 20 + 18 * np.outer(y, x)
    data = np.maximum(rng.poisson(light) + rng.normal(size=light.shape), 8)
    with pytest.warns(st.AssumptionWarning):
        found = st.Denoiser(noise=st.CameraNoise(1.0, 0.0, 1.0), choose="fast").run(data)
    true = np.mean((found.estimate - light) ** 2)
    assert true / 2 < found.predicted_mse < 2 * true


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
