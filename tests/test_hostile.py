"""Data and arguments at the limits: what once went wrong must not come back."""

import math

import numpy as np
import pytest

import scorethresh as st
from helpers import TwoSteps
from oracles import score_mp


def both(y, thresholds, **kwargs):
    """The same curve from a compressed and from an exact sample."""
    names = ("sigma", "rule", "thresholds", "bandwidth")
    how = {k: v for k, v in {**kwargs, "thresholds": thresholds}.items() if k in names}
    method = st.Score(how["bandwidth"]) if "bandwidth" in how else "score"
    rest = {k: v for k, v in kwargs.items() if k != "bandwidth"}
    return [
        st.risk_curve(sample, thresholds, method=method, **rest)
        for sample in (st.Magnitudes.compress(y, **how), st.Magnitudes.exact(y))
    ]


@pytest.mark.parametrize("sigma", [1e-16, 1e-80, 1e-150])
def test_noise_far_below_the_rounding_of_the_data(rng, sigma):
    """Cells narrower than the spacing of doubles cannot be; nothing is read or written out of bounds."""
    y = rng.normal(size=5000)
    curve = st.risk_curve(y, np.linspace(0, 4, 2000), sigma=sigma, method="score")
    count = (np.abs(y)[:, None] > curve.thresholds[::100]).sum(axis=0)
    np.testing.assert_allclose(curve.dof[::100], count, rtol=1e-9, atol=1e-9)


def test_risk_when_the_data_dwarf_the_noise():
    for sigma in (1e-80, 1e-150):
        assert st.risk_curve([1.0], [2.0], sigma=sigma, method="score").risk[0] == pytest.approx(1.0)
    assert st.risk_curve([1e80], [1e90], sigma=1.0, method="score").risk[0] == pytest.approx(1e160)


@pytest.mark.parametrize(
    "method",
    ["score", "mixture", "jansen", "bootstrap", "little", st.Score("plugin"), st.Score(density="order4")],
    ids=repr,
)
@pytest.mark.parametrize("size", [4000, 6000])
def test_one_huge_outlier_changes_nothing_else(rng, method, size):
    y = rng.normal(size=size)
    y[:200] += 5
    expected = st.select_threshold(y, sigma=1.0, method=method)
    y[0] = 1e200
    found = st.select_threshold(y, sigma=1.0, method=method)
    assert found.threshold == pytest.approx(expected.threshold, abs=0.1)
    assert found.status == "interior"
    assert np.isfinite(found.risk)
    assert not np.isnan(found.curve.stderr).any()


def test_oracle_with_huge_means():
    assert st.risk_curve([0.0, 0.0], [3.0], sigma=1.0, method=st.Oracle([1.0, 1e200])).risk[0] < 10


@pytest.mark.parametrize("rule", ["hard", "bridge", TwoSteps()], ids=repr)
def test_ties_count_alike_in_exact_and_compressed_samples(rng, rule):
    """Integers against integer thresholds: an entry at a jump counts as below it, whatever the sample."""
    y = np.rint(rng.normal(size=6000) * 3)
    a, b = both(y, [3.0, 6.0], sigma=3.0, rule=rule, bandwidth=0.3)
    np.testing.assert_allclose(a.risk, b.risk, rtol=1e-10)
    np.testing.assert_allclose(a.dof, b.dof, rtol=1e-10)


def test_a_sample_compressed_for_one_rule_refuses_or_serves_another(rng):
    y = rng.normal(size=20_000)
    t = [1.0, 2.0, 3.0]
    sample = st.Magnitudes.compress(y, sigma=1.0, thresholds=t, rule="soft", bandwidth=0.02)
    a = st.risk_curve(sample, t, sigma=1.0, method=st.Score(0.02))
    b = st.risk_curve(st.Magnitudes.exact(y), t, sigma=1.0, method=st.Score(0.02))
    np.testing.assert_allclose(a.dof, b.dof, rtol=1e-11)
    with pytest.raises(ValueError, match="too wide for a rule that bends everywhere"):
        st.risk_curve(sample, t, sigma=1.0, rule=st.Bridge(0.9), method=st.Score(2.0))


