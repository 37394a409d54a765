"""The compiled loops: what they compute, that wrong arrays never reach them, and how their libraries are found."""

import contextlib
import re
import shutil
import threading
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from helpers import run_python
from oracles import (
    filter_direct,
    kernel_sums_direct,
    nearest_patches,
    npmle,
    product_moments,
    sparse_fits,
    stein_sums_direct,
    window_dct_direct,
)
from scorethresh import _kernels
from scorethresh._kernels import CellTable, CutGaussian, PiecewiseQuadratic, WindowShrinkage, loader, patches
from scorethresh._kernels.moments import chebyshev_of_products
from scorethresh.rules import as_rule
from scorethresh.sample.cells import Cells

TESTS = Path(__file__).parent
# The libraries that this processor can run.
RUNNABLE = [k for k in loader.LEVELS if k <= loader.load(1)["cpu_level"]() and loader.path_of(k).exists()]
every_level = pytest.mark.parametrize("level", RUNNABLE)
# Sums of some hundred products of numbers near 1, in units of the last place.
ROUNDING = {"float32": 100 * 2.0**-23, "float64": 100 * 2.0**-52}
both_precisions = pytest.mark.parametrize("dtype", ["float32", "float64"])


def dct_matrix(size, dtype):
    from scipy import fft

    return np.ascontiguousarray(fft.dct(np.eye(size), norm="ortho", axis=0), dtype)


EDGES = np.array([0.0, 0.25, 0.5, 1.0, 1.25, 1.5, 1.75, 2.0])
# Cells up to 1 are found by steps from cell 0; beyond, edges are those at which the coarse key changes.
FIELDS = {
    "edges": EDGES,
    "middle": (EDGES[1:] + EDGES[:-1]) / 2,
    "scale": 2 / np.diff(EDGES),
    "table": np.zeros(4, np.int32),
    "unit": 1.0,
    "first_key": 0,
    "tail_cell": 3,
    "tail_key": int(np.float64(1.0).view(np.int64)) >> _kernels.COARSE,
}


# What the loops compute.


@contextlib.contextmanager
def at(level):
    """Choose the library of a level in place of the best one."""
    with mock.patch.object(loader, "functions", return_value=loader.load(level)):
        yield


@every_level
@both_precisions
def test_deposit_adds_moments(rng, dtype, level):
    """To rounding of the count; NaN, infinities and what lies beyond the last edge are counted apart."""
    table = CellTable(**FIELDS)
    edges = table.edges
    y = np.concatenate([rng.normal(size=500), edges, -edges, [np.nan, np.inf, -np.inf]]).astype(dtype)
    moments = np.ones((7, _kernels.ORDER))
    with at(level):
        left_out = _kernels.deposit(y, table, moments)
    assert left_out == 3 + (np.abs(y[:-3]) > 2).sum()
    expected = product_moments(y[:-3], edges, _kernels.ORDER)
    np.testing.assert_allclose(moments - 1, expected, rtol=0, atol=1e-13 * y.size)


@every_level
def test_deposit_of_many_entries_in_real_cells(rng, level):
    """Blocks with and without far entries; entries at edges, and next to the values at which keys change."""
    cells = Cells.make(np.arange(0.0, 8.0, 1 / 32), as_rule("hard"), 1.0, 0.2)
    table = cells.table
    keys = np.arange(table.first_key, table.first_key + table.table.size, 37)
    starts = (keys << _kernels.FINE).view(np.float64) / table.unit
    near = [starts, np.nextafter(starts, 0), np.nextafter(starts, np.inf), cells.edges[:600], cells.edges[::50]]
    y = np.concatenate([*near, rng.normal(size=300), 1e9 * rng.normal(size=70)])
    moments = np.zeros((len(cells), _kernels.ORDER))
    with at(level):
        assert _kernels.deposit(y, table, moments) == 0
        assert _kernels.deposit(np.array([np.nan]), table, moments) == 1
    np.testing.assert_allclose(moments, product_moments(y, cells.edges, _kernels.ORDER), rtol=0, atol=1e-11)


def test_moments_become_sums_of_chebyshev_polynomials(rng):
    t = rng.uniform(-1, 1, 30)
    moments = product_moments(t + 3, [2.0, 4.0], _kernels.ORDER)[0]
    expected = np.polynomial.chebyshev.chebvander(t, _kernels.ORDER - 1).sum(axis=0)
    np.testing.assert_allclose(moments @ chebyshev_of_products(), expected, rtol=0, atol=1e-12)


@every_level
@pytest.mark.parametrize("points", [np.linspace(0, 6, 300), np.sort(np.random.default_rng(1).uniform(0, 6, 90))])
@pytest.mark.parametrize("reach", [8.9, 37.6])
def test_kernel_sums_are_the_direct_sums(rng, points, reach, level):
    """On an even grid, where the loop recurs, and on any other; two pieces that meet at different points per entry."""
    z, weights, h = np.sort(rng.uniform(0, 7, 80)), rng.normal(size=80), 0.3
    z[0] = 0.0
    coefficients = rng.normal(size=(2, 3, points.size))
    border = np.searchsorted(points, z)
    bounds = np.stack([np.full(z.size, points.size), border, np.zeros(z.size, np.int64)])

    def factor(v, i, k):
        c = coefficients[0 if k >= border[i] else 1, :, k]
        return c[0] + c[1] * v + c[2] * v * v

    with at(level):
        found = _kernels.kernel_sums(
            z, weights, points, CutGaussian(h, reach), PiecewiseQuadratic(bounds, coefficients)
        )
    expected = kernel_sums_direct(z, weights, points, h, reach, factor)
    # Kernels are cut off below 1e-17 of their peak, or right to 1e-13 by the recursion.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@every_level
