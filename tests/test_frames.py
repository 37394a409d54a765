"""Frames against PyWavelets, SciPy and direct sums over windows."""

import itertools

import numpy as np
import pytest
import pywt
from scipy.fft import dctn, idctn

import oracles
from scorethresh.frames import padding, windows
from scorethresh.frames.dct import dct_matrix
from scorethresh.frames.padding import fill_gaps, reflect_pad
from scorethresh.frames.wavelets import Decimated, Undecimated, detail_bands
from scorethresh.frames.windows import Windows, window_traces
from scorethresh.noise.covariance import Stationary, White, reflected_variances
from scorethresh.risk.monte_carlo import monte_carlo_divergence

SHAPES = [(1,), (2,), (7,), (100,), (1, 5), (33, 47), (9, 20, 31), (3, 3, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-9)])
def test_frames_give_back_what_they_got(rng, shape, dtype, tolerance):
    y = rng.normal(size=shape).astype(dtype)
    ndim = len(shape)
    for name, levels in itertools.product(("haar", "sym8", "bior2.2"), (1, 3)):
        out = Undecimated(name, levels).apply(y, lambda k, c: c, ndim)
        assert out.dtype == dtype
        np.testing.assert_allclose(out, y, atol=tolerance)
    for block, step in ((4, 1), (8, 1), (8, 2), (16, 4)):
        out, trace = Windows((block,) * ndim, step).hard(y[None], np.ones((block,) * ndim), 0.0)
        assert out.dtype == dtype
        np.testing.assert_allclose(out[0], y, atol=tolerance)
        inside = trace[tuple(slice(block // 2, n - block // 2) for n in shape)]
        np.testing.assert_allclose(inside, 1, rtol=1e-4)  # the identity


@pytest.mark.parametrize("name", ["haar", "db3"])
def test_undecimated_bands_are_those_of_pywavelets(rng, name):
    """On data continued to a whole period, pywt's periodic stationary transform must agree, up to a shift."""
    y = rng.normal(size=(16, 16))
    seen = {}
    frame = Undecimated(name, 4)
    frame.apply(y, lambda k, c: seen.setdefault(k, c), 2)
    levels = pywt.swt2(reflect_pad(y, [(0, 16), (0, 16)]), name, 4, norm=True, trim_approx=True)[1:]
    names = {"ad": 1, "da": 0, "dd": 2}
    for k, (level, key) in enumerate(detail_bands(4, 2)):
        expected = levels[-level][names[key]]
        np.testing.assert_allclose(np.sort(seen[k], axis=None), np.sort(expected, axis=None), atol=1e-12)


def test_decimated_bands_are_those_of_pywavelets(rng):
    y = rng.normal(size=(33, 20))
    seen = {}
    out = Decimated("db2", 2).apply(y[None], lambda k, c: seen.setdefault(k, c), 2)
    np.testing.assert_allclose(out[0], y, atol=1e-12)
    coefficients = pywt.wavedecn(y, "db2", level=2)
    for k, (level, key) in enumerate(detail_bands(2, 2)):
        np.testing.assert_array_equal(seen[k][0], coefficients[-level][key])


@pytest.mark.parametrize("name", ["haar", "db3", "sym8"])
@pytest.mark.parametrize("frame", [Undecimated, Decimated])
def test_coefficients_lie_where_their_filters_have_their_middle(frame, name):
    """An entry is found in those coefficients that are told to be there, to a third of the length of the filters."""
    at, levels = 300, 3
    impulse = np.zeros((1, 700))
    impulse[0, at] = 1
    found = {}
    frame = frame(name, levels)
    frame.apply(impulse, lambda k, c: found.setdefault(k, c), 1)
    for k in range(levels):
        energy = found[k][0, frame.inside((700,))[0]] ** 2
        middles = frame.centres(k + 1, energy.size)
        assert abs(energy @ middles / energy.sum() - at) < frame.filters(k + 1)[0].size / 3


def slow_windows(y, guide, block, step, cut, var):
    """The definition: transform, shrink, transform back and average every window, one by one."""
    pads = [(b - 1, b - 1 + -(n + b - 2) % step) for b, n in zip(block, y.shape[1:], strict=True)]
    wide = reflect_pad(y, pads)
    model = reflect_pad(guide, pads) if guide is not None else wide
    total, weight = np.zeros(wide.shape), np.zeros(wide.shape[1:])
    ends = [range(0, n - b + 1, step) for n, b in zip(wide.shape[1:], block, strict=True)]
    axes = range(1, y.ndim)
    for corner in itertools.product(*ends):
        at = tuple(slice(i, i + b) for i, b in zip(corner, block, strict=True))
        c, g = (dctn(v[(slice(None), *at)], axes=axes, norm="ortho") for v in (wide, model))
        square = (g**2).sum(axis=0)
        factor = (square >= cut**2).astype(float) if guide is None else square / len(y) / (square / len(y) + cut)
        factor.flat[0] = 1
        w = 1 / (var * factor**2).sum()
        total[(slice(None), *at)] += w * idctn(c * factor, axes=axes, norm="ortho")
        weight[at] += w
    crop = tuple(slice(a, a + n) for (a, _), n in zip(pads, y.shape[1:], strict=True))
    return (total / weight)[(slice(None), *crop)]


@pytest.mark.parametrize("shape", [(1, 40), (2, 40), (1, 13, 18), (2, 13, 18), (1, 6, 7, 9)])
@pytest.mark.parametrize("step", [1, 2])
def test_windows_match_their_definition(rng, shape, step):
    block = {1: (8,), 2: (4, 8), 3: (4, 4, 4)}[len(shape) - 1]
    y, guide = rng.normal(size=(2, *shape)) * 2
    var = rng.uniform(0.5, 2, size=block)
    for g in (None, guide):
        frame = Windows(block, step)
        fast = frame.hard(y, var, 1.5) if g is None else frame.guided(y, g, var, 1.5)
        cut = 1.5 * np.sqrt(var) if g is None else 1.5 * var
        np.testing.assert_allclose(fast[0], slow_windows(y, g, block, step, cut, var), atol=1e-9)


def test_wide_images_are_cut_in_strips_without_a_trace(rng):
    y = rng.normal(size=(1, 10, 700))
    var = np.ones((4, 4))
    np.testing.assert_allclose(Windows((4, 4)).hard(y, var, 2.0)[0], slow_windows(y, None, (4, 4), 1, 2 * var, var))


@pytest.mark.parametrize(
    ("shape", "block", "step"),
    [
        ((1, 200), (32,), 4),
        ((1, 40), (32,), 8),
        ((1, 20, 30), (8, 8), 1),
        ((1, 12, 50), (16, 16), 4),
        ((1, 9, 10, 12), (4, 4, 4), 1),
    ],
)
def test_the_trace_of_guided_windows_is_that_of_the_matrix(rng, shape, block, step):
    """They are linear: the trace is the sum of the responses to unit impulses at their own place.

    Weights of windows vary from entry to entry, which moves the sum by 1e-4.
    """
    guide = 3 * rng.normal(size=shape)
    frame, var = Windows(block, step), np.ones(block)
    impulses = np.eye(guide.size).reshape(-1, *shape)
    exact = sum(frame.guided(e, guide, var, 1.0)[0][e > 0].sum() for e in impulses)
    assert frame.guided(guide, guide, var, 1.0)[1].sum() == pytest.approx(exact, rel=5e-4)


@pytest.mark.parametrize(("side", "size"), [(8, 20), (8, 8), (8, 5), (8, 3), (16, 1), (4, 2), (32, 40)])
def test_traces_of_windows_at_borders_are_those_entry_by_entry(side, size):
    starts = np.arange(1 - side, size + 3)
    found = window_traces(side, starts, size)
    for row, start in zip(found, starts, strict=True):
        np.testing.assert_allclose(row, oracles.window_trace(side, start, size), atol=1e-12)
    np.testing.assert_array_equal(found[(starts >= 0) & (starts + side <= size)], 1.0)


def test_long_signals_are_cut_in_chunks_without_a_trace(rng, monkeypatch):
    y = rng.normal(size=(2, 700))
    whole = Windows((32,), 4).hard(y, np.ones(32), 2.0)
    monkeypatch.setattr(windows, "CHUNK_ENTRIES", 100)
    for a, b in zip(Windows((32,), 4).hard(y, np.ones(32), 2.0), whole, strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("parts", [1, 2])
def test_traces_of_windows_of_signals(rng, parts):
    """By differences along many draws of noise, at thresholds, where weights are constant only between jumps."""
    frame, var = Windows((32,), 4), np.ones(32)
    y = rng.normal(size=(parts, 4096)) + 4 * np.sin(np.arange(4096) / 9)
    guide = 3 * rng.normal(size=y.shape)
    probe = rng.choice([-1.0, 1.0], size=y.shape)
    linear = (probe * frame.guided(probe, guide, var, 1.0)[0]).sum()
    assert frame.guided(y, guide, var, 1.0)[1].sum() == pytest.approx(linear, rel=0.05)
    draws = rng.choice([-1.0, 1.0], size=(8, *y.shape))
    jumps = np.mean(
        [(w * (frame.hard(y + 0.1 * w, var, 2.7)[0] - frame.hard(y - 0.1 * w, var, 2.7)[0])).sum() for w in draws]
    )
    assert frame.hard(y, var, 2.7)[1].sum() == pytest.approx(jumps / 0.2, rel=0.1)


def test_windows_count_less_once_they_keep_more(rng):
    """In noise alone most windows keep their mean only: with one more coefficient they count half.

    Differences with a step of 0.1 are 3% larger at 2.7 noise levels. In longer signals 6% were found between the two.
    """
    frame, var = Windows((32,), 4), np.ones(32)
    y = rng.normal(size=(1, 1 << 15))
    probes = rng.normal(size=(8, *y.shape))
    value, stderr = monte_carlo_divergence(lambda z: frame.hard(z, var, 2.7)[0], y, probes, 0.1)
    assert stderr < 0.02 * value
    assert frame.hard(y, var, 2.7)[1].sum() == pytest.approx(value, rel=0.1)


def test_noise_levels_behind_filters(rng):
    """White noise is a flat spectrum; a spectrum's variance is that of filtered noise, summed over its covariance."""
    filters = [dct_matrix(4), rng.normal(size=(3, 5))]
    flat = Stationary(np.full((24, 30), 4.0)).filter_variances(filters)
    np.testing.assert_allclose(White(2.0).filter_variances(filters), flat, rtol=1e-12)
    blur = np.zeros((24, 30))
    blur[:3, :2] = rng.normal(size=(3, 2))
    power = np.abs(np.fft.fftn(blur)) ** 2
    variances = Stationary(power).filter_variances(filters)
    for i, j in itertools.product(range(4), range(3)):
        both = np.zeros((24, 30))
        both[:4, :5] = np.multiply.outer(filters[0][i], filters[1][j])
        joint = np.fft.ifftn(np.fft.fftn(both) * np.fft.fftn(blur)).real
        assert variances[i, j] == pytest.approx((joint**2).sum(), rel=1e-9)


def test_drawn_noise_has_its_spectrum(rng):
    power = np.abs(np.fft.fftn(np.outer(np.r_[1, 2, 1, np.zeros(29)], np.r_[1, 1, np.zeros(30)]))) ** 2
    drawn = Stationary(power).sample((400, 32, 32), rng)
    seen = (np.abs(np.fft.fftn(drawn, axes=(1, 2))) ** 2).mean(axis=0) / 1024
    # Each of the 1024 powers is the mean of 400 exponential variables or so: a relative error of 1/20.
    assert (np.abs(seen - power) <= 6 / 20 * power + 1e-12).all()
    assert Stationary(power).sample((2, 5, 7), rng).shape == (2, 5, 7)
    assert White(3.0).sample((10_000,), rng).std() == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize(("name", "level", "n"), [("haar", 1, 2), ("haar", 3, 5), ("db3", 2, 40)])
def test_noise_behind_a_wavelet_varies_by_reflection(name, level, n):
    """The frame applied to every entry by itself tells the variance of its coefficients."""
    frame, found = Undecimated(name, level), {}
    frame.apply(np.eye(n), lambda k, c: found.setdefault(k, c), 1)
    coefficients = found[level - 1][:, frame.inside((n,))[0]]
    variances = reflected_variances(frame.filters(level)[1], n)
    np.testing.assert_allclose((coefficients**2).sum(axis=0), variances, atol=1e-12)


@pytest.mark.parametrize("shape", [(40,), (17, 20), (6, 9, 8)])
@pytest.mark.parametrize("share", [0.5, 0.97])
@pytest.mark.parametrize("slab", [1, 100, 1 << 18])
def test_gaps_are_filled_by_the_mean_of_the_smallest_box_that_holds_any(rng, monkeypatch, shape, share, slab):
    monkeypatch.setattr(padding, "SLAB_ENTRIES", slab)
    values, missing = rng.normal(size=(2, 2, *shape)), rng.random(shape) < share
    missing.flat[0] = False
    filled = fill_gaps(values, missing)
    np.testing.assert_array_equal(filled[:, :, ~missing], values[:, :, ~missing])
    for at in np.argwhere(missing):
        boxes = (tuple(slice(max(i - r, 0), i + r + 1) for i in at) for r in (1, 3, 7, 15, 31, 63))
        box = next(box for box in boxes if not missing[box].all())
        expected = values[:, :, *box][:, :, ~missing[box]].mean(axis=-1)
        np.testing.assert_allclose(filled[:, :, *at], expected, atol=1e-9)
