"""Singular values: divergences by differences, risks by Monte Carlo, the noise level, and the door."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hyp

import oracles
import scorethresh as st
from scorethresh.noise.bulk import bulk_quantiles, fit_bulk, spike_root
from scorethresh.risk.plug_in import EmpiricalBulk, WhiteBulk, empirical_bulk
from scorethresh.risk.singular_values import (
    Shape,
    hard_curve,
    kernel_at,
    shrink_curve,
    shrunk_values,
    soft_curve,
    spectral_divergence,
    weighted_divergence,
)

SHAPES = [(7, 4), (4, 7), (5, 5)]


def spiked(rng, m, n, spikes, complex_entries=False):
    """A signal with these singular values, and the same with noise of level 1 in every part."""
    k = len(spikes)

    def draw(*shape):
        a = rng.normal(size=shape)
        return a + 1j * rng.normal(size=shape) if complex_entries else a

    u, v = np.linalg.qr(draw(m, k))[0], np.linalg.qr(draw(n, k))[0]
    signal = (u * np.asarray(spikes, dtype=float)) @ v.conj().T
    return signal, signal + draw(m, n)


def small(shape, complex_entries, seed=0):
    rng = np.random.default_rng([seed, *shape])
    return spiked(rng, *shape, [14.0, 8.0], complex_entries)[1]


@pytest.mark.parametrize("complex_entries", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_divergences_are_traces_of_the_jacobian(shape, complex_entries):
    y = small(shape, complex_entries)
    s = np.linalg.svd(y, compute_uv=False)
    form = Shape(*shape, 1 + complex_entries)
    between = np.array([(s[1] + s[2]) / 2])

    def slow(replace):
        return oracles.jacobian_trace(lambda y: oracles.spectral(y, replace), y) / form.parts

    jump = between[0] * kernel_at(s, between[0], form).sum() / form.parts
    assert hard_curve(s, between, form).dof[0] - jump == pytest.approx(slow(lambda s: s * (s > between[0])), rel=1e-6)
    assert soft_curve(s, np.array([2.0]), form).dof[0] == pytest.approx(slow(lambda s: np.maximum(s - 2, 0)), rel=1e-6)

    def shrink(s):
        return np.append(shrunk_values(s, 2, form)[0], np.zeros(s.size - 2))

    assert spectral_divergence(s, *shrunk_values(s, 2, form), form) == pytest.approx(slow(shrink), rel=1e-6)


@pytest.mark.parametrize("complex_entries", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_weighted_divergence_is_the_trace_with_the_covariance(shape, complex_entries):
    y = small(shape, complex_entries)
    rng = np.random.default_rng(3)
    row, column = (a @ a.T + np.eye(len(a)) for a in (rng.normal(size=(n, n)) for n in shape))
    form = Shape(*shape, 1 + complex_entries)
    u, s, vh = np.linalg.svd(y, full_matrices=False)
    between = (u.conj().T @ row @ u, vh @ column @ vh.conj().T)
    kept = s[s > 2.0]
    totals = (np.trace(row), np.trace(column))
    fast = weighted_divergence(s, kept - 2.0, np.ones_like(kept), form, between, totals)

    def soft(s):
        return np.maximum(s - 2.0, 0.0)

    slow = oracles.jacobian_trace(lambda y: oracles.spectral(y, soft), y, (row, column)) / form.parts
    assert fast == pytest.approx(slow, rel=1e-6)


@pytest.mark.parametrize("shape", [(60, 40), (30, 50)])
def test_shrinkage_is_that_of_its_definition(shape):
    s = 1.05 * Shape(*shape).edge * np.array([3.0, 1.7, 1.65, 1.0])
    assert shrunk_values(s, 4, Shape(*shape))[0] == pytest.approx(oracles.finite_size_shrinkage(s, 4, *shape), rel=1e-6)


def test_degrees_of_freedom_of_the_reference():
    """60 x 40, spikes 40, 30, 22, 18, 15: DOF 1314.9, 770.6 and 567.2 at 10, 12 and 13, from a Monte Carlo run."""
    rng = np.random.default_rng(0)
    form, t = Shape(60, 40), np.array([10.0, 12.0, 13.0])
    draws = [
        hard_curve(np.linalg.svd(spiked(rng, 60, 40, [40, 30, 22, 18, 15])[1], compute_uv=False), t, form).dof
        for _ in range(200)
    ]
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    # The kernel, one noise level wide, blurs the density: by 2% in the middle, where that bends most.
    assert (np.abs(np.mean(draws, axis=0) - [1314.9, 770.6, 567.2]) <= 3 * error + 0.02 * 770.6).all()


@pytest.mark.parametrize("complex_entries", [False, True])
@pytest.mark.parametrize("rule", ["hard", "shrink", "soft"])
def test_risk_is_right_in_the_mean(rule, complex_entries):
    rng = np.random.default_rng([7, complex_entries])
    off, claimed = [], []
    for _ in range(150):
        signal, y = spiked(rng, 30, 20, [30.0, 18.0, 11.0], complex_entries)
        found = st.select_rank(y, sigma=1.0, rule=rule)
        off.append(found.risk - np.linalg.norm(found.estimate - signal) ** 2)
        claimed.append(found.stderr)
    error = np.std(off) / np.sqrt(len(off))
    # What was chosen by the risk has a risk that is a little too low: less than a fifth of its standard error.
    assert abs(np.mean(off)) < 3 * error + 0.2 * np.mean(claimed)
    assert 0.75 < np.std(off) / np.mean(claimed) < 1.2


def test_marchenko_pastur_quantiles_and_stieltjes():
    for m, n in [(60, 40), (40, 60), (30, 30), (500, 20)]:
        shares = np.array([0.02, 0.3, 0.5, 0.9, 0.999])
        for share, s in zip(shares, bulk_quantiles(m, n, shares), strict=True):
            assert oracles.marchenko_pastur_cdf(s, m, n) == pytest.approx(share, abs=2e-5)
    # 2 sum s^2/(s^2 - s_j^2) = s^2 - |m - n| - root, against a large matrix.
    s = np.linalg.svd(np.random.default_rng(0).normal(size=(600, 400)), compute_uv=False)
    at = 1.2 * (np.sqrt(600) + np.sqrt(400))
    assert 2 * np.sum(at**2 / (at**2 - s**2)) == pytest.approx(at**2 - 200 - spike_root(at, 600, 400), rel=2e-3)


@pytest.mark.parametrize(("shape", "within"), [((60, 40), 0.02), ((300, 40), 0.01), ((30, 600), 0.01)])
def test_noise_level_is_read_off_the_bulk(shape, within):
    rng = np.random.default_rng(1)
    e = (shape[0] * shape[1]) ** 0.25
    levels = []
    for _ in range(30):
        s = np.linalg.svd(spiked(rng, *shape, [20 * e, 3 * e, 1.5 * e])[1], compute_uv=False)
        fit = fit_bulk(3.0 * s, *shape)
        levels.append(fit.sigma / 3)
        assert not fit.reason
    assert abs(np.mean(levels) - 1) < within


def test_complex_level_is_that_of_one_part():
    rng = np.random.default_rng(5)
    signal, y = spiked(rng, 50, 40, [60.0, 40.0], complex_entries=True)
    found = st.select_rank(0.5 * y)
    assert found.sigma == pytest.approx(0.5, rel=0.05)
    assert found.rank == 2
    assert found.dof == pytest.approx(2 * 2 * (50 + 40 - 2), rel=0.1)
    assert np.linalg.norm(found.estimate - 0.5 * signal) ** 2 == pytest.approx(found.risk, abs=2 * found.stderr)


def test_noise_has_rank_zero():
    rng = np.random.default_rng(2)
    found = st.select_rank(rng.normal(size=(200, 50, 30)), sigma=1.0)
    # The largest value of noise now and then passes for signal.
    assert np.mean(found.rank == 0) > 0.95
    quiet = found[int(np.argmin(found.rank))]
    assert quiet.status is st.RankStatus.NOISE_ONLY
    assert "zero is the best estimate" in quiet.status.remedy
    assert not quiet.estimate.any()
    assert abs(quiet.risk) < 3 * quiet.stderr


def test_a_level_that_cannot_be_known_is_said_so():
    rng = np.random.default_rng(0)
    power_law = (np.linalg.qr(rng.normal(size=(40, 40)))[0] * (300 / np.arange(1, 41))) @ rng.normal(size=(40, 40)) / 6
    with pytest.warns(st.AssumptionWarning, match="rank is not low.*Pass sigma"):
        found = st.select_rank(power_law + rng.normal(size=(40, 40)))
    assert found.status is st.RankStatus.LEVEL_UNKNOWN
    with pytest.warns(st.AssumptionWarning, match="too few"):
        st.select_rank(rng.normal(size=(50, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        st.select_rank(rng.normal(size=(50, 4)), sigma=1.0)


def test_shrinkage_beats_the_best_rank():
    rng = np.random.default_rng(4)
    shrunk, best = [], []
    for _ in range(60):
        signal, y = spiked(rng, 60, 40, [30.0, 16.0, 13.0, 11.0])
        found = st.select_rank(y, sigma=1.0, rule="shrink")
        shrunk.append(np.linalg.norm(found.estimate - signal) ** 2)
        u, s, vh = np.linalg.svd(y)
        ranks = [np.linalg.norm((u[:, :k] * s[:k]) @ vh[:k] - signal) ** 2 for k in range(8)]
        best.append(min(ranks))
    assert np.mean(shrunk) < 0.85 * np.mean(best)


def test_the_chosen_rank_is_close_to_the_best():
    rng = np.random.default_rng(8)
    hard, best = [], []
    for height in (9.0, 13.0, 20.0):
        for _ in range(40):
            signal, y = spiked(rng, 70, 45, height * np.array([2.0, 1.5, 1.2, 1.0]))
            hard.append(np.linalg.norm(st.select_rank(y, sigma=1.0).estimate - signal) ** 2)
            u, s, vh = np.linalg.svd(y)
            best.append(min(np.linalg.norm((u[:, :k] * s[:k]) @ vh[:k] - signal) ** 2 for k in range(8)))
    assert np.mean(hard) < 1.02 * np.mean(best)


def test_shrinkage_is_that_of_gavish_and_donoho_for_large_matrices():
    form = Shape(40_000, 10_000)
    s = form.edge * np.array([2.0])
    expected = np.sqrt((s**2 - 50_000) ** 2 - 4 * 40_000 * 10_000) / s
    assert shrunk_values(s, 1, form)[0] == pytest.approx(expected, rel=1e-3)
    assert WhiteBulk(40_000, 10_000).overlap(s) == pytest.approx(expected, rel=1e-12)


def test_empirical_bulk_of_white_noise_is_the_white_bulk():
    rng = np.random.default_rng(3)
    m, n = 500, 300
    s = np.linalg.svd(spiked(rng, m, n, [60.0, 50.0])[1], compute_uv=False)
    white, bulk = WhiteBulk(m, n), empirical_bulk(s, m, n)
    assert isinstance(bulk, EmpiricalBulk)
    assert bulk.overlap(s[:2]) == pytest.approx(white.overlap(s[:2]), rel=0.02)
    assert bulk.energy(s[:2]) == pytest.approx(white.energy(s[:2]), rel=0.02)
    assert not bulk.overlap(s[2:]).any()


def correlated(rng, m, n):
    row, column = (0.6 ** np.abs(np.subtract.outer(np.arange(k), np.arange(k))) for k in (m, n))
    roots = [np.linalg.cholesky(c) for c in (row, column)]
    return row, column, roots[0] @ rng.normal(size=(m, n)) @ roots[1].T


@pytest.mark.parametrize("rule", ["hard", "shrink"])
def test_known_covariances_are_whitened(rule):
    rng = np.random.default_rng(6)
    off, claimed, white, plain = [], [], [], []
    for _ in range(80):
        row, column, noise = correlated(rng, 40, 30)
        signal = spiked(rng, 40, 30, [40.0, 25.0, 15.0])[0]
        found = st.select_rank(signal + 2 * noise, sigma=2.0, rule=rule, row_covariance=row, column_covariance=column)
        loss = np.linalg.norm(found.estimate - signal) ** 2
        off.append(found.risk - loss)
        claimed.append(found.stderr)
        white.append(loss)
        plain.append(np.linalg.norm(st.select_rank(signal + 2 * noise, sigma=2.0, rule=rule).estimate - signal) ** 2)
    assert abs(np.mean(off)) < 3 * np.std(off) / np.sqrt(len(off)) + 0.2 * np.mean(claimed)
    assert 0.6 < np.std(off) / np.mean(claimed) < 1.3
    assert np.mean(white) < 0.8 * np.mean(plain)
    # The level is found too, for the covariances fix it up to a factor.
    found = st.select_rank(signal + 2 * noise, rule=rule, row_covariance=row, column_covariance=column)
    assert found.sigma == pytest.approx(2.0, rel=0.1)


def test_unknown_correlated_noise():
    rng = np.random.default_rng(9)
    hard, shrunk, best, predicted = [], [], [], []
    for _ in range(30):
        noise = correlated(rng, 120, 80)[2]
        signal = spiked(rng, 120, 80, [120.0, 80.0, 50.0])[0]
        y = signal + noise
        found = [st.select_rank(y, noise="correlated", rule=rule) for rule in ("hard", "shrink")]
        losses = [np.linalg.norm(one.estimate - signal) ** 2 for one in found]
        hard.append(losses[0])
        shrunk.append(losses[1])
        predicted.append(found[0].risk)
        u, s, vh = np.linalg.svd(y)
        best.append(min(np.linalg.norm((u[:, :k] * s[:k]) @ vh[:k] - signal) ** 2 for k in range(8)))
    assert np.mean(hard) < 1.02 * np.mean(best)
    assert np.mean(shrunk) < np.mean(best)
    # The energy of such noise is not known, so neither is the risk, but roughly.
    assert np.mean(predicted) == pytest.approx(np.mean(hard), rel=0.3)
    # A bound that is too low takes signal for noise.
    assert st.select_rank(y, noise="correlated", max_rank=1).rank < 3
    assert st.select_rank(y, noise="correlated", max_rank=6).rank == 3


@pytest.mark.parametrize("rule", ["hard", "shrink"])
@pytest.mark.parametrize("sigma", [None, 1.0])
def test_leading_values_decide_as_all_do(rule, sigma):
    rng = np.random.default_rng(11)
    signal, y = spiked(rng, 300, 200, [90.0, 60.0, 45.0])
    whole = st.select_rank(y, sigma=sigma, rule=rule)
    part = st.select_rank(y, sigma=sigma, rule=rule, max_rank=12)
    assert part.singular_values[:3] == pytest.approx(whole.singular_values[:3], rel=1e-6)
    assert part.singular_values == pytest.approx(whole.singular_values[:12], rel=0.03)
    assert (part.singular_values <= whole.singular_values[:12] * (1 + 1e-12)).all()
    assert part.sigma == pytest.approx(whole.sigma, rel=0.01)
    losses = [np.linalg.norm(one.estimate - signal) ** 2 for one in (part, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert part.rank == whole.rank == 3
    if sigma:
        assert part.risk == pytest.approx(whole.risk, abs=0.3 * whole.stderr)
        assert part.dof == pytest.approx(whole.dof, rel=0.1)


def test_leading_values_close_to_the_edge_and_of_stacks():
    rng = np.random.default_rng(16)
    edge = np.sqrt(200) + np.sqrt(150)
    stack = np.stack([spiked(rng, 200, 150, [0.85 * edge, 0.75 * edge], complex_entries=True)[1] for _ in range(3)])
    whole = st.select_rank(stack, sigma=1.0)
    part = st.select_rank(stack, sigma=1.0, max_rank=6)
    assert part.estimate.shape == stack.shape
    for i in range(3):
        above = whole.singular_values[i] > 1.1 * np.sqrt(2) * edge
        assert part.singular_values[i, above[:6]] == pytest.approx(whole.singular_values[i, above], rel=0.01)
    nothing = st.select_rank(np.zeros((30, 20)), max_rank=4)
    assert nothing.status is st.RankStatus.NO_NOISE


def test_too_few_leading_values_are_noticed():
    rng = np.random.default_rng(12)
    _, y = spiked(rng, 100, 60, [90.0, 60.0, 45.0])
    with pytest.warns(st.AssumptionWarning, match="raise max_rank"):
        st.select_rank(y, max_rank=2)


def test_stacks_are_their_matrices():
    rng = np.random.default_rng(13)
    y = np.stack([spiked(rng, 20, 12, [h, h / 2])[1] for h in (0.0, 10.0, 20.0, 40.0)]).reshape(2, 2, 20, 12)
    sigma = np.array([[1.0, 1.1], [0.9, 1.0]])
    whole = st.select_rank(y, sigma=sigma, rule="shrink")
    assert whole.rank.shape == (2, 2)
    for i in np.ndindex(2, 2):
        one = st.select_rank(y[i], sigma=sigma[i], rule="shrink")
        assert (whole[i].rank, whole[i].status, whole[i].risk) == (one.rank, one.status, one.risk)
        assert whole[i].estimate == pytest.approx(one.estimate, abs=1e-12)
    assert "4 matrices of 20 x 12" in repr(whole)
    with pytest.raises(TypeError, match="not of a stack"):
        whole[0, 0][0]
    with pytest.raises(ValueError, match=r"selection\[0\]"):
        whole.plot()


@given(hyp.integers(0, 10**6), hyp.sampled_from(["hard", "shrink", "soft"]), hyp.sampled_from([1e-100, 1e-3, 1e100]))
def test_scaling_and_transposing_change_nothing(seed, rule, scale):
    rng = np.random.default_rng(seed)
    _, y = spiked(rng, 9, 14, [12.0, 7.0], complex_entries=bool(seed % 2))
    one = st.select_rank(y, sigma=1.0, rule=rule)
    scaled = st.select_rank(y * scale, sigma=scale, rule=rule)
    turned = st.select_rank(y.T, sigma=1.0, rule=rule)
    assert scaled.rank == turned.rank == one.rank
    assert scaled.estimate / scale == pytest.approx(one.estimate, abs=1e-9)
    assert pytest.approx(one.estimate, abs=1e-9) == turned.estimate.T
    assert scaled.risk / scale**2 == pytest.approx(one.risk, rel=1e-8, abs=1e-8)
    assert turned.risk == pytest.approx(one.risk, rel=1e-8, abs=1e-8)
    # The estimate never has more than the energy of y, and the DOF are at most one per entry, but for the jump.
    assert np.linalg.norm(one.estimate) <= np.linalg.norm(y) * (1 + 1e-12)


def test_curves_are_continuous_where_nothing_jumps():
    rng = np.random.default_rng(14)
    s = np.linalg.svd(spiked(rng, 20, 15, [20.0])[1], compute_uv=False)
    form = Shape(20, 15)
    for threshold in s[:5]:
        either = soft_curve(s, np.array([threshold * (1 - 1e-9), threshold * (1 + 1e-9)]), form)
        assert either.residual[0] == pytest.approx(either.residual[1], rel=1e-6)
    ends = np.array([0.0, np.inf])
    for curve in (hard_curve(s, ends, form), soft_curve(s, ends, form)):
        assert curve.dof == pytest.approx([300, 0])
        assert curve.residual == pytest.approx([0, (s**2).sum()])
    assert shrink_curve(s, np.array([np.inf]), form).dof == [0.0]


def test_ties_and_zeros():
    found = st.select_rank(10 * np.eye(12), sigma=1.0)
    assert found.rank == 12
    assert found.status is st.RankStatus.FULL_RANK
    assert np.isfinite(found.curve.risk).all()
    for rule in ("hard", "shrink", "soft"):
        empty = st.select_rank(np.zeros((20, 12)), rule=rule)
        assert empty.status is st.RankStatus.NO_NOISE
        assert empty.rank == 0
        exact = np.outer(np.arange(20.0), np.ones(15))
        kept = st.select_rank(exact, rule=rule)
        assert kept.rank == 1
        assert kept.status is st.RankStatus.NO_NOISE
        assert kept.estimate == pytest.approx(exact)
        for flat in (np.full((1, 30), 5.0), np.full((30, 1), 5.0), [[3.0]]):
            assert np.isfinite(st.select_rank(flat, sigma=1.0, rule=rule).risk)


@pytest.mark.parametrize("rule", ["hard", "shrink", "soft"])
def test_noise_below_the_rounding_is_no_noise(rule):
    y = np.random.default_rng(17).normal(size=(12, 10))
    found = st.select_rank(1e200 * y, sigma=1.0, rule=rule)
    assert found.status is st.RankStatus.NO_NOISE
    assert found.estimate == pytest.approx(1e200 * y, rel=1e-9)
    strong = st.select_rank(y + 1e12 * np.ones((12, 10)), sigma=1.0, rule=rule)
    assert strong.rank >= 1
    assert np.isfinite(strong.risk)


def test_dtype_is_kept_and_the_input_is_not_changed():
    rng = np.random.default_rng(15)
    for dtype, out in [("f4", "f4"), ("f8", "f8"), ("c8", "c8"), ("i2", "f8")]:
        y = (20 * spiked(rng, 20, 15, [20.0])[1]).astype(dtype)
        before = y.copy()
        assert st.select_rank(y, sigma=20.0).estimate.dtype == np.dtype(out)
        assert np.array_equal(y, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"matrix": np.ones(3)}, "matrix must have two axes"),
        ({"matrix": np.ones((0, 3))}, "matrix is empty"),
        ({"matrix": [[1.0, np.nan]]}, "matrix holds 1 NaN"),
        ({"matrix": [["a"]]}, "matrix must hold real numbers"),
        ({"sigma": -1.0}, "sigma must be positive"),
        ({"sigma": [1.0, 2.0]}, r"sigma must be one number, or one per matrix, of shape \(\)"),
        ({"rule": "har"}, "Did you mean 'hard'"),
        ({"noise": "pink"}, "unknown noise"),
        ({"noise": "correlated", "sigma": 1.0}, "takes neither sigma"),
        ({"row_covariance": np.eye(3)}, r"row_covariance must have shape \(6, 6\)"),
        ({"column_covariance": -np.eye(5)}, "positive definite"),
        ({"column_covariance": np.triu(np.ones((5, 5)))}, "symmetric"),
        ({"noise": "correlated", "rule": "soft"}, "rule='soft' needs white noise"),
        ({"max_rank": 0}, "max_rank must be a whole number from 1 to 5"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        st.select_rank(**{"matrix": np.random.default_rng(0).normal(size=(6, 5)), **arguments})


def test_scree_plot():
    from matplotlib.figure import Figure

    _, y = spiked(np.random.default_rng(0), 30, 20, [30.0, 20.0])
    left, right = st.select_rank(y, sigma=1.0).plot(Figure().subplots(1, 2))
    assert left.get_title() == "rank 2 (low rank), σ = 1"
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert labels[:3] == ["kept: 2", "removed: 18", "noise, expected"]
    assert right.get_xlabel() == "threshold, in units of y"
    with pytest.raises(ValueError, match="axes must be 2"):
        st.select_rank(y, sigma=1.0).plot(Figure().subplots(1, 3))


@pytest.mark.parametrize("spikes", [[40.0], [40.0, 39.0, 25.0], [60.0, 31.0, 30.5, 30.0, 22.0]])
def test_slopes_of_the_shrinkage_are_its_derivatives(spikes):
    """By central differences, also of spikes that are closer than their noise."""
    s, shape, step = np.array(spikes), Shape(60, 40), 1e-5
    values, slopes = shrunk_values(s, s.size, shape)
    assert ((values > 0) & (values < s)).all()
    for k in range(s.size):
        move = step * (np.arange(s.size) == k)
        ahead, behind = (shrunk_values(s + sign * move, s.size, shape)[0][k] for sign in (1, -1))
        # Differences of numbers near 40 over a step of 1e-5 have seven digits, and an error of the order of its square.
        assert slopes[k] == pytest.approx((ahead - behind) / (2 * step), abs=1e-6)
