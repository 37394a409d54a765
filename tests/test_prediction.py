"""The prediction: two readings of the error, combined by Bayes' rule."""

import math

import numpy as np
import pytest

import oracles
from scorethresh.risk.prediction import (
    DIVERGENCE_ERROR,
    FilterRatio,
    NoiseEnergy,
    RiskSums,
    posteriors,
    predict,
    risk_sums,
)


def test_sums_are_those_of_the_definition(rng):
    residual, divergence, variance, weight = rng.uniform(size=(4, 6))
    found = risk_sums(residual - variance + 2 * divergence, divergence, weight)
    each = [weight[i] * (residual[i] - variance[i] + 2 * divergence[i]) for i in range(6)]
    assert found.risk == pytest.approx(sum(each))
    assert found.divergence == pytest.approx(sum(weight * divergence))
    assert (found + RiskSums(1.0, 2.0)).divergence == pytest.approx(found.divergence + 2)


def test_posteriors_are_those_of_bayes_rule():
    """The trapezoidal rule leaves 1%: a hundredth of what the standard error itself is worth."""
    cases = [  # mean and standard deviation of the prior, risk and its standard error
        (0.05, 0.02, 0.06, 0.005),
        (0.05, 0.02, -0.03, 0.01),  # no error is below zero
        (0.05, 0.05, 0.5, 0.05),  # both disagree
        (1.0, 0.2, 1.01, 1e-4),  # much narrower than the prior
        (1e-3, 10.0, 0.04, 0.03),
        (0.3, 1e-5, 0.2, 0.1),
    ]
    for case, mse, stderr in zip(cases, *posteriors(*np.array(cases).T), strict=True):
        expected = oracles.error_given_risk(*case)
        assert mse == pytest.approx(expected[0], abs=0.01 * expected[1])
        assert stderr == pytest.approx(expected[1], rel=0.01)
        assert mse > 0


def test_one_reading_wins_if_the_other_is_vague():
    noise = NoiseEnergy(10**7, 1.0, 1.0, 1.0)
    sums = RiskSums(risk=1e6, divergence=5e5)
    by_risk = predict(sums, noise, FilterRatio(1.0, 1e6))
    assert by_risk.mse == pytest.approx(0.1, rel=1e-3)
    # Per entry 2 sigma^4, and 2 sigma^2 times the filter's risk; and twice the divergence times its error.
    of_risk = math.hypot(math.sqrt((2 + 2 * 0.05) / 10**7), 0.1 * DIVERGENCE_ERROR)
    assert by_risk.stderr == pytest.approx(of_risk, rel=2e-3)
    assert by_risk.score == pytest.approx(0.1 / of_risk)
    by_filter = predict(sums, NoiseEnergy(10**7, 1.0, 1e12, 1.0), FilterRatio(1.2, 1e-6, 1e-6))
    assert by_filter.mse == pytest.approx(0.05**1.2, rel=1e-3)


def test_the_spread_of_the_prior_has_three_sources():
    """The exponent, the noise level, and a structure at the limit of detection."""
    ratio, noise = FilterRatio(1.1), NoiseEnergy(1000, 1.0, 1.0, 1.0, level_error=0.05)
    found = predict(RiskSums(100.0, 50.0), noise, ratio)
    reading = ratio.reading(0.05)
    spread = math.hypot(reading.stderr, 2 * 0.05 * reading.mse, 2 * math.log(1000) / 1000)
    of_risk = math.hypot(math.sqrt(2.1 / 1000), 2 * (1 - 2 * 0.05) * 0.05, 0.1 * DIVERGENCE_ERROR)
    expected = oracles.error_given_risk(reading.mse, spread, 0.1, of_risk)
    assert (found.mse, found.stderr) == pytest.approx(expected, rel=0.01)


def test_a_lost_structure_counts_in_little_data():
    """A filter without spread is as sure as 2 sigma^2 log(n) per n entries, and as twice the error of the level."""
    for count in (16, 1000):
        lost = 2 * 4.0 * math.log(count) / count
        sure = FilterRatio(1.0, 0.0, 0.0)
        vague = NoiseEnergy(count, 4.0, 1e12, 1.0)
        assert predict(RiskSums(count, 0.5 * count), vague, sure).stderr == pytest.approx(lost, rel=0.01)
        vague = NoiseEnergy(count, 4.0, 1e12, 1.0, level_error=0.2)
        assert predict(RiskSums(count, 0.5 * count), vague, sure).stderr == pytest.approx(
            math.hypot(lost, 2 * 0.2 * 0.5), rel=0.01
        )


