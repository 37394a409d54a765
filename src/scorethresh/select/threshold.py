"""Risk curves and the choice of the threshold: the paper's algorithm."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._validate import Array
from ..risk.curve import RiskCurve
from ..risk.methods import METHODS, Method, Selector, as_method
from ..rules import Rule, as_rule
from ..sample.cells import Cells
from ..sample.magnitudes import SMALL, Magnitudes, default_thresholds, gather

__all__ = ["Selection", "Status", "compare", "risk_curve", "select_threshold"]

_FEW_ENTRIES = 200_000
_FEW_PAIRS = 1 << 22
# The method of those who name none.
DEFAULT = "mixture"


def risk_curve(
    y: Any,
    thresholds: Any = None,
    *,
    sigma: float | None = None,
    rule: str | Rule = "hard",
    method: str | Method | Selector = DEFAULT,
) -> RiskCurve:
    """Estimate the risk of a thresholding rule at many thresholds.

    Parameters
    ----------
    y : array_like or Magnitudes
        Noisy coefficients ``x0 + w`` with w white Gaussian, of any shape and real dtype; or their sample.
    thresholds : array_like, "all" or None
        Ascending, in units of y; infinity means kill everything. None is a grid from 0 past the universal threshold
        ``sigma sqrt(2 log P)``, and infinity. ``"all"`` is 0, every value just above a distinct ``|y_i|``, where
        the estimate changes, and infinity.
    sigma : float
        Standard deviation of w. `estimate_sigma` gives one.
    rule : str or Rule
        What is done to the entries: ``"hard"``, ``"soft"``, ``"firm"``, ``"garrote"``, ``"scad"``, ``"bridge"``, or
        an object.
    method : str or Method
        How its risk is estimated: a name, or an object such as ``Score(bandwidth=0.3)``. The default, ``"mixture"``,
        picked the best thresholds at every size in docs/evidence.md; ``"score"`` is the paper's.

    Returns
    -------
    RiskCurve
        Risks are totals over the entries.

    Notes
    -----
    Up to 4096 entries, with few thresholds up to 200,000, and for ``"all"``, every entry counts by itself; beyond, `y`
    is compressed in one pass (see `Magnitudes`), and results differ by rounding of the largest value on the curve.
    SCORE at ``"all"`` takes O(P log P) steps with rules of straight pieces; beyond some 8000 entries its standard
    errors are interpolated, to some per cent.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> y[:20] += 6.0
    >>> curve = risk_curve(y, [1.0, 2.0, 3.0, 4.0], sigma=1.0)
    >>> curve.risk.round(1)
    array([805.4, 277.6,  55.2,  54. ])
    """
    method = as_method(method)
    if not isinstance(method, Method):
        msg = f"{method!r} picks a threshold without estimating a risk. Use select_threshold, or another method."
        raise TypeError(msg)
    return _curve(y, thresholds, sigma, as_rule(rule), method)[1]


def _curve(
    y: Any, thresholds: Any, sigma: Any, rule: Rule, method: Method | Selector
) -> tuple[Magnitudes, RiskCurve, float | None]:
    """Return the sample, the curve and, if a selector picked one, the threshold."""
    sigma = _validate.noise_level(sigma)
    sample = y if isinstance(y, Magnitudes) else None
    size = sample.size if sample is not None else _validate.data(y).size
    every = isinstance(thresholds, str) and thresholds == "all"
    if every:
        sample = Magnitudes.exact(y) if sample is None else sample
        if sample.cells is not None:
            msg = 'thresholds="all" needs every |y_i|, which a compressed sample no longer has. Pass y itself.'
            raise ValueError(msg)
        tried = np.concatenate([[0.0], np.nextafter(np.unique(sample.nodes), np.inf), [np.inf]])
    elif thresholds is not None:
        tried = _validate.thresholds(thresholds)
    elif sample is not None and sample.cells is not None:
        tried = np.append(sample.cells.thresholds, np.inf)
    else:
        tried = default_thresholds(size, sigma)
    picked = None
    if not isinstance(method, Method):
        picked = method.pick(y if sample is not None else _validate.data(y), sigma=sigma, rule=rule)
        if sample is not None and sample.cells is not None:  # only edges of its cells can be had
            picked = float(tried[np.searchsorted(tried, picked)])
        tried = np.union1d(tried, picked)
        method = as_method(DEFAULT)
        assert isinstance(method, Method)
    if sample is None:
        # With few thresholds of the caller's own, exact sums cost little and are right to the last digit.
        few = thresholds is not None and size <= _FEW_ENTRIES and size * tried.size <= _FEW_PAIRS
        small = size <= SMALL or few or not np.isfinite(tried).any()
        cells = None if small else Cells.make(tried, rule, sigma, method.resolution(size, sigma))
        sample = Magnitudes.exact(y) if cells is None else gather(y, cells)
    return sample, method.curve(sample, tried, sigma=sigma, rule=rule), picked


class Status(enum.StrEnum):
    """Where the least risk was found, and what to make of it: `remedy`."""

    INTERIOR = "interior"
    KEEPS_ALL = "keeps all"
    KILLS_ALL = "kills all"
    EDGE = "edge"

    @property
    def remedy(self) -> str:
        """What to do about it, in words."""
        return _REMEDIES[self]


_REMEDIES = {
    Status.INTERIOR: "Nothing: the least risk lies between thresholds that were tried on both sides.",
    Status.KEEPS_ALL: (
        "No threshold is expected to beat y itself. Check that sigma is not too small; else y has little but signal "
        "in it, or its energy is spread over all entries: try a transform in which it is sparse."
    ),
    Status.KILLS_ALL: (
        "No entry stands out of the noise, and zero is the best estimate. Check that sigma is not too large; else "
        "try a transform in which the signal is sparse."
    ),
    Status.EDGE: (
        "The least risk is at the end of the range of thresholds: a better one may lie beyond. Widen the range, or "
        "leave thresholds out for the default grid."
    ),
}


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The threshold of least estimated risk, and what was found on the way.

    Attributes
    ----------
    threshold : float
        In units of y; infinity means kill everything.
    risk, dof : float
        The estimates at that threshold, summed over the entries.
    estimate : ndarray
        The rule applied to y at that threshold, with the shape of y; computed when first asked for, from y as it is
        then.
    curve : RiskCurve
        All thresholds that were tried.
    status : Status
        ``"interior"``, ``"keeps all"``, ``"kills all"`` or ``"edge"``; ``status.remedy`` says what to do.
    """

    threshold: float
    risk: float
    dof: float
    curve: RiskCurve
    status: Status
    rule: Rule
    _y: Any = field(default=None)

    @functools.cached_property
    def estimate(self) -> NDArray[Any]:
        """The rule applied to y at the threshold."""
        if isinstance(self._y, Magnitudes):
            msg = "a sample of magnitudes has no estimate. Apply the rule to y: selection.rule(y, selection.threshold)."
            raise AttributeError(msg)
        out: NDArray[Any] = self.rule(np.asarray(self._y), self.threshold)
        return out

    def plot(self, ax: Any = None) -> Any:
        """Draw the histogram of y, the fitted mixture and the threshold: `scorethresh.plot.plot_selection`."""
        from ..viz.plot import plot_selection

        return plot_selection(self, ax)

    def __repr__(self) -> str:
        return (
            f"<Selection: threshold {self.threshold:.6g} ({self.status}), estimated risk {self.risk:.4g}, "
            f"degrees of freedom {self.dof:.4g} of {self.curve.size}>"
        )


