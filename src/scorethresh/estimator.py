"""The transformer of scikit-learn, under the name that it had first: see `scorethresh.sklearn`."""

from .sklearn import ThresholdDenoiser

__all__ = ["ThresholdDenoiser"]
