"""The race of parameters for more probes: who stays, what the risks are, and what it is good for."""

import numpy as np
import pytest

import scorethresh as st
from scorethresh.noise.gaussian import GaussianNoise
from scorethresh.risk.monte_carlo import ProbePlan, probe_rows
from scorethresh.risk.probe_terms import RiskTerms
from scorethresh.select.race import Race, comparing_step, paired_risks


def rows_of(risks, slope=0.0):
    """Terms whose risk is the given one, split between loss and divergence, with a noise energy of 100."""
    return [RiskTerms(float(r) + 100 - 2 * 7, 7.0, 0.0, slope) for r in risks]


def run(table, first=2, last=8, energy=100.0, start=None, slope=0.0):
    """Race parameters, the columns of a table of risks by probe; give the number of probes of each."""
    table = np.asarray(table, dtype=float)
    asked = []

    def more(some, start, stop):
        asked.append((tuple(some), start, stop))
        return [rows_of(table[start:stop, p], slope) for p in some]

    start = first if start is None else start
    begun = [rows_of(table[:start, p], slope) for p in range(table.shape[1])]
    found = Race(start, first, last).run(begun, energy, more)
    for p, rows in enumerate(found):
        assert [r.loss + 2 * r.divergence - energy for r in rows] == pytest.approx(table[: len(rows), p])
    return [len(rows) for rows in found], asked


def test_numbers_of_probes_and_steps():
    races = [Race.for_size(n) for n in (10**6, 1024, 1023, 256, 1)]
    assert [(race.start, race.first, race.last) for race in races] == [
        (1, 2, 8),
        (1, 2, 8),
        (1, 3, 12),
        (4, 8, 32),
        (1024, 2048, 8192),
    ]
    assert [comparing_step(n) for n in (1, 1024, 16384, 10**6)] == pytest.approx([0.3, 0.3, 0.2010, 0.0883], abs=1e-4)


def test_a_clear_winner_ends_the_race():
    """Common ups and downs do not matter."""
    common = np.random.default_rng(0).normal(0.0, 50.0, (8, 1))
    assert run(common + np.array([10.0, 20.0, 30.0]))[0] == [2, 2, 2]


def test_the_hopeless_leave_after_one_probe():
    """With a slope of 2, one probe may be wrong by 4, and a difference by 8: twice that is far enough."""
    table = np.tile([10.0, 14.0, 25.9, 26.1], (8, 1))
    probes, asked = run(table, start=1, slope=2.0)
    assert asked[0] == ((0, 1, 2), 1, 2)
    assert probes[3] == 1
    assert run(table, start=1, first=3, slope=2.0)[1][0] == ((0, 1, 2), 1, 2)  # twice as many, and then all
    # Four probes are wrong by half as much.
    assert run(np.tile([10.0, 17.9, 18.1], (16, 1)), start=4, first=8, last=16, slope=2.0)[1][0] == ((0, 1), 4, 8)


def test_what_is_left_out_early_is_never_the_best():
    """The bound on the error of one probe holds: 40 thresholds, whose best two differ by little, and 30 seeds."""
    rng = np.random.default_rng(5)
    x0 = np.where(rng.random(4096) < 0.1, 4.0, 0.0)
    y = x0 + rng.normal(size=x0.size)
    noise, thresholds = GaussianNoise(np.ones(1)), np.linspace(1.0, 5.0, 40)

    def rows(threshold, start, stop, seed):
        plan = ProbePlan(0.25, stop, seed)
        return probe_rows(lambda z: np.where(np.abs(z) >= threshold, z, 0.0), y, noise, plan, start=start)

    every = [[rows(t, 0, 1, seed) for t in thresholds] for seed in range(30)]
    best = int(np.argmin([np.mean([own[k][0].loss + 2 * own[k][0].divergence for own in every]) for k in range(40)]))
    for seed, own in enumerate(every):
        asked = []

        def more(some, start, stop, seed=seed, asked=asked):
            asked.append(some)
            return [rows(thresholds[p], start, stop, seed) for p in some]

        Race(1, 2, 2).run(own, 4096.0, more)
        assert best in asked[0]
        assert len(asked[0]) < 30


