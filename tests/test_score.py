import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import scorethresh as st
from helpers import RULES, TwoSteps, mixed, spikes
from oracles import kernel_moments_mp, kernel_moments_quad, score_mp, score_sum, terms
from scorethresh.risk import stein
from scorethresh.risk.kernel import Kernel, kernel_moments
from scorethresh.risk.stein import stein_curve

FIELDS = ("risk", "dof", "stderr")


@given(
    seed=some.integers(0, 2**32 - 1),
    size=some.sampled_from([1, 2, 5, 40]),
    sigma=some.sampled_from([1e-150, 1e-9, 0.3, 1.0, 77.0, 1e150]),
    place=some.sampled_from(["zero", "typical", "tie", "beyond", "far beyond"]),
    bandwidth=some.sampled_from(["paper", 0.05, 1.0]),
)
def test_score_is_the_formula_of_the_paper(seed, size, sigma, place, bandwidth):
    """To 1e-12 of mpmath: DOF relative to itself, SCORE relative to the sum of its absolute terms."""
    rng = np.random.default_rng(seed)
    y = sigma * rng.normal(scale=2, size=size)
    largest = np.abs(y).max()
    lam = {
        "zero": 0.0,
        "typical": sigma * rng.uniform(0, 5),
        "tie": abs(y[0]),
        "beyond": largest + sigma * rng.uniform(0, 3),
        "far beyond": 1e3 * largest,
    }[place]
    h = 6 * sigma / size ** (1 / 3) if bandwidth == "paper" else bandwidth * sigma
    method = st.Score("paper") if bandwidth == "paper" else st.Score(h)
    curve = st.risk_curve(y, [lam], sigma=sigma, method=method)
    dof, risk, scale = score_mp(y, lam, sigma, h)
    # Below the smallest normal double a kernel counts as nought.
    assert curve.dof[0] == pytest.approx(float(dof), rel=1e-12, abs=1e-290)
    assert curve.risk[0] == pytest.approx(float(risk), rel=0, abs=1e-12 * float(scale))


@pytest.mark.parametrize("size", [1000, 4097, 20_000, 100_000])
def test_score_of_large_samples(rng, size):
    """Against correctly rounded sums: exact and compressed samples, to 1e-12 of the sum of absolute terms."""
    sigma = 1.7
    y = sigma * spikes(rng, size)
    h = 6 * sigma / size ** (1 / 3)
    thresholds = sigma * np.array([0.0, 0.5, 1.9, 3.3, 4.4, 5.9])
    for sample in (y, st.Magnitudes.exact(y)):
        curve = st.risk_curve(sample, thresholds, sigma=sigma, method=st.Score("paper"))
        for k, lam in enumerate(thresholds):
            dof, risk, scale = score_sum(y, lam, sigma, h)
            assert curve.dof[k] == pytest.approx(dof, rel=1e-12)
            assert curve.risk[k] / sigma**2 == pytest.approx(risk, rel=0, abs=1e-12 * scale)


def test_beyond_the_data_the_jump_alone_is_relatively_exact(rng):
    """Where nothing is kept the DOF is tiny, down to 1e-300, and still right to 1e-12; also on an even grid."""
    y = rng.normal(size=500)
    h = 0.4
    lam = np.abs(y).max() + np.linspace(0, 36 * h, 100)
    dof = [float(score_mp(y, t, 1.0, h)[0]) for t in lam[::11]]
    curve = st.risk_curve(y, lam, sigma=1.0, method=st.Score(h))
    np.testing.assert_allclose(curve.dof[::11], dof, rtol=1e-12)
    assert dof[-1] < 1e-270


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("h", [None, 0.3])
def test_any_rule_equals_its_definition(rng, rule, h):
    """Risk, DOF and the standard error from the terms of every entry; straight rules by both ways."""
    if h is None and rule.jumps(1.0):
        pytest.skip("SURE refuses rules that jump")
    sigma, y = 1.3, rng.normal(scale=3, size=60)
    thresholds = np.array([0.0, 0.4, 1.7, 6.0, 20.0])
    curves = [
        stein_curve(
            st.Magnitudes.exact(y),
            thresholds,
            sigma=sigma,
            rule=rule,
            kernel=None if h is None else Kernel("gaussian", h / sigma, True),
        )
    ]
    curves += [
        stein_curve(
            st.Magnitudes.exact(y),
            thresholds,
            sigma=sigma,
            rule=Opaque(rule),
            kernel=None if h is None else Kernel("gaussian", h / sigma, True),
        )
    ]
    for curve in curves:
        for k, t in enumerate(thresholds):
            risk, dof = terms(y, t, sigma, rule, h)
            assert curve.dof[k] == pytest.approx(dof.sum(), rel=1e-12, abs=1e-14)
            assert curve.risk[k] == pytest.approx(risk.sum(), rel=0, abs=1e-12 * np.abs(risk).sum())
            # The spread is a difference of squares: near 0 it keeps half of the digits.
            spread = math.sqrt(60) * risk.std(ddof=1)
            assert curve.stderr[k] == pytest.approx(spread, rel=1e-9, abs=1e-6 * sigma**2)


