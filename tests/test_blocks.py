"""Rules on blocks of entries, and SCORE for them."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

import scorethresh as st
from helpers import RULES, Opaque, TwoSteps
from oracles import block_hard_exact, block_risk_quad, block_terms, noncentral_chi_mp
from scorethresh.risk.methods import BlockMixture, BlockScore
from scorethresh.risk.npmle_blocks import fit_block_means, log_chi, log_likelihood, most_likely
from scorethresh.rules import Radial

ALL_RULES = [*RULES, st.Step(), Opaque(st.Bridge()), TwoSteps()]


def block_curve(norms, thresholds, sigma, rule, size):
    sample = st.Magnitudes.exact(norms)
    return BlockScore().curve(sample, np.asarray(thresholds, float), sigma=sigma, rule=Radial(rule, size))


@pytest.mark.parametrize("rule", ALL_RULES, ids=repr)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_block_score_is_its_definition(rng, rule, size):
    """Direct sums over the blocks, to rounding; the bandwidth is the documented one."""
    sigma, blocks = 1.3, 150
    norms = np.append(sigma * np.linalg.norm(rng.normal(scale=2, size=(blocks - 1, size)), axis=1), 0.0)
    h = min(6 * sigma * blocks ** (-1 / 3), sigma / 2) / math.sqrt(3)
    thresholds = np.array([0.4, 1.7, 3.0, 6.0, 20.0])
    curve = block_curve(norms, thresholds, sigma, rule, size)
    for k, t in enumerate(thresholds):
        risk, dof, terms = block_terms(norms, t, sigma, rule, size, h)
        assert curve.dof[k] == pytest.approx(dof, rel=1e-12, abs=1e-10)
        # The risk is a difference of sums of the order of the energy.
        assert curve.risk[k] == pytest.approx(risk, rel=0, abs=1e-12 * np.sum(norms**2))
        assert curve.stderr[k] == pytest.approx(np.std(terms, ddof=1) * math.sqrt(blocks), rel=1e-9)
    assert curve.size == size * blocks


def test_bandwidth_of_few_and_of_many_blocks(rng):
    """6 sigma n^(-1/3), at most half a sigma, over sqrt(3): 1000 blocks have 0.289, 100,000 have 0.0746."""
    for blocks, h in ((1000, 0.5 / math.sqrt(3)), (100_000, 6 / 100_000 ** (1 / 3) / math.sqrt(3))):
        norms = np.linalg.norm(rng.normal(size=(blocks, 2)), axis=1)
        expected = 2 * np.count_nonzero(norms > 2) + 2 * stats.norm.pdf(norms, 2, h).sum()
        assert block_curve(norms, [2.0], 1.0, st.Hard(), 2).dof[0] == pytest.approx(expected, rel=1e-12)


def test_thresholds_at_the_ends(rng):
    """At 0 nothing is changed: the risk is that of the noise. At infinity all is zero, and the risk the energy's."""
    norms = np.linalg.norm(rng.normal(size=(40, 3)), axis=1)
    for rule in RULES:
        curve = block_curve(norms, [0.0, np.inf], 0.7, rule, 3)
        assert curve.dof == pytest.approx([120, 0], abs=1e-12)
        assert curve.risk == pytest.approx([120 * 0.49, np.sum(norms**2) - 120 * 0.49], rel=1e-12)
    assert block_curve(norms, [np.inf], 0.7, st.Hard(), 3).risk == pytest.approx(np.sum(norms**2) - 120 * 0.49)


