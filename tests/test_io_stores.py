"""Zarr stores as files like others: read, written, and refused in one line."""

import json
import os

import numpy as np
import pytest

import scorethresh as st
from helpers import fails
from scorethresh import io

zarr = pytest.importorskip("zarr")

FAST = ("--choose", "bands", "--sigma", 12)


@pytest.fixture
def noisy(rng):
    return (np.where(np.indices((40, 48))[1] < 24, 60.0, 180.0) + rng.normal(0, 12, (40, 48))).astype(np.float32)


@pytest.fixture
def store(run, noisy, tmp_path):
    zarr.create_array(str(tmp_path / "x.zarr"), data=noisy, chunks=(16, 20), attributes={"unit": "adu"})
    return tmp_path / "x.zarr"


def values(name):
    return zarr.open(str(name), mode="r")[...]


@pytest.mark.parametrize("name", ["out.zarr", "out.npy", "out.tif", "out.npz"])
def test_a_store_is_denoised_like_a_file(run, store, noisy, name):
    """With a report all data are in memory, so stores go the way of other files."""
    assert run("denoise", "x.zarr", "-o", name, "--report", "page.html", *FAST)[0] == 0
    expected = st.denoise(noisy, sigma=12.0, choose="bands")
    np.testing.assert_array_equal(
        values(name) if name.endswith("zarr") else io.read(store.with_name(name)).values, expected
    )
    assert "x.zarr" in store.with_name("page.html").read_text(encoding="utf-8")


def test_chunks_and_attributes_are_kept(run, store):
    assert run("denoise", "x.zarr", "-o", "out.zarr", "--dtype", "uint8", *FAST)[0] == 0
    out = zarr.open("out.zarr", mode="r")
    assert (out.chunks, dict(out.attrs), out.dtype) == ((16, 20), {"unit": "adu"}, np.uint8)


def test_in_chunks_or_in_memory_the_result_is_the_same(run, store):
    assert run("denoise", "x.zarr", "-o", "chunks.zarr", *FAST)[0] == 0
    assert run("denoise", "x.zarr", "-o", "memory.zarr", "--json", *FAST)[0] == 0
    np.testing.assert_array_equal(values("chunks.zarr"), values("memory.zarr"))


def test_pictures_are_written_as_stores(run, noisy):
    from PIL import Image

    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save("in.png")
    assert run("denoise", "in.png", "-o", "out.zarr", *FAST)[0] == 0
    np.testing.assert_array_equal(
        values("out.zarr"), st.denoise(noisy.clip(0, 255).astype(np.uint8), sigma=12.0, choose="bands")
    )


def test_ome_axes_are_read_and_thin_volumes_are_pictures(run, noisy, tmp_path):
    group = zarr.open_group(str(tmp_path / "in.zarr"), mode="w")
    axes = [{"name": name} for name in "tczyx"]
    group.attrs["ome"] = {"multiscales": [{"axes": axes, "datasets": [{"path": "s0"}, {"path": "s1"}]}]}
    stack = np.stack([noisy, noisy[::-1] + 5])[None, :, None]
    group.create_array("s0", data=stack)
    code, out, _ = run("denoise", "in.zarr", "-o", "out.zarr", "--compare", *FAST)
    assert code == 0
    assert "axes TCZYX (OME-Zarr): 2 channels, each a picture of 40 x 48 denoised by itself" in out
    written = zarr.open("out.zarr", mode="r")
    np.testing.assert_array_equal(written["s0"][0, 1, 0], st.denoise(stack[0, 1, 0], sigma=12.0, choose="bands"))
    assert written.attrs["ome"]["multiscales"][0]["datasets"] == [{"path": "s0"}]


def test_select_and_restore_read_stores(run, store, noisy, tmp_path):
    code, out, _ = run("select", "x.zarr", "--sigma", 12, "--json")
    assert (code, json.loads(out)["size"]) == (0, noisy.size)
    np.save("psf.npy", np.ones((3, 3)) / 9)
    options = ("--psf", "psf.npy", "--steps", 2, "--no-predict", "--sigma", 12)
    assert run("restore", "x.zarr", "-o", "out.zarr", *options)[0] == 0
    expected = st.restore(noisy, st.Blur(np.ones((3, 3)) / 9), sigma=12.0, steps=2)
    np.testing.assert_array_equal(values("out.zarr"), expected)


