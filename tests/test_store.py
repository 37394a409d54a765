"""Files larger than memory: stores of others read and written, resumed work, faults."""

import json
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

import scorethresh as st
from scorethresh.denoising import crops, noise_sample, places

dask = pytest.importorskip("dask")
zarr = pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")

from scorethresh.scale import cluster, files, store, tiles  # noqa: E402
from scorethresh.scale.allocator import reuse_freed_memory  # noqa: E402
from scorethresh.scale.cuts import Tile, TileTask  # noqa: E402

SHAPE = (260, 220)


@pytest.fixture
def small(monkeypatch):
    """Sizes from which on data are large, so that small ones are treated as large ones."""
    monkeypatch.setitem(places.TILE_ENTRIES, 2, 35_000)
    monkeypatch.setitem(places.TILES_PER_WHOLE, 2, 1)
    monkeypatch.setitem(crops.CROP_SIDE, 2, 128)
    monkeypatch.setitem(tiles.REFINED_ENTRIES, 2, 60_000)
    monkeypatch.setattr(noise_sample, "MEASURED_WHOLE", 36_000)


@pytest.fixture
def noisy(rng):
    rows, columns = np.indices(SHAPE)
    return (30 * np.sin(rows / 9) + 20 * (columns > 90) + rng.normal(0.0, 2.0, SHAPE)).astype(np.float32)


DENOISER = st.Denoiser(choose="bands", levels=2)


def run(source, target, denoiser=DENOISER, runner=None, **changes):
    import dataclasses

    file = dataclasses.replace(files.open_file(source), **changes)
    with cluster.task_runner() as here:
        return store.denoise_to_store(file, target, denoiser, runner or here, lambda done, count: None)


def make_store(path, values, zarr_format=3, chunks=(100, 90), **options):
    array = zarr.create_array(
        str(path), shape=values.shape, dtype=values.dtype, chunks=chunks, zarr_format=zarr_format, **options
    )
    array[...] = values
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_stores_keep_their_format_chunks_and_attributes(small, noisy, tmp_path, zarr_format):
    source = make_store(tmp_path / "y.zarr", noisy, zarr_format, attributes={"unit": "adu"})
    found = run(source, tmp_path / "x.zarr")
    out, expected = zarr.open(str(tmp_path / "x.zarr"), mode="r"), DENOISER.run(noisy)
    np.testing.assert_array_equal(out[...], expected.estimate)
    assert (out.metadata.zarr_format, out.chunks, dict(out.attrs)) == (zarr_format, (100, 90), {"unit": "adu"})
    assert found.parts[0].mse == pytest.approx(expected.predicted_mse, rel=1e-12)
    assert found.tiles == 2
    assert not (tmp_path / "x.zarr.partial").exists()


def test_ome_zarr_tells_its_axes(noisy, tmp_path):
    group = zarr.open_group(str(tmp_path / "y.zarr"), mode="w")
    axes = [{"name": name} for name in "tczyx"]
    group.attrs["ome"] = {"multiscales": [{"axes": axes, "datasets": [{"path": "s0"}, {"path": "s1"}]}]}
    values = np.stack([noisy[:60, :70], noisy[60:120, :70]])[None, :, None]
    group.create_array("s0", shape=values.shape, dtype=values.dtype, chunks=(1, 1, 1, 60, 70))[...] = values
    found = run(tmp_path / "y.zarr", tmp_path / "x.zarr")
    out = zarr.open(str(tmp_path / "x.zarr"), mode="r")
    np.testing.assert_array_equal(out["s0"][0, 1, 0], DENOISER.run(values[0, 1, 0]).estimate)
    assert out.attrs["ome"]["multiscales"][0]["datasets"] == [{"path": "s0"}]
    assert len(found.parts) == 2


def test_files_are_mapped(small, noisy, tmp_path):
    """NPY, and what tifffile and nibabel write."""
    tifffile, nibabel = pytest.importorskip("tifffile"), pytest.importorskip("nibabel")
    np.save(tmp_path / "y.npy", noisy)
    tifffile.imwrite(tmp_path / "y.tif", noisy)
    nibabel.save(nibabel.Nifti1Image(noisy, np.eye(4)), tmp_path / "y.nii")
    expected = DENOISER.run(noisy).estimate
    for name in ("y.npy", "y.tif", "y.nii"):
        run(tmp_path / name, tmp_path / f"{name}.zarr")
        np.testing.assert_allclose(zarr.open(str(tmp_path / f"{name}.zarr"), mode="r")[...], expected, atol=1e-4)
    tifffile.imwrite(tmp_path / "packed.tif", noisy, compression="zlib")
    with pytest.raises(ValueError, match="cannot be mapped"):
        files.open_file(tmp_path / "packed.tif")
    with pytest.raises(ValueError, match="gunzip"):
        files.open_file(tmp_path / "y.nii.gz")


