import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import scorethresh as st
from helpers import RULES, TwoSteps, spikes
from oracles import score_sum
from scorethresh.sample.magnitudes import default_thresholds


def brute_force(y, sigma, thresholds):
    """The paper's algorithm, line by line."""
    h = 6 * sigma / y.size ** (1 / 3)
    scores = [score_sum(y, t, sigma, h)[1] for t in thresholds]
    k = int(np.argmin(scores))
    return thresholds[k], scores[k] * sigma**2


@given(seed=some.integers(0, 2**32 - 1), size=some.integers(1, 60), sigma=some.sampled_from([0.01, 1.0, 30.0]))
def test_selection_is_the_papers_algorithm(seed, size, sigma):
    rng = np.random.default_rng(seed)
    y = sigma * spikes(rng, size, 0.2)
    thresholds = sigma * np.linspace(0.03, 6, 25)
    best, risk = brute_force(y, sigma, thresholds)
    selection = st.select_threshold(y, sigma=sigma, thresholds=thresholds, method="score")
    assert selection.threshold == best
    assert selection.risk == pytest.approx(risk, rel=1e-10, abs=1e-10 * size * sigma**2)
    np.testing.assert_array_equal(selection.estimate, np.where(np.abs(y) >= best, y, 0))
    k = np.flatnonzero(selection.curve.thresholds == best)[0]
    assert (selection.risk, selection.dof) == (selection.curve.risk[k], selection.curve.dof[k])


@given(seed=some.integers(0, 2**32 - 1), size=some.integers(1, 50))
def test_all_thresholds_cover_every_possible_estimate(seed, size):
    """P + 1 different estimates: each kills the k smallest; the tried thresholds give them all."""
    y = np.random.default_rng(seed).normal(scale=2, size=size)
    selection = st.select_threshold(y, sigma=1.0, thresholds="all", method="score")
    tried = selection.curve.thresholds
    assert {np.count_nonzero(st.Hard()(y, t)) for t in tried} == set(range(size + 1))
    np.testing.assert_allclose(tried[1:-1], np.sort(np.abs(y)), rtol=1e-15)
    best, risk = brute_force(y, 1.0, np.concatenate([[0.0], np.sort(np.abs(y)), [1e9]]))
    assert selection.threshold == (np.inf if best == 1e9 else pytest.approx(best, rel=1e-15))
    assert selection.risk == pytest.approx(risk, rel=1e-10, abs=1e-10 * size)


def test_all_thresholds_of_a_large_sample(rng):
    y = spikes(rng, 100_000)
    every = st.select_threshold(y, sigma=1.0, thresholds="all", method="score")
    grid = st.select_threshold(y, sigma=1.0, method="score")
    assert every.curve.thresholds.size == 100_002
    assert every.risk <= grid.risk + 1e-9 * abs(grid.risk)
    assert every.risk == pytest.approx(grid.risk, rel=0.01)


def test_all_with_repeated_values_tries_each_once():
    curve = st.risk_curve([1.0, -1.0, 2.0, 2.0, 0.0], "all", sigma=1.0)
    assert curve.thresholds.size == 5
    with pytest.raises(ValueError, match="compressed sample no longer has"):
        st.risk_curve(st.Magnitudes.compress([1.0], sigma=1.0), "all", sigma=1.0)


FAMILIES = {
    "0.5% at 5": (0.005, 5.0),
    "2% at 3": (0.02, 3.0),
    "10% at 4": (0.1, 4.0),
    "1% at 10": (0.01, 10.0),
}


@pytest.mark.parametrize("size", [1024, 50_000])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_finer_grid_changes_the_risk_by_less_than_a_thousandth(family, size):
    """The least true risk on the default grid against that on one sixteen times finer."""
    fraction, height = FAMILIES[family]
    x0 = np.zeros(size)
    x0[: int(fraction * size)] = height
    grid = default_thresholds(size, 1.0)
    fine = np.unique(np.concatenate([np.linspace(a, b, 17) for a, b in itertools.pairwise(grid[:-1])]))
    a, b = (st.select_threshold(x0, sigma=1.0, thresholds=t, method=st.Oracle(x0)) for t in (grid, fine))
    assert a.risk <= 1.001 * b.risk


