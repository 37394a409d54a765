"""Restoration: what comes out, what is predicted, what is refused."""

import numpy as np
import pytest

import oracles
import scorethresh as st
from scorethresh.frames.wavelets import default_levels
from scorethresh.inverse.iht import hard_thresholded


def picture(n=64):
    """Squares, a disk and a ramp, between 0 and 200."""
    i, j = np.mgrid[:n, :n]
    out = 60.0 + 40.0 * (i / n)
    out[n // 8 : n // 2, n // 8 : n // 2] = 180.0
    out[(i - 0.65 * n) ** 2 + (j - 0.65 * n) ** 2 < (0.22 * n) ** 2] = 20.0
    return out


def gaussian(width, radius=None):
    t = np.arange(-(radius or int(np.ceil(3 * width))), (radius or int(np.ceil(3 * width))) + 1)
    g = np.exp(-(t**2) / (2 * width**2))
    return np.outer(g, g) / g.sum() ** 2


def psnr(x, clean):
    return 10 * np.log10(200.0**2 / np.mean(np.abs(x - clean) ** 2))


def cases(rng):
    """Problems on one picture: name, operator, data, noise level, PSNR of a simple start."""
    clean = picture()
    mask = rng.random(clean.shape) < 0.4
    lines = np.zeros((64, 64), bool)
    lines[::3], lines[:6], lines[-6:] = True, True, True
    fourier, blur, larger = st.Fourier(lines, real=True), st.Blur(gaussian(1.5), "periodic"), st.Downsample(2)
    noise = rng.normal(0, 3, (2, 64, 64))
    return {
        "blur": (blur, blur(clean) + noise[0]),
        "mask": (st.Mask(mask), np.where(mask, clean + noise[0], np.nan)),
        "fourier": (fourier, fourier(clean) + noise[0] + 1j * noise[1]),
        "downsample": (larger, larger(clean) + noise[0, :32, :32]),
    }


# What the first guess reaches, in dB, and what restoration must gain on it: half of what it does.
@pytest.mark.parametrize(("name", "gain"), [("blur", 2.0), ("mask", 3.0), ("fourier", 3.0), ("downsample", 2.0)])
def test_restoration_is_far_better_than_the_start(rng, name, gain):
    operator, y = cases(rng)[name]
    a = operator.bind(y.shape, complex_data=np.iscomplexobj(y))
    start = psnr(a.first_guess(a.gather(y)), picture())
    found = st.restore(y, operator, sigma=3.0, steps=8)
    assert found.shape == (64, 64)
    assert psnr(found, picture()) > start + gain


def test_boundaries_do_not_ring(rng):
    """Data whose border is not periodic: the default gains what the wrong assumption loses."""
    clean = picture(80)
    clean[:, :20] += 80.0
    blur = st.Blur(gaussian(2.0))
    y = blur(clean) + rng.normal(0, 1, (68, 68))
    inside = clean[6:-6, 6:-6]
    found = st.restore(y, blur, sigma=1.0, steps=4)
    wrong = st.restore(y, st.Blur(gaussian(2.0), "periodic"), sigma=1.0, steps=4)
    assert psnr(found, inside) > psnr(wrong, inside) + 1.0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["plug-and-play", "iht"])
def test_the_error_of_a_x_is_predicted(rng, method):
    """Within four standard errors, in 4 draws of 4 problems; the mean of ratios within that of its own."""
    scores = []
    for _ in range(1 if method == "plug-and-play" else 3):
        for operator, y in cases(rng).values():
            found = st.Restorer(operator, sigma=3.0, method=method, steps=4).run(y)
            a = operator.bind(y.shape, complex_data=np.iscomplexobj(y))
            error = a.forward(a.embed(found.estimate)) - a.forward(a.embed(picture()))
            loss = np.mean(np.abs(error) ** 2) / (1 + np.iscomplexobj(error))
            scores.append((found.predicted_mse - loss) / found.stderr)
    assert np.abs(scores).max() < 4
    assert abs(np.mean(scores)) < 4 / np.sqrt(len(scores))


