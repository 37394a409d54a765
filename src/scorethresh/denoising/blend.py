"""Estimates in redundant frames, the traces that their risk needs, and the blend of least estimated risk.

Arrays are batches of pieces of the data: (pieces, parts, *shape). Parts, such as the real and the imaginary one, share
decisions. `seen` is how much entries count, (pieces, *shape): 0 if they are no noisy data. Thresholds go by those that
count at all; it may be booleans.

The risk of an estimate F of y, with noise of covariance S, is estimated by
``||y - F||^2 - tr S + 2 tr(S F')``, the derivative taken to include the jumps; its last term is called the trace.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import reflect_index
from .._validate import Array
from ..frames.transforms import Decimated, Floats, Undecimated, Windows, cropped, details, filled
from ..noise.covariance import Covariance, White, reflected_variance, reflected_variances
from ..risk.curve import RiskCurve
from ..risk.methods import Method, Selector, as_method
from ..rules import Hard, Rule, as_rule
from ..sample.magnitudes import default_thresholds
from ..select.threshold import DEFAULT, risk_curve, select_threshold

__all__ = ["Band"]

# Coefficients of a band from which on SCORE picks as well as the default method, ten times faster; and how many are
# enough to choose a threshold, at the two finest levels and at coarser ones, where neighbours tell much the same.
_MANY = 1 << 14
_PLENTY = 1 << 16

# Along axes of fewer entries, the noise behind a wavelet varies by reflection.
_FEW, _LEAST = 64, 1e-8

# Windows: the threshold over the noise level, and the strength of the guided stage. Chosen on camera, coins and brick.
_THRESHOLD = 2.7
_STRENGTH = 0.7

# The random step of the derivative by differences, over the noise, and the most entries that it is taken at.
_STEP = 0.05
_PROBED = 1 << 17
# Large windows, which are not at every position, may lie twice as far apart for it.
_SPARSER = 2
# Data are often made with seed 0; noise that is drawn must not be theirs.
_SEED = 20130522
# Coefficients so near to a threshold, over the noise level, are where it is decided.
_NEAR = 0.25
_PATCH = {1: 1 << 14, 2: 256, 3: 64}

Seen = NDArray[Any] | None
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, eq=False)
class Band:
    """What was done to one band.

    Attributes
    ----------
    name : str
        The wavelet, the level (1 is the finest) and a letter per axis: a for mean, d for detail.
    sigma : float
        The noise level of its coefficients.
    threshold : float
        In the same units; infinity means that the band was set to zero.
    kept : float
        The fraction of its coefficients that was not set to zero.
    curve : RiskCurve
        Estimated risk and degrees of freedom of its coefficients against the threshold.
    """

    name: str
    sigma: float
    threshold: float
    kept: float
    curve: RiskCurve = field(repr=False)


@dataclass(frozen=True, eq=False)
class Piece:
    """An estimate, and its trace per entry, summed over the parts: (pieces, *shape), or (pieces, 1, ...)."""

    estimate: Floats
    trace: Floats

    def total(self, seen: Seen) -> float:
        """Return the sum of the trace."""
        whole = np.broadcast_to(self.trace, self.estimate[:, 0].shape)
        return float((whole if seen is None else whole * seen).sum(dtype=np.float64))


class Wavelets:
    """A wavelet frame, its noise levels, and the way to choose the threshold of a band."""

    def __init__(
        self,
        frame: Undecimated | Decimated,
        noise: Covariance,
        ndim: int,
        rule: str | Rule = "hard",
        method: str | Method | Selector | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self.frame, self.ndim, self.method = frame, ndim, method
        self.rule: Rule = as_rule(rule)
        self.names = [f"{frame.wavelet} {level} {key}" for level, key in details(frame.levels, ndim)]
        # Per band: the noise level, and how much of the noise covariance its coefficients hold per entry of the data.
        self.sigmas: list[float] = []
        self.weights: list[float] = []
        for level in range(1, frame.levels + 1):
            filters = [np.stack(frame.filters(level))] * ndim
            variances = _variances(noise, filters, shape, 2 ** (frame.levels + 1)).ravel()
            weights = variances / White(1.0).filter_variances(filters).ravel() / 2 ** (level * ndim)
            self.sigmas += [math.sqrt(v) for v in variances[1:]]
            self.weights += list(weights[1:])
            self.mean_weight = float(weights[0])
        # Of data with short axes, per band and axis: by how much the variance of coefficients differs along it.
        self.uneven: list[list[Array]] = []
        if shape is not None and isinstance(noise, White) and min(shape) < _FEW:
            for level, key in details(frame.levels, ndim):
                rows = [frame.filters(level)["ad".index(letter)] for letter in key]
                each = [reflected_variances(r, n) if n < _FEW else np.ones(n) for r, n in zip(rows, shape, strict=True)]
                self.uneven.append([v / max(v.mean(), _LEAST) for v in each])
        self.shape = shape

    def choose(self, y: Floats, seen: Seen = None) -> tuple[list[Band], Piece]:
        """Choose the threshold of every band of a batch by itself, and apply them."""

        def choose(k: int, c: Floats) -> tuple[float, RiskCurve]:
            if c.shape[1] > 1:
                curve = self._curve(k, c, default_thresholds(c.size, self.sigmas[k]))
                return float(curve.thresholds[np.argmin(curve.risk)]), curve
            selection = select_threshold(c, sigma=self.sigmas[k], rule=self.rule, method=self._method(c))
            return selection.threshold, selection.curve

        return self._run(y, choose, seen)

    def choose_one(self, y: Floats, seen: Seen = None) -> tuple[list[Band], Piece]:
        """Choose one threshold for all bands of a batch, over their noise levels, and apply it."""
        grid = default_thresholds(y.size, 1.0)
        inside = self.frame.inside(y.shape[2:])
        curves: dict[int, RiskCurve] = {}

        def look(k: int, c: Floats) -> Floats:
            curves[k] = self._curve(k, _joined(self._looked_at(k, cropped(c, inside), seen)), grid * self.sigmas[k])
            return c

        self.frame.apply(y, look, self.ndim)
        # The risks of all coefficients over the noise in them, each band with its share of the entries.
        total = sum(self.weights[k] * c.risk / (self.sigmas[k] ** 2 * c.size) for k, c in curves.items())
        t = float(grid[np.argmin(total)])
        return self._run(y, lambda k, _: (t * self.sigmas[k], curves[k]), seen)

    def apply(self, y: Floats, bands: Sequence[Band], seen: Seen = None, risk: bool = True) -> Piece:
        """Apply thresholds that were chosen before; without `risk` the trace is left out."""
        return self._run(y, lambda k, _: (bands[k].threshold, None), seen, risk)[1]

    def _run(
        self,
        y: Floats,
        choice: Callable[[int, Floats], tuple[float, RiskCurve | None]],
        seen: Seen,
        risk: bool = True,
    ) -> tuple[list[Band], Piece]:
        """Treat every band at the threshold that `choice` gives for those of its coefficients that are looked at."""
        # Where entries count by more or less, it matters where the trace arises.
        local = seen is not None and seen.dtype != bool and isinstance(self.frame, Undecimated)
        trace = np.full((len(y), *(y.shape[2:] if local else (1,) * self.ndim)), self.mean_weight * y.shape[1])
        bands: dict[int, Band] = {}
        inside = self.frame.inside(y.shape[2:])

        def shrink(k: int, c: Floats) -> Floats:
            few = self._looked_at(k, cropped(c, inside), seen)
            t, curve = choice(k, _joined(few))
            for i, some in enumerate(few if risk else []):
                # Whatever picks the threshold, its risk is what the blend and the prediction go by.
                known = curve
                if known is None or len(c) > 1 or self.method is not None:
                    known = self._curve(k, some, np.array([t]), _default_method(some))
                dof = known.dof[np.searchsorted(known.thresholds, t)]
                rate = self.weights[k] * dof / known.size
                if self.uneven and y.shape[2:] == self.shape:
                    rate *= self._favoured(k, cropped(c, inside)[i], t)
                trace[i] += self._spread(k, cropped(c, inside)[i], t, rate) if local else rate
            out = self._ruled(c, t)
            if curve is not None:
                kept = _joined(self._shown(k, cropped(out, inside), seen))
                bands[k] = Band(self.names[k], self.sigmas[k], t, np.count_nonzero(kept) / kept.size, curve)
            return out

        estimate = self.frame.apply(y, shrink, self.ndim)
        return [bands[k] for k in sorted(bands)], Piece(estimate, trace)

    def _favoured(self, k: int, c: Floats, threshold: float) -> float:
        """Return how much more noise there is where coefficients are kept: near a border it varies, by reflection."""
        kept = (np.square(c).sum(axis=0) >= threshold**2).astype(np.float64)
        count = kept.sum()
        for variances in self.uneven[k]:
            kept = np.tensordot(variances, kept, 1)
        return float(kept / count) if count else 1.0

    def _spread(self, k: int, c: Floats, threshold: float, rate: float) -> Floats:
        """Return a trace, given per entry, where it arises: at coefficients that are kept, and at those at the jump."""
        size = np.sqrt(np.square(c).sum(axis=0))
        kept, near = size >= threshold, np.abs(size - threshold) < _NEAR * self.sigmas[k]
        for axis, n in enumerate(kept.shape):
            index = reflect_index(2 * np.arange(n) - self.frame.middles(self._level(k), n), n)
            kept, near = np.take(kept, index, axis), np.take(near, index, axis)
        each = self.weights[k] * len(c)
        jump = (rate - each * kept.mean()) / max(near.mean(), 1 / near.size)
        spread: Floats = each * kept + jump * near
        return spread

    def _level(self, k: int) -> int:
        return k // ((1 << self.ndim) - 1) + 1

    def correction(self, drawn: Drawn, bands: Sequence[Band]) -> float:
        """Return by how much the trace falls short for gaps that are filled with what is around."""
        if drawn.spread is drawn.noise:
            return 1.0
        count = len(drawn.y)

        def shrink(k: int, c: Floats) -> Floats:
            given = c[:count]
            factor = np.divide(
                self._ruled(given, bands[k].threshold), given, out=np.zeros_like(given), where=given != 0
            )
            return np.ascontiguousarray(c * np.concatenate([factor] * 3))

        answers = self.frame.apply(np.concatenate([drawn.y, drawn.spread, drawn.noise]), shrink, self.ndim)
        return drawn.ratio(answers[count : 2 * count], answers[2 * count :])

    def _ruled(self, c: Floats, threshold: float) -> Floats:
        if isinstance(self.rule, Hard) and c.shape[1] == 1:  # the rule without its checks
            return np.where(np.abs(c) >= c.dtype.type(threshold), c, c.dtype.type(0))
        if c.shape[1] == 1:
            # The loops read raw memory: a rule of the user's may return another dtype or layout.
            out: Floats = np.ascontiguousarray(self.rule(c, threshold), c.dtype)
            return out
        norm = _norms(c)
        factor = np.divide(self.rule(norm, threshold), norm, out=np.zeros_like(norm), where=norm > 0)
        scaled: Floats = np.ascontiguousarray(c * factor[:, None], c.dtype)
        return scaled

    def _curve(self, k: int, c: Floats, thresholds: Array, method: str | Method | Selector | None = None) -> RiskCurve:
        if c.shape[1] > 1:
            return block_curve(_norms(c), thresholds, self.sigmas[k], c.shape[1])
        method = method or self._method(c)
        if not isinstance(as_method(method), Method):  # it picks a threshold without a risk
            method = DEFAULT
        return risk_curve(c, thresholds, sigma=self.sigmas[k], rule=self.rule, method=method)

    def _looked_at(self, k: int, c: Floats, seen: Seen) -> list[Floats]:
        """Return what a piece shows of every other coefficient, or of fewer, where there are plenty.

        Neighbours tell much the same.
        """
        fine = k < 2 * (2**self.ndim - 1)
        q = 1
        while c.size >> (q.bit_length() * self.ndim) >= (_PLENTY if fine else _MANY):
            q *= 2
        return self._shown(k, c, seen, [q if n >= 8 * q else 1 for n in c.shape[2:]])

    def _shown(self, k: int, c: Floats, seen: Seen, steps: Sequence[int] | None = None) -> list[Floats]:
        """Return, of each piece, coefficients so many steps apart in the middle of which an entry is seen, or all."""
        steps = steps or [1] * self.ndim
        thin = cropped(c, [slice(None, None, step) for step in steps])
        if seen is None:
            return [thin[i : i + 1] for i in range(len(thin))]
        for axis, (n, step) in enumerate(zip(c.shape[2:], steps, strict=True), start=1):
            middles = self.frame.middles(self._level(k), n)[::step]
            seen = np.take(seen, reflect_index(middles, seen.shape[axis]), axis)
        return [piece[None, :, some > 0 if some.any() else ...] for piece, some in zip(thin, seen, strict=True)]

    def _method(self, c: Floats) -> str | Method | Selector:
        return self.method or _default_method(c)


def _default_method(c: Floats) -> str:
    return "score" if c.size >= _MANY else DEFAULT


def _variances(noise: Covariance, filters: Sequence[Array], shape: tuple[int, ...] | None, short: int) -> Array:
    """Return the variances behind filters, with what reflection does to them along axes of fewer entries than short.

    Along longer ones it does next to nothing; a spectrum is wrapped around short axes as it is.
    """
    variances = noise.filter_variances(filters)
    if shape is None or not isinstance(noise, White):
        return variances
    gains = []
    for rows, n in zip(filters, shape, strict=True):
        energy = (rows**2).sum(axis=1)
        gains.append(np.maximum((reflected_variance(rows, n) if n < short else energy) / energy, _LEAST))
    gain: Array = functools.reduce(np.multiply.outer, gains)
    return variances * gain


def _joined(some: Sequence[Floats]) -> Floats:
    """Return coefficients of several pieces as those of one."""
    if len(some) == 1:
        return some[0]
    return np.concatenate([c.reshape(1, c.shape[1], -1) for c in some], axis=-1)


def _norms(c: Floats) -> Floats:
    norm: Floats = np.sqrt(np.square(c).sum(axis=1))
    return norm


def block_curve(norms: Floats, thresholds: Array, sigma: float, parts: int) -> RiskCurve:
    """Return the risk of keeping or killing vectors by their norm, with the jump estimated by a boxcar kernel.

    The degrees of freedom are ``parts 1(r > t) + t delta(r - t)`` in the mean, r the norm.
    """
    r = np.sort(norms, axis=None).astype(np.float64)
    energy = np.concatenate([[0.0], np.cumsum(r**2)])
    h = np.minimum(sigma * 6 * r.size ** (-1 / 3), sigma / 2)
    killed = np.searchsorted(r, thresholds)
    near = np.searchsorted(r, thresholds + h) - np.searchsorted(r, thresholds - h)
    jump = np.where(np.isfinite(thresholds), thresholds, 0.0) * near / (2 * h)
    dof = parts * (r.size - killed) + jump
    risk = energy[killed] - parts * r.size * sigma**2 + 2 * sigma**2 * dof
    stderr = np.full(dof.shape, sigma**2 * math.sqrt(2 * parts * r.size))
    return RiskCurve(thresholds, risk, dof, stderr, r.size, sigma)


class Pieces:
    """The estimates that are blended: wavelets, and shrinkage guided by thresholds in wavelets and windows."""

    def __init__(self, waves: Sequence[Wavelets], noise: Covariance, shape: tuple[int, ...]) -> None:
        self.waves, self.noise = waves, noise
        self.first, self.second = (
            [(w, _variances(noise, w.filters(), shape, w.block[0])) for w in some if w.block[0] <= max(*shape, _SHORT)]
            for some in _WINDOWS[len(shape)]
        )
        self.names = [f"{w.frame.wavelet} thresholds" for w in waves]
        self.names += [f"guided windows of {w.block[0]}" for w, _ in self.second]

    def choose(self, y: Floats, seen: Seen) -> tuple[list[list[Band]], list[Piece]]:
        """Choose the thresholds for a batch; return them and all pieces, the guided ones last."""
        *chosen, hard = _together(
            lambda run: run(), [*(lambda w=w: w.choose(y, seen) for w in self.waves), lambda: self._hard(y)]
        )
        bands, pieces = zip(*chosen, strict=True)
        first = [*pieces, *hard]
        self.shares = np.full(len(first), 1 / len(first))
        if y.ndim == 3:  # on signals, windows and wavelets differ far more than on images
            self.shares = blend_weights(y, first, [piece.total(seen) for piece in first], seen)
        return list(bands), [*pieces, *self._guided(y, self._guide(first))]

    def apply(self, y: Floats, bands: Sequence[Sequence[Band]], seen: Seen) -> list[Piece]:
        """Return all pieces of a batch, with thresholds that were chosen before."""
        pieces = [wave.apply(y, b, seen) for wave, b in zip(self.waves, bands, strict=True)]
        return [*pieces, *self._guided(y, self._guide([*pieces, *self._hard(y)]))]

    def _hard(self, y: Floats) -> list[Piece]:
        """Return the estimates by thresholds in windows, which only serve to guide."""
        return [_batched(lambda v, w=w, var=var: w.hard(v, var, _THRESHOLD), y) for w, var in self.first]

    def _guide(self, pieces: Sequence[Piece]) -> Floats:
        out = np.zeros_like(pieces[0].estimate)
        for share, piece in zip(self.shares, pieces, strict=True):
            if share > 0:
                out += out.dtype.type(share) * piece.estimate
        return out

    def _guided(self, y: Floats, guide: Floats, sparser: int = 1) -> list[Piece]:
        """Return the pieces of the second stage, linear in y for a given guide."""
        windows = [(Windows(w.block, w.step * sparser if w.step > 1 else 1), variance) for w, variance in self.second]
        return _together(
            lambda window: _batched(lambda v, g: window[0].guided(v, g, window[1], _STRENGTH), y, guide), windows
        )

    def corrections(self, y: Floats, bands: Sequence[Sequence[Band]], seen: Seen) -> list[float]:
        """Return by how much the traces of the pieces fall short: the guide depends on y as well, and so do gaps.

        The derivative along one draw of noise is taken by differences, with and without a change of the guide, on a
        part of the data. Their ratio varies far less than either.
        """
        drawn = Drawn.of(y, self.noise, seen)

        def moved(step: float) -> tuple[Floats, list[Piece]]:
            z = drawn.y + drawn.y.dtype.type(step) * drawn.spread
            pieces = [wave.apply(z, b, risk=False) for wave, b in zip(self.waves, bands, strict=True)]
            guide = self._guide([*pieces, *self._hard(z)])
            return guide, self._guided(z, guide, _SPARSER)

        (one, ahead), (two, behind) = _together(moved, (_STEP, -_STEP))
        ratios = [wave.correction(drawn, b) for wave, b in zip(self.waves, bands, strict=True)]
        for a, b, c in zip(ahead, behind, self._guided(drawn.noise, (one + two) / 2, _SPARSER), strict=True):
            ratios.append(drawn.ratio((a.estimate - b.estimate) / (2 * _STEP), c.estimate))
        return ratios


@dataclass(frozen=True, eq=False)
class Drawn:
    """A part of the data, and noise for it, drawn: where it counts, and with gaps filled as those of the data were."""

    y: Floats
    noise: Floats
    counted: Floats
    spread: Floats

    @classmethod
    def of(cls, y: Floats, noise: Covariance, seen: Seen) -> Drawn:
        """Draw the noise."""
        part = _patches(y, _PROBED)
        drawn = noise.sample(part.shape, np.random.default_rng(_SEED)).astype(part.dtype)
        if seen is None:
            return cls(part, drawn, drawn, drawn)
        shown = _patches(seen[:, None], _PROBED)
        if not shown.any():
            shown = np.ones_like(shown)
        spread = drawn
        if not shown.all():
            pairs = zip(drawn, shown, strict=True)
            spread = np.concatenate([filled(a[None], some[0] == 0) if some.any() else a[None] for a, some in pairs])
        return cls(part, drawn, drawn * shown, spread)

    def ratio(self, moved: Floats, alone: Floats) -> float:
        """Return how much more of the noise comes back in one answer to it than in another."""
        return min(max(_dot(self.counted, moved) / max(_dot(self.counted, alone), 1e-300), 0.5), 20.0)


def _together(run: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """Map in threads: the loops release the interpreter's lock."""
    if len(items) < 2:
        return list(map(run, items))
    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(run, items))


