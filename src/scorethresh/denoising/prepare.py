"""Data as they come, made ready: real parts of channels with noise of level 1, and the way back."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._validate import Array
from ..frames.transforms import Floats, cropped, dct_matrix, filled
from ..noise import anscombe
from ..noise.clipping import find_clip_limits, near_clip_limits, unclip
from ..noise.covariance import Covariance, Stationary, White
from ..noise.level import sample_level
from ..noise.spectrum import estimate_spectrum

# The error over that of the best linear filter of the same trace, and its relative spread, for wavelets and for the
# blend: on camera, coins and brick, at five noise levels, its logarithm had means 0.30 and -0.01 and standard
# deviations 0.43 and 0.30. On signals that of the blend has -0.23 and 0.21, which would make little difference.
_FILTER = {False: (1.35, 0.45), True: (1.0, 0.35)}

# How far from 1 the noise level of a mixed channel may be estimated before it is believed, and the least level.
_ALIKE = 0.15
_QUIET = 1e-3
# If more than this part of the entries cannot be looked at, the channels are taken to have noise of their own.
_HIDDEN = 0.9

# How many entries along each axis make a constant region: values that a camera makes discrete may be alike by chance.
_REGION = {1: 16, 2: 5, 3: 3}
# So small a part of the entries that are like the next ones makes none.
_FEW = 1e-3

# Beyond this range over the noise level, single precision would show.
_SINGLE = 1e4


@dataclass(eq=False)
class Prepared:
    """Stabilised data, and the way back.

    `given` are the data as they came: (channels, parts, *shape); y those of their channels that are not `constant`.
    `values` are ``y / scale - offset``, or Anscombe's root minus `offset`, of noise level 1, the channels rotated by
    `mix`. At `ends` of the range the noise was cut off. Noise is only in entries of y that are `seen`, neither missing
    (`invalid`) nor in constant regions. All else stays as it is.
    """

    given: NDArray[Any]
    constant: NDArray[np.bool_]
    values: Floats
    scale: Array
    offset: Array
    mix: Array | None
    noise: list[Covariance]
    poisson: bool
    invalid: NDArray[np.bool_] | None
    seen: NDArray[np.bool_] | None
    channel_axis: int | None
    ends: tuple[float, float]

    @functools.cached_property
    def y(self) -> NDArray[Any]:
        """The channels that hold noise."""
        return _noisy(self.given, self.constant)

    @property
    def varies(self) -> bool:
        """Whether the noise level is a map."""
        return self.scale.size > len(self.scale)

    @property
    def sigma(self) -> float | Array:
        """The noise level: one number, one per channel, or a map."""
        if self.scale.size == 1:
            return float(self.scale.reshape(()))
        shape = self.y.shape[2:] if self.varies else (1,) * (self.y.ndim - 2)
        whole = np.zeros((len(self.given), *shape))
        whole[~self.constant] = self.scale[:, 0]
        if not self.varies:
            return whole.ravel()
        return whole[0] if self.channel_axis is None else np.moveaxis(whole, 0, self.channel_axis)

    @functools.cached_property
    def counting(self) -> NDArray[Any] | None:
        """How much entries count in the units of y: where it is the same for all that are seen, which these are."""
        weight: NDArray[Any]
        if self.poisson:
            from scipy.ndimage import uniform_filter

            counts = self.y[:, 0].mean(axis=0, dtype=np.float32)
            known = counts if self.invalid is None else np.where(self.invalid, np.float32(0), counts)
            weight = uniform_filter(known, 9) + np.float32(0.375)
        elif self.varies:
            mean = np.square(self.scale).mean(axis=(0, 1))
            weight = np.broadcast_to(mean / mean.mean(), self.y.shape[2:]).astype(np.float32)
        else:
            return self.seen
        return weight if self.seen is None else weight * self.seen

    def around(self, channel: int, tile: tuple[slice, ...], estimate: Floats) -> tuple[Any, Any]:
        """Return the noise variance of the values, and how the squares of their errors count in the units of y."""
        variance: Any = self.noise[channel].variance
        weight: Any = float(np.square(self.scale).mean())
        if self.poisson:
            variance, slope = anscombe.local_moments(estimate[0].astype(np.float64) + self.offset[channel, 0])
            weight = np.square(slope)
        elif self.varies:
            scale = np.broadcast_to(self.scale, (len(self.y), 1, *self.y.shape[2:]))[:, 0]
            weight = np.square(cropped(scale, tile)).mean(axis=0)
        return variance, weight if self.seen is None else weight * self.seen[tile]

    def error(self, sums: Array, left: float, rounding: float, *, blended: bool) -> tuple[float, float]:
        """Return the predicted mean squared error and its standard error.

        Given are the weighted sums of estimated risks and of traces, the part of the noise that was not cut off, and
        what rounding adds. The risk is unbiased, but for what was chosen by it, and varies with the energy of the
        noise, by much where the error is far smaller than the noise. The trace does not, and is the risk of the best
        linear filter, to which that of other estimates has a ratio that is roughly known: the two are averaged by their
        precision.
        """
        size = self.y[0, 0].size
        noisy = size if self.seen is None else np.count_nonzero(self.seen)
        valid = size if self.invalid is None else size - np.count_nonzero(self.invalid)
        count = noisy * self.y.shape[0] * self.y.shape[1]
        ratio, spread = _FILTER[blended]
        unit = float(self.scale.max())  # fourth powers of small or large levels would leave the range
        unbiased, trace = (float(total) / count / unit**2 for total in sums)
        # Where noise was cut off, less is in the residual and in the estimate; what is undone brings the latter back.
        unbiased += (1 - left) * (self._mean((self.scale / unit) ** 2) - trace)
        filtered = ratio * max(trace, 1e-300)
        if self.poisson:
            known = self.y if self.invalid is None else self.y[:, :, ~self.invalid]
            fourth = float(np.square(known + 0.375, dtype=np.float64).mean())
        else:
            fourth = self._mean((self.scale / unit) ** 4)
        fourth *= float(np.mean([noise.mean_squared_power for noise in self.noise]))
        # Per entry, that energy varies by 2 sigma^4, and twice the product of noise and bias by 4 sigma^2 bias^2.
        first = (2 * fourth + 2 * math.sqrt(fourth) * filtered) / count
        second = (spread * filtered) ** 2
        mse = unit**2 * (unbiased * second + filtered * first) / (first + second) + rounding
        share = noisy / valid * float(np.mean(~self.constant))
        return mse * share, unit**2 * math.sqrt(first * second / (first + second)) * share

    def _mean(self, of_scale: Array) -> float:
        """Return the mean over the entries that are seen."""
        if self.seen is None or of_scale.size == len(of_scale):
            return float(of_scale.mean())
        return float(np.broadcast_to(of_scale, (*of_scale.shape[:2], *self.seen.shape))[:, :, self.seen].mean())

    def restored(self) -> tuple[NDArray[Any], float, float]:
        """Return the values, by now denoised, in the units, the layout and the dtype of y; and the part of the noise's
        variance that was not cut off, and what rounding adds to the error.
        """
        out = self.values
        if self.mix is not None:
            out = np.tensordot(self.mix.T.astype(out.dtype), out, axes=1)
        if self.poisson:
            out = anscombe.unbiased_inverse(out + self.offset)
        else:
            out = out.astype(np.result_type(out.dtype, _precise(self.y.dtype)), copy=False)
            out *= self.scale
            out += self.offset * self.scale
        hidden = None if self.seen is None else ~self.seen
        out, left = unclip(out, self.scale, self.ends, self.seen)
        rounding = 0.0
        if self.given.dtype.kind in "iu":
            rest = np.square(out - np.rint(out))
            rounding = float(rest.mean(where=True if self.seen is None else self.seen))
        if self.constant.any():
            noisy, out = out, self.given.astype(out.dtype)
            out[~self.constant] = noisy
        return as_given(out, self.given, hidden, self.channel_axis), left, rounding


def _precise(dtype: np.dtype[Any]) -> Any:
    return np.float32 if dtype.itemsize <= 2 or dtype == np.float32 else np.float64


def as_given(
    out: NDArray[Any], y: NDArray[Any], invalid: NDArray[np.bool_] | None, channel_axis: int | None
) -> NDArray[Any]:
    """Return `out` in the layout and dtype of the data that `y` was made of, its missing entries as they were."""
    if y.dtype.kind in "iu":
        info = np.iinfo(y.dtype)
        # The largest of 64 bits is no double: the next one up would wrap around.
        top = float(info.max) if info.bits < 64 else np.nextafter(float(info.max), 0.0)
        out = np.clip(np.rint(out), info.min, top)
    out = out.astype(y.dtype, copy=False)
    if invalid is not None:
        out[:, :, invalid] = y[:, :, invalid]
    if out.shape[1] == 2:  # not by 1j, which times infinity is NaN
        joined = np.empty_like(out[:, 0], dtype=np.result_type(out.dtype, 1j).newbyteorder(y.dtype.byteorder))
        joined.real, joined.imag = out[:, 0], out[:, 1]
    else:
        joined = out[:, 0]
    return joined[0] if channel_axis is None else np.moveaxis(joined, 0, channel_axis)


def split(y: Any, channel_axis: int | None, mask: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return y as (channels, parts, *shape), and where entries are missing: (*shape)."""
    if isinstance(y, np.ma.MaskedArray):
        if mask is not None:
            msg = "mask is given twice: y is a masked array. Leave one out."
            raise ValueError(msg)
        a, mask = np.asarray(y.data), np.ma.getmaskarray(y)
    else:
        a = np.asarray(y)
        mask = None if mask is None else np.asarray(mask)
    if a.dtype.kind not in "iufc":
        msg = f"y must hold numbers, got dtype {a.dtype}. Convert it first: np.asarray(y, dtype=float)."
        raise TypeError(msg)
    if mask is not None and mask.dtype != bool:
        msg = f"mask must hold booleans, True where entries are missing, got dtype {mask.dtype}. Try mask.astype(bool)."
        raise TypeError(msg)
    if a.size == 0:
        msg = f"y is empty, with shape {a.shape}. Pass at least one entry."
        raise ValueError(msg)
    if channel_axis is not None:
        if not isinstance(channel_axis, int | np.integer) or not -a.ndim <= channel_axis < a.ndim:
            msg = f"channel_axis must be an axis of y, which has {a.ndim}, got {channel_axis!r}."
            raise ValueError(msg)
        if mask is not None and mask.shape == a.shape:
            mask = mask.any(axis=channel_axis)
        a = np.moveaxis(a, channel_axis, 0)
    else:
        a = a[None]
    if not 1 <= a.ndim - 1 <= 3:
        msg = (
            f"y must have one to three axes beside that of channels, got shape {np.shape(y)}. For a stack or colours "
            "name the axis, channel_axis=...; else denoise one after the other."
        )
        raise ValueError(msg)
    if mask is not None and mask.shape != a.shape[1:]:
        msg = f"mask must have the shape of one channel, {a.shape[1:]}, got {mask.shape}."
        raise ValueError(msg)
    parts = np.stack([a.real, a.imag], axis=1).astype(a.real.dtype, copy=False) if a.dtype.kind == "c" else a[:, None]
    if parts.dtype.kind == "f":
        bad = np.isnan(parts).any(axis=(0, 1))
        if bad.any():
            mask = bad if mask is None else mask | bad
        infinite = np.isinf(parts).any(axis=(0, 1))
        if mask is not None:
            infinite &= ~mask
        if infinite.any():
            msg = f"y holds {np.count_nonzero(infinite)} infinite entries. Mark them as missing: mask=~np.isfinite(y)."
            raise ValueError(msg)
    if mask is not None and mask.all():
        msg = "every entry of y is missing: NaN or masked. Pass at least one."
        raise ValueError(msg)
    return parts, mask if mask is not None and mask.any() else None


