"""Data that are not in memory, or have named axes: who treats them."""

from __future__ import annotations

import importlib
from typing import Any

# By the package that an array comes from: the module of ours that treats it. It is loaded on first use, and so is the
# package, which whoever passes such an array has loaded.
TREATED_BY = {"dask": "scorethresh.scale.chunked", "xarray": "scorethresh.scale.named"}


def lazy_module(y: Any) -> Any:
    """Return the module that treats y if it is a dask array or a DataArray; None for all other data.

    The module offers functions with the names of those that the users call.
    """
    name = TREATED_BY.get(type(y).__module__.partition(".")[0])
    return None if name is None else importlib.import_module(name)


def is_named(y: Any) -> bool:
    """Tell whether y is an array of xarray."""
    return type(y).__module__.partition(".")[0] == "xarray"


def unnamed(y: Any) -> Any:
    """Return the data of a DataArray; other data as they are."""
    return y.data if is_named(y) else y


def axis_of(y: Any, axis: Any) -> Any:
    """Return an axis of a DataArray, given its name or number; other axes as they are."""
    if axis is None or not is_named(y) or isinstance(axis, int):
        return axis
    if axis not in y.dims:
        msg = f"y has no dimension {axis!r}. Its dimensions are {', '.join(map(repr, y.dims))}."
        raise ValueError(msg)
    return y.get_axis_num(axis)