# By the number of axes: the windows of the first and of the second stage. Data smaller than a window do without it,
# unless it is a short one.
_WINDOWS: dict[int, tuple[list[Windows], list[Windows]]] = {
    1: ([Windows((128,), 8), Windows((1024,), 64)],) * 2,
    2: ([Windows((8, 8))], [Windows((8, 8)), Windows((16, 16), 2)]),
    3: ([Windows((4, 4, 4))], [Windows((4, 4, 4))]),
}
_SHORT = 16


def _batched(run: Callable[..., tuple[Floats, Floats]], *batches: Floats) -> Piece:
    estimates, traces = zip(*(run(*pieces) for pieces in zip(*batches, strict=True)), strict=True)
    return Piece(np.stack(estimates), np.stack(traces))


def _patches(y: Floats, size: int) -> Floats:
    """Return patches spread evenly over the pieces, as a batch: about `size` entries per part in all, or y itself."""
    shape = y.shape[2:]
    if math.prod(shape) * len(y) <= 2 * size:
        return y
    side = _PATCH[len(shape)]
    sides = [min(side, n) for n in shape]
    each = (size / len(y) / math.prod(sides)) ** (1 / max(sum(n > side for n in shape), 1))
    starts = [np.linspace(0, n - m, max(round(each), 1) if n > m else 1) for n, m in zip(shape, sides, strict=True)]
    corners = itertools.product(*starts)
    return np.concatenate(
        [cropped(y, [slice(int(i), int(i) + m) for i, m in zip(at, sides, strict=True)]) for at in corners]
    )


