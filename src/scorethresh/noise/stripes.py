"""Stripes: offsets of whole rows or columns, as line scanners, detectors and columns of sensors leave them.

To the denoiser they are signal: straight, sharp and strong. What tells them from structure is that the offset of a row
is the same over the whole width, in row after row.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from .._arrays import Floats
from .._validate import Array

# Fewest rows, fewest entries of a row, and the least share of a part of a row that is known.
MIN_ROWS = 64
MIN_KNOWN = 0.5
# Where rows are cut into four parts. The parts are uneven, so that slanted lines at even distances, as in hatching, are
# not in step in all of them.
CUTS = 0.0, 0.23, 0.49, 0.76, 1.0
# How often two parts of a row agree on the sign of its offset if there are stripes: this share of the rows, and one in
# their root for chance. On 6,000 crops of ten development photographs, 64 to 512 pixels a side, without noise and with
# noise up to 20, two of the four parts agree in at most 0.61 of 64 rows and 0.57 of 96 or more. The eleventh, aero, has
# faint stripes of 0.6 grey levels.
MIN_AGREEMENT = 0.55
# The least level of stripes that matter, over that of the noise. Weaker ones are removed with the noise, or are less
# than the predicted error. On these photographs the true error is 1.0 times the predicted one at 0.2, 1.07 times at
# 0.3, 1.5 times at 0.5 and 3.5 times at 1, in the median.
MIN_LEVEL = 0.25
# The level is told by this quantile of the magnitudes of offsets, over that of the normal law. If more rows than that
# have none, there are lines rather than stripes: bars of four rows, blinds, storeys.
QUANTILE, NORMAL_QUANTILE = 0.3, 0.38532046640756773
# The largest share of the power of stripes at one frequency, if there are 128 rows or more; of fewer, more comes by
# chance. Random offsets of 256 rows reach 0.18, of 128 rows 0.29, of 64 rows 0.53. Hatching has 0.34 or more, lines of
# text and gratings 0.4.
MOST_PERIODIC = 0.3
FULL_ROWS = 128
# Width of the pieces of rows that are looked at by themselves, the share of them that is called flat, and how often
# these agree with the far half of their row. Pieces of blank paper between words do so in at most 0.64 of the cases,
# under stripes above `MIN_LEVEL` 0.66 to 0.98 do, but for a tenth of the weakest.
PIECE, FLAT_SHARE, MIN_FLAT_AGREEMENT = 16, 0.1, 0.66


class Stripes(NamedTuple):
    """Offsets of rows (axis 0) or of columns (axis 1), and their standard deviation in units of the data."""

    axis: int
    level: float


def find_stripes(y: Floats, noise_level: float) -> Stripes | None:
    """Return the stripes of an image; None if there are none, or if it is too small.

    Parameters
    ----------
    y : ndarray, shape (rows, columns)
        The image; NaN marks missing entries.
    noise_level : float
        Stripes of less than `MIN_LEVEL` of it do not count.

    Notes
    -----
    Second differences of the means of rows remove what is smooth. They are taken in four parts of the width. Stripes
    make all parts agree on the sign in most of the rows. Structure does so in few rows, however strong it is there.

    If z are offsets and e, e' the errors of two halves of a row, the variance of ``(z + e) + (z + e')`` less that of
    ``(z + e) - (z + e')`` is four times that of z. Second differences raise the variance of offsets by 3/2.

    Offsets that come at even distances are taken for a pattern. So are those that are missing where rows are flat, as
    between the words of a text.
    """
    if min(y.shape) < MIN_ROWS:
        return None
    gaps = bool(np.isnan(y).any())
    found = (_stripes_along(y, axis, noise_level, gaps) for axis in range(y.ndim))
    return max((stripes for stripes in found if stripes is not None), key=lambda s: s.level, default=None)


def _stripes_along(y: Floats, axis: int, noise_level: float, gaps: bool) -> Stripes | None:
    """Return the stripes along one axis."""
    offsets = _offsets(y, axis, gaps)
    some = offsets[:, ~np.isnan(offsets).any(axis=0)] if gaps else offsets
    rows = some.shape[1]
    if rows < MIN_ROWS - 2:  # the first and the last row have one neighbour
        return None
    centres = np.median(some, axis=1, keepdims=True)
    offsets, some = offsets - centres, some - centres
    if _agreement(some) < MIN_AGREEMENT + 1 / math.sqrt(rows):
        return None
    near, far = some[:2].mean(axis=0), some[2:].mean(axis=0)
    level = math.sqrt(max(_variance(near + far) - _variance(near - far), 0.0) / 4 / 1.5)
    if level < MIN_LEVEL * noise_level or _peak_share(near + far) > MOST_PERIODIC * max(FULL_ROWS / rows, 1.0):
        return None
    return Stripes(axis, level) if _flat_agreement(y, axis, offsets) > MIN_FLAT_AGREEMENT else None


def _offsets(y: Floats, axis: int, gaps: bool) -> Array:
    """Return second differences of the means of parts of rows, (parts, rows); NaN where half of a part is missing."""
    rows = y if axis == 0 else y.T
    edges = [round(cut * rows.shape[1]) for cut in CUTS]
    parts = np.zeros((rows.shape[1], len(edges) - 1), y.dtype)
    for part, (start, stop) in enumerate(itertools.pairwise(edges)):
        parts[start:stop, part] = 1 / (stop - start)
    if gaps:
        steps = _second_differences(rows)
        known = ~np.isnan(steps)
        share = known.astype(y.dtype) @ parts
        out = np.where(share >= MIN_KNOWN, (np.where(known, steps, 0) @ parts) / np.maximum(share, MIN_KNOWN), np.nan)
        return out.T.astype(np.float64)
    return _second_differences(rows @ parts).T.astype(np.float64)


def _second_differences(y: Floats) -> Floats:
    """Return every row less the mean of its neighbours."""
    out: Floats = y[1:-1] - (y[:-2] + y[2:]) / 2
    return out


def _agreement(offsets: Array) -> float:
    """Return the share of rows in which two parts agree on the sign of the offset, for the parts that agree least."""
    signs = np.sign(offsets)
    products = signs @ signs.T
    pairs = itertools.combinations(range(len(signs)), 2)
    least = float(min(products[i, j] for i, j in pairs))
    return 0.5 + least / (2 * len(signs.T))


def _variance(values: Array) -> float:
    """Return the variance of values of mean 0, told by the smaller ones."""
    level = float(np.quantile(np.abs(values), QUANTILE)) / NORMAL_QUANTILE
    return level * level


def _peak_share(offsets: Array) -> float:
    """Return the share of the power that is at one frequency. Strong offsets are cut, so that few do not decide."""
    most = 4 * math.sqrt(_variance(offsets))
    power = np.square(np.abs(np.fft.rfft(np.clip(offsets, -most, most))))
    return float(power.max() / max(power.sum(), np.finfo(float).tiny))


def _flat_agreement(y: Floats, axis: int, offsets: Array) -> float:
    """Return how often the offsets of flat pieces of rows have the sign of those in the far half of the row."""
    y = y if axis == 0 else y.T
    pieces = y.shape[1] // PIECE
    cut = y[:, : pieces * PIECE].reshape(len(y), pieces, PIECE)
    known = ~np.isnan(cut)
    counts = known.sum(axis=2)
    used = np.where(known, cut, 0)
    means = np.where(counts >= MIN_KNOWN * PIECE, used.sum(axis=2) / np.maximum(counts, 1), np.nan)
    variances = np.square(used - np.where(known, means[:, :, None], 0)).sum(axis=2) / np.maximum(counts, 1)
    variances = variances[1:-1] + variances[:-2] + variances[2:]
    own = _second_differences(means)
    near, far = (half.mean(axis=0)[:, None] for half in (offsets[:2], offsets[2:]))
    products = own * np.where(np.arange(pieces) < pieces // 2, far, near)
    told = ~np.isnan(products)
    if not told.any():
        return 0.0
    flat = told & (variances <= np.quantile(variances[told], FLAT_SHARE))
    return float(np.mean(products[flat] > 0))
