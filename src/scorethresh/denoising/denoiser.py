"""The denoiser: a signal, image or volume in, the same out, and a prediction of the error."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._progress import Progress
from .._validate import Array
from ..frames.transforms import Decimated, Floats, Undecimated, cropped, default_levels, wavelet
from ..noise.covariance import Covariance
from ..noise.level import sample_level
from ..risk.methods import Method, Selector, as_method
from ..rules import Hard, Rule, as_rule
from .blend import Band, Drawn, Piece, Pieces, Seen, Wavelets, blend_weights
from .prepare import Prepared, as_given, prepare, split

__all__ = ["Denoised", "Denoiser", "denoise"]

CHOOSE = {"blend": "blend", "bands": "bands", "global": "global"}
_NOISE = {"white": "white", "poisson": "poisson", "correlated": "correlated"}

# Entries of a tile; where there are several, side and number of the crops that thresholds and weights are chosen on.
_TILE = {1: 1 << 20, 2: 1 << 20, 3: 1 << 19}
_CROP = {1: 1 << 18, 2: 512, 3: 64}
_CROPS = {1: 4, 2: 4, 3: 2}
# How many more are taken where most blocks, of so many entries along each axis, are not flat.
_BUSY = 2
_BLOCK = {1: 256, 2: 16, 3: 8}

# By the number of axes: the wavelets of the blend, and that of bands.
_BLENDED = {1: ("haar", "sym8"), 2: ("haar",), 3: ("haar",)}
_WAVELET = {1: "sym8", 2: "haar", 3: "haar"}

# By the number of axes: of up to so many rows or slices, of so many entries along each other axis, channels are made.
_SLICES, _PLANE = {1: 0, 2: 2, 3: 8}, 32

# How far windows of both stages reach into a tile from outside.
_REACH = {1: 2046, 2: 30, 3: 6}


@dataclass(frozen=True, eq=False, repr=False)
class Denoised:
    """What a `Denoiser` found.

    Attributes
    ----------
    estimate : ndarray
        The denoised data, with the shape, dtype and units of y.
    sigma : float or ndarray
        The noise level, given or estimated; one per channel if there are channels. For Poisson noise 1, that of the
        stabilised data.
    predicted_mse : float
        Prediction of the mean squared error per sample, in the units of y squared. Below zero it says that `sigma` is
        too large.
    stderr : float
        Standard error of `predicted_mse`, for a known noise level.
    bands : tuple of Band
        Threshold, noise level, kept fraction and risk curve of every wavelet band, in units of `sigma`.
    weights : dict
        What the estimate is made of: the weight of each part of the blend, per channel.
    """

    estimate: NDArray[Any]
    sigma: float | Array
    predicted_mse: float
    stderr: float
    bands: tuple[Band, ...]
    weights: dict[str, float]

    def predicted_psnr(self, data_range: float | None = None) -> float:
        """Return the predicted peak signal-to-noise ratio in decibels; infinity if no error is predicted.

        `data_range` is that of the clean data. By default it is 255 for 8-bit data, 65535 for 16-bit, else the range
        of the estimate, in all finite entries; if that is constant, the ratio is infinite.
        """
        if data_range is None:
            estimate = np.abs(self.estimate) if np.iscomplexobj(self.estimate) else self.estimate
            known = estimate[np.isfinite(estimate)].astype(np.float64)
            data_range = {"uint8": 255.0, "uint16": 65535.0}.get(estimate.dtype.name) or float(np.ptp(known))
            if not data_range:
                return math.inf
        if self.predicted_mse <= 0:
            return math.inf
        return 10 * math.log10(_validate.positive(data_range, "data_range") ** 2 / self.predicted_mse)

    def plot(self, y: Any = None, axes: Any = None, *, channel_axis: int | None = None) -> Any:
        """Draw y, the estimate and what was removed: `scorethresh.plot.plot_denoised`."""
        from ..viz.plot import plot_denoised

        return plot_denoised(self, y, axes, channel_axis=channel_axis)

    def __repr__(self) -> str:
        low, high = np.min(self.sigma), np.max(self.sigma)
        level = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        kept = f", {np.mean([b.kept for b in self.bands]):.1%} of their coefficients kept" if self.bands else ""
        return (
            f"<Denoised: {' x '.join(map(str, self.estimate.shape))} {self.estimate.dtype}, sigma {level}; predicted "
            f"mse {self.predicted_mse:.4g} +- {self.stderr:.2g}; {len(self.bands)} bands{kept}>"
        )


@dataclass(frozen=True, kw_only=True)
class Denoiser:
    """Denoises signals, images and volumes; `run` gives the estimate and everything known about it.

    The parameters are those of `denoise`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.zeros((128, 128))
    >>> clean[32:96, 32:96] = 100.0
    >>> found = Denoiser(sigma=20.0).run(clean + rng.normal(0.0, 20.0, clean.shape))
    >>> found.predicted_mse < 40
    True
    """

    sigma: Any = None
    choose: str = "blend"
    wavelet: str | None = None
    levels: int | None = None
    undecimated: bool = True
    rule: str | Rule = "hard"
    method: str | Method | Selector | None = None
    noise: Any = "white"
    channel_axis: int | None = None
    mask: Any = None
    progress: bool = False

    def __post_init__(self) -> None:
        _validate.choice("choose", self.choose, CHOOSE)
        if isinstance(self.noise, str):
            _validate.choice("noise", self.noise, _NOISE)
        if self.sigma is not None and not (isinstance(self.noise, str) and self.noise == "white"):
            what = repr(self.noise) if isinstance(self.noise, str) else "a power spectrum"
            msg = f"sigma goes with white noise, got {self.sigma!r} with noise={what}. Leave it out."
            raise ValueError(msg)
        if self.method is not None:
            as_method(self.method)
        if self.wavelet is not None:
            wavelet(self.wavelet)
        if self.levels is not None and not (isinstance(self.levels, int | np.integer) and self.levels >= 1):
            msg = f"levels must be a whole number of at least 1, got {self.levels!r}. None chooses it by the size of y."
            raise ValueError(msg)
        if self.choose == "blend" and not (isinstance(as_rule(self.rule), Hard) and self.undecimated):
            msg = "the blend is made of undecimated hard thresholds. For another rule or frame: choose='bands'."
            raise ValueError(msg)
        if self.choose == "global" and self.method is not None and not isinstance(as_method(self.method), Method):
            msg = f"{self.method!r} estimates no risk, which one threshold for all bands needs. Use choose='bands'."
            raise ValueError(msg)

    def _prepared(self, y: Any) -> tuple[NDArray[Any], Prepared | None, int | None]:
        """Return y as (channels, parts, *shape); made ready, or None if there is no noise in it; the axis of channels.

        Two rows, and the slices of a volume if they are few, are taken for channels of one noise level.
        """
        parts, invalid = split(y, self.channel_axis, self.mask)
        axis, sigma, shape = self.channel_axis, self.sigma, parts.shape[2:]
        plain = axis is None and invalid is None and isinstance(self.noise, str) and self.noise != "correlated"
        if plain and min(shape) <= _SLICES[len(shape)] and sorted(shape)[1] >= _PLANE:
            if sigma is None and self.noise == "white":
                sigma = math.sqrt(np.mean([sample_level(part.astype(float)) ** 2 for part in parts[0]])) or None
            axis = shape.index(min(shape))
            parts = np.moveaxis(parts[0], 1 + axis, 0)
        return parts, prepare(parts, invalid, sigma, self.noise, axis), axis

    def run(self, y: Any) -> Denoised:
        """Denoise y."""
        parts, data, axis = self._prepared(y)
        if parts.shape[1] > 1 and not (isinstance(as_rule(self.rule), Hard) and self.method is None):
            msg = "complex data are thresholded by their modulus, hard, with SCORE. Leave out rule and method."
            raise ValueError(msg)
        if data is None:
            return Denoised(as_given(parts.copy(), parts, None, axis), 0.0, 0.0, 0.0, (), {})
        bands: list[Band] = []
        weights: dict[str, float] = {}
        sums = np.zeros(2)
        tiles = list(_tiles(data.values.shape[2:]))
        with Progress("denoise", len(tiles) * len(data.values), self.progress) as progress:
            for k, channel in enumerate(data.values):
                prefix = f"channel {k} " if len(data.values) > 1 else ""
                plan = _Plan(self, data.noise[k], channel.ndim - 1)
                first = plan.choose(channel, data.counting)
                bands += [dataclasses.replace(b, name=prefix + b.name) for some in plan.bands for b in some]
                weights |= {prefix + name: w for name, w in plan.weights.items()}
                sums += _treat(channel, k, plan, first, tiles, data, progress.step)
        estimate, *lost = data.restored()
        mse, stderr = data.error(sums, *lost, blended=self.choose == "blend")
        return Denoised(estimate, data.sigma, mse, stderr, tuple(bands), weights)


def _treat(
    channel: Floats,
    k: int,
    plan: _Plan,
    first: Piece | None,
    tiles: list[tuple[slice, ...]],
    data: Prepared,
    done: Callable[[], None],
) -> Array:
    """Put the estimate in the place of a channel; return the weighted sums of the estimated risks and the traces."""
    margin = plan.margin()
    source = channel if first is not None else channel.copy()

    def treat(tile: tuple[slice, ...]) -> Array:
        wide = tuple(slice(max(s.start - margin, 0), s.stop + margin) for s in tile)
        inner = tuple(slice(s.start - w.start, s.stop - w.start) for s, w in zip(tile, wide, strict=True))
        y = np.ascontiguousarray(cropped(source, wide))
        seen = None if data.counting is None else data.counting[wide][None]
        piece = first if first is not None else plan.apply(y[None], seen)
        estimate = cropped(piece.estimate[0], inner)
        trace = cropped(np.broadcast_to(piece.trace[0], y.shape[1:]), inner)
        residual = np.square(cropped(y, inner) - estimate).sum(axis=0, dtype=np.float64)
        variance, weight = data.around(k, tile, estimate)
        trace = trace * (variance / data.noise[k].variance)
        risk = residual - len(y) * variance + 2 * trace
        cropped(channel, tile)[...] = estimate
        done()
        return np.array([(risk * weight).sum(), (trace * weight).sum(dtype=np.float64)])

    if first is not None:
        return treat(tiles[0])
    workers = min(len(tiles), os.cpu_count() or 1, 4 if channel.ndim < 4 else 2)  # volumes: for memory's sake
    with ThreadPoolExecutor(workers) as pool:
        out: Array = np.sum(list(pool.map(treat, tiles)), axis=0)
        return out


class _Plan:
    """Frames for one channel, thresholds and weights: chosen on a sample, applied to every tile."""

    def __init__(self, options: Denoiser, noise: Covariance, ndim: int) -> None:
        self.options, self.noise, self.ndim = options, noise, ndim
        self.bands: list[list[Band]] = []
        self.weights: dict[str, float] = {}

    def choose(self, y: Floats, seen: Seen) -> Piece | None:
        """Choose on y, or on crops of it if it is large; return the estimate in the former case."""
        places = _crops(y, seen)
        crops = np.stack([cropped(y, place) for place in places])
        seen = None if seen is None else np.stack([seen[place] for place in places])
        self.levels = self._levels(y.shape[1:])
        options = self.options
        names = [options.wavelet] if options.wavelet else _BLENDED[self.ndim]
        if options.choose != "blend":
            names = [options.wavelet or _WAVELET[self.ndim]]
        frame = Undecimated if options.undecimated else Decimated
        shape = y.shape[1:] if options.undecimated else None
        self.waves = [
            Wavelets(frame(name, self.levels), self.noise, self.ndim, options.rule, options.method, shape)
            for name in names
        ]
        whole = crops.shape[2:] == y.shape[1:]
        if options.choose != "blend":
            [wave] = self.waves
            bands, piece = (wave.choose if options.choose == "bands" else wave.choose_one)(crops, seen)
            self.correction = 1.0 if seen is None else wave.correction(Drawn.of(crops, self.noise, seen), bands)
            self.bands = [bands if whole else _limited(bands, y.size)]
            return Piece(piece.estimate, self.correction * piece.trace) if whole else None
        self.pieces = Pieces(self.waves, self.noise, y.shape[1:])
        self.bands, pieces = self.pieces.choose(crops, seen)
        if not whole:
            self.bands = [_limited(bands, y.size) for bands in self.bands]
        self.corrections = self.pieces.corrections(crops, self.bands, seen)
        traces = [correction * piece.total(seen) for correction, piece in zip(self.corrections, pieces, strict=True)]
        self.shares = blend_weights(crops, pieces, traces, seen)
        self.weights = dict(zip(self.pieces.names, map(float, self.shares), strict=True))
        return self._mix(pieces) if whole else None

    def apply(self, y: Floats, seen: Seen) -> Piece:
        """Return the estimate of a batch."""
        if self.options.choose != "blend":
            piece = self.waves[0].apply(y, self.bands[0], seen)
            return Piece(piece.estimate, self.correction * piece.trace)
        return self._mix(self.pieces.apply(y, self.bands, seen))

    def _mix(self, pieces: list[Piece]) -> Piece:
        estimate = np.zeros_like(pieces[0].estimate)
        trace: Floats = np.zeros(1)
        for share, correction, piece in zip(self.shares, self.corrections, pieces, strict=True):
            if share > 0:
                estimate += estimate.dtype.type(share) * piece.estimate
                trace = trace + share * correction * piece.trace
        return Piece(estimate, trace)

    def _levels(self, shape: tuple[int, ...]) -> int:
        if self.options.levels:
            most = max(int(math.log2(max(shape))), 1)
            if self.options.levels > most:
                msg = f"levels must be at most {most} for data of shape {shape}, got {self.options.levels}."
                raise ValueError(msg)
            return int(self.options.levels)
        levels = default_levels(shape)
        if not self.options.undecimated:  # beyond, borders would reach everywhere
            taps = wavelet(self.options.wavelet or _WAVELET[self.ndim]).dec_len
            levels = min(levels, max(int(math.log2(max(min(shape) / max(taps - 1, 1), 1))), 1))
        return levels

    def margin(self) -> int:
        """Return how far a tile has to look beyond its border."""
        reach = max((wavelet(w.frame.wavelet).dec_len - 1) * (2**self.levels - 1) for w in self.waves)
        return int(min(reach + _REACH[self.ndim], round(_TILE[self.ndim] ** (1 / self.ndim)) // 8))


def _limited(bands: list[Band], count: int) -> list[Band]:
    """Return bands with thresholds that noise alone hardly exceeds: higher ones serve data without signal only."""
    most = math.sqrt(2 * math.log(count))
    return [dataclasses.replace(band, threshold=min(band.threshold, most * band.sigma)) for band in bands]


def _tiles(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Yield tiles of no more entries than fit: the longest axis is halved until they are."""
    counts = [1] * len(shape)
    while math.prod(-(-n // c) for n, c in zip(shape, counts, strict=True)) > _TILE[len(shape)]:
        k = max(range(len(shape)), key=lambda i: shape[i] / counts[i])
        counts[k] *= 2
    edges = [[n * i // c for i in range(c + 1)] for n, c in zip(shape, counts, strict=True)]
    return itertools.product(*([slice(*ends) for ends in itertools.pairwise(e)] for e in edges))


def _crops(y: Floats, seen: Seen) -> list[tuple[slice, ...]]:
    """Return all of y if it is one tile, else crops spread over it, or over where it is seen, and the busiest ones."""
    shape = y.shape[1:]
    if math.prod(shape) <= _TILE[len(shape)]:
        return [(slice(None),) * len(shape)]
    sides = [min(_CROP[len(shape)], n) for n in shape]
    ends = [(0, n) for n in shape] if seen is None else [(at.min(), at.max() + 1) for at in np.nonzero(seen)]
    starts, count = [], _CROPS[len(shape)]
    for k in range(count):
        places = (k, (2 * k + 1) % (count + 1) % count, count - 1 - k)
        ways = zip(ends, sides, shape, places, strict=False)
        starts.append(
            [min(low + int(max(high - low - m, 0) * (p + 0.5) / count), n - m) for (low, high), m, n, p in ways]
        )
    starts += _busiest(y, seen, sides)
    return [tuple(slice(s, s + m) for s, m in zip(start, sides, strict=True)) for start in starts]


def _busiest(y: Floats, seen: Seen, sides: list[int]) -> Iterator[list[int]]:
    """Yield where the crops begin in which most blocks vary by more than noise: rare things may be there alone."""
    ndim = len(sides)
    blocks = [min(_BLOCK[ndim], m) for m in sides]
    counts = [n // b for n, b in zip(y.shape[1:], blocks, strict=True)]
    whole = [slice(count * b) for count, b in zip(counts, blocks, strict=True)]
    split = [n for pair in zip(counts, blocks, strict=True) for n in pair]
    inside, letters = tuple(range(1, 2 * ndim, 2)), "abcdef"[: 2 * ndim]
    busy = np.zeros(counts)
    for part in y:
        values = cropped(part, whole).reshape(split)
        square = np.einsum(f"{letters},{letters}->{letters[::2]}", values, values) / math.prod(blocks)
        busy += np.log(np.maximum(square - np.square(values.mean(axis=inside)), 1.0))
    if seen is not None:
        busy *= cropped(seen, whole).reshape(split).min(axis=inside)
    # Summed over crops that overlap by half.
    lengths = [m // b for m, b in zip(sides, blocks, strict=True)]
    steps = [max(length // 2, 1) for length in lengths]
    for axis, (length, step) in enumerate(zip(lengths, steps, strict=True)):
        views = np.lib.stride_tricks.sliding_window_view(busy, length, axis)
        busy = np.take(views, range(0, views.shape[axis], step), axis).sum(axis=-1)
    for _ in range(_BUSY):
        at = np.unravel_index(np.argmax(busy), busy.shape)
        yield [int(i) * step * b for i, step, b in zip(at, steps, blocks, strict=True)]
        busy[tuple(slice(max(i - 1, 0), i + 2) for i in at)] = -1.0


def denoise(
    y: Any,
    *,
    sigma: Any = None,
    choose: str = "blend",
    wavelet: str | None = None,
    levels: int | None = None,
    undecimated: bool = True,
    rule: str | Rule = "hard",
    method: str | Method | Selector | None = None,
    noise: Any = "white",
    channel_axis: int | None = None,
    mask: Any = None,
    progress: bool = False,
) -> NDArray[Any]:
    """Remove noise from a signal, an image or a volume.

    Parameters
    ----------
    y : array_like
        One to three axes, and perhaps one of channels. Real, integer or complex; NaN marks missing entries. Integers
        stay integers in their units; real and imaginary parts share decisions.
    sigma : float or array_like, optional
        The noise level in units of y (of one part, if y is complex): a number, one per channel, or one per entry. By
        default it is estimated, per channel.
    choose : {"blend", "bands", "global"}
        ``"blend"``: thresholds in wavelets and in the DCT of all windows guide a second, smoother shrinkage, and the
        blend of least estimated risk is taken. ``"bands"``: wavelets only, with a threshold for every band.
        ``"global"``: one threshold, over the noise level, for all bands.
    wavelet : str, optional
        A discrete wavelet of PyWavelets. By default ``"haar"``; for signals ``"sym8"``, in the blend both.
    levels : int, optional
        Levels of the wavelets. By default at most 5 for images, 3 for volumes, 12 for signals.
    undecimated : bool
        Whether wavelets are taken at every position, which is better, or sampled, as most packages do.
    rule : str or Rule
        What is done to the coefficients of wavelets, for bands and global.
    method : str or Method, optional
        How their thresholds are chosen. By default SCORE for bands of 16384 coefficients or more, else the mixture.
    noise : {"white", "poisson", "correlated"} or array_like
        ``"poisson"``: y holds counts. ``"correlated"``: stationary noise, its spectrum estimated from flat regions. An
        array is the power spectrum, ``E |fftn(w)|^2 / w.size`` on the grid of `numpy.fft.fftn`.
    channel_axis : int, optional
        The axis of colours or other channels; they are decorrelated by an orthonormal transform. Constant ones are left
        as they are. By default two rows, and up to 8 slices of a volume, are taken for channels.
    mask : array_like of bool, optional
        True where entries are missing. They are filled before and given back as they were, and so are constant regions,
        as of a background that was set to 0.
    progress : bool
        Whether to show a progress bar on standard error.

    Returns
    -------
    ndarray
        With the shape and dtype of y. For the predicted error and more: ``Denoiser(...).run(y)``.

    Notes
    -----
    A noise level per entry is stabilised by dividing y by it. Where it varies within a few entries, that adds variation
    to the signal, which costs sharpness.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.sin(np.linspace(0.0, 12.0, 1000))
    >>> noisy = clean + rng.normal(0.0, 0.3, 1000)
    >>> estimate = denoise(noisy)
    >>> bool(np.mean((estimate - clean) ** 2) < 0.1 * np.mean((noisy - clean) ** 2))
    True
    """
    options = {name: value for name, value in locals().items() if name != "y"}
    return Denoiser(**options).run(y).estimate
