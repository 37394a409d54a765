"""Many small data of one shape in one call: each by itself, or all by one plan."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _validate
from .._threads import cores, one_blas_thread, thread_map
from .._validate import AssumptionWarning
from ..noise.named import as_noise
from ..risk.estimate import Estimate
from ..risk.mixture_rows import MOST_ENTRIES
from ..risk.prediction import RiskSums, risk_sums
from .batch import ENTRIES_AT_ONCE, joined_batches
from .experts.decisions import EntryDecisions
from .layout import Layout, read_layout
from .noise_sample import MEASURED_WHOLE, joined_crops
from .plan import Plan, PlanOptions, fit_plan
from .result import Denoised
from .row_noise import stabilised_rows
from .rows import (
    Found,
    QuickDecisions,
    Row,
    ScoreDecisions,
    Treated,
    can_be_together,
    denoise_together,
    finished,
    found_in,
    is_plain,
)
from .stabilise import stabilise
from .tiles import entry_risk

# Samples that share their thresholds at most, for the sake of memory.
MOST_POOLED = 1 << 16
# Entries of a sample, at least, whose divergences under a shared plan are read by SCORE, in half the time. Of fewer its
# kernel tells too much: predictions of pooled sines of 33, 100, 200 and 400 samples are 5.6, 3.4, 1.9 and 1.3 times the
# true error by SCORE, 0.8, 0.8, 1.0 and 0.9 times by the mixture.
MIN_SCORED = 256
# Samples that an error names, at most.
MOST_NAMED = 5
# Entries of all samples that a shared plan is fitted to, at most: as many as crops of large data have.
FITTED_ENTRIES = 1 << 20


def denoise_many(single: Any, y: Any, batch_axis: int, *, pooled: bool) -> Denoised:
    """Denoise every sample along an axis.

    Parameters
    ----------
    single : Denoiser
        What denoises one of them.
    y, batch_axis, pooled
        As in `denoise`.

    Returns
    -------
    Denoised
        Noise levels, predicted errors and their standard errors are arrays, one entry per sample. Plans
        are those of the samples, one after the other; the noise model is that of the first. The verdict says of how
        many samples it holds. Bands and weights are left out.
    """
    data = np.ma.asanyarray(y) if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    whole = isinstance(batch_axis, int | np.integer) and not isinstance(batch_axis, bool)
    if data.ndim < 2 or not whole or not -data.ndim <= batch_axis < data.ndim:
        msg = f"batch_axis must be one of several axes of y, which has shape {data.shape}, got {batch_axis!r}."
        raise ValueError(msg)
    if not data.shape[batch_axis]:
        msg = f"y holds no samples along batch_axis {batch_axis}, with shape {data.shape}. Pass at least one."
        raise ValueError(msg)
    axis = batch_axis % data.ndim
    rows = [data[(slice(None),) * axis + (k,)] for k in range(data.shape[axis])]
    each = _denoisers(single, data.shape, axis)
    try:
        if pooled:
            found = _pooled(each, rows)
        else:
            with one_blas_thread(), warnings.catch_warnings():
                warnings.simplefilter("ignore", AssumptionWarning)  # told below, once for all samples
                found = _apart(each, rows)
    except ValueError:
        _name_refused(each, rows, axis)
        raise
    failures = tuple(dict.fromkeys(failure for some in found for failure in some.failures))
    for failure in failures:
        count = sum(failure in some.failures for some in found)
        _validate.warn(f"{failure} (In {count} of {len(found)} samples.)")
    stack = np.ma.stack if isinstance(data, np.ma.MaskedArray) else np.stack
    return Denoised(
        stack([some.estimate for some in found], axis=axis),
        np.array([some.sigma for some in found]),
        np.array([some.mse for some in found]),  # type: ignore[arg-type]
        np.array([some.stderr for some in found]),  # type: ignore[arg-type]
        (),
        {},
        tuple(plan for some in found for plan in some.plans),
        noise=found[0].noise,
        verdict=_verdict(found),
        warnings=failures,
    )


def _name_refused(each: Sequence[Any], rows: Sequence[Any], axis: int) -> None:
    """Raise an error that names the samples that cannot be read, if there are any."""
    refused: dict[str, list[int]] = {}
    for k, (one, row) in enumerate(zip(each, rows, strict=True)):
        try:
            read_layout(row, one.channel_axis, one.mask)
        except ValueError as error:
            refused.setdefault(str(error), []).append(k)
    for message, places in refused.items():
        more = f" and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
        named = f"sample{'s' * (len(places) > 1)} {', '.join(map(str, places[:MOST_NAMED]))}{more}"
        msg = f"{named} along batch_axis {axis}: {message} Or leave {'them' if len(places) > 1 else 'it'} out."
        raise ValueError(msg) from None


def _verdict(found: Sequence[Found]) -> str:
    """Return the verdicts on all samples, the most frequent first, each with the number of samples that it is on."""
    counts = Counter(sentence for some in found for sentence in some.failures or (some.verdict,))
    return " ".join(f"{text} (In {count} of {len(found)} samples.)" for text, count in counts.most_common())


def _denoisers(single: Any, shape: tuple[int, ...], axis: int) -> list[Any]:
    """Return the denoiser of every sample: levels and masks that have the batch axis are split along it."""
    count, channel = shape[axis], single.channel_axis
    if channel is not None:
        channel = channel % len(shape)
        if channel == axis:
            msg = f"batch_axis and channel_axis must be different axes of y, got {axis} for both."
            raise ValueError(msg)
        channel -= channel > axis
    single = replace(single, channel_axis=channel)
    split: dict[str, list[Any]] = {}
    for name in ("sigma", "mask"):
        value = getattr(single, name)
        if value is not None and np.shape(value) == shape:
            split[name] = list(np.moveaxis(np.asarray(value), axis, 0))
        elif name == "sigma" and value is not None and np.shape(value) == (count,):
            split[name] = [float(level) for level in np.asarray(value)]
    return [replace(single, **{name: values[k] for name, values in split.items()}) for k in range(count)]


def _apart(each: Sequence[Any], rows: Sequence[Any]) -> list[Found]:
    """Denoise each sample by itself: those that can be together, the others one by one."""
    options = each[0].plan_options(complex_data=rows[0].dtype.kind == "c")
    found: list[Found | None] = [None] * len(rows)
    if can_be_together(options, rows[0]):
        stabilised = stabilised_rows(each, rows)
        left = [k for k, row in enumerate(stabilised) if row is None]
        for k, row in zip(left, thread_map(lambda k: _stabilised(each[k], rows[k]), left), strict=True):
            stabilised[k] = row
        groups: dict[Any, list[int]] = {}
        for k, row in enumerate(stabilised):
            if row is not None:
                groups.setdefault(row.values.dtype, []).append(k)
        for places in groups.values():
            some: list[Any] = [stabilised[k] for k in places]
            for k, one in zip(places, denoise_together(some, options), strict=True):
                found[k] = one
    left = [k for k, one in enumerate(found) if one is None]
    treat = functools.partial(_alone, options=options)
    for k, one in zip(left, thread_map(lambda k: treat(each[k], rows[k]), left), strict=True):
        found[k] = one
    return [one for one in found if one is not None]


def _stabilised(denoiser: Any, row: Any) -> Row | None:
    """Return a sample with noise of level 1; None if it has gaps, parts, weights, or no noise."""
    _, chosen, found = denoiser.stabilised(row)
    if found is None:
        return None
    row = Row(chosen, found.back, np.asarray(found.values))
    return row if is_plain(row) else None


def _alone(denoiser: Any, row: Any, options: PlanOptions) -> Found:
    """Denoise one sample as if it were the only one."""
    if (
        options.blended
        and options.method is None
        and row.size <= MOST_ENTRIES
        and not isinstance(row, np.ma.MaskedArray)
    ):
        known = _stabilised(denoiser, row)
        if known is not None:
            quick = replace(options, decide=lambda parts, rule, method: QuickDecisions(rule))
            batch = known.back.batch(0, known.values[0])
            fitted = fit_plan(batch, known.back.covariances[0], batch.shape, quick)
            divergence = np.broadcast_to(fitted.estimate.divergence, (1, *batch.shape))
            plan = _by_default(fitted.plan, EntryDecisions)
            return finished([known], fitted.estimate.value, divergence, [plan])[0]
    found: Denoised = denoiser.run(row)
    return Found(
        found.estimate,
        found.sigma,
        found.predicted_mse,
        found.stderr,
        found.plans,
        found.noise,
        found.warnings,
        found.verdict,
    )


def _by_default(plan: Plan, kind: type[EntryDecisions]) -> Plan:
    """Return a plan whose bands estimate divergences by decisions of a kind."""
    experts = plan.experts
    bands = tuple(replace(some, decisions=kind(some.decisions.rule)) for some in experts.thresholds)
    return replace(plan, experts=replace(experts, thresholds=bands))


def _pooled(each: Sequence[Any], rows: Sequence[Any]) -> list[Found]:
    """Denoise all samples by one plan, which is fitted to as many of them as are needed."""
    layouts = [read_layout(row, one.channel_axis, one.mask) for one, row in zip(each, rows, strict=True)]
    options = each[0].plan_options(complex_data=layouts[0].values.shape[1] > 1)
    stabilised = _stabilised_alike(each, layouts)
    noisy = [k for k, some in enumerate(stabilised) if some is not None]
    model = as_noise(each[0].noise, each[0].sigma)
    found: list[Found] = [Found(layout.unchanged(), 0.0, 0.0, 0.0, noise=model) for layout in layouts]
    if not noisy:
        return found
    known: list[Any] = [stabilised[k] for k in noisy]
    if not options.blended and can_be_together(options, rows[0]) and all(is_plain(row) for row in known):
        for start in range(0, len(known), MOST_POOLED):
            part = slice(start, start + MOST_POOLED)
            for k, one in zip(noisy[part], denoise_together(known[part], options, pooled=True), strict=True):
                found[k] = one
        return found
    plans: list[Plan] = []
    if known[0].values.shape[1] == 1 and options.method is None and rows[0].size >= MIN_SCORED:
        options = replace(options, decide=lambda parts, rule, method: ScoreDecisions(rule))
    for channel in range(len(known[0].back.covariances)):
        batches = [some.back.batch(channel, some.values[channel]) for some in known]
        step = max(1, -(-sum(batch.values.size for batch in batches) // FITTED_ENTRIES))
        batch = joined_batches(batches[::step])
        plans.append(fit_plan(batch, known[0].back.covariances[channel], batch.shape, options).plan)

    most = max(1, min(ENTRIES_AT_ONCE // known[0].values[0].size, -(-len(known) // cores())))
    parts = [known[k : k + most] for k in range(0, len(known), most)]
    with one_blas_thread():
        treated = [one for some in thread_map(lambda part: _applied(plans, part), parts) for one in some]
    for k, one in zip(noisy, treated, strict=True):
        found[k] = one
    return found


def _applied(plans: Sequence[Plan], rows: Sequence[Row]) -> list[Found]:
    """Return what plans, one per channel, make of samples of one shape."""
    estimates: list[Estimate] = []
    for channel, plan in enumerate(plans):
        batch = joined_batches([row.back.batch(channel, row.values[channel]) for row in rows])
        estimates.append(plan.apply(batch))
    treated = []
    for k, row in enumerate(rows):
        sums, back, shape = RiskSums(), row.back, row.values.shape[2:]
        whole = tuple(slice(0, n) for n in shape)
        for channel, (value, divergence) in enumerate((e.value[k], e.divergence[k]) for e in estimates):
            spread = np.broadcast_to(divergence, shape)
            risk = entry_risk(row.values[channel], value, spread, back, channel, whole)
            sums += risk_sums(risk.risk, risk.divergence, risk.weight)
        restored = back.restore(np.stack([estimate.value[k] for estimate in estimates]))
        treated.append(Treated(row, estimates[0].value[k], sums, restored, tuple(plans)))
    return found_in(treated)


def _stabilised_alike(each: Sequence[Any], layouts: Sequence[Layout]) -> list[Row | None]:
    """Return all samples with noise of level 1, measured on as many of them as are needed, side by side."""
    step = max(1, -(-sum(layout.values.size for layout in layouts) // MEASURED_WHOLE))
    sample = joined_crops(layouts[::step])
    noise = as_noise(each[0].noise, each[0].sigma)
    chosen = noise.chosen_for(sample.values, sample.missing)
    sample = replace(sample, outliers=chosen.outliers)
    known = each[0].sigma is not None  # then every sample may have a level of its own
    shared = None if known else stabilise(sample, chosen.model)
    if shared is not None and not shared.back.noisy.all():
        shared = None

    def one(denoiser: Any, layout: Layout) -> Row | None:
        model = as_noise(denoiser.noise, denoiser.sigma) if known else chosen.model
        found = stabilise(layout, model, None if known else sample, shared)
        return None if found is None else Row(chosen, found.back, np.asarray(found.values))

    return thread_map(lambda pair: one(*pair), zip(each, layouts, strict=True))
