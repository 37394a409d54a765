"""Jansen, the bootstraps, other kernels, the mixture and the selectors."""

import math
import pickle

import numpy as np
import pytest
from scipy.stats import norm

import scorethresh as st
from helpers import RULES, Opaque, TwoSteps, spikes
from oracles import npmle, terms
from scorethresh.risk.npmle import fit_means

METHODS = [
    st.Jansen(),
    st.CoupledBootstrap(),
    st.CoupledBootstrap(0.2, debias=False),
    st.LittleBootstrap(),
    st.Mixture(),
    st.Score("plugin"),
    st.Score("plugin", factor=False),
    st.Score(density="order4"),
    st.Score(density="mixture"),
]


def laplace_spikes(rng, size):
    return rng.laplace(scale=3, size=size) * (rng.random(size) < 0.05)


def test_jansen_is_its_formula(rng):
    y, t = spikes(rng, 500), np.array([0.0, 1.0, 2.5])
    curve = st.risk_curve(1.5 * y, 1.5 * t, sigma=1.5, method="jansen")
    count = (np.abs(y)[:, None] > t).sum(axis=0)
    np.testing.assert_allclose(curve.dof, count + 2 * 500 * t * norm.pdf(t), rtol=1e-13)


@pytest.mark.parametrize(("gamma", "low", "high"), [(1.0, -0.7, -5.6), (0.5, -35, -66)])
def test_jansen_misses_dense_signals(rng, gamma, low, high):
    """Relative bias of the degrees of freedom in per cent at 2 and 3 sigma, P = 2e5: figures found independently."""
    size = 200_000
    x0 = np.arange(1.0, size + 1) ** -gamma
    x0 *= math.sqrt(10**0.565 * size) / np.linalg.norm(x0)
    draws = [st.risk_curve(x0 + rng.normal(size=size), [2.0, 3.0], sigma=1.0, method="jansen").dof for _ in range(8)]
    true = st.risk_curve(x0, [2.0, 3.0], sigma=1.0, method=st.Oracle(x0)).dof
    bias, error = 100 * (np.mean(draws, axis=0) / true - 1), 100 * np.std(draws, axis=0) / true / math.sqrt(8)
    assert (np.abs(bias - [low, high]) < 4 * error + 0.6).all(), bias


@pytest.mark.parametrize(("alpha", "risk"), [(0.05, 1125.7), (0.2, 1422.8), (0.5, 2158.3)])
def test_coupled_bootstrap_is_unbiased_at_its_own_noise_level(rng, alpha, risk):
    """P = 4000, 5% at 3 sigma, threshold 2.5: the exact risk at the inflated noise, found independently."""
    x0 = np.where(np.arange(4000) < 200, 3.0, 0.0)
    method = st.CoupledBootstrap(alpha, debias=False)
    draws = [st.risk_curve(x0 + rng.normal(size=4000), [2.5], sigma=1.0, method=method).risk[0] for _ in range(60)]
    assert abs(np.mean(draws) - risk) < 4 * np.std(draws) / math.sqrt(60) + 0.05


def test_coupled_bootstrap_is_the_mean_of_its_draws(rng):
    """Infinitely many draws against 200,000: y + h Z is thresholded and compared with an independent copy."""
    y, alpha, t = spikes(rng, 40, 0.3, 3.0), 0.3, 2.0
    z = rng.normal(size=(200_000, 40))
    copy, other = y + math.sqrt(alpha) * z, y - z / math.sqrt(alpha)
    loss = ((other - st.Hard()(copy, t)) ** 2).sum(axis=1) - (1 + 1 / alpha) * 40
    # E |other - x(copy)|^2 is the risk plus the variance of other, sigma^2 (1 + 1/alpha); given y only its mean moves.
    value = st.risk_curve(y, [t], sigma=1.0, method=st.CoupledBootstrap(alpha, debias=False)).risk[0]
    assert abs(loss.mean() - value) < 5 * loss.std() / math.sqrt(loss.size)


