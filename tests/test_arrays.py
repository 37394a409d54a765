import numpy as np
import pytest

from scorethresh._arrays import along, cropped, reflect_index


@pytest.mark.parametrize("n", [1, 2, 5])
def test_indices_are_reflected_as_padding_does(n):
    """NumPy's symmetric padding, over more than two periods on both sides."""
    reach = 5 * n + 3
    expected = np.pad(np.arange(n), reach, mode="symmetric")
    np.testing.assert_array_equal(reflect_index(np.arange(-reach, n + reach), n), expected)


def test_slices_belong_to_the_last_axes(rng):
    a = rng.normal(size=(2, 5, 6))
    np.testing.assert_array_equal(cropped(a, [slice(1, 3), slice(0, 4)]), a[:, 1:3, 0:4])
    assert np.shares_memory(cropped(a, [slice(2)]), a)


def test_vectors_broadcast_along_an_axis(rng):
    v = rng.normal(size=4)
    for axis in range(3):
        assert along(v, axis, 3).shape == tuple(4 if k == axis else 1 for k in range(3))
    np.testing.assert_array_equal((np.zeros((4, 3)) + along(v, 0, 2))[:, 1], v)