def test_one_of_several_arrays_is_named(run, noisy, tmp_path):
    group = zarr.open_group(str(tmp_path / "two.zarr"), mode="w")
    for name, scale in (("b", 1), ("a", 2)):
        group.create_array(name, data=noisy * scale)
    for target in ("out.npy", "out.zarr"):
        fails(run("denoise", "two.zarr", "-o", target, *FAST), "holds 2 arrays. Choose one of a, b with --key")
        fails(run("denoise", "two.zarr", "-o", target, "--key", "c", *FAST), "no array 'c'", "a, b with --key")
    for target in ("one.npy", "one.zarr"):
        assert run("denoise", "two.zarr", "-o", target, "--key", "b", *FAST)[0] == 0
    np.testing.assert_array_equal(np.load("one.npy"), zarr.open("one.zarr", mode="r")["b"][...])


def test_what_is_there_is_replaced_only_by_force(run, store, tmp_path):
    before = values("x.zarr")
    os.mkdir("old.zarr")
    (tmp_path / "old.zarr" / "note").write_text("mine")
    fails(run("denoise", "x.zarr", "-o", "old.zarr", "--json", *FAST), "old.zarr exists", "--force")
    assert (tmp_path / "old.zarr" / "note").read_text() == "mine"
    assert run("denoise", "x.zarr", "-o", "old.zarr", "--json", "--force", *FAST)[0] == 0
    assert not (tmp_path / "old.zarr" / "note").exists()
    (tmp_path / "file.zarr").write_text("a file")
    fails(run("denoise", "x.zarr", "-o", "file.zarr", "--json", "--force", *FAST), "file.zarr is a file")
    fails(run("denoise", "file.zarr", "-o", "out.npy"), "is a file, and a Zarr store is a folder")
    np.testing.assert_array_equal(values("x.zarr"), before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.zarr", "old.zarr", "x.zarr"]


def test_options_that_do_not_go_together_are_told(run, store):
    result = run("denoise", "x.zarr", "-o", "out.zarr", "--workers", 2, "--report", "page.html")
    fails(result, "--workers does not go with --report, which needs all data in memory")
    for option in ("--workers", 2), ("--memory", "1GB"), ("--scheduler", "tcp://localhost:1"):
        result = run("denoise", "x.zarr", "-o", "out.npy", *option)
        fails(result, f"{option[0]} goes with an output that ends in .zarr, got out.npy")
    np.savez("y.npz", a=np.zeros((40, 40)))
    fails(run("denoise", "y.npz", "-o", "out.zarr", "--memory", "1GB"), "--memory", "y.npz, whose format needs")


def test_stores_in_folders_are_files(run, store, noisy, tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    np.save(tmp_path / "in" / "a.npy", noisy)
    store.rename(tmp_path / "in" / "deep" / "x.zarr")
    assert run("denoise", "in", "-o", "out", "--recursive", *FAST)[0] == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"a.npy", "deep"}
    np.testing.assert_array_equal(values(tmp_path / "out" / "deep" / "x.zarr"), np.load("out/a.npy"))


# hostile stores


def test_pickled_entries_are_refused_before_they_are_read(run, tmp_path):
    """A codec of format 2 that unpickles what it reads, whatever the type of the entries."""
    import pickle

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    folder = tmp_path / "in.zarr"
    folder.mkdir()
    head = {
        **{"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<f8", "compressor": None, "fill_value": 0},
        **{"order": "C", "filters": [{"id": "pickle", "protocol": 5}]},
    }
    (folder / ".zarray").write_text(json.dumps(head).replace("pickle", "pickl\\u0065"))
    (folder / "0").write_bytes(pickle.dumps(Bomb()))
    for target in ("out.npy", "out.zarr"):
        fails(run("denoise", "in.zarr", "-o", target), "stored with pickle, which may run code")
    assert not (tmp_path / "exploded").exists()


def test_a_store_that_claims_too_much_is_refused(run, tmp_path):
    zarr.create_array(str(tmp_path / "in.zarr"), shape=(100_000, 100_000), dtype="f8", chunks=(1000, 1000))
    fails(run("denoise", "in.zarr", "-o", "out.npy"), "in.zarr claims to hold 74.5 GiB", "decompression bomb")


def test_damaged_stores_get_one_line(run, store):
    (store / "zarr.json").write_text("{")
    fails(run("denoise", "x.zarr", "-o", "out.npy"), "x.zarr cannot be read as Zarr")
    (store / "zarr.json").unlink()
    fails(run("denoise", "x.zarr", "-o", "out.npy"), "x.zarr")
    (store / "c").rename(store / "d")
    fails(run("denoise", "x.zarr", "-o", "out.zarr"), "x.zarr")
