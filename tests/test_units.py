"""Results do not depend on the units of the data: in units of another power of 2 they are the same, digit by digit."""

import numpy as np
import pytest
import pywt

from scorethresh.denoising.aggregate import simplex_minimum
from scorethresh.denoising.denoiser import Denoiser

CLEAN = pywt.data.camera()[100:196, 150:246].astype(float) + 5.0


def camera(rng):
    return 100 + (rng.poisson(0.2 * CLEAN) + 1.6 * rng.normal(size=CLEAN.shape)) / 0.46


def speckle(rng):
    return CLEAN * rng.gamma(10.0, 0.1, CLEAN.shape)


def magnitudes(rng):
    return np.hypot(CLEAN + 10 * rng.normal(size=CLEAN.shape), 10 * rng.normal(size=CLEAN.shape))


@pytest.mark.parametrize("exponent", [-300, 3, 70, 300])
@pytest.mark.parametrize(
    ("draw", "noise"), [(camera, "camera"), (camera, "auto"), (speckle, "speckle"), (magnitudes, "rician")]
)
@pytest.mark.filterwarnings("ignore::scorethresh.AssumptionWarning")
def test_results_do_not_depend_on_the_units(rng, draw, noise, exponent):
    """Squared errors of camera data, speckle and magnitudes have weights. In units of y squared these overflowed beyond
    1e18, and the weights of experts changed by a few percent. Logarithms, of speckle, are rounded: single precision."""
    y = draw(rng)
    denoiser = Denoiser(noise=noise, choose="fast")
    plain, found = denoiser.run(y), denoiser.run(np.ldexp(y, exponent))
    rounding = {"rtol": 1e-4 if noise == "speckle" else 1e-12}
    np.testing.assert_allclose(np.ldexp(found.estimate, -exponent), plain.estimate, **rounding)
    np.testing.assert_allclose(np.ldexp(found.predicted_mse, -2 * exponent), plain.predicted_mse, **rounding)
    np.testing.assert_allclose(np.ldexp(found.stderr, -2 * exponent), plain.stderr, **rounding)
    np.testing.assert_allclose(np.ldexp(found.error_map(), -2 * exponent), plain.error_map(), **rounding)
    assert found.verdict == plain.verdict


@pytest.mark.parametrize("unit", [2.0**-600, 2.0**40, 2.0**600])
def test_weights_of_experts_do_not_depend_on_the_units(rng, unit):
    residuals = rng.normal(size=(3, 50))
    gram, divergences = residuals @ residuals.T, rng.uniform(0, 20, 3)
    np.testing.assert_array_equal(simplex_minimum(gram * unit, divergences * unit), simplex_minimum(gram, divergences))
