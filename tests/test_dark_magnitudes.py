"""Magnitudes with hardly any signal, or none, are told from cameras, counts and speckle by the dark alone."""

import numpy as np
import pytest
import pywt
from scipy.stats import rayleigh

import scorethresh as st
from scorethresh.noise.auto import AutoNoise
from scorethresh.noise.dark_magnitudes import (
    FAR,
    FAR_SHARE,
    NEAR,
    NEAR_SHARE,
    RAYLEIGH_MEAN,
    RAYLEIGH_VARIANCE,
    dark_magnitudes,
)
from scorethresh.noise.variance_line import fit_variance_line

DIM = pywt.data.ascent()[:256, :256].astype(float) / 8


def magnitudes(clean, level, rng):
    return np.hypot(clean + level * rng.normal(size=clean.shape), level * rng.normal(size=clean.shape))


def told(y):
    return dark_magnitudes(y, fit_variance_line(y))


def test_the_constants_are_those_of_the_law_of_rayleigh():
    assert rayleigh.mean() == pytest.approx(RAYLEIGH_MEAN)
    assert rayleigh.var() == pytest.approx(RAYLEIGH_VARIANCE)
    np.testing.assert_allclose(rayleigh.cdf([NEAR, FAR]), [NEAR_SHARE, FAR_SHARE])


@pytest.mark.parametrize("level", [10.0, 20.0, 50.0])
def test_dim_magnitudes_are_told(level):
    for seed in range(5):
        assert told(magnitudes(DIM, level, np.random.default_rng(seed)))


def test_whole_numbers_may_be_magnitudes(rng):
    assert told(np.rint(magnitudes(DIM, 40.0, rng)))


@pytest.mark.parametrize(
    "draw",
    [
        lambda c, rng: rng.poisson(c / 8 + 1).astype(float),
        lambda c, rng: (rng.poisson(c) + 1.6 * rng.normal(size=c.shape)) / 0.46,
        lambda c, rng: 100 + (rng.poisson(c) + 1.6 * rng.normal(size=c.shape)) / 0.46,
        lambda c, rng: (c + 1) * rng.gamma(1, 1, c.shape),
        lambda c, rng: (c + 1) * rng.gamma(4, 0.25, c.shape),
        lambda c, rng: (c / 4 + 5) * rng.gamma(3.66, 1 / 3.66, c.shape),  # mean and variance of Rayleigh's law
        lambda c, rng: np.maximum(c + 20 * rng.normal(size=c.shape), 0),
        lambda c, rng: np.abs(c + 20 * rng.normal(size=c.shape)),
        lambda c, rng: np.maximum(38 + 20 * rng.normal(size=c.shape), 0),  # those again, cut off at zero
        lambda c, rng: np.rint(np.maximum(38 + 20 * rng.normal(size=c.shape), 0)),
    ],
)
def test_other_noise_is_no_magnitude(draw):
    for seed in range(3):
        assert not told(draw(DIM, np.random.default_rng(seed)))


def test_dim_magnitudes_are_denoised_as_such(rng):
    """As noise of a camera, their bias stays: an error of some 200."""
    y = magnitudes(DIM, 20.0, rng)
    found = st.Denoiser(choose="fast").run(y)
    assert isinstance(found.noise, st.RicianNoise)
    as_camera = st.Denoiser(noise="white", choose="fast").run(y)
    error, other = (np.mean((d.estimate - DIM) ** 2) for d in (found, as_camera))
    assert error < 0.5 * other


def test_noise_without_any_signal_is_told():
    kinds = [
        type(
            AutoNoise()
            .chosen_for(magnitudes(np.zeros((256, 256)), 20.0, np.random.default_rng(k))[None, None], None)
            .model
        )
        for k in range(5)
    ]
    assert kinds.count(st.RicianNoise) >= 3
