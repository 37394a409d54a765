"""A point spread function that is known up to its width: the width of least estimated risk."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validate
from .._validate import Array
from ..noise.level import sample_level
from .convolution import SampledConvolution
from .problem import read_data

__all__ = ["PsfSelection", "select_psf"]

# The prior power of x falls as the frequency to the power of -SLOPE. On camera, coins and astronaut at 128 x 128
# (Gaussians of 0.7 to 2.5, disks of 2 and 4, noise 0.3 to 10) the mean error of the width is 3.9%; it is 4.8% with a
# slope of 3, 5.4% with 4 and 8.2% with 2.
SLOPE = 3.5
# Inverse powers at frequency 1 that are tried, in units of the noise power. A finer grid changes no choice.
INVERSE_POWERS = np.geomspace(1e-10, 1e2, 25)
# Widths whose risk exceeds the least by less than so many standard errors are called plausible.
PLAUSIBLE = 2.0
# There is a warning if the largest plausible width is more than so many times the smallest.
UNCLEAR = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class PsfSelection:
    """What `select_psf` found.

    Attributes
    ----------
    width : float
        The width of least estimated risk.
    psf : ndarray
        The point spread function of this width.
    plausible : tuple of float
        The least and the largest width that the noise alone does not rule out: their risk exceeds the least by less
        than two standard errors. It does not cover a wrong family, or an x whose spectrum is unusual.
    widths, risk : ndarray
        What was tried, and the estimated risk of ``A x`` per entry, less than which a linear filter cannot do.
    excess_stderr : ndarray
        The standard error of the difference between a risk and the least one.
    sigma : float
        The noise level, given or estimated.
    verdict : str
        What can be said of the choice, in words.

    See Also
    --------
    select_psf : makes it.
    """

    width: float
    psf: Array
    plausible: tuple[float, float]
    widths: Array
    risk: Array
    excess_stderr: Array
    sigma: float
    verdict: str

    def __repr__(self) -> str:
        low, high = self.plausible
        return f"<PsfSelection: width {self.width:.4g} ({low:.4g} to {high:.4g} plausible), sigma {self.sigma:.4g}>"


def select_psf(
    y: Any, family: Callable[[float], Any], widths: Any, *, sigma: float | None = None, channel_axis: int | None = None
) -> PsfSelection:
    """Choose the width of a blur whose shape is known, by the risk of the best linear filter.

    Parameters
    ----------
    y : array_like
        Blurred data with white noise; real.
    family : callable
        Returns the point spread function of a width: `gaussian_psf`, `disk_psf`, `motion_psf` or a function of your
        own. It need not be a width: any one number will do.
    widths : array_like
        The widths to try, ascending.
    sigma : float, optional
        The noise level; estimated by default.
    channel_axis : int, optional
        The axis of colours, which have the same blur.

    Returns
    -------
    PsfSelection
        The width and its point spread function, the widths that the noise does not rule out, and a verdict.

    Warns
    -----
    AssumptionWarning
        If the choice is at an end of the widths, or if widths of a factor of two and more are plausible.

    See Also
    --------
    restore : takes ``Blur(found.psf)``.

    Notes
    -----
    For every width, with transfer function H of the blur, ``x = conj(H) Y / (|H|^2 + c |f|^3.5)`` is the best linear
    filter for an x whose power falls as ``|f|^-3.5``. Stein's formula [1]_ tells the risk of ``H x`` without x0, ::

        risk = sum (1 - g)^2 |Y|^2 + 2 sigma^2 sum g - P sigma^2,   g = |H|^2 / (|H|^2 + c |f|^3.5)

    and the least over c is taken. Too narrow a blur leaves noise in ``H x``, too wide a one removes signal from it.
    A Hann window takes away the border of y.

    It fails if x itself is blurred: nothing tells an x that is not sharp from a blur. The family must be right; a
    Gaussian that is fitted to motion is as wide as fits best. Disks and lines, whose transfer functions have zeros, are
    found more precisely than Gaussians; but if the right width is not among those tried, another may look right.

    References
    ----------
    .. [1] F. Xue, T. Blu, "A novel SURE-based criterion for parametric PSF estimation", IEEE Trans. Image Process. 24
       (2015), doi:10.1109/TIP.2014.2380174.

    Examples
    --------
    >>> import pywt
    >>> from scorethresh import Blur, disk_psf
    >>> blurred = Blur(disk_psf(3.0))(pywt.data.camera()[60:188, 150:278])
    >>> noisy = blurred + np.random.default_rng(0).normal(0.0, 2.0, blurred.shape)
    >>> select_psf(noisy, disk_psf, np.arange(1.0, 6.0, 0.5)).width
    3.0
    """
    grid = _checked_widths(widths)
    psfs = [_checked_member(family, float(width)) for width in grid]
    if np.iscomplexobj(y):
        msg = "y is complex, but select_psf needs real data. Pass its modulus or a part."
        raise TypeError(msg)
    values = read_data(y, channel_axis).astype(np.float64)
    _validate.finite(values)
    for psf in psfs:
        if psf.ndim != values.ndim - 1 or any(k > n for k, n in zip(psf.shape, values.shape[1:], strict=True)):
            msg = (
                f"family returned an array of shape {psf.shape} for data of shape {values.shape[1:]}. It must have as "
                "many axes, and be smaller."
            )
            raise ValueError(msg)
    level = _level(values) if sigma is None else _validate.noise_level(sigma)
    spectrum = WindowedSpectrum(values / level)
    found = [spectrum.best_filter(psf) for psf in psfs]
    risk = np.array([risk for risk, _ in found])
    best = int(np.argmin(risk))
    stderr = np.array([spectrum.excess_stderr(kept, found[best][1]) for _, kept in found])
    near = grid[risk - risk[best] <= PLAUSIBLE * stderr]
    plausible = float(near.min()), float(near.max())
    verdict, trusted = _verdict(grid, best, plausible)
    if not trusted:
        _validate.warn(verdict)
    scale = level**2
    return PsfSelection(float(grid[best]), psfs[best], plausible, grid, risk * scale, stderr * scale, level, verdict)


class WindowedSpectrum:
    """The power of data in units of the noise, frequency by frequency, summed over channels.

    Parameters
    ----------
    values : ndarray
        (channels, *shape), noise of level 1.
    """

    def __init__(self, values: Array) -> None:
        from scipy import fft

        self.channels, self.shape = len(values), values.shape[1:]
        axes = tuple(range(1, values.ndim))
        window, self.correlation = np.ones(self.shape), 1.0
        for axis, n in enumerate(self.shape):
            line = np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2
            line /= math.sqrt(float(np.mean(line**2)))
            window *= line.reshape([-1 if k == axis else 1 for k in range(len(self.shape))])
            # Windows correlate neighbouring frequencies, which adds to the variance of sums.
            self.correlation *= float(np.mean(line**4))
        means = np.tensordot(values, window, (axes, range(len(axes)))) / window.sum()
        moved = (values - means.reshape(-1, *(1,) * len(axes))) * window
        self.power = (np.abs(fft.rfftn(moved, axes=axes, norm="ortho")) ** 2).sum(axis=0)
        # A frequency and its opposite are one coefficient.
        self.count = np.full(self.power.shape[-1], 2.0)
        self.count[0] = 1.0
        if self.shape[-1] % 2 == 0:
            self.count[-1] = 1.0
        frequencies = [*map(np.fft.fftfreq, self.shape[:-1]), np.fft.rfftfreq(self.shape[-1])]
        squares = np.meshgrid(*(f**2 for f in frequencies), indexing="ij", sparse=True)
        self.inverse_prior = (4 * math.pi**2 * np.asarray(sum(squares))) ** (SLOPE / 2)

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.channels * math.prod(self.shape)

    def best_filter(self, psf: Array) -> tuple[float, Array]:
        """Return the least risk of ``A x`` per entry over the filters of a blur, and what that filter keeps."""
        centre = tuple(n // 2 for n in psf.shape)
        origin, ones = (0,) * psf.ndim, (1,) * psf.ndim
        gain = SampledConvolution(self.shape, self.shape, origin, ones, psf, centre).power
        tried = []
        for c in INVERSE_POWERS:
            # The constant passes: there the prior's power has no bound.
            kept = gain / (gain + c * self.inverse_prior + np.finfo(float).tiny)
            sums = self.count * ((1 - kept) ** 2 * self.power + 2 * self.channels * kept)
            tried.append((float(sums.sum()) / self.size - 1, kept))
        return min(tried, key=lambda one: one[0])

    def excess_stderr(self, kept: Array, best: Array) -> float:
        """Return the standard error of the difference between the risks of two filters."""
        weights = self.count * ((1 - kept) ** 2 - (1 - best) ** 2)
        variance = np.maximum(2 * self.power - self.channels, 0.0)
        return math.sqrt(self.correlation * float((weights**2 * variance).sum())) / self.size


def _checked_widths(widths: Any) -> Array:
    grid = np.atleast_1d(_validate.real_array(widths, "widths")).astype(np.float64)
    if grid.ndim != 1 or grid.size < 2 or not np.isfinite(grid).all() or not (np.diff(grid) > 0).all():
        msg = f"widths must be at least two ascending numbers, got {widths!r}. For example: np.arange(0.5, 4, 0.1)."
        raise ValueError(msg)
    return grid


def _checked_member(family: Any, width: float) -> Array:
    if not callable(family):
        msg = f"family must be a function of a width, such as gaussian_psf, got {family!r}."
        raise TypeError(msg)
    psf = _validate.data(family(width), f"the result of family({width:.4g})").astype(np.float64)
    _validate.finite(psf, f"the result of family({width:.4g})")
    if not abs(float(psf.sum()) - 1) < 1e-3:
        msg = f"family({width:.4g}) sums to {psf.sum():.4g}, not to 1. Let it return psf / psf.sum()."
        raise ValueError(msg)
    return psf


def _level(values: Array) -> float:
    level = math.sqrt(float(np.mean([sample_level(channel) ** 2 for channel in values])))
    if not level > 0:
        msg = "the noise level of y comes out as 0. Pass sigma, a small one if y holds no noise."
        raise ValueError(msg)
    return level


def _verdict(widths: Array, best: int, plausible: tuple[float, float]) -> tuple[str, bool]:
    """Return what the choice is worth in words, and whether it may be trusted."""
    chosen, (low, high) = widths[best], plausible
    said = f"The width of least estimated risk is {chosen:.4g}; the noise does not rule out {low:.4g} to {high:.4g}."
    if (low, high) == (widths[0], widths[-1]):
        return (
            f"{said} That is all that was tried: the data do not tell the width. Measure it, or pass a wider range.",
            False,
        )
    if best in (0, widths.size - 1):
        end = "smallest" if best == 0 else "largest"
        return f"{said} It is the {end} that was tried, and the best may lie beyond: extend widths.", False
    if high > UNCLEAR * low:
        return f"{said} That is more than a factor of {UNCLEAR:g}: the data hardly tell the width. Measure it.", False
    return f"{said} This holds if the family is right and x itself is sharp.", True
