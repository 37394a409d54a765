"""Restoration in any units of y and of A, with functions that misbehave, and data that nothing can serve."""

import numpy as np
import pytest

import scorethresh as st
from scorethresh.inverse import general
from scorethresh.inverse.select_psf import select_psf


def blocks(n=24):
    """A picture with edges."""
    x = np.full((n, n), 20.0)
    x[6:18, 8:20] = 120.0
    x[10:14, 3:12] = 200.0
    return x


def problem(rng, kind, factor=1.0):
    """An operator times a factor, and data that it made without the factor."""
    x = blocks()
    if kind == "matrix":
        a = rng.normal(size=(700, x.size)) / 20
        return factor * a, a @ x.ravel() + rng.normal(0.0, 2.0, 700), {"shape": x.shape}
    if kind == "coils":
        mask = rng.random(x.shape) < 0.6
        coils = 0.3 + rng.random((2, *x.shape))
        operator = st.Fourier(mask, coils)
        noise = rng.normal(0.0, 2.0, (2, 2, *x.shape))
        return st.Fourier(mask, factor * coils), operator(x) + noise[0] + 1j * noise[1], {}
    psf = st.gaussian_psf(1.2)
    operator = st.Blur(psf, "periodic")
    y = operator(x) + rng.normal(0.0, 2.0, x.shape)
    return st.Blur(factor * psf, "periodic"), y, {}


@pytest.mark.filterwarnings("ignore:psf sums to")
@pytest.mark.parametrize("method", ["plug-and-play", "iht"])
@pytest.mark.parametrize("kind", ["matrix", "coils", "blur"])
@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_restoration_knows_no_units(kind, method, factor):
    """Units of y multiply x and the error of A x; those of A divide x and leave the error: to rounding.

    Weights of blends are rounded to 24 bits, and may be rounded to neighbours.
    """
    operator, y, options = problem(np.random.default_rng(3), kind)
    scaled, *_ = problem(np.random.default_rng(3), kind, factor)
    options = {**options, "method": method, "steps": 4}
    expected = st.Restorer(operator, sigma=2.0, **options).run(y)
    size = np.abs(expected.estimate).max()
    other_y = st.Restorer(operator, sigma=2.0 * factor, **options).run(y * factor)
    np.testing.assert_allclose(other_y.estimate / factor, expected.estimate, rtol=0, atol=1e-7 * size)
    np.testing.assert_allclose(other_y.predicted_mse / factor**2, expected.predicted_mse, rtol=1e-6)
    other_a = st.Restorer(scaled, sigma=2.0, **options).run(y)
    np.testing.assert_allclose(other_a.estimate * factor, expected.estimate, rtol=0, atol=1e-7 * size)
    np.testing.assert_allclose(other_a.predicted_mse, expected.predicted_mse, rtol=1e-6)
    np.testing.assert_allclose(other_a.determined, expected.determined, rtol=1e-6)


@pytest.mark.parametrize("complex_data", [False, True])
def test_the_gain_of_a_matrix_is_the_mean_of_its_singular_values(rng, complex_data):
    """Of their squares. Four probes of N real numbers tell it to a share of sqrt(sum s^4 / 2 parts) / sum s^2 / 2."""
    a = rng.normal(size=(300, 200)) * np.linspace(0.2, 3.0, 200)
    squares = np.linalg.svd(a, compute_uv=False) ** 2
    bound = general.General(a, (200,)).bind((300,), complex_data=complex_data)
    stderr = np.sqrt(2 * np.sum(squares**2) / (4 * (1 + complex_data))) / np.sum(squares) / 2
    assert abs(bound.gain / np.sqrt(squares.mean()) - 1) < 4 * stderr


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_data_whose_squares_leave_the_range_are_named(unit):
    """Not by an overflow inside of the noise estimate."""
    operator, y, _ = problem(np.random.default_rng(3), "blur")
    with pytest.raises(ValueError, match=r"the largest magnitude in y is .*, beyond the range"):
        st.restore(unit * y, operator)
    with pytest.raises(ValueError, match=r"the largest magnitude in y is .*, beyond the range"):
        select_psf(unit * y, st.gaussian_psf, [0.5, 1.0, 1.5])
    a, y, options = problem(np.random.default_rng(3), "matrix", unit)
    with pytest.raises(ValueError, match=r"returned magnitudes up to .* for random numbers, beyond the range"):
        st.restore(y, a, sigma=2.0, **options)


def test_a_prediction_needs_fourth_powers():
    """Without one, `restore` bears larger units."""
    operator, y, _ = problem(np.random.default_rng(3), "blur")
    expected = st.restore(y, operator, sigma=2.0, steps=2)
    found = st.restore(1e100 * y, operator, sigma=2e100, steps=2)
    np.testing.assert_allclose(found / 1e100, expected, rtol=1e-9)
    with pytest.raises(ValueError, match="for their fourth powers are needed"):
        st.Restorer(operator, sigma=2e100, steps=2).run(1e100 * y)


def test_integers_of_64_bits_are_not_cut_off():
    """They were, at 2^53; and the largest double that fits is below the largest integer."""
    operator, y, _ = problem(np.random.default_rng(3), "blur")
    y = (y * 1e15).astype(np.int64)
    found = st.restore(y, operator, sigma=2e15, steps=2)
    assert found.dtype == np.int64
    np.testing.assert_allclose(found, st.restore(y.astype(float), operator, sigma=2e15, steps=2), rtol=1e-15)
    high = np.full((12, 12), np.iinfo(np.int64).max)
    assert (st.restore(high, st.Mask(np.ones(high.shape, bool)), sigma=1e15, steps=2) > 9e18).all()


def test_single_precision_bears_its_smallest_and_largest_units():
    """The estimate is that of double precision, to a tenth of the noise level."""
    operator, y, _ = problem(np.random.default_rng(3), "blur")
    expected = st.restore(y, operator, sigma=2.0)
    for unit in (1e-34, 1e34):
        found = st.restore((unit * y).astype(np.float32), operator, sigma=2.0 * unit)
        assert found.dtype == np.float32
        assert np.sqrt(np.mean((found / unit - expected) ** 2)) < 0.2


def test_functions_may_write_into_their_argument_or_return_it():
    """An operator works on copies: neither y nor an iterate is changed."""
    y = blocks() + np.random.default_rng(0).normal(0.0, 2.0, (24, 24))
    kept = y.copy()
    y.flags.writeable = False
    plain = st.restore(y, (lambda x: 2 * x, lambda x: 2 * x), sigma=2.0, shape=y.shape, steps=3)
    writing = (lambda x: np.multiply(x, 2, out=x),) * 2
    np.testing.assert_array_equal(st.restore(y, writing, sigma=2.0, shape=y.shape, steps=3), plain)
    same = st.restore(y, (lambda x: x,) * 2, sigma=2.0, shape=y.shape, steps=3)
    np.testing.assert_array_equal(same, st.restore(y, (np.copy, np.copy), sigma=2.0, shape=y.shape, steps=3))
    np.testing.assert_array_equal(y, kept)


@pytest.mark.parametrize("shape", ["24", (24, -24), (24.5, 24), (True, 576), 0, (24, None)])
def test_shapes_of_x_that_are_none_are_named(shape):
    with pytest.raises(ValueError, match="shape must be a whole number of at least 1, got"):
        st.restore(np.zeros(576), np.eye(576), sigma=1.0, shape=shape)
