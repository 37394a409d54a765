"""Clean data of many kinds, for experiments on what the denoiser does to them if nothing is said about the noise.

Pictures are in grey levels from 0 to 255, signals in units of their own. Every case is drawn by a function of a size
and a seed, so that what is developed on one draw can be reported on another.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont


class Case(NamedTuple):
    """A kind of clean data: what draws it, the noise that is added to it, and whether it is an 8-bit picture."""

    draw: Callable[[int, int], np.ndarray]
    noise: float
    picture: bool


WORDS = ["risk", "of", "estimators", "that", "jump", "is", "read", "from", "noisy", "data", "alone", "and", "error"]


def _pen(side: int, level: int = 255) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    picture = Image.new("L", (side, side), level)
    return picture, ImageDraw.Draw(picture)


def line_art(side: int, seed: int) -> np.ndarray:
    """Black lines, circles and polygons on white paper, not smoothed."""
    rng = np.random.default_rng(seed)
    picture, pen = _pen(side)
    for _ in range(side // 12):
        a, b, c, d = (rng.random(4) * side).astype(int).tolist()
        width = int(rng.integers(1, 4))
        if rng.random() < 0.6:
            pen.line((a, b, c, d), fill=0, width=width)
        else:
            radius = 5 + d // 5
            pen.ellipse((a - radius, b - radius, a + radius, b + radius), outline=0, width=width)
    return np.asarray(picture, float)


def hatching(side: int, seed: int) -> np.ndarray:
    """A drawing with parallel lines every four to eight pixels all over: no window is empty."""
    rng = np.random.default_rng(seed)
    picture, pen = _pen(side)
    for x in range(-side, 2 * side, int(rng.integers(4, 9))):
        pen.line((x, 0, x + side // 2, side), fill=0, width=1)
    for y in range(0, side, int(rng.integers(9, 14))):
        pen.line((0, y, side, y + side // 8), fill=0, width=2)
    return np.asarray(picture, float)


def _write(pen: ImageDraw.ImageDraw, box: tuple[int, int, int, int], size: int, ink: int, rng) -> None:
    font = ImageFont.load_default(size)
    left, top, right, bottom = box
    for y in range(top, bottom - size, int(1.3 * size)):
        line = " ".join(rng.choice(WORDS, 60))
        pen.text((left, y), line[: int((right - left) / (0.52 * size))], fill=ink, font=font)


def text(side: int, seed: int) -> np.ndarray:
    """A page of smoothed black type on white."""
    picture, pen = _pen(side)
    _write(pen, (6, 4, side, side), 11, 0, np.random.default_rng(seed))
    return np.asarray(picture, float)


def two_level_text(side: int, seed: int) -> np.ndarray:
    """The same page, black or white."""
    return np.where(text(side, seed) > 127, 255.0, 0.0)


def screenshot(side: int, seed: int) -> np.ndarray:
    """Windows of even grey with titles, borders, text and buttons."""
    rng = np.random.default_rng(seed)
    picture, pen = _pen(side, 96)
    for _ in range(4):
        left, top = (int(v) for v in rng.integers(0, side // 2, 2))
        box = (left, top, left + side // 2, top + int(0.4 * side))
        pen.rectangle(box, fill=int(rng.integers(215, 250)), outline=40)
        pen.rectangle((left, top, box[2], top + 14), fill=int(rng.integers(50, 120)))
        _write(pen, (left + 4, top + 1, box[2], top + 14), 11, 255, rng)
        _write(pen, (left + 6, top + 18, box[2], box[3]), 10, 20, rng)
        pen.rectangle((box[2] - 30, box[3] - 14, box[2] - 6, box[3] - 4), fill=180, outline=90)
    return np.asarray(picture, float)


def zone_plate(side: int, seed: int) -> np.ndarray:
    """Rings whose frequency grows to that of the grid."""
    u, v = np.indices((side, side)) - side / 2 + seed / 3
    return np.rint(127.5 + 127.5 * np.cos(np.pi * (u**2 + v**2) / side))


def checkerboard(side: int, seed: int) -> np.ndarray:
    u, v = np.indices((side, side)) // (3 + seed)
    return 40.0 + 160.0 * ((u + v) % 2)


def fringes(side: int, seed: int) -> np.ndarray:
    """One plane wave over a slope."""
    u, v = np.indices((side, side))
    return np.rint(100 + 0.2 * u + 50 * np.sin(2 * np.pi * (u * 0.13 + v * (0.2 + seed / 20))))


def _crop(name: str, side: int) -> np.ndarray:
    from skimage import color, data

    image = getattr(data, name)()
    grey = np.rint(255 * color.rgb2gray(image[..., :3])) if image.ndim == 3 else image.astype(float)
    top, left = ((n - side) // 2 for n in grey.shape)
    return grey[top : top + side, left : left + side]


# The first of each pair serves development, the second is reported on.
PHOTOS = [("camera", "moon"), ("coins", "rocket"), ("brick", "astronaut")]


def photo(side: int, seed: int) -> np.ndarray:
    return _crop(PHOTOS[0][seed % 2], side)


def fine_photo(side: int, seed: int) -> np.ndarray:
    return _crop(PHOTOS[2][seed % 2], side)


def posterised(side: int, seed: int) -> np.ndarray:
    """A photograph in eight levels of grey."""
    return _crop(PHOTOS[0][seed % 2], side) // 32 * 32.0


def dithered(side: int, seed: int) -> np.ndarray:
    """A photograph in black and white dots."""
    dots = Image.fromarray(_crop(PHOTOS[1][seed % 2], side).astype(np.uint8)).convert("1")
    return 255.0 * np.asarray(dots)


def compressed(side: int, seed: int) -> np.ndarray:
    """A photograph after JPEG of quality 40."""
    file = io.BytesIO()
    Image.fromarray(_crop(PHOTOS[1][seed % 2], side).astype(np.uint8)).save(file, "JPEG", quality=40)
    return np.asarray(Image.open(file), float)


def denoised(side: int, seed: int) -> np.ndarray:
    """A photograph after noise of level 10 was removed from it."""
    import scorethresh as st

    clean = _crop(PHOTOS[1][seed % 2], side)
    y = clean + np.random.default_rng(seed).normal(0, 10, clean.shape)
    return np.clip(np.rint(st.denoise(y, sigma=10.0, choose="fast")), 0, 255)


def phantom(side: int, seed: int) -> np.ndarray:
    """Ellipses of even grey on black, as in tests of tomographs."""
    rng = np.random.default_rng(seed)
    u, v = np.indices((side, side)) / side - 0.5
    out = 160.0 * (np.hypot(u / 0.42, v / 0.33) < 1)
    for _ in range(12):
        a, b = rng.uniform(-0.2, 0.2, 2)
        inside = np.hypot((u - a) / rng.uniform(0.02, 0.1), (v - b) / rng.uniform(0.02, 0.1)) < 1
        out[inside & (out > 0)] = rng.integers(30, 240)
    return out


def scan(side: int, seed: int) -> np.ndarray:
    """A photographed retina in its black surround."""
    from skimage import data

    step = 1411 // side
    picture = data.retina()[..., 1][: step * side, : step * side].astype(float)
    small = np.rint(picture.reshape(side, step, side, step).mean(axis=(1, 3)))
    return np.where(small < 16, 0.0, small)[:: 1 - 2 * (seed % 2)]


def texture(side: int, seed: int) -> np.ndarray:
    """Grass or gravel: texture everywhere."""
    return _crop(("brick", "grass", "gravel")[seed % 3], side)


def small_texture(side: int, seed: int) -> np.ndarray:
    return texture(side // 4, seed)


def tone(size: int, seed: int) -> np.ndarray:
    return 10 * np.sin(2 * np.pi * (0.031 + 0.1 * seed) * np.arange(size))


def high_tone(size: int, seed: int) -> np.ndarray:
    return 10 * np.sin(2 * np.pi * (0.41 + 0.013 * seed) * np.arange(size))


def spikes(size: int, seed: int) -> np.ndarray:
    """Unit events, 3 in a hundred entries; zeros elsewhere."""
    out = np.zeros(size)
    out[np.random.default_rng(seed).permutation(size)[: 3 * size // 100]] = 10.0
    return out


def dense_spikes(size: int, seed: int) -> np.ndarray:
    """Counts of events, mostly 0, 1 and 2: no run of zeros is long."""
    return 10.0 * np.random.default_rng(seed).poisson(0.5, size)


def steps(size: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.repeat(10 * rng.normal(size=size // 50), 50)[:size]


def bus(size: int, seed: int) -> np.ndarray:
    """Bits of eight samples."""
    return np.repeat(10.0 * np.random.default_rng(seed).integers(0, 2, size // 8 + 1), 8)[:size]


def fast_bus(size: int, seed: int) -> np.ndarray:
    """Bits of two samples."""
    return np.repeat(10.0 * np.random.default_rng(seed).integers(0, 2, size // 2 + 1), 2)[:size]


def walk(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=size).cumsum()


def rounded_tone(size: int, seed: int) -> np.ndarray:
    return np.rint(tone(size, seed))


def heart(size: int, seed: int) -> np.ndarray:
    """Narrow beats on a slow wave."""
    t = np.arange(size)
    beats = np.abs((t + 17 * seed) % 300 - 150)
    return 20 * np.exp(-((beats / 4) ** 2)) + 3 * np.exp(-(((beats - 60) / 20) ** 2)) + np.sin(t / 400)


PICTURES = (
    line_art, hatching, text, two_level_text, screenshot, zone_plate, checkerboard, fringes, photo, fine_photo,
    posterised, dithered, compressed, denoised, phantom, scan, texture, small_texture,
)  # fmt: skip
SIGNALS = (tone, high_tone, spikes, dense_spikes, steps, bus, fast_bus, walk, rounded_tone, heart)

CASES: dict[str, Case] = {draw.__name__.replace("_", " "): Case(draw, 10.0, True) for draw in PICTURES} | {
    draw.__name__.replace("_", " "): Case(draw, 1.0, False) for draw in SIGNALS
}


def noisy(clean: np.ndarray, level: float, seed: int, eight_bits: bool = False) -> np.ndarray:
    """Add white noise, and round and clip to 8 bits if asked to."""
    y = clean + np.random.default_rng([seed, 99]).normal(0, level, clean.shape)
    return np.clip(np.rint(y), 0, 255).astype(np.uint8) if eight_bits else y