@pytest.mark.parametrize("points", [np.linspace(0, 3, 90), np.sort(np.random.default_rng(1).uniform(0, 3, 40))])
def test_kernel_sums_replace_close_entries_by_nodes(rng, points, level):
    """Where a kernel is a polynomial, to 1e-14; three pieces, one of which starts twice as far as the other."""
    z, weights, h = np.sort(rng.uniform(0, 3.5, 400)), rng.normal(size=400), 0.3
    coefficients = rng.normal(size=(3, 3, points.size))
    borders = np.searchsorted(points, z), np.searchsorted(2 * points, z)
    bounds = np.stack([np.full(z.size, points.size), *borders, np.zeros(z.size, np.int64)])

    def factor(v, i, k):
        c = coefficients[sum(int(k < border[i]) for border in borders), :, k]
        return c[0] + c[1] * v + c[2] * v * v

    with at(level):
        found = _kernels.kernel_sums(
            z, weights, points, CutGaussian(h, 8.9, 0.61), PiecewiseQuadratic(bounds, coefficients)
        )
    expected = kernel_sums_direct(z, weights, points, h, 8.9, factor)
    # Squares of kernels, and kernels times a square, are polynomials to 1e-12 and 7e-12 of the sum of magnitudes.
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=3e-14 * np.abs(weights).sum())
    np.testing.assert_allclose(found[1:], expected[1:], rtol=0, atol=1e-11 * np.abs(weights).sum())


@every_level
@both_precisions
@given(
    shape=some.lists(some.integers(1, 9), min_size=1, max_size=3),
    taps=some.integers(1, 5),
    step=some.integers(0, 20),
    shift=some.integers(-30, 30),
    axis=some.integers(-3, 2),
    seed=some.integers(0, 1000),
)
def test_dilated_is_a_circular_filter(level, dtype, shape, taps, step, shift, axis, seed):
    """Also where the filter is longer than the data; nothing is written beside the output."""
    axis = axis % len(shape) - len(shape) * (axis < 0)
    rng = np.random.default_rng(seed)
    x, filters = rng.normal(size=shape).astype(dtype), rng.normal(size=2 * taps).astype(dtype)
    expected = filter_direct(x, filters, axis, step, shift)
    guarded = np.full(x.size + 200, 7.0, dtype)
    out = guarded[100:-100].reshape(shape)
    with at(level):
        found = _kernels.dilated(x, filters, axis, step=step, shift=shift)
        assert _kernels.dilated(x, filters, axis, step=step, shift=shift, out=out) is out
    np.testing.assert_allclose(found, expected, rtol=0, atol=10 * ROUNDING[dtype])
    np.testing.assert_allclose(out, 7 + expected, rtol=0, atol=20 * ROUNDING[dtype])
    assert (guarded[:100] == 7).all()
    assert (guarded[-100:] == 7).all()


def test_dilated_takes_steps_of_any_size():
    """Products of the step and the number of taps may not overflow."""
    x, taps = np.arange(5.0), np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(
        _kernels.dilated(x, taps, 0, step=10**30 + 1, shift=-(10**30)), filter_direct(x, taps, 0, 10**30 % 5 + 1, 0)
    )
    assert _kernels.dilated(np.zeros((0, 3)), taps, 0, step=1).shape == (0, 3)


def even_shrinkage(cut, jump, shape, step):
    """White noise of level 1, and no borders."""
    counts = ((n - b) // step + 1 if step else 1 for b, n in zip(cut.shape[1:], shape[2:], strict=True))
    traces = (np.ones((max(int(n), 1), b), cut.dtype) for n, b in zip(counts, cut.shape[1:], strict=True))
    return WindowShrinkage(cut, np.ones_like(cut), jump, np.ones_like(cut), *traces)


@every_level
@both_precisions
@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize(
    ("shape", "block", "step"),
    [
        ((1, 1, 20, 30), (8, 8), 1),
        ((2, 1, 16, 24), (8, 4), 2),
        ((1, 2, 6, 8), (4, 4), 2),
        ((3, 4, 16, 16), (16, 16), 4),
        ((1, 1, 8, 300), (4, 8), 1),  # three strips
        ((1, 1, 4, 404), (4, 4), 2),  # two strips
        ((1, 1, 40, 36), (32, 4), 4),  # sides without a loop of their own
        ((2, 1, 8, 80), (4, 64), 2),
    ],
)
def test_sliding_dct_is_the_sum_over_windows(rng, level, dtype, guided, shape, block, step):
    y, pilot = rng.normal(size=(2, *shape)).astype(dtype)
    cut, variance, trace = rng.uniform(0.5, 1.5, (3, shape[1], *block)).astype(dtype)
    cut.flat[0] = 0
    down, across = (
        rng.uniform(0.5, 1.5, ((n - b) // step + 1, b)).astype(dtype) for b, n in zip(block, shape[2:], strict=True)
    )
    matrices = dct_matrix(block[0], dtype), dct_matrix(block[1], dtype)
    # A jump so wide that rounding moves hardly any coefficient across its ends; those that it does move are skipped.
    jump = 0.2
    shrinkage = WindowShrinkage(cut, variance, jump, trace, down, across)
    with at(level):
        found = _kernels.sliding_dct(y, pilot if guided else None, shrinkage, matrices, step)
    exact = [None if v is None else v.astype(float) for v in (y, pilot if guided else None)]
    expected = window_dct_direct(*exact, WindowShrinkage(*(np.asarray(v, float) for v in shrinkage)), step)
    for a, b in zip(found, expected, strict=True):
        near = np.isclose(a, b, rtol=0, atol=20 * ROUNDING[dtype] * np.abs(b).max())
        assert near.mean() > (0.95 if dtype == "float32" else 0.9999)


@both_precisions
def test_a_pilot_of_zeros_keeps_only_the_mean(dtype):
    """Where both the pilot and the mean's cut are 0, the factor is 1, not 0 / 0."""
    y, cut = np.full((1, 1, 16, 16), 3.0, dtype), np.ones((1, 8, 8), dtype)
    cut.flat[0] = 0
    shrinkage, matrices = even_shrinkage(cut, 0.1, y.shape, 4), (dct_matrix(8, dtype),) * 2
    total, weight, divergence = _kernels.sliding_dct(y, np.zeros_like(y), shrinkage, matrices, 4)
    np.testing.assert_allclose(total[0, 0] / weight, 3, rtol=ROUNDING[dtype])
    np.testing.assert_allclose(divergence / weight, 1 / 64, rtol=ROUNDING[dtype])


@every_level
@both_precisions
@pytest.mark.parametrize("pieces", [2, 3, 4])
@pytest.mark.parametrize("size", [1, 7, 255, 256, 1000])
def test_stein_sums_are_the_direct_sums(rng, level, dtype, pieces, size):
    """Also of entries at the start of a piece, which belong below it, and of a kernel that underflows."""
    y = rng.normal(0, 3, size).astype(dtype)
    starts, terms = np.array([0.5, 1.0, 2.0])[: pieces - 1], rng.normal(size=(pieces, 4))
    y[:3] = np.array([0.5, -1.0, 400.0])[:size]
    keywords = {"sigma": 1.5, "starts": starts, "terms": terms, "position": 0.7, "bandwidth": 0.4}
    with at(level):
        found = _kernels.stein_sums(y, limit=1e50, **keywords)
    expected = stein_sums_direct(y, **keywords)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * size)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -5.0])
