"""What is displayed of an array, and PNG and SVG pictures of it."""

from __future__ import annotations

import base64
import dataclasses
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._containers import values_of
from ..denoising.result import Denoised

# Lengths of an axis that holds colours: RGB, and RGB with transparency.
COLOURS = (3, 4)

# A longer signal is drawn by its minimum and maximum in half as many columns. More points enlarge the page and do not
# show: the picture is SVG_SIZE[0] pixels wide.
MOST_POINTS = 2000

# Width and height of the picture of a signal, and the left and lower end of its axes, in pixels.
SVG_SIZE = 1000, 400
SVG_ORIGIN = 70, 370
# Free space above and to the right of the lines, in pixels.
SVG_MARGIN = 10
# The value axis of a signal extends beyond the range of the estimate by this share, because the noise does.
EXTRA_RANGE = 0.15

DASHES = ("none", "8 4", "2 3", "8 3 2 3")


def check_same_shape(y: Any, estimate: NDArray[Any]) -> None:
    """Raise if `y` does not have the shape of the estimate."""
    if np.shape(y) != estimate.shape:
        msg = f"y must have the shape of the estimate, {estimate.shape}, got {np.shape(y)}. Pass the data denoised."
        raise ValueError(msg)


def without_container(found: Denoised) -> Denoised:
    """Return a result whose estimate is an array, without an index or units."""
    return dataclasses.replace(found, estimate=values_of(found.estimate))


def display_axis(shape: tuple[int, ...], channel_axis: int | None) -> int | None:
    """Return the axis displayed as channels: `channel_axis`, else the last of three if it has 3 or 4 entries."""
    if channel_axis is None and len(shape) == 3 and shape[-1] in COLOURS:
        return -1
    return channel_axis


def displayed(a: Any, channel_axis: int | None) -> Any:
    """Reduce an array to a signal (samples, channels) or an image (rows, columns, 1 or 3 colours).

    Complex numbers are displayed by their modulus, volumes by their middle slice. Three channels are colours, and so
    are the first three of four. Of any other number of channels, the middle one is displayed.
    """
    a = np.asarray(a)
    a = np.abs(a) if np.iscomplexobj(a) else a
    a = a[..., None] if channel_axis is None else np.moveaxis(a, channel_axis, -1)
    if a.ndim == 4:
        a = a[len(a) // 2]
    if a.ndim == 2:
        return a
    if a.shape[-1] in COLOURS:
        return a[..., :3]
    middle = a.shape[-1] // 2
    return a[..., middle : middle + 1]


def value_range(a: NDArray[Any]) -> tuple[float, float]:
    """Return the minimum and maximum without NaN; (0, 1) if every entry is NaN."""
    known = a[~np.isnan(a)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)


def data_uri(a: NDArray[Any], limits: tuple[float, float]) -> str:
    """Return a `displayed` array as the URI of a picture: SVG for a signal, PNG for an image.

    `limits` are the values drawn black and white, or the ends of the value axis.
    """
    if a.ndim == 2:
        return svg_uri(svg(a, limits))
    low, high = limits
    scaled = (np.nan_to_num(a.astype(np.float64), nan=low) - low) / ((high - low) or 1.0)
    pixels = np.rint(255 * scaled.clip(0, 1)).astype(np.uint8)
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


# From little to much error: dark blue, grey, yellow. Readable without telling red from green, and in print.
ERROR_COLOURS = np.array([(0, 32, 76), (124, 123, 120), (255, 233, 69)], dtype=np.float64)


def error_uri(error: NDArray[Any], limits: tuple[float, float]) -> str:
    """Return a map (rows, columns) as the URI of a PNG picture in `ERROR_COLOURS`."""
    low, high = limits
    scaled = ((error - low) / ((high - low) or 1.0)).clip(0, 1) * (len(ERROR_COLOURS) - 1)
    steps = np.arange(len(ERROR_COLOURS))
    colours = np.stack([np.interp(scaled, steps, channel) for channel in ERROR_COLOURS.T], axis=-1)
    return "data:image/png;base64," + base64.b64encode(png(np.rint(colours).astype(np.uint8))).decode()


def svg_uri(picture: str) -> str:
    """Return an SVG picture as a URI."""
    return "data:image/svg+xml;base64," + base64.b64encode(picture.encode()).decode()


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode pixels (rows, columns, 1 or 3 colours) as a PNG file."""
    rows, columns, colours = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    # Filter 1 stores the difference from the pixel to the left. It halves the size of smooth images.
    left = np.diff(pixels, axis=1, prepend=np.zeros((rows, 1, colours), np.uint8))
    lines = np.hstack([np.ones((rows, 1), np.uint8), left.reshape(rows, -1)])
    header = struct.pack(">IIBBBBB", columns, rows, 8, 0 if colours == 1 else 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def svg(signal: NDArray[Any], limits: tuple[float, float], ends: tuple[str, str] | None = None) -> str:
    """Draw a signal (samples, channels) as an SVG picture, a line per channel; `ends` label the horizontal axis."""
    (width, height), (left, bottom) = SVG_SIZE, SVG_ORIGIN
    n = len(signal)
    first, last = ends or ("sample 0", str(n - 1))
    span = (limits[1] - limits[0]) or 1.0
    low, span = limits[0] - EXTRA_RANGE * span, (1 + 2 * EXTRA_RANGE) * span

    def y_of(values: Any) -> Any:
        return bottom - (values - low) / span * (bottom - SVG_MARGIN)

    lines = []
    for values, dash in zip(signal.T.astype(np.float64), DASHES * n, strict=False):
        samples, shown = _thinned(values)
        x, y = left + samples / max(n - 1, 1) * (width - left - SVG_MARGIN), y_of(shown)
        known = np.isfinite(y)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[known], y[known], strict=True))
        lines.append(f'<polyline points="{points}" fill="none" stroke="#111" stroke-dasharray="{dash}"/>')
    labels = [
        f'<text x="{left - 6}" y="{y_of(v) + 5:.0f}" text-anchor="end">{v:.3g}</text>' for v in np.linspace(*limits, 3)
    ]
    labels += [
        f'<text x="{left}" y="{height - 10}">{first}</text>',
        f'<text x="{width - 10}" y="{height - 10}" text-anchor="end">{last}</text>',
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<rect width="{width}" height="{height}" fill="#fff"/><clipPath id="c"><rect x="{left}" y="0" '
        f'width="{width - left}" height="{bottom}"/></clipPath><g font-family="sans-serif" font-size="15">'
        f'{"".join(labels)}</g><path d="M{left} 5V{bottom}H{width}" fill="none" stroke="#888"/>'
        f'<g clip-path="url(#c)">{"".join(lines)}</g></svg>'
    )


def _thinned(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return sample numbers and values to draw: all, or if there are many the minimum and maximum per column."""
    n = len(values)
    if n <= MOST_POINTS:
        return np.arange(n), values
    starts = np.linspace(0, n, MOST_POINTS // 2, endpoint=False).astype(np.int64)
    extremes = np.stack([np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)], axis=1)
    return np.repeat(starts, 2), extremes.ravel()
