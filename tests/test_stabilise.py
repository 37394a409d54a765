"""Stabilised data have noise of level 1, and the way back is that of the definition."""

import numpy as np
import pytest
import pywt
from scipy.ndimage import gaussian_filter
from scipy.stats import poisson

import scorethresh as st
from scorethresh.denoising.denoiser import Denoiser
from scorethresh.denoising.stabilise import stabilise
from scorethresh.denoising.way_back import Restored
from scorethresh.noise.generalised_anscombe import GeneralisedAnscombe
from scorethresh.noise.models import CorrelatedNoise, NoiseModel, PoissonNoise, WhiteNoise
from scorethresh.noise.named import as_noise
from scorethresh.noise.stabilisers import Scaling, Transformed
from scorethresh.risk.prediction import FilterRatio, RiskSums

# Noise keeps it from looking clipped.
CAMERA = pywt.data.camera()[100:228, 150:278] + np.random.default_rng(1).normal(size=(128, 128))


def stabilised(y, **options):
    return Denoiser(**options).stabilised(y)[2]


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (CAMERA, {"sigma": 3.0}),
        (CAMERA.astype(np.float32), {"sigma": 3.0}),
        (np.stack([CAMERA, CAMERA + 9], axis=-1), {"sigma": [3.0, 4.0], "channel_axis": -1}),
        (np.stack([CAMERA, CAMERA + 9], axis=-1), {"sigma": [3.0, 40.0], "channel_axis": -1}),
        (CAMERA, {"sigma": np.linspace(1, 5, CAMERA.size).reshape(CAMERA.shape)}),
        (CAMERA, {"noise": np.linspace(1, 5, CAMERA.size).reshape(CAMERA.shape)}),
        (CAMERA * (1 + 2j), {"sigma": 3.0}),
        (np.stack([CAMERA] * 3), {"sigma": 3.0}),
    ],
)
def test_there_and_back_is_the_identity(y, options):
    values, back = stabilised(y, **options)
    np.testing.assert_allclose(back.restore(values).estimate, y, rtol=2e-5, atol=2e-4)


def test_the_noise_has_level_1_and_no_correlation_across_channels(rng):
    sigma = np.array([3.0, 5.0, 4.0])
    noise = rng.normal(size=(200, 200, 3)) * sigma
    values, back = stabilised(np.round(1000 * CAMERA[:1, :1, None]) + noise, sigma=sigma, channel_axis=-1)
    assert back.rotation is not None
    np.testing.assert_allclose(np.cov(values.reshape(3, -1)), np.eye(3), atol=4 / 200)


@pytest.mark.parametrize("shared", [0.0, 0.7])
@pytest.mark.parametrize("white", [False, True], ids=["texture", "flat"])
def test_the_mean_of_the_channels_holds_the_noise_that_their_differences_do_not(rng, shared, white):
    """A covariance of 1 and `shared` has the eigenvalues 1 + 2 shared and 1 - shared; texture is in the mean alone.

    Readings of levels are right to 5%, and those near 1 are taken for 1. What they leave is right to twice their error.
    """
    common, own = rng.normal(size=(96, 96, 1)), rng.normal(size=(96, 96, 3))
    texture = 0 if white else 40 * gaussian_filter(rng.normal(size=(96, 96, 1)), 0.5)
    y = 100 + texture + 10 * (np.sqrt(shared) * common + np.sqrt(1 - shared) * own)
    found = [c.variance for c in stabilised(y, noise=Known(10.0), channel_axis=-1)[1].covariances]
    assert found[1:] == pytest.approx([1 - shared] * 2, rel=0.15 if shared else 1e-12)
    assert found[0] == pytest.approx(1 + 2 * shared, rel=0.05 if shared else 1e-12)


class Known(NoiseModel):
    """White noise of a known level, whose channels may share it."""

    checks_channels = True

    def __init__(self, level):
        self.level = level

    def measure(self, y, missing):
        return Scaling(np.full((1, 1, 1, 1), self.level))


def test_channels_of_unequal_noise_are_not_made_worse_by_each_other(rng):
    """Levels 1, 1 and 20: rotated into each other, the last came out five times worse than alone."""
    sigma = np.array([1.0, 1.0, 20.0])
    clean = np.stack([CAMERA, CAMERA * 0.8 + 20, 200 - CAMERA * 0.5], axis=-1)
    y = clean + rng.normal(size=clean.shape) * sigma
    together = st.denoise(y, sigma=sigma, channel_axis=-1)
    for k in range(3):
        alone = st.denoise(y[..., k], sigma=sigma[k])
        assert np.mean((together[..., k] - clean[..., k]) ** 2) < 1.05 * np.mean((alone - clean[..., k]) ** 2)


