"""Estimates of the noise level, and the windows that they are read from."""

import math

import numpy as np
import pytest
import pywt
from scipy import fft, stats

import oracles
import scorethresh as st
from helpers import texture
from scorethresh.noise import medians, repeats, units, windows
from scorethresh.noise.level import MOST_STRUCTURE_ERROR, STRUCTURE_ERROR, combined, measure_level, sample_level
from scorethresh.noise.mixed_differences import mixed_readings
from scorethresh.noise.spectrum import estimate_spectrum
from scorethresh.noise.texture import Reading, excess_variability, flat_readings


@pytest.mark.parametrize("size", [1, 2, 998, 999])
def test_levels_of_coefficients_are_medians(rng, size):
    y = rng.normal(scale=2.5, size=size)
    y[: size // 30] += 100
    assert st.estimate_sigma(y) == pytest.approx(oracles.level_by_median(y), rel=1e-12)


@pytest.mark.parametrize("image", ["camera", "ascent"])
def test_images_within_five_per_cent(rng, image):
    y = getattr(pywt.data, image)() + rng.normal(scale=25, size=(512, 512))
    assert st.estimate_sigma(y) == pytest.approx(25, rel=0.05)


def test_the_filter_is_that_of_daubechies(rng):
    y = rng.normal(size=40) + 10 * np.arange(40)  # a slope, which differences of two neighbours would read
    inside = np.convolve(y, pywt.Wavelet("db2").dec_hi, mode="valid")
    assert st.estimate_sigma(y, domain="samples") == pytest.approx(oracles.level_by_median(inside))


def test_signals_need_their_domain_said(rng):
    t = np.linspace(0, 1, 4096)
    y = 50 * np.sin(12 * t) + rng.normal(scale=0.7, size=t.size)
    assert st.estimate_sigma(y, domain="samples") == pytest.approx(0.7, rel=0.05)
    assert st.estimate_sigma(y) > 10


@pytest.mark.parametrize(("n", "off"), [(2048, 0.15), (65536, 0.05)])
def test_a_chirp_is_not_noise(rng, n, off):
    """It sweeps all frequencies, each for a short time: no band is free of it, but most of a spectrogram is."""
    t = np.linspace(0, 1, n)
    draws = [10 * np.sin(0.4 * np.pi * n * t**2) + rng.normal(size=n) for _ in range(8)]
    assert np.mean([st.estimate_sigma(y, domain="samples") for y in draws]) == pytest.approx(1, rel=off)


def test_texture_almost_everywhere_is_not_noise(rng):
    """One window in twenty is free of a texture that has three times the level of the noise."""
    texture = 15 * rng.normal(size=(512, 512)).round()
    texture[200:320, 200:320] = 0
    y = texture + rng.normal(scale=5, size=texture.shape)
    assert st.estimate_sigma(y) == pytest.approx(5, rel=0.07)


@pytest.mark.parametrize(("shape", "level"), [((384, 384), 5), ((48, 64, 64), 10)])
def test_texture_everywhere_is_not_noise(shape, level):
    """At high frequencies it is about as strong as the noise; flat windows alone read 1.4 and 1.3 times the level."""
    rngs = map(np.random.default_rng, range(3))
    draws = [texture(rng, shape, 0.7) + rng.normal(scale=level, size=shape) for rng in rngs]
    assert np.mean([st.estimate_sigma(y) for y in draws]) == pytest.approx(level, rel=0.2)


@pytest.mark.parametrize("sigma", [5, 10])
def test_patterns_without_high_frequencies_are_not_subtracted(rng, sigma):
    """Fringes over a picture: middle frequencies everywhere, high ones at edges only."""
    u, v = np.indices((512, 512))
    fringes = 2 * sigma * np.sin(2 * np.pi * (0.7 * u + 0.714 * v) / 5)
    y = pywt.data.camera() + fringes + rng.normal(scale=sigma, size=u.shape)
    assert st.estimate_sigma(y) == pytest.approx(sigma, rel=0.06)


def test_flat_windows_that_differ_only_if_told_by_some_frequencies_hold_no_texture(rng):
    u, v = np.indices((384, 384)) // 8
    draws = [160.0 * ((u + v) % 2) + rng.normal(scale=10, size=u.shape) for _ in range(3)]
    assert np.mean([st.estimate_sigma(y) for y in draws]) == pytest.approx(10, rel=0.03)


@pytest.mark.parametrize("outlier", [1.0, -1.0])
def test_noise_far_below_the_range(rng, outlier):
    """Neither the least nor the largest entry may be subtracted: the noise would be lost by rounding."""
    y = 1e-90 * rng.normal(size=(256, 256))
    y[0, 0] = outlier
    assert st.estimate_sigma(y) == pytest.approx(1e-90, rel=0.05)


def test_no_high_frequencies_at_all():
    t = np.cos(np.pi * (np.arange(512) + 0.5) / 8)
    assert st.estimate_sigma(np.add.outer(t, 3 * t)) < 0.01


def test_volumes_integers_and_thin_arrays(rng):
    volume = (100 + rng.normal(scale=9, size=(30, 31, 32))).astype(np.int16)
    assert st.estimate_sigma(volume) == pytest.approx(9, rel=0.05)
    assert st.estimate_sigma(volume[:, :1, :]) == pytest.approx(9, rel=0.15)
    assert st.estimate_sigma(volume.astype(np.float32)) == pytest.approx(st.estimate_sigma(volume), rel=1e-6)


def test_constant_regions_do_not_count(rng):
    y = np.zeros((256, 256))
    y[:100, :100] = rng.normal(scale=3, size=(100, 100))
    assert st.estimate_sigma(y) == pytest.approx(3, rel=0.1)
    small = [np.where(np.arange(22) < 11, 0.0, rng.normal(size=(20, 22))) for _ in range(40)]
    assert np.mean([st.estimate_sigma(y) for y in small]) == pytest.approx(
        1, abs=0.15
    )  # at the border filters hold less


@pytest.mark.parametrize("shape", [(40,), (64,), (3000,), (20, 22), (150, 150), (40, 40, 40)])
@pytest.mark.parametrize("factor", [1e-150, -1.0, 1e150])
def test_estimates_follow_the_units(rng, shape, factor):
    """Levels and spectra of all sizes of data, wavelet band or windows; sums of 1e6 terms round to 1e-12 at most."""
    y = 5 + 3 * np.indices(shape).sum(axis=0) / shape[0] + rng.normal(size=shape)
    assert sample_level(factor * y) / abs(factor) == pytest.approx(sample_level(y), rel=1e-11)
    assert sample_level(y - 77) == pytest.approx(sample_level(y), rel=1e-9)
    scaled = estimate_spectrum(factor * y) / factor / factor
    np.testing.assert_allclose(scaled, estimate_spectrum(y), rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_levels_have_a_wider_range_than_spectra(rng, factor):
    y = rng.normal(size=(64, 64))
    assert sample_level(factor * y) / factor == pytest.approx(sample_level(y), rel=1e-11)
    with pytest.raises(ValueError, match=r"y varies by about 1e-?(199|200|201).*Rescale y"):
        estimate_spectrum(factor * y)


def test_the_power_of_noise_has_no_excess(rng):
    """The squared distance of two quantiles of 4000 values has a relative standard error of 2.33 / sqrt(4000)."""
    for count in (6, 100):
        power = (rng.normal(size=(4000, count)) ** 2).mean(axis=1)
        assert excess_variability(power, count) == pytest.approx(1, abs=4 * 2.33 / 4000**0.5)
    strength = np.exp(0.2 * rng.normal(size=4000))
    assert excess_variability(strength * power, 100) == pytest.approx(1 + 0.2**2 * 100 / 2, rel=0.15)


@pytest.mark.parametrize("texture_power", [1.0, 2.0])
def test_texture_vanishes_where_the_line_meets_the_diagonal(rng, texture_power):
    """Windows by the model: noise of variance 4, texture of a power that falls with frequency and varies in strength.

    For each of two lowest frequencies, twelve readings are of windows as they are, which hold texture, by mean and
    by median in six sets; two more are without it. Texture is bounded from above by how flat windows differ, so not
    all of it goes: at least 40% of what flat windows hold too much. One standard error of a reading is 1.4 /
    sqrt(effective_count), about 5%, for the least precise.
    """
    frequency, noise = windows.relative_frequencies((8, 8)), rng.normal(size=(20_000, 8, 8))
    strength = rng.gamma(2.0, texture_power / 2, size=20_000)[:, None, None]
    coefficients = (2 * np.sqrt(1 + strength * np.exp(2 - 2 * frequency)) * noise).reshape(-1, 64)
    cut, places = windows.Cut((0, 1), (8, 8), (8, 8)), np.arange(20_000)
    found = list(flat_readings(windows.WindowSet(cut, places, np.zeros(20_000), coefficients, 1.0)))
    energy, frequency = np.square(coefficients), frequency.ravel()
    flat = np.argsort(energy[:, (frequency > 0) & (frequency < 0.5)].sum(axis=1))[:2000]
    excess = np.sqrt(energy[flat][:, frequency >= 0.75].mean()) - 2
    assert len(found) == 28
    for lowest, readings in zip((0.6, 0.8), (found[:12], found[14:26]), strict=True):
        order = np.argsort(energy[:, (frequency > 0) & (frequency < lowest)].sum(axis=1))
        for k, (mean, median) in enumerate(zip(readings[::2], readings[1::2], strict=True)):
            flattest = order[: int(1000 * 20 ** (k / 5) + 1e-9)]
            powers = energy[flattest][:, frequency >= lowest]
            assert mean.level == pytest.approx(math.sqrt(powers.mean()), rel=1e-12)
            of_noise = stats.chi2(powers.shape[1])
            middle = np.median(powers.mean(axis=1)) / (of_noise.median() / powers.shape[1])
            assert median.level == pytest.approx(math.sqrt(middle), rel=1e-3)
            # The relative variance of the level is 1 / (2 n) by squares, 1.1664^2 / n by the median of magnitudes; that
            # of a median of normal values is pi / 2 times that of their mean.
            assert mean.effective_count == pytest.approx(2 * 1.1664**2 * powers.size)
            assert median.effective_count == pytest.approx(2 * 1.1664**2 * powers.size * 2 / np.pi)
    without = [reading.level for reading in found[12:14] + found[26:]]
    assert min(without) > 1.9
    assert np.mean(without) - 2 < 0.6 * excess
    assert min(reading.effective_count for reading in found) > 300
    # Overlap makes readings less precise, and nothing else.
    overlapping = list(flat_readings(windows.WindowSet(cut, places, np.zeros(20_000), coefficients, 4.0)))
    assert [r.level for r in overlapping] == [r.level for r in found]
    np.testing.assert_allclose([4 * r.effective_count for r in overlapping], [r.effective_count for r in found])


@pytest.mark.parametrize("n", [200, 500, 1000, 4096])
@pytest.mark.slow
def test_the_lowest_of_many_readings_is_not_too_low(n):
    """By at most 0.6 of the standard deviation of one level: 3% at 500 samples, 0.6% at 4096."""
    levels = [st.estimate_sigma(np.random.default_rng(k).normal(size=n), domain="samples") for k in range(100)]
    assert np.mean(levels) == pytest.approx(1, abs=0.6 * np.std(levels))


@pytest.mark.parametrize("level", [20, 40, 60])
def test_noise_that_is_cut_off(rng, level):
    """Windows that do not reach the end by chance have less noise than others and must not be picked for it.

    If all windows are near the end, as at a mean of 20, neighbours whose mean is far from it tell the level.
    """
    draws = [np.maximum(level + 20 * rng.normal(size=(128, 128)), 0) for _ in range(6)]
    found = np.mean([st.estimate_sigma(y) for y in draws])
    # The estimate from 128 x 128 entries has a relative standard deviation of 3%: three standard errors of six draws.
    assert found == pytest.approx(20, rel=0.04)


@pytest.mark.parametrize("dark", [0, 10, 20])
def test_dark_parts_of_a_picture_are_left_out(rng, dark):
    """Rounded and clipped at 0, their noise is 0.58 to 0.9 of that of the bright half, and they look flatter."""
    clean = np.where(np.arange(192) < 96, dark, 120.0) + np.zeros((192, 1))
    y = np.rint(np.maximum(clean + 20 * rng.normal(size=clean.shape), 0))
    assert st.estimate_sigma(y) == pytest.approx(20, rel=0.05)


@pytest.mark.parametrize("level", [20, 50, 70])
@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_clipped_noise_has_the_level_that_it_had_before(level, unit):
    """At noise 70 every window of this photograph is near a limit. Read as it was left, the noise is 27% too low."""
    clean = pywt.data.ascent()[:256, :256]
    y = np.clip(np.rint(clean + level * np.random.default_rng(level).normal(size=clean.shape)), 0, 255)
    assert st.estimate_sigma(y * unit) == pytest.approx(level * unit, rel=0.03)


def test_clipped_signals_and_volumes_have_the_level_that_they_had_before(rng):
    """Where entries are missing, too."""
    signal = 128 + 127 * np.sin(np.arange(4096) / 200)
    y = np.clip(signal + 60 * rng.normal(size=4096), 0, 255)
    y[rng.random(4096) < 0.001] = np.nan
    assert st.estimate_sigma(y, domain="samples") == pytest.approx(60, rel=0.06)
    volume = 128 + 127 * np.sin(np.arange(40) / 10) + np.zeros((40, 40, 1))
    assert st.estimate_sigma(np.clip(volume + 60 * rng.normal(size=volume.shape), 0, 255)) == pytest.approx(
        60, rel=0.03
    )


@pytest.mark.parametrize(("gaps", "ndim"), [(0.1, 2), (0.5, 2), (0.9, 2), (0.5, 1), (0.9, 3)])
def test_levels_between_gaps(gaps, ndim):
    """Where no filter has all its entries, differences of neighbours serve."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=(round(20_000 ** (1 / ndim)),) * ndim)
    y[rng.random(y.shape) < gaps] = np.nan
    assert st.Denoiser().run(y).sigma == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize(("shape", "gaps"), [((128, 128), 0.3), ((128, 128), 0.5), ((24, 40, 40), 0.3)])
def test_levels_between_gaps_and_edges(shape, gaps):
    """A quarter of the area is flat. Elsewhere the signal is a hundred times the noise."""
    rng = np.random.default_rng(2)
    clean = np.zeros(shape)
    clean[..., shape[-1] // 3 :] = 100 * rng.normal(size=(*shape[:-1], shape[-1] - shape[-1] // 3))
    y = clean + rng.normal(size=shape)
    y[rng.random(shape) < gaps] = np.nan
    assert st.Denoiser(choose="bands").run(y).sigma == pytest.approx(1, rel=0.2)


def test_mixed_differences_are_those_of_haar(rng):
    """Written out for an image: the diagonal coefficient of every group of 2 x 2, and a sum that no plane changes."""
    y = rng.normal(size=(12, 13))
    each = [(y[i, j] - y[i, j + 1] - y[i + 1, j] + y[i + 1, j + 1]) / 2 for i in range(11) for j in range(12)]
    found, pairs = mixed_readings(y)
    assert found.level == pytest.approx(oracles.level_by_median(np.array(each)))
    tilted, _ = mixed_readings(y + 50 * np.arange(13) - 70 * np.arange(12)[:, None])
    assert tilted.level == pytest.approx(found.level)
    both = [(y[:, 1:] - y[:, :-1]).ravel(), (y[1:] - y[:-1]).ravel()]
    assert pairs.level == pytest.approx(oracles.level_by_median(np.concatenate(both) / 2**0.5))
    # The mean square of overlapping coefficients varies as that of a 2.25th of them.
    means = [np.mean(np.square(np.diff(np.diff(z, axis=0), axis=1) / 2)) for z in rng.normal(size=(4000, 12, 13))]
    assert np.var(means) == pytest.approx(2 / found.effective_count, rel=0.1)


def test_no_two_neighbours_known():
    y = np.full((6, 6), np.nan)
    y[::2, ::2] = np.arange(9.0).reshape(3, 3)
    with pytest.raises(ValueError, match="no two entries side by side"):
        st.denoise(y)


def test_usable_windows_hold_no_constant_parts(rng):
    """If values do not repeat, two equal neighbours are too many. Rounded ones may be equal in half of a window."""
    y = rng.normal(size=(4, 8, 8))
    y[1, 2, 3] = np.nan
    y[2, 4, 4:6] = 7
    y[3, :, 5] = y[3, :, 6]
    cut = windows.overlapping(y, (1, 2), (8, 8))
    kinds = windows.usable_windows(y, cut)
    np.testing.assert_array_equal(kinds.usable, [True, False, False, False])
    np.testing.assert_array_equal(kinds.mixed, [False, False, True, True])
    assert kinds.known == 3
    rounded = np.rint(2 * y)
    rounded[3] /= 10
    rounded[3] = np.rint(rounded[3])
    np.testing.assert_array_equal(windows.usable_windows(rounded, cut).usable, [True, False, True, False])
    assert not repeats.has_repeated_values(rng.normal(size=5000))
    assert repeats.has_repeated_values(np.rint(10 * rng.normal(size=5000)) / 255)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 101])
def test_quantiles_and_medians_are_those_of_numpy(rng, size):
    values, shares = rng.normal(size=size), (0.0, 0.2, 0.25, 0.5, 0.8, 0.9, 1.0)
    np.testing.assert_allclose(medians.quantiles(values, shares), np.quantile(values, shares), rtol=1e-15)
    table = rng.normal(size=(size, 4))
    assert medians.median_level(table) == np.median(np.abs(table)) / medians.MEDIAN_OF_NORMAL
    values[0] = np.nan
    assert np.isnan(medians.median_level(values))


@pytest.mark.parametrize("block", [(512,), (8, 8), (16, 16), (4, 4, 4), (3, 5, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dct_of_windows(rng, block, dtype):
    """By one matrix or axis by axis; sums of 512 terms round to 1e-5 in single precision."""
    y = rng.normal(size=(7, *block)).astype(dtype)
    found = windows.dct_of_windows(y)
    assert found.dtype == dtype
    expected = fft.dctn(y.astype(float), axes=range(1, y.ndim), norm="ortho")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("shape", [(64, 64), (3000,), (40, 40, 40)])
@pytest.mark.parametrize("unit", [1e-42, 1e-20, 1.0, 1e30])
def test_single_precision(rng, shape, unit):
    """Rounding errors are 6e-8 of the signal, whose range is 600 noise levels at most."""
    y = (unit * (np.indices(shape).sum(axis=0) / 5 + rng.normal(size=shape))).astype(np.float32)
    expected = sample_level(y.astype(float))
    assert sample_level(y) == pytest.approx(expected, rel=1e-4)


def test_noise_far_below_the_range_in_single_precision(rng):
    """Squares of such noise vanish in single precision, and would not tell the flat third of the windows."""
    y = rng.normal(size=(256, 256))
    y[:, :170] *= 20
    y = (1e-30 * y).astype(np.float32)
    y[0, 0] = 1
    assert st.estimate_sigma(y) == pytest.approx(1e-30, rel=0.05)


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
def test_normalised_data_differ_by_a_power_of_two(rng, unit):
    y = unit * (9 + rng.normal(size=(30, 40)))
    y[3, 4] = np.nan
    found, exponent = units.normalise(y)
    assert 0.5 <= np.nanmax(np.abs(found)) <= 1
    assert np.nanmedian(found) == pytest.approx(0, abs=1e-14)
    np.testing.assert_allclose(np.ldexp(np.diff(found), exponent), np.diff(y), rtol=0, atol=1e-14 * unit)


@pytest.mark.parametrize("estimate", [sample_level, estimate_spectrum])
def test_nothing_known(estimate):
    with pytest.raises(ValueError, match=r"y holds no known entries, with shape \(20, 20\)"):
        estimate(np.full((20, 20), np.nan))
    with pytest.raises(ValueError, match="y is too small to tell noise from signal"):
        estimate(np.array([[1.0, 2.0, 4.0]]))
    assert not np.any(estimate(np.full((20, 20), 3.0)))


@pytest.mark.parametrize("scale", [1.0, 1 / 255, np.float32(1 / 255), 3.7e9])
def test_what_a_camera_gives_in_other_units(rng, scale):
    """Neighbours are equal by chance, which is not the sign of a constant region that it is in other numbers."""
    y = np.clip(pywt.data.camera() + rng.normal(scale=6, size=(512, 512)), 0, 255).round()
    expected = st.estimate_sigma(y)
    assert expected == pytest.approx(6, rel=0.05)
    assert st.estimate_sigma(y * scale) / scale == pytest.approx(expected, rel=1e-5)


def test_a_curve_of_tones_keeps_levels_apart(rng):
    """Values that come again need not lie at even steps."""
    y = np.clip(pywt.data.camera() + rng.normal(scale=2, size=(512, 512)), 0, 255).round()
    assert st.estimate_sigma(255 * (y / 255) ** 0.9) == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize(("unit", "dtype"), [(1.0, float), (1 / 255, float), (0.1, np.float32)])
def test_the_step_of_rounded_data(rng, unit, dtype):
    """It is told in any units, but not if values are at uneven steps, or do not repeat."""
    y = (unit * rng.normal(scale=9, size=5000).round()).astype(dtype)
    assert repeats.rounding_step(y) == pytest.approx(unit, rel=1e-5)
    assert np.isnan(repeats.rounding_step(np.exp(y / unit / 20)))
    assert repeats.rounding_step(rng.normal(size=5000)) == 0


def test_equal_neighbours_at_a_clip_limit_may_be_noise(rng):
    """Clipping makes them equal; a constant part elsewhere, or one that is constant at the limit, holds no noise."""
    y = np.maximum(rng.normal(size=(4, 16, 16)), 0)
    y[1, 2, 3:5] = 7
    y[2, 2:8] = 0
    cut = windows.overlapping(y, (1, 2), (16, 16))
    np.testing.assert_array_equal(windows.usable_windows(y, cut).usable, [True, False, False, True])


def test_a_few_spikes_are_no_noise():
    """Most neighbours are equal, which noise does not leave."""
    assert sample_level(np.eye(100)[40]) == 0
    assert sample_level((np.arange(100) % 7 == 0).astype(float)) == 0


def test_errors():
    with pytest.raises(ValueError, match="noise level of y comes out as 0"):
        st.estimate_sigma(np.ones((8, 8)))
    with pytest.raises(ValueError, match="noise level of y comes out as 0"):
        st.estimate_sigma([0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"unknown domain 'sample'\. Did you mean 'samples'"):
        st.estimate_sigma([1.0, 2.0], domain="sample")
    with pytest.raises(ValueError, match="y holds 1 NaN"):
        st.estimate_sigma([1.0, np.nan])


def test_levels_of_channels_are_those_of_each(rng):
    y = rng.normal(0.0, [1.0, 5.0], (64, 64, 2))
    levels = st.estimate_sigma(y, channel_axis=-1)
    assert list(levels) == [st.estimate_sigma(y[..., k]) for k in range(2)]
    signals = y.reshape(-1, 2).T
    assert list(st.estimate_sigma(signals, channel_axis=0)) == [st.estimate_sigma(s, domain="samples") for s in signals]
    with pytest.raises(ValueError, match="channel_axis must be an axis of y, which has 3, got 3"):
        st.estimate_sigma(y, channel_axis=3)


@pytest.mark.parametrize("size", [60, 100, 200])
def test_short_records_of_whole_numbers_hold_noise(size):
    """Values of few samples do not repeat, but two neighbours may be equal by chance: that was taken for no noise."""
    for seed in range(10):
        y = np.rint(np.sin(np.arange(size) / 20) * 100 + np.random.default_rng(seed).normal(0, 10, size))
        assert 4 < sample_level(y) < 25


def test_the_error_of_a_level_is_what_it_says_on_noise(rng):
    """Of 100 draws; the root mean square of that many has a relative standard error of 7%.

    The smallest of many readings errs a little more than the one that was chosen says.
    """
    levels = [measure_level(rng.normal(size=(128, 128))) for _ in range(100)]
    scores = [(level.value - 1) / level.error for level in levels]
    assert 0.6 < np.sqrt(np.mean(np.square(scores))) < 1.4
    assert abs(np.mean([level.value for level in levels]) - 1) < 0.01


def test_the_mean_of_all_readings_tells_how_far_the_best_can_be_trusted():
    """Readings of 1 and, as precise, 1.04: the mean is 2% above. One of 1.3 that hardly counts changes little."""
    readings = [Reading(1.0, 1e6), Reading(1.04, 1e6)]
    expected = math.hypot(1.1664e-3, STRUCTURE_ERROR * math.sqrt(0.02))
    assert combined(readings) == pytest.approx((1.0, expected))
    assert combined([*readings, Reading(1.3, 10.0)]) == pytest.approx((1.0, expected), rel=1e-3)
    assert combined([Reading(1.0, 1e6)]).error == pytest.approx(1.1664e-3)
    assert combined([Reading(1.0, 1e6), Reading(9.0, 1e6)]).error == pytest.approx(MOST_STRUCTURE_ERROR, rel=1e-3)


def test_readings_that_disagree_make_a_level_uncertain(rng):
    """Texture raises the readings of all windows above those of flat ones."""
    noise, grain = rng.normal(size=(256, 256)), texture(rng, (256, 256)) / 40
    errors = [measure_level(strength * grain + noise).error for strength in (0.0, 1.0, 4.0)]
    assert errors[0] < 0.005
    assert 4 * errors[0] < errors[1] < errors[2]


def test_the_error_of_a_level_falls_with_the_size_and_counts_in_the_prediction(rng):
    """A prediction is less sure if the level is estimated."""
    errors = [measure_level(rng.normal(size=(side, side))).error for side in (32, 512)]
    assert errors[0] > 2 * errors[1] > 0
    y = np.kron(rng.uniform(0, 9, (8, 8)), np.ones((16, 16))) + rng.normal(size=(128, 128))
    known, found = (st.Denoiser(sigma=sigma, choose="bands").run(y) for sigma in (1.0, None))
    assert found.stderr > 1.2 * known.stderr