def test_the_level_does_not_matter_where_half_of_the_noise_is_kept():
    """What the residual lacks, the estimate has: the risk of halving is its residual, at any level."""
    known, unknown = (
        predict(RiskSums(250.0, 500.0), NoiseEnergy(1000, 1.0, 1.0, 1.0, level_error=error), FilterRatio(2.0, 1e6))
        for error in (0.0, 0.02)
    )
    assert unknown.score == pytest.approx(known.score, rel=0.01)
    assert unknown.stderr == pytest.approx(known.stderr, rel=0.01)


def test_more_entries_do_not_make_a_divergence_exact():
    """Chance averages out, and what is wrong with the divergence stays."""
    sums = RiskSums(1e10, 5e9)
    found = predict(sums, NoiseEnergy(10**11, 1.0, 1.0, 1.0), FilterRatio(1.0, 1e6))
    assert found.stderr == pytest.approx(2 * 0.05 * DIVERGENCE_ERROR, rel=1e-2)


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
def test_units_are_kept(unit):
    noise = NoiseEnergy(1000, 1.0, 1.0, unit)
    found = predict(RiskSums(100.0 * unit**2, 50.0 * unit**2), noise, FilterRatio(1.0))
    plain = predict(RiskSums(100.0, 50.0), NoiseEnergy(1000, 1.0, 1.0, 1.0), FilterRatio(1.0))
    assert found.mse == pytest.approx(plain.mse * unit**2)
    assert found.stderr == pytest.approx(plain.stderr * unit**2)


def test_clipped_noise_is_given_back():
    """Half of the variance was cut off: the residual misses half of sigma^2, the estimate half of the divergence."""
    noise = NoiseEnergy(10**7, 1.0, 1.0, 1.0, unclipped_share=0.5)
    whole = predict(RiskSums(1e6, 5e5), NoiseEnergy(10**7, 1.0, 1.0, 1.0), FilterRatio(1.0, 1e6))
    assert predict(RiskSums(1e6, 5e5), noise, FilterRatio(1.0, 1e6)).mse == pytest.approx(
        whole.mse + 0.5 * (1 - 0.05), rel=1e-3
    )


def test_a_prediction_covers_a_known_filter(rng):
    """Shrinking noise of mean 0 by 0.3 has error 0.09 and divergence 0.3, whose square it is."""
    y = rng.normal(size=(200, 5000))
    errors = []
    for row in y:
        sums = risk_sums((0.7 * row) ** 2 - 1 + 2 * 0.3, np.full(row.size, 0.3), 1.0)
        found = predict(sums, NoiseEnergy(row.size, 1.0, 1.0, 1.0), FilterRatio(2.0))
        errors.append((found.mse - np.mean((0.3 * row) ** 2)) / found.stderr)
    assert abs(np.mean(errors)) < 4 / math.sqrt(len(errors))
    assert np.std(errors) < 1.2


def test_noise_of_twice_the_level_has_four_times_the_error():
    """In the same unit: the second moment is 4 times, the fourth 16 times as large."""
    plain = predict(RiskSums(100.0, 50.0), NoiseEnergy(1000, 1.0, 1.0, 1.0, 0.8), FilterRatio(1.0))
    found = predict(RiskSums(400.0, 200.0), NoiseEnergy(1000, 4.0, 16.0, 1.0, 0.8), FilterRatio(1.0))
    assert found.mse == pytest.approx(4 * plain.mse)
    assert found.stderr == pytest.approx(4 * plain.stderr)


@pytest.mark.parametrize("divergence", [0.9, 0.1, 1e-3])
def test_the_reading_of_a_divergence_has_the_moments_of_a_random_exponent(rng, divergence):
    ratio = FilterRatio(1.1, 0.13, 0.15)
    exponents, rest = rng.normal(1.1, 0.13, 200_000), rng.normal(0.0, 0.15, 200_000)
    errors = divergence**exponents * np.exp(rest)
    found = ratio.reading(divergence)
    assert found.mse == pytest.approx(errors.mean(), abs=4 * errors.std() / math.sqrt(errors.size))
    assert found.stderr == pytest.approx(errors.std(), rel=0.05)


def test_who_keeps_all_noise_has_the_error_of_the_noise():
    """The less is kept, the less is known: relative errors grow."""
    ratio = FilterRatio(1.0)
    spreads = [found.stderr / found.mse for found in map(ratio.reading, (1.0, 0.3, 0.03, 0.003))]
    assert spreads == sorted(spreads)
    assert spreads[0] == pytest.approx(0.2, rel=0.02)


def test_an_estimate_keeps_at_least_the_mean():
    """No divergence, as of Monte Carlo by chance, is that of the mean of all entries."""
    noise = NoiseEnergy(1000, 1.0, 1.0, 1.0)
    least, none = (predict(RiskSums(0.0, total), noise, FilterRatio(1.0)) for total in (1.0, -3.0))
    assert none.mse == pytest.approx(least.mse, rel=0.01)
    assert none.stderr == pytest.approx(least.stderr, rel=0.01)
