"""Operators of inverse problems: against dense matrices."""

import itertools

import numpy as np
import pytest

import oracles
import scorethresh as st
from scorethresh.inverse.channels import PerChannel
from scorethresh.inverse.general import as_operator
from scorethresh.inverse.linear_map import conjugate_gradients, operator_norm

PSF = np.array([[0.1, 0.2, 0.0, 0.05], [0.05, 0.3, 0.1, 0.0], [0.0, 0.1, 0.05, 0.05]])
LINE = np.array([0.1, 0.5, 0.4])


def bound(operator, data_shape, *, complex_data=False):
    return as_operator(operator, None).bind(data_shape, complex_data=complex_data)


def draw(rng, shape, *, complex_data=False):
    return rng.normal(size=shape) + (1j * rng.normal(size=shape) if complex_data else 0.0)


def dense(a, *, complex_data=False):
    """The matrix of a map, column by column."""
    unit = np.eye(np.prod(a.shape)).reshape(-1, *a.shape)
    return np.stack([a.forward(e + 0j if complex_data else e).ravel() for e in unit], axis=1)


@pytest.mark.parametrize(("shape", "psf"), [((7, 6), PSF), ((9,), LINE), ((3, 4, 5), np.ones((2, 3, 2)) / 12)])
def test_a_periodic_blur_is_its_matrix(rng, shape, psf):
    matrix = oracles.blur_matrix(shape, psf, [n // 2 for n in psf.shape], (1,) * psf.ndim, periodic=True)
    blur = st.Blur(psf, boundary="periodic")
    np.testing.assert_allclose(dense(bound(blur, shape)), matrix, atol=1e-12)
    x = rng.normal(size=shape)
    np.testing.assert_allclose(blur(x).ravel(), matrix @ x.ravel(), atol=1e-12)


def test_a_blur_of_unknown_boundary_is_its_matrix(rng):
    """x exceeds the data by the size of the PSF; what the transform needs beyond that is not seen at all."""
    matrix = oracles.blur_matrix((6, 5), PSF, (1, 2), (1, 1), periodic=False)
    a = bound(st.Blur(PSF), (6, 5))
    columns = dense(a).reshape(30, *a.shape)
    np.testing.assert_allclose(columns[:, :8, :8].reshape(30, 64), matrix, atol=1e-12)
    assert np.abs(columns[:, 8:]).max(initial=0.0) < 1e-12
    assert np.abs(columns[:, :, 8:]).max(initial=0.0) < 1e-12
    x = rng.normal(size=(8, 8))
    np.testing.assert_allclose(st.Blur(PSF)(x).ravel(), matrix @ x.ravel(), atol=1e-12)


def test_a_point_stays_where_it_is():
    """Blurred by a symmetric PSF, restored or not, a picture does not move."""
    for boundary, factor in itertools.product(("unknown", "periodic"), (1, 2)):
        psf = np.ones((5, 3)) / 15
        operator = st.Blur(psf, boundary) if factor == 1 else st.Downsample(factor, psf, boundary)
        a = bound(operator, (8, 8))
        x = np.zeros((8 * factor, 8 * factor))
        x[4 * factor, 4 * factor] = 1.0
        assert a.visible(a.embed(x)).tolist() == x.tolist()
        ahead = a.forward(a.embed(x))
        total = ahead.sum()
        centre = [(ahead.sum(axis=1 - axis) * np.arange(8)).sum() / total for axis in (0, 1)]
        np.testing.assert_allclose(centre, 4.0, atol=1e-12)


@pytest.mark.parametrize(
    ("factor", "psf", "centre"), [(2, None, (1, 1)), (3, None, (2, 2)), (2, PSF, (1, 2)), ((3, 2), PSF, (1, 2))]
)
def test_downsampling_is_its_matrix(rng, factor, psf, centre):
    step = factor if isinstance(factor, tuple) else (factor, factor)
    kernel = np.ones(step) / np.prod(step) if psf is None else psf
    shape = (4 * step[0], 3 * step[1])
    matrix = oracles.blur_matrix(shape, kernel, centre, step, periodic=True)
    operator = st.Downsample(factor, psf, boundary="periodic")
    np.testing.assert_allclose(dense(bound(operator, (4, 3))), matrix, atol=1e-12)
    x = rng.normal(size=shape)
    np.testing.assert_allclose(operator(x).ravel(), matrix @ x.ravel(), atol=1e-12)
    if psf is None:
        means = x.reshape(4, step[0], 3, step[1]).mean(axis=(1, 3))
        np.testing.assert_allclose(operator(x), means, atol=1e-12)
    else:
        matrix = oracles.blur_matrix((4, 3), kernel, centre, step, periodic=False)
        a = bound(st.Downsample(factor, psf), (4, 3))
        inside = dense(a).reshape(12, *a.shape)[:, : 3 * step[0] + 3, : 2 * step[1] + 4]
        np.testing.assert_allclose(inside.reshape(12, -1), matrix, atol=1e-12)


def test_fourier_samples_are_rows_of_the_transform(rng):
    mask = rng.random((4, 6)) < 0.5
    a = bound(st.Fourier(mask), (4, 6), complex_data=True)
    rows = oracles.fourier_matrix((4, 6))[mask.ravel()]
    np.testing.assert_allclose(dense(a, complex_data=True), rows, atol=1e-12)
    coils = draw(rng, (3, 4, 6), complex_data=True)
    a = bound(st.Fourier(mask, coils), (3, 4, 6), complex_data=True)
    expected = np.concatenate([rows * coil.ravel() for coil in coils])
    np.testing.assert_allclose(dense(a, complex_data=True), expected, atol=1e-12)
    x = draw(rng, (4, 6), complex_data=True)
    samples = st.Fourier(mask, coils)(x)
    np.testing.assert_allclose(samples[:, mask].ravel(), expected @ x.ravel(), atol=1e-12)
    assert not samples[:, ~mask].any()


def operators(rng):
    """Operators of all kinds, with the shape of their data and whether these are complex."""
    mask = rng.random((6, 6)) < 0.4
    coils = draw(rng, (2, 6, 6), complex_data=True)
    matrix = rng.normal(size=(5, 8))
    return [
        (st.Blur(PSF, "periodic"), (7, 6), False),
        (st.Blur(PSF, "periodic"), (7, 6), True),
        (st.Blur(PSF), (7, 6), False),
        (st.Blur(LINE), (9,), False),
        (st.Downsample(2), (3, 4), False),
        (st.Downsample(2, PSF, "periodic"), (3, 4), False),
        (st.Downsample(2, PSF), (3, 4), True),
        (st.Mask(mask), (6, 6), False),
        (st.Mask(mask), (6, 6), True),
        (st.Fourier(mask), (6, 6), True),
        (st.Fourier(mask, real=True), (6, 6), True),
        (st.Fourier(mask, coils), (2, 6, 6), True),
        (st.Fourier(mask, coils, real=True), (2, 6, 6), True),
        (matrix, (5,), False),
        (matrix + 1j * rng.normal(size=(5, 8)), (5,), True),
    ]


@pytest.mark.parametrize("k", range(15))
def test_adjoint_and_proximal_step_are_those_of_the_matrix(rng, k):
    """A' is the conjugate transpose; the proximal step solves the normal equations."""
    operator, data_shape, complex_data = operators(rng)[k]
    a = bound(operator, data_shape, complex_data=complex_data)
    matrix = dense(a, complex_data=complex_data and not a.real)
    y = draw(rng, a.data_shape, complex_data=complex_data)
    back = (matrix.conj().T @ y.ravel()).reshape(a.shape)
    np.testing.assert_allclose(a.adjoint(y), back.real if a.real else back, atol=1e-12)
    z = draw(rng, a.shape, complex_data=complex_data and not a.real)
    for penalty in (3.0, 0.01):
        rows, right = matrix, y.ravel()
        if a.real:  # a complex number is two real data
            rows, right = np.concatenate([matrix.real, matrix.imag]), np.concatenate([right.real, right.imag])
        expected = oracles.proximal_step(rows, right, z.ravel(), penalty)
        found = a.proximal(y, z, penalty)
        error = np.linalg.norm(found.ravel() - expected) / np.linalg.norm(expected - z.ravel())
        iterates = not (isinstance(operator, st.Mask | st.Fourier) and getattr(operator, "coils", None) is None)
        assert error < (1e-2 if iterates and not getattr(a, "even", False) else 1e-10)


def test_conjugate_gradients_solve(rng):
    root = rng.normal(size=(12, 9))
    matrix, right = root.T @ root + np.eye(9), rng.normal(size=9)
    exact = np.linalg.solve(matrix, right)
    found = conjugate_gradients(lambda x: matrix @ x, right, tolerance=1e-12)
    np.testing.assert_allclose(found, exact, rtol=1e-9)
    calls = []

    def counted(x):
        calls.append(1)
        return matrix @ x

    conjugate_gradients(counted, right, start=exact, tolerance=1e-8)
    assert len(calls) == 1  # a good start is seen at once
    calls.clear()
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(conjugate_gradients(counted, right, precondition=lambda x: inverse @ x), exact)
    assert len(calls) == 1


def test_the_proximal_step_has_a_warm_start(rng):
    """Started at the solution, nothing moves: what conjugate gradients would add is beyond their tolerance."""
    matrix = rng.normal(size=(5, 8))
    a = bound(matrix, (5,))
    y, z = rng.normal(size=5), rng.normal(size=8)
    exact = oracles.proximal_step(matrix, y, z, 0.1)
    np.testing.assert_allclose(a.proximal(y, z, 0.1, exact), exact, rtol=1e-12)


def test_the_norm_is_the_largest_singular_value(rng):
    matrix = rng.normal(size=(6, 9)) + 1j * rng.normal(size=(6, 9))
    a = bound(matrix, (6,), complex_data=True)
    assert np.isclose(operator_norm(a, complex_domain=True), np.linalg.norm(matrix, 2), rtol=0.05)
    assert np.isclose(operator_norm(bound(st.Blur(PSF, "periodic"), (8, 8))), 1.0, rtol=1e-2)


def test_channels_are_treated_one_by_one(rng):
    a = bound(st.Blur(PSF, "periodic"), (7, 6))
    both = PerChannel(a, 2)
    y, z = rng.normal(size=(2, 7, 6)), rng.normal(size=(2, 7, 6))
    for k in (0, 1):
        assert both.forward(z)[k].tolist() == a.forward(z[k]).tolist()
        assert both.proximal(y, z, 0.1)[k].tolist() == a.proximal(y[k], z[k], 0.1).tolist()


class Wrapped:
    """A linear operator as other packages write it."""

    def __init__(self, matrix, adjoint=None, dims=None):
        self.matrix, self.back, self.shape = matrix, matrix.conj().T if adjoint is None else adjoint, matrix.shape
        if dims:
            self.dims = dims

    def matvec(self, x):
        return self.matrix @ x

    def rmatvec(self, y):
        return self.back @ y


class Products:
    """An operator with @ and .H only."""

    def __init__(self, matrix):
        self.matrix, self.shape = matrix, matrix.shape

    def __matmul__(self, x):
        return self.matrix @ x

    @property
    def H(self):
        return Products(self.matrix.conj().T)


def test_operators_of_other_packages_are_their_matrices(rng):
    import scipy.sparse
    from scipy.sparse.linalg import aslinearoperator

    matrix = rng.normal(size=(6, 12))
    functions = (lambda x: matrix @ x.ravel(), lambda y: (matrix.T @ y.ravel()).reshape(3, 4))
    sparse = scipy.sparse.csr_array(matrix)
    others = [matrix, matrix.tolist(), sparse, aslinearoperator(matrix), Wrapped(matrix), Products(matrix), functions]
    for other in others:
        a = as_operator(other, (3, 4)).bind((6,), complex_data=False)
        assert a.shape == (3, 4)
        np.testing.assert_allclose(dense(a), matrix, atol=1e-12)
        y = rng.normal(size=6)
        np.testing.assert_allclose(a.adjoint(y).ravel(), matrix.T @ y, atol=1e-12)


def test_the_shape_of_x_is_told_or_asked_for(rng):
    square, wide = rng.normal(size=(6, 6)), rng.normal(size=(6, 12))
    assert as_operator(square, None).bind((2, 3), complex_data=False).shape == (2, 3)
    assert as_operator(wide, None).bind((6,), complex_data=False).shape == (12,)
    assert as_operator(Wrapped(wide, dims=(4, 3)), None).bind((2, 3), complex_data=False).shape == (4, 3)
    with pytest.raises(TypeError, match=r"12 columns. Pass that of x"):
        as_operator(wide, None).bind((2, 3), complex_data=False)
    with pytest.raises(ValueError, match=r"shape \(5, 2\) has 10 entries, but operator has 12 columns"):
        as_operator(wide, (5, 2)).bind((6,), complex_data=False)
    with pytest.raises(ValueError, match="operator has 6 rows, but y has 5 entries"):
        as_operator(wide, None).bind((5,), complex_data=False)
    with pytest.raises(TypeError, match="a pair of functions does not tell"):
        as_operator((np.sum, np.sum), None).bind((5,), complex_data=False)


def test_wrong_operators_are_named(rng):
    from scipy.sparse.linalg import LinearOperator

    matrix = rng.normal(size=(6, 12))
    complex_matrix = matrix + 1j * rng.normal(size=(6, 12))

    def refused(operator, words, *, complex_data=False, error=ValueError):
        with pytest.raises(error, match=words):
            as_operator(operator, (12,)).bind((6,), complex_data=complex_data)

    refused(Wrapped(matrix, 3 * matrix.T), "rmatvec is not the adjoint of matvec.* It is 3 times as large")
    refused(Wrapped(matrix, rng.normal(size=(12, 6))), "rmatvec is not the adjoint .* conjugate transpose")
    refused(Wrapped(complex_matrix, complex_matrix.T), "rmatvec lacks a complex conjugate", complex_data=True)
    refused((lambda x: (matrix @ x) ** 2, lambda y: matrix.T @ y), r"operator\[0\] is not linear")
    refused((lambda x: matrix @ x, lambda y: matrix.T @ y + 1), r"operator\[1\] is not linear")
    refused((lambda x: x, lambda y: matrix.T @ y), r"operator\[0\] returned shape \(12,\), but y has shape \(6,\)")
    refused((lambda x: matrix @ x, lambda y: y), r"operator\[1\] returned shape \(6,\), but x has shape \(12,\)")
    refused((lambda x: np.full(6, np.nan), lambda y: matrix.T @ y), "NaN")
    half = LinearOperator((6, 12), matvec=lambda x: matrix @ x, dtype=float)
    refused(half, "rmatvec is not implemented .* define both", error=TypeError)
    refused(np.zeros((6, 12)), "returned zeros for a random array")
    refused(complex_matrix, "complex numbers for a real array", error=TypeError)
    with pytest.raises(TypeError, match=r"operator must be Blur, Mask.* got str"):
        as_operator("blur", None)
    with pytest.raises(ValueError, match="Leave it out"):
        as_operator(st.Blur(PSF), (3, 3))


def test_wrong_psfs_and_masks_are_named():
    with pytest.warns(st.AssumptionWarning, match=r"psf sums to 9, not to 1.* psf / psf.sum\(\)"):
        blur = st.Blur(np.ones((3, 3)), "periodic")
    assert np.allclose(blur(np.ones((4, 4))), 9.0)  # it is used as it is
    with pytest.raises(ValueError, match="psf is zero everywhere"):
        st.Blur(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="psf holds 1 NaN"):
        st.Blur([[np.nan, 1.0]])
    with pytest.raises(ValueError, match=r"unknown boundary 'wrap'"):
        st.Blur(PSF, "wrap")
    with pytest.raises(ValueError, match="psf has 2 axes, y has 1"):
        bound(st.Blur(PSF), (9,))
    with pytest.raises(ValueError, match="is larger than x"):
        bound(st.Blur(PSF), (2, 9))
    with pytest.raises(ValueError, match="factor must be a whole number of at least 2"):
        st.Downsample(1.5)
    with pytest.raises(ValueError, match="factor has 3 numbers for 2 axes"):
        bound(st.Downsample((2, 2, 2)), (4, 4))
    with pytest.raises(ValueError, match="mask is False everywhere"):
        st.Mask(np.zeros((3, 3), bool))
    with pytest.raises(ValueError, match="other values than 0 and 1"):
        st.Mask([[0, 255]])
    with pytest.raises(ValueError, match=r"mask has shape \(2,\), a channel of y has \(3,\)"):
        bound(st.Mask([True, False]), (3,))
    with pytest.raises(ValueError, match=r"coils must be numbers of shape \(coils, 2, 2\)"):
        st.Fourier(np.ones((2, 2), bool), np.ones((2, 2)))
    with pytest.raises(TypeError, match="y is real"):
        bound(st.Fourier(np.ones((2, 2), bool)), (2, 2))
    with pytest.raises(ValueError, match="but samples of this mask have"):
        bound(st.Fourier(np.ones((2, 2), bool)), (3, 2), complex_data=True)


def test_operators_print_shapes_instead_of_arrays():
    blur = st.Blur(st.gaussian_psf(2.0))
    assert repr(blur).startswith("Blur(psf=<17 x 17 float64>, ")
    assert "array" not in repr(st.Restorer(blur))
    assert "64 x 64 bool" in repr(st.Mask(np.ones((64, 64), bool)))
    y = np.random.default_rng(0).normal(size=(64, 64))
    found = st.select_psf(np.cumsum(y, axis=0), st.gaussian_psf, [0.5, 1.0], sigma=1.0)
    assert repr(found).startswith("<PsfSelection: width ")