def test_stein_sums_refuse_entries_beyond_the_limit(bad):
    y = np.ones(300)
    keywords = {"sigma": 1.0, "starts": np.ones(1), "terms": np.ones((2, 4)), "position": 1.0, "bandwidth": 1.0}
    assert _kernels.stein_sums(y, limit=5.0, **keywords) is not None
    y[270] = bad
    assert _kernels.stein_sums(y, limit=5.0, **keywords) is None


def log_likelihood(z, counts, p, spacing):
    pairs = np.add.outer(z, spacing * np.arange(p.size)), np.subtract.outer(z, spacing * np.arange(p.size))
    return counts @ np.log(sum(np.exp(-0.5 * u**2) for u in pairs) @ p / np.sqrt(2 * np.pi))


@every_level
@pytest.mark.parametrize("seed", range(4))
def test_fit_mixture_finds_the_largest_likelihood(level, seed):
    """As long runs of expectation-maximisation find it, and to within the duality gap that it reports."""
    rng = np.random.default_rng(seed)
    z = np.sort(np.abs(rng.normal(size=60) + rng.choice([0.0, 2.0, 5.0], 60)))
    counts, columns = rng.integers(1, 9, 60).astype(float), 24 + seed
    with at(level):
        fit = _kernels.fit_mixture(z, counts, columns=columns, spacing=0.3, null=0.0, clear=1, close=2.0)
    best, _ = npmle(z, counts, 0.3 * np.arange(columns))
    found = log_likelihood(z, counts, fit.probabilities, 0.3)
    assert fit.probabilities.min() >= 0
    np.testing.assert_allclose(fit.probabilities.sum(), 1, rtol=1e-12)
    assert fit.gaps.shape == fit.taken.shape == (1,)
    assert 0 <= fit.gaps[0] < 1e-4
    # EM creeps up from below; no distribution exceeds the one found by more than the gap.
    assert -1e-9 <= found - best < 0.01
    assert best - found <= fit.gaps[0]


@every_level
@pytest.mark.parametrize("count", [1, 2, 3])
def test_fit_mixture_averages_the_sparser_fits_that_are_close(level, count):
    """Half and half with what there is. Each fit is made by the oracle."""
    rng = np.random.default_rng(5)
    z, counts, grid = np.sort(np.abs(rng.normal(size=80))), np.ones(80), 0.25 * np.arange(40)
    z[-8:] += 3.0
    fits = sparse_fits(z, counts, grid, 30.0, 5.5)
    lost = [log_likelihood(z, counts, fits[0], 0.25) - log_likelihood(z, counts, p, 0.25) for p in fits]
    # So close that this many fits take part.
    close = [-1.0, np.mean(sorted(lost)[1:]), 1e9][count - 1]
    taken = [1, *(v <= close for v in lost[1:])]
    assert sum(taken) == count
    with at(level):
        fit = _kernels.fit_mixture(z, counts, columns=40, spacing=0.25, null=30.0, clear=22, close=close)
    expected = fits[0]
    for sparser, is_in in zip(fits[1:], taken[1:], strict=True):
        expected = (expected + sparser) / 2 if is_in else expected
    np.testing.assert_array_equal(fit.taken, taken)
    assert fit.gaps.max() < 1e-4
    # The most likely mixture is unique as a density; its probabilities are poorly determined by the data.
    mixed = [log_likelihood(np.array([v]), np.ones(1), p, 0.25) for v in z for p in (fit.probabilities, expected)]
    np.testing.assert_allclose(mixed[::2], mixed[1::2], atol=0.01)


@every_level
@both_precisions
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(
    "columns", [np.arange(0, 1000 - 63, 16), [0, 16, 32, 35, 51, 67, 800], [936], np.arange(5, 200, 7)]
)
def test_patches_of_signals_are_matched_from_any_columns(rng, dtype, level, parts, columns):
    """Runs of references 16 apart are treated together, whatever their number and first column."""
    x, columns = rng.normal(size=(parts, 1, 2, 1000)).astype(dtype), np.asarray(columns, np.int64)
    offsets = np.array([(0, 0, d) for d in sorted(range(-300, 301), key=abs)])
    rows = np.array([[0, 0], [0, 1]])
    with at(level):
        found = _kernels.match_patches(x, (1, 1, 64), rows, columns, offsets).reshape(2, columns.size, -1)
    for (row, k), places in zip(np.ndindex(2, columns.size), found.reshape(-1, found.shape[-1]), strict=True):
        known = nearest_patches(x.astype(float), (1, 1, 64), (0, row, columns[k]), offsets)
        distances = {at: d for d, at in known}
        assert len(set(places)) == len(places)
        # Rounding of sums of squares.
        np.testing.assert_allclose([distances[at] for at in places], sorted(distances.values())[:32], rtol=1e-5)


