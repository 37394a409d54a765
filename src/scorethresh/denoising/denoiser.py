"""The door: a signal, image or volume in, the same out, and a prediction of the error."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._progress import Progress
from ..frames.wavelets import wavelet
from ..noise.models import as_noise
from ..risk.methods import Method, Selector, as_method
from ..risk.prediction import RiskSums
from ..rules import Hard, Rule, as_rule
from .batch import Batch
from .crops import crops_of, universal_cap
from .experts.fit_bands import fit_bands, fit_global
from .experts.nonlocal_ridge import REPORTS
from .layout import Layout, read_layout
from .plan import FittedPlan, PlanOptions, fit_plan
from .result import Denoised
from .stabilise import Stabilised, stabilise
from .tiles import DenoisedChannel, denoise_tiles, denoise_whole, tiles_of
from .way_back import WayBack

__all__ = ["Denoiser", "denoise"]

# How the thresholds of wavelet bands are chosen.
CHOICES = {"blend": fit_bands, "fast": fit_bands, "bands": fit_bands, "global": fit_global}
# Those that blend experts.
BLENDS = ("blend", "fast")


@dataclass(frozen=True, kw_only=True)
class Denoiser:
    """Denoise signals, images and volumes; `run` returns the estimate and everything known about it.

    The parameters are those of `denoise`.

    See Also
    --------
    denoise : the same in one call, which returns the estimate alone.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.zeros((128, 128))
    >>> clean[32:96, 32:96] = 100.0
    >>> found = Denoiser(sigma=20.0).run(clean + rng.normal(0.0, 20.0, clean.shape))
    >>> found.predicted_mse < 40
    True
    """

    sigma: Any = None
    choose: str = "blend"
    wavelet: str | None = None
    levels: int | None = None
    undecimated: bool = True
    rule: str | Rule = "hard"
    method: str | Method | Selector | None = None
    noise: Any = "white"
    channel_axis: int | None = None
    mask: Any = None
    progress: bool = False

    def __post_init__(self) -> None:
        _validate.choice("choose", self.choose, CHOICES)
        as_noise(self.noise, self.sigma)
        method = None if self.method is None else as_method(self.method)
        if self.wavelet is not None:
            wavelet(self.wavelet)
        if self.levels is not None and not (isinstance(self.levels, int | np.integer) and self.levels >= 1):
            msg = f"levels must be a whole number of at least 1, got {self.levels!r}. None chooses it by the size of y."
            raise ValueError(msg)
        if self.choose in BLENDS and not (isinstance(as_rule(self.rule), Hard) and self.undecimated):
            msg = "the blend is made of undecimated hard thresholds. For another rule or frame: choose='bands'."
            raise ValueError(msg)
        if self.choose == "global" and method is not None and not isinstance(method, Method):
            msg = f"{self.method!r} estimates no risk, which one threshold for all bands needs. Use choose='bands'."
            raise ValueError(msg)

    def stabilised(self, y: Any) -> tuple[Layout, Stabilised | None]:
        """Return the layout of y, and y with noise of level 1: None if there is no noise in it."""
        layout = read_layout(y, self.channel_axis, self.mask)
        noise = as_noise(self.noise, self.sigma)
        if noise.slices:
            with_slices = layout.with_slices_as_channels()
            if with_slices is not layout:
                layout, noise = with_slices, noise.of_slices()
        return layout, stabilise(layout, noise)

    def run(self, y: Any) -> Denoised:
        """Denoise y.

        Parameters
        ----------
        y : array_like
            As in `denoise`.

        Returns
        -------
        Denoised
            The estimate, the predicted error and its standard error, bands, weights and plans.
        """
        layout, stabilised = self.stabilised(y)
        options = self._options(complex_data=layout.values.shape[1] > 1)
        if stabilised is None:
            return Denoised(layout.unchanged(), 0.0, 0.0, 0.0, (), {})
        values, back = stabilised
        fitted: list[FittedPlan] = []
        denoised: list[DenoisedChannel] = []
        with Progress("denoise", steps_of(layout.shape, options) * len(values), self.progress) as progress:
            guide = None
            for k, channel in enumerate(values):
                plan, found = denoise_channel(back.batch(k, channel, guide), back, k, options, progress)
                fitted.append(plan)
                denoised.append(found)
                if k == 0 and back.rotation is not None and options.refined:
                    guide = found.local  # the mean of the channels, in which patches of all are compared
        del values, stabilised, channel, guide  # frees memory before the way back needs some
        return _result(back, fitted, denoised)

    def _options(self, *, complex_data: bool) -> PlanOptions:
        rule, method = as_rule(self.rule), None if self.method is None else as_method(self.method)
        if complex_data and not (isinstance(rule, Hard) and method is None):
            msg = "complex data are thresholded by their modulus, hard, with SCORE. Leave out rule and method."
            raise ValueError(msg)
        return PlanOptions(
            blended=self.choose in BLENDS,
            refined=self.choose == "blend",
            fit=CHOICES[self.choose],
            wavelet=self.wavelet,
            levels=self.levels,
            undecimated=self.undecimated,
            rule=rule,
            method=method,
        )


def steps_of(shape: tuple[int, ...], options: PlanOptions) -> int:
    """Return how often `denoise_channel` reports progress."""
    tiles = len(tiles_of(shape))
    return tiles + REPORTS if options.refined and tiles > 1 else tiles


def denoise_channel(
    batch: Batch, back: WayBack, channel: int, options: PlanOptions, progress: Progress
) -> tuple[FittedPlan, DenoisedChannel]:
    """Fit a plan to a channel, or to crops of it, and apply it."""
    places = crops_of(batch)
    sample = batch if len(places) == 1 else batch.crops(places)
    cap = universal_cap(batch, places)
    fitted = fit_plan(sample, back.covariances[channel], batch.shape, options, cap)
    if len(places) > 1:
        found = denoise_tiles(fitted.plan, batch, back, channel, progress.step)
        for _ in range(REPORTS if options.refined and fitted.plan.refinement is None else 0):
            progress.step()  # the work that turned out not to be needed
        return fitted, found
    found = denoise_whole(fitted, batch, back, channel)
    progress.step()
    return fitted, found


def _result(back: WayBack, fitted: list[FittedPlan], denoised: list[DenoisedChannel]) -> Denoised:
    """Return everything in the units and the layout of y."""
    restored = back.restore(np.stack([found.value for found in denoised]))
    sums = sum((found.sums for found in denoised), RiskSums())
    prediction = back.predict(sums, restored, fitted[0].plan.filter_ratio)
    several = len(fitted) > 1
    bands = [
        dataclasses.replace(band, channel=k if several else None)
        for k, some in enumerate(fitted)
        for band in some.bands
    ]
    weights = {
        f"channel {k} {name}" if several else name: weight
        for k, some in enumerate(fitted)
        for name, weight in some.plan.named_weights.items()
    }
    plans = tuple(some.plan for some in fitted)
    return Denoised(restored.estimate, back.sigma, prediction.mse, prediction.stderr, tuple(bands), weights, plans)


def denoise(
    y: Any,
    *,
    sigma: Any = None,
    choose: str = "blend",
    wavelet: str | None = None,
    levels: int | None = None,
    undecimated: bool = True,
    rule: str | Rule = "hard",
    method: str | Method | Selector | None = None,
    noise: Any = "white",
    channel_axis: int | None = None,
    mask: Any = None,
    progress: bool = False,
) -> NDArray[Any]:
    """Remove noise from a signal, an image or a volume.

    Parameters
    ----------
    y : array_like
        One to three axes, and perhaps one of channels. Real, integer or complex; NaN marks missing entries. Integers
        stay integers in their units. Real and imaginary parts share decisions.
    sigma : float or array_like, optional
        The noise level in units of y (of one part, if y is complex): a number, one per channel, or one per entry. By
        default it is estimated, per channel.
    choose : {"blend", "fast", "bands", "global"}
        ``"blend"``: the best. Thresholds in wavelets and in the DCT of windows guide a second, smoother shrinkage. In
        its result, patches that look alike are found, and estimated from each other. The blend of least estimated risk
        is returned. ``"fast"``: the same without patches that look alike, in a third of the time. ``"bands"``: wavelets
        only, with a threshold per band. ``"global"``: one threshold, over the noise level, for all bands.
    wavelet : str, optional
        A discrete wavelet of PyWavelets. By default ``"haar"``; for signals ``"sym8"``, in the blend both.
    levels : int, optional
        Levels of the wavelets. By default at most 5 for images, 3 for volumes, 12 for signals.
    undecimated : bool
        Whether wavelets are taken at every position, which is better, or sampled, as most packages do.
    rule : str or Rule
        What is done to the coefficients of wavelets, for ``"bands"`` and ``"global"``.
    method : str or Method, optional
        How their thresholds are chosen. By default SCORE for bands of 16384 coefficients or more, else the mixture.
    noise : {"white", "poisson", "correlated"}, NoiseModel or array_like
        ``"poisson"``: y holds counts. ``"correlated"``: stationary noise, its spectrum estimated from flat regions. An
        array is the power spectrum, ``E |fftn(w)|^2 / w.size`` on the grid of `numpy.fft.fftn`.
    channel_axis : int, optional
        The axis of colours or other channels. Channels of similar noise are decorrelated by an orthonormal transform.
        Constant ones are left as they are. If None, an axis of length at most 8 (2 in a picture) is treated as
        channels when the other axes have 32 entries or more.
    mask : array_like of bool, optional
        True where entries are missing. They are filled in before and given back as they were, in all channels if one
        is missing. Constant regions, such as a background that was set to 0, are treated alike.
    progress : bool
        Whether to show a progress bar on standard error.

    Returns
    -------
    ndarray
        With the shape and dtype of y; a masked array if y is one.

    See Also
    --------
    Denoiser : returns the predicted error and more.
    select_threshold : chooses a threshold for your own coefficients.

    Notes
    -----
    A noise level per entry is stabilised by dividing y by it. Where the level varies within a few entries, that adds
    variation to the signal and costs sharpness.

    References
    ----------
    C. Deledalle, G. Peyré, J. Fadili, "Stein COnsistent Risk Estimator (SCORE) for hard thresholding", 2013,
    hal-00776303.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.sin(np.linspace(0.0, 12.0, 1000))
    >>> noisy = clean + rng.normal(0.0, 0.3, 1000)
    >>> estimate = denoise(noisy)
    >>> bool(np.mean((estimate - clean) ** 2) < 0.1 * np.mean((noisy - clean) ** 2))
    True
    """
    options = {name: value for name, value in locals().items() if name != "y"}
    return Denoiser(**options).run(y).estimate
