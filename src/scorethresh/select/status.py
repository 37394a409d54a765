"""Where the least risk was found, and what to do about it."""

from __future__ import annotations

import enum

import numpy as np

from ..risk.curve import RiskCurve
from ..rules import Rule
from ..sample.magnitudes import Magnitudes, default_thresholds

__all__ = ["Status", "status_of"]


class Status(enum.StrEnum):
    """Where the least risk was found; `remedy` says what to do about it.

    ``"interior"``: thresholds on both sides were tried, or lie beyond all noise. ``"keeps all"``: the estimate is y.
    ``"kills all"``: the estimate is zero. ``"edge"``: at the end of the range of thresholds, with noise beyond it.

    Examples
    --------
    >>> Status.EDGE.remedy
    'The least risk is at the end of the range of thresholds. Widen the range, or leave thresholds out.'
    """

    INTERIOR = "interior"
    KEEPS_ALL = "keeps all"
    KILLS_ALL = "kills all"
    EDGE = "edge"

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _REMEDIES[self]


_REMEDIES = {
    Status.INTERIOR: "Nothing: thresholds on both sides were tried, or lie beyond all noise.",
    Status.KEEPS_ALL: (
        "No threshold is expected to beat y itself. Check that sigma is not too small. If it is right, y is mostly "
        "signal, or its energy is spread over all entries: try a transform in which it is sparse."
    ),
    Status.KILLS_ALL: (
        "No entry stands out from the noise, and zero is the best estimate. Check that sigma is not too large. If it "
        "is right, try a transform in which the signal is sparse."
    ),
    Status.EDGE: ("The least risk is at the end of the range of thresholds. Widen the range, or leave thresholds out."),
}


def status_of(sample: Magnitudes, curve: RiskCurve, k: int, rule: Rule) -> Status:
    """Return the status of the k-th threshold of a curve."""
    t = curve.thresholds[k]
    if sample.nodes[-1] < t:
        return Status.KILLS_ALL
    if sample.nodes[0] >= t:
        values = rule(sample.nodes, t)
        if np.array_equal(values, sample.nodes):
            return Status.KEEPS_ALL
        if not np.any(values):
            return Status.KILLS_ALL
    finite = curve.thresholds[np.isfinite(curve.thresholds)]
    # Beyond the default grid there is no noise left to set to zero, only signal.
    past_noise = default_thresholds(sample.size, curve.sigma, rule.block_size)[-2]
    return Status.EDGE if t == finite[0] > 0 or t == finite[-1] < past_noise else Status.INTERIOR
