"""Arrays with an index or with units: what they hold, and how a result is put back into the same kind."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Contained(NamedTuple):
    """The array in a container.

    Attributes
    ----------
    values : ndarray
        What is computed with.
    wrap : callable
        Puts an array of the same shape into a container with the same index or units.
    units : object
        The units of a quantity; else None.
    """

    values: Any
    wrap: Callable[[Any], Any]
    units: Any = None


def _in_pandas(y: Any) -> Contained | None:
    if not hasattr(y, "to_numpy"):
        return None
    values = y.to_numpy()
    if values.dtype == object:  # numbers that may be missing, NA
        values = y.to_numpy(dtype=float, na_value=np.nan)
    labels = {"name": y.name} if values.ndim == 1 else {"columns": y.columns}

    def wrap(a: Any) -> Any:
        out = type(y)(a, index=y.index, **labels)
        out.attrs.update(y.attrs)
        return out

    return Contained(values, wrap) if hasattr(y, "index") else None


def _in_pint(y: Any) -> Contained | None:
    if not (hasattr(y, "magnitude") and hasattr(y, "units")):
        return None
    return Contained(y.magnitude, functools.partial(_quantity, type(y), y.units), y.units)


def _quantity(kind: Any, units: Any, a: Any) -> Any:
    return kind(a, units)


# By the package that a type comes from. None of them is imported.
READERS = {"pandas": _in_pandas, "pint": _in_pint}


def contained(y: Any) -> Contained | None:
    """Return the array in a Series, a DataFrame or a quantity; None for everything else."""
    read = READERS.get(type(y).__module__.partition(".")[0])
    return None if read is None else read(y)


def values_of(y: Any) -> Any:
    """Return the array in a container, or y itself."""
    found = contained(y)
    return y if found is None else found.values


def in_units(level: Any, units: Any) -> Any:
    """Return a level, which may be a quantity, as numbers in these units.

    Examples
    --------
    >>> in_units(3.0, None)
    3.0
    """
    found = contained(level)
    if found is None or found.units is None:
        return level if found is None else found.values
    if units is None:
        msg = f"sigma has units, {found.units}, but y has none. Pass both as quantities, or both as numbers."
        raise ValueError(msg)
    return level.to(units).magnitude
