import itertools
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import fft

import oracles
from scorethresh.noise.covariance import (
    MIN_RELATIVE_VARIANCE,
    Covariance,
    Stationary,
    White,
    reflected_variance,
    reflected_variances,
)


def power_of(rng, shape):
    """Return the power spectrum of white noise behind a random filter."""
    return np.abs(np.fft.fftn(rng.normal(size=shape))) ** 2


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((9,), (4,)), ((6,), (6,)), ((5,), (13,)), ((7, 6), (3, 4)), ((4, 5), (6, 2)), ((4, 3, 5), (2, 2, 3))],
)
def test_variances_behind_filters_are_sums_over_the_covariance(rng, shape, sizes):
    """Odd and even grids, filters shorter and longer than them, one to three axes."""
    power = power_of(rng, shape)
    filters = [rng.normal(size=(2, size)) for size in sizes]
    found = Stationary(power).filter_variances(filters)
    assert found.shape == (2,) * len(shape)
    for index in itertools.product(range(2), repeat=len(shape)):
        taps = np.ones(())
        for rows, i in zip(filters, index, strict=True):
            taps = np.multiply.outer(taps, rows[i])
        assert found[index] == pytest.approx(oracles.filtered_variance(power, taps), rel=1e-10)


def test_a_flat_spectrum_is_white_noise(rng):
    filters = [rng.normal(size=(3, 4)), rng.normal(size=(2, 5))]
    flat, white = Stationary(np.full((8, 9), 6.25)), White(2.5)
    np.testing.assert_allclose(white.filter_variances(filters), flat.filter_variances(filters), rtol=1e-12)
    taps = np.multiply.outer(filters[0][1], filters[1][0])
    assert white.filter_variances(filters)[1, 0] == pytest.approx(6.25 * math.fsum(taps.ravel() ** 2), rel=1e-12)
    for one in (flat, white):
        assert one.variance == pytest.approx(6.25, rel=1e-12)
        assert one.mean_squared_power == pytest.approx(6.25**2, rel=1e-12)


def test_moments_are_traces_of_the_covariance(rng):
    power = power_of(rng, (5, 4))
    matrix = oracles.covariance_matrix(power)
    assert Stationary(power).variance == pytest.approx(np.trace(matrix) / 20, rel=1e-12)
    assert Stationary(power).mean_squared_power == pytest.approx(np.trace(matrix @ matrix) / 20, rel=1e-12)


def test_a_filter_that_sees_no_noise_still_has_a_variance():
    """Noise at frequency 0 only is constant, and differences of it vanish."""
    power = np.zeros(16)
    power[0] = 48.0
    found = Stationary(power).filter_variances([np.array([[1.0, -1.0], [1.0, 1.0]])])
    np.testing.assert_allclose(found, [MIN_RELATIVE_VARIANCE * 3 * 2, 3 * 4], rtol=1e-9)


def test_spectra_of_long_signals_need_little_memory():
    """The variance behind a filter needs the covariance at distances within the filter only."""
    spectrum, filters = Stationary(np.ones(200_000)), [fft.dct(np.eye(1024), norm="ortho", axis=0)]
    tracemalloc.start()
    variances = spectrum.filter_variances(filters)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(variances, 1)
    assert peak < 100 * 1024**2


def test_samples_have_their_covariance(rng):
    """Each of the 400 entries of the matrix is a mean of 20,000 products, of standard deviation C(0) or less."""
    power = power_of(rng, (4, 5))
    drawn = Stationary(power).sample((20_000, 4, 5), rng).reshape(20_000, 20)
    matrix = oracles.covariance_matrix(power)
    np.testing.assert_allclose(drawn.T @ drawn / 20_000, matrix, atol=5 * math.sqrt(2) * matrix[0, 0] / 20_000**0.5)
    white = White(3.0).sample((100_000,), rng)
    assert white.std() == pytest.approx(3, rel=5 / math.sqrt(2 * 100_000))


def test_samples_are_cropped_to_their_shape(rng):
    drawn = Stationary(power_of(rng, (8, 8))).sample((3, 5, 7), rng)
    assert drawn.shape == (3, 5, 7)
    assert drawn.flags.c_contiguous
    assert not np.allclose(drawn[0], drawn[1])


@pytest.mark.parametrize(("size", "n"), [(1, 3), (4, 9), (7, 3), (12, 2), (5, 1), (9, 4)])
def test_variances_under_reflection_are_direct_sums(rng, size, n):
    """Filters may be longer than the data, and than their period."""
    rows = rng.normal(size=(2, size))
    expected = [oracles.reflected_filter_variances(row, n) for row in rows]
    np.testing.assert_allclose(reflected_variance(rows, n), np.mean(expected, axis=1), rtol=1e-10)
    for row, variances in zip(rows, expected, strict=True):
        np.testing.assert_allclose(reflected_variances(row, n), variances[:n], rtol=1e-10)


def test_a_difference_of_reflected_constants_is_never_negative():
    """Behind 1, -1 a single reflected entry is constant; by rounding its variance could be below 0."""
    found = reflected_variance(np.array([[1.0, -1.0], [0.1, -0.1]]), 1)
    assert (found >= 0).all()
    np.testing.assert_allclose(found, 0, atol=1e-15)


def test_covariances_declare_what_they_need_and_can_be_pickled():
    class Nothing(Covariance):
        pass

    with pytest.raises(TypeError, match=r"filter_variances.*mean_squared_power.*sample.*variance"):
        Nothing()
    assert pickle.loads(pickle.dumps(White(2.0))) == White(2.0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(Stationary(np.arange(3.0)))).power, np.arange(3.0))
