import numpy as np
import pytest
import pywt

import oracles
import scorethresh as st
from scorethresh import _arrays
from scorethresh.noise.clipping import find_clip_limits, near_clip_limits, share_left, unclip


@pytest.mark.parametrize("unit", [1.0, 1e-170, 1e170])
@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0, 2.5, 4.0, 7.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_means_before_clipping(mean, sign, unit):
    """Noise of level 2 clipped at 1 from below, or mirrored from above; the table is right to about 1e-6 levels."""
    first, variance = oracles.clipped_moments(mean + 1, 2, 1)
    limits = (unit, np.inf) if sign > 0 else (-np.inf, -unit)
    means = np.full((1, 1, 1), sign * first * unit)
    found, left = unclip(means, np.array(2.0 * unit), limits)
    assert sign * found.item() / unit == pytest.approx(mean + 1, abs=1e-5)
    assert left == pytest.approx(variance / 4, abs=1e-5)
    assert means.item() == sign * first * unit


def test_nothing_is_copied_without_limits(rng):
    means = rng.normal(size=(1, 1, 5))
    found, left = unclip(means, np.array(1.0), (-np.inf, np.inf))
    assert found is means
    assert left == 1


@pytest.mark.slow
def test_means_between_two_limits():
    x = np.linspace(0, 10, 101, dtype=np.float32)
    moments = [oracles.clipped_moments(min(m, 10 - m), 1, 0) for m in x.astype(float)]
    means = np.array([mean if m <= 5 else 10 - mean for (mean, _), m in zip(moments, x, strict=True)])
    means = means.astype(np.float32)[None, None]
    found, left = unclip(means, np.array(1.0), (0.0, 10.0))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.ravel(), x, atol=1e-5)
    assert left == pytest.approx(np.mean([variance for _, variance in moments]), abs=1e-4)
    inner = (x >= 4) & (x <= 6)
    assert unclip(means, np.array(1.0), (0.0, 10.0), valid=inner)[1] == pytest.approx(1, abs=1e-3)
    assert unclip(means, np.array(1.0), (0.0, 10.0), valid=np.zeros(101, bool))[1] == 1


def test_channels_with_more_noise_count_more():
    """All of the first channel is at the limit, where 0.34085 of the variance is left; none of the second is."""
    half = oracles.clipped_moments(0, 1, 0)
    means = np.stack([np.full((1, 50), 3 * half[0]), np.full((1, 50), 100.0)])
    found, left = unclip(means, np.array([3.0, 1.0]).reshape(2, 1, 1), (0.0, np.inf))
    np.testing.assert_allclose(found[0], 0, atol=1e-5)
    np.testing.assert_array_equal(found[1], 100)
    assert left == pytest.approx((9 * half[1] + 1) / 10, abs=1e-6)


def test_limits_are_shared_by_many_entries(rng):
    y = rng.normal(size=(100, 100))
    assert find_clip_limits(y) == (-np.inf, np.inf)
    assert find_clip_limits(np.maximum(y, -1)) == (-1, np.inf)
    assert find_clip_limits(np.clip(y, -1, 2)) == (-1, 2)
    assert find_clip_limits(np.where(y > 1, 1.0, 0.0))[0] == -np.inf  # most of them are 0
    assert find_clip_limits(np.zeros(5)) == (-np.inf, np.inf)
    assert find_clip_limits(rng.poisson(1.0, size=(100, 100)))[0] == -np.inf
    assert find_clip_limits(np.rint(2 * y).clip(0, 9).astype(np.uint8)) == (0, np.inf)
    assert find_clip_limits(np.r_[np.zeros(3), np.arange(1.0, 9.0)]) == (-np.inf, np.inf)  # three are no pile


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_limits_are_found_in_slabs_and_beside_excluded_entries(rng, monkeypatch, dtype):
    """Piles that fail or pass by their neighbours' numbers, in any order of the slabs."""
    for low, next_to_it in ((900, 590), (900, 610)):
        y = rng.integers(20, 230, (2, 1, 100, 200))
        places = rng.permutation(y.size)
        y.ravel()[places[:low]], y.ravel()[places[low : low + next_to_it]] = 3, 7
        excluded = rng.random((100, 200)) < 0.3
        y[:, :, ~excluded] = np.sort(y[:, :, ~excluded])
        y[..., excluded] = 0
        kept = y[..., ~excluded].ravel()
        clipped = np.count_nonzero(kept == 3) > 1.5 * np.count_nonzero(kept == 7)
        for slab in (1 << 18, 700):
            monkeypatch.setattr(_arrays, "SLAB_ENTRIES", slab)
            for data, left_out in ((y.astype(dtype), excluded), (kept.astype(dtype), None)):
                assert find_clip_limits(data, left_out) == (3.0 if clipped else -np.inf, np.inf)
    assert find_clip_limits(y.astype(dtype), np.ones((100, 200), bool)) == (-np.inf, np.inf)


def test_the_value_next_to_a_limit_is_that_of_all_slabs(monkeypatch):
    monkeypatch.setattr(_arrays, "SLAB_ENTRIES", 100)
    y = np.repeat([3.0, 9.0, 5.0, 8.0], [100, 100, 5, 95])
    assert find_clip_limits(y)[0] == find_clip_limits(y[::-1])[0] == 3
    y[205:280] = 5.0
    assert find_clip_limits(y)[0] == find_clip_limits(y[::-1])[0] == -np.inf


