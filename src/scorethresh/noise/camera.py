"""The noise of a camera, given or read off the data."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validate import Array
from .base import NoiseModel
from .clipping import find_clip_limits
from .generalised_anscombe import GeneralisedAnscombe
from .stabilisers import Stabiliser
from .variance_fit import fit_variances
from .variance_line import VarianceLine, fit_variance_line
from .windows import TINY

__all__ = ["CameraNoise"]

# Least slope of the variance over the range of the means, over the variance. Below, noise is white for all purposes.
MIN_GROWTH = 1e-4
# Share of the read noise in the variance of the darkest windows, where the data do not tell. Four development images
# with 1 electron in the mean and a read noise of 1.6 lose 1.3 dB with 0, 0.1 with 0.5 and nothing with 0.8; without
# read noise they lose 0.1 at most with any, and predictions suffer with more.
READ_SHARE = 0.5
# Rounds in which a gain is found that enters the variance twice. They are Newton's, from a close start.
ROUNDS = 8


# If more than this share of the entries lies far below the offset, the offset is wrong. A few may be dead pixels.
MOST_BELOW = 0.05


@dataclass(frozen=True)
class CameraNoise(NoiseModel):
    """Noise of a camera: electrons that are counted, and read noise.

    Parameters
    ----------
    gain : float, optional
        Electrons per unit of the data.
    offset : float, optional
        The value of a pixel without light, in units of the data.
    read : float, optional
        The standard deviation of the read noise, in electrons. What is not given is estimated.

    See Also
    --------
    denoise : Takes it as `noise`.

    Notes
    -----
    ``y = offset + (P + read Z) / gain``, P of Poisson law, Z standard normal. The variance is a line in the mean:
    ``Var y = mean / gain + (read^2 - gain offset) / gain^2``. Its slope tells the gain. Its intercept tells one
    combination of offset and read noise, which is all that the generalised Anscombe transform [1]_ needs; if one of
    them is given, the other follows. If neither is, the offset is taken to be 0 if that is possible; otherwise half of
    the variance in the darkest windows is taken for read noise. The split matters only below some 10 electrons, through
    the skewness of the noise: there, pass one.

    The line is fitted to noise variances of flat windows, sorted by their mean. The inverse is the exact unbiased one
    [2]_, by a table for the read noise at hand. It knows of values clipped from below; those clipped from above are
    corrected as those of white noise are. Integers count as rounded.

    References
    ----------
    .. [1] F. Murtagh, J.-L. Starck, A. Bijaoui, Image restoration with noise suppression using a multiresolution
       support, Astronomy and Astrophysics Supplement 112 (1995) 179-189.
    .. [2] M. Mäkitalo and A. Foi, Optimal inversion of the generalized Anscombe transformation for Poisson-Gaussian
       noise, IEEE Transactions on Image Processing 22 (2013) 91-103, doi:10.1109/TIP.2012.2202675.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> light = np.repeat([5.0, 60.0], 64)[:, None] * np.ones(128)
    >>> y = 100 + (rng.poisson(light) + rng.normal(0.0, 1.6, light.shape)) / 0.46
    >>> from scorethresh import CameraNoise, Denoiser
    >>> found = Denoiser(noise=CameraNoise(gain=0.46, offset=100.0, read=1.6)).run(y)
    >>> bool(np.abs(found.estimate[:50] - 100 - 5 / 0.46).mean() < 1)
    True
    """

    gain: float | None = None
    offset: float | None = None
    read: float | None = None
    name: ClassVar[str] = "camera noise"
    sampled: ClassVar[bool] = True
    slices: ClassVar[bool] = True
    level_units: ClassVar[str] = "of the root of the electrons, where the noise is even"

    def __post_init__(self) -> None:
        for name, what, low in (("gain", "above 0", 0.0), ("offset", "finite", -math.inf), ("read", "at least 0", 0.0)):
            value = getattr(self, name)
            if value is None:
                continue
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = math.nan
            if not low <= number < math.inf or (name == "gain" and number == 0) or number == -math.inf:
                msg = f"{name} must be a number, {what}, got {value!r}. None estimates it from the data."
                raise ValueError(msg)
            object.__setattr__(self, name, number)

    def measure(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> GeneralisedAnscombe:
        """Return the generalised Anscombe transform; estimate what is not given."""
        if y.shape[1] > 1:
            msg = "camera noise needs real data, got complex data. Use noise='white'."
            raise ValueError(msg)
        known = y if missing is None else y[..., ~missing]
        floor = find_clip_limits(known)[0] if known.size else -math.inf
        rounded = y.dtype.kind in "iu"
        if self.gain is not None and self.offset is not None and self.read is not None:
            counts = self.read == 0 and (1 / self.gain).is_integer()  # whole numbers before rounding
            read = math.sqrt(self.read**2 + self.gain**2 / 12) if rounded and not counts else self.read
            found = GeneralisedAnscombe(self.gain, self.offset, read, floor)
        else:
            line = fit_variance_line(y, missing)
            if line is None:
                msg = f"y has too few flat windows to estimate camera noise, with shape {y.shape[2:]}. "
                raise ValueError(msg + "Pass gain, offset and read.")
            found = dataclasses.replace(self._estimated(line, float(known.mean(dtype=np.float64))), floor=floor)
        if self.offset is not None:
            self._check_offset(known, found)
        step = 1 / found.gain if found.read == 0 else 0.0
        return dataclasses.replace(found, step=max(step, 1.0) if rounded else step)

    def _check_offset(self, known: NDArray[Any], found: GeneralisedAnscombe) -> None:
        """Refuse an offset that cannot be the value without light."""
        below = found.share_out_of_reach(known)
        if below > MOST_BELOW:
            msg = f"offset must be the value of y without light, got {found.offset:g}, but {below:.0%} of y lie far "
            raise ValueError(msg + "below it. Leave it out to have it estimated.")

    def with_measured(self, stabiliser: Stabiliser) -> CameraNoise:
        """Return the model with the gain, offset and read noise that were measured."""
        if not isinstance(stabiliser, GeneralisedAnscombe):
            return self
        return CameraNoise(stabiliser.gain, stabiliser.offset, stabiliser.read)

    def _estimated(self, line: VarianceLine, mean: float) -> GeneralisedAnscombe:
        """Return the transform for what is given and what the line tells; the level is most needed at `mean`."""
        if self.gain is not None:
            columns, base = _ones, line.means / self.gain
            fit = fit_variances(columns(line.means), line.variances, line.spread, base)
            intercept, slope = float(fit.coefficients[0]), 1 / self.gain
        elif self.offset is not None:
            columns, fit, intercept, slope = self._around_offset(line, self.offset)
        else:
            intercept, slope = line.intercept, line.slope
            return self._split(line, intercept, slope, line.relative_error(mean))
        row = columns(np.array([mean]))[0]
        variance = max(intercept + slope * mean, line.variances.min())
        return self._split(line, intercept, slope, math.sqrt(row @ fit.covariance @ row) / (2 * variance))

    def _around_offset(self, line: VarianceLine, offset: float) -> Any:
        """Return the columns that were fitted, the fit, intercept and slope of a line that starts at the offset."""

        def light(means: Array) -> Array:
            return np.maximum(means - offset, 0.0)[:, None]

        def light_and_read(means: Array) -> Array:
            return np.column_stack([means - offset, np.ones_like(means)])

        columns: Any = light
        if self.read is None:
            columns = light_and_read
            fit = fit_variances(columns(line.means), line.variances, line.spread)
            if fit.coefficients[1] < 0:  # the variance without light
                columns = light
                fit = fit_variances(columns(line.means), line.variances, line.spread)
            slope, dark = float(fit.coefficients[0]), float([*fit.coefficients, 0.0][1])
        else:
            # With s the slope, the variance is s light + (read s)^2: each reading has a root, and from their median on
            # tangents in s are fitted.
            slope = float(np.median(_positive_root(self.read**2, light(line.means)[:, 0], line.variances)))
            for _ in range(ROUNDS):
                columns = functools.partial(_tangent, light, 2 * slope * self.read**2)
                base = -((self.read * slope) ** 2)
                fit = fit_variances(columns(line.means), line.variances, line.spread, base)
                slope = float(fit.coefficients[0])
            dark = (self.read * slope) ** 2
        return columns, fit, dark - slope * offset, slope

    def _split(self, line: VarianceLine, intercept: float, slope: float, error: float) -> GeneralisedAnscombe:
        """Return the transform for a line, with an offset and a read noise that agree with it."""
        middle = (line.low + line.high) / 2
        variance = max(intercept + slope * middle, float(line.variances.min()))
        least = MIN_GROWTH * variance / max(line.high - line.low, math.sqrt(variance))
        if slope < least:
            intercept, slope = variance - least * middle, least
        dark = -intercept / slope  # the mean at which the variance is 0
        gain = 1 / slope
        if self.offset is not None:
            offset = self.offset
        elif self.read is not None:
            offset = dark + self.read**2 / gain
        else:
            likely = 0.0 if dark <= 0 else dark + READ_SHARE * (line.low - dark)
            offset = max(min(likely, line.low), dark)
        read = self.read if self.read is not None else math.sqrt(max(gain * (offset - dark), 0.0))
        return GeneralisedAnscombe(gain, offset, read, level_error=error)


def _ones(means: Array) -> Array:
    return np.ones((means.size, 1))


def _tangent(light: Callable[[Array], Array], more: float, means: Array) -> Array:
    return light(means) + more


def _positive_root(a: float, b: Array, c: Array) -> Array:
    """Return the s of at least 0 with ``a s^2 + b s = c``, in a form that does not cancel."""
    return 2 * c / np.maximum(b + np.sqrt(b**2 + 4 * a * c), TINY)