@pytest.mark.parametrize(
    ("size", "threshold", "mean", "dof"), [(4, 3.5, 2.5, 2819.3), (8, 4, 3, 6655.0), (16, 5, 1, 4730.8)]
)
def test_mean_of_block_score_is_the_risk_up_to_the_bias_of_the_kernel(rng, size, threshold, mean, dof):
    """2000 blocks, half of them noise, half of the given mean norm.

    The exact DOF were found independently, by simulation, and are given to 0.1; noncentral chi-squares agree. The
    kernel replaces the density at the threshold by its mean under a normal of width h, known by quadrature: so is the
    mean of both estimates. 200 draws are within four standard errors of it.
    """
    blocks, draws = 2000, 200
    h = 6 * blocks ** (-1 / 3)
    h = min(h, 0.5) / math.sqrt(3)
    true_risk, true_dof = 1000 * np.sum([block_hard_exact(size, threshold, m) for m in (0, mean)], axis=0)
    assert true_dof == pytest.approx(dof, abs=0.06)
    laws = [stats.chi2(size), stats.ncx2(size, mean**2)]
    r = np.linspace(threshold - 8 * h, threshold + 8 * h, 4001)
    smoothed = np.trapezoid(sum(2 * r * law.pdf(r**2) for law in laws) * stats.norm.pdf(r, threshold, h), r)
    above = sum(law.sf(threshold**2) for law in laws)
    bias = 1000 * (size * above + threshold * smoothed) - true_dof
    means = np.zeros((blocks, size))
    means[:1000] = mean / math.sqrt(size)
    found, errors = np.empty((draws, 2)), np.empty(draws)
    for k in range(draws):
        norms = np.linalg.norm(means + rng.normal(size=means.shape), axis=1)
        curve = block_curve(norms, [threshold], 1.0, st.Hard(), size)
        found[k], errors[k] = (curve.dof[0], curve.risk[0]), curve.stderr[0]
    expected = np.array([true_dof + bias, true_risk + 2 * bias])
    error = (found.mean(axis=0) - expected) / (found.std(axis=0) / math.sqrt(draws))
    assert (np.abs(error) < 4).all(), error
    assert abs(bias) < 0.05 * true_dof
    # The test has power: a factor of 1.8 for 2 before the DOF would move the mean risk by 20 standard errors or more.
    assert 0.2 * true_dof > 20 * found[:, 1].std() / math.sqrt(draws)
    # Terms of blocks with other means spread more: the standard error is at least the spread, and not far above it.
    assert 0.8 * found[:, 1].std() < errors.mean() < 2 * found[:, 1].std()


@pytest.mark.parametrize("rule", ALL_RULES, ids=repr)
def test_derivative_is_the_divergence_of_the_block(rng, rule):
    """The trace of the Jacobian of g(r) y / r, by central differences."""
    size, t, step = 3, 1.7, 1e-6
    radial = Radial(rule, size)

    def shrink(y):
        r = np.linalg.norm(y)
        return float(radial(r, t)) * y / r

    for y in rng.normal(scale=2, size=(30, size)):
        r = np.linalg.norm(y)
        if min(abs(r - k * t) for k in (1, 2, 2.2, 3.5, 3.7)) < 1e-3:
            continue
        slopes = [(shrink(y + step * e)[i] - shrink(y - step * e)[i]) / (2 * step) for i, e in enumerate(np.eye(size))]
        assert float(radial.derivative(r, t)) == pytest.approx(sum(slopes), rel=1e-4, abs=1e-6)


def test_a_block_of_one_entry_is_the_entry():
    r = np.array([0.0, 0.5, 2.0, 9.0])
    for rule in RULES:
        np.testing.assert_array_equal(Radial(rule, 1).derivative(r, 1.7), rule.derivative(r, 1.7))
        assert Radial(rule, 3).derivative(0.0, 0.0) == 3


