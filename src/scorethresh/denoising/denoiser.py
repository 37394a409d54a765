"""The door: a signal, image or volume in, the same out, and a prediction of the error."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .. import _validate
from .._containers import in_units, run_inside, values_of
from .._lazy_data import lazy_module
from .._progress import Progress
from ..frames.wavelets import wavelet
from ..noise.auto import AutoNoise
from ..noise.base import ChosenNoise
from ..noise.named import as_noise
from ..risk.methods import Method, Selector, as_method
from ..risk.prediction import RiskSums
from ..rules import Hard, Rule, as_rule
from .batch import Batch
from .crops import crops_of, universal_cap
from .error_map import ErrorBlocks
from .experts.fit_bands import fit_bands, fit_global
from .experts.nonlocal_ridge import REPORTS
from .layout import Layout, read_layout
from .many import denoise_many
from .noise_sample import is_sampled, noise_sample, outlier_levels, with_outliers
from .places import tiles_of
from .plan import ChosenPlan, PlanOptions, fit_plan, named_bands, named_weights
from .result import Denoised
from .stabilise import Stabilised, stabilise
from .tiles import DenoisedChannel, denoise_tiles, denoise_whole
from .verdict import Verdict, judge
from .way_back import WayBack
from .without_noise import unchanged

__all__ = ["Denoiser", "denoise"]

# How the thresholds of wavelet bands are chosen.
CHOICES = {"blend": fit_bands, "fast": fit_bands, "bands": fit_bands, "global": fit_global}
Choose = Literal["blend", "fast", "bands", "global"]
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
    choose: Choose = "blend"
    wavelet: str | None = None
    levels: int | None = None
    undecimated: bool = True
    rule: str | Rule = "hard"
    method: str | Method | Selector | None = None
    noise: Any = "auto"
    channel_axis: int | None = None
    mask: Any = None
    batch_axis: int | None = None
    pooled: bool = False
    progress: bool | float = False

    def __post_init__(self) -> None:
        _validate.choice("choose", self.choose, CHOICES)
        _validate.pooled(self.pooled, self.batch_axis)
        as_noise(self.noise, values_of(self.sigma))
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

    def stabilised(self, y: Any) -> tuple[Layout, ChosenNoise, Stabilised | None]:
        """Return the layout of y, the noise model, and y with noise of level 1: None if there is no noise in it."""
        layout = read_layout(y, self.channel_axis, self.mask)
        noise = as_noise(self.noise, in_units(self.sigma, None))
        if noise.slices:
            with_slices = layout.with_slices_as_channels()
            if with_slices is not layout:
                layout, noise = with_slices, noise.of_slices()
        if not (noise.sampled and is_sampled(layout.shape)):
            chosen = noise.chosen_for(layout.values, layout.missing)
            layout = dataclasses.replace(layout, outliers=chosen.outliers)
            return layout, chosen, stabilise(layout, chosen.model)
        whole = layout
        sample = noise_sample(layout.shape, lambda places: [whole.crop(place) for place in places])
        chosen = noise.chosen_for(sample.values, sample.missing)
        if noise.finds_outliers:
            layout = with_outliers(layout, outlier_levels(sample))
        sample = dataclasses.replace(sample, outliers=chosen.outliers)
        chosen = ChosenNoise(chosen.model, layout.outliers, chosen.remarks)
        return layout, chosen, stabilise(layout, chosen.model, sample)

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
        lazy = lazy_module(y)
        if lazy is not None:
            return lazy.run(self, y)  # type: ignore[no-any-return]
        inside = run_inside(y, self.sigma, lambda values, sigma: dataclasses.replace(self, sigma=sigma).run(values))
        if inside is not None:
            return inside  # type: ignore[no-any-return]
        if self.batch_axis is not None:
            return denoise_many(
                dataclasses.replace(self, batch_axis=None, pooled=False), y, self.batch_axis, pooled=self.pooled
            )
        layout, chosen, stabilised = self.stabilised(y)
        options = self.plan_options(complex_data=layout.values.shape[1] > 1)
        if stabilised is None:
            automatic = isinstance(as_noise(self.noise, self.sigma), AutoNoise)
            return _warned(unchanged(layout, chosen.model, automatic))
        values, back = stabilised
        fitted: list[ChosenPlan] = []
        denoised: list[DenoisedChannel] = []
        with Progress("denoise", steps_of(layout.shape, options) * len(values), self.progress) as progress:
            guide = None
            for k, channel in enumerate(values):
                plan, found = denoise_channel(back.batch(k, channel, guide), back, k, options, progress)
                fitted.append(plan)
                denoised.append(found)
                if k == 0 and back.rotation is not None and options.refined:
                    guide = found.local  # the mean of the channels, in which patches of all are compared
        verdict = judge(chosen, back, values[0], denoised[0].value)
        del values, stabilised, channel, guide  # frees memory before the way back needs some
        return _warned(_result(back, chosen, verdict, fitted, denoised))

    def plan_options(self, *, complex_data: bool) -> PlanOptions:
        """Return what the user chose, as objects."""
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


def _warned(found: Denoised) -> Denoised:
    """Return a result after its warnings."""
    for failure in found.warnings:
        _validate.warn(failure)
    return found


def steps_of(shape: tuple[int, ...], options: PlanOptions) -> int:
    """Return how often `denoise_channel` reports progress."""
    tiles = len(tiles_of(shape))
    return tiles + REPORTS if options.refined and tiles > 1 else tiles


def denoise_channel(
    batch: Batch, back: WayBack, channel: int, options: PlanOptions, progress: Progress
) -> tuple[ChosenPlan, DenoisedChannel]:
    """Fit a plan to a channel, or to crops of it, and apply it."""
    places = crops_of(batch)
    sample = batch if len(places) == 1 else batch.crops(places)
    fitted = fit_plan(sample, back.covariances[channel], batch.shape, options, universal_cap(batch, places))
    chosen = fitted.chosen
    if len(places) > 1:
        del sample, fitted  # frees memory before tiles need some
        found = denoise_tiles(chosen.plan, batch, back, channel, progress.step)
        for _ in range(REPORTS if options.refined and chosen.plan.refinement is None else 0):
            progress.step()  # the work that turned out not to be needed
    else:
        found = denoise_whole(fitted, batch, back, channel)
        progress.step()
    return chosen, found


def _result(
    back: WayBack, chosen: ChosenNoise, verdict: Verdict, fitted: list[ChosenPlan], denoised: list[DenoisedChannel]
) -> Denoised:
    """Return everything in the units and the layout of y."""
    restored = back.restore([found.value for found in denoised])
    sums = sum((found.sums for found in denoised), RiskSums())
    prediction = back.predict(sums, back.entry_sums(restored), fitted[0].plan.filter_ratio)
    verdict = verdict.with_prediction(prediction)
    covariance = back.covariances[0]
    blocks = ErrorBlocks(
        back.layout.shape,
        np.sum([found.blocks for found in denoised], axis=0),
        covariance.mean_squared_power / covariance.variance**2,
        prediction.mse,
    )
    return Denoised(
        restored.estimate,
        back.sigma,
        prediction.mse,
        prediction.stderr,
        named_bands(fitted),
        named_weights(fitted),
        tuple(some.plan for some in fitted),
        noise=chosen.model.with_measured(back.stabiliser),
        verdict=str(verdict),
        warnings=verdict.failures,
        outliers=0 if chosen.outliers is None else int(np.count_nonzero(chosen.outliers)),
        error_blocks=blocks,
    )


def denoise(
    y: Any,
    *,
    sigma: Any = None,
    choose: Choose = "blend",
    wavelet: str | None = None,
    levels: int | None = None,
    undecimated: bool = True,
    rule: str | Rule = "hard",
    method: str | Method | Selector | None = None,
    noise: Any = "auto",
    channel_axis: int | None = None,
    mask: Any = None,
    batch_axis: int | None = None,
    pooled: bool = False,
    progress: bool | float = False,
) -> Any:
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
    noise : {"auto", "white", "correlated", "camera", "poisson", "rician", "speckle"}, NoiseModel or array_like
        ``"auto"``: what fits the data, see `Denoised.noise`; white noise if `sigma` is given. Outliers of images and
        volumes, such as dead pixels, are then replaced. ``"correlated"``: stationary noise, its spectrum estimated from
        flat regions. ``"camera"``: its variance grows with the signal, see `CameraNoise`. ``"poisson"``: y holds
        counts. An array is the power spectrum, ``E |fftn(w)|^2 / w.size`` on the grid of `numpy.fft.fftn`.
    channel_axis : int, optional
        The axis of colours or other channels. Channels of similar noise are decorrelated by an orthonormal transform.
        Constant ones are left as they are. If None, an axis of length at most 8 (2 in a picture) is treated as
        channels when the other axes have 32 entries or more.
    mask : array_like of bool, optional
        True where entries are missing. They are filled in before and given back as they were, in all channels if one
        is missing. Constant regions, such as a background that was set to 0, are treated alike.
    batch_axis : int, optional
        The axis along which many data of one shape lie, such as beats or spectra. Each is denoised by itself, with its
        own noise level, thresholds and prediction. `sigma` may be one number per sample, or a map for each; so may
        `mask`.
    pooled : bool
        Whether the data of a batch share noise, thresholds and weights, which are then chosen on all of them. It is
        better for short signals that are alike, and faster for ``choose="bands"``.
    progress : bool or float
        Whether to show a progress bar, by tqdm: on standard error, or in a notebook. A number shows it only if the work
        takes more than that many seconds.

    Returns
    -------
    ndarray
        With the shape and dtype of y; a masked array if y is one. A Series or DataFrame of pandas keeps its index, a
        quantity of pint its units.

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
