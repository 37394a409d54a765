import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import scorethresh as st
from helpers import RULES, Opaque
from oracles import by_quadrature, hard_mp
from scorethresh.rules import kinks_of


@given(
    seed=some.integers(0, 2**32 - 1),
    size=some.sampled_from([1, 3, 20]),
    sigma=some.sampled_from([1e-150, 0.3, 1.0, 1e150]),
    t=some.sampled_from([0.0, 0.2, 1.0, 3.0, 8.0, 25.0]),
)
def test_hard_risk_and_dof_are_the_closed_forms(seed, size, sigma, t):
    """To 1e-12 of mpmath, from threshold 0 to where next to nothing of the noise is kept."""
    rng = np.random.default_rng(seed)
    x0 = sigma * rng.choice([0.0, 0.5, 2.0, 7.0, 30.0], size) * rng.choice([-1, 1], size)
    curve = st.risk_curve(x0, [t * sigma], sigma=sigma, method=st.Oracle(x0))
    risk, dof = (float(v) for v in hard_mp(x0, t * sigma, sigma))
    assert curve.risk[0] == pytest.approx(risk, rel=1e-12, abs=0)
    assert curve.dof[0] == pytest.approx(dof, rel=1e-12, abs=1e-290)
    assert curve.stderr[0] == 0


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_any_rule_by_quadrature(rule):
    sigma, t = 0.8, 1.7
    kinks = kinks_of(rule, np.array([t]))
    for x0 in (0.0, -1.5, 3.0, 9.0):
        expected = by_quadrature(rule, x0, t, sigma, kinks)
        curve = st.risk_curve([x0], [t], sigma=sigma, rule=rule, method=st.Oracle([x0]))
        assert (curve.risk[0], curve.dof[0]) == pytest.approx(expected, rel=1e-9)


def test_straight_rules_need_no_quadrature(rng):
    """The closed form and the quadrature of the same rule agree."""
    x0 = rng.normal(scale=3, size=30)
    t = np.array([0.0, 0.5, 2.0, 6.0])
    for rule in (st.Hard(), st.Soft()):
        a = st.risk_curve(x0, t, sigma=1.0, rule=rule, method=st.Oracle(x0))
        b = st.risk_curve(x0, t, sigma=1.0, rule=Opaque(rule), method=st.Oracle(x0))
        np.testing.assert_allclose(a.risk, b.risk, rtol=1e-11)
        np.testing.assert_allclose(a.dof, b.dof, rtol=1e-11)


def test_many_means_are_compressed_without_loss(rng):
    x0 = np.concatenate([np.zeros(3000), rng.laplace(scale=2, size=3000), [1e3, -1e9]])
    t = np.append(np.linspace(0, 9, 40), np.inf)
    whole = st.risk_curve(x0, t, sigma=1.3, method=st.Oracle(x0))
    parts = sum(st.risk_curve(p, t, sigma=1.3, method=st.Oracle(p)) for p in np.array_split(x0, 2))
    np.testing.assert_allclose(whole.risk, parts.risk, rtol=1e-12)
    np.testing.assert_allclose(whole.dof, parts.dof, rtol=1e-12)


def test_monte_carlo_agrees(rng):
    """The loss of actual estimates, for two rules that jump; within four standard errors."""
    x0 = np.repeat([0.0, 1.0, 4.0], [70, 15, 15])
    y = x0 + rng.normal(size=(20_000, x0.size))
    for rule in (st.Hard(), st.Bridge(0.3)):
        for t in (1.0, 2.5):
            estimate = rule(y, t)
            loss, dof = ((estimate - x0) ** 2).sum(axis=1), ((y - x0) * estimate).sum(axis=1)
            curve = st.risk_curve(x0, [t], sigma=1.0, rule=rule, method=st.Oracle(x0))
            for draws, value in ((loss, curve.risk[0]), (dof, curve.dof[0])):
                assert abs(draws.mean() - value) < 4 * draws.std() / np.sqrt(draws.size)


def test_means_must_match_the_data():
    with pytest.raises(ValueError, match="x0 has 2 entries and y has 3"):
        st.risk_curve([1.0, 2.0, 3.0], sigma=1.0, method=st.Oracle([1.0, 2.0]))
    with pytest.raises(ValueError, match="x0 holds 1 NaN"):
        st.Oracle([np.nan])
    with pytest.raises(TypeError, match="x0 must hold real numbers"):
        st.Oracle(["a"])
