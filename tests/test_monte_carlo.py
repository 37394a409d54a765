"""The Monte Carlo divergence against traces and degrees of freedom that are known."""

import numpy as np
import pytest
from scipy.ndimage import uniform_filter1d
from scipy.stats import norm

import scorethresh as st
from scorethresh.risk.monte_carlo import (
    LARGEST_RATIO,
    LEAST_RATIO,
    antithetic_responses,
    divergence_ratio,
    inner,
    monte_carlo_divergence,
)


def hard(y, threshold=2.5):
    return np.where(np.abs(y) >= threshold, y, 0.0)


def test_the_trace_of_a_linear_filter(rng):
    """A boxcar of five entries on a circle has trace P / 5 under white noise."""
    y = rng.normal(size=4000)
    value, stderr = monte_carlo_divergence(
        lambda z: uniform_filter1d(z, 5, mode="wrap"), y, rng.normal(size=(8, 4000)), 1
    )
    assert stderr < 40
    assert value == pytest.approx(800, abs=4 * stderr)


def test_noise_of_another_level_counts_by_its_variance(rng):
    y = rng.normal(size=2000)
    value, stderr = monte_carlo_divergence(lambda z: 0.5 * z, y, 3 * rng.normal(size=(20, 2000)), 0.1)
    assert value == pytest.approx(0.5 * 9 * 2000, abs=4 * stderr)


def test_jumps_are_seen_with_a_wide_step_and_missed_with_a_tiny_one(rng):
    """Hard thresholding of noise of level s has P [2 sf(t/s) + 2 (t/s) phi(t/s)] degrees of freedom, mostly the jump.

    A step h makes them those at the level s = sqrt(1 + h^2).
    """
    size, t, step = 200_000, 2.5, 0.2
    y = rng.normal(size=size)
    u = t / np.hypot(1, step)
    smooth, exact = 2 * size * norm.sf(t), 2 * size * (norm.sf(u) + u * norm.pdf(u))
    value, stderr = monte_carlo_divergence(hard, y, rng.normal(size=(4, size)), step)
    assert value == pytest.approx(exact, abs=4 * np.hypot(stderr, np.sqrt(exact)))  # y is drawn, too
    tiny, stderr = monte_carlo_divergence(hard, y, rng.normal(size=(4, size)), 1e-7)
    assert tiny == pytest.approx(smooth, rel=0.2)


def test_one_probe_has_no_standard_error(rng):
    y = rng.normal(size=100)
    assert monte_carlo_divergence(lambda z: z, y, rng.normal(size=(1, 100)), 0.1)[1] == np.inf


def test_responses_are_means_and_derivatives():
    y, d = np.array([1.0, 2.0]), np.array([1.0, 3.0])
    square, line = antithetic_responses(lambda z: (z**2, 5 * z), y, d, 0.1)
    np.testing.assert_allclose(square.derivative, 2 * y * d)
    np.testing.assert_allclose(square.mean, y**2 + 0.01 * d**2)
    np.testing.assert_allclose(line.derivative, 5 * d)
    np.testing.assert_allclose(line.mean, 5 * y)


def test_ratios_are_bounded(rng):
    probe = rng.normal(size=50)
    assert divergence_ratio(probe, 3 * probe, 2 * probe) == pytest.approx(1.5)
    assert divergence_ratio(probe, -probe, probe) == LEAST_RATIO
    assert divergence_ratio(probe, probe, -probe) == LARGEST_RATIO
    assert inner(probe.astype(np.float32), probe.astype(np.float32)) == pytest.approx(probe @ probe, rel=1e-6)


def test_an_estimator_that_is_no_function_is_named():
    with pytest.raises(TypeError, match="estimator must be a function of y, got 3"):
        st.divergence(3, np.ones(9), sigma=1.0)
