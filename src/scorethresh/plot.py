"""The former name of `scorethresh.viz.plot`, kept for old imports."""

from .viz.plot import plot_bands, plot_denoised, plot_dof, plot_risk, plot_selection

__all__ = ["plot_bands", "plot_denoised", "plot_dof", "plot_risk", "plot_selection"]
