"""Errors about data, sigma, thresholds and names, worded once: the argument, what came, what to do."""

from __future__ import annotations

import difflib
import inspect
import math
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
T = TypeVar("T")


class AssumptionWarning(UserWarning):
    """An assumption visibly fails, so that a result cannot be trusted; the message names the remedy."""


PACKAGE = os.path.join(os.path.dirname(__file__), "")


def warn(message: str, category: type[Warning] = AssumptionWarning) -> None:
    """Warn at the line outside of the package that called it, however deep inside the reason is found."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):  # skip_file_prefixes of Python 3.12
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_COMPLEX = (
    "{name} is complex, which is not supported yet. Treat the parts apart: {name}.real and {name}.imag, "
    "with sigma the noise level of one part."
)


def real_array(y: Any, name: str = "y") -> NDArray[Any]:
    """Return `y` as an array of real numbers, without a copy; refuse what is not one."""
    if isinstance(y, np.ma.MaskedArray):
        msg = f"{name} is a masked array, whose mask would be ignored. Pass the valid entries: {name}.compressed()."
        raise TypeError(msg)
    a = as_array(y, name)
    if a.dtype.kind == "c":
        raise TypeError(_COMPLEX.format(name=name))
    if a.dtype.kind not in "fiu":
        msg = f"{name} must hold real numbers, got dtype {a.dtype}. Convert it first: np.asarray({name}, dtype=float)."
        raise TypeError(msg)
    return a


def as_array(y: Any, name: str = "y") -> NDArray[Any]:
    """Return `y` as an array of any dtype, without a copy; refuse rows of different lengths."""
    try:
        return np.asarray(y)
    except ValueError as error:
        msg = f"{name} is no array: {error} Make its rows equally long."
        raise ValueError(msg) from None


def data(y: Any, name: str = "y") -> NDArray[Any]:
    """Return `y` as a non-empty array of real numbers; whether they are finite is checked by who reads them."""
    a = real_array(y, name)
    if a.ndim == 0:
        msg = f"{name} must be an array, got the single number {a}. For one entry: [{a}]."
        raise ValueError(msg)
    if a.size == 0:
        msg = f"{name} is empty, with shape {a.shape}. Pass at least one entry."
        raise ValueError(msg)
    return a


def finite(a: NDArray[Any], name: str = "y") -> None:
    """Raise if `a` holds NaN or infinity."""
    if a.dtype.kind == "f" and not np.isfinite(a).all():
        raise not_finite(a.size - int(np.isfinite(a).sum()), a.size, name)


def moderate(a: NDArray[Any], name: str = "y") -> None:
    """Raise if sums of squares of `a` may exceed the largest double, or if all squares vanish."""
    if a.dtype.kind in "iu" or np.finfo(a.dtype).bits < 64:
        return
    largest = float(np.abs(a).max(initial=0.0))
    if largest > math.sqrt(1e308 / max(a.size, 1)):
        msg = f"{name} holds magnitudes up to {largest:.3g}, whose squares overflow. Divide it by {largest:.0e} first."
        raise ValueError(msg)
    if 0 < largest < 1e-150:
        msg = f"{name} holds magnitudes up to {largest:.3g}, whose squares vanish. Divide it by {largest:.0e} first."
        raise ValueError(msg)


def not_finite(bad: int, size: int, name: str = "y") -> ValueError:
    """Return the error for `bad` entries of `size` that are NaN or infinite."""
    return ValueError(
        f"{name} holds {bad} NaN or infinite entries out of {size}. Leave them out first: {name}[np.isfinite({name})]."
    )


def level_map(levels: Array) -> None:
    """Raise unless all levels are positive and finite."""
    bad = ~((levels > 0) & np.isfinite(levels))
    if bad.any():
        msg = (
            f"sigma must be positive and finite everywhere, got {levels[bad].flat[0]} among {levels.size} values. "
            "Where y is unknown too, mark it: mask=~(sigma > 0)."
        )
        raise ValueError(msg)


def noise_level(sigma: Any) -> float:
    """Return `sigma` as a positive number whose square neither overflows nor vanishes."""
    if sigma is None:
        msg = "sigma, the noise level, is missing. To estimate it from y: sigma=estimate_sigma(y)."
        raise TypeError(msg)
    if np.ndim(sigma) > 0:
        msg = (
            f"sigma must be one number, got an array of shape {np.shape(sigma)}. "
            "If the noise level varies, divide y by it and pass sigma=1."
        )
        raise ValueError(msg)
    value = number(sigma, "sigma")
    if not (value > 0 and math.isfinite(value)):
        msg = f"sigma must be positive and finite, got {sigma}. Estimate it: by estimate_sigma(y), or, if y is a "
        msg += "signal, by estimate_sigma(y, domain='samples')."
        raise ValueError(msg)
    if not 1e-153 <= value <= 1e153:
        msg = f"sigma must lie between 1e-153 and 1e153, for its square is needed, got {sigma}. Rescale y and sigma."
        raise ValueError(msg)
    return value


def number(value: Any, name: str) -> float:
    """Return `value` as a float; refuse strings, booleans, arrays and complex numbers."""
    if isinstance(value, bool | np.bool_ | str | bytes) or np.ndim(value) > 0 or np.iscomplexobj(value):
        msg = f"{name} must be a real number, got {value!r}."
        raise TypeError(msg)
    try:
        return float(value)
    except (TypeError, ValueError):
        msg = f"{name} must be a real number, got {value!r}."
        raise TypeError(msg) from None


def positive(value: Any, name: str, remedy: str = "") -> float:
    """Return `value` as a positive and finite float."""
    checked = number(value, name)
    if not 0 < checked < math.inf:
        msg = f"{name} must be positive and finite, got {value}.{remedy}"
        raise ValueError(msg)
    return checked


def pooled(value: bool, batch_axis: Any) -> None:
    """Raise if data are to share what is chosen, but are not several."""
    if value and batch_axis is None:
        msg = "pooled=True needs batch_axis, the axis along which the samples lie, got None."
        raise ValueError(msg)


def whole(value: Any, name: str, least: int, remedy: str = "") -> int:
    """Return `value` as an integer of at least `least`; refuse floats and booleans."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        msg = f"{name} must be a whole number of at least {least}, got {value!r}.{remedy}"
        raise ValueError(msg)
    return int(value)


