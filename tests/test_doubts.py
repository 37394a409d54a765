"""What cannot be right is told: risks below zero, levels that few entries tell, arguments that do nothing."""

import pickle

import numpy as np
import pytest
import pywt
from scipy.ndimage import gaussian_filter

import scorethresh as st
from scorethresh.noise.auto import AutoNoise
from scorethresh.noise.models import CorrelatedNoise, PoissonNoise, WhiteNoise

CAMERA = pywt.data.camera().astype(float)


@pytest.mark.parametrize("choose", ["fast", "bands"])
def test_an_estimated_risk_below_zero_is_doubted(choose):
    clean = pywt.data.ascent()[200:328, 200:328]
    y = clean + np.random.default_rng(2).normal(0, 10, clean.shape)
    with pytest.warns(st.AssumptionWarning, match="below zero.*too high"):
        found = st.Denoiser(sigma=12.0, choose=choose).run(y)
    assert found.predicted_mse > 0
    assert "too high" in found.verdict
    assert "below zero" not in st.Denoiser(sigma=10.0, choose=choose).run(y).verdict


def test_risks_far_below_zero_are_doubted(rng):
    """Pure noise of level 1: a risk of zero less the energy that is not there."""
    y = rng.normal(size=2000)
    with pytest.warns(st.AssumptionWarning, match="sigma is too high"):
        st.shrink(y, sigma=2.0)
    with pytest.warns(st.AssumptionWarning, match="sigma is too high"):
        st.select_rank(y.reshape(50, 40), sigma=1.3)
    with pytest.warns(st.AssumptionWarning, match="sigma is too high"):
        st.select_parameter(gaussian_filter, y.reshape(50, 40), [0.3, 0.6, 1.0], sigma=2.0)


@pytest.mark.filterwarnings("error::scorethresh.AssumptionWarning")
def test_risks_below_zero_by_chance_are_not_doubted():
    for seed in range(20):
        y = np.random.default_rng(seed).normal(size=2000)
        st.shrink(y, sigma=1.0)
        st.select_rank(y.reshape(50, 40), sigma=1.0)


@pytest.mark.parametrize("sigma", [20.0, None])
def test_noise_that_is_clipped_everywhere_is_doubted(sigma, rng):
    y = np.clip(np.rint(rng.normal(3.0, 20.0, (96, 96))), 0, 255).astype(np.uint8)
    with pytest.warns(st.AssumptionWarning, match="clipped everywhere"):
        found = st.Denoiser(sigma=sigma, choose="fast").run(y)
    assert found.predicted_mse >= 0


def test_texture_that_fills_a_small_picture_is_doubted():
    """Grass. Its noise was called correlated in three of four draws, with seven times the error of the input."""
    grass = CAMERA[384:, 384:]
    for seed in range(4):
        y = grass + np.random.default_rng([3, 3, seed]).normal(0, 5, grass.shape)
        assert type(AutoNoise().chosen_for(y[None, None], None).model) is WhiteNoise
        with pytest.warns(st.AssumptionWarning, match="tell noise from fine texture"):
            st.denoise(y, choose="fast")


def test_strong_correlations_are_found_in_small_pictures(rng):
    noise = gaussian_filter(rng.normal(size=(128, 128)), 1.0, mode="wrap")
    y = CAMERA[:128, :128] + 10 * noise / noise.std()
    assert type(AutoNoise().chosen_for(y[None, None], None).model) is CorrelatedNoise


def test_levels_of_few_entries_are_doubted(rng):
    y = 5 + np.sin(np.arange(16) / 3) + rng.normal(size=16)
    with pytest.warns(st.AssumptionWarning, match=r"level is uncertain by \d+%.*Pass sigma"):
        st.denoise(y)


@pytest.mark.parametrize("size", [32, 64, 256])
@pytest.mark.filterwarnings("ignore::scorethresh.AssumptionWarning")
def test_the_prediction_for_short_signals_covers(size):
    """Two standard errors cover 95% of normal errors. Of 40 draws, 30 or fewer are covered with probability 1e-4."""
    clean = 5 + np.sin(6 * np.arange(size) / size)
    inside = 0
    for seed in range(40):
        found = st.Denoiser(choose="fast").run(clean + np.random.default_rng(seed).normal(size=size))
        inside += abs(found.predicted_mse - np.mean((found.estimate - clean) ** 2)) < 2 * found.stderr
    assert inside > 30


