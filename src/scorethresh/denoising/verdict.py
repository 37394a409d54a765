"""Whether the noise model holds: what was removed is compared with it, in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from ..noise.auto import MIN_RED, least_red
from ..noise.base import ChosenNoise, NoiseModel
from ..noise.clipping import near_clip_limits
from ..noise.concentration import middle, vary_too_little
from ..noise.covariance import Covariance
from ..noise.level import sample_level
from ..noise.models import CorrelatedNoise
from ..noise.residual import ResidualCheck, check_residuals
from ..noise.stripes import Stripes, find_stripes
from ..noise.tails import have_heavy_tails
from ..noise.whiteness import whiteness
from ..risk.prediction import Prediction
from .way_back import WayBack

# Levels in flat windows, over that of the model, below which the model's is too high. Hard thresholds leave a part of
# the noise in the estimate, so the level reads 0.82 to 1 on development photographs at noise 5, 0.95 to 1 at 20.
LEAST_LEVEL = 0.8
# Levels read from the data, over that of the model, above which the model's is too low. Texture raises them by up to a
# tenth.
MOST_LEVEL = 1.25
# Powers in the brightest over that in the darkest quarter of flat windows between which the noise is called even, and
# standard errors that its logarithm must lie beyond. On these photographs white noise reads 0.9 to 1.2, counts 1.5 to
# 10 if the brightness varies.
EVEN = 1.4
BEYOND = 4.0
# Standard errors by which an estimated risk lies below zero if the noise level is called too high.
SURELY = 3.0
# Least variance of a stabilised entry, over that of the model, that can be compared.
MIN_FACTOR = 0.3
# Fewest entries from which a level that was given is doubted.
MIN_ENTRIES = 4096
# Relative standard error of an estimated level beyond which it is doubted. Signals of 64 entries have 0.2, of 32 0.3.
MOST_LEVEL_ERROR = 0.25
# The verdict on data that stay as they are.
NO_NOISE = "No noise was found. The data were left as they are."


_TOO_HIGH = (
    "The noise level is too high: the data vary less than noise of that level would by itself. Details may be lost. "
    "Pass a smaller sigma, if you know it, or none."
)


_TEXTURED = (
    "No region is flat enough to tell noise from fine texture. The noise level may be too high, and details may be "
    "lost. Pass sigma, if you know it."
)
_HEAVY_TAILS = (
    "The noise has heavy tails: large entries, of both signs, come more often than in normal noise. They are kept as "
    "signal, and the error is larger than predicted. Replace them first, by a median filter or by NaN, or transform "
    "the data."
)
_ALL_CLIPPED = (
    "The noise is clipped everywhere: no region is far enough from the limits of the data to test the noise model. The "
    "error may be larger than predicted. Record the data again with more headroom, if you can."
)
_BELOW_ZERO = (
    "The estimated risk is below zero, which no error is: the noise level is too high, or the noise is correlated. "
    "Details may be lost, and the error is larger than predicted. Pass a smaller sigma, or leave it out to have it "
    "estimated; or try noise='correlated'."
)


class Verdict(NamedTuple):
    """What was found, in words: one sentence on the model, and one on each assumption that fails.

    It is not `judged` if the model says that its level is none of the data's.
    """

    fits: str
    failures: tuple[str, ...]
    check: ResidualCheck | None
    judged: bool = True

    def __str__(self) -> str:
        return " ".join(self.failures) or self.fits

    def with_prediction(self, prediction: Prediction) -> Verdict:
        """Return the verdict with a doubt about the noise level if the estimated risk is clearly below zero."""
        told = not self.judged or _TOO_HIGH in self.failures
        if told or prediction.score >= -SURELY:
            return self
        return self._replace(failures=(*self.failures, _BELOW_ZERO))


def judge(chosen: ChosenNoise, back: WayBack, values: Floats, estimate: Floats) -> Verdict:
    """Compare what was removed from the first channel with the noise model; see `Case`."""
    return judge_all([Case(chosen, back, values, estimate)])[0]


class Case(NamedTuple):
    """What is judged.

    Attributes
    ----------
    chosen : ChosenNoise
        The noise model, and remarks on its choice.
    back : WayBack
        What is known of the noise of stabilised values.
    values, estimate : ndarray
        The first channel, (parts, *shape), before and after; of noise level 1.
    """

    chosen: ChosenNoise
    back: WayBack
    values: Floats
    estimate: Floats


class _Evidence(NamedTuple):
    """What is compared: y and its estimate, NaN where they cannot be; and what they tell of the noise."""

    y: Floats
    x: Floats
    varies_too_little: bool
    heavy_tails: bool
    check: ResidualCheck | None


def judge_all(cases: Sequence[Case]) -> list[Verdict]:
    """Judge data of one shape and precision, each by itself."""
    places = [k for k, case in enumerate(cases) if case.chosen.model.judged]
    evidence: list[_Evidence | None] = [None] * len(cases)
    for covariance, group in itertools.groupby(places, lambda k: cases[k].back.covariances[0]):
        own = list(group)
        for k, one in zip(own, _look([cases[k] for k in own], covariance), strict=True):
            evidence[k] = one
    return [_judge(case.chosen, case.back, one) for case, one in zip(cases, evidence, strict=True)]


def _look(cases: Sequence[Case], covariance: Covariance) -> list[_Evidence]:
    """Return what is compared of data whose noise has one covariance; what can be is measured on all at once."""
    place = middle(cases[0].values.shape[1:])
    y, x, removed = (_side_by_side(some) for some in zip(*(_compared(case, place) for case in cases), strict=True))
    little, heavy = vary_too_little(y, covariance), have_heavy_tails(y, x)
    checks = check_residuals(removed, x, covariance)
    return [_Evidence(*one) for one in zip(y, x, map(bool, little), map(bool, heavy), checks, strict=True)]


def _side_by_side(parts: Sequence[Floats]) -> Floats:
    """Return arrays along a new first axis, not copied if there is one."""
    return parts[0][None] if len(parts) == 1 else np.stack(parts)


def _compared(case: Case, place: tuple[slice, ...]) -> tuple[Floats, Floats, Floats]:
    """Return y, NaN where it cannot be compared, its estimate, and what was removed, with noise of level 1."""
    _, back, values, estimate = case
    y, x = np.asarray(values[0][place]), estimate[0][place]
    comparable = None if back.holds_noise else _comparable(back.crop(place))
    y = y if comparable is None else np.where(comparable, y, np.nan)
    # The roots of few counts vary less than those of many. Where they hardly do, nothing can be told.
    factor = np.asarray(back.local_noise(0, place, estimate[(slice(None), *place)]).variance)
    return y, x, (y - x) / np.sqrt(np.where(factor > MIN_FACTOR, factor, np.nan)).astype(x.dtype)


def _judge(chosen: ChosenNoise, back: WayBack, evidence: _Evidence | None) -> Verdict:
    """Return the verdict; there is no evidence if the model is not judged."""
    if evidence is None:
        return Verdict(f"It was not tested whether {chosen.model.name} fits.", (), None, judged=False)
    y, check, covariance = evidence.y, evidence.check, back.covariances[0]
    name = chosen.model.name
    if np.isnan(y).all():
        return Verdict(f"{name[0].upper()}{name[1:]} was assumed.", (*chosen.remarks, _ALL_CLIPPED), None)
    failures = list(chosen.remarks)
    if evidence.varies_too_little:
        failures.append(_TOO_HIGH)
    if back.stabiliser.level_error > MOST_LEVEL_ERROR:
        failures.append(
            f"The noise level is uncertain by {back.stabiliser.level_error:.0%}, and so "
            "is the predicted error. Pass sigma, if you know it."
        )
    stripes = find_stripes(y, math.sqrt(covariance.variance)) if y.ndim == 2 else None
    if stripes is not None:
        failures.append(_striped(stripes, math.sqrt(covariance.variance)))
    if evidence.heavy_tails:
        failures.append(_HEAVY_TAILS)
    if check is None:
        if stripes is None:  # which keep windows from being flat
            failures += _without_flat_windows(
                y, chosen.model, math.sqrt(covariance.variance), known=chosen.model.level_given
            )
        fits = f"{name[0].upper()}{name[1:]} was assumed. No region is flat enough to test that."
    else:
        failures += _failures(check, chosen.model, y.ndim, told=_TOO_HIGH in failures)
        fits = f"{name[0].upper()}{name[1:]} fits what was removed."
    return Verdict(fits, tuple(failures), check)


def _striped(stripes: Stripes, noise_level: float) -> str:
    """Return what is said of stripes."""
    line, extent = (("row", "width"), ("column", "height"))[stripes.axis]
    return (
        f"Every {line} has an offset of its own over the whole {extent}, as stripes of a detector or scanner do: "
        f"{stripes.level / noise_level:.2g} times the noise level. They were kept as signal. If they are stripes, the "
        f"error is larger than predicted. Remove them first: subtract from each {line} what its median differs from a "
        f"smooth curve through those of all {line}s."
    )


def _comparable(back: WayBack) -> NDArray[np.bool_] | None:
    """Return which entries, (*shape), hold noise as the model says: those that are valid and not near a clip limit.

    None if all do.
    """
    if not back.clipped:
        return back.valid
    near = near_clip_limits(back.y, back.stabiliser.level_at(back.y), back.clip_limits)
    return ~near if back.valid is None else back.valid & ~near


def _failures(check: ResidualCheck, model: NoiseModel, ndim: int, *, told: bool) -> list[str]:
    """Return a sentence for each assumption that fails; a level that is too high may have been told."""
    out = []
    if check.red > MIN_RED[ndim]:
        out.append(
            f"What was removed is correlated: at low frequencies it has {check.red:.1f} times the power of "
            f"{model.name}. The error is larger than predicted. {_remedy(model)}"
        )
    elif check.level < LEAST_LEVEL and not told:
        out.append(
            f"The noise level is too high: flat regions hold {check.level:.2f} of it. Details may be lost. Pass sigma, "
            "if you know it."
        )
    if abs(math.log(check.growth)) > max(math.log(EVEN), BEYOND * check.growth_error):
        ends = "bright" if check.growth > 1 else "dark", "dark" if check.growth > 1 else "bright"
        times = math.sqrt(max(check.growth, 1 / check.growth))
        out.append(
            f"The noise varies with the brightness: {ends[0]} regions hold {times:.1f} times the noise of {ends[1]} "
            "ones. Try noise='camera', or pass sigma as a map."
        )
    return out


def _remedy(model: NoiseModel) -> str:
    """Return what to do about noise that has more power at low frequencies than the model says."""
    if isinstance(model, CorrelatedNoise):
        return "Pass the power spectrum of the noise as noise=..., if you know it."
    return "Try noise='correlated'."


def _without_flat_windows(y: Floats, model: NoiseModel, level: float, *, known: bool) -> list[str]:
    """Return what can be said if the estimate is flat nowhere: perhaps because noise was left in it."""
    if y.size < MIN_ENTRIES:
        return []
    found = None if isinstance(model, CorrelatedNoise) else whiteness(y)
    if found is not None and found.red > least_red(y.shape):
        return [
            f"The noise is correlated, with {found.red:.1f} times the power at low frequencies that {model.name} has. "
            "The error is larger than predicted. Try noise='correlated'."
        ]
    if not known:
        return [_TEXTURED] if y.ndim > 1 else []
    read = sample_level(y) / level
    if read > MOST_LEVEL:
        return [f"The noise level is too low: the data read {read:.3g} times as much. Leave sigma out, or pass more."]
    return []