def test_those_that_differ_by_little_go_on_and_others_do_not():
    rng = np.random.default_rng(1)
    table = 10 + rng.normal(0.0, 2.0, (8, 3)) + [0.0, 0.0, 40.0]
    probes, asked = run(table)
    assert probes == [8, 8, 2]
    assert asked == [((0, 1), 2, 4), ((0, 1), 4, 8)]


def test_differences_below_two_per_cent_do_not_matter():
    noise = np.outer([1, -1] * 4, [1, -1])
    assert run(10 + 0.1 * noise)[0] == [2, 2]
    assert run(10 + 0.2 * noise)[0] == [8, 8]  # a standard error of 0.2 over the root of 2 and more


def test_a_lucky_pair_of_probes_does_not_decide_alone():
    """The second parameter looks certain by its own two probes. The third shows how much they vary."""
    table = [[10.0, 11.0, 9.0], [10.0, 11.0, 17.0], [10.0, 6.0, 13.0], [10.0, 6.0, 13.0]]
    assert run(table, last=4)[0] == [4, 4, 4]


def test_one_parameter_needs_no_race():
    assert run([[1.0], [2.0], [3.0]])[0] == [2]
    assert run(np.ones((4, 3)), first=4, last=4)[0] == [4, 4, 4]


def test_risks_are_paired_with_the_best():
    """The probes of the best, of mean 12, say that the first two are too low by 2 for everyone."""
    best, other, few = np.array([9.0, 11.0, 13.0, 15.0]), np.array([9.0, 13.0, 13.0, 17.0]), np.array([12.0, 12.0])
    assert paired_risks([few, best, other]) == pytest.approx([14.0, 12.0, 13.0])
    assert paired_risks([best]) == pytest.approx([12.0])


def test_later_probes_go_on_where_the_first_ended():
    """Their rows are those of one plan with all of them, and no probe comes twice."""
    y = np.random.default_rng(3).normal(size=500)
    noise = GaussianNoise(np.ones(1))

    def rows(start, stop):
        return probe_rows(lambda z: 0.3 * z + np.where(z > 1, z, 0), y, noise, ProbePlan(0.2, stop), start=start)

    assert rows(0, 2) + rows(2, 4) == rows(0, 4)
    assert len({row.divergence for row in rows(0, 4)}) == 4


def lowest_leaves(y, leaves):
    from sklearn.tree import DecisionTreeRegressor

    X = np.arange(y.size, dtype=float)[:, None]
    return DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=0).fit(X, y).predict(X)


@pytest.mark.slow
def test_trees_are_tuned_better_than_with_a_fixed_number():
    """Trees jump: a split moves as a whole, and two probes see it or not. The race costs a third more calls."""
    pytest.importorskip("sklearn")
    leaves = [4, 8, 16, 32, 64, 128]
    regrets, fixed, calls = [], [], []
    for seed in range(12):
        rng = np.random.default_rng([7, seed])
        x0 = np.cumsum(np.bincount(rng.integers(0, 4096, 7), rng.normal(0.0, 5.0, 7), 4096))
        y = x0 + rng.normal(size=x0.size)
        losses = np.array([np.sum((lowest_leaves(y, p) - x0) ** 2) for p in leaves])
        for options, out in (({}, regrets), ({"probes": 2, "step": 4096**-0.2}, fixed)):
            found = st.select_parameter(lowest_leaves, y, leaves, sigma=1.0, **options)
            out.append(losses[leaves.index(found.parameter)] / losses.min())
            calls.append(found.calls)
    assert np.mean(regrets) < 1.1
    assert np.mean(regrets) < np.mean(fixed) - 0.05
    assert np.mean(calls[::2]) < 1.9 * np.mean(calls[1::2])
