"""Shrinkage by the posterior mean: against Bayes' formula, by differences, and by Monte Carlo."""

import hypothesis.strategies as some
import numpy as np
import pytest
import pywt
from hypothesis import given

import oracles
import scorethresh as st
from helpers import mixed, spikes
from scorethresh.risk.posterior import posterior_mean

ATOMS, MASSES = np.array([0.0, 0.3, 2.0, 5.5, 19.0]), np.array([60.0, 20.0, 10.0, 7.0, 3.0])


def test_the_estimate_is_bayes_formula_at_the_fitted_means(rng):
    y = 0.3 * mixed(rng, 400)
    found = st.shrink(y, sigma=0.3)
    near = np.abs(y) < 20 * 0.3
    for value, estimate in zip(y[near][:60], found.estimate[near][:60], strict=True):
        mean = oracles.posterior_mp(value, 0.3, found.means.atoms[:-1], found.means.masses[:-1])[0]
        assert estimate == pytest.approx(float(mean), rel=1e-11, abs=1e-13)


@given(some.floats(-20, 20))
def test_the_derivative_is_the_posterior_variance(z):
    found = posterior_mean(np.array([z]), ATOMS, MASSES)
    mean, variance = oracles.posterior_mp(z, 1.0, ATOMS, MASSES)
    assert found.mean[0] == pytest.approx(float(mean), rel=1e-12, abs=1e-14)
    assert found.derivative[0] == pytest.approx(float(variance), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("z", [0.0, -0.4, 1.3, 3.0, -19.9, 21.0, -24.5, 25.9, 26.1, 100.0])
def test_the_derivative_is_that_of_the_estimate(z):
    h = 1e-5
    low, high = posterior_mean(np.array([z - h, z + h]), ATOMS, MASSES).mean
    assert posterior_mean(np.array([z]), ATOMS, MASSES).derivative[0] == pytest.approx((high - low) / (2 * h), abs=1e-6)


def test_the_estimate_has_no_jump_where_the_fit_ends():
    for end in (20.0, 26.0):
        low, high = posterior_mean(np.array([end * (1 - 1e-12), end * (1 + 1e-12)]), ATOMS, MASSES).mean
        assert abs(high - low) < 1e-9


@pytest.mark.parametrize(("size", "seed"), [(40, 0), (60, 1), (100, 2)])
def test_the_degrees_of_freedom_are_the_divergence_with_the_fit(size, seed):
    """The fit is run again for every moved entry; the differences end where the fit changes its atoms: 0.1%."""
    rng = np.random.default_rng(seed)
    y, h = rng.normal(0, 2, size) + rng.normal(size=size), 1e-3
    total = 0.0
    for i, e in enumerate(h * np.eye(size)):
        total += (st.shrink(y + e, sigma=1.0).estimate[i] - st.shrink(y - e, sigma=1.0).estimate[i]) / (2 * h)
    assert st.shrink(y, sigma=1.0).dof == pytest.approx(total, rel=1e-3)


def test_the_risk_is_unbiased_at_fixed_means(rng):
    x = rng.choice(ATOMS, 300, p=MASSES / 100) * rng.choice([-1, 1], 300) + 3
    errors = []
    for _ in range(300):
        y = x + rng.normal(size=300)
        found = posterior_mean(y, ATOMS, MASSES)
        risk = np.sum((y - found.mean) ** 2) - 300 + 2 * found.derivative.sum()
        errors.append(risk - np.sum((found.mean - x) ** 2))
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / np.sqrt(300)


@pytest.mark.parametrize("scale", [0.5, 4.0])
@pytest.mark.parametrize("kind", ["laplace", "normal", "spikes"])
def test_the_risk_is_unbiased_though_the_means_are_fitted(kind, scale, rng):
    """Without the degrees of freedom of the fit it would be too low by 5 to 13 standard errors."""
    draws, size = 200, 256
    signals = {
        "laplace": lambda: rng.laplace(size=size),
        "normal": lambda: rng.normal(0, 2, size),
        "spikes": lambda: np.where(np.arange(size) < size // 2, 5.0, 0.0),
    }
    errors = []
    for _ in range(draws):
        x = scale * signals[kind]()
        found = st.shrink(x + scale * rng.normal(size=size), sigma=scale)
        errors.append(found.risk - np.sum((found.estimate - x) ** 2))
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / np.sqrt(draws)


@pytest.mark.parametrize(
    ("signal", "hard", "posterior"),
    [
        (lambda rng: np.where(np.arange(1000) < 50, 7.0, 0.0), 52, 11),
        (lambda rng: np.where(np.arange(1000) < 500, 5.0, 0.0), 603, 180),
        (lambda rng: rng.laplace(size=1000), 999, 630),
        (lambda rng: rng.normal(0, 2, 1000), 988, 808),
    ],
    ids=["50 at 7", "500 at 5", "Laplace(1)", "N(0, 4)"],
)
def test_losses_beside_the_best_hard_threshold(signal, hard, posterior, rng):
    """The figures of an independent trial, of few draws: each is one loss to within its spread over draws."""
    losses = []
    for _ in range(50):
        x = signal(rng)
        y = x + rng.normal(size=1000)
        losses.append([oracles.hindsight_hard_loss(y, x), np.sum((st.shrink(y, sigma=1.0).estimate - x) ** 2)])
    mean, spread = np.mean(losses, axis=0), np.std(losses, axis=0)
    assert np.all(np.abs(mean - [hard, posterior]) < 2 * spread)
    assert mean[1] < 0.85 * mean[0]


def test_entries_beyond_the_fit_stay_as_they_are(rng):
    y = rng.normal(size=500)
    y[:200] = rng.uniform(30, 1e4, 200)
    y[200:203] = 1e300, -1e308, 26.5
    found = st.shrink(y, sigma=1.0)
    np.testing.assert_array_equal(found.estimate[:203], y[:203])
    assert np.isfinite([found.risk, found.dof]).all()
    assert found.dof >= 203
    everything_far = st.shrink([100.0, -50.0], sigma=1.0)
    assert (everything_far.dof, everything_far.risk) == (2.0, 2.0)
    np.testing.assert_array_equal(everything_far.estimate, [100.0, -50.0])
    np.testing.assert_array_equal(st.shrink([1e300, 1.0], sigma=1e-100).estimate, [1e300, 1.0])


def test_shape_dtype_and_input(rng):
    y = spikes(rng, 600).astype(np.float32).reshape(20, 1, 30)
    before = y.copy()
    found = st.shrink(y, sigma=1.0)
    np.testing.assert_array_equal(y, before)
    assert found.estimate.shape == y.shape
    assert found.estimate.dtype == np.float32
    wide = st.shrink(y.astype(float), sigma=1.0)
    np.testing.assert_allclose(found.estimate, wide.estimate, rtol=1e-6)
    np.testing.assert_array_equal(st.shrink(-y[:, 0].T, sigma=1.0).estimate, -found.estimate[:, 0].T)
    whole = st.shrink(np.round(10 * y).astype(np.int16), sigma=10.0)
    assert whole.estimate.dtype == np.float64
    assert not np.shares_memory(st.shrink(y, sigma=1e-3).estimate, y)


def test_units(rng):
    y = spikes(rng, 500)
    one, thousand = st.shrink(y, sigma=1.0), st.shrink(1024 * y, sigma=1024.0)
    np.testing.assert_allclose(thousand.estimate, 1024 * one.estimate, rtol=1e-12)
    assert thousand.risk == pytest.approx(1024**2 * one.risk, rel=1e-9)
    assert thousand.dof == pytest.approx(one.dof, rel=1e-12)


def test_the_level_is_estimated_if_none_is_given(rng):
    y = 3 * spikes(rng, 4000, 0.02)
    assert st.shrink(y).sigma == st.estimate_sigma(y)
    assert st.PosteriorMean().run(y, sigma=3.0).risk == st.shrink(y, sigma=3.0).risk


@pytest.mark.parametrize(
    ("y", "sigma", "message"),
    [
        ([1.0, np.nan], 1.0, "y holds 1 NaN"),
        ([], 1.0, "y is empty"),
        (3.0, 1.0, "y must be an array"),
        ([1j], 1.0, "y is complex"),
        ([1.0], 0.0, "sigma must be positive"),
        ([1.0], [1.0, 2.0], "sigma must be one number"),
    ],
)
def test_errors(y, sigma, message):
    with pytest.raises((TypeError, ValueError), match=message):
        st.shrink(y, sigma=sigma)


@pytest.mark.parametrize("rule", ["posterior", st.PosteriorMean()])
def test_every_band_is_shrunk_by_its_own_mixture(rule, rng):
    clean = pywt.data.camera()[::4, ::4].astype(float)
    coeffs = pywt.wavedec2(clean + rng.normal(0, 20, clean.shape), "db2", mode="periodization", level=2)
    found = st.threshold_coeffs(coeffs, sigma=20.0, rule=rule)
    np.testing.assert_array_equal(found.coeffs[0], coeffs[0])
    for noisy, level, bands in zip(coeffs[1:], found.coeffs[1:], found.selections, strict=True):
        for before, after, shrunk in zip(noisy, level, bands, strict=True):
            alone = st.shrink(before, sigma=20.0)
            np.testing.assert_array_equal(after, alone.estimate)
            assert (shrunk.risk, shrunk.dof) == (alone.risk, alone.dof)
    errors = [
        np.mean((pywt.waverec2(c, "db2", mode="periodization") - clean) ** 2)
        for c in (found.coeffs, st.threshold_coeffs(coeffs, sigma=20.0).coeffs)
    ]
    assert errors[0] < 0.9 * errors[1]


def test_the_noise_of_a_normalised_stationary_transform(rng):
    coeffs = pywt.swt(rng.normal(size=256), "haar", 2, norm=True, trim_approx=True)
    found = st.threshold_coeffs(coeffs, sigma=1.0, rule="posterior", norm=True)
    assert [s.sigma for s in found.selections] == pytest.approx([0.5, 0.5**0.5])


def test_the_posterior_mean_takes_no_method():
    with pytest.raises(ValueError, match="has no threshold to choose, got method='score'"):
        st.threshold_coeffs([np.ones(4), np.ones(4)], sigma=1.0, rule="posterior", method="score")