def test_thresholds_are_in_units_of_the_noise_of_each_level(rng):
    """Noise of level 1 stays below 9, though it is stronger where the border is reflected.

    A step is kept where it exceeds the threshold.
    """
    noise = rng.normal(size=(1, 64, 64))
    coarse = hard_thresholded(noise, 1e9)
    np.testing.assert_array_equal(hard_thresholded(noise, 9.0), coarse)
    assert np.abs(hard_thresholded(noise, 3.0) - coarse).max() > 0.1
    np.testing.assert_allclose(hard_thresholded(noise, 0.0), noise, atol=1e-12)
    line = np.zeros((1, 64))
    line[:, 32:] = 1.0
    levels = default_levels((64,))
    # The mean of n entries less the mean of the next n, halved: 1/2 at the step, where noise has 2^(-level / 2).
    largest = 0.5 / 2 ** (-levels / 2)
    flat = hard_thresholded(line, 1e9)
    assert np.abs(hard_thresholded(line, 0.99 * largest) - flat).max() > 0.01
    np.testing.assert_array_equal(hard_thresholded(line, 1.01 * largest), flat)


def test_hard_thresholding_stops_at_the_least_risk(rng):
    operator, y = cases(rng)["blur"]
    found = st.Restorer(operator, sigma=3.0, method="iht").run(y)
    risks = [row.predicted_mse for row in found.trace]
    assert found.step == int(np.argmin(risks))
    assert found.predicted_mse == min(risks)
    levels = [row.level for row in found.trace]
    assert levels == sorted(levels, reverse=True)


@pytest.mark.parametrize(("name", "tolerance"), [("blur", 0.07), ("mask", 0.15), ("downsample", 0.2)])
def test_the_noise_level_is_estimated(rng, name, tolerance):
    operator, y = cases(rng)[name]
    found = st.Restorer(operator, steps=1, predict=False).run(y)
    assert abs(found.sigma / 3.0 - 1) < tolerance


def test_the_noise_level_of_fourier_samples_is_read_at_high_frequencies(rng):
    """A smooth picture has nothing there."""
    smooth = st.Blur(gaussian(3.0), "periodic")(picture())
    fourier = st.Fourier(rng.random((64, 64)) < 0.6, real=True)
    noise = rng.normal(0, 3, (2, 64, 64))
    found = st.Restorer(fourier, steps=1, predict=False).run(fourier(smooth) + noise[0] + 1j * noise[1])
    assert abs(found.sigma / 3.0 - 1) < 0.15


