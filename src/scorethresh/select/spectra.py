"""What to do with singular values: the rules, and the threshold of least estimated risk."""

from __future__ import annotations

import abc
import dataclasses
import enum
from dataclasses import dataclass

import numpy as np

from .._validate import Array
from ..noise.bulk import fit_bulk
from ..risk.curve import RiskCurve
from ..risk.plug_in import BulkModel, WhiteBulk, empirical_bulk, plug_in_risk
from ..risk.singular_values import Shape, SpectralCurve, hard_curve, shrink_curve, shrunk_values, soft_curve

__all__ = ["RULES", "Decision", "RankStatus", "SpectralRule", "decide", "decide_correlated", "decide_partial"]

# Thresholds are tried this far apart, and this far beyond the edge, in units of the noise level of an entry. The risk
# is smooth on the scale of the kernel, which is four steps wide. Beyond, only gaps between the values matter.
GRID_STEP = 0.25
GRID_MARGIN = 6.0
# Risks that differ by less are equal, in units of the noise variance; their standard error is the root of the number of
# entries. In a wide gap between singular values only the tail of the kernel differs.
FLAT = 1e-3


class RankStatus(enum.StrEnum):
    """What was found among the singular values; `remedy` says what to do about it.

    Examples
    --------
    >>> RankStatus.NOISE_ONLY.remedy
    'No singular value stands out from the noise, and zero is the best estimate. Check that sigma is not too large.'
    """

    LOW_RANK = "low rank"
    NOISE_ONLY = "noise only"
    FULL_RANK = "full rank"
    NO_NOISE = "no noise"
    LEVEL_UNKNOWN = "noise level unknown"

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _REMEDIES[self]


_REMEDIES = {
    RankStatus.LOW_RANK: "Nothing: some singular values stand out from the noise, the others are removed.",
    RankStatus.NOISE_ONLY: (
        "No singular value stands out from the noise, and zero is the best estimate. Check that sigma is not too large."
    ),
    RankStatus.FULL_RANK: (
        "All singular values are kept, so nothing is gained. Check that sigma is not too small. If it is right, the "
        "matrix is not of low rank."
    ),
    RankStatus.NO_NOISE: (
        "The noise is lost in the rounding of the largest singular value, or there is none, so nothing is removed. "
        "Check sigma."
    ),
    RankStatus.LEVEL_UNKNOWN: (
        "The noise level cannot be told from the singular values, so rank and risk are a guess. If it is known, pass "
        "sigma."
    ),
}


class SpectralRule(abc.ABC):
    """What is done to singular values, in units of the noise level of an entry."""

    @abc.abstractmethod
    def curve(self, s: Array, thresholds: Array, shape: Shape) -> SpectralCurve:
        """Score the rule at many thresholds."""

    @abc.abstractmethod
    def values(self, s: Array, threshold: float, shape: Shape) -> tuple[Array, Array]:
        """Return what the leading values are replaced by, and the derivatives. The other values become 0."""

    @abc.abstractmethod
    def plug_in(self, s: Array, bulk: BulkModel) -> tuple[Array, int]:
        """Return what values are replaced by if they are kept, and how many are, from what noise does to them."""

    def pick(self, s: Array, curve: SpectralCurve, shape: Shape) -> int:
        """Return the index of the threshold to take: that of least risk, and the lowest one where the risk is flat."""
        risk = curve.risk(shape)
        return int(np.argmax(risk <= risk.min() + FLAT))


class HardValues(SpectralRule):
    """Keep or kill."""

    def curve(self, s: Array, thresholds: Array, shape: Shape) -> SpectralCurve:
        """Score the rule at many thresholds, jumps included."""
        return hard_curve(s, thresholds, shape)

    def values(self, s: Array, threshold: float, shape: Shape) -> tuple[Array, Array]:
        """Return the kept values as they are."""
        kept = s[s >= threshold]
        return kept, np.ones_like(kept)

    def plug_in(self, s: Array, bulk: BulkModel) -> tuple[Array, int]:
        """Keep values whose error is less than their signal."""
        return s, int(np.count_nonzero(bulk.overlap(s) > s / 2))


class SoftValues(SpectralRule):
    """Lower by the threshold."""

    def curve(self, s: Array, thresholds: Array, shape: Shape) -> SpectralCurve:
        """Score the rule at many thresholds."""
        return soft_curve(s, thresholds, shape)

    def values(self, s: Array, threshold: float, shape: Shape) -> tuple[Array, Array]:
        """Return the values above the threshold, lowered by it."""
        kept = s[s > threshold]
        return kept - (threshold if kept.size else 0.0), np.ones_like(kept)

    def plug_in(self, s: Array, bulk: BulkModel) -> tuple[Array, int]:
        """Refuse: the best threshold often lies inside of the bulk, of which the spikes say nothing."""
        msg = (
            "rule='soft' needs white noise and all singular values. Use rule='shrink', or leave out noise and max_rank."
        )
        raise ValueError(msg)