def test_little_bootstrap_is_the_covariance_with_small_perturbations(rng):
    y, t = spikes(rng, 40, 0.3, 3.0), 2.0
    for scale in (0.3, 1.0):
        z = rng.normal(size=(100_000, 40))
        draws = (z * (st.Hard()(y + scale * z, t) - st.Hard()(y - scale * z, t))).sum(axis=1) / (2 * scale)
        value = st.risk_curve(y, [t], sigma=1.0, method=st.LittleBootstrap(scale))
        assert abs(draws.mean() - value.dof[0]) < 4 * draws.std() / math.sqrt(draws.size)
        residual = (np.where(np.abs(y) < t, y, 0.0) ** 2).sum()
        assert value.risk[0] == pytest.approx(residual - 40 + 2 * value.dof[0])


def jump_errors(rng, size, method, draws):
    """Relative root mean squared error and bias, in per cent, of the jump's degrees of freedom at 2.5 sigma."""
    t, errors = np.array([2.5]), []
    for _ in range(draws):
        x0 = laplace_spikes(rng, size)
        y = x0 + rng.normal(size=size)
        true = 2.5 * (norm.pdf(x0 - 2.5) + norm.pdf(x0 + 2.5)).sum()
        jump = st.risk_curve(y, t, sigma=1.0, method=method).dof[0] - (np.abs(y) > 2.5).sum()
        errors.append(100 * (jump / true - 1))
    return math.sqrt(np.mean(np.square(errors))), np.mean(errors)


@pytest.mark.parametrize(
    ("method", "size", "rmse", "bias"),
    [
        (st.Score("paper"), 1000, 113, 112),
        (st.Score("plugin"), 1000, 22, 12),
        (st.Score(density="order4"), 1000, 14, 3),
        (st.Score(density="sinc"), 1000, 19, 3),
        (st.Score("paper"), 10_000, 22, 21),
        (st.Score("plugin"), 10_000, 7.5, 2),
        (st.Score(density="order4"), 10_000, 5.2, 0),
        (st.Score(density="sinc"), 10_000, 5.8, 1),
    ],
)
def test_error_of_the_density_at_the_jump(rng, method, size, rmse, bias):
    """Figures found independently; the pilot and the taper are our own, so they need not agree closely."""
    draws = 150 if size == 1000 else 60
    found = jump_errors(rng, size, method, draws)
    assert found[0] < 1.25 * rmse
    assert abs(found[1] - bias) < 4 * rmse / math.sqrt(draws) + 0.08 * rmse


def test_the_factor_helps_only_close_to_the_threshold(rng):
    """Means u sigma from the threshold: relative bias of the jump alpha u^2 / 2 with, alpha (u^2 - 1) / 2 without."""
    h, size = 0.3, 4000
    for u in (0.0, 2.0):
        x0 = np.full(size, 3.0 + u)
        errors = []
        for factor in (True, False):
            method = st.Score(h, factor=factor)
            curves = [st.risk_curve(x0 + rng.normal(size=size), [3.0], sigma=1.0, method=method) for _ in range(300)]
            smooth = size * norm.cdf(u)  # the mean number of entries above the threshold
            errors.append(np.mean([c.dof[0] for c in curves]) - smooth)
        true = 3 * size * (norm.pdf(u) + norm.pdf(u + 6))
        bias = np.array(errors) / true - 1
        expected = h * h * np.array([u * u, u * u - 1]) / 2
        np.testing.assert_allclose(bias, expected, atol=0.02)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_compressed_samples_serve_every_method(rng, method):
    y = spikes(rng, 30_000)
    grid = np.arange(0, 320, 7) / 64
    sample = st.Magnitudes.compress(y, sigma=1.0)
    a, b = (st.risk_curve(s, grid, sigma=1.0, method=method) for s in (sample, st.Magnitudes.exact(y)))
    # The mixture sees bins whose edges the cells of a compressed sample need not meet.
    rel = 2e-4 if "ixture" in repr(method) else 1e-9
    np.testing.assert_allclose(a.risk, b.risk, rtol=rel, atol=rel * y.size)
    np.testing.assert_allclose(a.dof, b.dof, rtol=10 * rel)


