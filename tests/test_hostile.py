"""Data and arguments at the limits: what once went wrong must not come back."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import scorethresh as st
from helpers import TwoSteps
from oracles import score_mp
from scorethresh.risk.npmle import fit_means
from scorethresh.rules import as_rule
from scorethresh.sample.cells import Cells


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


@pytest.mark.parametrize("rule", ["hard", "soft", "firm"])
def test_a_threshold_whose_square_overflows(rule):
    """It kills all entries, whose energy is finite, though the rule's own coefficients are not."""
    curve = st.risk_curve([1.0, -2.0], [3.0, 1e200], sigma=1.0, rule=rule, method=st.Score(0.1))
    np.testing.assert_allclose(curve.risk, 1 + 4 - 2, rtol=1e-12)


def test_a_jump_higher_than_the_largest_double_counts_only_near_entries():
    curve = st.risk_curve([1e-150, 2e-150], [1e300], sigma=1e-150, method=st.Score(1e-151))
    assert curve.dof[0] == 0
    assert curve.risk[0] == pytest.approx(3e-300)


def test_a_term_below_the_least_double_is_no_low_risk():
    """Firm thresholding of one entry: a^2 and z^2 are finite and -2 a z is not, though (z - a)^2 is positive."""
    assert st.risk_curve([1.14e154], [6e153], sigma=1.0, rule="firm", method="sure").risk[0] > 0


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


def one_of(rng, size, value):
    y = rng.normal(size=size)
    y[0] = value
    return y


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda rng: one_of(rng, 1000, 1e6), {"thresholds": "all"}),
        (lambda rng: one_of(rng, 1000, 1e6), {"thresholds": "all", "method": st.Score(density="mixture")}),
        (lambda rng: np.array([1e9, 1e9]), {"method": "fdr"}),
        (lambda rng: one_of(rng, 100_000, 1e9), {"method": "fdr"}),
        (lambda rng: np.exp(rng.uniform(-2, 600, 1000)), {"thresholds": "all"}),
        (lambda rng: np.linspace(0, 1e5, 1000) + rng.normal(size=1000), {"thresholds": "all"}),
    ],
)
def test_memory_does_not_grow_with_the_largest_threshold(rng, make, options):
    """The grid of means once ended at the largest threshold, and asked for more than 13 GB."""
    y = make(rng)
    tracemalloc.start()
    try:
        st.select_threshold(y, sigma=1.0, **options)
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("sigma", [1.0, 1e-100])
def test_means_far_above_the_noise_are_those_of_the_entries(rng, sigma):
    """Against the true risk: at thresholds of many sigma it is mostly the energy of the means that are killed.

    These are twenty means of 50 to 1e6 sigma, one after the other, ten of them 10% apart. Noise of one sigma is 2% of
    the first and 4% of its energy, and less of the others. At low thresholds the curve is that without these entries;
    each adds sigma^2.
    """
    far = np.sort(np.concatenate([np.geomspace(50, 1e6, 10), 200 * 1.1 ** np.arange(10)]))
    x0 = np.zeros(2000)
    x0[:100], x0[100:120] = 5.0, far
    y = x0 + rng.normal(size=x0.size)
    thresholds = sigma * np.concatenate([[2.0, 3.0, 4.0, 15.0, 30.0], np.sqrt(far[:-1] * far[1:]), [1e7]])
    curve = st.risk_curve(sigma * y, thresholds, sigma=sigma)
    true = st.risk_curve(sigma * y, thresholds, sigma=sigma, method=st.Oracle(sigma * x0))
    np.testing.assert_allclose(curve.risk[3:], true.risk[3:], rtol=0.04)
    np.testing.assert_allclose(curve.dof[3:], true.dof[3:], atol=0.01)
    without = st.risk_curve(sigma * np.delete(y, np.s_[100:120]), thresholds[:4], sigma=sigma)
    np.testing.assert_allclose(curve.risk[:4], without.risk + 20 * sigma**2, rtol=1e-3)


