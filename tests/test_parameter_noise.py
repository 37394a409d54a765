"""The choice of a parameter under noise that depends on the signal: cameras, counts, magnitudes, speckle."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, median_filter

import scorethresh as st
from scorethresh.noise.gaussian import observe

SIZES = [1, 3, 5, 7, 11]


def camera(rng, x):
    return 100 + (rng.poisson(x) + rng.normal(0.0, 2.0, x.shape)) / 0.5


def counts(rng, x):
    return rng.poisson(x)


def magnitudes(rng, x):
    return np.hypot(x + 3 * rng.normal(size=x.shape), 3 * rng.normal(size=x.shape))


def speckle(rng, x):
    return x * rng.gamma(16.0, 1 / 16.0, x.shape)


CASES = [
    (camera, st.CameraNoise(gain=0.5, offset=100.0, read=2.0), lambda x: 100 + x / 0.5),
    (camera, "camera", lambda x: 100 + x / 0.5),
    (counts, "poisson", lambda x: x),
    (magnitudes, st.RicianNoise(sigma=3.0), lambda x: x),
    (magnitudes, "rician", lambda x: x),
    (speckle, st.SpeckleNoise(16), lambda x: x),
    (speckle, "speckle", lambda x: x),
]


def plates(rng):
    """Plates of one brightness each, from 5 to 60."""
    return np.kron(rng.uniform(5.0, 60.0, (8, 8)), np.ones((16, 16)))


@pytest.mark.parametrize(("draw", "noise", "truth"), CASES)
def test_the_size_of_least_error_in_units_of_y(draw, noise, truth):
    """The estimator sees noise of level 1, and the risk is that in units of y, to the accuracy of local means."""
    rng = np.random.default_rng(3)
    x = plates(rng)
    y = draw(rng, x)
    found = st.select_parameter(median_filter, y, SIZES, noise=noise)
    back = observe(y, noise, None)
    losses = np.array([np.sum((back.restore(median_filter(back.values, p)) - truth(x)) ** 2) for p in SIZES])
    assert losses[SIZES.index(found.parameter)] <= 1.05 * losses.min()
    np.testing.assert_allclose(found.estimate, back.restore(median_filter(back.values, found.parameter)))
    # Weights are those at a local mean of 9 x 9, so the scale is rough.
    assert found.curve.risk[1:] == pytest.approx(losses[1:], rel=0.35)
    inside = back.values.reshape(8, 16, 8, 16).std(axis=(1, 3))
    assert np.mean(inside) == pytest.approx(1, abs=0.05)


def test_a_smoother_is_tuned_as_well_as_by_hand():
    """Stabilised, a Gaussian filter of one width fits all brightnesses; the risk knows what its errors mean in y."""
    rng = np.random.default_rng(4)
    x = 5 + 55 * gaussian_filter(rng.random((96, 96)), 6)
    x = 5 + 55 * (x - x.min()) / np.ptp(x)
    y = camera(rng, x)
    widths = [0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0]
    noise = st.CameraNoise(gain=0.5, offset=100.0, read=2.0)
    found = st.select_parameter(gaussian_filter, y, widths, noise=noise)
    losses = []
    for width in widths:
        back = observe(y, noise, None)
        losses.append(np.sum((back.restore(gaussian_filter(back.values, width)) - 100 - x / 0.5) ** 2))
    assert losses[widths.index(found.parameter)] <= 1.05 * min(losses)
    assert found.status == "interior"


def test_levels_do_not_go_with_other_noise():
    y = np.random.default_rng(0).poisson(9.0, (32, 32))
    with pytest.raises(ValueError, match="sigma goes with white noise"):
        st.select_parameter(median_filter, y, SIZES, noise="camera", sigma=1.0)
    with pytest.raises(ValueError, match="magnitudes of at least 0"):
        st.select_parameter(median_filter, y - 20.0, SIZES, noise="rician")