@pytest.mark.parametrize("method", [*METHODS, st.Score(density="sinc")], ids=repr)
def test_methods_scale_with_the_data(rng, method):
    y, t = spikes(rng, 600), np.array([0.5, 2.0, 3.5, np.inf])
    for c in (1e-100, 7.0, 1e100):
        a, b = (st.risk_curve(k * y, k * t, sigma=k, method=method) for k in (1.0, c))
        np.testing.assert_allclose(b.dof, a.dof, rtol=1e-6)
        np.testing.assert_allclose(b.risk / c**2, a.risk, rtol=1e-6, atol=1e-3)
        np.testing.assert_allclose(b.stderr / c**2, a.stderr, rtol=1e-6)


@pytest.mark.parametrize("method", [*METHODS, st.Score(density="sinc")], ids=repr)
@pytest.mark.parametrize("rule", [*RULES, TwoSteps()], ids=repr)
def test_every_method_treats_every_rule(rng, method, rule):
    """Within four standard errors and the known biases of the truth, at the best threshold and half a sigma on."""
    x0 = np.repeat([0.0, 4.0], [1800, 200])
    y = x0 + rng.normal(size=2000)
    t = np.array([2.0, 2.5, 3.0])
    curve = st.risk_curve(y, t, sigma=1.0, rule=rule, method=method)
    true = st.risk_curve(y, t, sigma=1.0, rule=rule, method=st.Oracle(x0))
    allowed = 4 * curve.stderr + (0.5 if isinstance(method, st.CoupledBootstrap) else 0.25) * true.risk
    assert (np.abs(curve.risk - true.risk) < allowed).all(), (curve.risk, true.risk)


@pytest.mark.parametrize("seed", range(4))
def test_the_means_are_the_most_likely(seed):
    """The likelihood of a long run of EM is not passed by more than the reported gap, nor missed."""
    rng = np.random.default_rng(seed)
    size = 300
    x0 = [np.zeros(size), rng.laplace(size=size), np.repeat([0.0, 4.0], 150), rng.normal(size=size)][seed]
    y = x0 + rng.normal(size=size)
    means = fit_means(st.Magnitudes.exact(y), sigma=1.0, largest=6.0, null=0)
    grid = np.arange(0, np.abs(y).max() + 0.2, 0.1)
    best, _ = npmle(y, np.ones(size), grid)
    density = means.density(np.abs(y), 1.0) / size
    # Bins of a twentieth of sigma, each at the mean of its entries, cost less than 1e-4 per entry.
    assert np.log(density).sum() == pytest.approx(best, abs=0.03)
    assert means.gap < 1e-4
    assert means.masses.sum() == pytest.approx(size)


@pytest.mark.parametrize("size", [300, 5000, 1_000_000])
def test_the_fit_converges_at_every_size(rng, size):
    few = np.zeros(size)
    few[:40] = 1800 / np.arange(1.0, 41) ** 2  # a handful of means far apart, among very many zeros
    for x0 in (np.zeros(size), rng.laplace(size=size), np.where(np.arange(size) < size / 100, 8.0, 0.0), few):
        y = x0 + rng.normal(size=size)
        sample = st.Magnitudes.exact(y) if size < 5000 else st.Magnitudes.compress(y, sigma=1.0)
        means = fit_means(sample, sigma=1.0, largest=6.0)
        assert means.gap < max(1e-4, 1e-9 * size)
        assert (means.masses >= 0).all()
        assert means.masses.sum() == pytest.approx(size)


def test_entries_far_out_do_not_disturb_the_mixture(rng):
    y = spikes(rng, 3000)
    far = np.append(y, [1e3, -1e9, 1e200])
    t = np.linspace(1, 5, 9)
    a, b = (st.risk_curve(v, t, sigma=1.0, method=st.Mixture(null=0)) for v in (y, far))
    np.testing.assert_allclose(b.risk, a.risk + 3, rtol=1e-6)


