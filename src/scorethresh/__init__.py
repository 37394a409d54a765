"""Thresholds for estimators that jump: risk, degrees of freedom and the best threshold from the noisy data alone.

>>> import numpy as np
>>> import scorethresh as st
>>> y = np.random.default_rng(0).normal(size=1000)
>>> y[:20] += 6.0
>>> st.select_threshold(y, sigma=1.0).threshold
3.65625
"""

from .curve import RiskCurve
from .magnitudes import Magnitudes
from .methods import Method, Oracle, Score, Sure
from .noise import estimate_sigma
from .rules import Bridge, Firm, Garrote, Hard, Piece, PiecewiseLinear, Rule, Scad, Soft
from .select import Selection, Status, risk_curve, select_threshold

__version__ = "0.1.0"

__all__ = [
    "Bridge",
    "Firm",
    "Garrote",
    "Hard",
    "Magnitudes",
    "Method",
    "Oracle",
    "Piece",
    "PiecewiseLinear",
    "RiskCurve",
    "Rule",
    "Scad",
    "Score",
    "Selection",
    "Soft",
    "Status",
    "Sure",
    "estimate_sigma",
    "risk_curve",
    "select_threshold",
]
