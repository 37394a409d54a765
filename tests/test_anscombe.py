import numpy as np
import pytest

import oracles
from scorethresh.noise.generalised_anscombe import GeneralisedAnscombe

COUNTS = GeneralisedAnscombe(gain=1.0, offset=0.0, read=0.0)


@pytest.mark.parametrize("mean", [0.01, 0.5, 3.0, 40.0, 190.0, 210.0, 1e4])
def test_the_inverse_is_unbiased(mean):
    """The mean of the root, summed over the Poisson law, must come back as the mean of the counts.

    The table is interpolated linearly between 2000 means: the error is the second derivative times step^2 / 8. Beyond
    200 counts the square starts from the end of the table, which is right to 1e-6.
    """
    expected = float(oracles.anscombe_moments(mean)[0])
    assert COUNTS.inverse(np.array([expected]))[0] == pytest.approx(mean, rel=2e-5, abs=1e-5)


def test_the_inverse_of_a_root_far_from_zero():
    """A root is not the mean of roots: the unbiased inverse of 2 sqrt(m + 3/8) is m + 3/8 - 1/8, to 1e-5."""
    counts = np.array([1e4, 1e6, 1e9])
    np.testing.assert_allclose(COUNTS.forward(counts), 2 * np.sqrt(counts + 3 / 8), rtol=1e-15)
    np.testing.assert_allclose(COUNTS.inverse(COUNTS.forward(counts)) - counts, 0.25, atol=2e-4)


def test_the_inverse_rises_from_zero_without_a_step():
    """Across the end of the table at m = 200, too; roots below that of no counts give 0."""
    z = np.linspace(0, 60, 100_001)
    means = COUNTS.inverse(z)
    assert means[0] == 0
    assert (np.diff(means) >= 0).all()
    assert np.diff(means).max() < 1.01 * (z[1] - z[0]) * z[-1] / 2


@pytest.mark.parametrize("mean", [0.01, 0.7, 4.0, 60.0, 900.0])
def test_local_moments_are_those_of_the_root(mean):
    """Variance and derivative of the inverse, from the Poisson law; beyond the table they are 1 and z / 2 to 1e-3."""
    z, variance = oracles.anscombe_moments(mean)
    slope = 2e-3 * mean / (oracles.anscombe_moments(1.001 * mean)[0] - oracles.anscombe_moments(0.999 * mean)[0])
    found, weight = COUNTS.local_noise(np.array([[float(z)]]), None, ())
    assert found[0] == pytest.approx(float(variance), rel=1e-3)
    assert weight[0] == pytest.approx(float(slope) ** 2, rel=2e-3)
