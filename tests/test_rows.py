"""The stages of the denoiser on many signals at once, against one signal at a time."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

import scorethresh as st
from scorethresh import _kernels
from scorethresh.denoising.aggregate import simplex_minima, simplex_minimum
from scorethresh.denoising.batch import Batch
from scorethresh.denoising.experts.decisions import EntryDecisions
from scorethresh.denoising.experts.nonlocal_ridge import PATCHES, NonlocalRidge
from scorethresh.denoising.probe import PROBE_STEP, Probe
from scorethresh.denoising.row_patches import run_row_steps
from scorethresh.denoising.rows import ScoreDecisions
from scorethresh.frames.patch_rows import combine_rows, match_rows
from scorethresh.frames.signal_windows import SignalWindows
from scorethresh.frames.windows import Windows
from scorethresh.noise import rows as noise_rows
from scorethresh.noise.auto import AutoNoise, white_rows
from scorethresh.noise.concentration import varies_too_little, vary_too_little
from scorethresh.noise.covariance import White
from scorethresh.noise.level import measure_level
from scorethresh.noise.models import WhiteNoise
from scorethresh.noise.repeats import rounding_step, rounding_steps
from scorethresh.noise.residual import check_residual, check_residuals
from scorethresh.noise.tails import have_heavy_tails, heavy_tails
from scorethresh.noise.variance_line import fit_variance_line
from scorethresh.noise.whiteness import whiteness


def signals(rng, count, size, dtype=np.float64):
    t = np.arange(size)
    clean = 5 * np.sin(t / 20 + rng.uniform(0, 6, (count, 1))) + 3 * (t > size // 2)
    return (clean + rng.normal(size=clean.shape)).astype(dtype)


def test_fits_of_rows_are_those_of_their_histograms(rng):
    """Noise, spikes, dense data, data beyond the last magnitude, none at all, and zeros."""
    z = rng.normal(size=(6, 400))
    z[1, :20] += 6.0
    z[2] *= 4.0
    z[3, :5], z[4], z[5] = 99.0, 99.0, 0.0
    options = {"spacing": 0.1, "null": 100.0, "close": 2.0}
    found = _kernels.fit_mixture_rows(z, last=12.0, bin_width=0.05, columns=123, clear=6.5, **options)
    for row, masses in zip(z, found.masses, strict=True):
        near = np.abs(row)[np.abs(row) <= 12.0]
        if not near.size:
            assert not masses.any()
            continue
        _, where = np.unique(np.floor(near / 0.05), return_inverse=True)
        counts = np.bincount(where).astype(float)
        averages = np.bincount(where, near) / counts
        columns = np.arange(0.0, averages.max() + 0.2, 0.1).size
        clear = max(int(np.searchsorted(0.1 * np.arange(columns), 6.5)), 1)
        fit = _kernels.fit_mixture(averages, counts, columns=columns, clear=clear, **options)
        # Sums are taken in the same order, so that fits are the same.
        np.testing.assert_allclose(masses[:columns], fit.probabilities * counts.sum(), rtol=1e-9, atol=1e-9)
        assert not masses[columns:].any()
    assert found.gaps.max() < 1e-4


@pytest.mark.parametrize("size", [60, 333, 950, 1024, 4096])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_of_rows_is_that_one_by_one(rng, size, dtype):
    """Products of windows with a matrix are the same for many signals, bit for bit, so that all choices are."""
    y = 7e3 * signals(rng, 6, size, dtype)
    assert noise_rows.are_regular(y).all()
    for row, level in zip(y, noise_rows.row_levels(y), strict=True):
        if level is not None:  # differences of single precision may be equal
            np.testing.assert_allclose(level, measure_level(row), rtol=1e-12)
    ratios, each = noise_rows.row_whiteness(y), [whiteness(row) for row in y]
    if size < 900:
        assert ratios is None
        assert each == [None] * 6
    else:
        np.testing.assert_allclose(ratios.T, each, rtol=1e-12)
    found, lines = noise_rows.row_lines(y), [fit_variance_line(row) for row in y]
    if size < 1000:
        assert found is None
        assert lines == [None] * 6
    else:
        significance = found.line.coefficients[:, 1] / np.sqrt(found.line.covariance[:, 1, 1])
        np.testing.assert_allclose(significance, [line.significance for line in lines], rtol=1e-9)


def test_signals_that_need_a_closer_look_are_told(rng):
    y = rng.normal(size=(12, 400))
    y[0, 7] = np.nan
    y[1, 7] = np.inf
    y[2, 8] = y[2, 7]
    y[3] = np.maximum(y[3], -1.0) + 1e-9 * y[3] * (y[3] > -1.0)  # clipped
    y[4] = np.rint(10 * y[4])
    y[5] *= 1e200
    y[6] *= 1e-200
    y[7, 0] = 1e20  # a fill value
    y[8] = 1e8 + 1e-3 * y[8]  # its mean hides half of the digits
    y[9] = np.cumsum(1 + np.arange(400) % 2)  # on a grid, though no value repeats
    assert list(noise_rows.are_regular(y)) == [k in (8, 10, 11) for k in range(12)]
    assert not noise_rows.are_regular(y[8:9].astype(np.float32)).any()
    assert not noise_rows.are_regular(np.arange(40).reshape(2, 20)).any()


def test_other_noise_of_rows_is_told(rng):
    """Those that pass for white noise are those to which `AutoNoise` gives this model, without a remark."""
    t = np.arange(2000)
    clean = 20 + 15 * np.sin(t / 200 + rng.uniform(0, 6, (4, 1)))
    white = clean + rng.normal(size=clean.shape)
    correlated = clean + 3 * gaussian_filter1d(rng.normal(size=clean.shape), 1.5)
    growing = clean + np.sqrt(clean) * rng.normal(size=clean.shape)
    magnitudes = np.abs(rng.normal(size=clean.shape) + 1j * rng.normal(size=clean.shape))
    y = np.concatenate([white, correlated, growing, magnitudes])
    assert noise_rows.are_regular(y).all()
    chosen = [AutoNoise().chosen_for(row[None, None], None) for row in y]
    expected = [isinstance(one.model, WhiteNoise) and not one.remarks for one in chosen]
    assert list(white_rows(y)) == expected
    assert expected == [True] * 4 + [False] * 12


@pytest.mark.parametrize("windows", [Windows((128,), 8), Windows((32,), 16), Windows((16,), 1)])
@pytest.mark.parametrize("size", [200, 331, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_windows_of_rows_are_those_one_by_one(rng, windows, size, dtype):
    """Rounding apart: a signal by itself is transformed in chunks, and its sums are matrix products."""
    y, pilot = signals(rng, 3, size, dtype), signals(rng, 3, size, dtype)
    variance = rng.uniform(0.5, 1.5, windows.block)
    rows = SignalWindows.make(windows, size, variance, dtype)
    data, guide = rows.coefficients(y), rows.coefficients(pilot)
    hard, guided, control = rows.hard(data, 2.7), rows.guided(data, guide, 0.7), rows.guided(data[:1], guide, 0.7)
    tolerance = {"rtol": 0, "atol": 50 * np.finfo(dtype).eps}
    for k in range(3):
        for found, one in (
            (hard, windows.hard(y[k : k + 1], variance, 2.7)),
            (guided, windows.guided(y[k : k + 1], pilot[k : k + 1], variance, 0.7)),
            (control, windows.guided(y[:1], pilot[k : k + 1], variance, 0.7)),
        ):
            np.testing.assert_allclose(found.value[k], one.value[0], **tolerance)
            np.testing.assert_allclose(found.divergence[k], one.divergence, **tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_patches_of_rows_are_those_one_by_one(rng, dtype):
    patches, size = PATCHES[1], 150
    y, pilot, levels = signals(rng, 4, size, dtype), signals(rng, 4, size, dtype), np.array([1.0, 0.7, 0.4, 0.9])
    places = match_rows(patches, pilot)
    found = combine_rows(patches, places, pilot, np.stack([y, pilot]), levels, 0.2)
    for k, each in enumerate(places.reshape(4, -1, places.shape[1])):
        one = patches.match(pilot[k : k + 1])
        np.testing.assert_array_equal(each - k * size, one)
        expected = patches.combine(one, pilot[k : k + 1], np.stack([y[k], pilot[k]]), levels[k], 0.2)
        np.testing.assert_array_equal(found.value[:, k], expected.value)
        np.testing.assert_array_equal(found.divergence[k], expected.divergence)


def test_steps_of_rows_are_those_one_by_one(rng):
    """The last row is noisier than assumed, so that its levels have to be bounded."""
    y, pilot = signals(rng, 3, 150), signals(rng, 3, 150)
    y[2] += 3 * rng.normal(size=150)
    pilot[2] = 0.0
    noise = np.broadcast_to(rng.normal(size=150), y.shape)
    found = run_row_steps(PATCHES[1], y, pilot, noise=noise)
    again = run_row_steps(PATCHES[1], y, pilot, levels=found.levels)
    np.testing.assert_array_equal(again.value, found.value)
    assert not again.response.size
    for k in range(3):
        batch = Batch(y[k : k + 1, None])
        expert, steps = NonlocalRidge.fit(PATCHES[1], 1.0, batch, pilot[k : k + 1, None], noise[k : k + 1, None])
        np.testing.assert_allclose(found.levels[k], expert.levels, rtol=1e-12)
        for name in ("value", "divergence", "response"):
            np.testing.assert_allclose(getattr(found, name)[k], np.ravel(getattr(steps, name)), rtol=1e-9, atol=1e-9)


def test_weights_of_many_blends_are_those_one_by_one(rng):
    """The third problem is singular: its experts are equal."""
    residuals = rng.normal(size=(4, 3, 8))
    residuals[2] = residuals[2, :1]
    gram, divergences = residuals @ residuals.transpose(0, 2, 1), rng.uniform(0, 4, size=(4, 3))
    divergences[2] = 1.0
    found = simplex_minima(gram, divergences)
    for each, a, b in zip(found, gram, divergences, strict=True):
        np.testing.assert_allclose(each, simplex_minimum(a, b), atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize("size", [64, 700, 4096])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_judged_side_by_side_is_judged_one_by_one(rng, size, dtype):
    """Noise, too little of it, heavy tails, rounded, constant, a slope, gaps, and nothing but gaps."""
    y = rng.normal(size=(9, size))
    y[1] *= 0.4
    y[2] = rng.standard_t(3, size)
    y[3] = np.rint(2 * y[3]) / 2
    y[4] = 0.0
    estimate = np.zeros_like(y)
    estimate[5] = np.linspace(0.0, 9.0, size)
    estimate[6] = np.repeat([0.0, 5.0], size // 2)
    y += estimate
    y[7, 20 : size // 3] = np.nan
    y[8] = np.nan
    y, estimate = y.astype(dtype), estimate.astype(dtype)
    little, heavy = vary_too_little(y, White(1.0)), have_heavy_tails(y, estimate)
    checks, steps = check_residuals(y - estimate, estimate, White(1.0)), rounding_steps(y[:8])
    for k, (row, x) in enumerate(zip(y, estimate, strict=True)):
        assert little[k] == varies_too_little(row, White(1.0))
        assert heavy[k] == heavy_tails(row, x)
        one = check_residual(row - x, x, White(1.0))
        assert (checks[k] is None) == (one is None)
        if one is not None:
            np.testing.assert_allclose(checks[k], one, rtol=20 * np.finfo(dtype).eps)
        if k < 8:
            np.testing.assert_array_equal(steps[k], rounding_step(row))
    assert little[1]
    assert little[4] == (size > 64)
    assert not little[[0, 2, 3, 5, 6, 8]].any()
    assert heavy[2] == (size == 4096)
    assert steps[3] == 0.5
    if size > 64:
        assert checks[1].level == pytest.approx(0.4, rel=0.1)
        assert checks[8] is None


@pytest.mark.parametrize("options", [{"choose": "fast", "wavelet": "db3"}, {"sigma": 1.0}])
@pytest.mark.parametrize("size", [40, 1100])
def test_blends_of_rows_are_those_one_by_one(rng, options, size):
    """Shorter than every window, and longer than all. Double precision, for which rows must have a wide range."""
    y = signals(rng, 4, size)
    y[1] = rng.normal(size=size)
    y[2] += 1e6 * (np.arange(size) > size // 2)
    found = st.Denoiser(batch_axis=0, **options).run(y)
    for k, row in enumerate(y):
        one = st.Denoiser(**options).run(row)
        np.testing.assert_allclose(found.estimate[k], one.estimate, rtol=1e-10, atol=1e-5)
        assert found.predicted_mse[k] == pytest.approx(one.predicted_mse, rel=1e-6)
        assert found.plans[k].named_weights == pytest.approx(one.plans[0].named_weights, abs=1e-6)


@pytest.mark.parametrize("choose", ["fast", "blend"])
def test_mirrored_signals_have_mirrored_blends(rng, choose):
    """The probe moves a signal and its mirror image to opposite sides."""
    y = signals(rng, 6, 300)
    both = st.Denoiser(sigma=1.0, choose=choose, batch_axis=0).run(np.concatenate([y, -y]))
    np.testing.assert_array_equal(both.estimate[6:], -both.estimate[:6])
    np.testing.assert_array_equal(both.predicted_mse[6:], both.predicted_mse[:6])
    np.testing.assert_array_equal(st.denoise(-y[0], sigma=1.0, choose=choose), both.estimate[6])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_probe_of_a_signal_looks_at_one_side(rng, sign):
    """The derivative of a linear map is the map, whichever side it is; that of |y| tells the side."""
    noise = Probe.draw(Batch(np.zeros((1, 1, 50))), White(1.0)).noise
    probe = Probe.draw(Batch(sign * noise), White(1.0))
    (moved,) = probe.moved
    np.testing.assert_allclose(np.abs(moved), (1 + PROBE_STEP) * np.abs(noise))  # away from 0
    np.testing.assert_allclose(probe.derivative(3 * probe.y, [3 * moved]), 3 * noise)


def test_nothing_varies_behind_an_infinite_threshold(rng):
    c = rng.normal(size=(1, 1, 90))
    found, known = (
        decide.default_curve(c, np.array([np.inf]), 1.0)
        for decide in (ScoreDecisions(st.Hard()), EntryDecisions(st.Hard()))
    )
    assert found.dof[0] == pytest.approx(known.dof[0], abs=1e-9)
    assert found.risk[0] == pytest.approx(st.risk_curve(c, [np.inf], sigma=1.0, method="score").risk[0])


@pytest.mark.parametrize("rule", [st.Hard(), st.Garrote()])
def test_divergences_under_a_shared_plan_are_those_of_score(rng, rule):
    c = 2 * rng.normal(size=(3, 1, 90))[:, :, ::2]
    found = ScoreDecisions(rule).default_curve(c, np.array([1.5]), 1.0)
    known = st.risk_curve(c, [1.5], sigma=1.0, rule=rule, method="score")
    np.testing.assert_allclose([found.dof, found.risk], [known.dof, known.risk], rtol=1e-12)


@pytest.mark.parametrize("name", ["fit_mixture_rows", "shrink_windows", "average_windows", "ridge_signals"])
def test_sizes_that_the_loops_cannot_take_are_told(name):
    """Each would read or write beside its arrays."""
    shrunk = _kernels.ShrunkWindows(np.ones((1, 5, 16)), np.ones((1, 5)), np.ones((1, 5)))
    places, ridge = np.zeros((2, _kernels.MEMBERS), np.int32), _kernels.Ridge(1.0, 0.2, 0.01)
    fit = {"last": 8.0, "bin_width": 0.05, "columns": 83, "spacing": 0.1, "null": 1.0, "clear": 5.0, "close": 2.0}
    calls = {
        "fit_mixture_rows": [
            lambda: _kernels.fit_mixture_rows(np.ones((1, 4)), **{**fit, "columns": 0}),
            lambda: _kernels.fit_mixture_rows(np.ones((1, 4)), **{**fit, "bin_width": 0.0}),
            lambda: _kernels.fit_mixture_rows(np.ones((1, 4)), **{**fit, "last": np.inf}),
        ],
        "shrink_windows": [
            lambda: _kernels.shrink_windows(
                np.ones((1, 2, 24)), None, np.ones((3, 24)), np.ones(24), np.ones((2, 24)), 1.0
            ),
            lambda: _kernels.shrink_windows(
                np.ones((2, 2, 16)), np.ones((3, 2, 16)), np.ones(16), np.ones(16), np.ones((2, 16)), 1.0
            ),
        ],
        "average_windows": [
            lambda: _kernels.average_windows(shrunk, 18, 4),
            lambda: _kernels.average_windows(shrunk, 5, 5),
        ],
        "ridge_signals": [
            lambda: _kernels.ridge_signals(np.ones((2, 80)), np.ones((1, 2, 80)), places, np.ones(2), ridge),
            lambda: _kernels.ridge_signals(np.ones((1, 40)), np.ones((1, 1, 40)), places, np.ones(1), ridge),
            lambda: _kernels.ridge_signals(np.ones((1, 80)), np.ones((1, 1, 80)), places + 17, np.ones(1), ridge),
            lambda: _kernels.ridge_signals(np.ones((1, 80)), np.ones((1, 1, 80)), places, np.zeros(1), ridge),
        ],
    }
    for call in calls[name]:
        with pytest.raises(ValueError, match=r"must|do not cover|there must be"):
            call()
