"""How the coefficients of a band are thresholded: entry by entry, or complex numbers by their modulus."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from ..._arrays import Floats, slabs
from ..._validate import Array
from ...risk.curve import RiskCurve
from ...risk.methods import Method, Selector, as_method
from ...rules import Blocks, Hard, Rule
from ...select.threshold import DEFAULT, find_threshold, risk_curve

# Coefficients from which on SCORE picks as well as the default method, ten times faster.
MIN_SCORE_SIZE = 1 << 14


def default_method(size: int) -> str:
    """Return the method that suits a band of that many coefficients."""
    return "score" if size >= MIN_SCORE_SIZE else DEFAULT


@dataclass(frozen=True)
class EntryDecisions:
    """Every coefficient is decided on by itself. Coefficients are (pieces, 1, ...)."""

    rule: Rule
    method: Method | Selector | None = None

    @property
    def named(self) -> bool:
        """Whether the user named a method."""
        return self.method is not None

    def select(self, c: Floats, sigma: float) -> tuple[float, RiskCurve]:
        """Return the threshold of least estimated risk, and the risk curve."""
        method = self.method or default_method(c.size)
        found = find_threshold(c, sigma=sigma, rule=self.rule, method=method)
        return found.threshold, found.curve

    def curve(self, c: Floats, thresholds: Array, sigma: float) -> RiskCurve:
        """Return the risk at thresholds, by the method named if that estimates a risk."""
        method = self.method if isinstance(self.method, Method) else None
        return risk_curve(c, thresholds, sigma=sigma, rule=self.rule, method=method or default_method(c.size))

    def default_curve(self, c: Floats, thresholds: Array, sigma: float) -> RiskCurve:
        """Return the risk at thresholds, by the default method."""
        return risk_curve(c, thresholds, sigma=sigma, rule=self.rule, method=default_method(c.size))

    def shrink(self, c: Floats, threshold: float, *, in_place: bool = False) -> Floats:
        """Return the coefficients after thresholding, in their dtype; if `in_place`, they may be overwritten."""
        if isinstance(self.rule, Hard):  # the rule without its checks; a product takes half the time of a choice
            out: Floats = c if in_place and c.flags.c_contiguous else np.array(c, order="C")
            flat, limit = out.reshape(-1), c.dtype.type(threshold)
            for part in slabs(flat.shape):
                flat[part] *= np.abs(flat[part]) >= limit
            return out
        return np.ascontiguousarray(self.rule(c, threshold), c.dtype)


@dataclass(frozen=True)
class BlockDecisions:
    """Parts, such as real and imaginary ones, are decided on together, by their norm."""

    rule: Rule
    named: bool = False

    def select(self, c: Floats, sigma: float) -> tuple[float, RiskCurve]:
        """Return the threshold of least estimated risk, and the risk curve."""
        method = default_method(c.size // c.shape[1])
        found = find_threshold(c, sigma=sigma, rule=self.rule, method=method, block_axis=1)
        return found.threshold, _per_block(found.curve, c.shape[1])

    def curve(self, c: Floats, thresholds: Array, sigma: float) -> RiskCurve:
        """Return the risk at thresholds."""
        method = default_method(c.size // c.shape[1])
        curve = risk_curve(c, thresholds, sigma=sigma, rule=self.rule, method=method, block_axis=1)
        return _per_block(curve, c.shape[1])

    default_curve = curve

    def shrink(self, c: Floats, threshold: float, *, in_place: bool = False) -> Floats:
        """Return the coefficients after thresholding, in their dtype."""
        return np.ascontiguousarray(Blocks(c, 1).apply(self.rule, threshold))


def _per_block(curve: RiskCurve, parts: int) -> RiskCurve:
    """Return the curve with blocks counted as entries: experts state risk and divergence summed over the parts."""
    return dataclasses.replace(curve, size=curve.size // parts)


Decisions = EntryDecisions | BlockDecisions


def decisions_for(parts: int, rule: Rule, method: Method | Selector | str | None) -> Decisions:
    """Return the decisions for data with that many parts."""
    if parts > 1:
        return BlockDecisions(rule)
    return EntryDecisions(rule, None if method is None else as_method(method))
