"""Blurs, and blurs followed by sampling: convolutions by the fast Fourier transform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import Floats, cropped, reflect_index
from .._validate import Array
from ..noise.level import sample_level
from .linear_map import LinearMap
from .operator import Operator

__all__ = ["Blur", "Downsample", "SampledConvolution"]

# Whether x is periodic.
BOUNDARIES = {"periodic": True, "unknown": False}

# How far the sum of a PSF may be from 1: measured and rounded ones are within it.
SUM_TOLERANCE = 1e-3


class SampledConvolution(LinearMap):
    """``A x = (h * x)`` at every `step`-th entry from `start` on; circular on the domain, where h is centred.

    Parameters
    ----------
    domain : tuple of int
        The shape of x.
    data_shape : tuple of int
        The number of samples along each axis.
    start, step : tuple of int
        The first entry that is sampled, and the distance between samples.
    psf : ndarray
        The filter h.
    centre : tuple of int
        The entry of h that stands for no shift.
    """

    def __init__(
        self,
        domain: tuple[int, ...],
        data_shape: tuple[int, ...],
        start: tuple[int, ...],
        step: tuple[int, ...],
        psf: Array,
        centre: tuple[int, ...],
    ) -> None:
        from scipy import fft

        self.shape, self.data_shape, self.start, self.step = domain, data_shape, start, step
        self.samples = tuple(slice(a, a + s * n, s) for a, s, n in zip(start, step, data_shape, strict=True))
        self.covered = tuple(slice(a, a + s * n) for a, s, n in zip(start, step, data_shape, strict=True))
        wrapped = np.zeros(domain)
        # A filter longer than the domain is added up on it.
        places = [(np.arange(n) - c) % m for n, c, m in zip(psf.shape, centre, domain, strict=True)]
        np.add.at(wrapped, np.ix_(*places), psf)
        self.transfer = fft.rfftn(wrapped)
        self.power = np.abs(self.transfer) ** 2
        # 1 if the filter sums to one and is positive.
        self.gain = float(np.sqrt(self.power.max()))
        #: Whether samples lie evenly on the whole circle: then ``A A'`` is a circular convolution of samples.
        self.even = all(s * n == m for s, n, m in zip(step, data_shape, domain, strict=True))
        if self.even:
            correlation = fft.irfftn(self.power, domain)
            self.sampled_power = fft.rfftn(correlation[tuple(slice(None, None, s) for s in step)]).real

    def filtered(self, x: Floats, transfer: NDArray[Any]) -> Floats:
        """Return the circular convolution with a real filter, given by its transform."""
        from scipy import fft

        if np.iscomplexobj(x):
            return self.filtered(x.real, transfer) + 1j * self.filtered(x.imag, transfer)
        out: Floats = fft.irfftn(fft.rfftn(x) * transfer, x.shape)
        return out

    def forward(self, x: Floats) -> Floats:
        """Return the samples of the convolution."""
        return self.filtered(x, self.transfer)[self.samples]

    def adjoint(self, y: Floats) -> Floats:
        """Return the correlation of the samples, zeros between them, with the filter."""
        wide = np.zeros(self.shape, y.dtype)
        wide[self.samples] = y
        return self.filtered(wide, self.transfer.conj())

    def visible(self, x: Floats) -> Floats:
        """Return the part of x that the samples cover."""
        return cropped(x, self.covered)

    def embed(self, x: Floats) -> Floats:
        """Return x, reflected at the borders of the part that the samples cover."""
        for axis, (n, place) in enumerate(zip(self.shape, self.covered, strict=True)):
            x = np.take(x, reflect_index(np.arange(n) - place.start, x.shape[axis]), axis)
        return x

    def first_guess(self, data: Floats) -> Floats:
        """Return every sample in the units of x, repeated as often as it stands for entries."""
        data = data / self.gain
        for axis, step in enumerate(self.step):
            data = np.repeat(data, step, axis)
        return self.embed(data)

    def noise_level(self, data: Floats) -> float | None:
        """Return the level of white noise on the blurred picture."""
        parts = [data.real, data.imag] if np.iscomplexobj(data) else [data]
        return float(np.sqrt(np.mean([sample_level(part) ** 2 for part in parts])))

    def precondition(self, penalty: float) -> Callable[[Floats], Floats] | None:
        """Return the inverse for samples everywhere, as dense as they are."""
        share = np.prod(self.data_shape) / np.prod(self.shape)
        inverse = 1 / (share * self.power + penalty)
        return lambda x: self.filtered(x, inverse)

    def proximal(self, data: Floats, z: Floats, penalty: float, start: Floats | None = None) -> Floats:
        """Return ``argmin ||y - A x||^2 + penalty ||x - z||^2``, in closed form if samples are even.

        Notes
        -----
        ``x = z + A' (A A' + penalty)^-1 (y - A z)``, and ``A A'`` is a convolution: with the correlation of h with
        itself, sampled.

        References
        ----------
        N. Zhao, Q. Wei, A. Basarab, N. Dobigeon, D. Kouamé, J.-Y. Tourneret, "Fast single image super-resolution using
        a new analytical solution for l2-l2 problems", IEEE Trans. Image Process. 25 (2016),
        doi:10.1109/TIP.2016.2567075.
        """
        if not self.even:
            return super().proximal(data, z, penalty, start)
        rest = data - self.forward(z)
        return z + self.adjoint(self.filtered(rest, 1 / (self.sampled_power + penalty)))


def checked_psf(psf: Any) -> Array:
    """Return a point spread function as an array; warn if it does not sum to one."""
    h = _validate.data(psf, "psf").astype(np.float64)
    _validate.finite(h, "psf")
    if not h.any():
        msg = f"psf is zero everywhere, with shape {h.shape}. Nothing of x would be seen; pass what a point looks like."
        raise ValueError(msg)
    total = float(h.sum())
    if abs(total - 1) > SUM_TOLERANCE:
        msg = (
            f"psf sums to {total:.4g}, not to 1: as it stands, the blur changes the brightness by this factor. If only "
            "its shape is known, pass psf / psf.sum()."
        )
        _validate.warn(msg)
    return h


def convolution(
    data_shape: tuple[int, ...], psf: Array, centre: tuple[int, ...], step: tuple[int, ...], *, periodic: bool
) -> SampledConvolution:
    """Return the map for data of a shape; beyond the border, x repeats itself or is unknown."""
    if psf.ndim != len(data_shape):
        msg = (
            f"psf has {psf.ndim} axes, y has {len(data_shape)} beside channels, {data_shape}. Give psf as many axes; "
            "if y has channels, name their axis: channel_axis=..."
        )
        raise ValueError(msg)
    covered = tuple(s * n for s, n in zip(step, data_shape, strict=True))
    if any(k > n for k, n in zip(psf.shape, covered, strict=True)):
        msg = f"psf, of shape {psf.shape}, is larger than x, {covered}. Crop psf to where it is not negligible."
        raise ValueError(msg)
    if periodic:
        return SampledConvolution(covered, data_shape, (0,) * psf.ndim, step, psf, centre)
    from scipy import fft

    # Room for every entry that the data depend on, enlarged to a length of which the transform is fast.
    domain = tuple(fft.next_fast_len(n + k - 1, True) for n, k in zip(covered, psf.shape, strict=True))
    start = tuple(k - 1 - c for k, c in zip(psf.shape, centre, strict=True))
    return SampledConvolution(domain, data_shape, start, step, psf, centre)


def simulated(x: Any, psf: Array, centre: tuple[int, ...], step: tuple[int, ...], *, periodic: bool) -> Floats:
    """Return the samples of x blurred; if x is not periodic, those that do not depend on what is beyond its border."""
    a = np.asarray(x)
    a = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    if a.ndim != psf.ndim:
        msg = f"x has {a.ndim} axes, psf has {psf.ndim}. Blur channels one by one."
        raise ValueError(msg)
    if periodic:
        start, count = (0,) * a.ndim, tuple(n // s for n, s in zip(a.shape, step, strict=True))
    else:
        start = tuple(k - 1 - c for k, c in zip(psf.shape, centre, strict=True))
        count = tuple((n - k) // s + 1 for n, k, s in zip(a.shape, psf.shape, step, strict=True))
    if min(count) < 1:
        msg = f"x, of shape {a.shape}, is smaller than psf, {psf.shape}. Pass a larger x."
        raise ValueError(msg)
    return SampledConvolution(a.shape, count, start, step, psf, centre).forward(a)


@dataclass(frozen=True, eq=False, repr=False)
class Blur(Operator):
    """A blur: convolution with a point spread function.

    Parameters
    ----------
    psf : array_like
        What a point looks like, with as many axes as a channel of the data. Its centre is the entry ``n // 2`` of each
        axis of length n. It should sum to one; if it does not, there is a warning, and it is used as it is.
    boundary : {"unknown", "periodic"}
        What is beyond the border of the data. ``"unknown"``: entries of x there are restored together with the rest,
        as far as the blur looks, and cut off. This is right for pictures. ``"periodic"``: x repeats itself, which is
        faster, and right for some simulated data. Where it is wrong, it rings: up to 3 dB are lost.

    See Also
    --------
    restore : uses it.
    Downsample : a blur of which samples are seen.

    Notes
    -----
    ``y_i = sum_j psf_j x_(i + n // 2 - j)``. The proximal step of a periodic blur has a closed form in Fourier space,
    ``X = Z + conj(H) (Y - H Z) / (|H|^2 + penalty)``. With unknown boundaries [1]_ it is solved by conjugate gradients,
    preconditioned by this form.

    References
    ----------
    .. [1] M. S. C. Almeida, M. A. T. Figueiredo, "Deconvolving images with unknown boundaries using the alternating
       direction method of multipliers", IEEE Trans. Image Process. 22 (2013), doi:10.1109/TIP.2013.2258354.

    Examples
    --------
    >>> blur = Blur(np.full((3, 3), 1 / 9), boundary="periodic")
    >>> point = np.zeros((5, 5))
    >>> point[2, 2] = 9.0
    >>> print(blur(point).round(6) + 0.0)
    [[0. 0. 0. 0. 0.]
     [0. 1. 1. 1. 0.]
     [0. 1. 1. 1. 0.]
     [0. 1. 1. 1. 0.]
     [0. 0. 0. 0. 0.]]
    """

    psf: Any
    boundary: str = "unknown"

    # On camera, coins and astronaut 20 steps gain 0.07 dB in the mean; a last level of 0.55 is within 0.05 dB.
    default_steps: ClassVar[int] = 8
    last_level: ClassVar[float] = 1.0
    keeps_dtype: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "psf", checked_psf(self.psf))
        _validate.choice("boundary", self.boundary, BOUNDARIES)

    def _layout(self) -> tuple[Array, tuple[int, ...], tuple[int, ...]]:
        return self.psf, tuple(n // 2 for n in self.psf.shape), (1,) * self.psf.ndim

    def bind(self, data_shape: tuple[int, ...], *, complex_data: bool) -> LinearMap:
        """Return the map for data of a shape."""
        return convolution(data_shape, *self._layout(), periodic=BOUNDARIES[self.boundary])

    def __call__(self, x: Any) -> Floats:
        """Return x blurred; with unknown boundaries only where it does not depend on what is beyond the border."""
        return simulated(x, *self._layout(), periodic=BOUNDARIES[self.boundary])


@dataclass(frozen=True, eq=False, repr=False)
class Downsample(Operator):
    """Samples of a blurred array: restoring it is super-resolution.

    Parameters
    ----------
    factor : int or tuple of int
        How many entries of x there are per sample, along every axis or along each.
    psf : array_like, optional
        The blur before sampling, as in `Blur`. By default a sample is the mean of its ``factor x factor`` entries, as
        in a camera with larger pixels.
    boundary : {"unknown", "periodic"}
        As in `Blur`. The default mean does not look beyond the border.

    See Also
    --------
    restore : uses it.

    Notes
    -----
    ``y = (psf * x)[::factor, ::factor]``. If x is periodic, the proximal step has a closed form [1]_.

    References
    ----------
    .. [1] N. Zhao, Q. Wei, A. Basarab, N. Dobigeon, D. Kouamé, J.-Y. Tourneret, "Fast single image super-resolution
       using a new analytical solution for l2-l2 problems", IEEE Trans. Image Process. 25 (2016),
       doi:10.1109/TIP.2016.2567075.

    Examples
    --------
    >>> print(Downsample(2)(np.arange(16.0).reshape(4, 4)).round(6))
    [[ 2.5  4.5]
     [10.5 12.5]]
    """

    factor: Any
    psf: Any = None
    boundary: str = "unknown"

    # On camera, coins and astronaut 20 steps gain 0.07 dB in the mean; a last level of 0.55 is within 0.05 dB.
    default_steps: ClassVar[int] = 8
    last_level: ClassVar[float] = 1.0
    keeps_dtype: ClassVar[bool] = True

    def __post_init__(self) -> None:
        remedy = " For each axis: a tuple."
        if isinstance(self.factor, tuple | list):
            factor: Any = tuple(_validate.whole(f, "factor", 1) for f in self.factor)
        else:
            factor = _validate.whole(self.factor, "factor", 2, remedy)
        object.__setattr__(self, "factor", factor)
        if self.psf is not None:
            object.__setattr__(self, "psf", checked_psf(self.psf))
        _validate.choice("boundary", self.boundary, BOUNDARIES)

    def _layout(self, ndim: int) -> tuple[Array, tuple[int, ...], tuple[int, ...]]:
        step = self.factor if isinstance(self.factor, tuple) else (self.factor,) * ndim
        if len(step) != ndim:
            msg = f"factor has {len(step)} numbers for {ndim} axes beside channels. Pass one per axis, or one for all."
            raise ValueError(msg)
        if self.psf is None:
            return np.full(step, 1 / np.prod(step)), tuple(s - 1 for s in step), step
        return self.psf, tuple(n // 2 for n in self.psf.shape), step

    @property
    def _periodic(self) -> bool:
        return self.psf is None or BOUNDARIES[self.boundary]

    def bind(self, data_shape: tuple[int, ...], *, complex_data: bool) -> LinearMap:
        """Return the map for data of a shape."""
        return convolution(data_shape, *self._layout(len(data_shape)), periodic=self._periodic)

    def __call__(self, x: Any) -> Floats:
        """Return the samples of x; with unknown boundaries those that do not depend on what is beyond the border."""
        return simulated(x, *self._layout(np.ndim(x)), periodic=self._periodic)
