"""The blend of least estimated risk, against a search over all weights."""

import itertools

import numpy as np
import pytest

from scorethresh.denoising.aggregate import blend, blend_values, least_risk_weights, simplex_minimum
from scorethresh.denoising.batch import Batch
from scorethresh.risk.estimate import Estimate

# All weights of three experts in steps of 1/100.
GRID = np.array([(i, j, 100 - i - j) for i, j in itertools.product(range(101), repeat=2) if i + j <= 100]) / 100


def test_the_minimum_over_the_simplex_is_that_of_a_search(rng):
    """Divergences are as large as the residuals, so that they decide which experts count at all."""
    for _ in range(200):
        residuals = rng.normal(size=(3, 4)) * rng.uniform(0.2, 2, size=(3, 1))
        gram, divergences = residuals @ residuals.T, rng.uniform(0, 4, size=3)

        def risk(a, gram=gram, divergences=divergences):
            return np.einsum("...i,ij,...j->...", a, gram, a) + 2 * a @ divergences

        found = simplex_minimum(gram, divergences)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)
        best = risk(GRID).min()
        assert risk(found) <= best + 1e-9
        assert np.abs(found - GRID[np.argmin(risk(GRID))]).max() < 0.1


def test_with_equal_residuals_the_least_divergence_wins():
    np.testing.assert_allclose(simplex_minimum(np.ones((3, 3)), np.array([3.0, 1.0, 2.0])), [0, 1, 0], atol=1e-9)


def test_two_independent_experts_share_as_their_risks_say():
    """|a r1 + (1 - a) r2|^2 + 2 (a d1 + (1 - a) d2) with orthogonal residuals: a = (|r2|^2 + d2 - d1) / sum."""
    found = simplex_minimum(np.diag([2.0, 3.0]), np.array([1.0, 0.5]))
    np.testing.assert_allclose(found, [(3 + 0.5 - 1) / 5, 1 - (3 + 0.5 - 1) / 5])


def test_entries_count_by_their_weights(rng):
    """Where an expert is wrong, errors do not count; so it wins."""
    y = rng.normal(size=(1, 1, 100))
    good, bad = 0.9 * y, y.copy()
    bad[..., 50:] = 100.0
    weights = np.where(np.arange(100) < 50, 1.0, 0.0)[None]
    for batch in (Batch(y, weights=weights), Batch(y, valid=weights > 0)):
        np.testing.assert_allclose(least_risk_weights(batch, [good, bad], [0.0, 0.0]), [0, 1], atol=1e-9)
    assert least_risk_weights(Batch(y), [good, bad], [0.0, 0.0])[1] < 0.01


def test_a_blend_adds_values_and_corrected_divergences(rng):
    estimates = [Estimate(rng.normal(size=(1, 1, 5)), rng.uniform(size=(1, 5))) for _ in range(2)]
    found = blend((0.25, 0.75), (2.0, 4.0), estimates)
    np.testing.assert_allclose(found.value, 0.25 * estimates[0].value + 0.75 * estimates[1].value)
    np.testing.assert_allclose(found.divergence, 0.5 * estimates[0].divergence + 3 * estimates[1].divergence)
    values = [e.value.astype(np.float32) for e in estimates]
    assert blend_values((0.5, 0.5), values).dtype == np.float32


def test_an_entry_of_weight_4_counts_as_four_entries(rng):
    y, one, two = rng.normal(size=(3, 1, 1, 20))
    times = np.where(np.arange(20) < 8, 4, 1)
    found = least_risk_weights(Batch(y, weights=times[None].astype(float)), [one, two], [3.0, 1.0])
    repeated, *experts = (np.repeat(a, times, axis=-1) for a in (y, one, two))
    assert 0.1 < found[0] < 0.9
    np.testing.assert_allclose(found, least_risk_weights(Batch(repeated), experts, [3.0, 1.0]), rtol=1e-9)


def test_entries_that_are_not_valid_have_no_weight():
    weights, valid = np.array([[2.0, 3.0, 5.0]]), np.array([[True, False, True]])
    batch = Batch(np.zeros((1, 1, 3)), valid, weights)
    np.testing.assert_array_equal(batch.error_weights, [[2, 0, 5]])


def test_a_divergence_is_summed_over_entries_by_their_weights():
    """A mean per entry stands for all four entries of a piece."""
    weights = np.array([[1.0, 2.0, 0.0, 4.0], [3.0, 0.0, 0.0, 0.0]])
    mean = Estimate(np.zeros((2, 1, 4)), np.array([[0.5], [0.25]]))
    assert mean.total_divergence() == 4 * (0.5 + 0.25)
    assert mean.total_divergence(weights) == 7 * 0.5 + 3 * 0.25
    each = Estimate(np.zeros((2, 1, 4)), np.arange(8.0).reshape(2, 4))
    assert each.total_divergence(weights) == 2 * 1 + 4 * 3 + 3 * 4


def test_weights_have_few_digits_and_the_sum_1(rng):
    """So that sums in another order leave them as they are, and blends of large values keep their level."""
    for size in [1, 2, 3, 4] * 25:
        residuals = rng.normal(size=(4, 30))
        found = simplex_minimum(residuals[:size] @ residuals[:size].T, rng.uniform(0, 4, size))
        np.testing.assert_array_equal(found * 2.0**24, np.rint(found * 2.0**24))
        assert sum(found) == 1
