"""Which noise model is found, what is said of it, outliers, and the map of the error."""

import warnings

import numpy as np
import pytest
import pywt
from scipy.fft import idctn
from scipy.ndimage import gaussian_filter

import scorethresh as st
from scorethresh.denoising.error_map import BLOCK_SIDES, LOCAL_EXPONENT, ErrorBlocks, block_sums, joined
from scorethresh.noise.auto import AutoNoise
from scorethresh.noise.covariance import White
from scorethresh.noise.models import WhiteNoise
from scorethresh.noise.outliers import find_outliers
from scorethresh.noise.residual import check_residual, window_moments
from scorethresh.noise.whiteness import whiteness
from scorethresh.noise.windows import overlapping

CAMERA = pywt.data.camera()[60:316, 120:376].astype(float)


def mse(a, b=CAMERA):
    return np.mean((a - b) ** 2)


def blurred(noise, width):
    out = gaussian_filter(noise, width, mode="wrap")
    return out * noise.std() / out.std()


def run(y, **options):
    """Denoise, and turn warnings into errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return st.Denoiser(choose="fast", **options).run(y)


def noisy(kind, rng):
    """Return the clean picture and a noisy one."""
    noise = rng.normal(size=CAMERA.shape)
    clean = CAMERA
    if kind == "RicianNoise":
        clean = np.where(np.hypot(*np.mgrid[-128:128, -128:128]) < 100, CAMERA, 0)
    y = {
        "WhiteNoise": lambda: clean + 20 * noise,
        "CorrelatedNoise": lambda: clean + blurred(20 * noise, 0.7),
        "PoissonNoise": lambda: rng.poisson(clean),
        "CameraNoise": lambda: 100 + (rng.poisson(0.1 * clean) + 1.6 * noise) / 0.46,
        "SpeckleNoise": lambda: clean * (1 + 0.15 * noise),
        "RicianNoise": lambda: np.abs(clean + 20 * (noise + 1j * rng.normal(size=clean.shape))),
    }[kind]()
    return (100 + 0.1 * clean / 0.46 if kind == "CameraNoise" else clean), y


@pytest.mark.parametrize(
    "kind", ["WhiteNoise", "CorrelatedNoise", "PoissonNoise", "CameraNoise", "SpeckleNoise", "RicianNoise"]
)
def test_the_noise_is_told_from_the_data_and_the_error_predicted(kind, rng):
    clean, y = noisy(kind, rng)
    found = run(y)
    assert type(found.noise).__name__ == kind
    assert "fits" in found.verdict
    assert found.noise.name in repr(found)
    true = mse(found.estimate, clean)
    assert true < 0.3 * mse(y, clean)
    assert found.predicted_mse == pytest.approx(true, rel=0.3)


def test_a_camera_that_was_found_has_its_gain(rng):
    found = run(noisy("CameraNoise", rng)[1])
    assert found.noise.gain == pytest.approx(0.46, rel=0.15)


@pytest.mark.parametrize("shape", [(4096,), (128, 128), (32, 32, 32)])
def test_white_noise_is_white(shape):
    """Lower bounds by two standard errors exceed 1 rarely."""
    found = [whiteness(np.random.default_rng(k).normal(size=shape)) for k in range(20)]
    assert max(w.red for w in found) < 1.1
    assert max(w.blue for w in found) < 1.2
    assert whiteness(np.cumsum(np.ones(20))) is None


@pytest.mark.parametrize(("width", "least"), [(0.5, 1.3), (0.7, 5), (1.5, 20)])
def test_blurred_noise_is_red_and_sharpened_noise_blue(width, least, rng):
    noise = rng.normal(size=(128, 128))
    assert whiteness(blurred(noise, width)).red > least
    assert whiteness(4 * noise - 3 * gaussian_filter(noise, 0.7)).blue > 1.25


def test_tones_are_not_taken_for_correlated_noise(rng):
    t = np.arange(4096)
    for frequency in (0.01, 0.1, 0.3):
        tone = 10 * np.sin(2 * np.pi * frequency * t)
        assert isinstance(run(tone + rng.normal(size=t.size)).noise, WhiteNoise)


def test_what_does_not_hold_is_said(rng):
    noise = rng.normal(size=CAMERA.shape)
    cases = [
        (CAMERA + 20 * noise, {"sigma": 40.0}, "too high"),
        (CAMERA + 20 * noise, {"sigma": 8.0}, "too low"),
        (CAMERA + blurred(20 * noise, 0.7), {"sigma": 20.0}, "correlated"),
        (CAMERA + noise * np.sqrt(2 * CAMERA), {"sigma": 16.0}, "varies with the brightness"),
    ]
    for y, options, words in cases:
        with pytest.warns(st.AssumptionWarning, match=words):
            found = st.Denoiser(choose="fast", **options).run(y)
        assert words in found.verdict
        assert found.warnings
    assert run(CAMERA + 20 * noise, sigma=20.0).warnings == ()


def test_a_residual_that_is_noise_passes(rng):
    noise, flat = rng.normal(size=(128, 128)), np.linspace(0, 3, 128) * np.ones((128, 1))
    found = check_residual(noise, flat, White(1.0))
    assert found.level == pytest.approx(1, abs=4 * found.error)
    assert abs(np.log(found.growth)) < 4 * found.growth_error
    assert check_residual(2 * noise, flat, White(1.0)).level == pytest.approx(2 * found.level)
    assert check_residual(noise, 5 * rng.normal(size=noise.shape), White(1.0)) is None


def test_salt_and_pepper_are_replaced(rng):
    y = CAMERA + rng.normal(0, 10, CAMERA.shape)
    salted = y.copy()
    at = rng.random(y.shape) < 0.01
    salted[at] = rng.choice([0, 255], np.count_nonzero(at))
    found = run(salted)
    plain = run(y)
    assert plain.outliers < 5
    assert 0.5 * np.count_nonzero(at) < found.outliers < 1.1 * np.count_nonzero(at)
    assert mse(found.estimate) < 1.15 * mse(plain.estimate)
    assert found.predicted_mse == pytest.approx(mse(found.estimate), rel=0.2)


def test_salt_in_bright_pictures_is_told_by_its_value(rng):
    """Too near to be told one by one: 4.5 noise levels from what is around it."""
    y = 210 + rng.normal(0, 10, (128, 128))
    salt, pepper = rng.random((2, *y.shape)) < 0.005
    y[salt], y[pepper] = 255.0, 0.0
    found = find_outliers(y, 10.0)
    assert np.mean(found[salt]) > 0.8
    assert np.count_nonzero(found & ~salt & ~pepper) < 5
    y[pepper] = 210.0  # nothing else shows that there are outliers
    assert not find_outliers(y, 10.0).any()


def test_saturated_stars_stay_among_dead_pixels(rng):
    rows, columns = np.mgrid[:128, :128]
    stars = np.full((128, 128), 100.0)
    for a, b in rng.uniform(4, 124, (80, 2)):
        stars += 1700 * np.exp(-((rows - a) ** 2 + (columns - b) ** 2) / 2 / 0.8**2)
    y = np.minimum(stars + rng.normal(0, 10, stars.shape), 1000)
    dead = rng.random(y.shape) < 0.04
    y[dead] = 0.0
    found = find_outliers(y, 10.0)
    assert np.mean(found[dead]) > 0.5
    assert not found[y == 1000].any()


def test_values_that_repeat_by_chance_are_no_grains(rng):
    """Whole numbers in the tail of counts."""
    y = rng.poisson(2, (256, 256)).astype(float)
    hot = np.zeros(y.shape, bool)
    hot[5::20, 5::30] = True
    y[hot] = 60.0
    found = find_outliers(y, 2**0.5)
    assert found[hot].all()
    assert np.count_nonzero(found & ~hot) < 5


def test_saturated_regions_stay_among_outliers(rng):
    y = rng.normal(100, 5, (128, 128))
    y[40:120:10, 10:120:20] = rng.uniform(180, 240, (8, 6))
    for left in range(10, 90, 20):
        y[8:12, left : left + 4] = 255.0
    assert np.count_nonzero(find_outliers(y, 5.0)) == 48


def test_missing_entries_stay_and_outliers_do_not(rng):
    y = 100 + rng.normal(0, 5, (96, 96))
    y[20:60:20, 20:90:7] = 250.0
    y[50, 50] = np.nan
    found = run(y)
    assert np.isnan(found.estimate[50, 50])
    assert found.outliers == 20
    assert np.abs(found.estimate[20:60:20, 20:90:7] - 100).max() < 5


def test_a_few_sparkles_stay(rng):
    """Nothing tells up to 15 of them from structure."""
    y = 100 + rng.normal(0, 5, (96, 96))
    y[20, 20:90:7] = 250.0
    found = run(y)
    assert found.outliers == 0
    assert found.estimate[20, 20:90:7].min() > 200


def test_stars_and_lines_are_no_outliers(rng):
    rows, columns = np.mgrid[:128, :128]
    stars = np.zeros((128, 128))
    for _ in range(60):
        a, b = rng.uniform(4, 124, 2)
        stars += 10 ** rng.uniform(2, 4) * np.exp(-((rows - a) ** 2 + (columns - b) ** 2) / 2 / 0.7**2)
    assert not find_outliers(stars + rng.normal(0, 10, stars.shape), 10.0).any()
    lines = np.zeros((128, 128))
    lines[40, 20:90] = lines[10:100, 60] = lines[np.arange(20, 80), np.arange(30, 90)] = 200
    assert not find_outliers(lines + rng.normal(0, 10, lines.shape), 10.0).any()


def test_the_peaks_of_a_heartbeat_stay(rng):
    beats = np.exp(-(((np.arange(4000) % 400) - 200) ** 2) / 2 / 2.0**2) * 10
    found = run(beats + rng.normal(0, 0.5, beats.size))
    assert found.outliers == 0
    assert found.estimate[200::400].min() > 8


def test_the_map_is_calibrated(rng):
    y = CAMERA + rng.normal(0, 20, CAMERA.shape)
    found = run(y)
    drawn = found.error_map()
    assert drawn.shape == y.shape
    assert drawn.mean() == pytest.approx(found.predicted_mse, rel=1e-6)
    assert drawn.min() >= 0
    true = gaussian_filter((found.estimate - CAMERA) ** 2, 12)
    assert np.corrcoef(np.log(drawn.ravel()), np.log(true.ravel()))[0, 1] > 0.6
    large = drawn > np.quantile(drawn, 0.8)
    assert np.mean(((found.estimate - CAMERA) ** 2)[large]) == pytest.approx(drawn[large].mean(), rel=0.4)


def test_no_noise_no_error():
    for shape, channel_axis in (((40, 40), None), ((40, 40, 3), -1)):
        found = run(np.ones(shape), channel_axis=channel_axis)
        assert "left as they are" in found.verdict
        assert found.error_map().shape == (40, 40)
        assert not found.error_map().any()


@pytest.mark.parametrize(("shape", "sides"), [((40,), (8,)), ((37, 50), (8, 6)), ((9, 10, 11), (4, 4, 3))])
def test_moments_of_windows_are_those_of_each(shape, sides, rng):
    y = rng.normal(size=shape) + 1e3
    cut = overlapping(y, range(len(shape)), sides)
    mean, variance = window_moments(y, cut)
    inside = tuple(range(len(shape), 2 * len(shape)))
    np.testing.assert_allclose(mean, cut.windows(y).mean(axis=inside), rtol=1e-12)
    np.testing.assert_allclose(variance, cut.windows(y).var(axis=inside), rtol=1e-9)


@pytest.mark.parametrize("shape", [(200,), (37, 50), (9, 10, 11)])
def test_sums_over_blocks_do_not_depend_on_tiles(shape, rng):
    maps = rng.uniform(size=(4, *shape))
    whole = [tuple(slice(0, n) for n in shape)]
    cut = [(slice(0, 5), *whole[0][1:]), (slice(5, shape[0]), *whole[0][1:])]
    found = [joined(shape, (block_sums(t, *(m[t] for m in maps)) for t in tiles)) for tiles in (whole, cut)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
    np.testing.assert_allclose(found[0][:3].reshape(3, -1).sum(axis=1), [(m * maps[3]).sum() for m in maps[:3]])
    # A variance and a weight that are the same everywhere may be numbers.
    even = block_sums(whole[0], *maps[:2], 0.7, 1.3).sums
    np.testing.assert_allclose(even, block_sums(whole[0], *maps[:2], *(np.full(shape, v) for v in (0.7, 1.3))).sums)
    first = tuple(slice(0, BLOCK_SIDES[len(shape)]) for _ in shape)
    np.testing.assert_allclose(found[0][(0, *(0,) * len(shape))], (maps[0] * maps[3])[first].sum())
    assert found[0][3].sum() == maps[0].size


@pytest.mark.parametrize("mean", [0.1, 0.5])
def test_single_photons_are_left_with_a_warning(mean, rng):
    """They look like spikes, and no error was predicted, aloud or not."""
    counts = rng.poisson(mean, (64, 64))
    with pytest.warns(st.AssumptionWarning, match="counts of single photons"):
        found = st.Denoiser(choose="fast").run(counts)
    assert found.warnings == (found.verdict,)
    np.testing.assert_array_equal(found.estimate, counts)
    with pytest.warns(st.AssumptionWarning, match="In 3 of 3 samples"):
        st.Denoiser(choose="fast", batch_axis=0).run(np.stack([counts.ravel()] * 3))


@pytest.mark.parametrize("seed", [0, 1])
def test_blocks_of_a_compressed_picture_stay(seed):
    """Half of them have a few strong waves, as of JPEG: they look correlated, but the level is 0, which divided."""
    rng = np.random.default_rng(seed)
    blocks = np.zeros((32, 32, 8, 8))
    blocks[..., 0, 0] = rng.uniform(200, 1200, (32, 32))
    strong = rng.random((32, 32, 1, 1)) < 0.5
    blocks[..., :5, :5] += np.where(strong, 16 * np.rint(rng.normal(0, 2, (32, 32, 5, 5))), 0)
    picture = np.rint(idctn(blocks, axes=(-2, -1), norm="ortho")).transpose(0, 2, 1, 3).reshape(256, 256)
    np.testing.assert_array_equal(run(picture).estimate, picture)


def test_drawings_and_spikes_are_no_photons(rng):
    """Labels of regions, bits and dots of other values: no warning, and they stay."""
    labels = np.repeat(np.repeat(rng.integers(0, 3, (8, 8)), 8, 0), 8, 1)
    bits, dots = rng.integers(0, 2, (64, 64)), np.where(rng.random((64, 64)) < 0.05, 200, 0)
    for y in (labels, bits, dots, 4e152 * labels):
        np.testing.assert_array_equal(run(y).estimate, y)


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_growing_noise_among_stars_is_not_called_correlated(seed):
    """A sky with fine structure of its own, which no growing model explains, and which a spectrum would remove."""
    rng = np.random.default_rng(seed)
    sky = np.zeros((256, 256))
    np.add.at(sky, tuple(rng.integers(0, 256, (2, 1500))), rng.pareto(1.3, 1500) + 0.3)
    fine = gaussian_filter(rng.normal(size=sky.shape), 0.6)
    clean = np.maximum(2 + 20 * gaussian_filter(sky, 1, mode="wrap") + 2 * fine / fine.std(), 0.5)
    y = clean * (1 + 0.15 * rng.normal(size=clean.shape))
    assert isinstance(AutoNoise().chosen_for(y[None, None], None).model, WhiteNoise)
    assert mse(st.denoise(y, choose="fast"), clean) < mse(st.denoise(y, noise="correlated", choose="fast"), clean)


@pytest.mark.parametrize(("blur", "textured"), [(0.0, False), (0.5, True)])
def test_texture_that_grows_with_the_brightness_does_not_pass_for_noise(rng, blur, textured):
    """Clean brick was changed by 1.8 grey levels. Noise of a camera is white in flat windows, texture hardly ever."""
    smooth = gaussian_filter(rng.normal(size=(256, 256)), 12)
    light = 120 + 60 * smooth / np.abs(smooth).max()
    fine = rng.normal(size=light.shape)
    if blur:
        fine = gaussian_filter(fine, blur)
        fine /= fine.std()
    found = AutoNoise().chosen_for((light + 0.003 * light**1.5 * fine)[None, None], None)
    assert isinstance(found.model, WhiteNoise if textured else st.CameraNoise | st.SpeckleNoise)
    assert any("texture everywhere" in remark for remark in found.remarks) == textured


def test_where_the_risk_is_noise_the_map_is_a_power_of_the_divergence():
    """One entry a block tells next to nothing of the risk. With many, the risk is drawn as it is."""
    kept = np.repeat([0.01, 0.2], 16)[:, None] * np.ones(32)
    risk = np.repeat([0.3, 0.1], 16)[:, None] * np.ones(32)
    for count, expected in ((1e-6, 0.05**LOCAL_EXPONENT), (1e9, 3.0)):
        sums = count * np.stack([risk, kept, np.ones((32, 32)), np.ones((32, 32))])
        drawn = ErrorBlocks((256, 256), sums, 1.0, 0.7).map()
        assert drawn.mean() == pytest.approx(0.7)
        assert drawn[10, 10] / drawn[-10, -10] == pytest.approx(expected, rel=0.02)