# Wrong arrays.


def symmetric(rng, kind, count, n):
    """Matrices of many kinds: of full and of low rank, with values that are equal, zero, or far apart."""
    a = rng.normal(size=(count, n, n))
    if kind == "low rank":
        a[:, :, n // 3 + 1 :] = 0.0
    if kind == "graded":
        a *= 10.0 ** np.linspace(0, -12, n)
    if kind == "equal values":
        q = np.linalg.qr(a)[0]
        return (q * (1.0 + (np.arange(n) > n // 2))) @ np.swapaxes(q, 1, 2)
    if kind == "diagonal":
        return np.eye(n) * rng.normal(size=(count, n, 1)).round(0)
    return a + np.swapaxes(a, 1, 2) if kind == "indefinite" else a @ np.swapaxes(a, 1, 2)


@every_level
@pytest.mark.parametrize("kind", ["full rank", "low rank", "graded", "equal values", "diagonal", "indefinite"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 16, 23, 33, _kernels.MOST_SIDE])
def test_symmetric_eigen_makes_matrices_diagonal(rng, kind, n, level):
    """Values are those of LAPACK, vectors are orthonormal, and both make the matrix: to rounding of its norm.

    Some hundred rotations of n entries each cost a few units in the last place, all together.
    """
    a = symmetric(rng, kind, 9, n)
    with at(level):
        values, vectors = _kernels.symmetric_eigen(a)
    tolerance = 2.0**-52 * 10 * (1 + n)
    scale = np.linalg.norm(a, 2, axis=(1, 2))[:, None] + 1e-300
    assert (np.diff(values, axis=1) <= 0).all()
    assert np.max(np.abs(values - np.linalg.eigvalsh(a)[:, ::-1]) / scale) < tolerance
    assert np.max(np.abs(vectors @ np.swapaxes(vectors, 1, 2) - np.eye(n))) < tolerance
    made = np.swapaxes(vectors * values[..., None], 1, 2) @ vectors
    assert np.max(np.abs(made - a) / scale[..., None]) < tolerance


@pytest.mark.parametrize("power", [-961, -500, 501, 960])
def test_symmetric_eigen_has_no_units(rng, power):
    """Squares of such entries leave the range of doubles. A power of two changes no digit."""
    a = symmetric(rng, "full rank", 3, 12)
    expected, found = _kernels.symmetric_eigen(a), _kernels.symmetric_eigen(np.ldexp(a, power))
    np.testing.assert_array_equal(found.values, np.ldexp(expected.values, power))
    np.testing.assert_array_equal(found.vectors, expected.vectors)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_symmetric_eigen_names_what_it_cannot_do(rng, bad):
    """One matrix among others, and what is no square or too large."""
    a = symmetric(rng, "full rank", 6, 5)
    a[4, 1, 2] = a[4, 2, 1] = bad
    with pytest.raises(np.linalg.LinAlgError, match="the eigenvalues of 1 among 6 matrices did not converge"):
        _kernels.symmetric_eigen(a)
    for shape in ((2, 3, 4), (2, 0, 0), (1, _kernels.MOST_SIDE + 1, _kernels.MOST_SIDE + 1)):
        with pytest.raises(ValueError, match="matrices must be square, of 1 to"):
            _kernels.symmetric_eigen(np.zeros(shape))


def calls():
    """For every loop: its arrays by name, and how it is called with them."""
    rng = np.random.default_rng(0)
    arrays = {name: FIELDS[name].copy() for name in ("edges", "middle", "scale", "table")}
    z, points = np.sort(rng.uniform(0, 3, 40)), np.linspace(0, 3, 70)
    return {
        "deposit": (
            {"y": rng.normal(size=50), **arrays, "moments": np.zeros((7, _kernels.ORDER))},
            lambda y, moments, **table: _kernels.deposit(y, CellTable(**{**FIELDS, **table}), moments),
        ),
        "kernel_sums": (
            {
                "z": z,
                "weights": np.ones(40),
                "points": points,
                "bounds": np.zeros((3, 40), np.int64),
                "coefficients": np.zeros((2, 3, 70)),
            },
            lambda z, weights, points, bounds, coefficients: _kernels.kernel_sums(
                z, weights, points, CutGaussian(0.1, 8.9), PiecewiseQuadratic(bounds, coefficients)
            ),
        ),
        "stein_sums": (
            {"y": rng.normal(size=50), "starts": np.ones(2), "terms": np.ones((3, 4))},
            lambda y, starts, terms: _kernels.stein_sums(
                y, sigma=1.0, starts=starts, terms=terms, position=1.0, bandwidth=0.3, limit=1e9
            ),
        ),
        "fit_mixture": (
            {"z": z, "counts": np.ones(40)},
            lambda z, counts: _kernels.fit_mixture(
                z, counts, columns=30, spacing=0.1, null=10.0, clear=20, close=2.0
            ),
        ),
        "fit_mixture_rows": (
            {"z": rng.normal(size=(3, 50))},
            lambda z: _kernels.fit_mixture_rows(
                z, last=8.0, bin_width=0.05, columns=83, spacing=0.1, null=10.0, clear=5.0, close=2.0
            ),
        ),
        "shrink_windows": (
            {
                "data": rng.normal(size=(2, 3, 32)),
                "pilot": rng.normal(size=(2, 3, 32)),
                "cut": np.ones(32),
                "variance": np.ones(32),
                "trace": np.ones((3, 32)),
            },
            lambda data, pilot, cut, variance, trace: _kernels.shrink_windows(data, pilot, cut, variance, trace, 12.5),
        ),
        "average_windows": (
            {
                "windows": rng.normal(size=(2, 5, 16)),
                "weight": np.ones((2, 5)),
                "divergence": np.ones((2, 5)),
            },
            lambda windows, weight, divergence: _kernels.average_windows(
                _kernels.ShrunkWindows(windows, weight, divergence), 9, 4
            ),
        ),
        "ridge_signals": (
            {
                "pilot": rng.normal(size=(2, 80)),
                "data": rng.normal(size=(2, 2, 80)),
                "places": np.repeat(np.array([0, 9, 80, 96], np.int32), _kernels.MEMBERS).reshape(4, -1),
                "levels": np.array([0.5, 1.0]),
            },
            lambda pilot, data, places, levels: _kernels.ridge_signals(
                pilot, data, places, levels, _kernels.Ridge(1.0, 0.2, 0.01)
            ),
        ),
        "dilated": (
            {"x": np.ones((6, 8), np.float32), "taps": np.ones(4, np.float32), "out": np.zeros((6, 8), np.float32)},
            lambda x, taps, out: _kernels.dilated(x, taps, -1, step=2, out=out),
        ),
        "sliding_dct": (
            {
                "y": rng.normal(size=(2, 2, 12, 16)),
                "pilot": rng.normal(size=(2, 2, 12, 16)),
                "cut": np.ones((2, 4, 8)),
                "variance": np.ones((2, 4, 8)),
                "trace": np.ones((2, 4, 8)),
                "traces down": np.ones((5, 4)),
                "traces across": np.ones((5, 8)),
                "down": dct_matrix(4, float),
                "across": dct_matrix(8, float),
            },
            lambda y, pilot, cut, variance, trace, down, across, **traces: _kernels.sliding_dct(
                y, pilot, WindowShrinkage(cut, variance, 0.1, trace, *traces.values()), (down, across), 2
            ),
        ),
        "match_patches": (
            {
                "x": rng.normal(size=(2, 5, 6, 9)),
                "rows": np.array([[0, 0], [1, 2]]),
                "columns": np.array([0, 3, 5]),
                "offsets": np.array([[0, 0, 0], [0, 0, 1], [-1, 2, 0]]),
            },
            lambda x, rows, columns, offsets: _kernels.match_patches(x, (4, 4, 4), rows, columns, offsets),
        ),
        "ridge_groups": (
            {
                "pilot": rng.normal(size=(2, 1, 12, 16)),
                "data": rng.normal(size=(2, 1, 12, 16)),
                "places": np.tile(np.arange(8, dtype=np.int32), (3, _kernels.MEMBERS // 8)),
            },
            lambda pilot, data, places: _kernels.ridge_groups(
                pilot, data, (1, 8, 8), places, _kernels.Ridge(1.0, 0.2, 0.01)
            ),
        ),
        "symmetric_eigen": ({"matrices": np.tile(np.eye(5), (7, 1, 1))}, _kernels.symmetric_eigen),
    }  # fmt: skip


def unaligned(a):
    return np.frombuffer(bytearray(b"x" + a.tobytes()), a.dtype, offset=1).reshape(a.shape)


OTHER = {"f4": np.float64, "f8": np.float32, "i4": np.int64, "i8": np.int32}
DAMAGES = {
    "a list": lambda a: a.tolist(),
    "a number": lambda a: a.flat[0],
    "a string": lambda a: "array",
    "another precision": lambda a: a.astype(OTHER[a.dtype.str[1:]]),
    "the other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "complex": lambda a: a.astype(complex),
    "objects": lambda a: a.astype(object),
    "half precision": lambda a: a.astype(np.float16),
    "booleans": lambda a: a.astype(bool),
    "every other entry": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "backwards": lambda a: np.ascontiguousarray(a[..., ::-1])[..., ::-1],
    "one entry repeated": lambda a: np.broadcast_to(a.flat[0], a.shape),
    "not aligned": unaligned,
    "another axis": lambda a: a[None],
    "flat": lambda a: a.ravel() if a.ndim > 1 else a[:, None],
    "column by column": lambda a: np.asfortranarray(a) if a.ndim > 1 else a[:, None],
}
LENGTHS = {
    "empty": lambda a: a[:0],
    "one less": lambda a: np.ascontiguousarray(a[:-1]),
    "one more": lambda a: np.concatenate([a, a[:1]]),
    "one column less": lambda a: np.ascontiguousarray(a[..., :-1]),
}
ALL = {**DAMAGES, **LENGTHS}


# Data of any length and of both precisions are served, and tables of any length but 0.
SERVED = {("deposit", "y", what) for what in ("another precision", *LENGTHS)}
SERVED |= {("deposit", "table", what) for what in LENGTHS if what != "empty"}
SERVED |= {("stein_sums", "y", what) for what in ("another precision", *LENGTHS)}
# References, offsets and groups of any number but 0 are served, and data of any size that holds a patch.
SERVED |= {
    ("match_patches", name, what) for name in ("rows", "columns", "offsets") for what in ("one less", "one more")
}
SERVED |= {("ridge_groups", "places", what) for what in ("one less", "one more")}
SERVED |= {("ridge_groups", "data", "one more"), ("ridge_groups", "pilot", "one less")}  # parts that do not decide
SERVED |= {("match_patches", "x", what) for what in ("another precision", "one less", "one more")}
SERVED |= {("match_patches", "columns", "one column less")}
SERVED |= {("symmetric_eigen", "matrices", what) for what in ("empty", "one less", "one more")}
# Rows of any number and length are fitted; one row of data serves for all of the pilot; signals of any length.
SERVED |= {("fit_mixture_rows", "z", what) for what in LENGTHS}
SERVED |= {("shrink_windows", "data", "one less"), ("ridge_signals", "data", "one less")}
SERVED |= {("ridge_signals", "data", "one more")}
SERVED -= {("match_patches", "columns", "one more")}  # no longer ascending


def cases():
    """Every loop, every array of it, every damage."""
    every = [(loop, name, what) for loop, (arguments, _) in calls().items() for name in arguments for what in ALL]
    return [case for case in every if case not in SERVED]


def refused(loop, name, what):
    """Call a loop with one argument damaged, and return the error; None if there was none."""
    arguments, call = calls()[loop]
    arguments[name] = ALL[what](arguments[name])
    try:
        call(**arguments)
    except (TypeError, ValueError) as error:
        return error
    return None


@pytest.mark.parametrize(("loop", "name", "what"), cases())
def test_wrong_arrays_are_refused(loop, name, what):
    """Each would make a loop read or write outside of its arrays, or read them wrongly."""
    assert refused(loop, name, what) is not None


@pytest.mark.parametrize("loop", calls())
def test_right_arrays_are_accepted(loop):
    arguments, call = calls()[loop]
    call(**arguments)


def accepted():
    """Return the damages that a loop did not refuse."""
    return [case for case in cases() if refused(*case) is None]


@pytest.mark.slow
def test_wrong_arrays_are_refused_without_assertions():
    """`python -O` strips assertions. A crash would fail this too: it ends the process."""
    code = f"import sys; sys.path.insert(0, {str(TESTS)!r}); import test_kernels as t; print(t.accepted())"
    assert run_python(code, "-O") == ["[]"]


def test_an_error_names_the_array_and_what_came():
    """One of each kind."""
    for case, words in {
        ("dilated", "out", "another precision"): r"out must have dtype float32 in native byte order, got '<f8'",
        ("dilated", "x", "a list"): r"x must be a NumPy array of float32 or float64 in native byte order, got list",
        ("dilated", "taps", "one less"): r"taps must be even in number and at least 2, got 3. Append a 0",
        ("kernel_sums", "weights", "one more"): r"weights must have shape \(40\), got \(41,\)",
        ("sliding_dct", "cut", "one column less"): r"variance must have shape \(2, 4, 7\), got \(2, 4, 8\)",
        ("deposit", "moments", "not aligned"): r"moments must be C-contiguous and aligned, got strides",
    }.items():
        with pytest.raises((TypeError, ValueError), match=words):
            raise refused(*case)


@pytest.mark.parametrize(("loop", "name"), [("deposit", "moments"), ("dilated", "out")])
def test_outputs_must_be_writable(loop, name):
    arguments, call = calls()[loop]
    arguments[name].flags.writeable = False
    with pytest.raises(ValueError, match=f"{name} receives the result but is read-only"):
        call(**arguments)


def test_outputs_may_not_overlap_inputs():
    x, taps = np.zeros((6, 8)), np.ones(2)
    with pytest.raises(ValueError, match="out must not share memory with x"):
        _kernels.dilated(x, taps, 0, step=1, out=x)
    shared = np.zeros(50)
    with pytest.raises(ValueError, match="out must not share memory with taps"):
        _kernels.dilated(np.zeros(10), shared[8:10], 0, step=1, out=shared[:10])
    arguments, call = calls()["deposit"]
    arguments["y"] = arguments["moments"].reshape(-1)[:30]
    with pytest.raises(ValueError, match="moments must not share memory with y"):
        call(**arguments)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"axis": 2}, ValueError, "axis must lie between -2 and 1, got 2"),
        ({"axis": -3}, ValueError, "axis must lie between -2 and 1, got -3"),
        ({"axis": 0.0}, TypeError, "integer"),
        ({"step": 1.0}, TypeError, "integer"),
        ({"shift": 0.5}, TypeError, "integer"),
        ({"step": "1"}, TypeError, "integer"),
    ],
)
def test_wrong_numbers_for_a_filter(change, error, words):
    """A float would be passed in another register than an integer, and the loop would read what is in that one."""
    with pytest.raises(error, match=words):
        _kernels.dilated(**{"x": np.zeros((6, 8)), "taps": np.ones(2), "axis": 0, "step": 1, **change})


@pytest.mark.parametrize(
    ("shape", "block", "step", "error", "words"),
    [
        ((1, 1, 12, 12), (3, 4), 1, ValueError, "side of a window down must be a power of 2 from 4 to 64, got 3"),
        ((1, 1, 12, 12), (4, 1), 1, ValueError, "side of a window across must be a power of 2 from 4 to 64, got 1"),
        ((1, 1, 300, 300), (128, 4), 1, ValueError, "power of 2 from 4 to 64, got 128"),
        ((1, 1, 12, 12), (4, 4), 0, ValueError, "step must divide the side of a window down, 4, got 0"),
        ((1, 1, 12, 12), (4, 4), -2, ValueError, "step must divide"),
        ((1, 1, 12, 12), (4, 4), 3, ValueError, "step must divide"),
        ((1, 1, 12, 12), (4, 4), 2.0, TypeError, "integer"),
        ((1, 1, 3, 12), (4, 4), 1, ValueError, "length of y down must be 4 plus a multiple of 1, got 3. Pad it"),
        ((1, 1, 12, 13), (4, 4), 2, ValueError, "length of y across must be 4 plus a multiple of 2, got 13"),
        ((0, 1, 12, 12), (4, 4), 1, ValueError, "y must hold at least one entry"),
    ],
)
def test_wrong_windows(shape, block, step, error, words):
    cut = np.ones((1, *block))
    with pytest.raises(error, match=words):
        _kernels.sliding_dct(
            np.zeros(shape), None, even_shrinkage(cut, 0.1, shape, step), (np.eye(block[0]), np.eye(block[1])), step
        )


@pytest.mark.parametrize("jump", [0.0, 1.0, np.nan])
def test_wrong_width_of_the_jump(jump):
    cut, shape = np.ones((1, 4, 4)), (1, 1, 8, 8)
    with pytest.raises(ValueError, match="jump_half_width must lie strictly between 0 and 1"):
        _kernels.sliding_dct(np.zeros(shape), None, even_shrinkage(cut, jump, shape, 1), (np.eye(4), np.eye(4)), 1)


def test_entries_that_are_replaced_must_ascend():
    z, factor = np.array([2.0, 1.0]), PiecewiseQuadratic(np.zeros((2, 2), np.int64), np.zeros((1, 3, 1)))
    with pytest.raises(ValueError, match=r"z must ascend, so that neighbours can be replaced, got \[2. 1.\]"):
        _kernels.kernel_sums(z, np.ones(2), np.ones(1), CutGaussian(0.1, 8.9, 0.61), factor)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan, np.inf])