def test_fine_even_grids_keep_their_digits(rng):
    """The recursion along an even grid starts anew before its errors add up."""
    y = rng.normal(size=60)
    t = np.linspace(0, 6, 20_001)
    dof = st.risk_curve(y, t, sigma=1.0, method=st.Score(1.5)).dof
    for k in (1, 5000, 12_345, 20_000):
        assert dof[k] == pytest.approx(float(score_mp(y, t[k], 1.0, 1.5)[0]), rel=1e-12)


def test_beyond_the_largest_of_many_entries(rng):
    """With few thresholds of one's own every entry counts by itself, so the tail is right to 1e-12 there too."""
    y = rng.normal(size=5000)
    h = 6 / 5000 ** (1 / 3)
    for steps in (5, 12, 30):
        t = np.abs(y).max() + steps * h
        expected = float(score_mp(y[np.abs(y) > 3], t, 1.0, h)[0])
        assert st.risk_curve(y, [t], sigma=1.0, method="score").dof[0] == pytest.approx(expected, rel=1e-9)


def test_tiny_and_huge_thresholds(rng):
    y = rng.normal(size=5000)
    for rule in ("bridge", "garrote", TwoSteps()):
        a, b = both(y, [1e-5, 2.0], sigma=1.0, rule=rule)
        np.testing.assert_allclose(a.risk, b.risk, rtol=1e-10)
    with pytest.raises(ValueError, match="finite thresholds must be at most 1e300"):
        st.risk_curve(y, [1.0, 1.7e308], sigma=1.0)


class NoJumpAtZero(TwoSteps):
    def jumps(self, t):
        return super().jumps(t) if t > 0 else []

    def derivative(self, y, t):
        return 1.0 if t == 0 else super().derivative(y, t)


def test_users_rules_need_not_be_tidy(rng):
    """No jumps at threshold 0, a derivative that is a plain number, no finite threshold at all."""
    y = rng.normal(size=5000)
    for sample in (y, y[:100]):
        assert st.risk_curve(sample, sigma=1.0, rule=NoJumpAtZero(), method="score").dof[0] == pytest.approx(
            sample.size
        )
    assert st.Magnitudes.compress(y, sigma=1.0, thresholds=[np.inf], rule=TwoSteps()).size == 5000


def test_oracle_finds_the_jumps_of_a_rule_without_kinks():
    x0 = np.arange(6.0)
    t, draws = 1.3, np.random.default_rng(0).normal(size=(400_000, 6))
    loss = ((TwoSteps()(x0 + draws, t) - x0) ** 2).sum(axis=1)
    risk = st.risk_curve(x0, [t], sigma=1.0, rule=TwoSteps(), method=st.Oracle(x0)).risk[0]
    assert abs(loss.mean() - risk) < 4 * loss.std() / math.sqrt(loss.size)


def test_status_at_the_end_of_the_grid_and_of_a_rule_that_shrinks(rng):
    y = rng.normal(size=64)
    y[0] = 12
    selection = st.select_threshold(y, sigma=1.0, method=st.Score(0.3), thresholds=[2.0, 2.5, np.inf])
    assert (selection.threshold, selection.status) == (2.5, "edge")
    dense = 10 + rng.random(1000)
    shrunk = st.select_threshold(dense, sigma=1.0, rule="soft", method="sure", thresholds=[2.0, 3.0, 4.0])
    assert shrunk.status == "edge"
    assert st.select_threshold(dense, sigma=1.0, thresholds=[2.0, 3.0, 4.0]).status == "keeps all"


def test_noise_level_of_awkward_storage(rng):
    image = rng.normal(size=(128, 128))
    hot = image.astype(np.float32)
    hot[5, 5] = 1e7
    assert st.estimate_sigma(hot) == pytest.approx(1, rel=0.05)
    assert st.estimate_sigma((128 + 3 * image).astype(np.float16)) == pytest.approx(3, rel=0.05)
    assert st.estimate_sigma(np.full(9, -128, dtype=np.int8)) == pytest.approx(128 / 0.6744897501960817)
    with pytest.raises(ValueError, match=r"too small to tell noise from signal, with shape \(3, 3\)"):
        st.estimate_sigma(100 + image[:3, :3])


def test_rules_refuse_nan():
    for rule in (st.Hard(), st.Bridge(), st.Garrote()):
        with pytest.raises(ValueError, match="y holds 1 NaN"):
            rule(np.array([1.0, np.nan]), 0.5)
