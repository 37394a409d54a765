"""The thresholds to try: the caller's, those of a sample, every one that differs, or the default grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _validate
from .._lazy_data import lazy_module
from .._validate import Array
from ..rules import Rule
from ..sample.magnitudes import Magnitudes, default_thresholds


def data_and_thresholds(y: Any, thresholds: Any, sigma: float, rule: Rule) -> tuple[Any, Array]:
    """Return the data as an array or a sample, and the thresholds to try."""
    data = y if isinstance(y, Magnitudes) or lazy_module(y) is not None else _validate.data(y)
    if not (isinstance(thresholds, str) and thresholds == "all"):
        return data, _thresholds_to_try(data, thresholds, sigma, rule)
    data = data if isinstance(data, Magnitudes) else Magnitudes.exact(data)
    return data, _every_threshold(data)


def _every_threshold(sample: Any) -> Array:
    """Return 0, the number just above each distinct magnitude, and infinity."""
    if sample.cells is not None:
        msg = 'thresholds="all" needs every |y_i|, which a compressed sample no longer has. Pass y itself.'
        raise ValueError(msg)
    return np.concatenate([[0.0], np.nextafter(np.unique(sample.nodes), np.inf), [np.inf]])


def _thresholds_to_try(data: Any, thresholds: Any, sigma: float, rule: Rule) -> Array:
    """Return the caller's thresholds; else those that the sample was compressed for; else the default grid."""
    if thresholds is not None:
        return _validate.thresholds(thresholds)
    if isinstance(data, Magnitudes) and data.cells is not None:
        return np.append(data.cells.thresholds, np.inf)
    return default_thresholds(data.size, sigma, rule.block_size)
