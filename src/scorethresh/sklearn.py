"""scikit-learn transformers: thresholds learnt from rows of data, and principal components whose number is chosen."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _validate
from .denoising.experts.bands import BandThresholds, FrameNoise
from .denoising.experts.decisions import EntryDecisions
from .frames.wavelets import Undecimated, default_levels
from .noise.covariance import White
from .noise.level import estimate_sigma
from .risk.methods import Method, Selector
from .risk.singular_values import Shape
from .rules import Rule, as_rule
from .select.rank import warn_about_level
from .select.spectra import RULES, decide
from .select.threshold import DEFAULT, find_threshold

__all__ = ["ScorePCA", "ThresholdDenoiser"]

# Whether rows of a domain are transformed by wavelets.
_DOMAINS = {"samples": True, "coefficients": False}


class ThresholdDenoiser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Denoise the rows of X with a noise level and thresholds learnt by `fit`.

    Each row is one of many similar signals, such as spectra from one instrument. All rows share the thresholds. This
    helps rows that are too short to choose a threshold from. For a single long signal, an image or a volume,
    `scorethresh.denoise` is better.

    Parameters
    ----------
    domain : {"samples", "coefficients"}
        ``"samples"``: a row is a sampled signal. It is thresholded in an undecimated wavelet transform, with a
        threshold per band. ``"coefficients"``: a row holds sparse coefficients in any order. All entries share one
        threshold.
    sigma : float, optional
        The standard deviation of the noise, in units of X. It must be the same in all entries. If None, `fit` estimates
        it: the median magnitude of the coefficients, or of the finest wavelet coefficients, divided by 0.6745.
    rule : str or Rule
        The thresholding rule, as in `scorethresh.risk_curve`.
    method : str or Method
        The method that chooses thresholds, as in `scorethresh.select_threshold`.
    wavelet : str
        A discrete wavelet of PyWavelets. Used for samples only.

    Attributes
    ----------
    sigma_ : float
        The noise level, given or estimated.
    thresholds_ : ndarray
        Thresholds in units of `sigma_`. For samples one per wavelet band, the finest first; infinity sets a band to
        zero. For coefficients a single one.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        The names of the columns, if X has column names that are strings.

    See Also
    --------
    scorethresh.denoise : Denoise one signal, image or volume.
    scorethresh.select_threshold : Choose a threshold for coefficients.

    Notes
    -----
    X must be dense and finite. Single precision is preserved. For samples, the mean of each row is kept.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> lines = np.exp(-0.5 * ((np.arange(200) - rng.uniform(50, 150, (40, 1))) / 4) ** 2)
    >>> X = lines + rng.normal(0.0, 0.2, lines.shape)
    >>> denoiser = ThresholdDenoiser().fit(X)
    >>> print(round(denoiser.sigma_, 1))
    0.2
    >>> bool(np.mean((denoiser.transform(X) - lines) ** 2) < 0.2 * 0.2**2)
    True
    >>> make_pipeline(ThresholdDenoiser(), PCA(3)).fit_transform(X).shape
    (40, 3)
    """

    def __init__(
        self,
        *,
        domain: str = "samples",
        sigma: float | None = None,
        rule: str | Rule = "hard",
        method: str | Method | Selector = DEFAULT,
        wavelet: str = "sym8",
    ) -> None:
        self.domain = domain
        self.sigma = sigma
        self.rule = rule
        self.method = method
        self.wavelet = wavelet

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the noise level and the thresholds.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            The noisy rows.
        y : None
            Ignored.

        Returns
        -------
        ThresholdDenoiser
            The fitted transformer.
        """
        samples = _validate.choice("domain", self.domain, _DOMAINS)
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_features=2 if samples else 1)
        bands = self._bands(X) if samples else [X]
        sigma = estimate_sigma(bands[0], domain="coefficients") if self.sigma is None else self.sigma
        self.sigma_ = _validate.noise_level(sigma)
        found = [find_threshold(b, sigma=self.sigma_, rule=self.rule, method=self.method) for b in bands]
        self.thresholds_ = np.array([selection.threshold for selection in found]) / self.sigma_
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Denoise rows with the learnt thresholds.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            The noisy rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The denoised rows, in the units of X.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        rule = as_rule(self.rule)
        if not _DOMAINS[self.domain]:
            return np.asarray(rule(X, self.thresholds_[0] * self.sigma_), dtype=X.dtype)
        noise = self._noise(X)
        expert = BandThresholds(
            noise,
            EntryDecisions(rule),
            tuple(float(t * self.sigma_ * band.sigma) for t, band in zip(self.thresholds_, noise.bands, strict=True)),
        )
        mean = X.mean(axis=1, keepdims=True)
        return np.asarray(expert.value((X - mean)[:, None])[:, 0] + mean)

    def _noise(self, X: NDArray[Any]) -> FrameNoise:
        """Return the noise in every wavelet band for white noise of level 1."""
        return FrameNoise.make(Undecimated(self.wavelet, default_levels(X.shape[1:])), White(1.0), ndim=1)

    def _bands(self, X: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the coefficients of every wavelet band, the finest first, scaled to the noise level of X."""
        noise = self._noise(X)
        bands: dict[int, NDArray[Any]] = {}

        def collect(k: int, c: NDArray[Any]) -> NDArray[Any]:
            bands[k] = c / c.dtype.type(noise.bands[k].sigma)
            return c

        noise.frame.apply((X - X.mean(axis=1, keepdims=True))[:, None], collect, ndim=1)
        return [bands[k] for k in sorted(bands)]


class ScorePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components whose number is chosen by the estimated risk.

    Parameters
    ----------
    sigma : float, optional
        The noise level of an entry of X. By default it is read off the smaller singular values.
    rule : {"hard", "shrink", "soft"}
        What is done to the singular values, as in `scorethresh.select_rank`. With ``"shrink"`` and ``"soft"``,
        components that hold more noise are scaled down by `transform`.

    Attributes
    ----------
    rank_ : int
        The number of components that stand out from the noise. It may be 0.
    n_components_ : int
        The same, but at least 1, so that there is something to hand on.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal directions.
    scaling_ : ndarray of shape (n_components,)
        By what the scores are multiplied: 1 for ``"hard"``; 0 if the rank is 0.
    singular_values_ : ndarray
        All singular values of X less its mean.
    mean_ : ndarray of shape (n_features,)
        The mean of the rows.
    sigma_ : float
        The noise level, given or estimated.
    risk_, stderr_ : float
        Estimate of the squared error of the denoised X, summed over its entries, and its standard error. The error of
        the mean is not included.
    status_ : RankStatus
        What was found; ``status_.remedy`` says what to do.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        The names of the columns, if X has column names that are strings.

    See Also
    --------
    scorethresh.select_rank : The same for one matrix, without removing its mean.

    Notes
    -----
    Removing the mean leaves one row less: the risk is that of an (n_samples - 1) x n_features matrix.
    ``inverse_transform(transform(X))`` is the denoised X.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 30)) + rng.normal(0.0, 0.5, (100, 30))
    >>> pca = ScorePCA().fit(X)
    >>> pca.n_components_, pca.transform(X).shape
    (3, (100, 3))
    """

    def __init__(self, *, sigma: float | None = None, rule: str = "hard") -> None:
        self.sigma = sigma
        self.rule = rule

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components, and how many stand out.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            The noisy rows.
        y : None
            Ignored.

        Returns
        -------
        ScorePCA
            The fitted transformer.
        """
        rule = _validate.choice("rule", self.rule, RULES)
        sigma = None if self.sigma is None else _validate.noise_level(self.sigma)
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        if sigma is None:
            _validate.moderate(X, "X")
        self.mean_ = X.mean(axis=0)
        _, s, vh = np.linalg.svd((X - self.mean_).astype(np.float64), full_matrices=False)
        shape = Shape(X.shape[0] - 1, X.shape[1])
        s = s[: min(shape.m, shape.n)]
        found = decide(s, shape, sigma, rule)
        warn_about_level({found.reason} - {""})
        self.rank_ = int(np.count_nonzero(found.values))
        self.n_components_ = max(self.rank_, 1)
        # The largest loading is positive, whatever the linear algebra library does.
        largest = vh[np.arange(len(vh)), np.argmax(np.abs(vh), axis=1)]
        vh = vh * np.where(largest < 0, -1.0, 1.0)[:, None]
        kept = slice(self.n_components_)
        self.components_ = vh[kept].astype(X.dtype)
        values = np.append(found.values, 0.0)[kept]
        self.scaling_ = np.divide(values, s[kept], out=np.zeros_like(values), where=s[kept] > 0).astype(X.dtype)
        self.singular_values_ = s
        self.sigma_, self.risk_, self.stderr_, self.status_ = found.sigma, found.risk, found.stderr, found.status
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the scores of rows.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            The noisy rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The scores, scaled down where they hold more noise.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return np.asarray((X - self.mean_) @ self.components_.T * self.scaling_)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return the rows that belong to scores.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_components)
            The scores.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The denoised rows.
        """
        check_is_fitted(self)
        scores = np.asarray(X)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            msg = f"X must have shape (n_samples, {self.n_components_}), as transform returns it, got {scores.shape}."
            raise ValueError(msg)
        return np.asarray(scores @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])
