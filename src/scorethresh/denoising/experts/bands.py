"""Thresholds in a wavelet frame, one per band: the first expert."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Floats, cropped, reflect_index, slabs
from ..._validate import Array
from ...frames.wavelets import BandKey, Frame, Undecimated, detail_bands
from ...noise.covariance import Covariance, White, reflected_variances
from ...risk.curve import RiskCurve
from ...risk.estimate import Estimate
from ..batch import Batch, grouped
from .base import LEAST_GAIN, Expert, filter_variances
from .decisions import Decisions
from .samples import at_valid_centres, join_samples, sample_band

# Along axes of fewer entries, the variance of a coefficient depends visibly on its distance from the border.
SHORT_AXIS = 64

# Coefficients within this many noise levels of a threshold get the divergence of its jump. Fewer make the map of the
# jump noisy, more blur it; its sum stays.
NEAR_JUMP = 0.25


@dataclass(frozen=True, eq=False)
class BandNoise:
    """The noise in a band.

    Attributes
    ----------
    key : BandKey
        Which band.
    sigma : float
        The noise level of its coefficients.
    share : float
        How much of the noise variance per entry of the data its coefficients hold.
    border : tuple of ndarray
        Along each axis, the variance of coefficients over its mean, if an axis is short; else empty.
    """

    key: BandKey
    sigma: float
    share: float
    border: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class FrameNoise:
    """The noise in all detail bands of a frame, and the share of the noise that the coarsest mean holds."""

    frame: Frame
    bands: tuple[BandNoise, ...]
    mean_share: float
    shape: tuple[int, ...] | None

    @classmethod
    def make(cls, frame: Frame, covariance: Covariance, ndim: int, shape: tuple[int, ...] | None = None) -> FrameNoise:
        """Return the noise of a covariance in a frame; with the shape of the data also what borders do to it."""
        sigmas: list[float] = []
        shares: list[float] = []
        mean_share = 0.0
        for level in range(1, frame.levels + 1):
            filters = [np.stack(frame.filters(level))] * ndim
            variances = filter_variances(covariance, filters, shape).ravel()
            each = variances / White(1.0).filter_variances(filters).ravel() / 2 ** (level * ndim)
            sigmas += [math.sqrt(v) for v in variances[1:]]
            shares += [float(share) for share in each[1:]]
            mean_share = float(each[0])
        short = shape is not None and isinstance(covariance, White) and min(shape) < SHORT_AXIS
        bands = [
            BandNoise(key, sigma, share, _border_variances(frame, key, shape) if short and shape else ())
            for key, sigma, share in zip(detail_bands(frame.levels, ndim), sigmas, shares, strict=True)
        ]
        return cls(frame, tuple(bands), mean_share, shape)


def _border_variances(frame: Frame, key: BandKey, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return the variance of the coefficients of a band along each axis, over its mean."""
    rows = [frame.filters(key.level)["ad".index(letter)] for letter in key.orientation]
    each = [reflected_variances(r, n) if n < SHORT_AXIS else np.ones(n) for r, n in zip(rows, shape, strict=True)]
    return tuple(v / max(v.mean(), LEAST_GAIN) for v in each)


@dataclass(frozen=True, eq=False)
class Band:
    """What was done to one wavelet band.

    Attributes
    ----------
    wavelet : str
        The wavelet, by its name in PyWavelets.
    level : int
        1 is the finest.
    orientation : str
        A letter per axis: a for mean, d for detail.
    sigma : float
        The noise level of its coefficients.
    threshold : float
        In the same units; infinity means that the band was set to zero.
    kept : float
        The fraction of its coefficients that was not set to zero.
    curve : RiskCurve
        Estimated risk and degrees of freedom of its coefficients against the threshold.
    channel, part : int, optional
        Which channel, and which page or column of a file, if there are several.
    """

    wavelet: str
    level: int
    orientation: str
    sigma: float
    threshold: float
    kept: float
    curve: RiskCurve = field(repr=False)
    channel: int | None = None
    part: int | None = None

    @property
    def name(self) -> str:
        """The part, the channel, the wavelet, the level and the orientation, in words."""
        prefix = f"part {self.part} " if self.part is not None else ""
        prefix += f"channel {self.channel} " if self.channel is not None else ""
        return f"{prefix}{self.wavelet} {self.level} {self.orientation}"


# Given a band's place and its sampled coefficients, all pieces together: the threshold and, if known, its risk curve.
Choice = Callable[[int, Floats], tuple[float, RiskCurve | None]]