def threshold(value: Any) -> Any:
    """Return `value`, a threshold or an array of them, as float64; refuse negative ones and NaN."""
    t = real_array(value, "threshold").astype(np.float64)
    bad = ~(t >= 0)
    if bad.any():
        msg = f"threshold must be at least 0, got {t[bad].flat[0]}."
        raise ValueError(msg)
    return t[()]


def thresholds(values: Any) -> Array:
    """Return `values` as an ascending vector of thresholds; infinity (kill everything) may come last."""
    if isinstance(values, str):
        choices = "numbers or None (a default grid)" if values == "all" else 'numbers, None (a default grid) or "all"'
        msg = f"thresholds must be {choices} here, got {values!r}."
        raise ValueError(msg)
    t = np.atleast_1d(real_array(values, "thresholds")).astype(np.float64)
    if t.ndim != 1:
        msg = f"thresholds must be a vector, got shape {t.shape}. Flatten and sort them."
        raise ValueError(msg)
    if t.size == 0:
        msg = "thresholds is empty. Pass at least one, or None for a default grid."
        raise ValueError(msg)
    if np.isnan(t).any():
        msg = f"thresholds holds {int(np.isnan(t).sum())} NaN out of {t.size}. Remove them."
        raise ValueError(msg)
    if t.min() < 0:
        msg = f"thresholds must be at least 0, got {t.min()}. Magnitudes are compared with them."
        raise ValueError(msg)
    if (np.diff(t) < 0).any():
        msg = "thresholds must ascend. Sort them: np.sort(thresholds)."
        raise ValueError(msg)
    if (t[np.isfinite(t)] > 1e300).any():
        msg = f"finite thresholds must be at most 1e300, got {t[np.isfinite(t)].max()}. To kill everything: np.inf."
        raise ValueError(msg)
    return t


def axis(name: str, number: Any, ndim: int) -> int:
    """Return an axis of y, counted from 0; refuse one that y does not have."""
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not whole or not -ndim <= number < ndim:
        msg = f"{name} must be an axis of y, which has {ndim}, got {number!r}. For the last axis: -1."
        raise ValueError(msg)
    return int(number) % ndim


def choice(what: str, name: str, known: Mapping[str, T]) -> T:
    """Return what goes by that name; for another name the error lists those there are, and the nearest."""
    if isinstance(name, str) and name in known:
        return known[name]
    raise unknown(what, name, known, f"There are {', '.join(map(repr, sorted(known)))}.")


def unknown(what: str, name: Any, known: Iterable[str], remedy: str) -> ValueError:
    """Return the error for a name that is not known, with the nearest one that is."""
    near = difflib.get_close_matches(str(name).lower(), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"unknown {what} {name!r}.{hint} {remedy}")


# The extra of this package that brings an optional package. Others are installed under their own name.
_EXTRAS = {
    "PIL": "cli",
    "joblib": "sklearn",
    "matplotlib": "plot",
    "rich": "cli",
    "sklearn": "sklearn",
    "soundfile": "cli",
    "tifffile": "cli",
    "tqdm": "cli",
    "typer": "cli",
    "dask": "dask",
    "distributed": "dask",
    "xarray": "dask",
    "zarr": "dask",
    "starlette": "view",
    "uvicorn": "view",
}


def missing_extra(package: str, extra: str | None = None) -> ImportError:
    """Return the error for an optional package that is not installed; `extra` names the extra that brings it."""
    extra = extra or _EXTRAS.get(package)
    # There is no release yet to install an extra from.
    remedy = f"pip install '.[{extra}]' in a checkout of the repository" if extra else f"pip install {package}"
    return ImportError(f"{package} is not installed. Install it: {remedy}.")