def test_default_grid_starts_at_nought_and_passes_the_universal_threshold():
    for size in (1, 2, 100, 4096, 4097, 10**8):
        grid = default_thresholds(size, 2.5)
        assert grid[0] == 0
        assert grid[-1] == np.inf
        assert grid[-2] > 2.5 * np.sqrt(2 * np.log(size))
        assert np.diff(grid[:-1]).max() <= 2.5 / 32 * (1 + 1e-12)


@pytest.mark.parametrize("size", [500, 20_000])
def test_status(rng, size):
    noise = rng.normal(size=size)
    dense = noise + 20 * np.sign(noise)
    assert st.select_threshold(noise, sigma=1.0).status == "kills all"
    assert st.select_threshold(dense, sigma=1.0).status == "keeps all"
    assert st.select_threshold(spikes(rng, size), sigma=1.0).status == "interior"
    high = st.select_threshold(noise, sigma=1.0, thresholds=[1.5, 1.75, 2.0])
    assert (high.status, high.threshold) == ("edge", 2.0)
    low = st.select_threshold(spikes(rng, size, 0.3, 3.0), sigma=1.0, thresholds=[2.5, 3.5, 4.5])
    assert (low.status, low.threshold) == ("edge", 2.5)


@pytest.mark.parametrize("method", ["mixture", "score"])
@pytest.mark.parametrize("size", [1000, 20_000])
def test_the_end_of_the_default_grid_is_no_edge(size, method):
    """Five large spikes: beyond the grid lies no noise, and up to the first spike every threshold gives this estimate.

    The remedy of an edge, to leave thresholds out, would be no help.
    """
    ends = 0
    for seed in range(8):
        y = np.random.default_rng(seed).normal(size=size)
        y[:5] += 20
        chosen = st.select_threshold(y, sigma=1.0, method=method)
        assert chosen.status == "interior"
        ends += chosen.threshold == chosen.curve.thresholds[-2]
        np.testing.assert_array_equal(np.flatnonzero(chosen.estimate)[:5], np.arange(5))
    assert ends > 0  # otherwise this test would test nothing


def test_the_end_of_ones_own_range_is_an_edge_while_there_is_noise_beyond_it():
    y = np.random.default_rng(1).normal(size=1000)
    y[:5] += 20
    last = default_thresholds(1000, 1.0)[-2]
    method = st.Oracle(np.where(np.arange(1000) < 5, 20.0, 0.0))
    for end, status in ((2.5, "edge"), (last, "interior"), (last + 3, "interior")):
        grid = np.linspace(1.0, end, 9)
        chosen = st.select_threshold(y, sigma=1.0, thresholds=grid, method=method)
        assert (chosen.threshold, chosen.status) == (grid[-1], status)


def test_a_threshold_that_a_selector_picks_beyond_the_grid_is_no_edge():
    chosen = st.select_threshold([0.1] * 99 + [9.0], sigma=1.0, method="fdr")
    assert (chosen.threshold, chosen.status) == (9.0, "interior")


def test_threshold_0_is_no_edge():
    """There is no threshold below it, even if the rule at 0 is not the identity and y is not kept as it is."""

    class HardRidge(st.PiecewiseLinear):
        def pieces(self, threshold):
            return st.Piece(0.0, 0.0, 0.0), st.Piece(threshold, 0.0, 1 / 1.1)

        def jumps(self, threshold):
            return [(threshold, threshold / 1.1)]

    y = np.random.default_rng(0).choice([-9.0, 9.0], 300) + np.random.default_rng(1).normal(size=300)
    chosen = st.select_threshold(y, sigma=1.0, rule=HardRidge(), thresholds=[0.0, 9.0, 10.0])
    assert (chosen.threshold, chosen.status) == (0.0, "interior")


