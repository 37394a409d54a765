"""Heavy tails of the noise are told from spikes, stars and letters; large entries pass for signal."""

import warnings

import numpy as np
import pytest
import pywt
from scipy.stats import norm

import scorethresh as st
from scorethresh.noise.tails import BLOCK_SIDES, HEAVY, heavy_tails

CAMERA = pywt.data.camera()[60:316, 120:376].astype(float)
SHAPES = [(4096,), (128, 128), (32, 32, 32)]
LAWS = {
    "laplace": lambda rng, shape: rng.laplace(size=shape) / 2**0.5,
    "t3": lambda rng, shape: rng.standard_t(3, shape) / 3**0.5,
    "t4": lambda rng, shape: rng.standard_t(4, shape) / 2**0.5,
}


def flat(shape):
    return np.zeros(shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_tails_are_heavy_where_the_law_has_them(shape):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        assert all(heavy_tails(draw(rng, shape), flat(shape)) for draw in LAWS.values())
        assert not heavy_tails(rng.normal(size=shape), flat(shape))
        assert not heavy_tails(rng.uniform(-1, 1, shape), flat(shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_share_of_heavy_blocks_decides(shape):
    """Blocks become heavy one by one, on either side in turn; all are flat, so all are read."""
    side = BLOCK_SIDES[len(shape)]
    rng = np.random.default_rng(1)
    starts = np.array(np.meshgrid(*(range(0, n, side) for n in shape))).reshape(len(shape), -1).T
    heavy = norm.ppf((np.arange(64) + 0.5) / 64)
    heavy[30] = 4.5
    assert HEAVY < np.mean((heavy - heavy.mean()) ** 4) / heavy.var() ** 2 < 10
    y = rng.uniform(-1, 1, shape)  # no block of which is heavy
    limit = 0.1 + 2 * np.sqrt(0.09 / len(starts))
    decided = []
    for turn, start in enumerate(starts[: len(starts) // 2]):
        share = 2 * (turn // 2) / len(starts)  # on the side that has fewer
        decided.append(heavy_tails(y, flat(shape)))
        assert decided[-1] == (share > limit)
        place = tuple(slice(i, i + side) for i in start)
        y[place] = (-1) ** turn * rng.permutation(heavy).reshape(y[place].shape)
    assert not decided[0]
    assert decided[-1]


@pytest.mark.parametrize("shape", SHAPES)
def test_spikes_and_stars_have_no_tails(shape):
    """One-sided large entries may be signal, whatever the estimate holds of them."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=shape)
        at = rng.random(shape) < 0.02
        y[at] += 5
        assert not heavy_tails(y, flat(shape))
        assert not heavy_tails(-y, np.where(at, -5.0, 0.0))


def test_strong_spikes_of_a_signal_have_no_tails(rng):
    y = rng.normal(size=4096)
    at = rng.permutation(4096)[:100]
    y[at] += rng.choice([-12, 12], 100)
    assert not heavy_tails(y, flat(4096))


def test_noise_whose_level_varies_has_no_tails(rng):
    """In the mean over all entries its kurtosis is 5."""
    y = rng.normal(size=(128, 128)) * np.exp(np.linspace(-1.5, 1.5, 128))
    assert np.mean(y**4) / np.mean(y**2) ** 2 > 5
    assert not heavy_tails(y, flat(y.shape))


def test_only_flat_blocks_are_read(rng):
    """Large entries where the estimate varies may be structure. A few of them in a flat block are not."""
    y = rng.normal(size=(128, 128))
    y[:, :64] = LAWS["t3"](rng, (128, 64))
    varied = np.zeros(y.shape)
    varied[:, :64] = 5 * rng.normal(size=(128, 64))
    assert not heavy_tails(y, varied)
    assert heavy_tails(y[:, :64], np.where(np.abs(y) > 4, y, 0)[:, :64])


def test_gaps_and_few_blocks(rng):
    y = LAWS["t3"](rng, (128, 128))
    y[:100] = np.nan
    assert heavy_tails(y, flat(y.shape))
    y[:124] = np.nan
    assert not heavy_tails(y, flat(y.shape))
    assert not heavy_tails(np.full((64, 64), np.nan), flat((64, 64)))
    assert not heavy_tails(LAWS["t3"](rng, 64 * 5), flat(64 * 5))


def test_a_tone_is_subtracted(rng):
    tone = 20 * np.sin(np.arange(4096) / 30)
    assert heavy_tails(tone + LAWS["t4"](rng, 4096), tone)
    assert not heavy_tails(tone + rng.normal(size=4096), tone)


@pytest.mark.parametrize("law", LAWS)
def test_a_prediction_that_tails_make_too_low_comes_with_a_warning(law, rng):
    y = CAMERA + 20 * LAWS[law](rng, CAMERA.shape)
    with pytest.warns(st.AssumptionWarning, match="heavy tails.*median filter"):
        st.Denoiser(choose="fast").run(y)


@pytest.mark.parametrize("level", [3.0, 20.0])
def test_rounded_and_clipped_normal_noise_has_no_tails(level, rng):
    y = np.clip(np.rint(CAMERA + rng.normal(0, level, CAMERA.shape)), 0, 255).astype(np.uint8)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        st.Denoiser(choose="fast").run(y)
    assert not any("tails" in str(warning.message) for warning in told)
