"""The rank of a noisy matrix, and its best approximation, with the risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._lazy_data import lazy_module
from .._validate import Array
from ..risk.singular_values import Shape
from .misfit import warn_of_negative_risk
from .spectra import RULES, Decision, RankStatus, SpectralRule, decide, decide_correlated, decide_partial
from .whitening import Whitening, whitening

__all__ = ["RankSelection", "RankStatus", "checked_rank", "select_rank", "warn_about_level"]

# How little is known of the noise: whether it is white but for the given covariances.
NOISES = {"white": True, "correlated": False}

# Vectors beyond those asked for, and rounds, of the subspace iteration. More rounds find values closer to the edge:
# with these, one that exceeds the edge by a tenth is right to 1%.
OVERSAMPLING = 10
POWER_ITERATIONS = 8


@dataclass(frozen=True, eq=False, repr=False)
class RankSelection:
    """The singular values that are kept, with the estimate and its risk.

    For a stack of matrices every attribute has the leading axes of the stack, and ``selection[i]`` is that of one
    matrix.

    Attributes
    ----------
    rank : int
        The number of singular values that are kept.
    threshold : float
        Singular values below it are removed. In units of y, or of the whitened matrix if covariances were given.
    singular_values : ndarray
        Of the matrix, or of the whitened one, descending.
    estimate : ndarray
        The denoised matrix, with the dtype of the matrix if that is floating.
    risk, stderr : float
        Estimate of ``E ||estimate - signal||^2``, summed over the entries, and its standard error for a known level.
    dof : float
        The degrees of freedom, jumps included; those of complex entries count twice.
    sigma : float
        The noise level, given or estimated; of one part, if the matrix is complex.
    status : RankStatus
        What was found; ``status.remedy`` says what to do.
    curve : RiskCurve
        Risk and degrees of freedom against the threshold, of the whitened matrix if covariances were given.

    See Also
    --------
    select_rank : Returns this.
    """

    rank: Any
    threshold: Any
    singular_values: Array
    estimate: NDArray[Any]
    risk: Any
    dof: Any
    stderr: Any
    sigma: Any
    status: Any
    curve: Any

    def __getitem__(self, index: Any) -> RankSelection:
        """Return the selection of one matrix, or of some, of a stack."""
        if np.ndim(self.rank) == 0:
            msg = "the selection is that of one matrix, not of a stack. Use it without an index."
            raise TypeError(msg)
        return RankSelection(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def plot(self, ax: Any = None) -> Any:
        """Draw the singular values, the bulk of the noise and the risk: `scorethresh.viz.plot_rank`."""
        from ..viz.rank import plot_rank

        return plot_rank(self, ax)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a small picture, the numbers, and what to do."""
        from ..viz.notebook import rank_html

        return rank_html(self)

    def __repr__(self) -> str:
        m, n = self.estimate.shape[-2:]
        if np.ndim(self.rank):
            ranks = f"ranks {np.min(self.rank)} to {np.max(self.rank)}"
            return f"<RankSelection: {np.size(self.rank)} matrices of {m} x {n}, {ranks}>"
        return (
            f"<RankSelection: {m} x {n}, rank {self.rank} ({self.status}), threshold {self.threshold:.4g}, "
            f"sigma {self.sigma:.4g}, estimated risk {self.risk:.4g}>"
        )


