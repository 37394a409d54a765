import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import scorethresh as st
from oracles import by_quadrature, expect, penalised
from scorethresh.rules import kinks_of

RULES = [
    st.Hard(),
    st.Soft(),
    st.Firm(),
    st.Firm(3.5),
    st.Garrote(),
    st.Scad(),
    st.Scad(2.2),
    st.Bridge(),
    st.Bridge(0.1),
    st.Bridge(0.9),
]


def mcp(t, gamma):
    return lambda x: t * x - x * x / (2 * gamma) if x <= gamma * t else gamma * t * t / 2


def scad(t, a):
    def penalty(x):
        if x <= t:
            return t * x
        if x <= a * t:
            return (2 * a * t * x - x * x - t * t) / (2 * (a - 1))
        return t * t * (a + 1) / 2

    return penalty


def bridge(t, q):
    """The penalty c x^q whose rule jumps at t, with c from bisection on the paper's formula for the jump."""
    low, high = 0.0, 10 * t * t + 10
    for _ in range(200):
        c = (low + high) / 2
        beta = (2 * c * (1 - q)) ** (1 / (2 - q))
        low, high = (c, high) if beta + c * q * beta ** (q - 1) < t else (low, c)
    return lambda x: c * x**q if x > 0 else 0.0


@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (st.Hard(), lambda t: lambda x: t * t / 2 if x > 0 else 0.0),
        (st.Soft(), lambda t: lambda x: t * x),
        (st.Firm(2.5), lambda t: mcp(t, 2.5)),
        (st.Scad(3.7), lambda t: scad(t, 3.7)),
        (st.Bridge(0.5), lambda t: bridge(t, 0.5)),
        (st.Bridge(0.2), lambda t: bridge(t, 0.2)),
        (st.Bridge(0.8), lambda t: bridge(t, 0.8)),
    ],
)
def test_a_rule_minimises_its_penalised_least_squares(rule, penalty):
    """Each is the proximal map of a known penalty; the search is good to the square root of rounding."""
    for t in (0.7, 2.0):
        for y in (-5.1, -1.9, 0.3, 0.69, 0.75, 1.1, 1.99, 2.05, 2.6, 3.3, 6.0, 9.0):
            assert rule(y, t) == pytest.approx(penalised(y, penalty(t)), abs=2e-7)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_degrees_of_freedom_are_derivative_plus_height_times_density(rule):
    """The covariance with y, by quadrature, equals the formula that every method rests on."""
    sigma, t = 1.3, 2.1
    kinks = kinks_of(rule, np.array([t]))
    for x0 in (0.0, 1.0, 2.0, 3.5):
        _, dof = by_quadrature(rule, x0, t, sigma, kinks)
        formula = expect(lambda v: float(rule.derivative(v, t)), x0, sigma, kinks)
        for position, height in rule.jumps(t):
            for side in (1, -1):
                u = (side * position - x0) / sigma
                formula += height * math.exp(-0.5 * u * u) / (math.sqrt(2 * math.pi) * sigma)
        assert dof == pytest.approx(formula, rel=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@given(
    y=some.floats(-20, 20),
    t=some.floats(0.01, 10),
    scale=some.sampled_from([1e-100, 0.5, 3.0, 1e100]),
)
def test_rules_are_odd_scale_with_the_data_and_shrink(rule, y, t, scale):
    value = rule(y, t)
    assert rule(-y, t) == -value
    assert rule(scale * y, scale * t) == pytest.approx(scale * value, rel=1e-9) or abs(abs(y) - t) < 1e-9 * t
    assert 0 <= value * np.sign(y) <= abs(y) * (1 + 1e-15)
    assert rule(0.0, t) == 0


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_derivative_is_the_slope_away_from_kinks(rule):
    t = 1.7
    kinks = kinks_of(rule, np.array([t]))
    y = np.linspace(-12, 12, 1001)
    y = y[np.min(np.abs(np.abs(y)[:, None] - kinks), axis=1) > 1e-3]
    step = 1e-6
    slope = (rule(y + step, t) - rule(y - step, t)) / (2 * step)
    np.testing.assert_allclose(rule.derivative(y, t), slope, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_jumps_are_the_only_discontinuities(rule):
    """Across every kink the rule rises by the height of the jump there, or not at all."""
    t = 1.7
    heights = dict(rule.jumps(t))
    for kink in kinks_of(rule, np.array([t])):
        rise = rule(kink * (1 + 1e-9), t) - rule(kink * (1 - 1e-9), t)
        assert rise == pytest.approx(heights.get(kink, 0.0), abs=1e-6)


def test_half_thresholding_jumps_by_two_thirds():
    assert st.Bridge(0.5).jumps(3.0) == [(3.0, pytest.approx(2.0))]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_extreme_thresholds(rule):
    y = np.array([-3.0, -0.0, 0.0, 1e-300, 2.0, 1e300])
    np.testing.assert_array_equal(rule(y, 0.0), y)
    assert (rule(y, np.inf) == 0).all()
    assert (rule.derivative(y, np.inf) == 0).all()
    np.testing.assert_allclose(rule(np.array([1e200, -1e200]), 1.0), [1e200, -1e200])


def test_hard_keeps_ties_also_in_float32():
    t = np.float32(0.1)
    assert st.Hard()(np.array([t, -t]), float(t)).tolist() == [t, -t]
    assert st.Hard()(np.array([t]), np.nextafter(float(t), 1)).tolist() == [0]


def test_hard_is_soft_plus_step():
    """HT = ST + D of the paper, also at the ties, where the displayed D fails. D has the whole jump."""
    y = np.array([-7.0, -2.0, np.nextafter(-2.0, 0), 0.0, 1.0, np.nextafter(2.0, 0), 2.0, 7.0])
    np.testing.assert_array_equal(st.Step()(y, 2.0), [-2, -2, 0, 0, 0, 0, 2, 2])
    np.testing.assert_array_equal(st.Soft()(y, 2.0) + st.Step()(y, 2.0), st.Hard()(y, 2.0))
    assert list(st.Step().jumps(2.0)) == list(st.Hard().jumps(2.0)) == [(2.0, 2.0)]
    assert (st.Step().derivative(y, 2.0) == 0).all()


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_dtype_shape_and_input_survive(rule):
    y = np.linspace(-5, 5, 24).reshape(2, 3, 4)
    y.flags.writeable = False
    assert rule(y, 1.0).dtype == np.float64
    assert rule(y, 1.0).shape == y.shape
    assert rule(y.astype(np.float32), 1.0).dtype == np.float32
    assert rule.derivative(y.astype(np.float32), 1.0).dtype == np.float32
    assert rule(np.arange(5), 1).dtype == np.float64
    np.testing.assert_array_equal(rule(y[::-1, ::2].T, 1.0), rule(y, 1.0)[::-1, ::2].T)
    np.testing.assert_allclose(rule(y, np.array([1.0, 2.0])[:, None, None])[1], rule(y[1], 2.0), rtol=1e-15)


def test_zeros_have_no_sign():
    assert not np.signbit(st.Hard()(np.array([-1.0]), 2.0)).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: st.Firm(1.0), r"ratio must be above 1.*got 1\.0.*Hard"),
        (lambda: st.Scad(2.0), "a must be above 2"),
        (lambda: st.Bridge(1.0), "q must lie strictly between 0 and 1, got 1.0"),
        (lambda: st.Bridge(np.nan), "q must lie strictly between"),
        (lambda: st.Hard()(np.ones(3), -1.0), "threshold must be at least 0, got -1.0"),
        (lambda: st.Hard()(np.ones(3), np.nan), "threshold must be at least 0, got nan"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
