"""Point spread functions of usual shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _validate
from .._validate import Array

__all__ = ["box_psf", "disk_psf", "gaussian_psf", "motion_psf"]

# A Gaussian is cut at so many widths, where 3e-4 of its peak is left.
GAUSSIAN_REACH = 4.0
# Points per pixel and axis of which a disk or a line counts those inside. Entries are exact to about the inverse.
FINE = 32
# Entries on either side that no data of use exceed.
MOST_REACH = 4096


def gaussian_psf(width: float, ndim: int = 2) -> Array:
    """Return a Gaussian, cut at four widths and summing to one.

    Parameters
    ----------
    width : float
        Its standard deviation in entries.
    ndim : int
        The number of axes.

    See Also
    --------
    Blur : takes it.
    select_psf : finds the width.

    Examples
    --------
    >>> gaussian_psf(0.5, ndim=1).round(3)
    array([0.   , 0.106, 0.787, 0.106, 0.   ])
    """
    width = _validate.positive(width, "width")
    ndim = _validate.whole(ndim, "ndim", 1)
    t = _offsets(GAUSSIAN_REACH * width)
    line = np.exp(-0.5 * (t / width) ** 2)
    return _outer_power(line / line.sum(), ndim)


def box_psf(size: float, ndim: int = 2) -> Array:
    """Return a box: the share of every entry that it covers, summing to one.

    Parameters
    ----------
    size : float
        Its length along each axis, at least 1. Whole lengths are as many equal entries; an odd number of them does not
        move the picture. Others are centred on an entry, with less at both ends.
    ndim : int
        The number of axes.

    Examples
    --------
    >>> box_psf(4, ndim=1)
    array([0.25, 0.25, 0.25, 0.25])
    >>> box_psf(2.5, ndim=1)
    array([0.3, 0.4, 0.3])
    """
    length, ndim = _validate.number(size, "size"), _validate.whole(ndim, "ndim", 1)
    if not 1 <= length < math.inf:
        msg = f"size must be at least 1 and finite, got {size}. A box of one entry leaves data as they are."
        raise ValueError(msg)
    if length.is_integer():
        return _outer_power(np.full(int(length), 1 / length), ndim)
    covered = np.minimum(length / 2 - np.abs(_offsets((length - 1) / 2)) + 0.5, 1.0)
    return _outer_power(covered / covered.sum(), ndim)


def disk_psf(radius: float) -> Array:
    """Return a disk, as of a lens out of focus: the share of every pixel that it covers, summing to one.

    Parameters
    ----------
    radius : float
        Its radius in pixels.

    Examples
    --------
    >>> disk_psf(1.0).round(2)
    array([[0.03, 0.15, 0.03],
           [0.15, 0.32, 0.15],
           [0.03, 0.15, 0.03]])
    """
    radius = _validate.positive(radius, "radius")
    count = _offsets(radius - 0.5).size
    t = (np.arange(count * FINE) + 0.5) / FINE - count / 2
    inside = (t[:, None] ** 2 + t**2 <= radius**2).reshape(count, FINE, count, FINE)
    share: Array = inside.mean(axis=(1, 3))
    if not share.any():  # smaller than the grid: a point
        share[count // 2, count // 2] = 1.0
    share /= share.sum()
    return share


def motion_psf(length: float, angle: float = 0.0) -> Array:
    """Return a straight line, as of a camera that moved: its length inside every pixel, summing to one.

    Parameters
    ----------
    length : float
        The length of the line in pixels.
    angle : float
        Its direction in degrees, counter-clockwise from the last axis.

    Examples
    --------
    >>> motion_psf(3)
    array([[0.33333333, 0.33333333, 0.33333333]])
    >>> motion_psf(3, angle=90.0).shape
    (3, 1)
    """
    length = _validate.positive(length, "length")
    degrees = _validate.number(angle, "angle")
    if not math.isfinite(degrees):
        msg = f"angle must be finite, in degrees, got {angle}."
        raise ValueError(msg)
    turn = math.radians(degrees)
    count = math.ceil(length * FINE)
    along = ((np.arange(count) + 0.5) / count - 0.5) * length
    # Rounded first: the sine of half a turn is not quite zero, and would decide about points between two pixels.
    rows, columns = (np.rint((along * part).round(9)).astype(int) for part in (-math.sin(turn), math.cos(turn)))
    reach = [int(np.abs(a).max()) for a in (rows, columns)]
    out = np.zeros([2 * r + 1 for r in reach])
    np.add.at(out, (rows + reach[0], columns + reach[1]), 1 / count)
    return out


def _offsets(reach: float) -> Array:
    """Return the distances from the centre of entries that lie within the reach, and one more on either side."""
    if reach > MOST_REACH:
        msg = f"the point spread function reaches {reach:.3g} entries, beyond {MOST_REACH}. Give its size in entries."
        raise ValueError(msg)
    r = max(math.ceil(reach), 0)
    return np.arange(-r, r + 1.0)


def _outer_power(line: Array, ndim: int) -> Array:
    out: Any = line
    for _ in range(ndim - 1):
        out = np.multiply.outer(out, line)
    return np.asarray(out)