@pytest.mark.parametrize("size", [2, 16])
@pytest.mark.parametrize("blocks", [1500, 6000])
def test_selection_of_blocks(rng, size, blocks):
    """The true risk at the chosen threshold is within 10% of the least, by the closed form."""
    means = np.zeros((blocks, size))
    means[: blocks // 20, 0] = 7.0
    norms = np.linalg.norm(means + rng.normal(size=means.shape), axis=1)
    chosen = st.select_threshold(norms, sigma=1.0, rule=Radial(st.Hard(), size), method=BlockScore())
    assert chosen.status == "interior"
    assert chosen.curve.size == blocks * size

    def risk(t):
        return 0.95 * block_hard_exact(size, t, 0)[0] + 0.05 * block_hard_exact(size, t, 7)[0]

    assert risk(chosen.threshold) < 1.1 * min(risk(t) for t in np.arange(1, 9, 0.05))
    np.testing.assert_array_equal(chosen.estimate, np.where(norms >= chosen.threshold, norms, 0))


def test_the_default_grid_passes_the_norms_of_noise(rng):
    """The universal threshold of entries lies inside the noise of blocks of 16: the grid has to go on."""
    norms = np.linalg.norm(rng.normal(size=(500, 16)), axis=1)
    chosen = st.select_threshold(norms, sigma=1.0, rule=Radial(st.Hard(), 16), method=BlockScore())
    assert chosen.curve.thresholds[-2] > norms.max() > math.sqrt(2 * math.log(500)) + 1
    assert chosen.status == "kills all"


@pytest.mark.parametrize("method", ["jansen", "bootstrap", "little", "universal", "fdr", "cv", "sure"])
def test_other_methods_refuse_blocks(method):
    with pytest.raises(ValueError, match=rf"method '{method}' treats entries one by one\. For blocks there are"):
        st.select_threshold(np.arange(9.0), sigma=1.0, rule=Radial(st.Hard(), 2), method=method)
    with pytest.raises(ValueError, match="treats entries one by one"):
        st.select_threshold(np.ones((9, 2)), sigma=1.0, block_axis=-1, method=method)
    for own in (st.Mixture(), st.Score(), st.Jansen(), st.Universal()):
        with pytest.raises(ValueError, match=r"one by one, got the rule Radial.*blocks of 2 entries\. Use BlockMix"):
            st.select_threshold(np.ones((9, 2)), sigma=1.0, block_axis=1, method=own)


def test_a_users_method_is_not_handed_blocks_that_it_may_not_expect():
    class Own:
        def resolution(self, size, sigma):
            return sigma

        def curve(self, sample, thresholds, *, sigma, rule):
            raise AssertionError

    with pytest.raises(ValueError, match="blocks of 2 entries"):
        st.risk_curve(np.arange(9.0), sigma=1.0, rule=Radial(st.Hard(), 2), method=Own())
    with pytest.raises(ValueError, match="blocks of 2 entries"):
        st.Score().curve(st.Magnitudes.exact([1.0]), np.array([1.0]), sigma=1.0, rule=Radial(st.Hard(), 2))


def test_bad_blocks():
    for size in (0, -1, 2.0, "2"):
        with pytest.raises(ValueError, match="size must be a whole number of at least 1, got"):
            Radial(st.Hard(), size)
    with pytest.raises(ValueError, match="on blocks of 2 entries"):
        Radial(Radial(st.Hard(), 2), 3)
    with pytest.raises(TypeError, match="rule must be a name or an object"):
        Radial(st.Hard, 2)


def test_huge_norms_do_no_harm():
    """Their squares overflow, but the blocks are kept: only killing them has an infinite risk."""
    norms = np.array([0.5, 1.0, 1e200, 1e300])
    for rule in (st.Hard(), st.Soft(), st.Scad(), st.Garrote()):
        curve = block_curve(norms, [0.7, 2.0, np.inf], 1.0, rule, 2)
        assert not np.isnan([curve.risk, curve.dof]).any()
        assert np.isfinite(curve.risk[:2]).all()
        assert curve.risk[2] == np.inf


@pytest.mark.parametrize("size", [1, 2, 3, 8, 40, 81, 82, 83, 300])
def test_the_law_of_norms_is_noncentral_chi(size):
    """In 40 digits, where the density is at least 1e-200; on both sides of the order where the expansion starts."""
    norms = np.array([1e-3, 0.5, math.sqrt(size), math.sqrt(size) + 4, 25.0])
    means = np.array([0.0, 1e-6, 0.1, 1.0, 6.0, 22.0])
    logs = log_chi(norms, size)[:, None] + log_likelihood(norms, means, size)
    for i, r in enumerate(norms):
        for j, m in enumerate(means):
            exact = noncentral_chi_mp(r, m, size)
            if exact > 1e-200:
                assert logs[i, j] == pytest.approx(float(mp.log(exact)), abs=1e-8 if size < 82 else 1e-7)


def test_the_fit_is_the_most_likely_one(rng):
    """The log-likelihood of 20,000 steps of expectation-maximisation, which stay below; the gap bounds the rest."""
    y = rng.normal(size=(800, 3))
    y[:80, 0] += 4.0
    r = np.linalg.norm(y, axis=1)
    grid = np.arange(0, r.max(), 0.25)
    likelihood = np.exp(log_likelihood(r, grid, 3))
    p, gap = most_likely(likelihood, np.ones(r.size))
    q = np.full(grid.size, 1 / grid.size)
    for _ in range(20_000):
        q *= likelihood.T @ (1 / (likelihood @ q)) / r.size
    found, slow = (np.log(likelihood @ x).sum() for x in (p, q))
    assert p.sum() == pytest.approx(1, rel=1e-12)
    assert p.min() >= 0
    assert gap < 1e-3
    assert slow - 2e-3 < found
    assert found < slow + 0.05  # EM is slow at the end


@pytest.mark.parametrize("rule", [st.Hard(), st.Soft(), st.Firm(), st.Garrote(), TwoSteps()], ids=repr)
@pytest.mark.parametrize("size", [2, 5])
def test_block_mixture_is_the_exact_risk_under_its_fit(rng, rule, size):
    """The sum over the fitted means of risks by quadrature in 40 digits."""
    y = rng.normal(size=(400, size))
    y[:60, 0] += 4.0
    sigma, t = 2.0, 2.7
    norms = sigma * np.linalg.norm(y, axis=1)
    sample = st.Magnitudes.exact(norms)
    method = BlockMixture(null=0)
    curve = method.curve(sample, np.array([t * sigma]), sigma=sigma, rule=Radial(rule, size))
    means = fit_block_means(sample, sigma=sigma, block_size=size, largest=t * sigma, null=0)
    assert means.masses.sum() + means.far_counts.sum() == pytest.approx(400, rel=1e-9)
    kinks = [t, 2 * t, 3.7 * t]
    risk, dof = np.zeros(2)
    for m, mass in zip(means.atoms, means.masses, strict=True):
        one = block_risk_quad(rule, size, t, float(m), kinks)
        risk, dof = risk + mass * one[0], dof + mass * one[1]
    for r, count in zip(means.far, means.far_counts, strict=True):
        value = float(rule(r, t))
        one = float(rule.derivative(r, t)) + (size - 1) * value / r
        risk, dof = risk + count * ((r - value) ** 2 - size + 2 * one), dof + count * one
    assert curve.dof[0] == pytest.approx(dof, rel=1e-5)
    assert curve.risk[0] == pytest.approx(sigma**2 * risk, rel=1e-5)


@pytest.mark.parametrize("size", [2, 4, 16])
def test_block_mixture_estimates_the_risk(rng, size):
    """Mean over 20 draws against noncentral chi-squares: within 3%, for sparser fits lower it a little."""
    blocks, t = 2000, math.sqrt(size) + 2
    means = np.zeros((blocks, size))
    means[:200, 0] = math.sqrt(size) + 3
    exact = 1800 * np.array(block_hard_exact(size, t, 0)) + 200 * np.array(block_hard_exact(size, t, means[0, 0]))
    found, errors = [], []
    for _ in range(20):
        curve = st.risk_curve(means + rng.normal(size=means.shape), [t], sigma=1.0, block_axis=1)
        found.append((curve.risk[0], curve.dof[0]))
        errors.append(curve.stderr[0])
    found = np.array(found)
    assert found.mean(axis=0) == pytest.approx(exact, rel=0.03)
    assert found[:, 0].std() < np.mean(errors)


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "most"), [(256, 1.06), (1024, 1.02)])
@pytest.mark.parametrize("size", [2, 8])
def test_regret_of_block_mixture(rng, blocks, most, size):
    """Risk at the chosen threshold over the least, in the mean of 8 draws of three signals; the kernel is worse."""
    grid = np.append(np.arange(0.0, 12.0, 1 / 16), 50.0)
    ratios = {"mixture": [], "score": []}
    for share, height in ((0.02, 5.0), (0.1, 4.0), (0.3, 3.0)):
        height += math.sqrt(size) - 1
        noise, signal = (np.array([block_hard_exact(size, t, m)[0] for t in grid]) for m in (0.0, height))
        risk = (1 - share) * noise + share * signal
        for _ in range(8):
            y = rng.normal(size=(blocks, size))
            y[: round(share * blocks), 0] += height
            for method, out in ratios.items():
                t = st.select_threshold(y, sigma=1.0, block_axis=-1, method=method).threshold
                out.append(np.interp(min(t, 50.0), grid, risk) / risk.min())
    assert np.mean(ratios["mixture"]) < most
    assert np.mean(ratios["mixture"]) < np.mean(ratios["score"])