def test_the_error_of_unequal_channels_is_predicted(rng):
    sigma = np.array([1.0, 1.0, 20.0])
    clean = np.stack([CAMERA] * 3, axis=-1)
    found = st.Denoiser(sigma=sigma, channel_axis=-1).run(clean + rng.normal(size=clean.shape) * sigma)
    assert found.predicted_mse == pytest.approx(np.mean((found.estimate - clean) ** 2), rel=0.25)


def test_moments_of_a_map_are_those_of_its_valid_entries(rng):
    scale = rng.uniform(1, 3, size=(1, 1, 5, 6))
    valid = rng.random((5, 6)) < 0.5
    found = Scaling(scale).moments(np.zeros((1, 1, 5, 6)), valid)
    assert found.second * found.unit**2 == pytest.approx(np.mean(scale[0, 0][valid] ** 2))
    assert found.fourth * found.unit**4 == pytest.approx(np.mean(scale[0, 0][valid] ** 4))


def test_errors_of_rotated_channels_count_by_the_mean_level_and_others_by_their_own():
    scale = np.array([1.0, 3.0]).reshape(2, 1, 1)
    values = np.zeros((1, 4))
    assert Scaling(scale).local_noise(values, None, (slice(4),)).weight == 5
    assert Scaling(scale).local_noise(values, 1, (slice(4),)).weight == 9


@pytest.mark.parametrize("mean", [0.5, 2.0, 30.0])
def test_counts_have_the_variance_and_the_slope_of_the_definition(mean):
    """By direct sums over the Poisson law; the slope by differences of the mean of the root."""
    counts = np.arange(400)

    def root_mean(m):
        return poisson.pmf(counts, m) @ GeneralisedAnscombe(1.0, 0.0, 0.0).forward(counts)

    z = root_mean(mean)
    variance, weight = GeneralisedAnscombe(1.0, 0.0, 0.0).local_noise(np.array([[z]]), None, ())
    exact = poisson.pmf(counts, mean) @ GeneralisedAnscombe(1.0, 0.0, 0.0).forward(counts) ** 2 - z**2
    slope = 0.002 * mean / (root_mean(1.001 * mean) - root_mean(0.999 * mean))
    assert variance[0] == pytest.approx(exact, abs=2e-3)
    assert weight[0] == pytest.approx(slope**2, rel=0.01)
    assert GeneralisedAnscombe(1.0, 0.0, 0.0).inverse(np.array([z]))[0] == pytest.approx(mean, rel=1e-3)


class Speckle(NoiseModel):
    """Multiplicative noise of a known level: its logarithm is nearly Gaussian."""

    def __init__(self, level):
        self.level = level

    def measure(self, y, missing):
        def back(z):
            return np.exp(self.level * z)

        return Transformed(lambda y: np.log(y) / self.level, back, lambda z: self.level * back(z))


def test_a_noise_model_of_the_users_own(rng):
    clean = CAMERA + 20
    y = clean * np.exp(rng.normal(scale=0.1, size=clean.shape))
    found = st.Denoiser(noise=Speckle(0.1)).run(y)
    true = np.mean((found.estimate - clean) ** 2)
    assert true < 0.4 * np.mean((y - clean) ** 2)
    assert true < np.mean((st.denoise(y) - clean) ** 2)
    assert found.predicted_mse == pytest.approx(true, rel=0.3)


def test_names_become_models_once():
    assert isinstance(as_noise("white", 3.0), WhiteNoise)
    assert isinstance(as_noise("poisson", None), PoissonNoise)
    assert as_noise("correlated", None).power is None
    assert isinstance(as_noise(np.ones((3, 3)), None), CorrelatedNoise)
    model = Speckle(0.1)
    assert as_noise(model, None) is model
    with pytest.raises(ValueError, match="sigma goes with white noise"):
        as_noise(model, 1.0)


def test_a_model_that_lacks_something_is_refused():
    class Nothing(NoiseModel):
        pass

    with pytest.raises(TypeError, match="measure"):
        Nothing()


