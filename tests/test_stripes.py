"""Stripes, which are offsets of whole rows or columns, are told from structure; they pass for signal."""

import warnings

import numpy as np
import pytest
import pywt
from PIL import Image, ImageDraw, ImageFont
from scipy.stats import norm

import scorethresh as st
from scorethresh.noise.stripes import find_stripes

CAMERA, ASCENT = (picture().astype(float) for picture in (pywt.data.camera, pywt.data.ascent))


def page(rng, side=256):
    """Lines of type of many sizes, so that they do not come at even distances."""
    picture = Image.new("L", (side, side), 255)
    pen, top = ImageDraw.Draw(picture), 2
    while top < side:
        size = int(rng.integers(8, 22))
        words = " ".join(rng.choice(["risk", "of", "estimators", "that", "jump"], 60))
        pen.text((4, top), words, fill=0, font=ImageFont.load_default(size))
        top += int(size * rng.uniform(1.05, 1.6))
    return np.asarray(picture, float)


def hatching(rng, side=256):
    """Parallel lines at an even distance, one row down every two columns."""
    u, v = np.indices((side, side))
    return 255.0 - 200 * ((u - v // 2) % int(rng.integers(4, 9)) == 0)


def bars(rng, side=256):
    """Bars of four rows, each of its own grey."""
    return np.repeat(rng.uniform(0, 255, (side // 4, 1)), 4, axis=0) * np.ones((1, side))


def grating(rng, side=256):
    return 120 + 40 * np.sin(2 * np.pi * rng.uniform(0.1, 0.4) * np.arange(side))[:, None] * np.ones((1, side))


def test_the_level_of_stripes_without_noise_is_that_of_its_definition(rng):
    offsets = rng.normal(size=100)
    y = offsets[:, None] + np.linspace(0, 40, 100)[:, None] + np.zeros((1, 80))
    steps = offsets[1:-1] - (offsets[:-2] + offsets[2:]) / 2
    steps -= np.median(steps)
    level = np.quantile(np.abs(steps), 0.3) / norm.ppf(0.65) / np.sqrt(1.5)
    found = find_stripes(y, 0.1)
    assert found.axis == 0
    assert found.level == pytest.approx(level, rel=1e-6)
    assert find_stripes(y.T, 0.1).axis == 1
    assert find_stripes(y, found.level / 0.24) is None
    assert find_stripes(y, found.level / 0.26) is not None


@pytest.mark.parametrize("gaps", [False, True])
def test_the_level_of_stripes_is_unbiased(gaps):
    """The standard error of the mean square of 60 draws follows from their spread."""
    squares = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=(192, 192)) + 0.8 * rng.normal(size=(1, 192))
        if gaps:
            y[rng.random(y.shape) < 0.1] = np.nan
            y[30:40, :100] = np.nan
        found = find_stripes(y, 1.0)
        assert found.axis == 1
        squares.append(found.level**2)
    assert np.mean(squares) == pytest.approx(0.64, abs=4 * np.std(squares) / np.sqrt(60))


@pytest.mark.parametrize("side", [64, 128, 256])
def test_photographs_have_no_stripes(side):
    rng = np.random.default_rng(side)
    for picture in (CAMERA, ASCENT):
        for _ in range(40):
            top, left = rng.integers(0, 512 - side, 2)
            crop = picture[top : top + side, left : left + side]
            for level in (1e-3, 3.0, 20.0):
                assert find_stripes(np.rint(crop + rng.normal(0, level, crop.shape)), level) is None


@pytest.mark.parametrize("level", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("noise", [5.0, 20.0])
def test_stripes_of_photographs_are_found(level, noise):
    rng = np.random.default_rng(3)
    for picture in (CAMERA, ASCENT):
        crop = picture[100:356, 100:356]
        y = crop + noise * (rng.normal(size=crop.shape) + level * rng.normal(size=(256, 1)))
        found = find_stripes(y, noise)
        assert found.axis == 0
        assert found.level == pytest.approx(level * noise, rel=0.3)


@pytest.mark.parametrize("draw", [page, hatching, bars, grating])
@pytest.mark.parametrize("noise", [2.0, 10.0])
def test_patterns_of_lines_are_no_stripes(draw, noise):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        y = draw(rng) + rng.normal(0, noise, (256, 256))
        assert find_stripes(y, noise) is None


def test_small_images_tell_nothing(rng):
    y = rng.normal(size=(63, 200)) + 3 * rng.normal(size=(63, 1))
    assert find_stripes(y, 1.0) is None
    assert find_stripes(np.full((80, 80), np.nan), 1.0) is None


def test_a_prediction_that_stripes_make_too_low_comes_with_a_warning(rng):
    clean = CAMERA[60:316, 120:376]
    y = clean + rng.normal(0, 10, clean.shape)
    striped = y + rng.normal(0, 15, (256, 1))
    with pytest.warns(st.AssumptionWarning, match=r"Every row has an offset.*1\.\d times.*subtract from each row"):
        found = st.Denoiser(choose="fast").run(striped)
    assert np.mean((found.estimate - clean) ** 2) > 3 * found.predicted_mse
    assert not any("flat enough" in words for words in found.warnings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        st.Denoiser(choose="fast").run(y)