def prepare(
    given: NDArray[Any], invalid: NDArray[np.bool_] | None, sigma: Any, noise: Any, channel_axis: int | None
) -> Prepared | None:
    """Stabilise data that were split; return None if there is no noise in them."""
    shape, ndim = given.shape[2:], given.ndim - 2
    counts = isinstance(noise, str) and noise == "poisson"
    levels = None if sigma is None else given_levels(sigma, given, channel_axis)
    power = None if isinstance(noise, str) else given_power(noise, shape)[None]
    constant = np.array([not counts and _is_constant(channel, invalid) for channel in given])
    if constant.all():
        return None
    y = _noisy(given, constant)
    scale = np.ones((1,) * y.ndim)
    model: Covariance = White(1.0)
    if counts:
        known = y if invalid is None else np.where(invalid, y.dtype.type(0), y)
        if y.shape[1] > 1 or known.min() < 0:
            msg = f"Poisson noise needs counts of at least 0, got {'complex data' if y.shape[1] > 1 else known.min()}."
            raise ValueError(msg)
    elif isinstance(noise, str) and noise == "white":
        found = _levels(y, invalid) if levels is None else levels
        if not found.any():
            return None
        scale = np.where(found > 0, found, found.max())
        if len(scale) > len(y):
            scale = scale[~constant]
    else:
        if power is None:
            known = y if invalid is None else np.where(invalid, np.nan, y)
            power = np.stack([np.mean([estimate_spectrum(p) for p in c.astype(float)], axis=0) for c in known])
        level = np.sqrt(power.mean(axis=tuple(range(1, ndim + 1)), keepdims=True))
        noisy = level.ravel() > 0
        if not noisy.any():
            return None
        model = Stationary((power[noisy] / level[noisy] ** 2).mean(axis=0))
        scale = np.where(level > 0, level, level.max()).reshape(-1, 1, *(1,) * ndim)
    hidden = invalid if counts else _hidden(y, invalid)
    if hidden is not None and hidden.all():
        return None
    ends = (-math.inf, math.inf)
    if not counts and y.shape[1] == 1:
        ends = find_clip_limits(y if hidden is None else y[..., ~hidden])
    values = anscombe.stabilise(known.astype(np.float64)) if counts else _divided(y, scale)
    if hidden is not None:
        values = filled(values, hidden)
    offset = values.mean(axis=tuple(range(1, values.ndim)), keepdims=True, dtype=np.float64)
    values -= offset.astype(values.dtype)
    if values.dtype == np.float64 and max(values.max(), -values.min()) < _SINGLE:
        values = values.astype(np.float32)
    mix = dct_matrix(len(y)) if len(y) > 1 and not counts else None
    if mix is not None:
        values = np.tensordot(mix.astype(values.dtype), values, axes=1)
    values = np.ascontiguousarray(values)
    models = [model] * len(y)
    if mix is not None and sigma is None and isinstance(model, White):
        # Noise that channels share, as in grey stored as colours, is not white across them.
        out = hidden
        if any(map(math.isfinite, ends)):
            near = near_clip_limits(y, scale, ends)
            out = near if hidden is None else near | hidden
        if out is None or out.mean() < _HIDDEN:
            found = _levels(values, out).ravel()
            models = [model if abs(level - 1) < _ALIKE else White(max(level, _QUIET)) for level in found]
    seen = None if hidden is None else ~hidden
    return Prepared(given, constant, values, scale, offset, mix, models, counts, invalid, seen, channel_axis, ends)