def test_a_step_of_height_0_kills_all():
    """At threshold 0 a step is zero, though no entry lies below the threshold."""
    chosen = st.select_threshold(np.random.default_rng(0).normal(size=50), sigma=1.0, rule="step", thresholds=[0.0])
    assert (chosen.status, np.count_nonzero(chosen.estimate)) == ("kills all", 0)


def test_every_status_has_a_remedy():
    remedies = [status.remedy for status in st.Status]
    assert len(set(remedies)) == len(remedies) == 4
    assert "Widen the range" in st.Status.EDGE.remedy
    assert all("sigma" in s.remedy for s in (st.Status.KEEPS_ALL, st.Status.KILLS_ALL))


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_can_be_selected_for(rng, rule):
    """The loss at the chosen threshold is near the least there is; exact and compressed samples."""
    for size in (2000, 20_000):
        x0 = np.zeros(size)
        x0[: size // 20] = 6.0
        y = x0 + rng.normal(size=size)
        chosen = st.select_threshold(y, sigma=1.0, rule=rule)
        oracle = st.select_threshold(y, sigma=1.0, rule=rule, method=st.Oracle(x0), thresholds=np.arange(0, 5, 0.125))
        loss = ((chosen.estimate - x0) ** 2).sum()
        # The paper's bandwidth is too wide for 2000 entries.
        assert loss < (1.5 if size == 2000 else 1.2) * oracle.risk
        assert chosen.estimate.shape == y.shape


def test_estimate_keeps_shape_and_dtype_and_y_is_untouched(rng):
    y = spikes(rng, 6000).astype(np.float32).reshape(60, 100)
    before = y.copy()
    y.flags.writeable = False
    selection = st.select_threshold(y, sigma=1.0)
    assert selection.estimate.shape == (60, 100)
    assert selection.estimate.dtype == np.float32
    np.testing.assert_array_equal(y, before)
    assert selection.estimate is selection.estimate


def test_a_sample_has_a_threshold_but_no_estimate(rng):
    y = spikes(rng, 9000)
    for sample in (st.Magnitudes.exact(y), st.Magnitudes.compress(y, sigma=1.0)):
        selection = st.select_threshold(sample, sigma=1.0)
        assert selection.threshold == pytest.approx(st.select_threshold(y, sigma=1.0).threshold, abs=0.05)
        with pytest.raises(AttributeError, match=r"selection\.rule\(y, selection\.threshold\)"):
            selection.estimate  # noqa: B018


def test_a_selection_holds_what_was_passed(rng):
    y, rule = spikes(rng, 200), TwoSteps()
    chosen = st.select_threshold(y, sigma=1.0, rule=rule)
    assert chosen.data is y
    assert chosen.rule is rule
    np.testing.assert_array_equal(chosen.estimate, rule(y, chosen.threshold))
    sample = st.Magnitudes.exact(y)
    assert st.select_threshold(sample, sigma=1.0).data is sample
    assert st.select_threshold(y, sigma=1.0, rule="soft").rule == st.Soft()


def test_array_likes_are_accepted(rng):
    class Wrapped:
        def __init__(self, a):
            self.a = a

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.a, dtype=dtype)

    y = spikes(rng, 300)
    expected = st.select_threshold(y, sigma=1.0)
    for other in (y.tolist(), Wrapped(y)):
        selection = st.select_threshold(other, sigma=1.0)
        assert selection.risk == expected.risk
        assert np.size(selection.estimate) == 300


def test_repr_reads_well(rng):
    selection = st.select_threshold(spikes(rng, 1000), sigma=1.0)
    assert repr(selection).startswith(f"<Selection: threshold {selection.threshold:.6g} (interior), estimated risk")
    assert "1000 entries, sigma 1; least risk" in repr(selection.curve)
