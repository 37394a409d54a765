"""Point spread functions, and the width of one that is not known."""

import functools

import numpy as np
import pytest

import oracles
import scorethresh as st
from scorethresh.inverse import select_psf as module
from scorethresh.inverse.select_psf import WindowedSpectrum


def leaves(rng, n=128):
    """Rectangles of many sizes on top of each other: sharp at every edge, with a spectrum like that of photographs."""
    out = np.zeros((n, n))
    for _ in range(40 * n):
        height, width = (3 / rng.uniform(0.05, 1, 2)).astype(int)
        top, left = rng.integers(-30, n, 2)
        out[max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)] = rng.uniform(0, 200)
    return out


def test_a_gaussian_is_the_product_of_its_lines():
    line = st.gaussian_psf(1.3, ndim=1)
    t = np.arange(line.size) - line.size // 2
    np.testing.assert_allclose(line / line.max(), np.exp(-(t**2) / (2 * 1.3**2)), rtol=1e-12)
    assert line[0] / line.max() < 4e-4
    np.testing.assert_allclose(st.gaussian_psf(1.3), np.outer(line, line), rtol=1e-12)
    assert st.gaussian_psf(1.3, ndim=3).shape == (line.size,) * 3
    np.testing.assert_allclose(np.sum(t**2 * line), 1.3**2, rtol=3e-3)


def test_a_box_is_flat():
    assert st.box_psf(3, ndim=3).tolist() == np.full((3, 3, 3), 1 / 27).tolist()
    np.testing.assert_array_equal(st.box_psf(4.0), st.box_psf(4))


@pytest.mark.parametrize("size", [1.2, 2.5, 3.9, 4.1, 6.7])
def test_a_box_covers_shares_of_entries(size):
    """The overlap of the interval with every entry, by its definition."""
    psf = st.box_psf(size, ndim=1)
    reach = psf.size // 2
    covered = [max(0.0, min(size / 2, i + 0.5) - max(-size / 2, i - 0.5)) for i in range(-reach, reach + 1)]
    assert min(covered) > 0
    np.testing.assert_allclose(psf, np.array(covered) / size, atol=1e-15)


def test_the_width_of_a_box_is_found_on_any_grid():
    """Widths are passed as floats, whole or not."""
    rng = np.random.default_rng(1)
    y = st.Blur(st.box_psf(5))(leaves(rng)) + rng.normal(0.0, 2.0, (124, 124))
    assert st.select_psf(y, st.box_psf, [3, 5, 7, 9]).width == 5
    assert st.select_psf(y, st.box_psf, np.arange(2.0, 9.0, 0.5)).width == 5


