"""Fine texture that fills small images: levels stay low enough to do no harm, and it is no noise of a camera."""

import warnings

import numpy as np
import pytest
import pywt
from scipy.fft import dctn
from scipy.ndimage import gaussian_filter

import scorethresh as st
from scorethresh.noise.auto import AutoNoise
from scorethresh.noise.flat_power import FlatPower, flat_power
from scorethresh.noise.level import measure_level
from scorethresh.noise.models import WhiteNoise
from scorethresh.noise.windows import window_set

CAMERA = pywt.data.camera().astype(float)


def windows_of(y):
    return window_set(y, (0, 1), (8, 8), 4)


def test_the_power_of_white_noise_is_its_variance():
    """The mean of 40 draws of each band has a standard error of 1% or less."""
    powers = [flat_power(windows_of(np.random.default_rng(k).normal(0, 2, (96, 96)))) for k in range(40)]
    np.testing.assert_allclose(np.mean(powers, axis=0), 4.0, rtol=0.03)


def test_the_power_of_flat_windows_is_that_of_its_definition(rng):
    y = rng.normal(size=(80, 80)) * np.exp(np.linspace(-1, 1, 80))
    corners = [(i, j) for i in range(0, 73, 2) for j in range(0, 73, 2)]
    energy = np.array([dctn(y[i : i + 8, j : j + 8], norm="ortho") ** 2 for i, j in corners])
    u, v = np.indices((8, 8))
    share, odd = (u + v) / 14, (u + v) % 2
    overlap = max(len(corners) * 64 / y.size, 1.0)
    count = max(len(corners) // 10, int(np.ceil(40 * overlap)))
    expected = []
    for low, high, split in ((0.15, 0.35, True), (0.35, 0.6, True), (0.7, 2.0, False)):
        halves = []
        for half in (0, 1):
            ranking = energy[:, (share > 0) & (share < 0.7) & (odd == half)].sum(axis=1)
            chosen = energy[np.argsort(ranking)[:count]]
            halves.append(chosen[:, (share >= low) & (share < high) & (odd != half if split else True)].mean())
        expected.append(np.mean(halves))
    np.testing.assert_allclose(flat_power(windows_of(y)), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("powers", "textured"),
    [
        ((1.0, 1.0, 1.0), False),
        ((3.0, 1.6, 1.0), True),
        ((3.7, 1.6, 1.0), False),  # steep at first, then flat: the power of noise is reached
        ((2.4, 1.3, 1.0), False),
        ((4.0, 2.1, 1.0), False),
    ],
)
def test_texture_falls_slowly_up_to_the_highest_frequencies(powers, textured):
    assert FlatPower(*powers).is_textured == textured


def test_too_few_windows_tell_nothing(rng):
    assert flat_power(windows_of(rng.normal(size=(24, 24)))) is None


@pytest.mark.parametrize("corner", [(384, 128), (384, 256), (384, 384)])
def test_grass_does_not_get_worse(corner):
    """Its mean squared error was 1.2 to 2.6 times that of the input, at noise 5."""
    grass = CAMERA[corner[0] : corner[0] + 128, corner[1] : corner[1] + 128]
    for seed in range(3):
        y = grass + np.random.default_rng([*corner, seed]).normal(0, 5, grass.shape)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = st.Denoiser(choose="fast").run(y)
        assert isinstance(found.noise, WhiteNoise)
        assert np.mean((found.estimate - grass) ** 2) < np.mean((y - grass) ** 2)
        assert any("texture" in str(warning.message) for warning in told)


def test_levels_are_lowered_for_small_textured_images_alone(rng):
    """One row and column less make an image small; they change what is read by a percent or two."""
    texture = gaussian_filter(rng.normal(size=(182, 182)), 0.45, mode="wrap")
    y = texture / texture.std() + rng.normal(0, 0.3, texture.shape)
    assert flat_power(windows_of(y)).is_textured
    small, large = measure_level(y[:181, :181]), measure_level(y)
    assert small.value == pytest.approx(0.65 * large.value, rel=0.03)
    assert small.error > 0.2 > 0.1 > large.error
    assert measure_level(rng.normal(size=(128, 128))).value == pytest.approx(1, rel=0.06)


@pytest.mark.parametrize("kind", ["texture", "too much"])
def test_structure_does_not_pass_for_the_noise_of_a_camera(kind, rng):
    """Bright grass is rougher than dark grass, and a building rougher than the sky."""
    if kind == "texture":
        clean = CAMERA[384:, 256:384]
    else:
        rows, columns = np.mgrid[:128, :128]
        clean = 60.0 + 0.4 * rows + 0.2 * columns
        clean[:, 64:] += 80 + 25 * np.sign(np.sin(rows * 0.9) * np.sin(columns * 1.1))[:, 64:]
    for seed in range(3):
        y = clean + np.random.default_rng(seed).normal(0, 5, clean.shape)
        assert isinstance(AutoNoise().chosen_for(y[None, None], None).model, WhiteNoise)
