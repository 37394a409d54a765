"""Bad input, case by case: the error names the argument, what came and what to do."""

import numpy as np
import pytest

import scorethresh as st

Y = np.array([1.0, -2.0, 3.0])

BAD_Y = [
    ([], ValueError, r"y is empty, with shape \(0,\)"),
    (np.ones((3, 0)), ValueError, r"y is empty, with shape \(3, 0\)"),
    (3.0, ValueError, r"y must be an array, got the single number 3\.0.*\[3\.0\]"),
    ("abc", TypeError, "y must hold real numbers, got dtype <U3"),
    (["a", "b"], TypeError, "y must hold real numbers"),
    (np.array([1, None], dtype=object), TypeError, "y must hold real numbers, got dtype object"),
    (np.array([True, False]), TypeError, "y must hold real numbers, got dtype bool"),
    (np.array(["2020-01-01"], dtype="datetime64[D]"), TypeError, "y must hold real numbers"),
    (np.ma.masked_array([1.0, 2.0], [True, False]), TypeError, r"y is a masked array.*y\.compressed\(\)"),
    ([1.0, np.nan, np.nan], ValueError, r"y holds 2 NaN or infinite entries out of 3.*np\.isfinite\(y\)"),
    ([1.0, np.inf], ValueError, "y holds 1 NaN or infinite entries out of 2"),
    (np.array([1.0, -np.inf], dtype=np.float32), ValueError, "y holds 1 NaN or infinite"),
]


@pytest.mark.parametrize("function", [st.select_threshold, st.risk_curve])
@pytest.mark.parametrize(("y", "error", "message"), BAD_Y)
def test_bad_data(function, y, error, message):
    with pytest.raises(error, match=message):
        function(y, sigma=1.0)


COMPLEX_Y = (np.array([1 + 2j, 3]), TypeError, r"y is complex, which is not supported yet.*y\.real and y\.imag")


@pytest.mark.parametrize(("y", "error", "message"), [*BAD_Y, COMPLEX_Y])
def test_bad_data_elsewhere(y, error, message):
    for function in (st.Magnitudes.exact, st.estimate_sigma, lambda v: st.Magnitudes.compress(v, sigma=1.0)):
        with pytest.raises(error, match=message):
            function(y)


@pytest.mark.parametrize("function", [st.select_threshold, st.risk_curve])
def test_bad_complex_data(function):
    for y, error, message in (
        (np.array([], dtype=complex), ValueError, "y is empty"),
        (np.array(1j), ValueError, "y must be an array|must be an array"),
        (np.ma.masked_array([1j, 2.0], [True, False]), TypeError, "y is a masked array"),
        (np.array([1j, np.nan]), ValueError, "y holds 1 NaN or infinite entries out of 2"),
    ):
        with pytest.raises(error, match=message):
            function(y, sigma=1.0)


def test_bad_data_in_a_large_array_is_found_in_the_one_pass():
    y = np.ones(100_000)
    y[77] = np.nan
    with pytest.raises(ValueError, match="y holds 1 NaN or infinite entries out of 100000"):
        st.select_threshold(y, sigma=1.0)


@pytest.mark.parametrize(
    ("sigma", "error", "message"),
    [
        (None, TypeError, r"sigma, the noise level, is missing.*estimate_sigma\(y\)"),
        (0, ValueError, r"sigma must be positive and finite, got 0\..*estimate_sigma\(y\)"),
        (-1.0, ValueError, "sigma must be positive and finite, got -1.0"),
        (np.nan, ValueError, "sigma must be positive and finite, got nan"),
        (np.inf, ValueError, "sigma must be positive and finite, got inf"),
        (1e-200, ValueError, r"between 1e-153 and 1e153.*got 1e-200\. Rescale"),
        (np.ones(3), ValueError, r"sigma must be one number, got an array of shape \(3,\).*divide y by it"),
        ([1.0], ValueError, "sigma must be one number"),
        ("1", TypeError, "sigma must be a real number, got '1'"),
        (True, TypeError, "sigma must be a real number, got True"),
        (1j, TypeError, "sigma must be a real number, got 1j"),
        (object(), TypeError, "sigma must be a real number, got <object"),
    ],
)
def test_bad_sigma(sigma, error, message):
    for function in (st.select_threshold, st.risk_curve, st.Magnitudes.compress):
        with pytest.raises(error, match=message):
            function(Y, sigma=sigma)


def test_sigma_left_out_points_to_the_estimate():
    with pytest.raises(TypeError, match="estimate_sigma"):
        st.select_threshold(Y)


@pytest.mark.parametrize("sigma", [1, np.float32(1), np.array(1.0)])
def test_any_single_number_is_a_sigma(sigma):
    assert st.select_threshold(Y, sigma=sigma).risk == st.select_threshold(Y, sigma=1.0).risk


@pytest.mark.parametrize(
    ("thresholds", "error", "message"),
    [
        ([], ValueError, "thresholds is empty.*None for a default grid"),
        ([-1.0, 1.0], ValueError, "thresholds must be at least 0, got -1.0"),
        ([1.0, 0.5], ValueError, r"thresholds must ascend.*np\.sort"),
        ([1.0, np.nan], ValueError, "thresholds holds 1 NaN out of 2"),
        ([[1.0, 2.0]], ValueError, r"thresholds must be a vector, got shape \(1, 2\)"),
        ("every", ValueError, "numbers, None .* or \"all\" here, got 'every'"),
        (["1"], TypeError, "thresholds must hold real numbers"),
        ([1j], TypeError, "thresholds is complex"),
    ],
)
def test_bad_thresholds(thresholds, error, message):
    for function in (st.select_threshold, st.risk_curve):
        with pytest.raises(error, match=message):
            function(Y, sigma=1.0, thresholds=thresholds)


def test_one_threshold_may_be_a_number():
    assert st.risk_curve(Y, 2.0, sigma=1.0).risk.shape == (1,)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"rule": "herd"}, ValueError, "unknown rule 'herd'. Did you mean 'hard'.*'bridge', 'firm', 'garrote'"),
        ({"rule": "Hard"}, ValueError, "unknown rule 'Hard'. Did you mean 'hard'"),
        ({"rule": "zzz"}, ValueError, "unknown rule 'zzz'. There are"),
        ({"rule": st.Hard}, TypeError, "rule must be a name or an object"),
        ({"rule": None}, TypeError, "rule must be a name or an object"),
        ({"method": "scor"}, ValueError, "unknown method 'scor'. Did you mean 'score'.*'score', 'sure'"),
        ({"method": st.Score}, TypeError, "method must be a name or an object"),
        ({"method": 3}, TypeError, r"method must be a name or an object such as Score\(\), got 3"),
    ],
)
def test_unknown_names(kwargs, error, message):
    for function in (st.select_threshold, st.risk_curve):
        with pytest.raises(error, match=message):
            function(Y, sigma=1.0, **kwargs)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan, np.inf])
def test_bad_bandwidth_of_a_sample(bandwidth):
    with pytest.raises(ValueError, match="bandwidth must be positive and finite"):
        st.Magnitudes.compress(Y, sigma=1.0, bandwidth=bandwidth)
