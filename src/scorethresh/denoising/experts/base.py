"""What an expert is."""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence

import numpy as np

from ..._arrays import Floats
from ..._validate import Array
from ...noise.covariance import Covariance, White, reflected_variance
from ...risk.estimate import Estimate
from ..batch import Batch

# The least gain of a variance by reflection: keeps noise levels positive where reflection cancels a filter.
LEAST_GAIN = 1e-8


class Expert(abc.ABC):
    """An estimator whose parameters are fixed: a pure, picklable function of a batch.

    A subclass states `name`, `reach` and `apply`. `pilot` is a first estimate of the same shape as the batch's values;
    an expert that needs none ignores it.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What it is called in `Denoised.weights`."""

    @property
    @abc.abstractmethod
    def reach(self) -> int:
        """How far an entry of the estimate lies, at most, from the data, and from the pilot, that it depends on."""

    @property
    def step(self) -> int:
        """Windows start at multiples of it, so tiles must too."""
        return 1

    @abc.abstractmethod
    def apply(self, batch: Batch, pilot: Floats | None = None) -> Estimate:
        """Return the estimate of a batch with its divergence, for a given pilot."""

    def value(self, values: Floats, pilot: Floats | None = None) -> Floats:
        """Return the estimate alone, for Monte Carlo; a subclass may save the work of the divergence."""
        return self.apply(Batch(values), pilot).value


def filter_variances(covariance: Covariance, filters: Sequence[Array], shape: tuple[int, ...] | None) -> Array:
    """Return the variance of filtered noise, corrected for what reflection at the borders does to it.

    In a volume of 48 x 48 x 48 entries it raises the divergence of means of two by 6%. Coloured noise is taken to be
    periodic, and is not corrected.
    """
    variances = covariance.filter_variances(filters)
    if shape is None or not isinstance(covariance, White):
        return variances
    gains = []
    for rows, n in zip(filters, shape, strict=True):
        energy = (rows**2).sum(axis=1)
        gains.append(np.maximum(reflected_variance(rows, n) / energy, LEAST_GAIN))
    gain: Array = functools.reduce(np.multiply.outer, gains)
    return variances * gain
