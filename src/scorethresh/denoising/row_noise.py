"""Signals of one length with noise of level 1: what `Denoiser.stabilised` returns of each, made of all at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _validate
from .._arrays import Floats
from .._threads import cores, thread_map
from .._validate import Array
from ..noise.auto import AutoNoise, white_rows
from ..noise.base import ChosenNoise
from ..noise.level import Level
from ..noise.models import WhiteNoise
from ..noise.named import as_noise
from ..noise.rows import are_regular, row_levels
from ..noise.stabilisers import SINGLE_LEVELS, Scaling
from .layout import Layout
from .rows import Row
from .stabilise import SINGLE_RANGE
from .way_back import WayBack

# Signals that are looked at at once. More save little, and their windows leave the cache.
AT_ONCE = 32
# Where the values of a signal were clipped: nowhere.
NO_LIMITS = -math.inf, math.inf


def stabilised_rows(each: Sequence[Any], rows: Sequence[Any]) -> list[Row | None]:
    """Return regular signals with white noise, stabilised; None for all others.

    Parameters
    ----------
    each : sequence of Denoiser
        What denoises each of them. They differ by `sigma` and `mask` alone.
    rows : sequence of ndarray
        The signals.
    """
    if rows[0].ndim != 1 or any(one.mask is not None or np.ndim(one.sigma) for one in each):
        return [None] * len(rows)
    models = [as_noise(one.noise, one.sigma) for one in each]
    if each[0].channel_axis is not None or type(models[0]) not in (AutoNoise, WhiteNoise):
        return [None] * len(rows)
    size = min(AT_ONCE, -(-len(rows) // cores()))
    parts = [slice(k, k + size) for k in range(0, len(rows), size)]
    found = thread_map(lambda part: _stabilised(models[part], np.stack(rows[part])), parts)
    return [row for part in found for row in part]


def _stabilised(models: Sequence[Any], y: Floats) -> list[Row | None]:
    out: list[Row | None] = [None] * len(y)
    automatic = isinstance(models[0], AutoNoise)
    places = np.flatnonzero(are_regular(y))
    if automatic and places.size:
        places = places[white_rows(y[places])]
    if not places.size:
        return out
    levels = _levels([models[k] for k in places.tolist()], y[places])
    told = (levels.values >= 1 / SINGLE_LEVELS) & (levels.values <= SINGLE_LEVELS)
    places, levels = places[told], _Levels(levels.values[told], levels.errors[told])
    values = y[places] / levels.values.astype(y.dtype)[:, None]
    offsets = values.mean(axis=1, dtype=np.float64)
    values -= offsets.astype(y.dtype)[:, None]
    for k, level, error, value, offset in zip(places.tolist(), *levels, values, offsets, strict=True):
        if np.abs(value).max() >= SINGLE_RANGE:  # beside others in double precision
            continue
        # Arrays of one channel, one part and one entry.
        one = (1, 1, 1)
        scaling = Scaling(np.full(one, level), level_error=float(error))
        layout, noisy = Layout(y[k][None, None], None, None), np.ones(1, bool)
        back = WayBack(layout, noisy, scaling, np.full(one, offset), None, (scaling.covariance,), NO_LIMITS, None)
        chosen = ChosenNoise(WhiteNoise() if automatic else models[k])
        out[k] = Row(chosen, back, value.astype(np.float32)[None, None])
    return out


class _Levels(NamedTuple):
    """Noise levels of signals, and their relative standard errors."""

    values: Array
    errors: Array


def _levels(models: Sequence[Any], y: Floats) -> _Levels:
    """Return the noise levels that were given, or else are estimated; 0 where that is not possible here."""
    if not isinstance(models[0], AutoNoise) and models[0].sigma is not None:
        given = np.array([_validate.noise_level(model.sigma) for model in models])
        return _Levels(given, np.zeros(len(given)))
    found = [Level(0.0, 0.0) if level is None else level for level in row_levels(y)]
    doubts = [getattr(model, "doubt", 0.0) for model in models]
    return _Levels(np.array([f.value for f in found]), np.hypot([f.error for f in found], doubts))
