import numpy as np
import pytest
from mpmath import mp

from scorethresh import poisson


@pytest.mark.parametrize("mean", [0.01, 0.5, 3.0, 40.0, 190.0, 210.0, 1e4])
def test_the_inverse_is_unbiased(mean):
    """E root(Y), summed in high precision over the Poisson law, must come back as the mean."""
    spread = 12 * mp.sqrt(mean) + 30
    counts = range(max(0, int(mean - spread)), int(mean + spread))
    expected = mp.fsum(2 * mp.sqrt(k + 0.375) * mp.exp(k * mp.log(mean) - mean - mp.loggamma(k + 1)) for k in counts)
    assert poisson.mean_of(np.array([float(expected)]))[0] == pytest.approx(mean, rel=2e-5, abs=1e-5)


def test_the_inverse_rises_from_zero():
    z = np.linspace(0, 60, 100_001)
    means = poisson.mean_of(z)
    assert means[0] == 0
    assert (np.diff(means) >= 0).all()