class Opaque:
    """A rule as a user would write it: only the three methods."""

    def __init__(self, rule):
        self.rule = rule

    def __call__(self, y, t):
        return self.rule(y, t)

    def derivative(self, y, t):
        return self.rule.derivative(y, t)

    def jumps(self, t):
        assert np.ndim(t) == 0
        return self.rule.jumps(t)


def test_a_users_rule_with_two_jumps_works_everywhere(rng):
    """The estimate agrees with the true risk within its standard error and known bias, exact and compressed."""
    x0 = np.zeros(40_000)
    x0[:4000] = 4.0
    y = x0 + rng.normal(size=x0.size)
    thresholds = np.array([1.5, 2.0, 3.0, np.inf])
    curve = st.risk_curve(y, thresholds, sigma=1.0, rule=TwoSteps(), method=st.Score(0.1))
    exact = st.risk_curve(st.Magnitudes.exact(y), thresholds, sigma=1.0, rule=TwoSteps(), method=st.Score(0.1))
    true = st.risk_curve(y, thresholds, sigma=1.0, rule=TwoSteps(), method=st.Oracle(x0))
    np.testing.assert_allclose(curve.risk, exact.risk, rtol=1e-11)
    assert (np.abs(curve.risk - true.risk) < 4 * curve.stderr + 0.02 * true.risk).all()
    assert st.select_threshold(y, sigma=1.0, rule=TwoSteps()).status == "interior"


@functools.cache
def million():
    return mixed(np.random.default_rng(5), 1_000_000)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_compressed_curves_are_the_exact_ones(rule):
    """P = 1e6 with the bandwidth of P = 1e8, and thresholds from next to nothing to past the universal one."""
    y = million()
    h = 6 / 1e8 ** (1 / 3)
    thresholds = np.array([0.0, 1e-3, 1 / 64, 0.7, 1.5, 2.0, 3.1, 5.0, 6.3, 40.0])
    sample = st.Magnitudes.compress(
        y,
        sigma=1.0,
        thresholds=thresholds,
        rule=rule,
        bandwidth=h,
    )
    kwargs = {"sigma": 1.0, "rule": rule, "method": st.Score(h)}
    a = st.risk_curve(sample, thresholds, **kwargs)
    b = st.risk_curve(st.Magnitudes.exact(y), thresholds, **kwargs)
    np.testing.assert_allclose(a.risk, b.risk, rtol=1e-11)
    np.testing.assert_allclose(a.dof, b.dof, rtol=1e-11)
    # At threshold 0 all terms are equal and the spread is rounding, of the order of 1e-8 per entry.
    np.testing.assert_allclose(a.stderr, b.stderr, rtol=1e-9, atol=1e-7 * math.sqrt(y.size))


@pytest.mark.parametrize("bandwidth", [0.012927, 0.06, 0.6])
def test_compressed_default_grid(bandwidth):
    """Every threshold of the default grid, for narrow and wide kernels."""
    y = million()[:100_000]
    grid = np.arange(400) / 64
    a = st.risk_curve(st.Magnitudes.compress(y, sigma=1.0), grid, sigma=1.0, method=st.Score(bandwidth))
    b = st.risk_curve(st.Magnitudes.exact(y), grid, sigma=1.0, method=st.Score(bandwidth))
    for field in ("risk", "dof"):
        np.testing.assert_allclose(getattr(a, field), getattr(b, field), rtol=1e-11)


def test_parts_compressed_apart_give_the_curve_of_the_whole(rng):
    y = mixed(rng, 50_000)
    thresholds = np.linspace(0, 5, 40)
    for rule in ("hard", "scad", "bridge"):
        make = functools.partial(st.Magnitudes.compress, sigma=1.0, thresholds=thresholds, rule=rule)
        whole = st.risk_curve(make(y), sigma=1.0, rule=rule, method="score")
        parts = st.risk_curve(sum(map(make, np.array_split(y, 6))), sigma=1.0, rule=rule, method="score")
        for field in FIELDS:
            np.testing.assert_allclose(getattr(parts, field), getattr(whole, field), rtol=1e-9, atol=1e-3)
        np.testing.assert_allclose(parts.risk, whole.risk, rtol=1e-12)


