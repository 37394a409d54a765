"""Degrees of freedom of least squares on the lasso's support: the path against a solver, the sum against draws."""

import numpy as np
import pytest

import scorethresh as st
from scorethresh.risk.lasso import lasso_knots


def correlated_design(rng, n, p, rho=0.9):
    """Rows of an autoregressive process, columns of length 1."""
    distance = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    A = rng.normal(size=(n, p)) @ np.linalg.cholesky(rho**distance).T
    return A / np.linalg.norm(A, axis=0)


def support_at(knots, penalty):
    signs = np.zeros(1 + max(knots.variables, default=0))
    above = knots.penalties > penalty
    np.add.at(signs, knots.variables[above], knots.signs[above])
    assert set(signs) <= {0.0, 1.0}
    return set(np.flatnonzero(signs))


def lasso(A, y, penalty, steps=20_000):
    """The minimiser of ||y - A x||^2 / 2 + penalty ||x||_1 by coordinate descent, to convergence."""
    x, r = np.zeros(A.shape[1]), y.copy()
    squares = (A**2).sum(axis=0)
    for _ in range(steps):
        largest = 0.0
        for j in range(x.size):
            z = A[:, j] @ r + squares[j] * x[j]
            new = np.sign(z) * max(abs(z) - penalty, 0) / squares[j]
            largest = max(largest, abs(new - x[j]))
            r += A[:, j] * (x[j] - new)
            x[j] = new
        if largest < 1e-13:
            break
    return x


@pytest.mark.parametrize(("n", "p"), [(30, 12), (15, 25)])
def test_knots_are_where_the_support_changes(rng, n, p):
    """Between any two knots the support is that of a coordinate descent, which knows nothing of knots."""
    left = 0
    for _ in range(3):
        A = correlated_design(rng, n, p)
        y = A[:, 1] * 3 - A[:, 5] * 2 + rng.normal(size=n)
        knots = lasso_knots(A, y, 0.1)
        assert (np.diff(knots.penalties) < 0).all()
        edges = np.append(knots.penalties, 0.1)
        wide = np.flatnonzero(-np.diff(edges) > 0.01)[::2]
        for k in wide:
            penalty = (edges[k] + edges[k + 1]) / 2
            assert support_at(knots, penalty) == set(np.flatnonzero(lasso(A, y, penalty)))
        left += np.count_nonzero(knots.signs < 0)
    assert left or p < n  # correlated variables leave again


def test_an_orthonormal_design_is_score(rng):
    """SCORE's formula with a Gaussian kernel, without the mirror image and the paper's factor."""
    y = rng.normal(size=100)
    y[:10] += 4.0
    q = np.linalg.qr(rng.normal(size=(100, 100)))[0]
    for t in (0.5, 2.0, 3.0):
        kernel = np.exp(-0.5 * ((np.abs(y) - t) / 0.3) ** 2) / (0.3 * np.sqrt(2 * np.pi))
        expected = np.sum(np.abs(y) > t) + t * kernel.sum()
        assert st.dof_lasso_ols(q, q @ y, t, sigma=1.0, bandwidth=0.3) == pytest.approx(expected, rel=1e-6)
        # Data, penalty and noise in other units; and columns of another length.
        scaled = st.dof_lasso_ols(5 * q, 7 * (q @ y), 35 * t, sigma=7.0, bandwidth=0.3)
        assert scaled == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_the_mean_is_the_degrees_of_freedom(rng):
    """cov(y, fit) / sigma^2 over 400 draws, within 4 standard errors and 5% for the bias; the count is a third low."""
    n, p, draws = 100, 40, 400
    A = correlated_design(rng, n, p)
    mean = A[:, [2, 10, 20, 30]] @ [4.0, -3.0, 3.0, 2.0]
    penalties = np.array([0.5, 1.0, 1.6])
    true, found, count = np.empty((3, draws, 3))
    for k in range(draws):
        noise = rng.normal(size=n)
        y = mean + noise
        knots = lasso_knots(A, y, 0.4)
        for i, penalty in enumerate(penalties):
            support = sorted(support_at(knots, penalty))
            fit = A[:, support] @ np.linalg.lstsq(A[:, support], y, rcond=None)[0]
            true[k, i], count[k, i] = noise @ fit, len(support)
        found[k] = st.dof_lasso_ols(A, y, penalties, sigma=1.0)
    error = np.hypot(true.std(axis=0), found.std(axis=0)) / np.sqrt(draws)
    assert (np.abs(found.mean(axis=0) - true.mean(axis=0)) < 4 * error + 0.05 * true.mean(axis=0)).all()
    assert (count.mean(axis=0) < 0.7 * true.mean(axis=0)).all()


def test_no_variable_and_bad_arguments(rng):
    A, y = rng.normal(size=(20, 5)), rng.normal(size=20)
    assert st.dof_lasso_ols(A, y, 1e3, sigma=1.0) == 0
    assert st.dof_lasso_ols(A, np.zeros(20), 1.0, sigma=1.0) == 0
    assert st.dof_lasso_ols(A, y, [1.0, 2.0], sigma=1.0).shape == (2,)
    for change, match in (
        ({"penalty": 0.0}, "penalty must be positive"),
        ({"bandwidth": -1}, "bandwidth must be positive"),
        ({"sigma": 0}, "sigma must be positive"),
        ({"A": y}, r"A must have two axes.*got shapes \(20,\) and \(20,\)"),
        ({"y": y[:5]}, r"got shapes \(20, 5\) and \(5,\)"),
        ({"y": np.full(20, np.nan)}, "y holds 20 NaN"),
    ):
        arguments = {"A": A, "y": y, "penalty": 1.0, "sigma": 1.0} | change
        with pytest.raises(ValueError, match=match):
            st.dof_lasso_ols(arguments.pop("A"), arguments.pop("y"), arguments.pop("penalty"), **arguments)


def test_a_design_without_a_variable_is_refused():
    with pytest.raises(ValueError, match=r"A holds nothing but zeros, in shape \(9, 3\)"):
        st.dof_lasso_ols(np.zeros((9, 3)), np.ones(9), 1.0, sigma=1.0)
