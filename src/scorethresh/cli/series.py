"""A file that holds a series of images or volumes: denoised as one, with maps of the noise and of the rank."""

from __future__ import annotations

import dataclasses
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import LowRankDenoised, LowRankDenoiser, io
from .messages import PartlyDone, any_error, echo
from .onefile import BAR_FROM_ENTRIES


@dataclass(frozen=True)
class SeriesJob:
    """What to do with the file, and where the maps go."""

    sigma: float | None
    dtype: np.dtype[Any] | None
    force: bool
    noise_map: Path | None
    rank_map: Path | None


def denoise_series(source: Path, target: Path, job: SeriesJob) -> None:
    """Denoise a series and write it, then its maps. All targets are checked before."""
    form = io.format_of(source).name
    maps = {path: name for path, name in ((job.noise_map, "sigma"), (job.rank_map, "rank")) if path is not None}
    targets = [target, *maps]
    if len({path.resolve() for path in targets}) < len(targets):
        msg = f"two outputs have the same name: {', '.join(map(str, targets))}. Choose different ones."
        raise ValueError(msg)
    for path in targets:
        io.check_target(path, form, force=job.force)
    for path in maps:
        if io.format_of(path).name not in (form, "NPY"):
            msg = f"a map of numbers cannot be written as {io.format_of(path).name}, {path}. Write {form} or NPY."
            raise io.FileError(msg)
    start = time.perf_counter()
    data = io.read(source, io.ReadOptions())
    axis = _series_axis(source, data)
    if job.dtype is not None and job.dtype.kind == "f":  # now, so that the estimate is not rounded to integers
        data = io.converted(data, job.dtype)
    shown = data.values.size > BAR_FROM_ENTRIES and sys.stderr.isatty()
    found = LowRankDenoiser(sigma=job.sigma, series_axis=axis, progress=shown).run(data.values)
    out = dataclasses.replace(data, values=found.estimate)
    io.write(target, out if job.dtype is None else io.converted(out, job.dtype), force=job.force)
    for path, name in maps.items():
        try:
            io.write(path, _map_data(data, getattr(found, name)), force=job.force)
        except Exception as error:
            msg = f"{target} is written, but {path} is not: {any_error(error)}"
            raise PartlyDone(msg) from error
    echo(_result_line(target, found, job.sigma, time.perf_counter() - start))


def _series_axis(source: Path, data: io.Data) -> int:
    """Return the axis of the series: of pages or volumes, or the last one of an array."""
    if data.channel_axis is not None:
        msg = f"{source} has colours, which are no series. Leave --series out."
        raise io.FileError(msg)
    if data.stack_axis is None and data.format != "NPY":
        msg = f"{source} holds one picture, volume or signal, not a series. Leave --series out."
        raise io.FileError(msg)
    return -1 if data.stack_axis is None else data.stack_axis


def _map_data(data: io.Data, values: NDArray[Any]) -> io.Data:
    """Return a map with what the format has to know of it."""
    metadata = None
    if data.format == "NIfTI":
        # The first volume has the position and the size of the voxels.
        metadata = {"image": data.metadata["image"].slicer[..., 0], "dtype": None}
    return io.Data(values.astype(np.float32), data.format, metadata=metadata)


def _result_line(target: Path, found: LowRankDenoised, sigma: float | None, seconds: float) -> str:
    shape = " x ".join(map(str, found.estimate.shape))
    known = found.sigma > 0
    level, rank = (float(np.median(a[known])) if known.any() else 0.0 for a in (found.sigma, found.rank))
    origin = "estimated" if sigma is None else "given"
    return (
        f"{target}: {shape} {found.estimate.dtype}, sigma {level:.3g} ({origin}), rank {rank:.1f} in patches of "
        f"{' x '.join(map(str, found.patch)) or 'nothing'}, mean squared error {found.predicted_mse:.3g} ± "
        f"{found.stderr:.2g}, {seconds:.1f} s"
    )