def test_sparser_fits_lower_the_level_of_sparse_signals(rng):
    """Plain maximum likelihood puts the risk too high; sparser fits take most of that away."""
    x0 = np.where(np.arange(256) < 3, 7.0, 0.0)
    true = st.risk_curve(x0, [3.5], sigma=1.0, method=st.Oracle(x0)).risk[0]
    draws = x0 + rng.normal(size=(150, 256))
    plain, default = (
        np.array([st.risk_curve(y, sigma=1.0, method=m).risk[112] for y in draws]) - true
        for m in (st.Mixture(null=0), st.Mixture())
    )
    assert plain.mean() > 3 * plain.std() / math.sqrt(150)
    assert 0 < default.mean() < 0.7 * plain.mean()
    assert np.mean(default**2) < 0.6 * np.mean(plain**2)


def test_sparser_fits_only_where_the_data_allow_them(rng):
    """The fit stays within 2 of the largest log-likelihood, by EM; a dense signal rules both sparser fits out."""
    grid = np.arange(0, 9, 0.1)
    for x0, dense in ((np.zeros(256), False), (np.linspace(1, 4, 256), True)):
        y = x0 + rng.normal(size=256)
        best, _ = npmle(y, np.ones(256), grid)
        plain, default = (st.Mixture(null=n).fit(y, sigma=1.0) for n in (0, 100))
        assert best - 2.05 < np.log(default.density(np.abs(y), 1.0) / 256).sum() < best + 0.05
        assert np.array_equal(plain.masses, default.masses) == dense


def test_few_entries_where_keeping_all_is_best(rng):
    """There the paper's bandwidth, far too wide, cannot go wrong; known zeros that the data deny cost 5 to 10%."""
    x0 = 13 / np.sqrt(np.arange(1.0, 257))
    assert regret(x0, rng, 60, st.Score("paper")) < 1.01
    assert regret(x0, rng, 60, "mixture") < 1.02


def test_few_entries_where_only_two_are_not_zero():
    """The largest of the noise is no signal: on the same draws at least a fifth of plain likelihood's excess goes."""
    x0 = np.where(np.arange(256) < 2, 10.0, 0.0)
    plain, default = (regret(x0, np.random.default_rng(0), 150, st.Mixture(null=n)) for n in (0, 100))
    assert default - 1 < 0.8 * (plain - 1)


def test_the_fit_converges_where_means_are_hard_to_tell_apart():
    """What is left to gain there is below the rounding of a Newton step that is not taken as a difference."""
    rng = np.random.default_rng(6)
    y = 0.3 * rng.laplace(size=1_000_000) + rng.normal(size=1_000_000)
    y[:30_000] *= 2
    assert fit_means(st.Magnitudes.compress(y, sigma=1.0), sigma=1.0, largest=6.0, null=0).gap < 1e-3


def regret(x0, rng, draws, method):
    grid = np.append(np.arange(0, 8, 1 / 32), np.inf)
    true = st.risk_curve(x0, grid, sigma=1.0, method=st.Oracle(x0)).risk
    picked = [st.select_threshold(x0 + rng.normal(size=x0.size), sigma=1.0, method=method) for _ in range(draws)]
    return np.mean([true[np.searchsorted(grid, s.threshold)] for s in picked]) / true.min()


def test_the_default_picks_better_thresholds_than_the_papers_bandwidth(rng):
    """P = 1024, 1% at 5 sigma: independent figures are 1.68 for the paper's bandwidth and 1.03 for the mixture."""
    x0 = np.where(np.arange(1024) < 10, 5.0, 0.0)
    assert regret(x0, rng, 60, "score") > 1.4
    assert regret(x0, rng, 60, "mixture") < 1.1
    assert st.risk_curve(x0 + 0.5, sigma=1.0).risk[5] == st.risk_curve(x0 + 0.5, sigma=1.0, method="mixture").risk[5]


