"""Risk curves and the choice of the threshold: the paper's algorithm."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _validate
from .._lazy_data import axis_of, lazy_module, unnamed
from .._validate import Array
from ..risk.curve import RiskCurve
from ..risk.methods import BLOCK_METHODS, METHODS, BlockMethod, Method, Score, Selector, as_method
from ..rules import Blocks, Radial, Rule, as_blocks, as_rule, entry_rule, original
from ..sample.cells import Cells
from ..sample.magnitudes import SMALL, Magnitudes, gather
from .many import select_many
from .misfit import warn_of_misfit
from .selection import Selection
from .status import Status, status_of
from .tried import data_and_thresholds

__all__ = ["Selection", "Status", "compare", "risk_curve", "select_threshold"]

# With thresholds of the caller's own, samples of up to this many entries, and pairs of an entry and a threshold, are
# evaluated exactly. More would take longer than compressing the sample first.
MAX_EXACT_ENTRIES = 200_000
MAX_EXACT_PAIRS = 1 << 22

# The method if none is named: it picked the best thresholds at every size in docs/evidence.md.
DEFAULT = "mixture"


def risk_curve(
    y: Any,
    thresholds: Any = None,
    *,
    sigma: float | None = None,
    rule: str | Rule = "hard",
    method: str | Method | Selector = DEFAULT,
    block_axis: int | None = None,
) -> RiskCurve:
    """Estimate the risk of a thresholding rule at many thresholds.

    Parameters
    ----------
    y : array_like or Magnitudes
        Noisy coefficients ``x0 + w`` with w white Gaussian, of any shape; or their sample. Complex numbers are kept or
        killed by their modulus.
    thresholds : array_like, "all" or None
        Ascending, in units of y; infinity sets everything to zero. None is a grid from 0 past the universal threshold
        ``sigma sqrt(2 log P)``, and infinity. ``"all"`` is 0, the number just above each distinct ``|y_i|``, where
        the estimate changes, and infinity.
    sigma : float
        Standard deviation of w (of one part, if y is complex). `estimate_sigma` estimates it.
    rule : str or Rule
        What is done to the entries: ``"hard"``, ``"soft"``, ``"step"``, ``"firm"``, ``"garrote"``, ``"scad"``,
        ``"bridge"``, or an object.
    method : str or Method
        How the risk is estimated: a name, or an object such as ``Score(bandwidth=0.3)``. The default, ``"mixture"``,
        picked the best thresholds at every size in docs/evidence.md; ``"score"`` is the paper's. For blocks there are
        these two.
    block_axis : int, optional
        The axis along which entries form blocks. A block is kept or killed as a whole, by its norm.

    Returns
    -------
    RiskCurve
        Risks are totals over the entries.

    See Also
    --------
    select_threshold : Choose the threshold of least estimated risk.

    Notes
    -----
    The risk is ``E ||x(y) - x0||^2``. Every method estimates it from the distribution of the magnitudes ``|y_i|``.

    Every entry is used by itself if y has up to 4096 entries, up to 200,000 with few thresholds, and for ``"all"``.
    Larger data are compressed in one pass (see `Magnitudes`); results then differ by rounding of the largest value on
    the curve. For ``"all"``, SCORE takes O(P log P) steps with rules made of straight pieces; beyond 8000 entries or
    so its standard errors are interpolated, to a few per cent.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> y[:20] += 6.0
    >>> curve = risk_curve(y, [1.0, 2.0, 3.0, 4.0], sigma=1.0)
    >>> curve.risk.round(1)
    array([805.4, 277.5,  55.1,  54. ])
    """
    y, block_axis = unnamed(y), axis_of(y, block_axis)
    sigma, blocks = _validate.noise_level(sigma), _blocks_of(y, block_axis)
    chosen, rule = _method_and_rule(method, as_rule(rule), blocks)
    if not isinstance(chosen, Method):
        msg = f"{chosen!r} picks a threshold without estimating a risk. Use select_threshold, or another method."
        raise TypeError(msg)
    data, tried = data_and_thresholds(y if blocks is None else blocks.norms, thresholds, sigma, rule)
    direct = None
    if isinstance(chosen, Score) and isinstance(data, np.ndarray):
        direct = chosen.direct(data, tried, sigma=sigma, rule=rule)
    return _curve(data, thresholds, sigma, chosen, rule)[1] if direct is None else direct


def _blocks_of(y: Any, block_axis: int | None) -> Blocks | None:
    """Return the blocks of y; None if entries are decided on one by one."""
    if lazy_module(y) is not None:
        if block_axis is not None or y.dtype.kind == "c":
            msg = (
                "blocks and complex numbers are not taken in chunks. Sample their norms: "
                "Magnitudes.compress(abs(y), sigma=..., rule=Radial('hard', 2)), and pass that with the same rule."
            )
            raise TypeError(msg)
        return None
    if isinstance(y, Magnitudes):
        if block_axis is not None:
            msg = "a sample has no axes, got block_axis. Sample the norms of the blocks; pass rule=Radial(rule, size)."
            raise ValueError(msg)
        return None
    return as_blocks(y, block_axis) if block_axis is not None or np.iscomplexobj(y) else None


def _method_and_rule(method: Any, rule: Rule, blocks: Blocks | None) -> tuple[Method | Selector, Rule]:
    """Return the method, that for blocks if the rule is on norms, and the rule on what is sampled."""
    if blocks is not None and blocks.size > 1:
        rule = Radial(rule, blocks.size)
    return as_method(method, blocks=rule.block_size > 1), rule


def _curve(
    y: Any, thresholds: Any, sigma: Any, method: Method | Selector, rule: Rule
) -> tuple[Magnitudes, RiskCurve, float | None]:
    """Return the sample, the curve and, if a selector picked one, the threshold."""
    sigma = _validate.noise_level(sigma)
    if not isinstance(method, BlockMethod):
        rule = entry_rule(rule, method)
    data, tried = data_and_thresholds(y, thresholds, sigma, rule)
    picked = None
    if not isinstance(method, Method):
        if lazy_module(data) is not None:
            data = gather(data, Cells.make(tried, rule, sigma, as_default().resolution(data.size, sigma)))
        picked = method.pick(data, sigma=sigma, rule=rule)
        if isinstance(data, Magnitudes) and data.cells is not None:  # the curve is known at the edges of cells only
            picked = float(tried[np.searchsorted(tried, picked)])
        tried = np.union1d(tried, picked)
        method = as_default()
    if isinstance(data, Magnitudes):
        sample = data
    elif _is_exact(data.size, tried, own=thresholds is not None):
        sample = Magnitudes.exact(data)
    else:
        sample = gather(data, Cells.make(tried, rule, sigma, method.resolution(data.size, sigma)))
    return sample, method.curve(sample, tried, sigma=sigma, rule=rule), picked


def as_default() -> Method:
    """Return the default method."""
    method = as_method(DEFAULT)
    assert isinstance(method, Method)
    return method


def _is_exact(size: int, tried: Array, *, own: bool) -> bool:
    """Tell whether the sample keeps every entry."""
    few = own and size <= MAX_EXACT_ENTRIES and size * tried.size <= MAX_EXACT_PAIRS
    return size <= SMALL or few or not np.isfinite(tried).any()


def select_threshold(
    y: Any,
    *,
    sigma: float | None = None,
    rule: str | Rule = "hard",
    method: str | Method | Selector = DEFAULT,
    thresholds: Any = None,
    block_axis: int | None = None,
    batch_axis: int | None = None,
    pooled: bool = False,
) -> Any:
    """Choose the threshold of least estimated risk.

    Parameters
    ----------
    y, sigma, rule, method, thresholds, block_axis
        As in `risk_curve`.
    batch_axis : int, optional
        The axis along which many samples lie, each of which gets a threshold of its own. `sigma` is one number, or one
        per sample. It is the same as a loop, and 2 to 10 times faster for samples of up to 4096 entries.
    pooled : bool
        Whether the samples of a batch share one threshold, over their noise levels.

    Returns
    -------
    Selection or SelectionBatch
        The threshold, the estimate, its risk and degrees of freedom, the whole curve, and a status. With `batch_axis`
        arrays of these, one per sample.

    Warns
    -----
    AssumptionWarning
        If a mixture was fitted, and y does not look like signal plus Gaussian noise of level sigma: see `Selection`.

    See Also
    --------
    risk_curve : The risk at all thresholds.
    compare : Select by several methods.
    threshold_coeffs : Do so for every band of a wavelet transform.

    Notes
    -----
    This is the algorithm of the paper [1]_: estimate the risk at every threshold of a grid and take the least. The
    default, `Mixture`, takes a threshold beyond nearly all noise only if it kills nothing that stands out of it.

    References
    ----------
    .. [1] C.-A. Deledalle, G. Peyré and J. Fadili, "Stein COnsistent Risk Estimator (SCORE) for hard thresholding",
       SPARS 2013, hal-00776303.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> y[:20] += 6.0
    >>> selection = select_threshold(y, sigma=1.0)
    >>> selection
    <Selection: threshold 3.46875 (interior), estimated risk 40.76, degrees of freedom 30.9 of 1000>
    >>> selection.estimate[:5].round(2)
    array([6.13, 5.87, 6.64, 6.1 , 5.46])
    """
    _validate.pooled(pooled, batch_axis)
    options = {"rule": rule, "method": method, "thresholds": thresholds, "block_axis": block_axis}
    if batch_axis is not None:
        options["method"] = as_method(method, blocks=np.iscomplexobj(y) or block_axis is not None)
        return select_many(find_threshold, unnamed(y), sigma, axis_of(y, batch_axis), pooled=pooled, **options)
    found = find_threshold(y, sigma=sigma, **options)
    warn_of_misfit(found.misfit, found.curve.sigma)
    return found


def find_threshold(
    y: Any,
    *,
    sigma: float | None = None,
    rule: str | Rule = "hard",
    method: str | Method | Selector = DEFAULT,
    thresholds: Any = None,
    block_axis: int | None = None,
) -> Selection:
    """Return what `select_threshold` does, without its warning: for many bands, whose entries may be correlated."""
    named, y, block_axis = y, unnamed(y), axis_of(y, block_axis)
    given, blocks = as_rule(rule), _blocks_of(y, block_axis)
    method, rule = _method_and_rule(method, given, blocks)
    sample, curve, picked = _curve(y if blocks is None else blocks.norms, thresholds, sigma, method, rule)
    if picked is None:
        choose = getattr(method, "choose", None)  # objects that are no subclasses may go without
        k = int(np.argmin(curve.risk) if choose is None else choose(sample, curve, rule=rule))
    else:
        k, curve = int(np.searchsorted(curve.thresholds, picked)), dataclasses.replace(curve, misfit=np.nan)
    t, status = float(curve.thresholds[k]), status_of(sample, curve, k, rule)
    return Selection(t, float(curve.risk[k]), float(curve.dof[k]), curve, status, original(given), named, blocks)


def compare(
    y: Any,
    *,
    sigma: float | None = None,
    rule: str | Rule = "hard",
    methods: Iterable[str | Method | Selector] | None = None,
    block_axis: int | None = None,
) -> dict[str, Selection]:
    """Select a threshold by every method, or by those named.

    Parameters
    ----------
    y, sigma, rule, block_axis
        As in `risk_curve`.
    methods : iterable, optional
        Names or objects. The default is every method with a name that treats the rule.

    Returns
    -------
    dict of Selection
        By name, or by the representation of an object. Methods such as the universal threshold estimate no risk:
        their risk and curve are those of the default method.

    See Also
    --------
    select_threshold : Select by one method.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> y[:20] += 6.0
    >>> for name, selection in compare(y, sigma=1.0, methods=["score", "universal"]).items():
    ...     print(name, round(selection.threshold, 2), np.count_nonzero(selection.estimate))
    score 3.66 22
    universal 3.72 21
    """
    rule = as_rule(rule)
    if methods is None:
        methods = [name for name in METHODS if name != "sure" or not len(rule.jumps(1.0))]
        if rule.block_size > 1 or _blocks_of(y, block_axis) is not None:
            methods = list(BLOCK_METHODS)
    return {
        method if isinstance(method, str) else repr(method): select_threshold(
            y, sigma=sigma, rule=rule, method=method, block_axis=block_axis
        )
        for method in methods
    }