@pytest.mark.parametrize("method", ["mixture", "score"])
def test_complex_numbers_are_blocks_of_two(rng, method):
    z = rng.normal(size=(30, 40)) + 1j * rng.normal(size=(30, 40))
    z[:4] += 4 + 3j
    found = st.select_threshold(3 * z, sigma=3.0, method=method)
    parts = st.select_threshold(3 * np.stack([z.real, z.imag]), sigma=3.0, block_axis=0, method=method)
    assert found.threshold == parts.threshold
    np.testing.assert_allclose(found.curve.risk, parts.curve.risk, rtol=1e-10)
    np.testing.assert_array_equal(found.estimate, np.where(np.abs(3 * z) >= found.threshold, 3 * z, 0))
    assert parts.estimate.shape == (2, 30, 40)
    np.testing.assert_allclose(parts.estimate[0] + 1j * parts.estimate[1], found.estimate, rtol=1e-12)
    single = st.select_threshold(z.astype(np.complex64), sigma=1.0, method=method)
    assert single.estimate.dtype == np.complex64
    assert single.threshold == pytest.approx(found.threshold / 3, abs=1 / 16)
    four = st.select_threshold(z.reshape(30, 20, 2), sigma=1.0, block_axis=-1)
    assert four.curve.size == 2400
    assert st.compare(z, sigma=1.0).keys() == {"score", "mixture"}