def test_the_prediction_covers_a_bump_that_may_be_lost():
    t = np.linspace(0, 1, 1024)
    clean = 30 + 10 * np.exp(-(((t - 0.3) / 0.01) ** 2))
    inside = 0
    for seed in range(40):
        found = st.Denoiser(sigma=5.5, choose="fast").run(clean + np.random.default_rng(seed).normal(0, 5.5, 1024))
        inside += abs(found.predicted_mse - np.mean((found.estimate - clean) ** 2)) < 2 * found.stderr
    assert inside > 30


@pytest.mark.parametrize(("corner", "seed"), [((300, 50), 101), ((100, 150), 2), ((100, 150), 3)])
def test_counts_are_no_magnitudes(corner, seed):
    clean = CAMERA[corner[0] : corner[0] + 128, corner[1] : corner[1] + 128] / 255 * 30 + 1
    y = np.random.default_rng(seed).poisson(clean)
    assert type(AutoNoise().chosen_for(y[None, None], None).model) is PoissonNoise


def test_the_error_of_rounding_counts_in_series(rng):
    clean = (rng.normal(size=(20, 20, 3)) @ rng.normal(size=(3, 30))) * 2 + 20
    y = clean + rng.normal(size=clean.shape)
    plain, rounded = (
        st.LowRankDenoiser(sigma=s).run(a) for s, a in ((1.0, y), (13**0.5 / 12**0.5, np.rint(y).astype("i2")))
    )
    assert rounded.predicted_mse == pytest.approx(plain.predicted_mse + 1 / 12, abs=0.03)
    true = np.mean((rounded.estimate - clean) ** 2)
    assert abs(rounded.predicted_mse - true) < 3 * rounded.stderr
    assert np.mean(rounded.error_map()) == pytest.approx(rounded.predicted_mse, rel=0.1)


def test_a_batch_of_selections_can_be_pickled(rng):
    y = rng.normal(size=(5, 100))
    batch = st.select_threshold(y, sigma=1.0, batch_axis=0)
    again = pickle.loads(pickle.dumps(batch))
    np.testing.assert_array_equal(again.threshold, batch.threshold)
    assert again[2].threshold == st.select_threshold(y[2], sigma=1.0).threshold


def test_levels_of_samples_with_missing_entries(rng):
    y = rng.normal(0, 10, (128, 128))
    y[rng.random(y.shape) < 0.05] = np.nan
    assert st.estimate_sigma(y) == pytest.approx(10, rel=0.1)
    with pytest.raises(ValueError, match="infinite"):
        st.estimate_sigma(np.where(np.isnan(y), np.inf, y))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: st.denoise([[1, 2], [3]]), "y is no array.*equally long"),
        (lambda: st.denoise(np.arange(40.0), progress="x"), "progress must be a real number, got 'x'"),
        (lambda: st.denoise(np.zeros((4, 64)), pooled=True), "pooled=True needs batch_axis"),
        (lambda: st.shrink(np.zeros((4, 64)), sigma=1.0, pooled=True), "pooled=True needs batch_axis"),
        (lambda: st.select_threshold(np.zeros((4, 64)), sigma=1.0, pooled=True), "pooled=True needs batch_axis"),
        (lambda: st.motion_psf(5, np.nan), "angle must be finite"),
        (lambda: st.gaussian_psf(1e6), "beyond 4096"),
        (lambda: st.paper_bandwidth(0, 1.0), "size"),
        (lambda: st.paper_bandwidth(-5, 1.0), "size"),
        (lambda: st.denoise(np.arange(40.0), sigma=0), "domain='samples'"),
    ],
)
def test_errors_name_the_argument(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_warnings_point_to_the_line_of_the_caller(rng):
    y = rng.normal(size=(64, 64))
    calls = [
        lambda: st.denoise(y, sigma=3.0),
        lambda: st.Denoiser(sigma=3.0).run(y),
        lambda: st.denoise(np.stack([y, y]), sigma=3.0, batch_axis=0),
        lambda: st.select_threshold(y, sigma=3.0),
        lambda: st.select_parameter(lambda y, t: y * (abs(y) > t), y, [1.0, 2.0], sigma=3.0),
        lambda: st.shrink(y, sigma=3.0),
        lambda: st.select_rank(y, sigma=3.0),
    ]
    for call in calls:
        with pytest.warns(st.AssumptionWarning) as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}
