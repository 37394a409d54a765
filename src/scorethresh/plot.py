"""The plots, under the name that they had first: see `scorethresh.viz.plot`."""

from .viz.plot import plot_bands, plot_denoised, plot_dof, plot_risk, plot_selection

__all__ = ["plot_bands", "plot_denoised", "plot_dof", "plot_risk", "plot_selection"]
