"""Noise of magnitudes of complex data, as in magnetic resonance imaging."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import working_precision
from .._validate import Array
from .base import NoiseModel
from .level import sample_level
from .magnitude import MagnitudeTransform, magnitude_tables
from .variance_fit import OUTLYING
from .variance_line import EXCESS, fit_variance_line

__all__ = ["RicianNoise"]

# Levels that are tried, over the root of a variance that was read: those of magnitudes are 0.65 to 1 times the level.
TRIED = np.geomspace(0.5, 2.5, 400)
# Relative standard error of a level that was read from all windows at once, where there are too few to sort.
ROUGH_ERROR = 0.05
# More coils than this would need large tables, and magnitudes over so many are close to Gaussian.
MOST_COILS = 64


@dataclass(frozen=True)
class RicianNoise(NoiseModel):
    """Noise of the magnitude of complex Gaussian data: Rician, or noncentral chi with several coils.

    Parameters
    ----------
    coils : int
        The number of complex images whose squares were summed, at most 64.
    sigma : float, optional
        The noise level of a real or imaginary part, in units of the data. By default it is estimated.

    See Also
    --------
    denoise : Takes it as `noise`; ``noise="rician"`` is one coil.

    Notes
    -----
    The magnitude is ``sqrt(sum |x + w|^2)``. Its mean is above that of the signal: without signal it is 1.25 sigma with
    one coil. A transform makes the noise even [1]_, and its exact unbiased inverse removes the bias. Estimates are
    magnitudes of the signal, so none is negative.

    sigma is fitted to noise variances of flat windows, sorted by their mean: the variance of a magnitude is 0.43
    sigma^2 without signal and sigma^2 with much. So data with and without a background serve. A background that was
    set to 0 holds no noise, and is left out.

    Where there is no signal, an error e of transformed values becomes one of the order of the root of e. The predicted
    error there is rough.

    References
    ----------
    .. [1] A. Foi, Noise estimation and removal in MR imaging: the variance-stabilization approach, IEEE International
       Symposium on Biomedical Imaging (2011) 1809-1814, doi:10.1109/ISBI.2011.5872758.

    Examples
    --------
    >>> from scorethresh import RicianNoise, denoise
    >>> rng = np.random.default_rng(0)
    >>> signal = np.repeat([0.0, 50.0], 64)[:, None] * np.ones(128)
    >>> y = np.hypot(signal + rng.normal(0.0, 10.0, signal.shape), rng.normal(0.0, 10.0, signal.shape))
    >>> found = denoise(y, noise=RicianNoise(sigma=10.0))
    >>> print(round(float(y[:50].mean())), bool(found[:50].mean() < 5))
    13 True
    """

    coils: int = 1
    sigma: float | None = None
    name: ClassVar[str] = "Rician noise of magnitudes"
    sampled: ClassVar[bool] = True
    slices: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.coils, bool) or not (
            isinstance(self.coils, int | np.integer) and 1 <= self.coils <= MOST_COILS
        ):
            msg = f"coils must be a whole number from 1 to {MOST_COILS}, got {self.coils!r}."
            raise ValueError(msg)
        if self.sigma is not None:
            object.__setattr__(self, "sigma", _validate.noise_level(self.sigma))

    def measure(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> MagnitudeTransform | None:
        """Return the transform of magnitudes; refuse what cannot be magnitudes."""
        least = y.min(initial=0, where=True if missing is None else ~missing) if y.shape[1] == 1 else None
        if least is None or least < 0:
            what = "complex data" if least is None else least
            msg = f"Rician noise needs magnitudes of at least 0, got {what}. For complex data use noise='white'."
            raise ValueError(msg)
        if self.sigma is not None:
            return MagnitudeTransform(self.sigma, int(self.coils))
        sigma, error = self._estimated(y, missing)
        return MagnitudeTransform(sigma, int(self.coils), error) if sigma > 0 else None

    def _estimated(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> tuple[float, float]:
        """Return the noise level and its relative standard error."""
        line = fit_variance_line(y, missing)
        if line is not None:
            return fit_magnitude_level(line.means, line.variances, line.errors, int(self.coils))
        values = y.astype(working_precision(y.dtype))
        if missing is not None:
            values[..., missing] = np.nan
        levels = [sample_level(channel[0]) for channel in values]
        level = math.hypot(*levels) / math.sqrt(len(levels))
        if not level > 0:
            return 0.0, 0.0
        mean = np.array([float(np.nanmean(values))])
        sigma = fit_magnitude_level(mean, np.array([level**2]), np.array([0.1]), int(self.coils))[0]
        return sigma, ROUGH_ERROR


def fit_magnitude_level(means: Array, variances: Array, errors: Array, coils: int) -> tuple[float, float]:
    """Return the level that explains variances of magnitudes at their means, and its relative standard error.

    Means below that of pure noise are explained by the level that they have then themselves.
    """
    table = magnitude_tables(coils).magnitudes
    spread = np.hypot(errors, EXCESS)
    levels = np.sqrt(np.multiply.outer(TRIED, np.quantile(variances, [0.1, 0.5, 0.9])).ravel())
    levels = np.sort(levels)
    unit = means / levels[:, None]
    expected = table.variance(unit) * np.minimum(unit / table.means[0], 1.0) ** 2
    r = np.log(variances / (levels[:, None] ** 2 * expected)) / spread
    loss = np.log1p((r / OUTLYING) ** 2).sum(axis=1)
    best = int(np.argmin(loss))
    robust = 1 / (1 + (r[best] / OUTLYING) ** 2)
    misfit = float((robust * r[best] ** 2).sum() / robust.sum())
    error = 0.5 / math.sqrt(float((robust / spread**2).sum())) * math.sqrt(max(misfit, 1.0))
    return float(levels[best]), error
