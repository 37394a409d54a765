"""Arrays with an index or with units: what they hold, and how a result is put back into the same kind."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._lazy_data import is_named, lazy_module


class Contained(NamedTuple):
    """The array in a container.

    Attributes
    ----------
    values : ndarray
        What is computed with.
    wrap : callable
        Puts an array into a container with the same index or units. An array of another shape, which an index does not
        fit, is returned as it is.
    wrap_squares : callable
        The same for squares of the values.
    units : object
        The units of a quantity; else None.
    """

    values: Any
    wrap: Callable[[Any], Any]
    wrap_squares: Callable[[Any], Any]
    units: Any = None


def _in_pandas(y: Any) -> Contained | None:
    if not hasattr(y, "to_numpy"):
        return None
    values = y.to_numpy()
    if values.dtype == object:  # numbers that may be missing, NA
        values = y.to_numpy(dtype=float, na_value=np.nan)
    labels = {"name": y.name} if values.ndim == 1 else {"columns": y.columns}

    def wrap(a: Any, attrs: Any = y.attrs) -> Any:
        if np.shape(a) != values.shape:
            return a
        out = type(y)(a, index=y.index, **labels)
        out.attrs.update(attrs)
        return out

    return Contained(values, wrap, functools.partial(wrap, attrs={})) if hasattr(y, "index") else None


def _in_pint(y: Any) -> Contained | None:
    if not (hasattr(y, "magnitude") and hasattr(y, "units")):
        return None
    wrap, wrap_squares = (functools.partial(_quantity, type(y), units) for units in (y.units, y.units**2))
    return Contained(y.magnitude, wrap, wrap_squares, y.units)


def _quantity(kind: Any, units: Any, a: Any) -> Any:
    return kind(a, units)


def _in_xarray(y: Any) -> Contained | None:
    if not hasattr(y, "dims") or not hasattr(y, "data"):  # a Dataset
        return None
    values = y.data if lazy_module(y.data) is None else y.to_numpy()

    def wrap(a: Any) -> Any:
        return y.copy(data=a) if np.shape(a) == y.shape else a

    def wrap_squares(a: Any) -> Any:
        return y.copy(data=a).drop_attrs(deep=False) if np.shape(a) == y.shape else a

    return Contained(values, wrap, wrap_squares)


# By the package that a type comes from. None of them is imported.
READERS = {"pandas": _in_pandas, "pint": _in_pint, "xarray": _in_xarray}


def contained(y: Any) -> Contained | None:
    """Return the array in a Series, a DataFrame, a DataArray or a quantity; None for everything else."""
    read = READERS.get(type(y).__module__.partition(".")[0])
    return None if read is None else read(y)


def values_of(y: Any) -> Any:
    """Return the array in a container, or y itself."""
    found = contained(y)
    return y if found is None else found.values


def run_inside(y: Any, sigma: Any, run: Callable[[Any, Any], Any]) -> Any:
    """Return a result whose estimate is what y is; None if y is in no container.

    Parameters
    ----------
    y : object
        The data.
    sigma : object
        The noise level, perhaps with units of its own, or in an array with names.
    run : callable
        ``run(values, sigma)`` gives a dataclass with a field `estimate`, for plain values in the units of y.
    """
    outside = contained(y)
    if outside is None:
        return None
    found = run(outside.values, in_units(in_order(sigma, y), outside.units))
    return dataclasses.replace(found, estimate=outside.wrap(found.estimate))


def squares_like(a: Any, estimate: Any) -> Any:
    """Return squared errors in the container of the estimate, if their shape is that of the estimate."""
    outside = contained(estimate)
    return a if outside is None else outside.wrap_squares(a)


def in_order(a: Any, y: Any) -> Any:
    """Return a DataArray with its dimensions in the order of y, if y has names as well; everything else as it is."""
    if not (is_named(a) and is_named(y)) or not set(a.dims) <= set(y.dims):
        return a
    return a.transpose(*(name for name in y.dims if name in a.dims))


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