class ShrunkValues(SpectralRule):
    """Shrink those above the edge of the noise, each by its own amount."""

    def curve(self, s: Array, thresholds: Array, shape: Shape) -> SpectralCurve:
        """Score the rule at the edge and between the values above it, jumps included."""
        between = (s[1:] + s[:-1]) / 2
        tried = np.concatenate([[shape.edge], np.sort(between[between > shape.edge]), [np.inf]])
        return shrink_curve(s, tried, shape)

    def values(self, s: Array, threshold: float, shape: Shape) -> tuple[Array, Array]:
        """Return the shrunk values."""
        return shrunk_values(s, int(np.count_nonzero(s >= threshold)), shape)

    def pick(self, s: Array, curve: SpectralCurve, shape: Shape) -> int:
        """Return 0: the edge, whatever the risk. Values beyond it are shrunk, and cost little where they are noise."""
        return 0

    def plug_in(self, s: Array, bulk: BulkModel) -> tuple[Array, int]:
        """Replace values above the edge by their overlaps."""
        values = bulk.overlap(s)
        return values, int(np.count_nonzero(values))


RULES: dict[str, SpectralRule] = {"hard": HardValues(), "shrink": ShrunkValues(), "soft": SoftValues()}


@dataclass(frozen=True, eq=False)
class Decision:
    """What to do with the singular values of one matrix.

    Attributes
    ----------
    values, slopes : ndarray
        What the leading singular values become, and the derivative of each by its own.
    threshold, risk, dof, stderr : float
        In units of y; risk and degrees of freedom over all entries and parts.
    sigma : float
        Noise level of one part.
    status : RankStatus
        What was found.
    reason : str
        Why it cannot be trusted, if it cannot.
    curve : RiskCurve
        All thresholds that were tried.
    """

    values: Array
    slopes: Array
    threshold: float
    risk: float
    dof: float
    stderr: float
    sigma: float
    status: RankStatus
    reason: str
    curve: RiskCurve


def decide(s: Array, shape: Shape, sigma: float | None, rule: SpectralRule) -> Decision:
    """Choose the threshold of least estimated risk for white noise.

    Parameters
    ----------
    s : ndarray
        All singular values, descending.
    shape : Shape
        Of the matrix.
    sigma : float, optional
        The noise level of one part. By default it is read off the bulk.
    rule : SpectralRule
        What is done to the values.

    Returns
    -------
    Decision
        With the whole curve.
    """
    reason = ""
    if sigma is None:
        fit = fit_bulk(s, shape.m, shape.n)
        unit, reason = fit.sigma, fit.reason
        rounding = max(shape.m, shape.n) * np.finfo(float).eps * s[0]
    else:
        unit, rounding = float(sigma * np.sqrt(shape.parts)), np.finfo(float).eps * s[0]
    if unit <= rounding:
        return _noise_free(s, shape)
    z = s / unit
    with np.errstate(over="ignore"):
        spectral = rule.curve(z, _thresholds(z, shape), shape)
        j = rule.pick(z, spectral, shape)
        values, slopes = rule.values(z, float(spectral.thresholds[j]), shape)
        curve = _in_units_of_y(spectral, shape, unit)
    status = RankStatus.LEVEL_UNKNOWN if reason else _status(int(np.count_nonzero(values)), s.size)
    return _at(curve, j, unit * values, slopes, status, reason)


def decide_correlated(s: Array, shape: Shape, rule: SpectralRule, bound: int | None = None) -> Decision:
    """Choose for noise of unknown covariance, from the singular values alone. `bound` is the largest rank."""
    bulk = empirical_bulk(s, shape.m, shape.n, bound)
    rms = float(np.sqrt((bulk.values**2).sum() / shape.entries))
    if not rms > shape.m * shape.n * np.finfo(float).eps * s[0]:
        return _noise_free(s, shape)
    # The energy of the noise is not known well enough to subtract it: signal that hides near the edge is left out.
    signal = float(bulk.energy(s[bulk.overlap(s) > s / 2]).sum())
    return _plugged_in(s, shape.entries * rms**2 + signal, shape, rms, (bulk, 1.0), rule)