def _dot(a: Floats, b: Floats) -> float:
    return float(np.einsum("i,i->", a.reshape(-1), b.reshape(-1), dtype=np.float64))


def blend_weights(y: Floats, pieces: Sequence[Piece], traces: Sequence[float], seen: Seen = None) -> Array:
    """Return the weights, none negative and with sum 1, of the blend of least estimated risk.

    Up to a constant the risk is ``|sum a_k r_k|^2 + 2 sum a_k trace_k``, with residuals ``r_k = F_k - y``. The few sets
    of weights that may be positive are all tried.
    """
    root = 1.0 if seen is None else np.sqrt(seen[:, None]).astype(y.dtype)
    residuals = [(p.estimate - y) * root for p in pieces]
    count = len(pieces)
    gram = np.empty((count, count))
    for i, j in itertools.combinations_with_replacement(range(count), 2):
        gram[i, j] = gram[j, i] = _dot(residuals[i], residuals[j])
    best, least = np.full(count, 1 / count), np.inf
    for some in itertools.chain.from_iterable(itertools.combinations(range(count), n + 1) for n in range(count)):
        chosen = list(some)
        # Stationary points of |sum a r|^2 + 2 sum a trace under sum a = 1.
        system = np.ones((len(some) + 1, len(some) + 1))
        system[:-1, :-1] = gram[np.ix_(chosen, chosen)]
        system[-1, -1] = 0
        a = np.linalg.lstsq(system, np.append(-np.asarray(traces)[chosen], 1.0), rcond=None)[0][:-1]
        if a.min() < 0 or not math.isclose(a.sum(), 1, rel_tol=1e-6):
            continue
        risk = a @ gram[np.ix_(chosen, chosen)] @ a + 2 * a @ np.asarray(traces)[chosen]
        if risk < least:
            best, least = np.zeros(count), float(risk)
            best[chosen] = a
    return best