def test_limits_between_gaps(rng):
    y = np.maximum(rng.normal(size=2000), -1)
    y[::3] = np.nan
    assert find_clip_limits(y) == (-1, np.inf)
    only = np.where(np.arange(100) % 2 == 0, 5.0, np.nan)
    assert find_clip_limits(only) == (5, 5)


@pytest.mark.parametrize("unit", [1e-10, 1.0, 1e10])
def test_the_share_of_the_variance_that_is_left(monkeypatch, unit):
    """By the means after clipping; the cells of the table are 1e-3 levels wide."""
    monkeypatch.setattr(_arrays, "SLAB_ENTRIES", 7)
    x = np.arange(0.0, 12.1, 0.5)
    below, above = ([oracles.clipped_moments(t, 2, 0) for t in side] for side in (x, 12 - x))
    from_below = np.array([mean for mean, _ in below])
    from_above = 12 - np.array([mean for mean, _ in above])
    left = share_left(from_below * unit, 2.0 * unit, [0.0])
    np.testing.assert_allclose(left, [variance / 4 for _, variance in below], atol=1e-3)
    np.testing.assert_allclose(share_left(from_above * unit, 2.0 * unit, [12.0 * unit]), left[::-1], atol=1e-3)
    both = share_left(from_below * unit, 2.0 * unit, [0.0, 12.0 * unit])
    np.testing.assert_allclose(1 - both, (1 - left) + (1 - share_left(from_below, 2.0, [12.0])), atol=1e-6)


def test_noise_is_clipped_near_the_limits_of_any_channel(rng):
    """Means of 8 x 8 entries lie within 3 levels of a limit, or far from it by more than 8 of their own levels."""
    y = 50 + rng.normal(size=(2, 1, 64, 64))
    y[0, 0, :, :20] -= 48
    y[1, 0, :30] += 48
    y[0, 0, 40, 40] = np.nan
    near = near_clip_limits(y, np.array([1.0, 1.0]).reshape(2, 1, 1, 1), (0.0, 100.0))
    assert near.shape == (64, 64)
    assert near[:, :14].all()
    assert near[:24].all()
    assert not near[36:, 26:].any()
    assert not near_clip_limits(y, np.array(1.0), (-np.inf, np.inf)).any()


@pytest.mark.parametrize("options", [{}, {"choose": "bands"}, {"noise": np.full((256, 256), 625.0)}])
def test_pictures_of_eight_bits(options):
    clean = pywt.data.camera()[:256, 100:356].astype(float)
    noisy = clean + np.random.default_rng(0).normal(scale=25, size=clean.shape)
    y = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    assert np.mean((y == 0) | (y == 255)) > 0.05
    level = {} if "noise" in options else {"sigma": 25.0}
    seen, unseen = (st.Denoiser(**level, **options).run(z) for z in (y, np.clip(noisy, 0, 255) + 1e-4 * noisy))
    errors = [np.mean((run.estimate - clean) ** 2) for run in (seen, unseen)]
    assert errors[0] < 0.97 * errors[1]
    assert seen.predicted_mse == pytest.approx(errors[0], rel=0.2)
    assert unseen.predicted_mse < 0.6 * errors[1]


@pytest.mark.slow
def test_colours_gaps_and_varying_levels_near_black(rng):
    shape = (96, 96)
    clean = np.zeros((*shape, 3))
    clean[20:70, 20:70] = 60
    sigma = np.full(shape, 10.0)
    sigma[:, 48:] = 20
    y = np.maximum(clean + sigma[..., None] * rng.normal(size=clean.shape), 0)
    y[40:44, 40:44] = np.nan
    found = st.Denoiser(sigma=sigma, channel_axis=-1).run(y)
    known = ~np.isnan(y)
    assert np.isnan(found.estimate[~known]).all()
    error = np.mean((found.estimate - clean)[known] ** 2)
    assert abs(found.estimate[75:, 5:40].mean()) < 0.5  # the mean of what was cut is 4
    assert abs(found.predicted_mse - error) < 2 * found.stderr
    assert error < 0.02 * np.mean(sigma**2)


@pytest.mark.parametrize("gaps", [0.0, 0.01])
@pytest.mark.slow
def test_colours_of_eight_bits(rng, gaps):
    """Where all channels are cut off, their differences have little noise, which must not be taken for that of all."""
    grey = pywt.data.camera()[:256, :256].astype(float)
    clean = np.stack([np.clip(1.4 * grey - 60, 0, 255), grey, np.clip(1.2 * grey - 30, 0, 255)], axis=-1)
    y = np.clip(np.rint(clean + rng.normal(scale=12, size=clean.shape)), 0, 255)
    missing = rng.random(grey.shape) < gaps
    y[missing] = np.nan
    errors = [np.mean((st.denoise(y, sigma=sigma, channel_axis=-1) - clean)[~missing] ** 2) for sigma in (12.0, None)]
    assert errors[1] < 1.1 * errors[0]