@pytest.mark.parametrize("largest", [3.0, 19.9, 20.1, 60.0, 1e8])
@pytest.mark.parametrize("compressed", [False, True])
def test_every_entry_has_a_mean(rng, largest, compressed):
    """The masses add up to the number of entries, and the energy of what lies beyond the fit is kept to 1%."""
    y = np.concatenate([rng.normal(size=500), [25.9, 26.1, 30.0, 30.1, 66.1, 1e3, 1e5, 1e7, -1e9]])
    keywords = {"sigma": 1.0, "thresholds": [largest], "bandwidth": 0.5}
    sample = st.Magnitudes.compress(y, **keywords) if compressed else st.Magnitudes.exact(y)
    means = fit_means(sample, sigma=1.0, largest=largest)
    assert means.masses.sum() == pytest.approx(y.size, rel=1e-9)
    assert (means.masses >= 0).all()
    beyond = np.abs(y) > largest + 6
    assert means.masses[-1] == pytest.approx(beyond.sum())
    assert means.atoms[-1] == pytest.approx(np.abs(y[beyond]).mean() if beyond.any() else 0.0, rel=1e-9)
    if not compressed:  # the cells of a compressed sample are wider than 1% there
        between = (np.abs(y) > 26.05) & ~beyond
        far = np.flatnonzero(means.atoms[:-1] > 26.05)
        assert means.masses[far] @ means.atoms[far] ** 2 == pytest.approx((y[between] ** 2).sum(), rel=0.01)


def test_atoms_of_entries_close_together_are_shared(rng):
    """100,000 entries far above the noise and within 1% of each other need no more than two means."""
    means = fit_means(st.Magnitudes.exact(1e6 + rng.normal(size=100_000)), sigma=1.0, largest=2e6)
    assert means.atoms.size <= 3


RULES_OF_ANY_SCALE = [st.Hard(), st.Soft(), st.Firm(), st.Firm(3.5), st.Garrote()]
METHODS_OF_ANY_SCALE = [
    *("score", "mixture", "jansen", "bootstrap", "little"),
    *(st.Score("plugin"), st.Score(density="order4"), st.Score(density="sinc"), st.Score(density="mixture")),
]


@given(
    exponents=some.lists(some.floats(-308, 308), min_size=1, max_size=20),
    extreme=some.sampled_from([0.0, 5e-324, 1e300, 1.7e308, -1.79e308]),
    sigma=some.sampled_from([1e-150, 1e-20, 0.3, 1.0, 1e20, 1e150]),
    rule=some.sampled_from(RULES_OF_ANY_SCALE),
    method=some.sampled_from(METHODS_OF_ANY_SCALE),
    thresholds=some.sampled_from(["all", None, [0.0, 1.0, 1e10, 1e300]]),
)
def test_entries_of_all_scales_give_numbers_or_infinity(exponents, extreme, sigma, rule, method, thresholds):
    """Squares beyond the largest double are infinite. There is no NaN, no minus infinity and no warning."""
    y = np.append(10.0 ** np.array(exponents), extreme)
    curve = st.risk_curve(y, thresholds, sigma=sigma, rule=rule, method=method)
    for values in (curve.risk, curve.dof, curve.stderr):
        assert (np.isfinite(values) | (values == np.inf)).all()


@pytest.mark.parametrize("rule", RULES_OF_ANY_SCALE[:3], ids=repr)
@pytest.mark.parametrize("method", ["score", "mixture"])
def test_all_thresholds_of_many_entries_of_all_scales(rng, rule, method):
    """9000 entries take the fast way, on cells that end at the largest double."""
    y = rng.normal(size=9000)
    y[:4] = 1.7e308, 1e308, -1.79e308, 1e300
    curve = st.risk_curve(y, "all", sigma=1.0, rule=rule, method=method)
    assert np.isfinite(curve.risk[:-5]).all()
    assert (curve.risk[-5:] == np.inf).all()


@pytest.mark.parametrize("sigma", [1e-150, 1e-20, 1.0, 1e150])
@pytest.mark.parametrize("largest", [1.0, 1e300, 1.3e308, 1.7e308])
def test_tables_of_cells_stay_inside_up_to_the_largest_double(sigma, largest):
    """Where the largest edge, in units of the narrow cells, overflows, its key once led past the last cell."""
    narrow = sigma * np.arange(10_000) / 20  # most cells are narrow
    cells = Cells.make(np.union1d(narrow, largest), as_rule("hard"), sigma, sigma)
    assert 0 <= cells.table.table.min() <= cells.table.table.max() < len(cells)
    assert cells.have(np.array([largest])).all()
