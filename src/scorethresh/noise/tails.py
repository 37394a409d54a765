"""Heavy tails: more large entries of noise than the normal law has, on both sides.

Large entries pass for signal, and stay in the estimate. A kurtosis tells them, but so do spikes, stars and letters in
even regions. These mostly point one way, bright or dark, while noise points both ways.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, cropped

# Sides of blocks, of 64 entries each.
BLOCK_SIDES = {1: 64, 2: 8, 3: 4}
# Most blocks that are looked at, and fewest.
MOST_BLOCKS, MIN_BLOCKS = 512, 6
# Share of the blocks that is read, the flattest ones; of signals all, because there are few. A tenth of the blocks of
# pictures finds less, a half takes posterised photographs for heavy tails.
FLAT_SHARE = {1: 1.0, 2: 0.25, 3: 0.25}
# Largest range of the estimate in a block, over the noise level, without a tenth of the entries at either end. Noise
# that stays in the estimate makes it vary, so that 1 leaves too few blocks of pictures; 0.6 still fewer.
MOST_RANGE = 2.0
# The kurtosis from which a block is called heavy. 1.6% of the blocks of normal noise have that, a fifth of those of
# Student's t with 8 degrees of freedom, and half of those with 4 degrees or of Laplace's law.
HEAVY = 4.5
# The largest kurtosis of a block of a signal that counts: that of one entry of six noise levels. Stronger ones may be
# signal, as spikes are. In pictures, outliers that were not replaced count.
MOST_KURTOSIS = {1: 10.0, 2: math.inf, 3: math.inf}
# The share of heavy blocks from which tails are called heavy, and standard errors beyond it. On 11 development
# photographs at noise 3 to 50 and on drawings and text, normal noise reads at most 0.08, t8 0.06 to 0.23 (its error is
# predicted well), t4 0.12 to 0.5, t3 0.18 to 0.7, Laplace's 0.1 to 0.5.
MIN_SHARE = 0.1
CAUTION = 2.0


def heavy_tails(y: Floats, estimate: Floats) -> bool:
    """Return whether the noise of a signal, image or volume has heavy tails on both sides; see `have_heavy_tails`."""
    return bool(have_heavy_tails(y[None], estimate[None])[0])


def have_heavy_tails(y: Floats, estimate: Floats) -> NDArray[np.bool_]:
    """Return of which samples the noise has heavy tails on both sides.

    Parameters
    ----------
    y : ndarray
        Signals, images or volumes with noise of level 1, (samples, *shape); NaN marks missing entries.
    estimate : ndarray
        What is left of them without noise, and perhaps with large entries of noise.

    Notes
    -----
    Data are cut into blocks of 64 entries. In blocks in which most of the estimate is flat, the kurtosis
    ``m4 / m2^2`` and the sign of the third moment are taken. Every block has a level of its own, so that noise that
    varies from place to place has no heavier tails. The share of blocks with a large kurtosis is twice that on the
    side that has fewer.

    Signals are hardly ever flat over 64 entries. The median of three neighbours in the estimate, which holds no single
    large entries, is subtracted first.
    """
    ndim = y.ndim - 1
    if ndim == 1:
        smooth = _median_of_three(estimate)
        y, estimate = y - smooth, estimate - smooth
    values, flat = _blocks(y), _blocks(estimate)
    known: NDArray[np.bool_] = np.count_nonzero(np.isnan(values), axis=2) == 0
    whole = np.count_nonzero(known, axis=1) == known.shape[1]
    if whole.all():
        return _heavy(values, flat, ndim)
    found = np.zeros(len(y), bool)
    found[whole] = _heavy(values[whole], flat[whole], ndim)
    for k in np.flatnonzero(~whole):
        found[k] = _heavy(values[k, known[k]][None], flat[k, known[k]][None], ndim)[0]
    return found


def _heavy(values: Floats, flat: Floats, ndim: int) -> NDArray[np.bool_]:
    """Return which samples have heavy tails, given their known blocks and those of the estimate."""
    samples, blocks, _ = values.shape
    if blocks < MIN_BLOCKS:
        return np.zeros(samples, bool)
    chosen = _flattest(flat, FLAT_SHARE[ndim])
    values, sample = values[chosen], np.nonzero(chosen)[0]
    centred = values - values.mean(axis=1, keepdims=True)
    squares = np.square(centred)
    second = squares.mean(axis=1)
    kurtosis = np.square(squares).mean(axis=1) / np.maximum(np.square(second), np.finfo(second.dtype).tiny)
    third = np.einsum("ij,ij->i", squares, centred)
    used = kurtosis <= MOST_KURTOSIS[ndim]
    heavy = used & (kurtosis > HEAVY)
    count, up, down = (
        np.bincount(sample[some], minlength=samples) for some in (used, heavy & (third > 0), heavy & (third < 0))
    )
    read = np.maximum(count, 1)
    share = 2 * np.minimum(up, down) / read
    limit = MIN_SHARE + CAUTION * np.sqrt(MIN_SHARE * (1 - MIN_SHARE) / read)
    out: NDArray[np.bool_] = (count >= MIN_BLOCKS) & (share > limit)
    return out


def _blocks(y: Floats) -> Floats:
    """Return blocks, (samples, blocks, 64); every n-th row of them if there are more than `MOST_BLOCKS`."""
    ndim = y.ndim - 1
    side = BLOCK_SIDES[ndim]
    grid = [n // side for n in y.shape[1:]]
    step = max(-(-math.prod(grid) // MOST_BLOCKS), 1)
    cut = cropped(y, (slice(0, n * side) for n in grid)).reshape(len(y), *(n for pair in grid for n in (pair, side)))
    order = (0, *range(1, 2 * ndim, 2), *range(2, 2 * ndim + 1, 2))
    return cut.transpose(order)[:, ::step].reshape(len(y), -1, side**ndim)


def _flattest(estimate: Floats, share: float) -> NDArray[np.bool_]:
    """Return which blocks of every sample are read, by the range of the estimate in them."""
    ordered = np.sort(estimate, axis=-1)
    tenth = estimate.shape[-1] // 10
    widths = ordered[..., -1 - tenth] - ordered[..., tenth]
    count = max(int(share * widths.shape[1]), MIN_BLOCKS)
    limit = np.partition(widths, count - 1, axis=1)[:, count - 1 : count]
    chosen: NDArray[np.bool_] = widths <= np.minimum(limit, MOST_RANGE)
    return chosen


def _median_of_three(y: Floats) -> Floats:
    """Return the median of each entry and its two neighbours along the last axis; the ends stay."""
    out = y.copy()
    low, high = np.minimum(y[..., :-2], y[..., 2:]), np.maximum(y[..., :-2], y[..., 2:])
    np.clip(y[..., 1:-1], low, high, out=out[..., 1:-1])
    return out
