"""The variance of the noise against the mean: white, counts, cameras, speckle."""

import numpy as np
import pytest
import pywt

import scorethresh as st
from scorethresh.noise import variance_fit
from scorethresh.noise.variance_fit import fit_variances
from scorethresh.noise.variance_line import fit_variance_line

CAMERA = pywt.data.camera()[100:356, 120:376].astype(float)


def test_white_noise_has_no_slope():
    """In 12 draws none is beyond 3 standard errors, and the level is right to 5%."""
    for seed in range(12):
        line = fit_variance_line(CAMERA + np.random.default_rng(seed).normal(0, 20, CAMERA.shape))
        assert abs(line.significance) < 3
        assert line.variance((line.low + line.high) / 2) == pytest.approx(400, rel=0.15)


@pytest.mark.parametrize("seed", range(4))
def test_counts_have_slope_1_and_no_intercept(seed):
    line = fit_variance_line(np.random.default_rng(seed).poisson(CAMERA / 4))
    assert line.slope == pytest.approx(1, abs=3 * line.slope_error)
    assert line.significance > 8
    assert abs(line.intercept) < 3 * line.intercept_error
    assert line.misfit < 2


def test_speckle_is_a_square_and_no_line():
    line = fit_variance_line(CAMERA * np.random.default_rng(0).gamma(20, 1 / 20, CAMERA.shape))
    assert line.square_misfit < 1 < line.misfit


@pytest.mark.parametrize(
    ("shape", "missing"), [((4, 1, 96, 96), False), ((1, 1, 40, 40, 40), False), ((1, 1, 9000), True)]
)
def test_channels_volumes_signals_and_gaps(shape, missing, rng):
    means = np.broadcast_to(np.linspace(10, 200, shape[2]).reshape(-1, *(1,) * (len(shape) - 3)), shape)
    y = rng.poisson(means).astype(float)
    gaps = None
    if missing:
        gaps = rng.random(shape[2:]) < 0.01
        y[:, :, gaps] = 1e6
    line = fit_variance_line(y, gaps)
    assert line.slope == pytest.approx(1, abs=3 * line.slope_error)
    assert line.significance > 3


@pytest.mark.parametrize("unit", [2.0**-100, 2.0**100])
def test_the_line_follows_the_units(unit):
    y = np.random.default_rng(1).poisson(CAMERA / 4).astype(float)
    here, there = fit_variance_line(y), fit_variance_line(y * unit)
    assert there.slope == pytest.approx(here.slope * unit, rel=1e-9)
    assert there.intercept_error == pytest.approx(here.intercept_error * unit**2, rel=1e-9)


def test_clipping_is_left_out():
    y = np.clip(CAMERA + np.random.default_rng(2).normal(0, 30, CAMERA.shape), 0, 255)
    line = fit_variance_line(y)
    assert line.variance(128.0) == pytest.approx(900, rel=0.2)


def test_too_little_is_no_line():
    assert fit_variance_line(np.ones((64, 64))) is None
    assert fit_variance_line(np.zeros((64, 64))) is None
    assert fit_variance_line(np.random.default_rng(0).normal(size=(20, 20))) is None
    assert fit_variance_line(np.random.default_rng(0).normal(size=8)) is None


def test_a_fit_finds_exact_variances_past_outliers():
    """Two of ten readings are 5 times too large; the fit moves by less than their share of a standard error each."""
    x = np.arange(10.0)
    variances = 3 + 2 * x
    variances[[2, 7]] *= 5
    found = fit_variances(np.stack([np.ones(10), x], axis=1), variances, np.full(10, 0.05))
    assert found.coefficients == pytest.approx([3, 2], rel=0.03)


def test_the_covariance_of_a_line_is_the_inverse_of_its_information(rng):
    x = np.linspace(-0.4, 0.6, 7)
    design, spread = np.stack([np.ones(7), x], axis=1), rng.uniform(0.1, 0.3, 7)
    line = design @ [3.0, 2.0]
    found = variance_fit.fit_variances(design, line, spread)
    np.testing.assert_allclose(found.coefficients, [3.0, 2.0], rtol=1e-6)
    expected = np.linalg.inv(design.T @ (design / (spread * line)[:, None] ** 2))
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "pattern",
    [
        np.indices((64, 64)).sum(axis=0) % 2,
        np.arange(1000) % 2,
        np.indices((24, 24, 24)).sum(axis=0) % 2,
        np.tile([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]], (32, 32)),
    ],
)
def test_patterns_of_one_mean_tell_nothing(pattern):
    """Checkerboards and dither have the same mean and variance in all windows; a division by zero was raised once."""
    y = 16.0 * pattern
    line = fit_variance_line(y)
    assert line is None or line.significance < 3.5
    np.testing.assert_allclose(st.denoise(y), y, atol=1e-9)
