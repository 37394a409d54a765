import numpy as np
import pytest
import pywt
from mpmath import mp

import scorethresh as st
from scorethresh.noise.clipping import find_clip_limits, unclip


@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0, 2.5, 4.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_mean_behind_what_was_cut(mean, sign):
    """Of noise of level 2 around mean, cut off at 0, by quadrature; from above, everything is mirrored."""
    panels = [0, mean + 2, mean + 8, mean + 30]
    first, second = (mp.quad(lambda x, k=k: x**k * mp.npdf(x, mean, 2), panels) for k in (1, 2))
    ends = (0.0, np.inf) if sign > 0 else (-np.inf, 0.0)
    found = np.full((1, 1, 1), sign * float(first))
    found, left = unclip(found, np.array(2.0), ends)
    assert sign * found.item() == pytest.approx(mean, abs=1e-5)
    assert left == pytest.approx(float(second - first**2) / 4, abs=1e-5)


def test_both_ends():
    x = np.linspace(0, 10, 101, dtype=np.float32)
    rng = np.random.default_rng(0)
    means, variances = np.transpose(
        [(c.mean(), c.var()) for c in (np.clip(m + rng.normal(size=40_000), 0, 10) for m in x)]
    )
    found = means.astype(np.float32)[None, None]
    found, left = unclip(found, np.array(1.0), (0.0, 10.0))
    np.testing.assert_allclose(found.ravel(), x, atol=4 * 2 / 200)  # near an end the slope of the inverse is 2
    assert left == pytest.approx(variances.mean(), abs=0.01)
    assert unclip(found, np.array(1.0), (0.0, 10.0), valid=(x >= 4) & (x <= 6))[1] == pytest.approx(1, abs=1e-3)


def test_ends_are_shared_by_many_entries(rng):
    y = rng.normal(size=(100, 100))
    assert find_clip_limits(y) == (-np.inf, np.inf)
    assert find_clip_limits(np.maximum(y, -1)) == (-1, np.inf)
    assert find_clip_limits(np.clip(y, -1, 2)) == (-1, 2)
    assert find_clip_limits(np.where(y > 1, 1.0, 0.0))[0] == -np.inf  # most of them are 0
    assert find_clip_limits(np.zeros(5)) == (-np.inf, np.inf)
    assert find_clip_limits(rng.poisson(1.0, size=(100, 100)))[0] == -np.inf
    assert find_clip_limits(np.rint(2 * y).clip(0, 9).astype(np.uint8)) == (0, np.inf)


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
    assert found.predicted_mse == pytest.approx(error, rel=0.35)


@pytest.mark.parametrize("gaps", [0.0, 0.01])
def test_colours_of_eight_bits(rng, gaps):
    """Where all channels are cut off, their differences have little noise, which must not be taken for that of all."""
    grey = pywt.data.camera()[:256, :256].astype(float)
    clean = np.stack([np.clip(1.4 * grey - 60, 0, 255), grey, np.clip(1.2 * grey - 30, 0, 255)], axis=-1)
    y = np.clip(np.rint(clean + rng.normal(scale=12, size=clean.shape)), 0, 255)
    missing = rng.random(grey.shape) < gaps
    y[missing] = np.nan
    errors = [np.mean((st.denoise(y, sigma=sigma, channel_axis=-1) - clean)[~missing] ** 2) for sigma in (12.0, None)]
    assert errors[1] < 1.1 * errors[0]
