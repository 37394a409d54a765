import numpy as np
import pytest
import scipy.stats
from mpmath import mp

from scorethresh.noise import anscombe


@pytest.mark.parametrize("mean", [0.01, 0.5, 3.0, 40.0, 190.0, 210.0, 1e4])
def test_the_inverse_is_unbiased(mean):
    """E root(Y), summed in high precision over the Poisson law, must come back as the mean."""
    spread = 12 * mp.sqrt(mean) + 30
    counts = range(max(0, int(mean - spread)), int(mean + spread))
    expected = mp.fsum(2 * mp.sqrt(k + 0.375) * mp.exp(k * mp.log(mean) - mean - mp.loggamma(k + 1)) for k in counts)
    assert anscombe.unbiased_inverse(np.array([float(expected)]))[0] == pytest.approx(mean, rel=2e-5, abs=1e-5)


def test_the_inverse_rises_from_zero():
    z = np.linspace(0, 60, 100_001)
    means = anscombe.unbiased_inverse(z)
    assert means[0] == 0
    assert (np.diff(means) >= 0).all()


@pytest.mark.parametrize("mean", [0.01, 0.7, 4.0, 60.0, 900.0])
def test_the_noise_is_that_of_the_root(mean):
    """Its variance, and by how much the mean grows with that of the root, summed over the Poisson law."""

    def moments(m):
        counts = np.arange(m + 40 * np.sqrt(m + 1))
        weights, z = scipy.stats.poisson(m).pmf(counts), anscombe.stabilise(counts)
        return weights @ z, weights @ z**2 - (weights @ z) ** 2

    z, variance = moments(mean)
    slope = 2e-3 * mean / (moments(1.001 * mean)[0] - moments(0.999 * mean)[0])
    found, steep = anscombe.local_moments(np.array([z]))
    assert found[0] == pytest.approx(variance, rel=1e-3)
    assert steep[0] == pytest.approx(slope, rel=1e-3)