def test_work_is_resumed_and_tiles_are_verified(small, noisy, tmp_path):
    source, target = make_store(tmp_path / "y.zarr", noisy), tmp_path / "x.zarr"

    def stopped(tasks, step):
        """Ctrl-C after the first tile."""
        dask.compute(tasks[0], scheduler="synchronous")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(source, target, runner=stopped)
    assert not target.exists()
    tile = tmp_path / "x.zarr.partial" / "part0" / "tile0.npy"
    with pytest.raises(ValueError, match="other options"):
        run(source, target, st.Denoiser(choose="bands", levels=1))
    values = np.load(tile)
    np.save(tile, values + 1)  # as large, and not what was written
    with pytest.raises(KeyboardInterrupt):
        run(source, target, runner=stopped)
    np.testing.assert_array_equal(np.load(tile), values)
    found = run(source, target)
    assert (found.tiles, found.resumed) == (2, 1)
    expected = DENOISER.run(noisy)
    np.testing.assert_array_equal(zarr.open(str(target), mode="r")[...], expected.estimate)
    assert found.parts[0].mse == pytest.approx(expected.predicted_mse, rel=1e-12)


def test_a_chunk_that_cannot_be_read_leaves_no_output(small, noisy, tmp_path):
    source, target = make_store(tmp_path / "y.zarr", noisy), tmp_path / "x.zarr"
    chunk = source / "c" / "1" / "1"
    good = chunk.read_bytes()
    chunk.write_bytes(good[: len(good) // 2])
    with pytest.raises((RuntimeError, ValueError, OSError), match=r"."):  # by the codec
        run(source, target)
    assert not target.exists()
    chunk.write_bytes(good)
    run(source, target)
    assert target.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are those of POSIX")
def test_a_disk_that_is_full_leaves_no_output(small, noisy, tmp_path):
    source, target = make_store(tmp_path / "y.zarr", noisy), tmp_path / "x.zarr"
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
        with pytest.raises(OSError, match=r"large|space|requested"):
            run(source, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not target.exists()
    assert not list((tmp_path / "x.zarr.partial").rglob("*.tmp"))
    run(source, target)
    assert target.exists()


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(small, noisy, tmp_path):
    expected = DENOISER.run(noisy)
    source = files.open_file(make_store(tmp_path / "y.zarr", noisy)).array
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **cluster.NO_DASHBOARD) as workers,
        distributed.Client(workers) as client,
    ):
        lazy = DENOISER.run(source)
        future = client.compute(lazy.whole)
        os.kill(workers.workers[0].pid, signal.SIGKILL)
        found = future.result(timeout=120)
        assert client.submit(lambda: st._threads.cores()).result() == 1
    np.testing.assert_array_equal(found.estimate, expected.estimate)
    assert found.predicted_mse == pytest.approx(expected.predicted_mse, rel=1e-12)


def _pages_of_ten_arrays(tile, shared):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.ones(1 << 18)  # 2 MB: NumPy asks for huge pages from 4 MB on
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the setting is that of the C library of Linux")
@pytest.mark.parametrize("user_sets", [False, True])
def test_tiles_use_freed_memory_again(monkeypatch, user_sets):
    """One array takes 512 pages; a worker that gives memory back at once takes 5120. What users set stays."""
    if user_sets:
        monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", str(1 << 17))
    task = TileTask(_pages_of_ten_arrays, Tile((), ()), ())
    with cluster.task_runner(workers=1) as runner:
        (pages,) = runner([dask.delayed(task)(None)], lambda: None)
    assert (pages >= 5000) == user_sets
    assert user_sets or pages < 1500


def test_a_process_that_is_no_worker_keeps_its_setting(monkeypatch):
    """It has the variable once it has started workers, which tells nothing."""
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    assert not reuse_freed_memory.__wrapped__()


HEAPS = """
import ctypes, sys, threading
from scorethresh.scale.allocator import share_freed_memory
told = share_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fdopen.restype = ctypes.c_void_p
threads = [threading.Thread(target=libc.malloc, args=(1000,)) for _ in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
print(told, flush=True)
out = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, out), libc.fflush(out)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the setting is that of the C library of Linux")
@pytest.mark.parametrize("user_sets", [False, True])
def test_threads_share_one_heap(user_sets):
    environment = {k: v for k, v in os.environ.items() if k != "MALLOC_ARENA_MAX"}
    environment |= {"MALLOC_ARENA_MAX": "8"} if user_sets else {}
    text = subprocess.run(
        [sys.executable, "-c", HEAPS], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert text.startswith(str(not user_sets))
    assert (text.count("<heap nr=") > 1) == user_sets


def _pauses():
    return distributed.get_worker().memory_manager.memory_pause_fraction


@pytest.mark.slow
def test_workers_with_little_memory_do_not_wait():
    """A worker that pauses at 80% of its memory, and is not ended below 95%, may wait for ever between the two."""
    with cluster.task_runner(workers=1) as runner:
        (pauses,) = runner([dask.delayed(_pauses)()], lambda: None)
    assert pauses is False


@pytest.mark.slow
def test_workers_without_memory_leave_no_output(monkeypatch, rng, tmp_path):
    """One tile takes twice the memory that a worker has, so it is ended. In this process the work goes on."""
    shape = (2400, 2400)
    monkeypatch.setitem(places.TILE_ENTRIES, 2, 1 << 24)
    monkeypatch.setattr(noise_sample, "MEASURED_WHOLE", 36_000)
    noisy = rng.normal(size=shape).astype(np.float32) + np.linspace(0, 30, shape[1], dtype=np.float32)
    source, target = make_store(tmp_path / "y.zarr", noisy, chunks=(1000, 1000)), tmp_path / "x.zarr"
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        pytest.raises(MemoryError, match="memory did not suffice"),
        cluster.task_runner(workers=1, memory="270MB") as runner,
    ):
        run(source, target, runner=runner)
    assert not target.exists()
    run(source, target)
    expected = DENOISER.run(files.open_file(source).array).estimate.compute(scheduler="synchronous")
    np.testing.assert_array_equal(zarr.open(str(target), mode="r")[...], expected)


def test_the_command_writes_a_store(noisy, tmp_path, capsys):
    from scorethresh.cli import main

    source = make_store(tmp_path / "y.zarr", noisy[:90, :80])
    target = tmp_path / "x.zarr"
    arguments = ["denoise", str(source), "-o", str(target), "--choose", "bands"]
    assert main(arguments) in (0, None)
    capsys.readouterr()
    np.testing.assert_array_equal(zarr.open(str(target), mode="r")[...], st.denoise(noisy[:90, :80], choose="bands"))
    assert main(arguments) != 0
    assert "--force" in capsys.readouterr().err
    assert main([*arguments, "--force", "--quiet"]) in (0, None)
    assert capsys.readouterr() == ("", "")
    assert json.loads((target / "zarr.json").read_text())["shape"] == [90, 80]


@pytest.mark.parametrize("kind", ["float32", "uint16", "counts", "level too low"])
@pytest.mark.parametrize("size", ["small", "large"])
def test_the_command_says_the_same_of_a_store_as_of_other_outputs(
    kind, size, noisy, rng, tmp_path, monkeypatch, capsys, request
):
    from scorethresh.cli import main

    if size == "large":
        request.getfixturevalue("small")
    y = {"uint16": (1000 + 20 * noisy).astype(np.uint16), "counts": rng.poisson(40 + noisy).astype(np.uint16)}
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", y.get(kind, noisy))
    options = {"level too low": ["--sigma", "0.5"], "counts": ["--noise", "poisson"]}.get(kind, [])
    said = []
    for target in ("x.npy", "x.zarr"):
        assert main(["denoise", "y.npy", "-o", target, "--choose", "bands", "--levels", "2", *options]) in (0, None)
        out, err = capsys.readouterr()
        said.append((out.splitlines()[1:], err))
    tiles = "  1 tile" if size == "small" else "  2 tiles"
    assert tiles in said[1][0]
    said[1][0].remove(tiles)
    assert said[0] == said[1]
    assert ("in the mean to an error" in said[0][0][0]) == (kind == "counts")
    assert ("too low" in said[0][1]) == (kind == "level too low")


def test_what_is_no_store_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="no store"):
        files.open_file(tmp_path / "none.zarr")
    group = zarr.open_group(str(tmp_path / "two.zarr"), mode="w")
    for name in "ab":
        group.create_array(name, shape=(3,), dtype="f4")
    with pytest.raises(ValueError, match="2 arrays"):
        files.open_file(tmp_path / "two.zarr")
    np.save(tmp_path / "y.npy", np.zeros((2, 3, 4, 5)))
    with pytest.raises(ValueError, match="--axes"):
        run(tmp_path / "y.npy", tmp_path / "x.zarr")
