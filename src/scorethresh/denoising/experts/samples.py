"""Coefficients of a band that are looked at to choose its threshold."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Floats, reflect_index
from ...frames.wavelets import BandKey, Frame
from .decisions import MIN_SCORE_SIZE

# Enough coefficients to choose a threshold of the two finest levels. At coarser ones neighbours are alike, and
# MIN_SCORE_SIZE suffice. More cost time, fewer make thresholds noisy.
MOST_FINE_SAMPLES = 1 << 16
# An axis keeps at least this many samples per sampling step.
MIN_SAMPLES = 8


def sample_band(
    frame: Frame, key: BandKey, c: Floats, valid: NDArray[np.bool_] | None, pieces: int | None = None
) -> list[Floats]:
    """Return, per piece, enough coefficients of a band, (1, parts, ...): of many, one per cell of a jittered grid.

    They are enough together with those of all `pieces`, of which there may be more than are passed.

    Neighbours are alike, so few of them tell as much as all. The places are random within their cells: on a regular
    grid, or in few rows and columns, periodic structure would be missed or met too often.
    """
    ndim = c.ndim - 2
    enough = MOST_FINE_SAMPLES if key.level <= 2 else MIN_SCORE_SIZE
    step, size = 1, c[0].size * (pieces or len(c))
    while size >> (step.bit_length() * ndim) >= enough:
        step *= 2
    steps = tuple(step if n >= MIN_SAMPLES * step else 1 for n in c.shape[2:])
    return at_valid_centres(frame, key, c, valid, jittered_grid(c.shape[2:], steps))


@functools.lru_cache(maxsize=16)
def jittered_grid(shape: tuple[int, ...], steps: tuple[int, ...]) -> tuple[NDArray[np.int64], ...] | None:
    """Return one random place in each cell of ``steps`` entries, an index per axis; None if that is every place.

    The same places at every call.
    """
    if max(steps) == 1:
        return None
    corners = np.meshgrid(*(np.arange(0, n, s) for n, s in zip(shape, steps, strict=True)), indexing="ij")
    rng = np.random.default_rng([*shape, *steps])
    return tuple(
        np.minimum(corner.ravel() + rng.integers(0, s, corner.size), n - 1)
        for corner, s, n in zip(corners, steps, shape, strict=True)
    )


def at_valid_centres(
    frame: Frame,
    key: BandKey,
    c: Floats,
    valid: NDArray[np.bool_] | None,
    places: tuple[NDArray[np.int64], ...] | None,
) -> list[Floats]:
    """Return, per piece, the coefficients at `places` whose filters are centred on a valid entry; all if none is."""
    chosen: Any = (slice(None), slice(None), *places) if places is not None else ...
    some = c[chosen]
    if valid is None:
        return [some[i : i + 1] for i in range(len(c))]
    centres = [
        reflect_index(frame.centres(key.level, count), n) for count, n in zip(c.shape[2:], valid.shape[1:], strict=True)
    ]
    index = np.ix_(*centres) if places is None else tuple(at[p] for at, p in zip(centres, places, strict=True))
    good = [mask[index] for mask in valid]
    return [piece[None, :, mask if mask.any() else ...] for piece, mask in zip(some, good, strict=True)]


def join_samples(samples: Sequence[Floats]) -> Floats:
    """Return the coefficients of several pieces as those of one."""
    if len(samples) == 1:
        return samples[0]
    return np.concatenate([c.reshape(1, c.shape[1], -1) for c in samples], axis=-1)