def decide_partial(s: Array, energy: float, shape: Shape, sigma: float | None, rule: SpectralRule) -> Decision:
    """Choose for white noise from some leading singular values and the energy of all; arguments as in `decide`."""
    unit, rank = (sigma * np.sqrt(shape.parts), 0) if sigma is not None else _level_of_rest(s, energy, shape)
    if not unit > shape.m * shape.n * np.finfo(float).eps * s[0]:
        return _noise_free(s, shape)
    decision = _plugged_in(s, energy, shape, unit, (WhiteBulk(shape.m, shape.n), unit), rule)
    if rank < s.size:
        return decision
    reason = f"all {s.size} computed ones stand out, and what is left may hold more signal; raise max_rank"
    return dataclasses.replace(decision, status=RankStatus.LEVEL_UNKNOWN, reason=reason)


def _at(curve: RiskCurve, index: int, values: Array, slopes: Array, status: RankStatus, reason: str = "") -> Decision:
    """Return the decision for one threshold of a curve."""
    t, risk, dof, stderr = (float(a[index]) for a in (curve.thresholds, curve.risk, curve.dof, curve.stderr))
    return Decision(values, slopes, t, risk, dof, stderr, curve.sigma, status, reason, curve)


def _plugged_in(
    s: Array, energy: float, shape: Shape, unit: float, scaled: tuple[BulkModel, float], rule: SpectralRule
) -> Decision:
    """Decide by what a model of the bulk says of the values; `scaled` is the model, and its units in those of y."""
    bulk, scale = scaled
    z, signal = s / scale, (energy - shape.entries * unit**2) / scale**2
    values, rank = rule.plug_in(z, bulk)
    ranks = np.arange(s.size, -1, -1)
    thresholds = np.concatenate([s[-1:], (s[:-1] + s[1:])[::-1] / 2, [np.inf]])
    risks = scale**2 * np.array([plug_in_risk(z[:k], values[:k], bulk, signal) for k in ranks])
    residual = energy - scale**2 * np.array([(2 * z[:k] * values[:k] - values[:k] ** 2).sum() for k in ranks])
    dof = (risks - residual + shape.entries * unit**2) / 2 / unit**2
    stderr = np.full(ranks.size, np.sqrt(2 * shape.entries / shape.parts) * unit**2)
    sigma = float(unit / np.sqrt(shape.parts))
    curve = RiskCurve(thresholds, risks, shape.parts * dof, stderr, shape.parts * shape.entries, sigma)
    status = _status(rank, min(shape.m, shape.n))
    return _at(curve, s.size - rank, scale * values[:rank], np.ones(rank), status)


def _level_of_rest(s: Array, energy: float, shape: Shape) -> tuple[float, int]:
    """Return the level of what the leading values leave, and how many of these stand out from it."""
    rank = 0
    for _ in range(s.size + 1):
        left = max(energy - float((s[:rank] ** 2).sum()), 0.0)
        unit = np.sqrt(left / max((shape.m - rank) * (shape.n - rank), 1))
        found = int(np.count_nonzero(s > WhiteBulk(shape.m - rank, shape.n - rank).edge * unit))
        if found <= rank:
            break
        rank = found
    return float(unit), rank


def _thresholds(z: Array, shape: Shape) -> Array:
    """Return the thresholds to try: a grid over the bulk and beyond, gaps between the values above, and infinity."""
    top = shape.edge + GRID_MARGIN
    between = (z[1:] + z[:-1]) / 2
    return np.append(np.union1d(np.arange(0.0, top + GRID_STEP, GRID_STEP), between[between > top]), np.inf)


def _in_units_of_y(spectral: SpectralCurve, shape: Shape, unit: float) -> RiskCurve:
    return RiskCurve(
        spectral.thresholds * unit,
        spectral.risk(shape) * unit**2,
        spectral.dof * shape.parts,
        spectral.stderr(shape) * unit**2,
        shape.entries * shape.parts,
        float(unit / np.sqrt(shape.parts)),
    )


def _status(rank: int, size: int) -> RankStatus:
    if rank == 0:
        return RankStatus.NOISE_ONLY
    return RankStatus.FULL_RANK if rank == size else RankStatus.LOW_RANK


def _noise_free(s: Array, shape: Shape) -> Decision:
    """Return the decision to keep everything but rounding."""
    rounding = max(shape.m, shape.n) * np.finfo(float).eps * s[0]
    kept = s[s > rounding]
    dof = float(shape.parts * shape.entries)
    curve = RiskCurve(np.zeros(1), np.zeros(1), np.full(1, dof), np.zeros(1), shape.parts * shape.entries, 0.0)
    return Decision(kept, np.ones_like(kept), 0.0, 0.0, dof, 0.0, 0.0, RankStatus.NO_NOISE, "", curve)
