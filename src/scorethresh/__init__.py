"""Thresholds for estimators that jump: risk, degrees of freedom and the best threshold from the noisy data alone.

>>> import numpy as np
>>> import scorethresh as st
>>> y = np.random.default_rng(0).normal(size=1000)
>>> y[:20] += 6.0
>>> st.select_threshold(y, sigma=1.0).threshold
3.46875
"""

from ._validate import AssumptionWarning
from .denoising.coefficients import Thresholded, threshold_coeffs
from .denoising.denoiser import Denoiser, denoise
from .denoising.lowrank.denoiser import LowRankDenoiser, denoise_lowrank
from .denoising.lowrank.result import LowRankDenoised
from .denoising.result import Band, Denoised
from .noise.level import estimate_sigma
from .risk.curve import RiskCurve
from .risk.kernel import paper_bandwidth
from .risk.methods import (
    CoupledBootstrap,
    CrossValidation,
    Fdr,
    Jansen,
    LittleBootstrap,
    Means,
    Method,
    Mixture,
    Oracle,
    Score,
    Selector,
    Sure,
    Universal,
)
from .rules import Bridge, Firm, Garrote, Hard, Piece, PiecewiseLinear, Rule, Scad, Soft, Step
from .sample.magnitudes import Magnitudes
from .select.rank import RankSelection, RankStatus, select_rank
from .select.threshold import Selection, Status, compare, risk_curve, select_threshold

__version__ = "0.1.0"

__all__ = [
    "AssumptionWarning",
    "Band",
    "Bridge",
    "CoupledBootstrap",
    "CrossValidation",
    "Denoised",
    "Denoiser",
    "Fdr",
    "Firm",
    "Garrote",
    "Hard",
    "Jansen",
    "LittleBootstrap",
    "LowRankDenoised",
    "LowRankDenoiser",
    "Magnitudes",
    "Means",
    "Method",
    "Mixture",
    "Oracle",
    "Piece",
    "PiecewiseLinear",
    "RankSelection",
    "RankStatus",
    "RiskCurve",
    "Rule",
    "Scad",
    "Score",
    "Selection",
    "Selector",
    "Soft",
    "Status",
    "Step",
    "Sure",
    "Thresholded",
    "Universal",
    "compare",
    "denoise",
    "denoise_lowrank",
    "estimate_sigma",
    "paper_bandwidth",
    "risk_curve",
    "select_rank",
    "select_threshold",
    "threshold_coeffs",
]
