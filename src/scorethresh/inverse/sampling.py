"""Entries that are missing, of x itself or of its Fourier transform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import Floats
from ..frames.padding import fill_gaps
from ..noise.level import sample_level
from .linear_map import LinearMap
from .operator import Operator

__all__ = ["Fourier", "Mask"]

# The share of the sampled frequencies, the highest ones, that the noise level is read from. Fewer are less precise,
# more hold more signal.
NOISE_SHARE = 0.1
# Fewest samples that a noise level is read from.
MIN_NOISE_SAMPLES = 50


def checked_mask(mask: Any) -> NDArray[np.bool_]:
    """Return a mask as booleans; 0 and 1 are taken as such."""
    a = np.asarray(mask)
    if a.dtype != bool:
        values = _validate.data(a, "mask")
        if not np.isin(values, (0, 1)).all():
            msg = f"mask must hold True where data are known, else False; got {a.dtype} with other values than 0 and 1."
            raise ValueError(msg)
    elif not a.ndim:
        msg = f"mask must be an array, got the single value {a}."
        raise ValueError(msg)
    a = a.astype(bool)
    if not a.any():
        msg = "mask is False everywhere: there are no data. It is True where data are known; for the opposite: ~mask."
        raise ValueError(msg)
    return a


class Selection(LinearMap):
    """``A x``: the entries of x where a mask is True, as a vector."""

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        self.mask, self.shape, self.data_shape = mask, mask.shape, (int(np.count_nonzero(mask)),)

    def gather(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the known entries."""
        known, rest = y[self.mask], y[~self.mask]
        if known.size > 1 and (known == known[0]).all() and np.nanmax(np.abs(rest - known[0]), initial=0.0) > 0:
            msg = (
                f"all {known.size} entries of y where mask is True are {known[0]}, the others are not. The mask must "
                "be True where y is known; if yours marks the gaps, pass ~mask."
            )
            raise ValueError(msg)
        return known

    def spread(self, data: Floats) -> NDArray[Any]:
        """Return the known entries in their places, zeros elsewhere."""
        return self.adjoint(data)

    def forward(self, x: Floats) -> Floats:
        """Return the known entries."""
        return x[self.mask]

    def adjoint(self, y: Floats) -> Floats:
        """Return the known entries in their places, zeros elsewhere."""
        out = np.zeros(self.shape, y.dtype)
        out[self.mask] = y
        return out

    def proximal(self, data: Floats, z: Floats, penalty: float, start: Floats | None = None) -> Floats:
        """Return the weighted mean of y and z where y is known, else z."""
        out = z.copy()
        out[self.mask] += (data - z[self.mask]) / (1 + penalty)
        return out

    def first_guess(self, data: Floats) -> Floats:
        """Return y, with gaps filled by means of their surroundings."""
        parts = np.stack([data.real, data.imag]) if np.iscomplexobj(data) else data[None]
        filled = fill_gaps(np.stack([self.adjoint(part) for part in parts])[None], ~self.mask)[0]
        out: Floats = filled[0] + 1j * filled[1] if len(filled) == 2 else filled[0]
        return out

    def noise_level(self, data: Floats) -> float | None:
        """Return the level of white noise on the known entries."""
        parts = [data.real, data.imag] if np.iscomplexobj(data) else [data]
        pictures = [np.where(self.mask, self.adjoint(part), np.nan) for part in parts]
        return math.sqrt(np.mean([sample_level(picture) ** 2 for picture in pictures]))


@dataclass(frozen=True, eq=False, repr=False)
class Mask(Operator):
    """Entries of x that are known; restoring the others is inpainting.

    Parameters
    ----------
    mask : array_like of bool
        True where an entry is known, with the shape of a channel of the data. What y holds elsewhere, NaN for
        instance, is ignored.

    See Also
    --------
    restore : uses it.
    denoise : takes a mask as well, but gives missing entries back as they were.

    Examples
    --------
    >>> known = np.array([True, False, True])
    >>> Mask(known)(np.array([1.0, 2.0, 3.0]))
    array([1., 0., 3.])
    """

    mask: Any

    keeps_dtype: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", checked_mask(self.mask))

    def bind(self, data_shape: tuple[int, ...], *, complex_data: bool) -> LinearMap:
        """Return the map for data of a shape."""
        if data_shape != self.mask.shape:
            msg = (
                f"mask has shape {self.mask.shape}, a channel of y has {data_shape}. Make them equal; if y has "
                "channels, name their axis: channel_axis=..."
            )
            raise ValueError(msg)
        return Selection(self.mask)

    def __call__(self, x: Any) -> Floats:
        """Return x with zeros where it is not known."""
        a = np.asarray(x)
        return np.where(self.mask, a, np.zeros((), a.dtype))


