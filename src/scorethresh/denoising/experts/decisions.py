"""How the coefficients of a band are thresholded: entry by entry, or complex numbers by their modulus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._arrays import Floats
from ..._validate import Array
from ...risk.curve import RiskCurve
from ...risk.methods import BlockScore, Method, Selector, as_method
from ...rules import Hard, Radial, Rule
from ...sample.magnitudes import Magnitudes, default_thresholds
from ...select.threshold import DEFAULT, risk_curve, select_threshold

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
        found = select_threshold(c, sigma=sigma, rule=self.rule, method=method)
        return found.threshold, found.curve

    def curve(self, c: Floats, thresholds: Array, sigma: float) -> RiskCurve:
        """Return the risk at thresholds, by the method named if that estimates a risk."""
        method = self.method if isinstance(self.method, Method) else None
        return risk_curve(c, thresholds, sigma=sigma, rule=self.rule, method=method or default_method(c.size))

    def default_curve(self, c: Floats, thresholds: Array, sigma: float) -> RiskCurve:
        """Return the risk at thresholds, by the default method."""
        return risk_curve(c, thresholds, sigma=sigma, rule=self.rule, method=default_method(c.size))

    def shrink(self, c: Floats, threshold: float) -> Floats:
        """Return the coefficients after thresholding, in their dtype."""
        if isinstance(self.rule, Hard):  # the rule without its checks; a product takes half the time of a choice
            kept: Floats = np.multiply(c, np.abs(c) >= c.dtype.type(threshold))
            return kept
        out: Floats = np.ascontiguousarray(self.rule(c, threshold), c.dtype)
        return out


@dataclass(frozen=True)
class BlockDecisions:
    """Parts, such as real and imaginary ones, are decided on together, by their norm."""

    rule: Radial
    named: bool = False

    def select(self, c: Floats, sigma: float) -> tuple[float, RiskCurve]:
        """Return the threshold of least estimated risk, and the risk curve."""
        curve = self.curve(c, default_thresholds(c.size, sigma), sigma)
        return float(curve.thresholds[np.argmin(curve.risk)]), curve

    def curve(self, c: Floats, thresholds: Array, sigma: float) -> RiskCurve:
        """Return the risk at thresholds."""
        return BlockScore().curve(Magnitudes.exact(_norms(c)), thresholds, sigma=sigma, rule=self.rule)

    default_curve = curve

    def shrink(self, c: Floats, threshold: float) -> Floats:
        """Return the coefficients after thresholding, in their dtype."""
        norm = _norms(c)
        factor = np.divide(self.rule(norm, threshold), norm, out=np.zeros_like(norm), where=norm > 0)
        scaled: Floats = np.ascontiguousarray(c * factor[:, None], c.dtype)
        return scaled


Decisions = EntryDecisions | BlockDecisions


def decisions_for(parts: int, rule: Rule, method: Method | Selector | str | None) -> Decisions:
    """Return the decisions for data with that many parts."""
    if parts > 1:
        return BlockDecisions(Radial(rule, parts))
    return EntryDecisions(rule, None if method is None else as_method(method))


def _norms(c: Floats) -> Floats:
    norm: Floats = np.sqrt(np.square(c).sum(axis=1))
    return norm