STEIN = [
    st.Score(0.4),
    st.Score("plugin"),
    st.Score(density="order4"),
    st.Score(density="sinc"),
    st.Score(density="mixture"),
    st.Jansen(),
    st.LittleBootstrap(),
]


@pytest.mark.parametrize("method", STEIN, ids=repr)
@pytest.mark.parametrize("rule", [st.Hard(), st.Bridge(), TwoSteps()], ids=repr)
def test_the_risk_is_the_residual_less_the_noise_plus_twice_the_degrees_of_freedom(rng, method, rule):
    """Criterion (2) of the paper, with the residual by direct sum; to rounding of the energy."""
    sigma, y = 1.7, 1.7 * spikes(rng, 300)
    t = sigma * np.array([0.5, 2.0, 3.3])
    curve = st.risk_curve(y, t, sigma=sigma, rule=rule, method=method)
    residual = np.array([np.sum((y - rule(y, v)) ** 2) for v in t])
    expected = residual - 300 * sigma**2 + 2 * sigma**2 * curve.dof
    np.testing.assert_allclose(curve.risk, expected, rtol=0, atol=1e-12 * np.sum(y**2))


def test_score_with_the_mixture_has_the_density_of_the_fitted_means_at_the_jumps(rng):
    """DOF = sum of derivatives + height times density, the density a sum of normals around the atoms."""
    sigma, y = 1.7, 1.7 * spikes(rng, 500)
    t = sigma * np.array([1.0, 2.5, default_last(500)])
    means = fit_means(st.Magnitudes.exact(y), sigma=sigma, largest=t[-1])
    for rule in (st.Hard(), TwoSteps()):
        curve = st.risk_curve(y, t, sigma=sigma, rule=rule, method=st.Score(density="mixture"))
        for k, v in enumerate(t):
            dof = np.sum(rule.derivative(y, v))
            for at, height in rule.jumps(v):
                density = norm.pdf(at, means.atoms, sigma) + norm.pdf(-at, means.atoms, sigma)
                dof += height * (density @ means.masses)
            assert curve.dof[k] == pytest.approx(dof, rel=1e-9)


def default_last(size):
    return math.sqrt(2 * math.log(size)) + 1


MIXED_SCALES = {
    "to 1e150": 10.0 ** np.linspace(-3, 150, 40),
    "all doubles": 10.0 ** np.linspace(-300, 300, 25),
    "spikes": np.array([0.3, -0.5, 1.1, 2.2, 1e6, -1e77, 1e154, 1e200, 1e300]),
    "equal": np.full(5, 1e290),
    "zeros": np.array([0.0, 0.0, 5e-324, 1e-160, 1e160]),
}


@pytest.mark.parametrize("scales", MIXED_SCALES)
@pytest.mark.parametrize("rule", [*RULES, st.Step(), TwoSteps()], ids=repr)
def test_mixed_scales_leave_no_nan(scales, rule):
    """At all thresholds, by every method; warnings of overflows are errors here. Where squares overflow: infinity."""
    y = MIXED_SCALES[scales]
    for method in [*METHODS, st.Score(), st.Score(density="sinc"), *([] if rule.jumps(1.0) else [st.Sure()])]:
        curve = st.risk_curve(y, "all", sigma=1.0, rule=rule, method=method)
        assert not np.isnan([curve.risk, curve.dof, curve.stderr]).any(), method
        if not isinstance(rule, st.Step):  # at threshold 0 the others leave y as it is
            assert np.isfinite(curve.risk[0]), method