@dataclass(frozen=True, eq=False)
class BandThresholds(Expert):
    """Thresholds in a wavelet frame, one per band; the coarsest mean is kept."""

    noise: FrameNoise
    decisions: Decisions
    thresholds: tuple[float, ...]

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.noise.frame.wavelet} thresholds"

    @property
    def reach(self) -> int:
        """How far it reaches."""
        return self.noise.frame.reach

    @property
    def step(self) -> int:
        """The step of its coarsest coefficients."""
        return self.noise.frame.step

    def scaled(self, factor: float) -> BandThresholds:
        """Return the expert with all thresholds times a factor."""
        return replace(self, thresholds=tuple(factor * t for t in self.thresholds))

    def apply(self, batch: Batch, pilot: Floats | None = None, curves: Sequence[RiskCurve] | None = None) -> Estimate:
        """Return the estimate of a batch with its divergence, by risk curves of the bands if these are known."""
        # Thresholds are known, so that pieces need not be looked at together.
        return _run_groups(self.noise, self.decisions, batch, self._choice(curves), 1).estimate

    def value(self, values: Floats, pilot: Floats | None = None) -> Floats:
        """Return the estimate alone; large pieces are treated one after the other, to save memory."""
        shrink, frame = self.decisions.shrink, self.noise.frame
        out = np.empty_like(values)
        for some in grouped(values):
            out[some] = frame.apply(
                values[some], lambda band, c: shrink(c, self.thresholds[band], in_place=True), values.ndim - 2
            )
        return out

    def curves(self, batch: Batch, factors: Sequence[float]) -> list[RiskCurve]:
        """Return the risk curve of every band of a batch of one piece at all thresholds times the factors."""
        found: dict[int, RiskCurve] = {}

        def look(k: int, c: Floats) -> tuple[float, RiskCurve]:
            tried = np.unique([f * self.thresholds[k] for f in (1.0, *factors)])
            found[k] = self.decisions.default_curve(c, tried, self.noise.bands[k].sigma)
            return self.thresholds[k], found[k]

        run_bands(self.noise, self.decisions, batch, look)
        return [found[k] for k in sorted(found)]

    def response(self, y: Floats, directions: Sequence[Floats]) -> list[Floats]:
        """Return how the estimate of y changes along each direction if every decision stays as it is."""
        count, frame = len(y), self.noise.frame

        def shrink(k: int, c: Floats) -> Floats:
            given = c[:count]
            shrunk = self.decisions.shrink(given, self.thresholds[k])
            factor = np.divide(shrunk, given, out=np.zeros_like(given), where=given != 0)
            return np.ascontiguousarray(c * np.concatenate([factor] * (1 + len(directions))))

        out = frame.apply(np.concatenate([y, *directions]), shrink, y.ndim - 2)
        return [out[count * k : count * (k + 1)] for k in range(1, 1 + len(directions))]

    def _choice(self, curves: Sequence[RiskCurve] | None) -> Choice:
        return lambda k, _: (self.thresholds[k], None if curves is None else curves[k])


@dataclass(frozen=True, eq=False)
class BandRun:
    """What a pass over all bands found; the fraction kept is known where the risk curve is."""

    estimate: Estimate
    thresholds: tuple[float, ...]
    kept: tuple[float, ...]
    curves: tuple[RiskCurve | None, ...]


class _Run(NamedTuple):
    """What a pass over all bands of some pieces found: per band the threshold and its risk curve, and what is kept.

    Kept are so many of so many coefficients; none are counted where the risk curve is not known.
    """

    estimate: Estimate
    chosen: dict[int, tuple[float, RiskCurve | None]]
    kept: dict[int, NDArray[np.int64]]


def run_bands(noise: FrameNoise, decisions: Decisions, batch: Batch, choice: Choice) -> BandRun:
    """Shrink every band at the threshold of `choice`, and add up the divergence.

    Several pieces are looked at together; large ones are then shrunk one after the other, to save memory.
    """
    count = len(batch.values)
    if count == 1:
        return _run_groups(noise, decisions, batch, choice, 1)
    chosen = {k: choice(k, c) for k, c in _joint_samples(noise, batch).items()}
    return _run_groups(noise, decisions, batch, lambda k, _: chosen[k], count)


def _run_groups(noise: FrameNoise, decisions: Decisions, batch: Batch, choice: Choice, pieces: int) -> BandRun:
    """Shrink every band, and add up the divergence; so many pieces are sampled together."""
    runs = [_run(noise, decisions, some, choice, pieces) for some in batch.groups()]
    estimates = [run.estimate for run in runs]
    value, divergence = (
        arrays[0] if len(runs) == 1 else np.concatenate(arrays)
        for arrays in ([e.value for e in estimates], [e.divergence for e in estimates])
    )
    order = range(len(noise.bands))
    thresholds, curves = zip(*(runs[0].chosen[k] for k in order), strict=True)
    kept = [np.sum([run.kept[k] for run in runs], axis=0) for k in order]
    shares = tuple(float(some / size) if size else math.nan for some, size in kept)
    return BandRun(Estimate(value, divergence), thresholds, shares, curves)


