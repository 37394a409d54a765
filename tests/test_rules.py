import math
import pickle

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import scorethresh as st
from helpers import RULES, Opaque, TwoSteps
from oracles import by_quadrature, expect, penalised
from scorethresh.rules import Odd, Radial, as_rule, jumps_of, kinks_of

ALL_RULES = [*RULES, st.Step()]


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


@pytest.mark.parametrize("rule", ALL_RULES, ids=repr)
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


@pytest.mark.parametrize("rule", ALL_RULES, ids=repr)
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


@pytest.mark.parametrize("rule", ALL_RULES, ids=repr)
def test_derivative_is_the_slope_away_from_kinks(rule):
    t = 1.7
    kinks = kinks_of(rule, np.array([t]))
    y = np.linspace(-12, 12, 1001)
    y = y[np.min(np.abs(np.abs(y)[:, None] - kinks), axis=1) > 1e-3]
    step = 1e-6
    slope = (rule(y + step, t) - rule(y - step, t)) / (2 * step)
    np.testing.assert_allclose(rule.derivative(y, t), slope, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("rule", ALL_RULES, ids=repr)
def test_jumps_are_the_only_discontinuities(rule):
    """Across every kink the rule rises by the height of the jump there, or not at all."""
    t = 1.7
    heights = dict(rule.jumps(t))
    for kink in kinks_of(rule, np.array([t])):
        rise = rule(kink * (1 + 1e-9), t) - rule(kink * (1 - 1e-9), t)
        assert rise == pytest.approx(heights.get(kink, 0.0), abs=1e-6)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_bridge_solves_its_equation_far_above_the_threshold(q):
    """x + c q x^(q-1) = y to rounding, against bisection in 60 digits; the shrinkage fades, but not suddenly."""
    with mp.workdps(60):
        height = mp.mpf(2) * (1 - mp.mpf(q)) / (2 - mp.mpf(q))
        c = height ** (2 - mp.mpf(q)) / (2 * (1 - mp.mpf(q)))
        for y in (1.5, 1e2, 1e4, 1e9, 1e16, 1e18):
            root = mp.findroot(lambda x, y=y: x + c * q * x ** (mp.mpf(q) - 1) - y, (height, y), solver="anderson")
            assert st.Bridge(q)(y, 1.0) == pytest.approx(float(root), rel=1e-15, abs=0)
            slope = 1 / (1 - c * q * (1 - mp.mpf(q)) * root ** (mp.mpf(q) - 2))
            assert st.Bridge(q).derivative(y, 1.0) == pytest.approx(float(slope), rel=1e-14, abs=0)


def test_half_thresholding_jumps_by_two_thirds():
    assert st.Bridge(0.5).jumps(3.0) == [(3.0, pytest.approx(2.0))]


@pytest.mark.parametrize("rule", ALL_RULES, ids=repr)
def test_extreme_thresholds(rule):
    """Threshold 0 is the identity, for a step zero; infinity is zero; huge entries are not shrunk."""
    y = np.array([-3.0, -0.0, 0.0, 1e-300, 2.0, 1e300])
    step = isinstance(rule, st.Step)
    np.testing.assert_array_equal(rule(y, 0.0), 0 * y if step else y)
    np.testing.assert_array_equal(rule.derivative(y, 0.0), 0 if step else 1)
    assert (rule(y, np.inf) == 0).all()
    assert (rule.derivative(y, np.inf) == 0).all()
    for t in (1e-300, 1.0, 1e100):
        np.testing.assert_allclose(rule(np.array([1e300, -1e300]), t), [t, -t] if step else [1e300, -1e300])
        np.testing.assert_allclose(rule.derivative(np.array([1e300, -1e300]), t), 0 if step else 1)


@given(y=some.integers(-40, 40), t=some.integers(0, 40), scale=some.sampled_from([1.0, 0.25, 2.0**-60]))
def test_hard_is_soft_plus_step_at_every_tie(y, t, scale):
    """HT = ST + D, at every y: also at ties of either sign, where the formula of the paper fails for y < 0.

    Multiples of a power of two add without rounding.
    """
    y, t = scale * y, scale * t
    assert st.Hard()(y, t) == st.Soft()(y, t) + st.Step()(y, t)
    assert st.Step()(y, t) == t * np.sign(y) * (abs(y) >= t)
    assert st.Hard().derivative(y, t) == st.Soft().derivative(y, t) + st.Step().derivative(y, t)


@pytest.mark.parametrize("rule", [rule for rule in ALL_RULES if rule.jumps(1.0)], ids=repr)
@given(t=some.floats(1e-3, 1e3))
def test_a_rule_jumps_at_its_threshold_and_not_just_above(rule, t):
    """At the jump the upper value holds, for both signs; one unit in the last place below, 0."""
    [(position, height)] = rule.jumps(t)
    assert position == t
    assert rule(t, t) == pytest.approx(height, rel=1e-9)
    assert rule(-t, t) == -rule(t, t)
    assert rule(np.nextafter(t, 0), t) == 0
    assert rule.derivative(t, t) == 0


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


@pytest.mark.parametrize("rule", ALL_RULES, ids=repr)
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


class Minimal:
    """The three required members and no more."""

    def __init__(self, factor=1.1):
        self.factor = factor

    def __repr__(self):
        return f"Minimal({self.factor})"

    def __eq__(self, other):
        return isinstance(other, Minimal) and self.factor == other.factor

    def __hash__(self):
        return hash(self.factor)

    def __call__(self, y, t):
        return np.where(np.abs(y) >= t, y / self.factor, 0.0)

    def derivative(self, y, t):
        return np.where(np.abs(y) > t, 1 / self.factor, 0.0)

    def jumps(self, t):
        return [(t, t / self.factor)]


def test_a_rule_of_the_users_gets_the_defaults_for_what_it_lacks():
    rule = as_rule(Minimal())
    assert (rule.polynomial_width, rule.block_size, list(rule.kinks(2.0))) == (0.1, 1, [2.0])
    assert (repr(rule), rule.factor) == ("Minimal(1.1)", 1.1)
    assert rule == as_rule(Minimal())
    assert hash(rule) == hash(as_rule(Minimal()))
    assert rule != as_rule(Minimal(1.2))
    assert as_rule(rule) is rule
    assert pickle.loads(pickle.dumps(rule)) == rule
    y = np.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(rule(y, 2.0), Minimal()(y, 2.0))
    np.testing.assert_array_equal(rule.derivative(y, 2.0), Minimal().derivative(y, 2.0))
    assert isinstance(rule, st.Rule)
    with pytest.raises(AttributeError, match="nothing"):
        rule.nothing  # noqa: B018


def test_optional_members_of_the_users_are_used():
    class Full(Minimal):
        polynomial_width = 0.05
        block_size = 3

        def kinks(self, t):
            return [t, 5 * t]

    rule = as_rule(Full())
    assert (rule.polynomial_width, rule.block_size) == (0.05, 3)
    np.testing.assert_array_equal(kinks_of(rule, np.array([1.0, 2.0])), [1, 2, 5, 10])

    class Former(Minimal):
        grain = 0.02

    assert as_rule(Former()).polynomial_width == 0.02


def test_a_subclass_inherits_the_defaults():
    class Own(Minimal, st.Rule):
        pass

    rule = Own()
    assert as_rule(rule) is rule
    assert (rule.polynomial_width, rule.block_size, list(rule.kinks(2.0))) == (0.1, 1, [2.0])
    with pytest.raises(TypeError, match="abstract"):
        type("Empty", (st.Rule,), {})()
    with pytest.raises(TypeError, match="pieces"):
        type("Empty", (st.PiecewiseLinear,), {})()
    with pytest.raises(TypeError, match="slope"):
        type("Empty", (Odd,), {})()


@pytest.mark.parametrize("lacking", ["__call__", "derivative", "jumps"])
def test_what_a_rule_lacks_is_named_on_first_use(lacking):
    members = {name: getattr(Minimal, name) for name in ("__call__", "derivative", "jumps") if name != lacking}
    broken = type("Broken", (), members | {"__repr__": lambda self: "Broken()"})()
    assert not isinstance(broken, st.Rule)
    message = rf"rule Broken\(\) lacks `{lacking}`: {lacking}\(.*CONTRIBUTING"
    for use in (
        lambda: st.select_threshold([1.0], sigma=1.0, rule=broken),
        lambda: st.risk_curve([1.0], sigma=1.0, rule=broken),
        lambda: st.Magnitudes.compress([1.0], sigma=1.0, rule=broken),
        lambda: st.Score().curve(st.Magnitudes.exact([1.0]), np.array([1.0]), sigma=1.0, rule=broken),
        lambda: Radial(broken, 2),
    ):
        with pytest.raises(TypeError, match=message):
            use()


def test_members_of_the_object_count_as_those_of_the_class():
    rule = Minimal()
    rule.jumps = lambda t: [(t, t / 1.1)]
    assert as_rule(rule).jumps(2.0) == [(2.0, 2.0 / 1.1)]


def test_a_class_is_no_rule():
    with pytest.raises(TypeError, match=r"got <class.*Hard.*Make an object of it: Hard\(\)"):
        as_rule(st.Hard)


def test_names_of_rules():
    assert as_rule("step") == st.Step()
    assert as_rule("hard") == st.Hard()
    with pytest.raises(ValueError, match=r"unknown rule .hrad.\. Did you mean .hard."):
        as_rule("hrad")


def test_jumps_at_all_thresholds():
    """A user's rule is asked one threshold at a time; jumps that it lacks at some thresholds have no height."""

    class Sometimes(Minimal):
        def jumps(self, t):
            return super().jumps(t) if t > 1 else []

    t = np.array([0.5, 1.0, 2.0])
    [(positions, heights)] = jumps_of(as_rule(Sometimes()), t)
    np.testing.assert_allclose(positions, t)
    np.testing.assert_allclose(heights, [0, 0, 2 / 1.1])
    own = jumps_of(as_rule(TwoSteps()), t)
    np.testing.assert_allclose(own, [(t, t / 2), (2 * t, t)])
    np.testing.assert_allclose(jumps_of(as_rule(Opaque(st.Bridge())), t), jumps_of(st.Bridge(), t))


class Returns(TwoSteps):
    """A user's rule one of whose members gives something else."""

    def __init__(self, member, value):
        self.member, self.value = member, value

    def __repr__(self):
        return "Returns()"

    def __call__(self, y, t):
        return self.value(y) if self.member == "__call__" else super().__call__(y, t)

    def derivative(self, y, t):
        return self.value(y) if self.member == "derivative" else super().derivative(y, t)

    def jumps(self, t):
        return self.value(t) if self.member == "jumps" else super().jumps(t)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (lambda y: None, "gave None"),
        (lambda y: np.zeros((2, 3)), r"gave an array of shape \(2, 3\)"),
        (lambda y: np.full(np.shape(y), np.nan), "gave [1-9][0-9]* NaN"),
        (lambda y: "soft", "gave str 'soft'"),
    ],
)
@pytest.mark.parametrize("member", ["__call__", "derivative"])
def test_what_users_rules_return_is_checked(rng, member, value, got):
    with pytest.raises(ValueError, match=rf"{member} of the rule Returns\(\) {got} .*Return one real number per entry"):
        st.select_threshold(rng.normal(size=200), sigma=1.0, rule=Returns(member, value), method="score")


@pytest.mark.parametrize("value", [lambda t: None, lambda t: [t], lambda t: [(t, np.nan)], lambda t: 3.0])
def test_what_users_rules_return_as_jumps_is_checked(rng, value):
    with pytest.raises(ValueError, match=r"jumps of the rule Returns\(\) gave .* at the threshold .*Return the \(posi"):
        st.select_threshold(rng.normal(size=200), sigma=1.0, rule=Returns("jumps", value), method="score")