def test_wrong_bandwidths(bandwidth):
    one, factor = np.ones(1), PiecewiseQuadratic(np.zeros((2, 1), np.int64), np.zeros((1, 3, 1)))
    with pytest.raises(ValueError, match="bandwidth must be positive and finite"):
        _kernels.kernel_sums(one, one, one, CutGaussian(bandwidth, 8.9), factor)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"table": np.array([0, 7], np.int32)}, ValueError, "table must hold cells from 0 to 6"),
        ({"table": np.array([0, -1], np.int32)}, ValueError, "table must hold cells from 0 to 6"),
        ({"edges": EDGES[::-1].copy()}, ValueError, "edges must be at least 2 ascending numbers"),
        ({"edges": np.append(EDGES[:-1], np.nan)}, ValueError, "edges must be at least 2 ascending numbers"),
        ({"tail_cell": 8}, ValueError, "tail_cell must lie between 0 and 7, got 8"),
        ({"tail_cell": -1}, ValueError, "tail_cell must lie between 0 and 7, got -1"),
        ({"tail_cell": 1.0}, TypeError, "integer"),
        ({"tail_key": 5000}, ValueError, r"tail_key must be the key of edges\[3\], 4092, got 5000"),
        ({"tail_key": 4000}, ValueError, "tail_key must be the key"),
        ({"first_key": 0.0}, TypeError, "integer"),
    ],
)
def test_tables_that_lead_out_of_the_cells_are_refused(change, error, words):
    with pytest.raises(error, match=words):
        CellTable(**FIELDS | change)