@given(
    seed=some.integers(0, 2**32 - 1), c=some.sampled_from([1e-120, 1e-3, 2.0, 3.7, 1e120]), size=some.integers(2, 400)
)
def test_curves_scale_with_the_data(seed, c, size):
    rng = np.random.default_rng(seed)
    y, t = rng.normal(scale=2, size=size), np.sort(rng.uniform(0, 6, 5))
    a, b = st.risk_curve(y, t, sigma=1.0, method="score"), st.risk_curve(c * y, c * t, sigma=c, method="score")
    np.testing.assert_allclose(b.dof, a.dof, rtol=1e-12)
    np.testing.assert_allclose(b.risk / c**2, a.risk, rtol=1e-12, atol=1e-11 * size)
    np.testing.assert_allclose(b.stderr / c**2, a.stderr, rtol=1e-6, atol=1e-6)


@given(seed=some.integers(0, 2**32 - 1), size=some.integers(1, 300))
def test_curves_ignore_order_and_sign(seed, size):
    rng = np.random.default_rng(seed)
    y = rng.normal(scale=2, size=size)
    a = st.risk_curve(y, sigma=1.0, method="score")
    b = st.risk_curve(rng.permutation(y) * rng.choice([-1, 1], size), sigma=1.0, method="score")
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