def _noisy(given: NDArray[Any], constant: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the channels that are not constant, without a copy if that is all."""
    return given[~constant] if constant.any() else given


def _is_constant(channel: NDArray[Any], invalid: NDArray[np.bool_] | None) -> bool:
    known = channel if invalid is None else channel[:, ~invalid]
    return known.size >= _REGION[1] and bool((known == known.flat[0]).all())


def _hidden(y: NDArray[Any], invalid: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Return which entries hold no noise: missing ones, and constant regions, as of a background that was filled."""
    from scipy.ndimage import binary_opening

    shape = y.shape[2:]
    same = np.ones(shape, bool)  # as the next entries along all axes
    for axis in range(len(shape)):
        for part in y.reshape(-1, *shape):
            ahead = np.moveaxis(part, axis, 0)
            np.moveaxis(same, axis, 0)[:-1] &= ahead[:-1] == ahead[1:]
    if np.count_nonzero(same) < _FEW * same.size:
        return invalid
    same = np.asarray(binary_opening(same, np.ones((_REGION[len(shape)],) * len(shape), bool)))
    for axis in range(len(shape)):
        along = np.moveaxis(same, axis, 0)
        along[1:] |= along[:-1].copy()
    if not same.any():
        return invalid
    return same if invalid is None else same | invalid


def _divided(y: NDArray[Any], scale: Array) -> Floats:
    dtype = _precise(y.dtype)
    out: Floats = y.astype(dtype, order="C")  # sums depend on the layout, by rounding
    out /= scale.astype(dtype)
    return out


def _levels(y: NDArray[Any], invalid: NDArray[np.bool_] | None) -> Array:
    """Return the noise level of every channel, so that it broadcasts against y; 0 for constant channels."""
    levels = []
    for channel in y:
        parts = [part.astype(np.float64) for part in channel]
        if invalid is not None:
            parts = [np.where(invalid, np.nan, part) for part in parts]
        levels.append(math.sqrt(np.mean([sample_level(part) ** 2 for part in parts])))
    return np.array(levels).reshape(-1, *(1,) * (y.ndim - 1))


def given_levels(sigma: Any, y: NDArray[Any], channel_axis: int | None) -> Array:
    """Return a noise level, one per channel or one per entry, so that it broadcasts against y."""
    if np.ndim(sigma) == 0:
        return np.full((1,) * y.ndim, _validate.noise_level(sigma))
    levels = _validate.real_array(sigma, "sigma").astype(np.float64)
    bad = ~((levels > 0) & np.isfinite(levels))
    if bad.any():
        msg = f"sigma must be positive and finite everywhere, got {levels[bad].flat[0]} among {levels.size} values."
        raise ValueError(msg)
    channels, shape = len(y), y.shape[2:]
    if channel_axis is not None and levels.shape == (channels,):
        return levels.reshape(-1, 1, *(1,) * len(shape))
    if levels.shape == shape:
        return levels[None, None]
    if channel_axis is not None and levels.ndim == len(shape) + 1:
        moved = np.moveaxis(levels, channel_axis, 0)
        if moved.shape == (channels, *shape):
            return moved[:, None]
    ways = f"one per entry, of shape {shape}"
    if channel_axis is not None:
        ways = f"one per channel, of shape ({channels},), or {ways}, or one per entry of all channels"
    msg = f"sigma must be one number, or {ways}, got shape {levels.shape}."
    raise ValueError(msg)


def given_power(noise: Any, shape: tuple[int, ...]) -> Array:
    """Return the power spectrum of the noise as an array."""
    power = _validate.real_array(noise, "noise").astype(np.float64)
    if power.shape != shape:
        msg = (
            f"noise, as a power spectrum, must have the shape of one channel, {shape}, got {power.shape}. It is "
            "E |fftn(w)|^2 / w.size on the grid of np.fft.fftn."
        )
        raise ValueError(msg)
    if not (np.isfinite(power).all() and power.min() >= 0 and power.any()):
        ends = f"{power.min()} to {power.max()}"
        msg = f"noise, as a power spectrum, must be finite, at least 0, and not 0 everywhere, got values from {ends}."
        raise ValueError(msg)
    return power