@pytest.mark.parametrize("rule", [st.Hard(), st.Scad(), st.Firm(), st.Bridge(), st.Garrote()], ids=repr)
def test_mixed_scales_keep_the_risk(rule):
    """Against direct sums wherever those are finite, to rounding of the sum of absolute terms."""
    y = np.array([1e-3, 0.4, 1.9, 2.6, 7.0, 1e3, 1e30, 1e77, 1e120, 1e153])
    curve = st.risk_curve(y, "all", sigma=1.0, rule=rule, method=st.Score(0.5))
    for k, t in enumerate(curve.thresholds[:-1]):
        risk, dof = terms(y, t, 1.0, rule, 0.5)
        assert curve.risk[k] == pytest.approx(risk.sum(), rel=0, abs=1e-12 * np.abs(risk).sum())
        assert curve.dof[k] == pytest.approx(dof.sum(), rel=1e-9)


def test_universal_threshold(rng):
    y = rng.normal(size=777)
    for sample in (y, st.Magnitudes.exact(y)):
        chosen = st.select_threshold(sample, sigma=2.0, method="universal")
        assert chosen.threshold == pytest.approx(2 * math.sqrt(2 * math.log(777)))
    rounded = st.select_threshold(st.Magnitudes.compress(y, sigma=1.0), sigma=1.0, method="universal").threshold
    assert 0 <= rounded - math.sqrt(2 * math.log(777)) < 1 / 64


@pytest.mark.parametrize("q", [0.01, 0.05, 0.3])
def test_fdr_keeps_what_benjamini_and_hochberg_reject(rng, q):
    y = spikes(rng, 400, 0.1, 3.0)
    p = np.sort(2 * norm.sf(np.abs(y)))
    passed = np.flatnonzero(p <= q * np.arange(1, 401) / 400)
    chosen = st.select_threshold(y, sigma=1.0, method=st.Fdr(q))
    assert np.count_nonzero(chosen.estimate) == (passed[-1] + 1 if passed.size else 0)
    binned = st.select_threshold(st.Magnitudes.compress(y, sigma=1.0), sigma=1.0, method=st.Fdr(q))
    assert abs(binned.threshold - chosen.threshold) < 0.2


def test_fdr_of_next_to_nothing_kills_all():
    chosen = st.select_threshold(np.full(50, 0.1), sigma=1.0, method="fdr")
    assert (chosen.threshold, chosen.status) == (np.inf, "kills all")


@pytest.mark.parametrize("rule", ["hard", "soft"])
def test_cross_validation_is_its_definition(rng, rule):
    y = rng.normal(size=100) + np.repeat([0.0, 5.0, 0.0], [40, 20, 40])
    thresholds = np.arange(200) / 32
    cost = np.zeros(200)
    x = st.Hard() if rule == "hard" else st.Soft()
    for i in range(100):
        left, right = y[i - 1 if i else 99], y[(i + 1) % 100]
        cost += [(x(y[i], t) - (left + right) / 2) ** 2 for t in thresholds]
    best = thresholds[np.argmin(cost)] / math.sqrt(1 - math.log(2) / math.log(100))
    assert st.select_threshold(y, sigma=1.0, rule=rule, method="cv").threshold == pytest.approx(best)


def test_selectors_have_no_curve_and_some_need_the_data():
    with pytest.raises(TypeError, match=r"Universal\(\) picks a threshold without estimating a risk"):
        st.risk_curve(np.ones(5), sigma=1.0, method="universal")
    with pytest.raises(ValueError, match="needs the entries in their order"):
        st.select_threshold(st.Magnitudes.exact([1.0, 2.0]), sigma=1.0, method="cv")