def test_types_and_layouts_are_kept(rng):
    blur = st.Blur(gaussian(1.0))
    y = (blur(picture(38)) + rng.normal(0, 3, (32, 32))).clip(0, 255)
    options = {"sigma": 3.0, "steps": 2}
    double = st.restore(y, blur, **options)
    single = st.restore(y.astype(np.float32), blur, **options)
    assert (double.dtype, single.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(single, double, atol=0.5)
    pixels = y.astype(np.uint8)
    found = st.restore(pixels, blur, **options)
    assert found.dtype == np.uint8
    assert pixels.tolist() == y.astype(np.uint8).tolist()
    np.testing.assert_allclose(found, st.restore(pixels.astype(float), blur, **options), atol=0.51)
    colours = np.stack([y, 0.5 * y, y[::-1]], axis=-1)
    assert st.restore(colours, blur, channel_axis=-1, **options).shape == (32, 32, 3)
    first = st.restore(np.moveaxis(colours, -1, 0), blur, channel_axis=0, **options)
    np.testing.assert_allclose(np.moveaxis(first, 0, -1), st.restore(colours, blur, channel_axis=-1, **options))


@pytest.mark.slow
def test_signals_volumes_and_complex_images(rng):
    signal = np.repeat([0.0, 10.0, 3.0, 7.0], 32)
    line = st.Blur(np.ones(5) / 5)
    y = line(signal) + rng.normal(0, 0.2, 124)
    assert np.mean((st.restore(y, line, sigma=0.2) - signal[2:-2]) ** 2) < 0.5 * np.mean((y - signal[2:-2]) ** 2)
    volume = np.zeros((20, 20, 20))
    volume[5:15, 5:15, 5:15] = 100.0
    cube = st.Blur(np.ones((3, 3, 3)) / 27, "periodic")
    y = cube(volume) + rng.normal(0, 2, volume.shape)
    assert np.mean((st.restore(y, cube, sigma=2.0, steps=4) - volume) ** 2) < 0.5 * np.mean((y - volume) ** 2)
    phase = picture() * np.exp(1j * np.linspace(0, 2, 64))
    low = np.abs(np.fft.fftfreq(64)) < 0.1
    mask = (rng.random((64, 64)) < 0.4) | np.logical_and.outer(low, low)
    coils = np.stack([np.ones((64, 64)), np.exp(1j * np.linspace(0, 1, 64)) * np.linspace(0.2, 1, 64)[:, None]])
    for fourier in (st.Fourier(mask), st.Fourier(mask, coils)):
        samples = fourier(phase)
        samples += 3 * (rng.normal(size=samples.shape) + 1j * rng.normal(size=samples.shape))
        found = st.Restorer(fourier, sigma=3.0, steps=4, predict=False).run(samples)
        assert found.estimate.dtype == np.complex128
        a = fourier.bind(samples.shape, complex_data=True)
        assert psnr(found.estimate, phase) > psnr(a.first_guess(a.gather(samples)), phase) + 2
        np.testing.assert_array_equal(a.gather(samples[..., mask]), a.gather(samples))


def test_a_matrix_is_as_good_as_the_operator(rng):
    blur = st.Blur(np.ones(5) / 5, "periodic")
    matrix = np.stack([blur(e) for e in np.eye(64)], axis=1)
    y = blur(np.repeat([0.0, 10.0, 3.0, 7.0], 16)) + rng.normal(0, 0.2, 64)
    ours = st.Restorer(blur, sigma=0.2, x0=y, steps=6).run(y)
    other = st.Restorer(Quarter(matrix), sigma=0.2, x0=y, steps=6).run(y)
    np.testing.assert_allclose(ours.trace[0].residual, other.trace[0].residual, rtol=0.05)
    assert other.estimate.shape == (64,)
    assert abs(other.determined - ours.determined) < 0.05


class Quarter:
    """A linear operator of another package."""

    def __init__(self, matrix):
        self.matrix, self.shape = matrix, matrix.shape

    def matvec(self, x):
        return self.matrix @ x

    def rmatvec(self, y):
        return self.matrix.T @ y


def test_a_prior_of_the_users_is_told_the_level(rng):
    operator, y = cases(rng)["blur"]
    told = []

    def prior(x, sigma):
        told.append((x.shape, sigma))
        return x

    found = st.Restorer(operator, sigma=3.0, prior=prior, steps=5, predict=False).run(y)
    assert [shape for shape, _ in told] == [(64, 64)] * 5
    assert np.isclose(told[-1][1], 3.0)
    assert np.isclose(told[0][1], 49 / 255 * np.ptp(y))
    assert [row.level for row in found.trace] == [level for _, level in told]
    with pytest.raises(ValueError, match=r"prior at sigma=.* returned shape"):
        st.restore(y, operator, sigma=3.0, prior=lambda x, sigma: x[1:])
    with pytest.raises(TypeError, match="prior must be a function"):
        st.Restorer(operator, prior="tv")


def test_the_steps_are_those_of_half_quadratic_splitting(rng):
    """Levels fall from 49/255 of the range of the start to a quarter of sigma; step by step as the docs say."""
    mask = rng.random(60) < 0.5
    y, x0 = rng.normal(size=60), np.linspace(0, 40, 60)
    found = st.Restorer(st.Mask(mask), sigma=2.0, prior=lambda x, s: x / (1 + s), x0=x0, steps=4, predict=False).run(y)
    z = x0
    for level, row in zip(np.geomspace(49 / 255 * 40, 0.5, 4), found.trace, strict=True):
        x = oracles.proximal_step(np.eye(60)[mask], y[mask], z, 0.23 * (2.0 / level) ** 2)
        last, z = z, x / (1 + level)
        np.testing.assert_allclose(row.level, level)
        np.testing.assert_allclose(row.residual, np.mean((y - z)[mask] ** 2) / 2.0**2)
        np.testing.assert_allclose(row.change, np.sqrt(np.mean((z - last) ** 2)))
    np.testing.assert_allclose(found.estimate, z)


def test_a_restart_starts_where_it_is_told(rng):
    """At the truth, with a prior that changes nothing, the residual is the noise from the first step on."""
    operator, y = cases(rng)["blur"]
    found = st.Restorer(operator, sigma=3.0, x0=picture(), prior=lambda x, sigma: x, steps=1, predict=False).run(y)
    assert found.trace[0].change < 3.0
    for x0, words, error in [
        (np.zeros((3, 3)), r"x0 has shape \(3, 3\)", ValueError),
        (np.full((64, 64), np.nan), "x0 must hold finite numbers", ValueError),
        (picture() + 1j, "x0 is complex, but x is real", TypeError),
    ]:
        with pytest.raises(error, match=words):
            st.restore(y, operator, sigma=3.0, x0=x0)


def test_runs_are_reproducible(rng):
    operator, y = cases(rng)["blur"]
    before = y.copy()
    first, second = (st.Restorer(operator, sigma=3.0, steps=2, seed=4).run(y) for _ in range(2))
    np.testing.assert_array_equal(first.estimate, second.estimate)
    assert first.trace == second.trace
    other = st.Restorer(operator, sigma=3.0, steps=2, seed=5).run(y)
    np.testing.assert_array_equal(first.estimate, other.estimate)
    assert first.predicted_mse != other.predicted_mse
    np.testing.assert_array_equal(y, before)


def test_the_share_of_x_that_data_determine(rng):
    """For a mask it is that of the known entries, up to the penalty; the verdict says it."""
    mask = rng.random((64, 64)) < 0.3
    found = st.Restorer(st.Mask(mask), sigma=1.0, steps=1, predict=False).run(picture() + rng.normal(size=(64, 64)))
    assert abs(found.determined - mask.mean()) < 0.03
    assert f"The data determine {found.determined:.0%} of x" in found.verdict
    assert "null space of A the error is unknown" in found.verdict
    assert "predicted" not in repr(found)  # it was not asked for
    predicted = st.Restorer(st.Mask(mask), sigma=1.0, steps=1).run(picture() + rng.normal(size=(64, 64)))
    assert f"predicted mse of A x {predicted.predicted_mse:.4g}" in repr(predicted)


def test_wrong_noise_levels_and_operators_are_noticed(rng):
    operator, y = cases(rng)["blur"]
    with pytest.warns(st.AssumptionWarning, match="far below zero: sigma, 6, is too large"):
        found = st.Restorer(operator, sigma=6.0, steps=2).run(y)
    assert "far below zero" in found.verdict
    sharp = picture() + rng.normal(0, 3, (64, 64))
    with pytest.warns(st.AssumptionWarning, match="the operator does not describe the data"):
        st.Restorer(st.Blur(gaussian(4.0), "periodic"), sigma=3.0, steps=2).run(sharp)


@pytest.mark.parametrize("method", ["plug-and-play", "iht"])
def test_singular_operators_leave_what_they_do_not_tell_to_the_prior(rng, method):
    """Operators of rank one, and blurs that remove the mean: the estimate is finite, and fits the data."""
    matrix = np.outer(np.ones(32), np.linspace(0.5, 1.0, 32)) / 32
    y = matrix @ np.linspace(0, 10, 32) + rng.normal(0, 0.1, 32)
    found = st.Restorer(matrix, sigma=0.1, method=method, steps=3).run(y)
    assert np.isfinite(found.estimate).all()
    assert found.determined < 0.1
    assert found.trace[-1].residual < 3
    difference = np.array([-1.0, 1.0, 0.0])
    with pytest.warns(st.AssumptionWarning, match="psf sums to 0, not to 1"):
        edges = st.Blur(difference, "periodic")
    signal = np.repeat([0.0, 5.0, 2.0, 8.0], 32)
    found = st.Restorer(edges, sigma=0.1, method=method).run(edges(signal) + rng.normal(0, 0.1, 128))
    assert np.isfinite(found.estimate).all()


def test_hard_thresholding_stops_early(rng):
    """When the risk has not fallen for three steps, and half of them are done."""
    operator, y = cases(rng)["downsample"]
    found = st.Restorer(operator, sigma=3.0, method="iht").run(y)
    assert 16 <= len(found.trace) < 32
    assert len(st.Restorer(operator, sigma=3.0, method="iht", steps=3).run(y).trace) == 3
    assert len(found.trace) in (found.step + 4, 16)


def test_operators_of_pylops_are_taken(rng):
    pylops = pytest.importorskip("pylops")
    operator = pylops.signalprocessing.Convolve1D(64, np.ones(5) / 5, offset=2)
    signal = np.repeat([0.0, 10.0, 3.0, 7.0], 16)
    y = operator @ signal + rng.normal(0, 0.2, 64)
    found = st.restore(y, operator, sigma=0.2)
    assert np.mean((found - signal) ** 2) < 0.5 * np.mean((y - signal) ** 2)


def test_a_progress_bar_counts_the_steps(rng, capsys):
    operator, y = cases(rng)["blur"]
    st.restore(y, operator, sigma=3.0, steps=2, progress=True)
    assert "2/2" in capsys.readouterr().err


def test_bad_input_is_named(rng):
    operator, y = cases(rng)["blur"]
    broken = y.copy()
    broken[3, 4] = np.nan
    for call, words, error in [
        (lambda: st.restore(broken, operator), "y holds 1 NaN or infinite entries", ValueError),
        (lambda: st.restore(np.ma.masked_array(y), operator), "restore.y.data, Mask", TypeError),
        (lambda: st.restore(y, operator, sigma=-1.0), "sigma must be positive", ValueError),
        (lambda: st.restore(y, operator, sigma=np.ones((64, 64))), "divide y and the rows of A by it", ValueError),
        (lambda: st.restore(y[:20], st.Fourier(np.ones((64, 64), bool))), "samples of this mask have", ValueError),
        (lambda: st.restore(y[:, :9], st.Blur(gaussian(1.5), "periodic")), "is larger than x", ValueError),
        (lambda: st.restore(y, operator, method="iht", prior=lambda x, s: x), "has no prior to replace", ValueError),
        (lambda: st.restore(y, gaussian(1.5)), r"goes into Blur\(psf\)", ValueError),
        (lambda: st.restore(y, operator, steps=0), "steps must be a whole number of at least 1", ValueError),
        (lambda: st.restore(y, operator, method="tv"), "unknown method 'tv'", ValueError),
        (lambda: st.restore(y, operator, channel_axis=5), "channel_axis must be an axis", ValueError),
        (lambda: st.restore(y.ravel(), np.eye(4096)), "sigma is missing", TypeError),
        (lambda: st.restore(np.zeros((16, 16)), operator), "noise level of y comes out as 0", ValueError),
        (lambda: st.restore(y[0], operator), "psf has 2 axes, y has 1", ValueError),
    ]:
        with pytest.raises(error, match=words):
            call()
    mask = rng.random(y.shape) < 0.5
    with pytest.raises(ValueError, match="pass ~mask"):
        st.restore(np.where(mask, y, 0.0), st.Mask(~mask), sigma=3.0)