@pytest.mark.parametrize("method", ["mixture", "score"])
@pytest.mark.parametrize("rule", [st.Hard(), st.Soft(), st.Firm()], ids=repr)
def test_compressed_norms_give_the_same_curve(rng, method, rule):
    """Also if parts are compressed and added: to rounding for the kernel, to the bins of the histogram for the fit."""
    y = rng.normal(size=(9000, 3))
    y[:500] += 2.0
    norms = np.linalg.norm(y, axis=1)
    t = np.append(np.linspace(0.0, 6.0, 25), np.inf)
    radial = Radial(rule, 3)
    h = BlockScore().resolution(9000, 1.0)
    whole = st.risk_curve(norms, t, sigma=1.0, rule=radial, method=method)  # few thresholds: exact
    parts = sum(
        st.Magnitudes.compress(part, sigma=1.0, thresholds=t, rule=radial, bandwidth=h)
        for part in np.array_split(norms, 4)
    )
    added = st.risk_curve(parts, t, sigma=1.0, rule=radial, method=method)
    exact = method == "score"
    np.testing.assert_allclose(added.risk, whole.risk, rtol=0, atol=1e-9 * 27000 if exact else 3)
    np.testing.assert_allclose(added.dof, whole.dof, rtol=0, atol=1e-9 * 27000 if exact else 3)
    np.testing.assert_allclose(added.stderr, whole.stderr, rtol=1e-9 if exact else 1e-3, atol=0 if exact else 1e-2)
    curves = [st.risk_curve(part, t, sigma=1.0, rule=radial, method=method) for part in np.array_split(norms, 2)]
    assert (curves[0] + curves[1]).size == 27000
    with pytest.raises(ValueError, match="compressed for bandwidths"):
        BlockScore().curve(
            st.Magnitudes.compress(norms, sigma=1.0, thresholds=t, rule=radial, bandwidth=1.0),
            t,
            sigma=1.0,
            rule=radial,
        )


def test_large_blocks_are_compressed_on_the_way(rng):
    y = rng.normal(size=(20_000, 2))
    y[:1000] += 3.0
    found = st.select_threshold(y, sigma=1.0, block_axis=1)
    exact = st.select_threshold(st.Magnitudes.exact(np.hypot(*y.T)), sigma=1.0, rule=Radial(st.Hard(), 2))
    assert found.threshold == pytest.approx(exact.threshold, abs=2 / 64)
    assert found.risk == pytest.approx(exact.risk, rel=1e-3)
    np.testing.assert_array_equal(found.estimate.any(axis=1), np.hypot(*y.T) >= found.threshold)


def test_a_block_of_one_entry_is_an_entry(rng):
    y = rng.normal(size=(500, 1))
    y[:20] += 5.0
    blocks = st.select_threshold(y, sigma=1.0, block_axis=1)
    assert blocks.threshold == st.select_threshold(y, sigma=1.0).threshold
    np.testing.assert_array_equal(blocks.estimate, st.select_threshold(y, sigma=1.0).estimate)


def test_other_rules_scale_blocks(rng):
    y = (3 * rng.normal(size=(200, 4))).astype(np.float32)
    found = st.select_threshold(y, sigma=1.0, block_axis=1, rule="soft")
    norms = np.linalg.norm(y.astype(float), axis=1, keepdims=True)
    expected = y * np.maximum(norms - found.threshold, 0) / norms
    np.testing.assert_allclose(found.estimate, expected, rtol=1e-5, atol=1e-6)
    assert found.estimate.dtype == np.float32


