"""The mean and the variance of stabilised data against their mean before, tabulated, and the unbiased way back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import Floats
from .._validate import Array


@dataclass(frozen=True, eq=False)
class MomentTable:
    """What a transform makes of a law with one parameter, such as its mean.

    Attributes
    ----------
    parameters : ndarray
        Of the law, rising.
    means, variances : ndarray
        Of transformed data, one entry per parameter. Means rise.
    slopes : ndarray
        The derivative of the parameter by the mean of transformed data.

    Notes
    -----
    The exact unbiased inverse takes the mean of transformed data to the parameter. Between entries it is interpolated,
    below the first it stays, beyond the last it is a straight line.
    """

    parameters: Array
    means: Array
    variances: Array
    slopes: Array

    @classmethod
    def of(cls, parameters: Array, means: Array, variances: Array) -> MomentTable:
        """Return the table, with slopes by differences."""
        return cls(parameters, means, np.maximum(variances, 0.0), np.gradient(parameters, means))

    def inverse(self, values: Floats) -> Array:
        """Return the parameter for means of transformed data."""
        beyond = np.maximum(values - self.means[-1], 0.0)
        out: Array = np.interp(values, self.means, self.parameters) + self.slopes[-1] * beyond
        return out

    def slope(self, values: Floats) -> Array:
        """Return the derivative of `inverse`; below the first entry that of the first."""
        return np.interp(values, self.means, self.slopes)

    def variance(self, values: Floats) -> Array:
        """Return the variance of transformed data around their means."""
        return np.interp(values, self.means, self.variances)
