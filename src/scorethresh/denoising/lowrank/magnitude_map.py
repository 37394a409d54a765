"""The noise level of a series of magnitudes, entry by entry."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Floats
from ..._validate import Array
from ...noise.magnitude import MagnitudeTables, MagnitudeTransform, magnitude_tables
from .evened import local_levels
from .noise_map import NoiseMap, energy_correction, level_surface, patch_levels
from .patches import PatchBlock
from .series import Series

__all__ = ["estimate_magnitude_map", "explain_by_level"]

# Rounds in which magnitudes are transformed by the last levels. Raw magnitudes of several brightnesses have noise of
# several levels, and the first reading is 3 to 14% too low; after one round it is 1 to 5%, after two 1 to 3%, after
# three 1 to 3% (mean over the entries of simulated diffusion data, SNR 3 to 30).
ROUNDS = 2
# A patch holds nothing but noise if its standard deviation over its mean is that of noise, or less by this share. There
# an error of 1% in the variance would move the level by some 2%, and the mean square tells it far better. From 0.03 to
# 0.06 the error of the map falls by a tenth.
SHARE_BELOW_NOISE = 0.06
# Steps of the bisection: the bracket, a factor of 2, shrinks to 1e-4.
BISECTIONS = 13


def estimate_magnitude_map(series: Series, coils: int) -> NoiseMap:
    """Estimate the noise level of a real or imaginary part at every entry, from magnitudes.

    Parameters
    ----------
    series : Series
        Magnitudes.
    coils : int
        The number of complex numbers behind a magnitude.

    Returns
    -------
    NoiseMap
        The level, (*shape); 0 everywhere if there is no noise.

    Notes
    -----
    The variance of a magnitude is 0.43 times the squared level without signal and once that with much. So the standard
    deviation that the smaller singular values of a patch tell is turned to the level that explains it, given the means
    of the volumes there [1]_. Then magnitudes are transformed by that level, after which their noise is even, and what
    the singular values tell now corrects it.

    References
    ----------
    .. [1] C. G. Koay and P. J. Basser, "Analytically exact correction scheme for signal extraction from noisy magnitude
       MR signals", Journal of Magnetic Resonance 179 (2006), doi:10.1016/j.jmr.2006.01.016.
    """
    transform = MagnitudeTransform(1.0, coils)
    levels_of = functools.partial(_levels_of, transform)
    levels = level_surface(series, levels_of)
    for _ in range(ROUNDS):
        if not levels.all():
            return NoiseMap(np.zeros(levels.shape))
        levels = level_surface(series, levels_of, levels)
    if not levels.all():
        return NoiseMap(np.zeros(levels.shape))
    evened = dataclasses.replace(series, values=transform.forward(series.values / levels[..., None]))
    correction, error = energy_correction(evened, local_levels(evened, transform))
    return NoiseMap(levels * correction, error)


def _levels_of(
    transform: MagnitudeTransform,
    part: Series,
    block: PatchBlock,
    levels: Array | None = None,
    *,
    doubted: bool = False,
) -> Array:
    """Return the level of every patch of a block, given those of the last round."""
    y = block.cut(part.values).astype(np.float64)
    valid = block.cut(part.valid)
    tables = magnitude_tables(transform.coils)
    means = _mean(y, valid)
    if levels is None:
        variance = patch_levels(y, valid, doubted=doubted) ** 2
    else:
        scale = block.cut(levels)
        found = patch_levels(transform.forward(y / scale[..., None]), valid, doubted=doubted)
        # A patch without valid entries has no level, and any unit will do.
        unit = np.where(valid.any(axis=1, keepdims=True), _mean(scale[..., None], valid), 1.0)
        expected = tables.transformed.variance(
            np.interp(means / unit, tables.magnitudes.means, tables.transformed.means)
        )
        variance = (unit**2 * magnitude_variance(means / unit, tables)).mean(axis=1) * found**2 / expected.mean(axis=1)
    rms = np.sqrt(_mean(y**2, valid).mean(axis=1))
    return explain_by_level(variance, means, rms, tables, transform.coils)


def _mean(values: Floats, valid: NDArray[np.bool_]) -> Array:
    """Return the mean over the valid entries of patches, (patches, volumes)."""
    out: Array = np.where(valid[..., None], values, 0.0).sum(axis=1) / np.maximum(valid.sum(axis=1), 1)[:, None]
    return out


def magnitude_variance(means: Array, tables: MagnitudeTables) -> Array:
    """Return the variance of magnitudes at their means, in units of the level; means below that of noise scale it."""
    out: Array = tables.magnitudes.variance(means) * np.minimum(means / tables.magnitudes.means[0], 1.0) ** 2
    return out


def explain_by_level(variance: Array, means: Array, rms: Array, tables: MagnitudeTables, coils: int) -> Array:
    """Return the noise levels that explain variances of magnitudes.

    Parameters
    ----------
    variance, rms : ndarray
        The mean variance over the volumes, and the root mean square of the magnitudes, (patches,).
    means : ndarray
        The mean magnitude of every volume, (patches, volumes).
    """
    # The variance of a magnitude lies between that without signal, and once the squared level.
    low, high = np.sqrt(variance), np.sqrt(variance / tables.magnitudes.variances[0])
    for _ in range(BISECTIONS):
        middle = np.sqrt(low * high)
        with np.errstate(invalid="ignore", divide="ignore"):
            larger = middle**2 * magnitude_variance(means / middle[:, None], tables).mean(axis=1) < variance
        low, high = np.where(larger, middle, low), np.where(larger, high, middle)
    without = math.sqrt(tables.magnitudes.variances[0]) / tables.magnitudes.means[0]
    noise_only = np.sqrt(variance) > (1 - SHARE_BELOW_NOISE) * without * means.mean(axis=1)
    return np.where(noise_only, rms / math.sqrt(2 * coils), np.sqrt(low * high))