LARGEST, SMALLEST = 2**31 - 1, -(2**63)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("rows", [[2, 0]], r"rows must hold at least one start, from 0 to \[1, 2\], got \[\[2, 0\]\]"),
        ("rows", [[0, 3]], "rows must hold"),
        ("rows", [[0, -1]], "rows must hold"),
        ("columns", [0, 6], r"columns must hold at least one start, from 0 to \[5\]"),
        ("columns", [-1, 3], "columns must hold"),
        ("columns", [3, 3], r"columns must ascend, got \[3, 3\]"),
        ("offsets", [[0, 0, 1]], r"offsets must start with \(0, 0, 0\) and fit 32 bits"),
        ("offsets", [[0, 0, 0], [0, 0, LARGEST + 1]], "offsets must start"),
        ("offsets", [[0, 0, 0], [0, 0, SMALLEST]], "offsets must start"),  # its magnitude is no integer of 64 bits
    ],
)
def test_references_that_lead_out_of_the_data_are_refused(name, value, words):
    arguments, call = calls()["match_patches"]
    with pytest.raises(ValueError, match=words):
        call(**arguments | {name: np.array(value)})


@pytest.mark.parametrize("away", [LARGEST, 0])
def test_offsets_that_lead_out_of_the_data_are_skipped(away):
    arguments, call = calls()["match_patches"]
    near = call(**arguments)
    far = np.concatenate([arguments["offsets"], [[-away, 9, 9], [0, away or 9, 0], [0, 0, away or 9], [0, 0, -9]]])
    np.testing.assert_array_equal(call(**arguments | {"offsets": far}), near)