def _joint_samples(noise: FrameNoise, batch: Batch) -> dict[int, Floats]:
    """Return the sampled coefficients of every band, those of all pieces together."""
    frame, shape, pieces = noise.frame, batch.shape, len(batch.values)
    inside = frame.inside(shape)
    found: dict[int, list[Floats]] = {k: [] for k in range(len(noise.bands))}
    for some in batch.groups():

        def look(k: int, c: Floats, some: Batch = some) -> None:
            found[k] += sample_band(frame, noise.bands[k].key, cropped(c, inside), some.valid, pieces)

        frame.visit(some.values, look, len(shape))
    return {k: join_samples(samples) for k, samples in found.items()}


def _run(noise: FrameNoise, decisions: Decisions, batch: Batch, choice: Choice, pieces: int) -> _Run:
    """Shrink every band of a batch of some of the pieces; if there are several, the choice does not look at any."""
    frame, values, ndim = noise.frame, batch.values, len(batch.shape)
    # Where errors have weights it matters where the divergence arises; else its mean is enough.
    local = batch.weights is not None and isinstance(frame, Undecimated)
    shape = (len(values), *(batch.shape if local else (1,) * ndim))
    divergence = np.full(shape, noise.mean_share * values.shape[1], values.dtype if local else np.float64)
    inside = frame.inside(batch.shape)
    chosen: dict[int, tuple[float, RiskCurve | None]] = {}
    counts: dict[int, NDArray[np.int64]] = {}

    def shrink(k: int, coefficients: Floats) -> Floats:
        band, c = noise.bands[k], cropped(coefficients, inside)
        samples = sample_band(frame, band.key, c, batch.valid, pieces)
        chosen[k] = t, curve = choice(k, samples[0])
        for piece, sample, out in zip(c, samples, divergence, strict=True):
            known = curve
            if known is None or pieces > 1 or decisions.named:
                # Whatever picked the threshold, its divergence is estimated by the default method, piece by piece.
                known = decisions.default_curve(sample, np.array([t]), band.sigma)
            per_entry = band.share * known.dof[np.searchsorted(known.thresholds, t)] / known.size
            if band.border and batch.shape == noise.shape:
                per_entry = divergence_with_borders(band, piece, t, per_entry)
            if local:
                spread_divergence(frame, band, piece, t, per_entry, out)
            else:
                out += per_entry
        shrunk = decisions.shrink(coefficients, t, in_place=True)
        counts[k] = np.zeros(2, np.int64)
        if curve is not None:  # tiles are not asked what they keep
            kept = at_valid_centres(frame, band.key, cropped(shrunk, inside), batch.valid, None)
            # Far faster than counting floats.
            counts[k] = np.array([[np.count_nonzero(some != 0), some.size] for some in kept]).sum(axis=0)
        return shrunk

    value = frame.apply(values, shrink, ndim)
    return _Run(Estimate(value, divergence), chosen, counts)


def divergence_with_borders(band: BandNoise, c: Floats, threshold: float, per_entry: float) -> float:
    """Return the divergence of a band per entry, given what it were if the noise variance were its mean everywhere.

    Reflection changes the variance near a border. The smooth part of the divergence arises at the coefficients that are
    kept, the jump at those near the threshold. Coefficients of noise come near it mostly where the variance is large.
    """
    size = np.sqrt(np.square(c).sum(axis=0))
    kept, near = size >= threshold, np.abs(size - threshold) < NEAR_JUMP * band.sigma
    smooth = band.share * len(c) * float(kept.mean())
    return smooth * _mean_variance(band, kept) + (per_entry - smooth) * _mean_variance(band, near)


def _mean_variance(band: BandNoise, chosen: NDArray[np.bool_]) -> float:
    """Return the noise variance of the chosen coefficients over that of all; 1 if none is chosen."""
    total: Any = chosen.astype(np.float64)
    for variances in band.border:
        total = np.tensordot(variances, total, 1)
    return float(total) / max(int(np.count_nonzero(chosen)), 1) or 1.0


def spread_divergence(
    frame: Frame, band: BandNoise, c: Floats, threshold: float, per_entry: float, out: Floats
) -> None:
    """Add a divergence, given per entry, to `out` at the entries where it arises.

    The smooth part goes to coefficients that are kept, the jump to those near the threshold.
    """
    kept, near = np.empty((2, *out.shape), bool)
    for rows in slabs(out.shape):
        size = np.abs(c[0, rows]) if len(c) == 1 else np.sqrt(np.square(c[:, rows]).sum(axis=0))
        kept[rows], near[rows] = size >= threshold, np.abs(size - threshold) < NEAR_JUMP * band.sigma
    for axis, n in enumerate(out.shape):
        index = reflect_index(2 * np.arange(n) - frame.centres(band.key.level, n), n)
        kept, near = np.take(kept, index, axis), np.take(near, index, axis)
    each = band.share * len(c)
    jump = (per_entry - each * kept.mean()) / max(near.mean(), 1 / near.size)
    for rows in slabs(out.shape):
        out[rows] += each * kept[rows] + jump * near[rows]
