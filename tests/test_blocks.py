"""Rules on blocks of entries, and SCORE for them."""

import math

import numpy as np
import pytest
from scipy import stats

import scorethresh as st
from helpers import RULES, Opaque, TwoSteps
from oracles import block_hard_exact, block_terms
from scorethresh.risk.methods import BlockScore
from scorethresh.rules import Radial

ALL_RULES = [*RULES, st.Step(), Opaque(st.Bridge()), TwoSteps()]


def block_curve(norms, thresholds, sigma, rule, size):
    sample = st.Magnitudes.exact(norms)
    return BlockScore().curve(sample, np.asarray(thresholds, float), sigma=sigma, rule=Radial(rule, size))


@pytest.mark.parametrize("rule", ALL_RULES, ids=repr)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_block_score_is_its_definition(rng, rule, size):
    """Direct sums over the blocks, to rounding; the half-width is the documented one."""
    sigma, blocks = 1.3, 150
    norms = np.append(sigma * np.linalg.norm(rng.normal(scale=2, size=(blocks - 1, size)), axis=1), 0.0)
    h = min(6 * sigma * blocks ** (-1 / 3), sigma / 2)
    thresholds = np.array([0.4, 1.7, 3.0, 6.0, 20.0])
    curve = block_curve(norms, thresholds, sigma, rule, size)
    for k, t in enumerate(thresholds):
        risk, dof = block_terms(norms, t, sigma, rule, size, h)
        assert curve.dof[k] == pytest.approx(dof, rel=1e-12, abs=1e-10)
        # The risk is a difference of sums of the order of the energy.
        assert curve.risk[k] == pytest.approx(risk, rel=0, abs=1e-12 * np.sum(norms**2))
    np.testing.assert_allclose(curve.stderr, sigma**2 * math.sqrt(2 * size * blocks), rtol=1e-14)


def test_bandwidth_of_few_and_of_many_blocks(rng):
    """6 sigma n^(-1/3), but at most half a sigma: 1000 blocks have 0.5, 100,000 have 0.129."""
    for blocks, h in ((1000, 0.5), (100_000, 6 / 100_000 ** (1 / 3))):
        norms = np.linalg.norm(rng.normal(size=(blocks, 2)), axis=1)
        near = np.count_nonzero((norms >= 2 - h) & (norms < 2 + h))
        expected = 2 * np.count_nonzero(norms >= 2) + 2 * near / (2 * h)
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
def test_mean_of_block_score_is_the_risk_up_to_the_bias_of_the_boxcar(rng, size, threshold, mean, dof):
    """2000 blocks, half of them noise, half of the given mean norm.

    The exact DOF were found independently, by simulation, and are given to 0.1; noncentral chi-squares agree. The
    boxcar replaces the density at the threshold by its mean over 2h, which is known exactly: so is the mean of both
    estimates. 200 draws are within four standard errors of it.
    """
    blocks, draws = 2000, 200
    h = 6 * blocks ** (-1 / 3)
    true_risk, true_dof = 1000 * np.sum([block_hard_exact(size, threshold, m) for m in (0, mean)], axis=0)
    assert true_dof == pytest.approx(dof, abs=0.06)
    laws = [stats.chi2(size), stats.ncx2(size, mean**2)]
    inside = sum(law.cdf((threshold + h) ** 2) - law.cdf((threshold - h) ** 2) for law in laws)
    above = sum(law.sf(threshold**2) for law in laws)
    bias = 1000 * (size * above + threshold * inside / (2 * h)) - true_dof
    means = np.zeros((blocks, size))
    means[:1000] = mean / math.sqrt(size)
    found = np.empty((draws, 2))
    for k in range(draws):
        norms = np.linalg.norm(means + rng.normal(size=means.shape), axis=1)
        curve = block_curve(norms, [threshold], 1.0, st.Hard(), size)
        found[k] = curve.dof[0], curve.risk[0]
    expected = np.array([true_dof + bias, true_risk + 2 * bias])
    error = (found.mean(axis=0) - expected) / (found.std(axis=0) / math.sqrt(draws))
    assert (np.abs(error) < 4).all(), error
    assert abs(bias) < 0.05 * true_dof
    # The test has power: a factor of 1.8 for 2 before the DOF would move the mean risk by 20 standard errors or more.
    assert 0.2 * true_dof > 20 * found[:, 1].std() / math.sqrt(draws)


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
    assert chosen.curve.size == blocks

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


@pytest.mark.parametrize("method", ["mixture", "score", "jansen", "bootstrap", "little", "universal", "fdr", "cv"])
def test_other_methods_refuse_blocks(method):
    with pytest.raises(ValueError, match=r"one by one, got the rule Radial.*blocks of 2 entries\. Use BlockScore"):
        st.select_threshold(np.arange(9.0), sigma=1.0, rule=Radial(st.Hard(), 2), method=method)


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
    with pytest.raises(ValueError, match=r"BlockScore needs an exact sample.*Magnitudes\.exact"):
        BlockScore().curve(
            st.Magnitudes.compress([1.0], sigma=1.0), np.array([1.0]), sigma=1.0, rule=Radial(st.Hard(), 2)
        )


def test_huge_norms_do_no_harm():
    """Their squares overflow, but the blocks are kept: only killing them has an infinite risk."""
    norms = np.array([0.5, 1.0, 1e200, 1e300])
    for rule in (st.Hard(), st.Soft(), st.Scad(), st.Garrote()):
        curve = block_curve(norms, [0.7, 2.0, np.inf], 1.0, rule, 2)
        assert not np.isnan([curve.risk, curve.dof]).any()
        assert np.isfinite(curve.risk[:2]).all()
        assert curve.risk[2] == np.inf