@pytest.mark.parametrize("place", [-1, 12 * 16 - 7 * 16 - 8 + 1, LARGEST])  # the last one plus a patch has 33 bits
def test_places_beyond_the_data_are_refused(place):
    arguments, call = calls()["ridge_groups"]
    arguments["places"][1, 5] = place
    with pytest.raises(ValueError, match="places must name at least one group of patches within 192 entries"):
        call(**arguments)
    arguments["places"][1, 5] = 12 * 16 - 7 * 16 - 8
    assert call(**arguments).weight.size == 192


@pytest.mark.parametrize(
    "ridge",
    [(0, 0, 1), (np.nan, 0, 1), (1e-20, 0, 1), (1e20, 0, 1), (1, -0.1, 1), (1, 1.1, 1), (1, 0, 0), (1, 0, np.inf)],
)
def test_wrong_ridges(ridge):
    arguments, _ = calls()["ridge_groups"]
    with pytest.raises(ValueError, match=r"a ridge must have level from 1e-15 to 1e\+15, share from 0 to 1"):
        _kernels.ridge_groups(**arguments, patch=(1, 8, 8), ridge=_kernels.Ridge(*ridge))


@both_precisions
@pytest.mark.parametrize("level", [1e-15, 1e15])
@pytest.mark.parametrize("contrast", [0, 1, 1e3])
def test_the_ends_of_the_noise_levels_are_served(rng, dtype, level, contrast):
    data = (level * rng.normal(size=(1, 1, 12, 16))).astype(dtype)
    places = np.arange(_kernels.MEMBERS, dtype=np.int32)[None] % 8
    pilot = (level * contrast * rng.normal(size=data.shape)).astype(dtype)
    found = _kernels.ridge_groups(pilot, data, (1, 8, 8), places, _kernels.Ridge(level, 0.2, 0.01))
    assert all(np.isfinite(v).all() for v in found[1:])


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ((1, 8, 4), "sides of a patch must have product 64"),
        ((-1, -8, 8), "sides of a patch must have product 64"),
        ((4, 8, 2), r"the last one in \(4, 8, 64\)"),
        ((2, 4, 8), r"the data must hold a patch of \(2, 4, 8\)"),
        ((1, 16, 4), "the data must hold"),
        ((1, 1, 64), "the data must hold"),
    ],
)
def test_wrong_patches(patch, words):
    x = np.zeros((1, 1, 12, 16))
    with pytest.raises(ValueError, match=words):
        _kernels.ridge_groups(x, x, patch, np.zeros((1, _kernels.MEMBERS), np.int32), _kernels.Ridge(1.0, 0.0, 1.0))
    with pytest.raises(ValueError, match=words):
        _kernels.match_patches(x, patch, np.zeros((1, 2), int), np.zeros(1, int), np.zeros((1, 3), int))