def select_rank(
    matrix: Any,
    *,
    sigma: Any = None,
    rule: str = "hard",
    noise: str = "white",
    row_covariance: Any = None,
    column_covariance: Any = None,
    max_rank: int | None = None,
) -> RankSelection:
    """Choose which singular values of a noisy matrix to keep, or shrink them, by the estimated risk.

    Parameters
    ----------
    matrix : array_like
        The signal plus Gaussian noise: real or complex, of shape (..., m, n), tall or wide.
    sigma : float or array_like, optional
        The noise level; of one part, if the matrix is complex. One number, or one per matrix of a stack. By default it
        is read off the smaller singular values.
    rule : {"hard", "shrink", "soft"}
        ``"hard"`` keeps or removes a singular value. ``"shrink"`` also shrinks what it keeps, which has the least
        error. ``"soft"`` lowers all by the same amount.
    noise : {"white", "correlated"}
        ``"correlated"``: rows and columns of the noise have unknown covariances. Nothing else is needed then.
    row_covariance, column_covariance : array_like, optional
        Covariance of the noise between rows, (m, m), and between columns, (n, n), in units of ``sigma**2``.
    max_rank : int, optional
        Compute this many leading singular values only, for large matrices of low rank. For correlated noise it bounds
        the rank, and all are computed.

    Returns
    -------
    RankSelection
        Rank, estimate, risk, degrees of freedom, noise level, status and the whole curve.

    Warns
    -----
    AssumptionWarning
        If the noise level is to be estimated and cannot be: too few singular values, a rank that is not low, or a bulk
        unlike that of white noise.

    See Also
    --------
    denoise_lowrank : Do so in all patches of a series of images or volumes.
    select_threshold : Choose a threshold for coefficients.

    Notes
    -----
    A singular value that crosses the threshold makes the estimate jump. The degrees of freedom of keeping k values of
    an m x n matrix above the threshold t are

    ``k (m + n - k) + 2 sum_{i <= k < j} s_j^2 / (s_i^2 - s_j^2) + t * density of singular values at t``,

    and the risk is ``||y - x||^2 - m n sigma^2 + 2 sigma^2 dof``. The threshold of least risk is taken. With
    ``"shrink"``, a value ``s_i`` above the edge ``(sqrt(m) + sqrt(n)) sigma`` becomes ``s_i - sigma^2 d_i / s_i``, with
    ``d_i`` the degrees of freedom that it costs.

    With correlated noise, and with `max_rank`, the risk follows from what noise does to a spike in the limit of large
    matrices; ``stderr`` is then that of the energy of the noise.

    References
    ----------
    .. [1] E. J. Candès, C. A. Sing-Long and J. D. Trzasko, "Unbiased risk estimates for singular value thresholding
       and spectral estimators", IEEE Transactions on Signal Processing 61 (2013), arXiv:1210.4139.
    .. [2] M. Gavish and D. L. Donoho, "Optimal shrinkage of singular values", IEEE Transactions on Information Theory
       63 (2017), arXiv:1405.7511.
    .. [3] D. L. Donoho, M. Gavish and E. Romanov, "ScreeNOT: exact MSE-optimal singular value thresholding in
       correlated noise", Annals of Statistics 51 (2023), arXiv:2009.12297.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> signal = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    >>> found = select_rank(signal + rng.normal(0.0, 0.5, (60, 40)))
    >>> found.rank, round(found.sigma, 2), str(found.status)
    (2, 0.48, 'low rank')
    >>> select_rank(rng.normal(size=(60, 40)), sigma=1.0).status.remedy
    'No singular value stands out from the noise, and zero is the best estimate. Check that sigma is not too large.'
    """
    lazy = lazy_module(matrix)
    if lazy is not None:
        how = {"rule": rule, "noise": noise, "row_covariance": row_covariance, "column_covariance": column_covariance}
        return lazy.select_rank(matrix, sigma=sigma, max_rank=max_rank, **how)  # type: ignore[no-any-return]
    y = _matrix(matrix)
    spectral = _validate.choice("rule", rule, RULES)
    white = _validate.choice("noise", noise, NOISES)
    levels: Any = _levels(sigma, y.shape[:-2])
    whiten = whitening(row_covariance, column_covariance, *y.shape[-2:])
    if not white and (sigma is not None or whiten is not None):
        msg = "noise='correlated' takes neither sigma nor covariances: nothing is known of such noise."
        raise ValueError(msg)
    if sigma is None or max_rank is not None:  # the level, and the plug-in risk, need the energy
        _validate.moderate(y, "matrix")
    work = y.astype(np.complex128 if y.dtype.kind == "c" else np.float64)
    if whiten is not None:
        work = whiten.apply(work)
    bound = None if max_rank is None else checked_rank(max_rank, min(y.shape[-2:]))
    if bound is None or not white:
        u, s, vh = np.linalg.svd(work, full_matrices=False)
    else:
        u, s, vh = _leading(work, bound)
    asked = _Options(spectral, white, bound, whiten)
    found = [_one(y[i], (work[i], u[i], s[i], vh[i]), levels[i], asked) for i in np.ndindex(*y.shape[:-2])]
    warn_about_level({decision.reason for decision, _ in found} - {""})
    for decision, _ in found:
        warn_of_negative_risk(decision.risk, decision.stderr)
    return _gathered(found, s, y.shape[:-2])


@dataclass(frozen=True, eq=False)
class _Options:
    """What the caller asked for, as objects."""

    rule: SpectralRule
    white: bool
    bound: int | None
    whitening: Whitening | None

    def decide(self, work: NDArray[Any], s: Array, shape: Shape, sigma: float | None) -> Decision:
        """Return what to do with the singular values of a matrix."""
        if not self.white:
            return decide_correlated(s, shape, self.rule, self.bound)
        if s.size < min(work.shape):
            return decide_partial(s, float(np.linalg.norm(work) ** 2), shape, sigma, self.rule)
        return decide(s, shape, sigma, self.rule)


def _one(
    y: NDArray[Any], parts: tuple[NDArray[Any], ...], sigma: float | None, how: _Options
) -> tuple[Decision, NDArray[Any]]:
    """Return what to do with one matrix, and the result."""
    work, u, s, vh = parts
    shape = Shape(work.shape[0], work.shape[1], 2 if np.iscomplexobj(work) else 1)
    decision = how.decide(work, s, shape, sigma)
    k = decision.values.size
    estimate = (u[:, :k] * decision.values) @ vh[:k]
    if how.whitening is not None:
        estimate = how.whitening.undo(estimate)
        residual = float(np.linalg.norm(y - estimate) ** 2)
        if s.size == min(work.shape):
            decision = how.whitening.in_units_of_y(decision, (u, s, vh), shape, residual)
    return decision, estimate.astype(y.dtype if y.dtype.kind in "fc" else np.float64, copy=False)


