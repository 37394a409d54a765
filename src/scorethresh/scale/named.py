"""The doors for DataArrays of xarray: data with names in, the same names out."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

from .._lazy_data import axis_of, lazy_module
from ..denoising.denoiser import Denoiser
from ..denoising.lowrank.denoiser import LowRankDenoiser
from ..noise.level import Domain
from ..noise.level import estimate_sigma as estimate_in_memory
from ..sample.cells import Cells
from ..sample.magnitudes import Magnitudes
from ..sample.magnitudes import gather as gather_in_memory
from ..select.rank import RankSelection
from ..select.rank import select_rank as select_in_memory

__all__ = ["estimate_sigma", "gather", "loaded", "run", "run_lowrank", "select_rank"]


def run(denoiser: Denoiser, y: Any) -> Any:
    """Return `Denoiser.run` of a DataArray; its estimate is one, with the same names, coordinates and attributes."""
    data = data_of(y)
    axis = axis_of(y, denoiser.channel_axis)
    rest = [name for k, name in enumerate(y.dims) if axis is None or k != axis % y.ndim]
    sigma, mask = (
        _aligned(value, y, rest, name) for value, name in ((denoiser.sigma, "sigma"), (denoiser.mask, "mask"))
    )
    batch_axis = axis_of(y, denoiser.batch_axis)
    plain = dataclasses.replace(denoiser, channel_axis=axis, batch_axis=batch_axis, sigma=sigma, mask=mask)
    found = plain.run(data)
    changes: dict[str, Any] = {"estimate": y.copy(data=found.estimate)}
    if lazy_module(data) is not None:
        changes["like"] = y
    return dataclasses.replace(found, **changes)


def run_lowrank(denoiser: LowRankDenoiser, y: Any) -> Any:
    """Return `LowRankDenoiser.run` of a DataArray; its estimate is one, with the same names."""
    data, axis = data_of(y), axis_of(y, denoiser.series_axis)
    rest = [name for k, name in enumerate(y.dims) if k != axis % y.ndim]
    sigma, mask = (
        _aligned(value, y, rest, name) for value, name in ((denoiser.sigma, "sigma"), (denoiser.mask, "mask"))
    )
    found = dataclasses.replace(denoiser, series_axis=axis, sigma=sigma, mask=mask).run(data)
    changes: dict[str, Any] = {"estimate": y.copy(data=found.estimate)}
    if lazy_module(data) is not None:
        changes["like"] = y
    return dataclasses.replace(found, **changes)


def data_of(y: Any) -> Any:
    """Return the data of a DataArray; refuse a Dataset."""
    xarray = importlib.import_module("xarray")
    if not isinstance(y, xarray.DataArray):
        msg = f"y must be an array, got a {type(y).__name__}. Pass one of its variables: y['name']."
        raise TypeError(msg)
    return y.data


def _aligned(value: Any, y: Any, rest: list[Any], name: str) -> Any:
    """Return noise levels or a mask in the order of the axes of y; arrays without names as they are."""
    xarray = importlib.import_module("xarray")
    if not isinstance(value, xarray.DataArray):
        return value
    if set(value.dims) == set(y.dims):
        return value.transpose(*y.dims).data
    if set(value.dims) == set(rest):
        return value.transpose(*rest).data
    if value.ndim <= 1 and set(value.dims) <= set(y.dims):
        return value.data  # one number, or one per channel
    msg = f"{name} must have the dimensions of y, {y.dims}, or {tuple(rest)} of one channel, got {value.dims}."
    raise ValueError(msg)


def estimate_sigma(y: Any, *, domain: Domain | None = None) -> float:
    """Return `scorethresh.estimate_sigma` of a DataArray."""
    return estimate_in_memory(data_of(y), domain=domain)


def gather(y: Any, cells: Cells) -> Magnitudes:
    """Return the sample of a DataArray on given cells."""
    return gather_in_memory(data_of(y), cells)


def loaded(y: Any) -> Any:
    """Return a DataArray in memory, without names."""
    data = data_of(y)
    lazy = lazy_module(data)
    return data if lazy is None else lazy.loaded(data)


def select_rank(matrix: Any, **options: Any) -> RankSelection:
    """Return `scorethresh.select_rank` of a DataArray; its estimate is one, with the same names."""
    found = select_in_memory(data_of(matrix), **options)
    return dataclasses.replace(found, estimate=matrix.copy(data=found.estimate))