@pytest.mark.parametrize("radius", [0.3, 1.0, 2.3, 4.0])
def test_a_disk_covers_shares_of_pixels(radius):
    """To the fineness of its grid: pixels that the border crosses have at most 1/32 of their points wrong."""
    psf = st.disk_psf(radius)
    expected = oracles.disk_shares(radius, psf.shape[0] // 2)
    np.testing.assert_allclose(psf, expected, atol=1 / (32 * np.pi * radius**2))
    np.testing.assert_allclose(psf.sum(), 1.0)


@pytest.mark.parametrize(("length", "angle"), [(9, 0.0), (4, 0.0), (9, 90.0), (7, 30.0), (12.5, -45.0), (0.4, 10.0)])
def test_a_motion_is_a_line_in_pixels(length, angle):
    """To the fineness of its points: one of 32 per pixel may count for a neighbour at either end of a pixel."""
    psf = st.motion_psf(length, angle)
    expected = oracles.line_lengths(length, angle, 8)
    rows, columns = ((17 - n) // 2 for n in psf.shape)
    inside = expected[rows : 17 - rows, columns : 17 - columns]
    assert inside.sum() > 1 - 1e-9
    np.testing.assert_allclose(psf, inside, atol=2 / (32 * length))


def test_sums_are_one_and_nothing_moves():
    for psf in (st.gaussian_psf(0.7), st.disk_psf(2.6), st.motion_psf(7, 25.0), st.box_psf(5)):
        assert abs(psf.sum() - 1) < 1e-12
        np.testing.assert_allclose(psf, psf[::-1, ::-1], atol=1e-12)


@pytest.mark.parametrize("shape", [(7, 6), (11,), (3, 4, 5)])
def test_the_risk_is_steins_formula(rng, monkeypatch, shape):
    """Against dense matrices: the residual of the best linear filter and its divergence, one strength of x."""
    y = rng.normal(size=shape) + 3 * rng.normal(size=shape[-1])
    psf = rng.uniform(size=(3,) * len(shape))
    psf /= psf.sum()
    monkeypatch.setattr(module, "INVERSE_POWERS", np.array([0.3]))
    risk, _ = WindowedSpectrum(y[None]).best_filter(psf)
    window = functools.reduce(np.multiply.outer, [np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 for n in shape])
    window = window / np.sqrt(np.mean(window**2))
    radii = functools.reduce(np.add.outer, [np.fft.fftfreq(n) ** 2 for n in shape])
    power = 1 / (0.3 * np.maximum(4 * np.pi**2 * radii, 1e-5) ** (module.SLOPE / 2))
    estimate, divergence = oracles.filtered_window(y, psf, window, power)
    centred = window * (y - (y * window).sum() / window.sum())
    expected = (np.sum((centred - estimate) ** 2) + 2 * divergence - y.size) / y.size
    np.testing.assert_allclose(risk, expected, rtol=1e-6, atol=1e-6)  # the constant has a finite power here
    both, _ = WindowedSpectrum(np.stack([y, y])).best_filter(psf)
    np.testing.assert_allclose(both, risk, rtol=1e-12)  # channels are averaged


def test_the_standard_error_is_that_of_the_difference(rng, monkeypatch):
    """Over 300 draws of the noise the spread of the differences is what is said, within 15%: 3.5 standard errors."""
    monkeypatch.setattr(module, "INVERSE_POWERS", np.array([1e-2]))
    clean = st.Blur(st.gaussian_psf(1.5), "periodic")(leaves(rng, 64)) / 5
    differences, stderrs = [], []
    for _ in range(300):
        spectrum = WindowedSpectrum((clean + rng.normal(size=clean.shape))[None])
        (one, kept), (two, best) = (spectrum.best_filter(st.gaussian_psf(w)) for w in (0.7, 1.5))
        differences.append(one - two)
        stderrs.append(spectrum.excess_stderr(kept, best))
    assert abs(np.sqrt(np.mean(np.square(stderrs))) / np.std(differences) - 1) < 0.15


@pytest.mark.parametrize(
    ("family", "truth", "grid", "tolerance"),
    [
        (st.gaussian_psf, 1.5, np.arange(0.5, 4.0, 0.1), 0.2),
        (st.disk_psf, 3.0, np.arange(1.0, 7.0, 0.25), 0.01),
        (functools.partial(st.motion_psf, angle=90.0), 9.0, np.arange(3.0, 20.0), 0.01),
    ],
)
def test_the_width_is_found(rng, family, truth, grid, tolerance):
    y = st.Blur(family(truth))(leaves(rng, 144))
    found = st.select_psf(y + rng.normal(0, 2, y.shape), family, grid)
    assert abs(found.width - truth) <= tolerance
    assert found.psf.tolist() == family(found.width).tolist()
    assert found.width == grid[np.argmin(found.risk)]
    assert found.plausible[0] <= found.width <= found.plausible[1]
    assert abs(found.sigma - 2) < 0.3
    assert found.excess_stderr[np.argmin(found.risk)] == 0
    assert "if the family is right and x itself is sharp" in found.verdict


def test_signals_volumes_and_colours(rng):
    line = np.repeat(rng.normal(0, 50, 100), 10)
    y = st.Blur(st.box_psf(7, ndim=1))(line)
    y += rng.normal(0, 1, y.shape)
    assert st.select_psf(y, lambda n: st.box_psf(int(n), ndim=1), np.arange(3.0, 16.0, 2)).width == 7
    cubes = rng.uniform(0, 200, (6, 6, 6)).repeat(6, 0).repeat(6, 1).repeat(6, 2)
    gaussian = functools.partial(st.gaussian_psf, ndim=3)
    y = st.Blur(gaussian(1.0))(cubes)
    y += rng.normal(0, 1, y.shape)
    assert abs(st.select_psf(y, gaussian, np.arange(0.5, 2.0, 0.1)).width - 1.0) < 0.21
    colours = np.stack([st.Blur(st.disk_psf(2))(leaves(rng)) for _ in range(3)], axis=-1)
    colours += rng.normal(0, 2, colours.shape)
    assert st.select_psf(colours, st.disk_psf, np.arange(1.0, 5.0, 0.5), channel_axis=-1).width == 2


def test_the_result_does_not_depend_on_the_units(rng):
    y = st.Blur(st.disk_psf(2))(leaves(rng)) + rng.normal(0, 2, (124, 124))
    options = (st.disk_psf, np.arange(1.0, 5.0, 0.5))
    one, other = st.select_psf(y, *options, sigma=2.0), st.select_psf(1e6 * y, *options, sigma=2e6)
    np.testing.assert_allclose(other.risk, 1e12 * one.risk, rtol=1e-9)
    assert other.plausible == one.plausible


def test_failures_are_said(rng):
    y = st.Blur(st.gaussian_psf(2.0))(leaves(rng)) + rng.normal(0, 0.5, (112, 112))
    with pytest.warns(st.AssumptionWarning, match="largest that was tried"):
        found = st.select_psf(y, st.gaussian_psf, [0.6, 0.9, 1.2])
    assert found.width == 1.2
    assert "largest that was tried" in found.verdict
    with pytest.warns(st.AssumptionWarning, match="smallest that was tried"):
        st.select_psf(y, st.gaussian_psf, [2.8, 3.2, 3.6])


def test_a_wide_range_is_said(rng):
    """Faint edges in noise: the range holds the truth, and more than a factor of two."""
    y = st.Blur(st.gaussian_psf(1.5), "periodic")(leaves(rng, 96) / 12)
    with pytest.warns(st.AssumptionWarning, match="the data hardly tell the width"):
        found = st.select_psf(y + rng.normal(0, 3, y.shape), st.gaussian_psf, np.arange(0.2, 3.6, 0.2), sigma=3.0)
    assert found.plausible[0] <= 1.5 <= found.plausible[1]
    assert found.plausible[1] > 2 * found.plausible[0]


def test_noise_alone_tells_no_width(rng):
    """Two standard errors hold in 95% of draws for each width; for all widths at once, in most."""
    grid = np.arange(0.5, 3.0, 0.25)
    verdicts = [st.select_psf(rng.normal(size=(64, 64)), st.gaussian_psf, grid, sigma=1.0).verdict for _ in range(20)]
    assert sum("the data do not tell the width" in verdict for verdict in verdicts) >= 13


def test_bad_input_is_named(rng):
    y = rng.normal(size=(32, 32))
    grid = [1.0, 2.0, 3.0]
    for call, words, error in [
        (lambda: st.select_psf(y, st.gaussian_psf, [1.0]), "at least two ascending", ValueError),
        (lambda: st.select_psf(y, st.gaussian_psf, [2.0, 1.0]), "at least two ascending", ValueError),
        (lambda: st.select_psf(y, "gaussian", grid), "family must be a function", TypeError),
        (lambda: st.select_psf(y, lambda w: np.ones((3, 3)), grid), r"family\(1\) sums to 9", ValueError),
        (lambda: st.select_psf(y, st.gaussian_psf, [1.0, 9.0]), "be smaller", ValueError),
        (lambda: st.select_psf(y[0], st.gaussian_psf, grid), "as many axes", ValueError),
        (lambda: st.select_psf(y + 0j, st.gaussian_psf, grid), "y is complex", TypeError),
        (lambda: st.select_psf(np.full((32, 32), np.nan), st.gaussian_psf, grid), "NaN", ValueError),
        (lambda: st.select_psf(np.zeros((64, 64)), st.disk_psf, grid), "noise level of y comes out as 0", ValueError),
        (lambda: st.select_psf(y, st.gaussian_psf, grid, sigma=0.0), "sigma must be positive", ValueError),
        (lambda: st.gaussian_psf(-1.0), "width must be positive", ValueError),
        (lambda: st.gaussian_psf(1.0, ndim=0), "ndim must be a whole number", ValueError),
        (lambda: st.box_psf(0.5), "size must be at least 1", ValueError),
        (lambda: st.disk_psf(np.inf), "radius must be positive and finite", ValueError),
        (lambda: st.motion_psf(0), "length must be positive", ValueError),
        (lambda: st.motion_psf(3, "left"), "angle must be a real number", TypeError),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_a_disk_below_the_grid_is_a_point():
    np.testing.assert_array_equal(st.disk_psf(1e-9), [[1.0]])