def test_constant_data_hold_no_noise():
    assert stabilised(np.ones((40, 40))) is None
    layout = Denoiser().stabilised(np.ones((40, 40)))[0]
    assert stabilise(layout, WhiteNoise(2.0)) is None


def test_moments_of_a_transform_are_those_of_its_slope(rng):
    """Of a logarithm of level s the noise level is s y."""
    y, valid = rng.uniform(1, 9, size=(1, 1, 5, 6)), rng.random((5, 6)) < 0.5
    log = Transformed(lambda y: np.log(y) / 0.1, lambda z: np.exp(0.1 * z), lambda z: 0.1 * np.exp(0.1 * z))
    found = log.moments(y, valid)
    assert found.second * found.unit**2 == pytest.approx(np.mean((0.1 * y[0, 0][valid]) ** 2))
    assert found.fourth * found.unit**4 == pytest.approx(np.mean((0.1 * y[0, 0][valid]) ** 4))


def test_the_energy_of_correlated_noise_varies_by_its_squared_power(rng):
    """The mean square of stationary noise on a circle has variance 2 mean(power^2) / N: powers are independent."""
    blur = np.zeros((32, 40))
    blur[:3, :2] = rng.uniform(1, 2, size=(3, 2))
    power = np.abs(np.fft.fft2(blur)) ** 2
    y = rng.normal(size=power.shape)
    back = stabilised(y, noise=power).back
    # Next to no divergence: the standard error of the risk is that of the energy. It has mean 1 here.
    found = back.predict(RiskSums(y.size, 1e-6), back.entry_sums(Restored(y, 1.0, 0.0)), FilterRatio(1.0))
    assert 1 / found.score == pytest.approx(np.sqrt(2 * np.mean(power**2) / y.size), rel=1e-5)


def test_noise_levels_stay_with_their_channels(rng):
    """The first channel is constant, and holds no noise."""
    y = rng.normal(size=(40, 40, 3)) * [0.0, 4.0, 5.0]
    values, back = stabilised(y, sigma=[3.0, 4.0, 5.0], channel_axis=-1)
    np.testing.assert_array_equal(back.sigma, [0, 4, 5])
    assert values.std() == pytest.approx(1, abs=5 / np.sqrt(2 * values.size))


@pytest.mark.parametrize("level", [1e-200, 1e200])
def test_maps_of_levels_out_of_range_are_refused(level):
    with pytest.raises(ValueError, match="sigma must lie between 1e-153 and 1e153"):
        st.denoise(CAMERA, sigma=np.full(CAMERA.shape, level))


@pytest.mark.parametrize("level", [1e-50, 1e-20, 1e50])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_levels_beyond_single_precision(level, dtype):
    y = CAMERA.astype(dtype)
    found = st.denoise(y, sigma=level)
    assert found.dtype == dtype
    assert np.isfinite(found).all()
    if level < 1:
        np.testing.assert_allclose(found, y, rtol=1e-6)


def test_what_is_no_noise_is_refused():
    with pytest.raises(TypeError, match="noise must be one of 'auto', 'white', 'poisson', 'correlated'"):
        st.denoise(CAMERA, noise=None)
    with pytest.raises(ValueError, match="counts of at most 1e\\+30, got 1e\\+100"):
        st.denoise(np.full((40, 40), 1e100), noise="poisson")

    for model in (st.CameraNoise, st.RicianNoise, st.SpeckleNoise):
        with pytest.raises(TypeError, match=rf"got the class {model.__name__}\. Call it: noise={model.__name__}\(\)"):
            st.Denoiser(noise=model)

    class Wrong(NoiseModel):
        def measure(self, y, missing):
            return 10.0

    with pytest.raises(TypeError, match=r"Wrong\.measure must return a Stabiliser"):
        st.denoise(CAMERA, noise=Wrong())

    class Careless(NoiseModel):
        def measure(self, y, missing):
            y -= 1

    with pytest.raises(ValueError, match="read-only"):
        st.denoise(CAMERA, noise=Careless())


def test_values_are_not_turned_back_for_variances_that_nobody_knows():
    calls = []

    class Root(NoiseModel):
        def measure(self, y, missing):
            return Transformed(np.sqrt, lambda roots: calls.append(roots.shape) or roots**2, lambda roots: 2 * roots)

    values, back = stabilised(np.abs(CAMERA), noise=Root())
    calls.clear()
    assert back.own_risk(0, (slice(None), slice(None)), values[0]) is None
    assert not calls
