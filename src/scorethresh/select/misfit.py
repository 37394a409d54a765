"""What to say if the data do not look like signal plus Gaussian noise."""

from __future__ import annotations

from .. import _validate

__all__ = ["MAX_MISFIT", "warn_of_misfit", "warn_of_negative_risk"]

# If the assumptions hold, 3 of 16,000 simulated samples of pure noise, of 300 and 2000 entries, exceed this; 1.7 is
# exceeded by one of 1000. Dense signals are fitted more closely and exceed it less often. A lower value finds a wrong
# sigma in fewer entries, but cries wolf where thousands of bands are looked at.
MAX_MISFIT = 2.0

# Standard errors by which an estimated risk lies below zero if sigma is too high. The least of many may lie two below
# by chance.
BELOW_ZERO = 4.0

_SMALL = (
    "There are too many small entries: sigma is too high, or the noise has heavy tails, varies in strength, or is "
    "missing from some entries. Check sigma, and divide y by the noise level where it varies"
)
_OTHER = "The noise is not Gaussian, or its entries are not independent. Check what was done to y before"


def warn_of_misfit(misfit: float, sigma: float) -> None:
    """Warn if the misfit of a mixture is larger than chance allows."""
    if not abs(misfit) > MAX_MISFIT:  # NaN: nothing was fitted
        return
    msg = (
        f"y does not look like signal plus independent Gaussian noise of level sigma = {sigma:.6g}: the misfit is "
        f"{misfit:.3g}, and beyond {MAX_MISFIT} in one of 5000 samples. {_SMALL if misfit > 0 else _OTHER}. If only "
        "neighbours are correlated, as in undecimated transforms, the threshold stands but stderr is too small."
    )
    _validate.warn(msg)


def warn_of_negative_risk(risk: float, stderr: float) -> None:
    """Warn if an estimated risk is so far below zero that chance does not explain it."""
    if risk < -BELOW_ZERO * stderr:
        msg = (
            f"The estimated risk is {risk:.4g}, below zero by {-risk / stderr:.3g} standard errors: sigma is too high. "
            "Check sigma, and that the noise is white."
        )
        _validate.warn(msg)