def select_threshold(
    y: Any,
    *,
    sigma: float | None = None,
    rule: str | Rule = "hard",
    method: str | Method | Selector = DEFAULT,
    thresholds: Any = None,
) -> Selection:
    """Choose the threshold of least estimated risk.

    Parameters
    ----------
    y, sigma, rule, method, thresholds
        As in `risk_curve`.

    Returns
    -------
    Selection
        The threshold, the estimate, its risk and degrees of freedom, the whole curve, and a status.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> y[:20] += 6.0
    >>> selection = select_threshold(y, sigma=1.0)
    >>> selection
    <Selection: threshold 3.46875 (interior), estimated risk 40.8, degrees of freedom 30.87 of 1000>
    >>> selection.estimate[:5].round(2)
    array([6.13, 5.87, 6.64, 6.1 , 5.46])
    """
    rule = as_rule(rule)
    sample, curve, picked = _curve(y, thresholds, sigma, rule, as_method(method))
    k = int(np.argmin(curve.risk) if picked is None else np.searchsorted(curve.thresholds, picked))
    t = float(curve.thresholds[k])
    status = _status(sample, curve.thresholds, k, rule)
    return Selection(t, float(curve.risk[k]), float(curve.dof[k]), curve, status, rule, y)


def _status(sample: Magnitudes, thresholds: Array, k: int, rule: Rule) -> Status:
    t = thresholds[k]
    killed = int(np.searchsorted(sample.nodes, t, side="left"))
    if killed == sample.nodes.size:
        return Status.KILLS_ALL
    if killed == 0 and np.array_equal(rule(sample.nodes, t), sample.nodes):
        return Status.KEEPS_ALL
    finite = np.flatnonzero(np.isfinite(thresholds))
    return Status.EDGE if k in (finite[0], finite[-1]) else Status.INTERIOR


def compare(
    y: Any,
    *,
    sigma: float | None = None,
    rule: str | Rule = "hard",
    methods: Iterable[str | Method | Selector] | None = None,
) -> dict[str, Selection]:
    """Select a threshold by every method, or by those named.

    Parameters
    ----------
    y, sigma, rule
        As in `risk_curve`.
    methods : iterable, optional
        Names or objects. The default is every method with a name that can treat the rule.

    Returns
    -------
    dict of Selection
        By name, or by the representation of an object. With methods that estimate no risk, such as the universal
        threshold, risk and curve are those of the default method.

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
    return {
        method if isinstance(method, str) else repr(method): select_threshold(y, sigma=sigma, rule=rule, method=method)
        for method in methods
    }
