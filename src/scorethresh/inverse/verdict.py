"""What the figures of a restoration say, in words."""

from __future__ import annotations

import math

from .. import _validate
from .result import RestorationStep

__all__ = ["check_prediction", "verdict_of"]

# How far the predicted error may lie outside of [0, sigma^2], in standard errors, before there is a warning.
DOUBT = 3.0


def doubt(last: RestorationStep, sigma: float) -> str:
    """Return what is wrong with the prediction, nothing if it may be right."""
    if last.predicted_mse < -DOUBT * last.stderr:
        return (
            f"The predicted error of A x is {last.predicted_mse:.3g}, far below zero: sigma, {sigma:.4g}, is too "
            "large, or the noise is not white. Pass a smaller sigma."
        )
    if last.predicted_mse > sigma**2 + DOUBT * last.stderr:
        return (
            f"A x is predicted to be worse than y itself, by a mean squared error of {last.predicted_mse:.3g} over "
            f"{sigma**2:.3g}: the operator does not describe the data, sigma, {sigma:.4g}, is too small, or more "
            "steps are needed. Check them."
        )
    return ""


def check_prediction(last: RestorationStep, sigma: float) -> None:
    """Warn if the predicted error cannot be right."""
    message = doubt(last, sigma)
    if message:
        _validate.warn(message)


def verdict_of(last: RestorationStep, sigma: float, share: float) -> str:
    """Return what the last step and the share of x that the data determine say."""
    said = []
    if not math.isnan(last.predicted_mse):
        root = math.sqrt(max(last.predicted_mse, 0.0))
        said.append(
            f"A x is predicted to differ from A x0 by {root:.3g} in the root mean square, {root / sigma:.0%} of the "
            f"noise level (mean squared error {last.predicted_mse:.3g} +- {last.stderr:.2g})."
        )
        said.append(doubt(last, sigma))
    said.append(f"The residual has {last.residual:.2f} times the energy of the noise.")
    said.append(
        f"The data determine {share:.0%} of x. The rest comes from the prior, and no figure here covers it: in the "
        "null space of A the error is unknown."
    )
    return " ".join(filter(None, said))
