"""Do no harm: clean drawings, text, waves and bits stay as they are, and noise in them is told from them."""

import numpy as np
import pytest
import pywt

import scorethresh as st
from scorethresh.noise.level import sample_level

LEVEL = 10.0


def line_art(rng):
    """Black straight lines of one or two pixels, in all directions, on white paper."""
    out = np.full((128, 128), 255.0)
    t = np.linspace(0, 127, 400)
    for _ in range(12):
        a, b = rng.uniform(0, 127, 2)
        for width in range(rng.integers(1, 3)):
            u, v = t, np.clip(a + (b - a) * t / 127 + width, 0, 127)
            out[tuple(np.rint((u, v) if rng.random() < 0.5 else (v, u)).astype(int))] = 0
    return out


def text(rng):
    """Lines of random glyphs, 7 x 5 bits each, twice as large."""
    out = np.full((128, 128), 255.0)
    for top in range(2, 108, 20):
        for left in range(2, 114, 12):
            glyph = np.kron(rng.random((7, 5)) < 0.45, np.ones((2, 2), bool))
            out[top : top + 14, left : left + 10][glyph] = 0
    return out


def zone_plate(rng):
    """Rings whose frequency grows to that of the grid."""
    u, v = np.indices((256, 256)) - 128 + rng.random()
    return np.rint(127.5 + 127.5 * np.cos(np.pi * (u**2 + v**2) / 256))


def bus(rng):
    """Bits of eight samples."""
    return np.repeat(200.0 * rng.integers(0, 2, 512), 8)


def spikes(rng):
    """Events in 3 of 100 samples."""
    out = np.zeros(4096)
    out[rng.permutation(out.size)[:120]] = 200
    return out


CASES = [line_art, text, zone_plate, bus, spikes]


@pytest.mark.parametrize("draw", CASES)
def test_clean_data_stay(draw):
    y = draw(np.random.default_rng(5))
    assert np.sqrt(np.mean((st.denoise(y) - y) ** 2)) < 0.5


@pytest.mark.parametrize("draw", CASES)
def test_noise_is_told_and_removed(draw):
    rng = np.random.default_rng(6)
    clean = draw(rng)
    y = clean + rng.normal(scale=LEVEL, size=clean.shape)
    assert 1 / 1.3 < sample_level(y) / LEVEL < 1.3
    assert np.mean((st.denoise(y) - clean) ** 2) < np.mean((y - clean) ** 2)


@pytest.mark.parametrize("draw", [line_art, text, zone_plate])
@pytest.mark.parametrize("unit", [1.0, 1 / 255])
def test_the_noise_of_pictures_of_eight_bits(draw, unit):
    """Most of the noise of paper and ink is clipped."""
    rng = np.random.default_rng(7)
    clean = draw(rng)
    y = np.clip(np.rint(clean + rng.normal(scale=LEVEL, size=clean.shape)), 0, 255)
    assert 1 / 1.3 < sample_level(unit * y) / (unit * LEVEL) < 1.3


@pytest.mark.parametrize("side", [24, 48, 64])
def test_small_pictures_of_two_levels_stay(side):
    """Below 56 pixels a side they were wiped out."""
    y = np.random.default_rng(1).integers(0, 2, (side, side)).astype(np.uint8) * 255
    np.testing.assert_array_equal(st.denoise(y), y)


def test_texture_in_small_pictures_is_told_from_noise():
    """By differences of neighbours, without windows, nine of these levels were 1.3 times too high or more, one 1.86."""
    rng, picture = np.random.default_rng(3), pywt.data.camera().astype(float)
    places = range(16, 464, 64)
    crops = [picture[a : a + 48, b : b + 48] + rng.normal(0, 8, (48, 48)) for a in places for b in places]
    ratios = np.array([sample_level(y) / 8 for y in crops])
    assert np.sqrt(np.mean(np.log(ratios) ** 2)) < 0.12
    assert np.count_nonzero(ratios > 1.3) <= 2
    assert ratios.max() < 1.5
