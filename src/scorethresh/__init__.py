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
from .inverse.convolution import Blur, Downsample
from .inverse.psf import box_psf, disk_psf, gaussian_psf, motion_psf
from .inverse.restorer import Restorer, restore
from .inverse.result import Restored
from .inverse.sampling import Fourier, Mask
from .inverse.select_psf import PsfSelection, select_psf
from .noise.camera import CameraNoise
from .noise.level import estimate_sigma
from .noise.rician import RicianNoise
from .noise.speckle import SpeckleNoise
from .risk.curve import RiskCurve
from .risk.kernel import paper_bandwidth
from .risk.lasso import dof_lasso_ols
from .risk.methods import (
    BlockMixture,
    BlockScore,
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
from .risk.monte_carlo import divergence
from .rules import Bridge, Firm, Garrote, Hard, Piece, PiecewiseLinear, Radial, Rule, Scad, Soft, Step
from .sample.magnitudes import Magnitudes
from .scale.result import LazyDenoised
from .select.many import SelectionBatch
from .select.parameter import select_parameter
from .select.parameter_result import ParameterCurve, ParameterSelection, ParameterStatus
from .select.rank import RankSelection, RankStatus, select_rank
from .select.shrink import PosteriorMean, Shrunk, shrink
from .select.status import Status
from .select.threshold import Selection, compare, risk_curve, select_threshold

__version__ = "0.1.0"

__all__ = [
    "AssumptionWarning",
    "Band",
    "BlockMixture",
    "BlockScore",
    "Blur",
    "Bridge",
    "CameraNoise",
    "CoupledBootstrap",
    "CrossValidation",
    "Denoised",
    "Denoiser",
    "Downsample",
    "Fdr",
    "Firm",
    "Fourier",
    "Garrote",
    "Hard",
    "Jansen",
    "LazyDenoised",
    "LittleBootstrap",
    "LowRankDenoised",
    "LowRankDenoiser",
    "Magnitudes",
    "Mask",
    "Means",
    "Method",
    "Mixture",
    "Oracle",
    "ParameterCurve",
    "ParameterSelection",
    "ParameterStatus",
    "Piece",
    "PiecewiseLinear",
    "PosteriorMean",
    "PsfSelection",
    "Radial",
    "RankSelection",
    "RankStatus",
    "Restored",
    "Restorer",
    "RicianNoise",
    "RiskCurve",
    "Rule",
    "Scad",
    "Score",
    "Selection",
    "SelectionBatch",
    "Selector",
    "Shrunk",
    "Soft",
    "SpeckleNoise",
    "Status",
    "Step",
    "Sure",
    "Thresholded",
    "Universal",
    "box_psf",
    "compare",
    "denoise",
    "denoise_lowrank",
    "disk_psf",
    "divergence",
    "dof_lasso_ols",
    "estimate_sigma",
    "gaussian_psf",
    "motion_psf",
    "paper_bandwidth",
    "restore",
    "risk_curve",
    "select_parameter",
    "select_psf",
    "select_rank",
    "select_threshold",
    "shrink",
    "threshold_coeffs",
]
