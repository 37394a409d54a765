"""The former name of `scorethresh.sklearn`, kept for old imports."""

from .sklearn import ThresholdDenoiser

__all__ = ["ThresholdDenoiser"]