def test_the_loops_and_their_wrappers_agree_on_constants():
    """A wrong order would write beyond the moments, a wrong size beyond the patches."""
    source = (TESTS.parent / "src" / "scorethresh" / "_kernels" / "moments.h").read_text()
    assert re.findall(r"enum \{ ORDER = (\d+)", source) == [str(_kernels.ORDER)]
    source = (TESTS.parent / "src" / "scorethresh" / "_kernels" / "deposit.c").read_text()
    assert re.findall(r"enum \{ FINE = (\d+), COARSE = (\d+)", source) == [(str(_kernels.FINE), str(_kernels.COARSE))]
    source = (TESTS.parent / "src" / "scorethresh" / "_kernels" / "ridge_groups.c").read_text()
    assert re.findall(r"#define (?:SIZE|MEMBERS) (\d+)", source) == [str(_kernels.PATCH_SIZE), str(_kernels.MEMBERS)]
    source = (TESTS.parent / "src" / "scorethresh" / "_kernels" / "match_patches.c").read_text()
    assert re.findall(r"#define MEMBERS (\d+)", source) == [str(_kernels.MEMBERS)]
    scratch = [str(patches.APART), str(patches.FOLDED_MARGIN)]
    assert re.findall(r"#define (?:APART|FOLDED_MARGIN) (\d+)", source) == scratch
    source = (TESTS.parent / "src" / "scorethresh" / "_kernels" / "symmetric_eigen.c").read_text()
    assert re.findall(r"#define MOST_SIDE (\d+)", source) == [str(_kernels.MOST_SIDE)]


# How the libraries are found.


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="the system does not list the processor's abilities")
def test_the_level_is_that_of_the_processor():
    flags = set(Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split())
    third = {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
    fourth = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
    expected = (4 if fourth <= flags else 3) if third <= flags else 1
    assert loader.load(1)["cpu_level"]() == expected


def test_the_best_library_is_loaded(monkeypatch, tmp_path):
    """That is the highest level that exists and that the processor can run."""
    assert loader.functions() is loader.load(RUNNABLE[0])
    for level in RUNNABLE:
        shutil.copy(loader.path_of(level), tmp_path)
    monkeypatch.setenv("SCORETHRESH_KERNELS", str(tmp_path))
    loader.path_of(RUNNABLE[0]).unlink()
    code = "from scorethresh._kernels.loader import functions, load; print(functions() is load({}))"
    if len(RUNNABLE) > 1:
        assert run_python(code.format(RUNNABLE[1])) == ["True"]


CALL = "import numpy, scorethresh; scorethresh.select_threshold(numpy.ones(9999), sigma=1.0, method='score')"


def test_a_missing_library_is_named_with_a_remedy(tmp_path):
    with pytest.raises(AssertionError, match=r"loops_1.* cannot be loaded .*pip install --editable"):
        run_python(CALL, SCORETHRESH_KERNELS=str(tmp_path))


def test_a_library_of_another_version_is_refused(tmp_path):
    """A checkout moved on, but the loops were not compiled again."""
    import _ctypes

    shutil.copy(_ctypes.__file__, tmp_path / loader.path_of(1).name)
    with pytest.raises(AssertionError, match=r"cannot be loaded .*cpu_level.*pip install --editable"):
        run_python(CALL, SCORETHRESH_KERNELS=str(tmp_path))


def test_threads_may_race_to_the_first_call():
    code = (
        "import threading, numpy, scorethresh\n"
        "y = numpy.ones(200_000)\n"
        "def work(): scorethresh.select_threshold(y, sigma=1.0)\n"
        "threads = [threading.Thread(target=work) for _ in range(6)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]; print('done')"
    )
    assert run_python(code) == ["done"]


def test_loops_run_side_by_side(rng):
    """The interpreter's lock is released: a Python thread counts on while a loop runs."""
    y, counts, done = rng.normal(size=(1, 1, 1031, 1031)), [], threading.Event()
    cut = np.ones((1, 8, 8))

    def count():
        while not done.is_set():
            counts.append(time.perf_counter())

    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    _kernels.sliding_dct(y, None, even_shrinkage(cut, 0.1, y.shape, 1), (dct_matrix(8, float),) * 2, 1)
    stop = time.perf_counter()
    done.set()
    thread.join()
    inside = start + 0.25 * (stop - start), stop - 0.25 * (stop - start)
    assert any(inside[0] < t < inside[1] for t in counts)


def test_a_first_call_needs_only_numpy():
    assert run_python(f"import sys; {CALL}; print(*[m for m in ('scipy', 'pywt') if m in sys.modules])") == []
