"""A file denoised into a Zarr store, tile by tile: what is done stays done, and nothing is half written."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..denoising.denoiser import Denoiser
from ..denoising.noise_sample import is_sampled
from ..denoising.verdict import NO_NOISE
from ..denoising.way_back import EntrySums
from ..noise.base import NoiseModel
from ..risk.prediction import RiskSums
from .chunked import prediction_of, run
from .files import SPACE, BigFile
from .fit import Decisions, decide
from .grid import Grid
from .source import read_source
from .stored import create_like
from .tiles import denoised_tiles

__all__ = ["StoreResult", "denoise_to_store"]

# Runs delayed tasks, calls a function after each, and returns their results in order.
Runner = Callable[[list[Any], Callable[[], None]], list[Any]]


class Part(NamedTuple):
    """One problem: a time and a channel of the data, with its place in the array."""

    where: tuple[Any, ...]
    folder: Path


@dataclasses.dataclass(frozen=True)
class PartResult:
    """What is told of a part.

    Attributes
    ----------
    mse, stderr : float
        The predicted mean squared error and its standard error.
    levels : sequence of float
        The noise level of every channel; empty if it has none in units of the data.
    noise_rms : float
        The root mean square of the noise.
    verdict : str
        Whether the noise model holds, in words.
    warnings : sequence of str
        The assumptions that fail.
    """

    mse: float
    stderr: float
    levels: Sequence[float] = ()
    noise_rms: float = 0.0
    verdict: str = ""
    warnings: Sequence[str] = ()


class StoreResult(NamedTuple):
    """What became of a file: of its parts, the range of whole numbers, and how many tiles were done before."""

    parts: tuple[PartResult, ...]
    value_range: int
    tiles: int
    resumed: int


def denoise_to_store(
    file: BigFile, target: Path, denoiser: Denoiser, run_tasks: Runner, done: Callable[[int, int], None]
) -> StoreResult:
    """Denoise a file into a Zarr store.

    Parameters
    ----------
    file : BigFile
        What is denoised.
    target : Path
        The store. It appears when it is complete. Until then, tiles lie in a folder beside it, of the same name and
        ``.partial``; if the work is stopped, the next run takes those that are whole.
    denoiser : Denoiser
        What denoises every part: data are split along axes that are not of space.
    run_tasks : callable
        Runs tasks, in this process or on a cluster.
    done : callable
        Told how many tiles are done, and how many there are.
    """
    work = target.with_name(target.name + ".partial")
    work.mkdir(parents=True, exist_ok=True)
    _check_same_work(work, file, denoiser)
    results: list[PartResult] = []
    plans = [_plan_part(file, part, denoiser) for part in _parts(file, work)]
    count = sum(len(plan.tasks) + plan.resumed for plan in plans)
    resumed = sum(plan.resumed for plan in plans)
    finished = resumed
    done(finished, count)

    def step() -> None:
        nonlocal finished
        finished += 1
        done(finished, count)

    for plan in plans:
        run_tasks(plan.tasks, step)
        results.append(plan.result())
    low, high = zip(*(note["ends"] for plan in plans for note in plan.notes()), strict=True)
    _assemble(file, plans, work, target)
    shutil.rmtree(work, ignore_errors=True)
    return StoreResult(tuple(results), max(high) - min(low), count, resumed)


def _check_same_work(work: Path, file: BigFile, denoiser: Denoiser) -> None:
    """Refuse to go on with tiles of other data or other options."""
    told = repr((file.array.name if file.inner == "" else "", file.array.shape, str(file.array.dtype), repr(denoiser)))
    mark = hashlib.sha256(told.encode()).hexdigest()
    note = work / "work.json"
    if note.exists() and json.loads(note.read_text())["work"] != mark:
        msg = f"{work} holds tiles of other data, or of other options. Remove it to start anew."
        raise ValueError(msg)
    note.write_text(json.dumps({"work": mark}))


def _parts(file: BigFile, work: Path) -> Iterator[Part]:
    """Yield the problems of a file: all places along axes that are not of space."""
    ndim = file.array.ndim
    axes = file.axes or SPACE[-ndim:]
    if len(axes) != ndim:
        msg = f"the file has {ndim} axes and does not say which are of space. Name them: --axes, such as tczyx."
        raise ValueError(msg)
    others = [range(n) if axis.lower() not in SPACE else [None] for n, axis in zip(file.array.shape, axes, strict=True)]
    for k, at in enumerate(itertools.product(*others)):
        # Axes of one entry are none.
        index = tuple(
            i if i is not None else 0 if n == 1 and ndim > 1 else slice(None)
            for i, n in zip(at, file.array.shape, strict=True)
        )
        yield Part(index, work / f"part{k}")


@dataclasses.dataclass(frozen=True)
class PartPlan:
    """The tasks of a part that are left, and how its tiles are put together; no decisions if one task does it all."""

    part: Part
    tasks: list[Any]
    resumed: int
    grid: Grid | None = None
    decisions: Decisions | None = None

    def notes(self) -> list[dict[str, Any]]:
        """Return what is told of every tile."""
        return [json.loads(path.read_text()) for path in sorted(self.part.folder.glob("*.json"))]

    def result(self) -> PartResult:
        """Return what is told of the part; its predicted error is that of the sums of all tiles."""
        notes, decisions = self.notes(), self.decisions
        if decisions is None:
            return PartResult(**notes[0]["part"])
        risk, entries = RiskSums(), EntrySums()
        for one in notes:
            risk += RiskSums(*one["risk"])
            entries += EntrySums(*one["entries"])
        back = decisions.way_back(1 + (decisions.source.y.dtype.kind == "c"))
        noise_rms = entries.unit * math.sqrt(entries.second / entries.noisy)
        return PartResult(
            *prediction_of(risk, entries, back, decisions.fitted[0].plan.filter_ratio),
            _levels(decisions.chosen.model, back.sigma if decisions.source.sigma is None else noise_rms),
            noise_rms,
            str(decisions.verdict),
            decisions.verdict.failures,
        )


def _levels(noise: NoiseModel, sigma: Any) -> list[float]:
    """Return the noise level of every channel, if it is in units of the data."""
    levels: list[float] = np.ravel(sigma).tolist()
    return levels if noise.level_units == NoiseModel.level_units else []


def _plan_part(file: BigFile, part: Part, denoiser: Denoiser) -> PartPlan:
    """Decide on a part, and return the tasks that write its tiles; tiles that are whole are left out."""
    import dask

    part.folder.mkdir(exist_ok=True)
    y = file.array[part.where]
    whole = part.folder / "tile0.npy"
    if not is_sampled(y.shape):
        tasks = [] if _is_whole(whole, y.shape, y.dtype) else [dask.delayed(_save_small)(run(denoiser, y).whole, whole)]
        return PartPlan(part, tasks, 1 - len(tasks))
    source = read_source(y, denoiser.channel_axis, denoiser.mask, denoiser.sigma)
    decisions = decide(source, denoiser, denoiser.plan_options(complex_data=y.dtype.kind == "c"))
    if decisions is None:
        tasks = [dask.delayed(_save_unchanged)(y, whole)]
        return PartPlan(part, tasks, 0)
    found = denoised_tiles(decisions)
    pairs = found.to_delayed()
    edges = tuple(tuple(np.cumsum((0, *sizes)).tolist()) for sizes in found.chunks[1:])
    grid = Grid(edges, 0)
    tasks, resumed = [], 0
    for k, index in enumerate(np.ndindex(pairs.shape[1:])):
        path = part.folder / f"tile{k}.npy"
        shape = tuple(s.stop - s.start for s in grid.tile(index))
        if _is_whole(path, shape, y.dtype):
            resumed += 1
        else:
            tasks.append(dask.delayed(_save_tile)(pairs[(0, *index)], path))
    return PartPlan(part, tasks, resumed, grid, decisions)


def _is_whole(path: Path, shape: tuple[int, ...], dtype: Any) -> bool:
    """Tell whether a tile was written: as large as it should be, and the sums, which are written last, know it."""
    note = path.with_suffix(".json")
    if not (path.exists() and note.exists()):
        return False
    try:
        tile = np.load(path, mmap_mode="r")
        told = json.loads(note.read_text())["digest"]
    except (ValueError, OSError, KeyError):
        return False
    return bool(tile.shape == tuple(shape) and tile.dtype == dtype and told == _digest(tile))


def _digest(tile: Any) -> str:
    return hashlib.blake2b(np.ascontiguousarray(tile).tobytes(), digest_size=16).hexdigest()


def _write(path: Path, tile: Any, numbers: dict[str, Any]) -> None:
    """Write a tile and then its numbers and ends, each beside its target and renamed."""
    ends = [int(tile.min()), int(tile.max())] if tile.dtype.kind in "iu" else [0, 0]
    told = numbers | {"digest": _digest(tile), "ends": ends}
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "wb") as out:
            np.save(out, tile)
        os.replace(beside, path)
        with open(beside, "w") as text:
            json.dump(told, text)
        os.replace(beside, path.with_suffix(".json"))
    finally:
        beside.unlink(missing_ok=True)


def _save_tile(pair: Any, path: Path) -> bool:
    """Write a tile, and what it adds to the prediction."""
    estimate, sums = pair
    numbers = {"risk": dataclasses.astuple(sums.risk), "entries": dataclasses.astuple(sums.entries)}
    _write(path, estimate[0], numbers)
    return True


def _save_small(found: Any, path: Path) -> bool:
    rms = 0.0 if found.error_blocks is None else found.error_blocks.noise_rms
    level = rms if np.shape(found.sigma) == found.estimate.shape else found.sigma
    mse, stderr = float(found.predicted_mse), float(found.stderr)
    part = PartResult(mse, stderr, _levels(found.noise, level), rms, found.verdict, found.warnings)
    _write(path, found.estimate, {"part": dataclasses.asdict(part)})
    return True


def _save_unchanged(y: Any, path: Path) -> bool:
    part = PartResult(0.0, 0.0, [0.0], verdict=NO_NOISE)
    _write(path, np.asarray(y), {"part": dataclasses.asdict(part)})
    return True


def _assemble(file: BigFile, plans: list[PartPlan], work: Path, target: Path) -> None:
    """Put the tiles together into a store beside the target, and rename it."""
    store = work / "store.zarr"
    shutil.rmtree(store, ignore_errors=True)
    chunks = tuple(min(c, n) for c, n in zip(file.chunks, file.array.shape, strict=True))
    out = create_like(store, file, file.array.shape, file.array.dtype, chunks)
    for plan in plans:
        _copy_part(plan, out, chunks)
    if target.exists():
        old = work / "old"
        os.replace(target, old)
    os.replace(store, target)


def _copy_part(plan: PartPlan, out: Any, chunks: tuple[int, ...]) -> None:
    """Copy the tiles of a part, slab by slab of whole chunks, so that every chunk is written once."""
    axes = [k for k, i in enumerate(plan.part.where) if isinstance(i, slice)]
    shape = tuple(out.shape[k] for k in axes)
    grid = plan.grid or Grid(tuple((0, n) for n in shape), 0)
    counts = [len(ends) - 1 for ends in grid.edges]
    tiles = [np.load(plan.part.folder / f"tile{k}.npy", mmap_mode="r") for k in range(int(np.prod(counts)))]
    places = [grid.tile(index) for index in np.ndindex(*counts)]
    steps = [range(0, n, chunks[k]) for n, k in zip(shape, axes, strict=True)]
    for start in itertools.product(*steps):
        box = [slice(i, min(i + chunks[k], n)) for i, k, n in zip(start, axes, shape, strict=True)]
        chunk = np.empty([s.stop - s.start for s in box], out.dtype)
        for tile, place in zip(tiles, places, strict=True):
            both = [slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(box, place, strict=True)]
            if all(s.start < s.stop for s in both):
                there = tuple(slice(s.start - b.start, s.stop - b.start) for s, b in zip(both, box, strict=True))
                here = tuple(slice(s.start - p.start, s.stop - p.start) for s, p in zip(both, place, strict=True))
                chunk[there] = tile[here]
        index = list(plan.part.where)
        for k, s in zip(axes, box, strict=True):
            index[k] = s
        out[tuple(index)] = chunk
