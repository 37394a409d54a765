"""Plots with matplotlib, and the report as one HTML page.

Importing this package does not import matplotlib. A plot without axes does.
"""

from .plot import plot_bands, plot_denoised, plot_dof, plot_risk, plot_selection
from .rank import plot_rank
from .report import write_report
from .restoration import write_restoration_report

__all__ = [
    "plot_bands",
    "plot_denoised",
    "plot_dof",
    "plot_rank",
    "plot_risk",
    "plot_selection",
    "write_report",
    "write_restoration_report",
]