def _gathered(found: list[tuple[Decision, NDArray[Any]]], s: Array, lead: tuple[int, ...]) -> RankSelection:
    """Return the decisions as one selection."""
    decisions = [decision for decision, _ in found]
    estimates = np.stack([estimate for _, estimate in found])
    columns: dict[str, Any] = {"rank": [int(np.count_nonzero(d.values)) for d in decisions]}
    for name in ("threshold", "risk", "dof", "stderr", "sigma", "status", "curve"):
        columns[name] = [getattr(d, name) for d in decisions]
    if not lead:
        return RankSelection(
            singular_values=s, estimate=estimates[0], **{name: value for name, [value] in columns.items()}
        )
    for name, values in columns.items():
        columns[name] = np.empty(lead, dtype=object if name in ("status", "curve") else type(values[0]))
        columns[name].ravel()[:] = values
    return RankSelection(singular_values=s, estimate=estimates.reshape(*lead, *estimates.shape[1:]), **columns)


def warn_about_level(reasons: set[str]) -> None:
    """Warn that the noise level cannot be told, for each reason."""
    for reason in sorted(reasons):
        msg = f"The noise level cannot be told from the singular values: {reason}. Pass sigma if it is known."
        _validate.warn(msg)


def _matrix(matrix: Any) -> NDArray[Any]:
    """Return the matrix as an array; refuse what is none."""
    a = _validate.as_array(matrix, "matrix")
    if isinstance(matrix, np.ma.MaskedArray):
        msg = "matrix is a masked array, whose mask would be ignored. Fill it first: matrix.filled(...)."
        raise TypeError(msg)
    if a.dtype.kind != "c":
        a = _validate.real_array(a, "matrix")
    if a.ndim < 2:
        msg = f"matrix must have two axes, or more for a stack of matrices, got shape {a.shape}. Reshape it."
        raise ValueError(msg)
    if a.size == 0:
        msg = f"matrix is empty, with shape {a.shape}. Pass at least one row and one column."
        raise ValueError(msg)
    if a.dtype.kind in "fc" and not np.isfinite(a).all():
        bad = a.size - int(np.isfinite(a).sum())
        msg = (
            f"matrix holds {bad} NaN or infinite entries out of {a.size}. Drop their rows or columns, or fill them in."
        )
        raise ValueError(msg)
    return a


def _levels(sigma: Any, lead: tuple[int, ...]) -> NDArray[Any]:
    """Return the noise level of every matrix, or None for each."""
    if sigma is None:
        return np.full(lead, None)
    if np.ndim(sigma) == 0:
        return np.full(lead, _validate.noise_level(sigma))
    levels = _validate.real_array(sigma, "sigma").astype(np.float64)
    if levels.shape != lead:
        msg = f"sigma must be one number, or one per matrix, of shape {lead}, got shape {levels.shape}."
        raise ValueError(msg)
    for extreme in (levels.min(), levels.max()):
        _validate.noise_level(extreme)
    return levels


def checked_rank(max_rank: Any, limit: int) -> int:
    """Return the largest rank that is asked for; refuse what is none."""
    if not isinstance(max_rank, int | np.integer) or isinstance(max_rank, bool) or not 1 <= max_rank <= limit:
        msg = (
            f"max_rank must be a whole number from 1 to {limit}, the smaller side, got {max_rank!r}. None computes all."
        )
        raise ValueError(msg)
    return int(max_rank)


def _leading(work: NDArray[Any], count: int) -> tuple[NDArray[Any], Array, NDArray[Any]]:
    """Return the leading singular values and vectors of every matrix, by subspace iteration from a random start.

    Values above the noise converge. Those inside of it, which are close to one another, come out a little too low; the
    risk does not need them. N. Halko, P. G. Martinsson and J. A. Tropp (2011), arXiv:0909.4061.
    """
    m, n = work.shape[-2:]
    width = min(count + OVERSAMPLING, m, n)
    start = np.random.default_rng(0).normal(size=(n, width)).astype(work.dtype)
    adjoint = np.swapaxes(work, -1, -2).conj()
    q = np.linalg.qr(work @ start)[0]
    for _ in range(POWER_ITERATIONS):
        q = np.linalg.qr(work @ np.linalg.qr(adjoint @ q)[0])[0]
    small, s, vh = np.linalg.svd(np.swapaxes(q, -1, -2).conj() @ work, full_matrices=False)
    u = q @ small
    return u[..., :count], s[..., :count], vh[..., :count, :]
