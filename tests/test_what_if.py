"""Estimates at other thresholds, against the denoiser itself and against the truth."""

import numpy as np
import pytest

import scorethresh as st
from scorethresh.denoising.what_if import varied_wavelet, what_if


def blocks(shape):
    clean = np.zeros(shape)
    clean[tuple(slice(n // 4, n // 2) for n in shape[:2])] = 60.0
    return clean


def whole(shape):
    return tuple(slice(0, n) for n in shape)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((512,), {}),
        ((64, 80), {}),
        ((64, 64), {"choose": "global", "undecimated": False, "rule": "soft"}),
        ((64, 64), {"noise": "poisson"}),
        ((12, 24, 24), {}),
        ((48, 5, 40), {}),
    ],
)
@pytest.mark.slow
def test_at_the_thresholds_chosen_it_is_the_denoiser(shape, options, rng):
    y = rng.poisson(blocks(shape) + 20.0).astype(float)
    denoiser = st.Denoiser(**{"choose": "bands", **options})
    found = denoiser.run(y)
    [trial] = what_if(y, denoiser, found, [1.0], whole(shape))
    np.testing.assert_allclose(trial.estimate, found.estimate, rtol=1e-5)
    assert trial.predicted_mse == pytest.approx(found.predicted_mse, rel=0.02)


def test_channels_missing_entries_and_complex_data(rng):
    y = blocks((64, 64, 2)) + rng.normal(0.0, 5.0, (64, 64, 2)) + 1j * rng.normal(0.0, 5.0, (64, 64, 2))
    y[:5, :5] = np.nan
    denoiser = st.Denoiser(sigma=[4.0, 6.0], choose="bands", channel_axis=-1)
    found = denoiser.run(y)
    [trial] = what_if(y, denoiser, found, [1.0], whole((64, 64)))
    np.testing.assert_allclose(trial.estimate, found.estimate, rtol=1e-4, atol=1e-3)
    assert trial.predicted_mse == pytest.approx(found.predicted_mse, rel=0.02)


def test_errors_at_other_thresholds_are_predicted(rng):
    """Within four standard errors; to that at the level comes that of twice the product of noise and error."""
    clean = blocks((256, 256))
    y = clean + rng.normal(0.0, 20.0, clean.shape)
    denoiser = st.Denoiser(sigma=20.0)
    found = denoiser.run(y)
    for trial in what_if(y, denoiser, found, [0.25, 0.5, 1.5, 3.0], whole(clean.shape)):
        true = np.mean((trial.estimate - clean) ** 2)
        stderr = np.hypot(trial.stderr, 2 * 20.0 * np.sqrt(true / clean.size))
        assert trial.predicted_mse == pytest.approx(true, abs=4 * stderr)


def test_a_part_is_treated_as_the_whole_was(rng):
    """Away from its border, where other entries are seen, and with a noise level per entry."""
    y = blocks((128, 128)) + rng.normal(0.0, 5.0, (128, 128))
    denoiser = st.Denoiser(sigma=np.full((128, 128), 5.0), choose="bands", levels=2)
    found = denoiser.run(y)
    [trial] = what_if(y, denoiser, found, [1.0], (slice(20, 120), slice(0, 90)))
    assert trial.estimate.shape == (100, 90)
    np.testing.assert_allclose(trial.estimate[10:-10, :-10], found.estimate[30:110, :80], rtol=1e-4, atol=1e-3)


def test_of_a_blend_the_wavelet_with_most_weight_is_varied(rng):
    y = np.repeat([0.0, 50.0, 10.0, 30.0], 200) + rng.normal(size=800)
    denoiser = st.Denoiser(sigma=1.0)
    found = denoiser.run(y)
    name = found.plans[0].experts.thresholds[varied_wavelet(found)].noise.frame.wavelet
    assert found.weights[f"{name} thresholds"] == max(w for k, w in found.weights.items() if "thresholds" in k)
    [trial] = what_if(y, denoiser, found, [2.0], whole(y.shape))
    assert {band.wavelet for band in trial.bands} == {name}
    chosen = [band.threshold for band in found.bands if band.wavelet == name]
    assert [band.threshold for band in trial.bands] == [2 * t for t in chosen]


def test_without_noise_there_is_nothing_to_try():
    y = np.ones((32, 32))
    denoiser = st.Denoiser()
    assert list(what_if(y, denoiser, denoiser.run(y), [1.0], whole(y.shape))) == []


def test_estimates_stay_when_the_next_one_is_made(rng):
    y = rng.normal(scale=3, size=(32, 32)).astype(np.float32)
    denoiser = st.Denoiser(sigma=1.0, choose="bands", levels=1)
    many = what_if(y, denoiser, denoiser.run(y), [0.1, 1.0], (slice(0, 32),) * 2)
    first = next(many).estimate
    copy = first.copy()
    assert not np.array_equal(next(many).estimate, copy)
    np.testing.assert_array_equal(first, copy)


def test_without_thresholds_the_error_beside_a_gap_is_that_of_the_data(rng):
    """Half of the picture is missing; the error of the other half is the noise variance, in the mean over it."""
    y = blocks((96, 96)) + rng.normal(0.0, 5.0, (96, 96))
    mask = np.broadcast_to(np.arange(96) >= 48, y.shape)
    denoiser = st.Denoiser(sigma=5.0, choose="bands", levels=2, mask=mask)
    [trial] = what_if(y, denoiser, denoiser.run(y), [1e-6], whole(y.shape))
    np.testing.assert_allclose(trial.estimate, y, atol=1e-3)
    assert trial.predicted_mse == pytest.approx(25, rel=0.1)


@pytest.mark.parametrize("factor", [1e-6, 2.0])
def test_errors_between_gaps_at_other_thresholds_are_predicted(rng, factor):
    """With the correction for gaps at the thresholds chosen, 76 was predicted for 25."""
    clean = blocks((96, 96))
    y = clean + rng.normal(0.0, 5.0, clean.shape)
    mask = rng.random(y.shape) < 0.6
    denoiser = st.Denoiser(sigma=5.0, choose="bands", mask=mask)
    [trial] = what_if(y, denoiser, denoiser.run(y), [factor], whole(y.shape))
    true = np.mean((trial.estimate - clean)[~mask] ** 2)
    assert trial.predicted_mse == pytest.approx(true, abs=0.2 * true + 3 * trial.stderr)


def test_constant_channels_have_no_error(rng):
    """They halve the error per entry, at every factor."""
    noisy = blocks((64, 64)) + rng.normal(0.0, 5.0, (64, 64))
    alone = st.Denoiser(sigma=5.0, choose="bands")
    both = st.Denoiser(sigma=5.0, choose="bands", channel_axis=-1)
    y = np.stack([noisy, np.full_like(noisy, 7.0)], axis=-1)
    factors = [0.5, 1.0, 2.0]
    one = what_if(noisy, alone, alone.run(noisy), factors, whole((64, 64)))
    two = what_if(y, both, both.run(y), factors, whole((64, 64)))
    for a, b in zip(one, two, strict=True):
        assert b.predicted_mse == pytest.approx(a.predicted_mse / 2, rel=1e-6)
