"""A file that holds a series of images or volumes: denoised as one, with maps of the noise and of the rank."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import LowRankDenoised, LowRankDenoiser, io
from .._progress import SHOWN_AFTER
from .messages import PartlyDone, any_error, collected_warnings
from .options import given_options
from .summary import Summary, known_peak, shape_text

# Parameters of `denoise` that go with a series.
ALLOWED = (
    *(
        "context",
        "inputs",
        "output",
        "sigma",
        "noise",
        "mask",
        "key",
        "axes",
        "dtype",
        "series",
        "noise_map",
        "rank_map",
    ),
    *("quiet", "as_json", "force"),
)

# The axes along which a series runs, best first.
_RUNS_ALONG = ("time", "volume", "page")


@dataclass(frozen=True)
class SeriesJob:
    """What to do with the file, and where the maps go."""

    sigma: Any
    noise: str
    mask: Any
    reading: io.ReadOptions
    dtype: np.dtype[Any] | None
    force: bool
    noise_map: Path | None
    rank_map: Path | None


def check_series_options(context: Any, *, series: bool, many: bool) -> None:
    """Raise if options were given that do not go together."""
    given = given_options(context, ALLOWED)
    if not series:
        msg = "--noise-map and --rank-map go with --series. Add it, or leave them out."
    elif many:
        msg = "--series goes with one file. Denoise the files one by one."
    elif given:
        msg = (
            f"{given[0]} does not go with --series, which denoises volumes or pages as one, by low rank. Leave "
            f"{given[0]} out, or leave --series out."
        )
    else:
        return
    raise ValueError(msg)


def denoise_series(source: Path, target: Path, job: SeriesJob) -> Summary:
    """Denoise a series and write it, then its maps. All targets are checked before."""
    form = io.format_of(source).name
    maps = {path: name for path, name in ((job.noise_map, "sigma"), (job.rank_map, "rank")) if path is not None}
    _check_targets(target, maps, form, force=job.force)
    start = time.perf_counter()
    data = io.read(source, job.reading)
    axis = _series_axis(source, data)
    if job.dtype is not None and job.dtype.kind == "f":  # now, so that the estimate is not rounded to integers
        data = io.converted(data, job.dtype)
    with collected_warnings() as messages:
        whole, found = _denoise_parts(data, axis, job)
    out = dataclasses.replace(data, values=whole.join_parts([one.estimate for one in found]))
    io.write(target, out if job.dtype is None else io.converted(out, job.dtype), force=job.force)
    for path, name in maps.items():
        try:
            io.write(path, _map_data(data, [getattr(one, name) for one in found]), force=job.force)
        except Exception as error:
            msg = f"{target} is written, but {path} is not: {any_error(error)}"
            raise PartlyDone(msg) from error
    summary = _summary(source, target, whole, found, job)
    return dataclasses.replace(summary, seconds=time.perf_counter() - start).with_notes(messages)


def _check_targets(target: Path, maps: dict[Path, str], form: str, *, force: bool) -> None:
    targets = [target, *maps]
    if len({path.resolve() for path in targets}) < len(targets):
        msg = f"two outputs have the same name: {', '.join(map(str, targets))}. Choose different ones."
        raise ValueError(msg)
    for path in targets:
        io.check_target(path, form, force=force)
    for path in maps:
        if io.format_of(path).name not in (form, "NPY", "NPZ"):
            msg = f"a map of numbers cannot be written as {io.format_of(path).name}, {path}. Write {form} or NPY."
            raise io.FileError(msg)


def _series_axis(source: Path, data: io.Data) -> int:
    """Return the axis of the series: of times, pages or volumes, or the last one of an array."""
    if data.channel_axis is not None:
        msg = f"{source} has colours, which are no series. Leave --series out."
        raise io.FileError(msg)
    for name in _RUNS_ALONG:
        if name in data.stack_names and not data.splits:
            return data.stack_axes[data.stack_names.index(name)]
    if data.format in ("NPY", "NPZ") and not data.stack_axes:
        return data.values.ndim - 1
    axes = f" ({data.understood})" if data.understood else ""
    msg = (
        f"{source} holds one picture, volume or signal, not a series{axes}. Leave --series out, or name the axis of "
        "the series T, such as --axes TYX."
    )
    raise io.FileError(msg)


def _denoise_parts(data: io.Data, axis: int, job: SeriesJob) -> tuple[io.Data, list[LowRankDenoised]]:
    """Denoise the series of every channel. Return the data with the other axes as parts, and the results."""
    kept = [k for k, other in enumerate(data.stack_axes) if other != axis]
    whole = dataclasses.replace(
        data,
        stack_axes=tuple(data.stack_axes[k] for k in kept),
        stack_names=tuple(data.stack_names[k] for k in kept),
    )
    inside = axis - sum(other < axis for other in whole.stack_axes)
    shown = SHOWN_AFTER if sys.stderr.isatty() else False
    noise = "white" if job.noise == "auto" else job.noise  # what is told of one volume is not looked for in a series
    denoiser = LowRankDenoiser(sigma=job.sigma, noise=noise, series_axis=inside, mask=job.mask, progress=shown)
    return whole, [denoiser.run(part) for part in whole.parts()]


def _map_data(data: io.Data, maps: Sequence[NDArray[Any]]) -> io.Data:
    """Return a map, or one per channel, with what the format has to know of it."""
    metadata = None
    if data.format == "NIfTI":
        # The first volume has the position and the size of the voxels.
        metadata = {"image": data.metadata["image"].slicer[..., 0], "dtype": None}
    values = maps[0] if len(maps) == 1 else np.stack(maps)
    return io.Data(values.astype(np.float32), data.format, metadata=metadata)


def _summary(source: Path, target: Path, data: io.Data, found: Sequence[LowRankDenoised], job: SeriesJob) -> Summary:
    known = [one.sigma > 0 for one in found]
    levels, ranks = (
        np.hstack([getattr(one, name)[where] for one, where in zip(found, known, strict=True)])
        for name in ("sigma", "rank")
    )
    level, rank = (float(np.median(a)) if a.size else 0.0 for a in (levels, ranks))
    patch = " x ".join(map(str, found[0].patch)) or "nothing"
    return Summary(
        source=str(source),
        target=str(target),
        shape=shape_text(data.values),
        dtype=str(data.values.dtype),
        understood=data.understood.partition(";")[0] if len(found) > 1 else "",
        parts=len(found),
        levels=(level,) if level else (),
        given=job.sigma is not None,
        mse=float(np.mean([one.predicted_mse for one in found])),
        stderr=float(np.sqrt(np.sum([one.stderr**2 for one in found])) / len(found)),
        peak=known_peak(found[0].estimate),
        seconds=0.0,
        said=(f"rank {rank:.1f} in patches of {patch}",),
    )