class SampledFourier(LinearMap):
    """``A x``: samples of the unitary Fourier transform of x, or of x times each coil's sensitivity."""

    def __init__(self, mask: NDArray[np.bool_], coils: NDArray[Any] | None, *, real: bool) -> None:
        self.mask, self.coils, self.real, self.shape = mask, coils, real, mask.shape
        count = int(np.count_nonzero(mask))
        self.data_shape = (count,) if coils is None else (len(coils), count)
        # The share of a frequency that is known: of a real x, a sample tells half of the opposite frequency as well.
        if coils is not None:
            self.gain = float(np.sqrt((np.abs(coils) ** 2).sum(axis=0).max()))
        opposite = np.roll(np.flip(mask), 1, tuple(range(mask.ndim)))
        self.known = (mask + opposite.astype(float)) / 2 if real else mask.astype(float)

    def gather(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the samples."""
        return y if y.shape == self.data_shape else y[..., self.mask]

    def spread(self, data: Floats) -> NDArray[Any]:
        """Return the samples in their places, zeros elsewhere."""
        out = np.zeros((*self.data_shape[:-1], *self.mask.shape), data.dtype)
        out[..., self.mask] = data
        return out

    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-self.mask.ndim, 0))

    def forward(self, x: Floats) -> Floats:
        """Return the samples of the transform."""
        from scipy import fft

        seen = x if self.coils is None else self.coils * x
        out: Floats = fft.fftn(seen, axes=self._axes(), norm="ortho")[..., self.mask]
        return out

    def adjoint(self, y: Floats) -> Floats:
        """Return the inverse transform of the samples, zeros between them; coils are added up."""
        from scipy import fft

        out: Floats = fft.ifftn(self.spread(y), axes=self._axes(), norm="ortho")
        if self.coils is not None:
            out = (self.coils.conj() * out).sum(axis=0)
        return out.real.copy() if self.real else out

    def proximal(self, data: Floats, z: Floats, penalty: float, start: Floats | None = None) -> Floats:
        """Return the weighted mean of samples and the transform of z, transformed back; with coils by iteration."""
        if self.coils is not None:
            return super().proximal(data, z, penalty, start)
        from scipy import fft

        move = fft.fftn(self.adjoint(data - self.forward(z)), norm="ortho") / (self.known + penalty)
        back: Floats = fft.ifftn(move, norm="ortho")
        moved: Floats = z + (back.real if self.real else back)
        return moved

    def noise_level(self, data: Floats) -> float | None:
        """Return the level of a part, from the median energy of the highest sampled frequencies."""
        radius = np.sqrt(sum(f**2 for f in np.meshgrid(*map(np.fft.fftfreq, self.mask.shape), indexing="ij")))
        sampled = radius[self.mask]
        count = max(int(NOISE_SHARE * sampled.size), min(MIN_NOISE_SAMPLES, sampled.size))
        highest = np.argsort(sampled, kind="stable")[-count:]
        return math.sqrt(float(np.median(np.abs(data[..., highest]) ** 2)) / (2 * math.log(2)))


@dataclass(frozen=True, eq=False, repr=False)
class Fourier(Operator):
    """Samples of the Fourier transform of x, as in magnetic resonance imaging.

    Parameters
    ----------
    mask : array_like of bool
        True where a frequency is sampled, on the grid of `numpy.fft.fftn`: the zero frequency comes first. For a mask
        with the zero frequency in the middle: ``np.fft.ifftshift(mask)``.
    coils : array_like, optional
        Sensitivities of several coils, ``(coils, *mask.shape)``, which multiply x before the transform.
    real : bool
        Whether x is known to be real. By default it is complex.

    See Also
    --------
    restore : uses it. Its y has the shape of the mask, ``(coils, *mask.shape)`` with coils, or holds only the samples,
        in the order of ``y[mask]``.

    Notes
    -----
    The transform is unitary, ``norm="ortho"``: noise of level sigma in each part of y has that level in each part of x.
    With one coil the proximal step has a closed form; several coils take conjugate gradients, as in SENSE [1]_.

    References
    ----------
    .. [1] K. P. Pruessmann, M. Weiger, P. Börnert, P. Boesiger, "Advances in sensitivity encoding with arbitrary
       k-space trajectories", Magn. Reson. Med. 46 (2001), doi:10.1002/mrm.1241.

    Examples
    --------
    >>> mask = np.ones((4, 4), bool)
    >>> mask[2] = False
    >>> samples = Fourier(mask)(np.ones((4, 4)))
    >>> samples.shape, float(samples[0, 0].real.round(6))
    ((4, 4), 4.0)
    """

    mask: Any
    coils: Any = None
    real: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", checked_mask(self.mask))
        if self.coils is None:
            return
        coils = np.asarray(self.coils)
        if coils.ndim != self.mask.ndim + 1 or coils.shape[1:] != self.mask.shape or coils.dtype.kind not in "fciu":
            msg = (
                f"coils must be numbers of shape (coils, {', '.join(map(str, self.mask.shape))}), got {coils.dtype} of "
                f"shape {coils.shape}. The first axis counts the coils."
            )
            raise ValueError(msg)
        if not (np.isfinite(coils).all() and coils.any()):
            msg = "coils holds NaN or infinite entries, or zeros only. Pass the sensitivity of every coil."
            raise ValueError(msg)
        object.__setattr__(self, "coils", coils)

    def bind(self, data_shape: tuple[int, ...], *, complex_data: bool) -> LinearMap:
        """Return the map for data of a shape."""
        lead = () if self.coils is None else (len(self.coils),)
        shapes = [(*lead, *self.mask.shape), (*lead, int(np.count_nonzero(self.mask)))]
        if data_shape not in shapes:
            msg = f"y has shape {data_shape}, but samples of this mask have {shapes[0]}, or {shapes[1]} as y[mask]."
            raise ValueError(msg)
        if not complex_data:
            msg = "y is real, but samples of a Fourier transform are complex. Pass them as np.fft.fftn returns them."
            raise TypeError(msg)
        return SampledFourier(self.mask, self.coils, real=self.real)

    def __call__(self, x: Any) -> Floats:
        """Return the samples of the transform of x in their places, zeros elsewhere."""
        a = np.asarray(x)
        if a.shape != self.mask.shape:
            msg = f"x has shape {a.shape}, mask has {self.mask.shape}. Make them equal."
            raise ValueError(msg)
        bound = SampledFourier(self.mask, self.coils, real=self.real)
        return bound.spread(bound.forward(a))