def test_one_call_compares_all(rng):
    y = spikes(rng, 500)
    found = st.compare(y, sigma=1.0)
    assert set(found) == {"score", "jansen", "bootstrap", "little", "mixture", "universal", "fdr", "cv"}
    assert "sure" in st.compare(y, sigma=1.0, rule="soft")
    assert all(np.isfinite(s.risk) and s.threshold >= 0 for s in found.values())
    assert list(st.compare(y, sigma=1.0, methods=[st.Score(0.3)])) == [repr(st.Score(0.3))]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: st.Score(density="order5"), "unknown density 'order5'. Did you mean 'order4'"),
        (lambda: st.Score("paper", density="sinc"), "belongs to density=.gaussian"),
        (lambda: st.Score(0.3, density="mixture"), "has no bandwidth"),
        (lambda: st.CoupledBootstrap(0.0), "alpha must be positive"),
        (lambda: st.LittleBootstrap(-1.0), "scale must be positive"),
        (lambda: st.Fdr(1.0), "q must lie strictly between 0 and 1"),
        (lambda: st.Mixture(null=-1.0), "null must be at least 0"),
        (lambda: st.risk_curve([1.0], [1.0], sigma=1.0, method=st.Score(1e-12)), "between 1e-9 and 1e9 times sigma"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def lacking(name, *members):
    """An object of a class of that name with these methods, which do nothing."""
    return type(name, (), dict.fromkeys(members, lambda self: None) | {"__repr__": lambda self: f"{name}()"})()


@pytest.mark.parametrize(("has", "lacks"), [("curve", "resolution"), ("resolution", "curve")])
def test_what_a_method_lacks_is_named_on_first_use(has, lacks):
    broken = lacking("Broken", has)
    assert not isinstance(broken, st.Method)
    for use in (st.risk_curve, st.select_threshold):
        with pytest.raises(TypeError, match=rf"method Broken\(\) lacks `{lacks}`: {lacks}\(.*pick.*CONTRIBUTING"):
            use([1.0], sigma=1.0, method=broken)


def test_any_object_with_the_members_is_a_method_or_a_selector():
    assert isinstance(lacking("Own", "curve", "resolution"), st.Method)
    assert not isinstance(lacking("Own", "curve", "resolution"), st.Selector)
    assert isinstance(lacking("Own", "pick"), st.Selector)
    assert not isinstance(lacking("Own", "pick"), st.Method)
    assert all(isinstance(method, st.Method) for method in METHODS)
    for base in (st.Method, st.Selector):
        with pytest.raises(TypeError, match="abstract"):
            type("Empty", (base,), {})()

    class ThreeSigma:
        def pick(self, y, *, sigma, rule):
            return 3 * sigma

    assert st.select_threshold(np.ones(9), sigma=0.2, method=ThreeSigma()).threshold == pytest.approx(0.6)


def test_a_method_takes_a_users_rule_directly(rng):
    """Methods may be called without `risk_curve`; optional members of the rule get their defaults there, too."""
    sample, t = st.Magnitudes.exact(spikes(rng, 200)), np.array([1.0, 2.0])
    for method in [*METHODS, st.Oracle(np.zeros(200))]:
        curve = method.curve(sample, t, sigma=1.0, rule=Opaque(st.Hard()))
        expected = method.curve(sample, t, sigma=1.0, rule=st.Hard())
        np.testing.assert_allclose(curve.risk, expected.risk, rtol=1e-8)


def test_bandwidths_of_score():
    """The public fields stay as they were given; equal options make equal methods."""
    assert (st.Score().bandwidth, st.Score(density="sinc").bandwidth) == ("paper", "plugin")
    assert st.Score(density="mixture").bandwidth is None
    assert st.Score(0.3) == st.Score(0.3) != st.Score(0.4)
    assert repr(st.Score(0.3)) == "Score(bandwidth=0.3, density='gaussian', factor=True)"
    for method in METHODS:
        assert pickle.loads(pickle.dumps(method)) == method
    # Part of the name of a kernel is no name.
    for part in ("gauss", "order", "sin", ""):
        with pytest.raises(ValueError, match="unknown density"):
            st.Score("plugin", density=part)


def test_the_bandwidth_of_the_paper():
    """h = 6 sigma / P^(1/3): a tenth of sigma at P = 216,000."""
    assert st.paper_bandwidth(216_000, 2.0) == pytest.approx(0.2, rel=1e-12)
    y = np.linspace(-4, 4, 64)
    a, b = (st.risk_curve(y, [1.0], sigma=0.5, method=m).dof for m in ("score", st.Score(st.paper_bandwidth(64, 0.5))))
    np.testing.assert_array_equal(a, b)