def test_statuses_of_blocks(rng):
    noise = st.select_threshold(rng.normal(size=(500, 3)), sigma=1.0, block_axis=1)
    assert str(noise.status) == "kills all"
    assert not noise.estimate.any()
    loud = st.select_threshold(50 + rng.normal(size=(500, 3)), sigma=1.0, block_axis=1)
    assert str(loud.status) == "keeps all"
    assert loud.risk == pytest.approx(1500, rel=0.01)


def test_bad_block_axes(rng):
    y = rng.normal(size=(20, 3))
    for axis, match in ((2, "below 2"), (-3, "at least -2"), (1.0, "whole number"), (True, "whole number")):
        with pytest.raises(ValueError, match=f"block_axis must be.*{match}"):
            st.select_threshold(y, sigma=1.0, block_axis=axis)
    with pytest.raises(ValueError, match="a sample has no axes, got block_axis"):
        st.select_threshold(st.Magnitudes.exact(y), sigma=1.0, block_axis=0)
    with pytest.raises(ValueError, match="NaN"):
        st.select_threshold(np.array([1 + 1j * np.nan]), sigma=1.0)
    with pytest.raises(ValueError, match="null must be"):
        BlockMixture(null=-1)


def test_huge_blocks_do_no_harm():
    y = np.array([[0.5, 0.5], [1e200, 1.0], [1e300, 1e300]])
    found = st.select_threshold(y, sigma=1.0, block_axis=1, thresholds=[1.0, 2.0, 1e290])
    assert np.isfinite(found.risk)
    assert not np.isnan(found.curve.risk).any()
    np.testing.assert_array_equal(found.estimate[1:], y[1:])


def test_blocks_are_drawn(rng):
    from matplotlib.figure import Figure

    y = rng.normal(size=(500, 3))
    y[:30] += 4.0
    ax = st.select_threshold(y, sigma=1.0, block_axis=1).plot(Figure().subplots())
    assert ax.get_ylabel() == "blocks per σ"
    # The curve is the density: it holds all blocks.
    x, density = ax.lines[0].get_data()
    assert np.trapezoid(density, x) == pytest.approx(500, rel=0.02)


class SameAsHard(st.PiecewiseLinear):
    """Hard thresholding under another name, which is summed by its definition."""

    def pieces(self, threshold):
        return st.Hard().pieces(threshold)

    def jumps(self, threshold):
        return st.Hard().jumps(threshold)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(("size", "sigma"), [(2, 1.0), (3, 0.01), (16, 7.0)])
def test_fast_sums_of_hard_thresholding_are_those_of_the_definition(size, sigma, compressed):
    rng = np.random.default_rng(size)
    norms = sigma * np.linalg.norm(rng.normal(size=(3000, size)) + 2.0 * (rng.random((3000, 1)) < 0.1), axis=1)
    thresholds = sigma * np.append(np.linspace(0, 9, 40), np.inf)
    fast, slow = (
        BlockScore().curve(
            st.Magnitudes.compress(norms, sigma=sigma, rule=rule, thresholds=thresholds, bandwidth=0.2 * sigma)
            if compressed
            else st.Magnitudes.exact(norms),
            thresholds,
            sigma=sigma,
            rule=rule,
        )
        for rule in (Radial(st.Hard(), size), Radial(SameAsHard(), size))
    )
    for name in ("risk", "dof", "stderr"):
        expected = getattr(slow, name)
        # A standard error near 0 is the root of a difference.
        tolerance = (1e-6 if name == "stderr" else 1e-12) * np.abs(expected).max()
        assert getattr(fast, name) == pytest.approx(expected, rel=1e-9, abs=tolerance), name


def test_blocks_that_hold_no_numbers_are_named():
    y = np.ones((50, 4))
    y[0, 0] = np.nan
    for data in (y, y + 1j):
        with pytest.raises(ValueError, match=r"y holds 1 NaN or infinite entries out of 200. Leave their blocks out"):
            st.select_threshold(data, sigma=1.0, block_axis=-1)
    with pytest.raises(ValueError, match=r"y has one axis, so block_axis=-1 makes it a single block.*reshape"):
        st.select_threshold(y[:, 1], sigma=1.0, block_axis=-1)