def test_curves_of_parts_add_up(rng):
    """With a common bandwidth; the variances add too, so the standard error keeps to that of the whole."""
    y, t = spikes(rng, 3000), np.linspace(0, 5, 30)
    whole = st.risk_curve(y, t, sigma=1.0, method=st.Score(0.4))
    parts = sum(st.risk_curve(part, t, sigma=1.0, method=st.Score(0.4)) for part in (y[:700], y[700:]))
    assert parts.size == whole.size
    np.testing.assert_allclose(parts.risk, whole.risk, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(parts.dof, whole.dof, rtol=1e-12)
    np.testing.assert_allclose(parts.stderr, whole.stderr, rtol=0.2)
    with pytest.raises(ValueError, match="different thresholds or noise levels"):
        whole + st.risk_curve(y, t, sigma=2.0)


@given(
    x0=some.floats(-30, 30),
    a=some.floats(-30, 30),
    sigma=some.floats(0.1, 10),
    h=some.floats(0.05, 1000),
)
def test_kernel_moments_are_those_of_the_paper(x0, a, sigma, h):
    mean, variance = kernel_moments(x0, a, sigma=sigma, h=h)
    expected = [float(m) for m in kernel_moments_mp(x0, a, sigma, h)]
    # exp(-u) turns the rounding of u, up to 1e5 here, into a relative error.
    assert [mean, variance] == pytest.approx(expected, rel=2e-11, abs=1e-290)


@pytest.mark.parametrize(("x0", "a", "sigma", "h"), [(0, 2, 1, 0.3), (1, 1, 2, 0.5), (-3, 4, 1.5, 2), (2, 3, 1, 6)])
def test_kernel_moments_are_mean_and_variance(x0, a, sigma, h):
    expected = kernel_moments_quad(x0, a, sigma, h)
    assert list(kernel_moments(x0, a, sigma=sigma, h=h)) == pytest.approx(expected, rel=1e-10)


def jump_of_means(x0, lam, width):
    u = (np.stack([x0 - lam, x0 + lam])) / width
    return lam * np.exp(-0.5 * u * u).sum() / math.sqrt(2 * math.pi)


def test_mean_of_score_is_the_risk_up_to_its_known_bias(rng):
    """E SCORE is the true risk with the Gaussian at the jump widened to sigma^2 + h^2 (proof of the theorem)."""
    x0 = np.zeros(400)
    x0[:40], x0[40:60] = 3.0, -1.5
    h, draws = 0.5, 4000
    thresholds = np.array([0.5, 1.5, 2.5, 3.5])
    y = x0 + rng.normal(size=(draws, x0.size))
    curves = [st.risk_curve(row, thresholds, sigma=1.0, method=st.Score(h)) for row in y]
    true = st.risk_curve(y[0], thresholds, sigma=1.0, method=st.Oracle(x0))
    bias = [jump_of_means(x0, t, math.sqrt(1 + h * h)) - jump_of_means(x0, t, 1.0) for t in thresholds]
    for field, expected in (("dof", true.dof + bias), ("risk", true.risk + 2 * np.array(bias))):
        values = np.array([getattr(c, field) for c in curves])
        error = (values.mean(axis=0) - expected) / (values.std(axis=0) / math.sqrt(draws))
        assert (np.abs(error) < 4).all(), error


@pytest.mark.parametrize(("means", "nominal"), [("equal", True), ("spikes", False), ("laplace", False)])
def test_standard_error_covers_the_noise_of_the_estimate(rng, means, nominal):
    """Right where all means are equal, too large otherwise, never too small: as the docstring of Score says."""
    x0 = {
        "equal": np.full(500, 1.0),
        "spikes": np.repeat([0.0, 5.0], [450, 50]),
        "laplace": rng.laplace(scale=2, size=500),
    }[means]
    draws, thresholds = 1500, np.array([1.0, 2.5, 4.0])
    curves = [
        st.risk_curve(x0 + rng.normal(size=500), thresholds, sigma=1.0, method=st.Score(0.5)) for _ in range(draws)
    ]
    risk, stderr = (np.array([getattr(c, f) for c in curves]) for f in ("risk", "stderr"))
    # The spread of 1500 normal draws is known to 2 per cent; 5 is two and a half times that.
    ratio = np.sqrt((stderr**2).mean(axis=0)) / risk.std(axis=0)
    assert (ratio > 0.95).all(), ratio
    if nominal:
        assert (ratio < 1.05).all(), ratio
    covered = (np.abs(risk - risk.mean(axis=0)) < 1.96 * stderr).mean(axis=0)
    assert (covered > 0.92).all(), covered


@pytest.mark.parametrize(
    ("x0", "low", "high"),
    [
        ("spikes at 10", 1.6, 2.4),
        ("one over i", 1.7, 3.5),
        ("spikes at 3", 1.5, 0.3),
        ("one over root i", 0.2, 1.0),
        ("laplace", 0.6, 0.3),
    ],
)
def test_bias_of_the_degrees_of_freedom(rng, x0, low, high):
    """Relative bias in per cent at 2 and 3 sigma, P = 2e5, the paper's bandwidth: figures found independently."""
    size = 200_000
    i = np.arange(1.0, size + 1)
    snr = math.sqrt(10 ** (5.65 / 10) * size)
    x0 = {
        "spikes at 10": np.where(i <= 0.01 * size, 10.0, 0.0),
        "one over i": (1 / i) * snr / np.linalg.norm(1 / i),
        "spikes at 3": np.where(i <= 0.05 * size, 3.0, 0.0),
        "one over root i": i**-0.5 * snr / np.linalg.norm(i**-0.5),
        "laplace": rng.laplace(size=size),
    }[x0]
    draws = [st.risk_curve(x0 + rng.normal(size=size), [2.0, 3.0], sigma=1.0, method="score").dof for _ in range(12)]
    true = st.risk_curve(x0, [2.0, 3.0], sigma=1.0, method=st.Oracle(x0)).dof
    bias = 100 * (np.mean(draws, axis=0) / true - 1)
    error = 100 * np.std(draws, axis=0) / true / math.sqrt(12)
    # The figures are rounded to 0.1 and were averages themselves.
    assert (np.abs(bias - [low, high]) < 4 * error + 0.2).all(), (bias, error)


@pytest.mark.slow
def test_sure_is_unbiased_for_every_continuous_rule(rng):
    x0 = np.repeat([0.0, 3.0], [180, 20])
    draws, t = 3000, np.array([0.5, 1.5, 3.0])
    y = x0 + rng.normal(size=(draws, x0.size))
    for rule in ("soft", "firm", "garrote", "scad"):
        risk = np.array([st.risk_curve(row, t, sigma=1.0, rule=rule, method="sure").risk for row in y])
        true = st.risk_curve(y[0], t, sigma=1.0, rule=rule, method=st.Oracle(x0)).risk
        error = (risk.mean(axis=0) - true) / (risk.std(axis=0) / math.sqrt(draws))
        assert (np.abs(error) < 4).all(), (rule, error)


@pytest.mark.parametrize("rule", ["hard", "bridge", TwoSteps()])
def test_sure_refuses_a_rule_that_jumps(rule):
    with pytest.raises(ValueError, match=r"jumps.*Use Score"):
        st.risk_curve(np.ones(5), sigma=1.0, rule=rule, method="sure")


def test_bandwidth_may_be_a_callable(rng):
    y = rng.normal(size=300)
    seen = []

    def h(size, sigma):
        seen.append((size, sigma))
        return 0.2 * sigma

    a = st.risk_curve(y, [1.0], sigma=1.5, method=st.Score(h))
    np.testing.assert_array_equal(a.risk, st.risk_curve(y, [1.0], sigma=1.5, method=st.Score(0.2 * 1.5)).risk)
    assert set(seen) == {(300, 1.5)}


def test_kill_everything_leaves_the_energy(rng):
    y = rng.normal(size=200)
    for rule in RULES:
        curve = st.risk_curve(y, [np.inf], sigma=0.7, rule=rule, method="score")
        assert curve.risk[0] == pytest.approx((y**2).sum() - 200 * 0.49)
        assert curve.dof[0] == 0
        assert curve.stderr[0] == pytest.approx(math.sqrt(200) * (y**2).std(ddof=1))


def test_entries_far_out_do_no_harm():
    y = np.array([0.5, -1e60, 1e90, 1e200, 1e300, -0.2])
    curve = st.risk_curve(y, [0.3, 1.0, 2.0], sigma=1.0, method=st.Score(0.5))
    assert np.isfinite([curve.risk, curve.dof, curve.stderr]).all()
    assert curve.dof[2] == pytest.approx(4.0, abs=0.1)


def test_many_thresholds_on_many_entries_take_the_fast_way(rng, monkeypatch):
    """Beyond 2^26 pairs an exact sample's kernel sums are taken on cells: same risk, stderr to some per cent."""
    y = spikes(rng, 3000)
    kwargs = {"sigma": 1.0, "method": st.Score(0.1)}
    slow = st.risk_curve(y, "all", **kwargs)
    monkeypatch.setattr(stein, "_MOST_PAIRS", 1000)
    fast = st.risk_curve(y, "all", **kwargs)
    np.testing.assert_allclose(fast.risk, slow.risk, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(fast.dof, slow.dof, rtol=1e-10)
    np.testing.assert_allclose(fast.stderr[:-1], slow.stderr[:-1], rtol=0.07, atol=0.05)


@pytest.mark.parametrize(
    ("bandwidth", "error", "message"),
    [
        (0.0, ValueError, "bandwidth must be positive and finite, got 0.0"),
        (-1, ValueError, "bandwidth must be positive"),
        (np.nan, ValueError, "bandwidth must be positive"),
        ("papr", ValueError, "unknown bandwidth 'papr'. Did you mean 'paper'?"),
        ([1.0], TypeError, "bandwidth must be a real number"),
        (lambda size, sigma: 0.0, ValueError, "bandwidth must be positive"),
    ],
)
def test_bad_bandwidths(bandwidth, error, message):
    with pytest.raises(error, match=message):
        st.risk_curve(np.ones(5), sigma=1.0, method=st.Score(bandwidth))


def test_a_compressed_sample_says_what_it_cannot_serve(rng):
    sample = st.Magnitudes.compress(rng.normal(size=100), sigma=1.0)
    with pytest.raises(ValueError, match=r"0\.123.* are not edges of its cells"):
        st.risk_curve(sample, [0.123], sigma=1.0)
    with pytest.raises(ValueError, match="not compressed for this rule"):
        st.risk_curve(sample, [1 / 64], sigma=1.0, rule=st.Firm(2.1))
    with pytest.raises(ValueError, match=r"bandwidths of at least 0\.0129"):
        st.risk_curve(sample, [1 / 64], sigma=1.0, method=st.Score(0.001))


@pytest.mark.parametrize("rule", ["hard", "soft", "step", "firm", "scad"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 2, 5000, 300_000])
def test_few_thresholds_need_no_sorted_sample(rng, monkeypatch, rule, dtype, size):
    """One pass over the entries gives what the sorted or compressed sample does, ties at the threshold included."""
    y = (mixed(rng, size) if size > 3 else rng.normal(size=size)).astype(dtype)
    y[y.size // 2 :: 7] = 2.5
    tried = [0.75, 2.5, 4.0]
    found = st.risk_curve(y, tried, sigma=1.25, rule=rule, method="score")
    monkeypatch.setattr(st.Score, "direct", lambda *arguments, **keywords: None)
    expected = st.risk_curve(y, tried, sigma=1.25, rule=rule, method="score")
    assert found is not expected
    for name in ("risk", "dof", "stderr"):
        a, b = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11 * size)


def test_few_thresholds_are_evaluated_directly(rng, monkeypatch):
    """No sample is made, unless an entry is too large for plain sums."""
    y = rng.normal(size=(50, 60))
    monkeypatch.setattr(st.Magnitudes, "exact", None)
    assert np.isfinite(st.risk_curve(y, [3.0], sigma=1.0, method="score").risk).all()
    y[0, 0] = 1e60
    with pytest.raises(TypeError):
        st.risk_curve(y, [3.0], sigma=1.0, method="score")
