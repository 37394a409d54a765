"""Pieces of the data that are treated together: crops to fit a plan on, tiles to apply it to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, cropped

# Entries of small pieces that are transformed at once: fewer take more calls, more leave the cache.
ENTRIES_AT_ONCE = 1 << 14


def grouped(values: Floats) -> list[slice]:
    """Return the places of large pieces one by one, those of small ones as many at once as stay in the cache."""
    each = max(ENTRIES_AT_ONCE * len(values) // max(values.size, 1), 1)
    return [slice(k, k + each) for k in range(0, len(values), each)]


@dataclass(frozen=True, eq=False)
class Batch:
    """Pieces of equal shape.

    Attributes
    ----------
    values : ndarray
        (pieces, parts, *shape), of noise level 1. Decisions are made on the norm over the parts.
    valid : ndarray of bool, optional
        (pieces, *shape), True where an entry holds noise; None if all do. The values of others were filled in.
    weights : ndarray, optional
        (pieces, *shape), of squared errors; None if all are equal.
    guide : ndarray, optional
        As `values`: a first estimate of another channel, in which patches are compared. If None, the pilot serves.
    """

    values: Floats
    valid: NDArray[np.bool_] | None = None
    weights: Floats | None = None
    guide: Floats | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a piece."""
        return self.values.shape[2:]

    @property
    def error_weights(self) -> NDArray[Any] | None:
        """Weights of squared errors, 0 where there is no noise; None if all are 1."""
        if self.weights is None:
            return self.valid
        return self.weights if self.valid is None else self.weights * self.valid

    def groups(self) -> list[Batch]:
        """Return large pieces one by one, small ones as many at once as stay in the cache."""
        parts = (self.values, self.valid, self.weights, self.guide)
        return [
            Batch(*(None if a is None else a[some] for a in parts))  # type: ignore[arg-type]
            for some in grouped(self.values)
        ]

    def crops(self, places: Sequence[tuple[slice, ...]]) -> Batch:
        """Return parts of equal shape of every piece, as pieces."""

        def cut(a: NDArray[Any] | None) -> Any:
            if a is None:
                return None
            parts = [cropped(a, place) for place in places]
            return np.ascontiguousarray(parts[0]) if len(parts) == 1 else np.concatenate(parts)

        return Batch(cut(self.values), cut(self.valid), cut(self.weights), cut(self.guide))


def joined_batches(batches: Sequence[Batch]) -> Batch:
    """Return pieces of one shape as one batch."""

    def join(name: str) -> Any:
        parts = [getattr(batch, name) for batch in batches]
        if all(part is None for part in parts):
            return None
        if name == "valid":  # where a piece has no gaps, all of it is valid
            parts = [np.ones((1, *b.shape), bool) if p is None else p for p, b in zip(parts, batches, strict=True)]
        return np.concatenate(parts)

    return Batch(*(join(name) for name in ("values", "valid", "weights", "guide")))
