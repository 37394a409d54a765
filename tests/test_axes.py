"""The axes of files: what OME and ImageJ metadata say, what --axes overrides, and how parts come back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

pytest.importorskip("typer")

from scorethresh import cli, io
from scorethresh.io import FileError, ReadOptions
from scorethresh.io.axes import Axes

tifffile = pytest.importorskip("tifffile")


def values_of(shape, dtype=np.uint16):
    return np.random.default_rng(3).integers(0, np.iinfo(dtype).max, shape, dtype=dtype)


def written(path, values, axes, kind):
    if kind == "ome":
        tifffile.imwrite(path, values, ome=True, metadata={"axes": axes}, photometric="minisblack")
    elif kind == "imagej":
        tifffile.imwrite(path, values, imagej=True, metadata={"axes": axes})
    else:
        tifffile.imwrite(path, values, photometric="minisblack")
    return path


@pytest.mark.parametrize("kind", ["ome", "imagej"])
@pytest.mark.parametrize(
    ("axes", "shape", "count", "part"),
    [
        ("ZCYX", (4, 2, 6, 8), 2, (4, 6, 8)),
        ("TZCYX", (3, 4, 2, 6, 8), 6, (4, 6, 8)),
        ("TYX", (5, 6, 8), 5, (6, 8)),
        ("ZYX", (5, 6, 8), 1, (5, 6, 8)),
        ("CYX", (2, 6, 8), 2, (6, 8)),
    ],
)
def test_metadata_tell_volumes_channels_and_times(tmp_path, kind, axes, shape, count, part):
    values = values_of(shape)
    path = written(tmp_path / "a.tif", values, axes, kind)
    data = io.read(path)
    parts = data.parts()
    assert [one.shape for one in parts] == [part] * count
    assert axes in data.understood
    # Times outside, channels inside, as numpy counts: checked by hand for the one with both.
    if axes == "TZCYX":
        np.testing.assert_array_equal(parts[3], values[1, :, 1])
        assert data.part_name(3) == "time 2 of 3, channel 2 of 2"
    io.write(tmp_path / "b.tif", data)
    with tifffile.TiffFile(tmp_path / "b.tif") as file:
        assert file.series[0].axes == axes
        np.testing.assert_array_equal(file.asarray(), values)


@pytest.mark.parametrize("name", ["out.tif", "out.ome.tif"])
def test_the_description_of_ome_is_kept_whatever_the_name(tmp_path, capfd, name):
    """The writer of a file .ome.tif once made up its own, and said so on the terminal."""
    path = written(tmp_path / "a.ome.tif", np.ones((3, 2, 8, 9), np.uint8), "ZCYX", "ome")
    io.write(tmp_path / name, io.read(path))
    with tifffile.TiffFile(path) as before, tifffile.TiffFile(tmp_path / name) as after:
        assert after.ome_metadata == before.ome_metadata
        assert after.series[0].axes == "ZCYX"
    assert capfd.readouterr() == ("", "")


def test_pages_of_ome_in_another_order_come_back_in_it(tmp_path):
    """OME says where each plane is; the order in the file need not be that of the axes."""
    values = values_of((2, 3, 6, 8))
    path = written(tmp_path / "a.tif", values, "ZCYX", "ome")
    raw = path.read_bytes()
    assert b'DimensionOrder="XYCZT"' in raw
    path.write_bytes(raw.replace(b'DimensionOrder="XYCZT"', b'DimensionOrder="XYZCT"'))
    with tifffile.TiffFile(path) as file:
        meant, axes = file.asarray(), file.series[0].axes
    data = io.read(path)
    assert axes == "CZYX"
    np.testing.assert_array_equal(data.values, meant)
    changed = io.read(path)
    changed.values[1, 0] = 7
    io.write(tmp_path / "b.tif", changed)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "b.tif"), changed.values)


def test_options_override_what_the_file_says(tmp_path):
    values = values_of((6, 6, 8))
    path = written(tmp_path / "a.tif", values, None, None)
    assert len(io.read(path).parts()) == 6
    assert "if they are a volume: --axes ZYX" in io.read(path).understood
    assert [p.shape for p in io.read(path, ReadOptions(axes="zyx")).parts()] == [(6, 6, 8)]
    for text in ("ZC2YX", "Z3C2YX", "Z3CYX"):
        data = io.read(path, ReadOptions(axes=text))
        assert [p.shape for p in data.parts()] == [(3, 6, 8)] * 2
        np.testing.assert_array_equal(data.parts()[1], values[1::2])
    named = written(tmp_path / "b.tif", values_of((3, 2, 6, 8)), "ZCYX", "imagej")
    data = io.read(named, ReadOptions(axes="TCYX"))
    assert data.stack_names == ("time", "channel")
    assert [p.shape for p in io.read(named, ReadOptions(volume=True)).parts()] == [(3, 6, 8)] * 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ZZYX", "different letters"),
        ("Z-YX", "different letters"),
        ("ZY", "has no X"),
        ("ZXY", "must end in YX"),
        ("ZCYX", "Add numbers, such as ZC2YX"),
        ("Z4C2YX", "6 pages"),
        ("Z0CYX", "6 pages"),
        ("YX", "6 pages"),
    ],
)
def test_axes_that_do_not_fit_are_refused(tmp_path, text, told):
    path = written(tmp_path / "a.tif", values_of((6, 6, 8)), None, None)
    with pytest.raises(FileError, match=told):
        io.read(path, ReadOptions(axes=text))


def test_volume_needs_pages_that_may_be_slices(tmp_path):
    path = written(tmp_path / "a.tif", values_of((2, 6, 8)), "CYX", "imagej")
    with pytest.raises(FileError, match=r"the axes CYX, and none is that of slices.*--axes"):
        io.read(path, ReadOptions(volume=True))
    path = written(tmp_path / "b.tif", values_of((6, 8)), None, None)
    with pytest.raises(FileError, match="one page"):
        io.read(path, ReadOptions(volume=True))


def test_colours_in_pages_stay_together(tmp_path):
    values = values_of((3, 6, 8, 3), np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", values, photometric="rgb", imagej=True, metadata={"axes": "ZYXS"})
    data = io.read(tmp_path / "a.tif")
    [part] = data.parts()
    assert (part.shape, data.part_channel_axis) == ((3, 6, 8, 3), -1)
    assert "in 3 colours" in data.understood


def test_axes_of_arrays(tmp_path):
    values = values_of((3, 6, 8, 2))
    np.save(tmp_path / "a.npy", values)
    data = io.read(tmp_path / "a.npy", ReadOptions(axes="SYXT"))
    assert [p.shape for p in data.parts()] == [(3, 6, 8)] * 2
    assert data.part_channel_axis == -3
    np.testing.assert_array_equal(data.join_parts(data.parts()), values)
    with pytest.raises(FileError, match=r"3 x 6 x 8 x 2\. Name every axis"):
        io.read(tmp_path / "a.npy", ReadOptions(axes="ZYX"))
    with pytest.raises(FileError, match="both name axes"):
        io.read(tmp_path / "a.npy", ReadOptions(axes="SYXT", channel_axis=0))


@given(some.permutations("TCZYXS"), some.integers(1, 6))
def test_parts_put_together_are_the_whole(letters, count):
    letters = "".join(letters[:count])
    shape = tuple({"T": 2, "C": 3, "Z": 4, "Y": 5, "X": 6, "S": 7}[letter] for letter in letters)
    values = np.arange(np.prod(shape)).reshape(shape)
    data = Axes(letters, shape).label(values, "NPY")
    parts = data.parts()
    np.testing.assert_array_equal(data.join_parts(parts), values)
    assert len(parts) == np.prod([n for letter, n in zip(letters, shape, strict=True) if letter in "TC"], dtype=int)
    if "S" in letters:
        assert parts[0].shape[data.part_channel_axis] == 7


def test_channels_of_a_volume_are_not_interleaved(tmp_path, capsys, monkeypatch):
    """Two channels of different brightness: taken for one volume, their slices alternate and the error is 23."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    z, y, x = np.indices((12, 24, 24))
    clean = np.stack([100 + 4.0 * z + 40 * (x > 12), 900 - 3.0 * z - 60 * (y > 10)], axis=1)
    tifffile.imwrite(
        "a.tif", (clean + rng.normal(0, 8, clean.shape)).astype(np.float32), imagej=True, metadata={"axes": "ZCYX"}
    )
    assert cli.main(["denoise", "a.tif", "-o", "b.tif", "--sigma", "8", "--volume", "--choose", "bands"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("a.tif: axes ZCYX (ImageJ): 2 channels, each a volume of 12 x 24 x 24 denoised by itself\n")
    error = np.sqrt(np.mean((tifffile.imread("b.tif") - clean) ** 2))
    # Each channel by itself, as the library does it.
    assert error < 3.5
