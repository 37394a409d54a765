"""Files: what comes back, what is kept, what is refused."""

import csv
import dataclasses
import logging
import struct
import zlib
from io import BytesIO

import numpy as np
import pytest

pytest.importorskip("typer")

from PIL import Image, PngImagePlugin

from scorethresh import io
from scorethresh.io import FileError, ReadOptions

tifffile = pytest.importorskip("tifffile")
soundfile = pytest.importorskip("soundfile")


def again(path, options=ReadOptions()):  # noqa: B008
    """Read a file, write what was read beside it, and return both, read anew."""
    data = io.read(path, options)
    copy = path.with_name("copy-" + path.name)
    io.write(copy, data)
    return data, io.read(copy, options), copy


def pixels(shape, dtype=np.uint8):
    return np.random.default_rng(3).integers(0, np.iinfo(dtype).max, shape, dtype=dtype)


# PNG and JPEG


@pytest.mark.parametrize(
    ("shape", "dtype"), [((5, 7), np.uint8), ((5, 7), np.uint16), ((5, 7, 2), np.uint8), ((5, 7, 3), np.uint8)]
)
def test_png_comes_back_exactly(tmp_path, shape, dtype):
    values = pixels(shape, dtype)
    Image.fromarray(values).save(tmp_path / "a.png")
    first, second, _ = again(tmp_path / "a.png")
    assert first.values.dtype == dtype
    np.testing.assert_array_equal(first.with_alpha(), values)
    np.testing.assert_array_equal(second.with_alpha(), values)


def test_alpha_is_set_aside(tmp_path):
    values = pixels((5, 7, 4))
    Image.fromarray(values).save(tmp_path / "a.png")
    data, second, _ = again(tmp_path / "a.png")
    assert data.values.shape == (5, 7, 3)
    assert data.channel_axis == -1
    np.testing.assert_array_equal(second.alpha[..., 0], values[..., 3])


def test_png_keeps_resolution_text_profile_exif_and_gamma(tmp_path):
    info = PngImagePlugin.PngInfo()
    info.add_text("Author", "me")
    info.add(b"gAMA", struct.pack(">I", 45455))
    exif = Image.Exif()
    exif[0x010E] = "a description"
    profile = b"profile" * 20
    Image.fromarray(pixels((5, 7))).save(
        tmp_path / "a.png", pnginfo=info, dpi=(300, 300), exif=exif, icc_profile=profile
    )
    _, _, copy = again(tmp_path / "a.png")
    with Image.open(copy) as image:
        assert image.text["Author"] == "me"
        assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
        assert image.info["icc_profile"] == profile
        assert image.info["gamma"] == 0.45455
        assert image.getexif()[0x010E] == "a description"


def test_palettes_become_colours_and_transparent_keys_become_alpha(tmp_path):
    palette = Image.fromarray(pixels((5, 7, 3))).quantize(8)
    palette.save(tmp_path / "p.png")
    np.testing.assert_array_equal(io.read(tmp_path / "p.png").values, np.asarray(palette.convert("RGB")))
    palette.save(tmp_path / "t.png", transparency=0)
    assert set(np.unique(io.read(tmp_path / "t.png").alpha)) == {0, 255}
    Image.fromarray(np.array([[1, 2]], np.uint8)).save(tmp_path / "l.png", transparency=2)
    np.testing.assert_array_equal(io.read(tmp_path / "l.png").alpha.ravel(), [255, 0])
    Image.fromarray(np.array([[True, False]])).save(tmp_path / "b.png")
    np.testing.assert_array_equal(io.read(tmp_path / "b.png").values, [[255, 0]])


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(width, height, depth, colour, raw=b""):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("colour", "channels"), [(2, 3), (4, 2), (6, 4)])
def test_colours_of_16_bits_are_not_cut_to_8(tmp_path, colour, channels):
    """Written by hand here: rows without a filter, big-endian numbers."""
    values = pixels((5, 7, channels), np.uint16)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    (tmp_path / "a.png").write_bytes(png(7, 5, 16, colour, rows))
    first, second, copy = again(tmp_path / "a.png")
    for data in (first, second):
        assert data.values.shape[-1] == (channels if channels == 3 else channels - 1)
        np.testing.assert_array_equal(data.with_alpha(), values)
    with Image.open(copy) as image:
        image.load()


def test_colours_of_16_bits_keep_their_metadata(tmp_path):
    info = PngImagePlugin.PngInfo()
    info.add_text("Author", "me")
    Image.fromarray(pixels((5, 7, 3))).save(tmp_path / "a.png", pnginfo=info, dpi=(300, 300), icc_profile=b"p" * 50)
    data = io.read(tmp_path / "a.png")
    wide = dataclasses.replace(data, values=pixels((5, 7, 3), np.uint16))
    io.write(tmp_path / "b.png", wide)
    again = io.read(tmp_path / "b.png")
    np.testing.assert_array_equal(again.values, wide.values)
    assert again.metadata["text"]["Author"] == "me"
    assert again.metadata["icc_profile"] == b"p" * 50
    assert again.metadata["dpi"] == pytest.approx((300, 300), rel=1e-3)


def test_animations_are_refused(tmp_path):
    frames = [Image.fromarray(pixels((4, 4))), Image.fromarray(255 - pixels((4, 4)))]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:])
    with pytest.raises(FileError, match="2 frames"):
        io.read(tmp_path / "a.png")


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg_keeps_exif_resolution_and_sampling(tmp_path, mode):
    smooth = np.add.outer(np.arange(32), np.arange(48)).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.fromarray(smooth).convert("RGB").convert(mode)
    image.save(tmp_path / "a.jpg", exif=exif, dpi=(72, 72), quality=90, comment=b"hello")
    first, second, copy = again(tmp_path / "a.jpg")
    assert first.values.shape == (32, 48, *{"L": (), "RGB": (3,), "CMYK": (4,)}[mode])
    assert np.abs(first.values.astype(int) - second.values).max() <= 6
    assert second.metadata == first.metadata
    with Image.open(copy) as image:
        assert image.mode == mode
        assert image.getexif()[0x0112] == 6
        assert image.info["dpi"] == (72, 72)


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_of_several_pictures_in_a_jpeg_file_the_first_is_read(tmp_path, mode):
    smooth = Image.fromarray(np.add.outer(np.arange(32), np.arange(48)).astype(np.uint8)).convert(mode)
    smooth.save(tmp_path / "a.jpg", format="MPO", save_all=True, append_images=[smooth.resize((16, 16))])
    first, second, _ = again(tmp_path / "a.jpg")
    assert first.values.shape[:2] == (32, 48)
    assert np.abs(first.values.astype(int) - second.values).max() <= 6


def test_the_index_of_pictures_in_a_jpeg_file_is_not_needed(tmp_path):
    """The first picture is sound, whatever the index says about the others."""
    smooth = Image.fromarray(np.add.outer(np.arange(32), np.arange(48)).astype(np.uint8))
    smooth.save(tmp_path / "a.jpg", format="MPO", save_all=True, append_images=[smooth])
    expected = io.read(tmp_path / "a.jpg").values
    content = (tmp_path / "a.jpg").read_bytes()
    count = content.index(struct.pack("<HHI", 0xB001, 4, 1)) + 8
    assert content[count : count + 4] == struct.pack("<I", 2)
    for pictures in (0, 3, 9, 2**31):
        (tmp_path / "b.jpg").write_bytes(content[:count] + struct.pack("<I", pictures) + content[count + 4 :])
        np.testing.assert_array_equal(io.read(tmp_path / "b.jpg").values, expected)


def test_a_damaged_jpeg_is_told_as_such(tmp_path):
    """Pillow knows MPO but cannot open it by name: asked to, it raises KeyError('MPO') for what is no JPEG."""
    Image.fromarray(pixels((8, 8))).save(tmp_path / "a.jpg")
    content = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "a.jpg").write_bytes(content[:2] + b"\xff\x01" + content[4:])
    with pytest.raises(FileError, match=r"cannot be read as JPEG \([^']{9,}\)\. Is it damaged"):
        io.read(tmp_path / "a.jpg")


# TIFF

CASES = {
    "8 bit": (pixels((6, 8)), {}),
    "16 bit": (pixels((6, 8), np.uint16), {"byteorder": ">"}),
    "float": (np.linspace(0, 1, 48, dtype=np.float32).reshape(6, 8), {"compression": "zlib"}),
    "tiles": (pixels((40, 50), np.uint16), {"tile": (16, 16), "compression": "zlib", "predictor": True}),
    "colour": (pixels((6, 8, 3)), {"photometric": "rgb"}),
    "planes": (pixels((3, 6, 8)), {"photometric": "rgb", "planarconfig": "separate"}),
    "alpha": (pixels((6, 8, 4)), {"photometric": "rgb", "extrasamples": ["unassalpha"]}),
    "stack": (pixels((4, 6, 8), np.uint16), {"photometric": "minisblack"}),
    "colour stack": (pixels((4, 6, 8, 3)), {"photometric": "rgb"}),
    "big": (pixels((6, 8)), {"bigtiff": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_tiff_comes_back_exactly_with_its_tags(tmp_path, case):
    values, options = CASES[case]
    tifffile.imwrite(
        tmp_path / "a.tif",
        values,
        resolution=(300, 150),
        resolutionunit="CENTIMETER",
        description="what it is",
        datetime="2013:05:22 10:00:00",
        software="camera",
        metadata=None,
        extratags=[(65000, "s", 0, "private", True), (33550, "d", 3, (1.0, 2.0, 0.0), True)],
        **options,
    )
    data, second, copy = again(tmp_path / "a.tif")
    np.testing.assert_array_equal(second.values, data.values)
    np.testing.assert_array_equal(tifffile.imread(copy), values)
    with tifffile.TiffFile(tmp_path / "a.tif") as before, tifffile.TiffFile(copy) as after:
        assert after.byteorder == before.byteorder
        assert after.is_bigtiff == before.is_bigtiff
        assert len(after.pages) == len(before.pages)
        for old, new in zip(before.pages, after.pages, strict=True):
            for name in ("photometric", "compression", "predictor", "planarconfig", "extrasamples", "is_tiled"):
                assert getattr(new, name) == getattr(old, name)
            places = {"StripOffsets", "StripByteCounts", "TileOffsets", "TileByteCounts", "RowsPerStrip"}
            kept = {tag.name: tag.value for tag in old.aspage().tags if tag.name not in places}
            assert kept.items() <= {tag.name: tag.value for tag in new.aspage().tags}.items()


def test_a_stack_is_pages_or_one_volume(tmp_path):
    values = pixels((4, 6, 8), np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", values, photometric="minisblack")
    assert [part.shape for part in io.read(tmp_path / "a.tif").parts()] == [(6, 8)] * 4
    [whole] = again(tmp_path / "a.tif", ReadOptions(volume=True))[1].parts()
    np.testing.assert_array_equal(whole, values)


def test_imagej_hyperstacks_keep_their_axes_and_labels(tmp_path):
    values = pixels((2, 3, 6, 8), np.uint16)
    told = {"axes": "ZCYX", "Labels": list("abcdef"), "spacing": 2.5, "unit": "um"}
    tifffile.imwrite(tmp_path / "a.tif", values, imagej=True, metadata=told)
    _, _, copy = again(tmp_path / "a.tif")
    with tifffile.TiffFile(copy) as file:
        assert file.series[0].axes == "ZCYX"
        assert file.imagej_metadata["Labels"] == told["Labels"]
        assert file.imagej_metadata["spacing"] == 2.5
        np.testing.assert_array_equal(file.asarray(), values)


def test_bands_without_alpha_are_all_denoised_and_palettes_refused(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", pixels((6, 8, 5)), photometric="minisblack", planarconfig="contig")
    data = io.read(tmp_path / "a.tif")
    assert data.values.shape == (6, 8, 5)
    assert data.alpha is None
    colours = np.zeros((3, 256), np.uint16)
    tifffile.imwrite(tmp_path / "p.tif", pixels((6, 8)), photometric="palette", colormap=colours)
    with pytest.raises(FileError, match="palette"):
        io.read(tmp_path / "p.tif")


def test_pages_that_differ_are_refused(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(pixels((6, 8)), photometric="minisblack")
        file.write(pixels((3, 4)), photometric="minisblack")
    with pytest.raises(FileError, match=r"pages of .* differ.*Split"):
        io.read(tmp_path / "a.tif")


# NPY


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex64"])
def test_npy_comes_back_exactly(tmp_path, dtype):
    values = np.arange(24).reshape(4, 6).astype(dtype)
    np.save(tmp_path / "a.npy", values)
    second = again(tmp_path / "a.npy")[1].values
    assert second.dtype == values.dtype
    np.testing.assert_array_equal(second, values)


def test_the_channel_axis_of_npy_counts_from_the_end(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 5)))
    assert io.read(tmp_path / "a.npy", ReadOptions(channel_axis=0)).channel_axis == -3
    with pytest.raises(FileError, match="has 3, got 3"):
        io.read(tmp_path / "a.npy", ReadOptions(channel_axis=3))


# WAV


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_wav_keeps_rate_subtype_and_titles(tmp_path, subtype, channels):
    sound = np.sin(np.arange(400.0 * channels)).reshape(-1, channels) * 0.9
    with soundfile.SoundFile(tmp_path / "a.wav", "w", 22050, channels, subtype) as file:
        file.title, file.artist = "a song", "nobody"
        file.write(sound)
    first, second, copy = again(tmp_path / "a.wav")
    assert first.values.shape == ((400,) if channels == 1 else (400, 2))
    np.testing.assert_array_equal(second.values, first.values)
    np.testing.assert_allclose(first.values.reshape(-1, channels), sound, atol=1 / 127)
    with soundfile.SoundFile(copy) as file:
        assert (file.samplerate, file.subtype, file.format) == (22050, subtype, "WAV")
        assert (file.title, file.artist) == ("a song", "nobody")


def test_the_dtype_of_wav_is_how_samples_are_stored(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.array([0.5, -0.25]), 8000, subtype="PCM_16")
    io.write(tmp_path / "b.wav", io.converted(io.read(tmp_path / "a.wav"), np.dtype("float32")))
    assert soundfile.info(tmp_path / "b.wav").subtype == "FLOAT"
    np.testing.assert_array_equal(soundfile.read(tmp_path / "b.wav")[0], [0.5, -0.25])
    with pytest.raises(FileError, match="WAV does not hold uint16"):
        io.converted(io.read(tmp_path / "a.wav"), np.dtype("uint16"))


# NIfTI


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
@pytest.mark.parametrize("shape", [(4, 5, 6), (4, 5, 6, 2), (4, 5, 1), (4, 5, 6, 1)])
def test_nifti_keeps_affine_zooms_and_type(tmp_path, name, shape):
    nibabel = pytest.importorskip("nibabel")
    affine = np.array([[-2.0, 0, 0, 10], [0, 2, 0.125, 20], [0, 0, 3, 30], [0, 0, 0, 1]])
    image = nibabel.Nifti1Image(pixels(shape, np.int16), affine)
    image.header["descrip"] = b"a brain"
    image.header.set_xyzt_units("mm", "sec")
    image.to_filename(tmp_path / name)
    data, _, copy = again(tmp_path / name)
    assert {part.ndim for part in data.parts()} == {3 if 6 in shape else 2}
    assert len(data.parts()) == (2 if shape[-1] == 2 else 1)
    after = nibabel.load(copy)
    np.testing.assert_array_equal(after.affine, affine)
    np.testing.assert_array_equal(np.asanyarray(after.dataobj), np.asanyarray(image.dataobj))
    assert after.header.get_data_dtype() == np.int16
    assert after.header["descrip"] == b"a brain"
    assert after.header["sform_code"] == image.header["sform_code"]


def test_scaled_nifti_stays_in_its_units(tmp_path):
    """16 bits over the range of the data: an error of at most half a step."""
    nibabel = pytest.importorskip("nibabel")
    values = np.random.default_rng(0).normal(size=(4, 5, 6))
    image = nibabel.Nifti1Image(values, np.eye(4))
    image.header.set_data_dtype(np.int16)
    image.to_filename(tmp_path / "a.nii")
    first, second, copy = again(tmp_path / "a.nii")
    np.testing.assert_allclose(second.values, first.values, atol=np.ptp(values) / 2**16)
    assert nibabel.load(copy).header.get_data_dtype() == np.int16
    io.write(tmp_path / "b.nii", io.converted(first, np.dtype("float32")))
    assert nibabel.load(tmp_path / "b.nii").header.get_data_dtype() == np.float32


# CSV


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv_keeps_everything_but_the_chosen_column(tmp_path, delimiter, newline):
    rows = [["time", "label", "volts"], ["0.5", "a", "1.25"], ["1.0", "b", "-2"], ["1.5", "c", ""]]
    text = newline.join(delimiter.join(row) for row in rows) + newline
    (tmp_path / "a.csv").write_bytes(text.encode())
    data = io.read(tmp_path / "a.csv", ReadOptions(columns=("volts",)))
    np.testing.assert_array_equal(data.values, [1.25, -2.0, np.nan])
    assert io.read(tmp_path / "a.csv", ReadOptions(columns=("3",))).values[0] == 1.25
    io.write(tmp_path / "b.csv", data)
    assert (tmp_path / "b.csv").read_bytes() == text.encode()


def test_csv_of_one_column_of_numbers_needs_no_choice(tmp_path):
    (tmp_path / "a.csv").write_text("date,value\n2020-01-01,1\n2020-01-02,2\n\n")
    first, _, copy = again(tmp_path / "a.csv")
    np.testing.assert_array_equal(first.values, [1, 2])
    assert copy.read_text() == (tmp_path / "a.csv").read_text()
    (tmp_path / "b.txt").write_text("# volts\n1e-3\n2e-3\n")
    np.testing.assert_array_equal(io.read(tmp_path / "b.txt").values, [1e-3, 2e-3])


def test_csv_with_decimal_commas_byte_order_mark_and_titles(tmp_path):
    text = "from the lab\nt;µV\n0,5;1,25\n1,0;2,5\n"
    (tmp_path / "a.csv").write_bytes(text.encode("utf-8-sig"))
    (tmp_path / "l.csv").write_bytes(text.encode("latin-1"))
    for name in ("a.csv", "l.csv"):
        data, _, copy = again(tmp_path / name, ReadOptions(columns=("µV",)))
        np.testing.assert_array_equal(data.values, [1.25, 2.5])
        assert copy.read_bytes() == (tmp_path / name).read_bytes()


def test_several_columns_are_denoised_one_by_one(tmp_path):
    (tmp_path / "a.csv").write_text('"a, first",b\n1,2\n3,4\n')
    data, second, copy = again(tmp_path / "a.csv", ReadOptions(columns=("b", "a, first")))
    assert [part.tolist() for part in data.parts()] == [[2, 4], [1, 3]]
    np.testing.assert_array_equal(second.values, data.values)
    with open(copy, newline="") as file:
        assert next(csv.reader(file)) == ["a, first", "b"]


@pytest.mark.parametrize(
    ("text", "columns", "told"),
    [
        ("a,b\n1,2\n", (), "has the columns a, b. Choose one or more with --column"),
        ("a,b\n1,2\n", ("c",), "no column 'c'. There are a, b; or give a number from 1 to 2"),
        ("a,b\n1,2\n3,x\n", ("b",), "row 3, column 'b' holds 'x', which is no number"),
        ("a,b\n1,2\n3\n", ("b",), "row 3, column 'b' holds nothing"),
        ("nothing\nhere\n", (), "no numbers"),
        ("", (), "no numbers"),
    ],
)
def test_csv_errors_tell_where(tmp_path, text, columns, told):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(FileError) as error:
        io.read(tmp_path / "a.csv", ReadOptions(columns=columns))
    assert told in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "a.csv"))


def test_columns_are_for_tables(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3))
    with pytest.raises(FileError, match=r"has no columns. Leave --column out"):
        io.read(tmp_path / "a.npy", ReadOptions(columns=("a",)))


# hostile files


def one_of_each(folder):
    """Write a good file of every format."""
    import nibabel

    values = pixels((64, 64))
    Image.fromarray(values).save(folder / "a.png")
    Image.fromarray(values).save(folder / "a.jpg")
    tifffile.imwrite(folder / "a.tif", values)
    tifffile.imwrite(folder / "z.tif", values, compression="zlib")
    np.save(folder / "a.npy", values)
    soundfile.write(folder / "a.wav", values.ravel() / 255, 8000)
    nibabel.Nifti1Image(values, np.eye(4)).to_filename(folder / "a.nii")
    nibabel.Nifti1Image(values, np.eye(4)).to_filename(folder / "a.nii.gz")


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tif", "z.tif", "a.npy", "a.wav", "a.nii", "a.nii.gz"])
def test_truncated_empty_and_foreign_files_are_one_kind_of_error(tmp_path, name):
    pytest.importorskip("nibabel")
    one_of_each(tmp_path)
    content = (tmp_path / name).read_bytes()
    bad = [content[: int(len(content) * part)] for part in (0, 0.01, 0.3, 0.7)]
    bad += [b"\0" * 300, b"hello\n" * 50, bytes(range(256)) * 4]
    for damaged in bad:
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(FileError) as error:
            io.read(tmp_path / name)
        assert name in str(error.value)
        assert "\n" not in str(error.value)


def test_decompression_bombs_are_refused_before_memory_is_taken(tmp_path):
    (tmp_path / "a.png").write_bytes(png(60_000, 60_000, 8, 0))
    with pytest.raises(FileError, match="decompression bomb"):
        io.read(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(png(10_000, 10_000, 8, 0))  # a warning to Pillow, an error here
    with pytest.raises(FileError, match="decompression bomb"):
        io.read(tmp_path / "b.png")


def test_tiff_and_nifti_that_claim_too_much_are_refused(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    tifffile.imwrite(tmp_path / "a.tif", pixels((8, 8)), compression="zlib")
    with tifffile.TiffFile(tmp_path / "a.tif", mode="r+") as file:
        for name in ("ImageWidth", "ImageLength", "RowsPerStrip"):
            file.pages[0].tags[name].overwrite(60_000, dtype="I")
    with pytest.raises(FileError, match=r"GiB.*bomb"):
        io.read(tmp_path / "a.tif")
    header = nibabel.Nifti1Header()
    header.set_data_dtype(np.float64)
    header.set_data_shape((30_000, 30_000, 30_000))
    (tmp_path / "a.nii").write_bytes(header.binaryblock + bytes(100))
    with pytest.raises(FileError, match=r"GiB.*bomb"):
        io.read(tmp_path / "a.nii")


def jpeg_header(width, height):
    """Return a grey JPEG file of any size that lacks most of its data."""
    file = BytesIO()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(file, "JPEG")
    content = bytearray(file.getvalue())
    at = content.index(b"\xff\xc0") + 5
    content[at : at + 4] = struct.pack(">HH", height, width)
    return content


@pytest.mark.slow
def test_a_small_file_that_claims_much_is_refused_from_64_mib_on(tmp_path):
    """Zeros shrink a thousand times; noise does not, and so files with noise pass."""
    empty = np.zeros((8200, 8200), np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", empty, compression="zlib")
    Image.fromarray(empty).save(tmp_path / "a.png")
    (tmp_path / "a.jpg").write_bytes(jpeg_header(8200, 8200))
    for name in ("a.tif", "a.png", "a.jpg"):
        with pytest.raises(FileError, match=r"a\..* claims to hold 64 MiB, .* times its size"):
            io.read(tmp_path / name)
    tifffile.imwrite(tmp_path / "b.tif", empty[:8000, :8000], compression="zlib")
    assert io.read(tmp_path / "b.tif").values.shape == (8000, 8000)
    noise = np.random.default_rng(0).integers(0, 4, (8200, 8200), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "c.tif", noise, compression="zlib", compressionargs={"level": 1})
    assert io.read(tmp_path / "c.tif").values.shape == (8200, 8200)


@pytest.mark.parametrize("compression", ["zlib", "lzma"])
def test_strips_inflate_no_further_than_they_claim(tmp_path, compression):
    """80 MB of zeros behind a picture of 64 x 64 pixels: tifffile would decode all of them."""
    tifffile.imwrite(
        tmp_path / "a.tif", np.zeros((80_000, 1000), np.uint8), compression=compression, rowsperstrip=80_000
    )
    with tifffile.TiffFile(tmp_path / "a.tif", mode="r+") as file:
        for name in ("ImageWidth", "ImageLength", "RowsPerStrip"):
            file.pages[0].tags[name].overwrite(64)
    with pytest.raises(FileError, match=r"inflates beyond the 4096 bytes that it claims.*without compression"):
        io.read(tmp_path / "a.tif")


def test_tiles_count_as_they_are_decoded(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", pixels((8, 8)), tile=(16, 16), compression="zlib")
    with tifffile.TiffFile(tmp_path / "a.tif", mode="r+") as file:
        for name in ("TileWidth", "TileLength"):
            file.pages[0].tags[name].overwrite(60_000, dtype="I")
    with pytest.raises(FileError, match="bomb"):
        io.read(tmp_path / "a.tif")


@pytest.mark.parametrize(("name", "logger"), [("a.tif", "tifffile"), ("a.nii", "nibabel.global")])
def test_loggers_of_libraries_are_silent_only_while_a_file_is_read(tmp_path, caplog, name, logger):
    nibabel = pytest.importorskip("nibabel")
    if name == "a.tif":  # offsets beyond the end of the file: tifffile logs and carries on
        tifffile.imwrite(tmp_path / name, pixels((8, 8)), metadata=None, description="x" * 100)
        content = bytearray((tmp_path / name).read_bytes())
        at = content.index(struct.pack("<HHI", 270, 2, 101)) + 8
        content[at : at + 4] = struct.pack("<I", 2**31)
    else:  # a pixel of negative width: nibabel logs and carries on
        header = nibabel.Nifti1Header()
        header.set_data_dtype(np.uint8)
        header.set_data_shape((4, 4))
        header["vox_offset"] = 352
        header["pixdim"][1] = -1
        content = header.binaryblock + bytes(4 + 16)
    (tmp_path / name).write_bytes(content)
    with caplog.at_level("DEBUG", logger):
        io.read(tmp_path / name)
        assert not caplog.records
        logging.getLogger(logger).warning("heard")
    assert [record.message for record in caplog.records] == ["heard"]


def test_pickles_are_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("it ran",))

    np.save(tmp_path / "a.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="pickled objects"):
        io.read(tmp_path / "a.npy")
    import pickle

    (tmp_path / "b.npy").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(FileError, match="pickled objects"):
        io.read(tmp_path / "b.npy")
    np.savez(tmp_path / "c.npz", a=np.ones(3))
    (tmp_path / "c.npz").rename(tmp_path / "c.npy")
    with pytest.raises(FileError, match="archive"):
        io.read(tmp_path / "c.npy")


def npy(dtype, shape, raw=b"", version=(1, 0)):
    """Return NPY data with any header."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode() + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + raw


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (npy("<f8", (10_000_000_000,), bytes(80)), "cannot be read as NPY: it claims 80000000000 bytes"),
        (npy("<f8", (10_000_000_000,), bytes(80), (2, 0)), "cannot be read as NPY: it claims 80000000000 bytes"),
        (npy("<f8", (11,), bytes(80)), "claims 88 bytes of data and holds 80"),
        (npy("|V0", (100_000_000_000,)), "no numbers but entries of dtype |V0"),
        (npy("<U0", (100_000_000_000,)), "no numbers but entries of dtype <U0"),
        (npy("|S0", (100_000_000_000,), version=(2, 0)), "no numbers but entries of dtype |S0"),
        (npy([("a", "<f8")], (1,), bytes(8)), "no numbers but entries of dtype"),
        (npy("|V0", (100_000_000_000,), version=(3, 0)), "named fields"),
        (npy("|O", (1,), b"x"), "pickled objects"),
    ],
)
def test_npy_headers_are_checked_before_anything_is_loaded(tmp_path, content, told):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(FileError) as error:
        io.read(tmp_path / "a.npy")
    assert told in str(error.value)
    with pytest.raises(FileError) as error:
        io.load_npy(BytesIO(content), "standard input")
    assert told in str(error.value)


def test_npy_with_exactly_the_data_that_it_claims(tmp_path):
    (tmp_path / "a.npy").write_bytes(npy("<f8", (10,), np.arange(10.0).tobytes(), (2, 0)))
    np.testing.assert_array_equal(io.read(tmp_path / "a.npy").values, np.arange(10.0))


def test_folders_missing_files_and_unknown_names(tmp_path):
    (tmp_path / "a.png").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        io.read(tmp_path / "a.png")
    with pytest.raises(FileError, match="does not exist"):
        io.read(tmp_path / "b.png")
    with pytest.raises(FileError, match=r"tells no format. It must end in one of .png"):
        io.read(tmp_path / "b.xyz")


def test_a_missing_library_is_told_as_such(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(ImportError):
        io.read(tmp_path / "a.wav")


# writing


def test_nothing_is_overwritten_without_leave(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3))
    data = io.read(tmp_path / "a.npy")
    with pytest.raises(FileError, match=r"a.npy exists. .* --force"):
        io.write(tmp_path / "a.npy", data)
    io.write(tmp_path / "a.npy", io.converted(data, np.dtype("uint8")), force=True)
    assert np.load(tmp_path / "a.npy").dtype == np.uint8
    (tmp_path / "link.npy").symlink_to(tmp_path / "nowhere.npy")
    with pytest.raises(FileError, match="exists"):
        io.write(tmp_path / "link.npy", data)


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), RuntimeError("what")])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, error):
    np.save(tmp_path / "a.npy", np.ones(3))
    data = io.read(tmp_path / "a.npy")

    def fail(path, values, **options):
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises((OSError, KeyboardInterrupt, FileError)):
        io.write(tmp_path / "a.npy", data, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.ones(3))


def test_names_may_be_as_long_as_the_file_system_allows(tmp_path):
    name = "x" * 251 + ".npy"
    io.write(tmp_path / name, io.Data(np.arange(3.0), "NPY"))
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    def write():
        with io.replacing(tmp_path / "a") as beside:
            beside.write_text("mine")
            (tmp_path / "a").write_text("theirs")

    with pytest.raises(FileError, match="exists"):
        write()
    assert [p.read_text() for p in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.parametrize(
    ("values", "axis", "target", "told"),
    [
        (np.zeros((4, 4)), None, "b.png", "PNG does not hold float64. Say --dtype uint8 or uint16, or write TIFF"),
        (np.zeros((4, 4), np.uint16), None, "b.jpg", "JPEG does not hold uint16. Say --dtype uint8"),
        (np.zeros((4, 4, 4), np.uint8), None, "b.png", "no PNG picture"),
        (np.zeros(4), None, "b.wav", "NPY data cannot be written as WAV"),
        (np.zeros(4), None, "no/b.npy", "no folder"),
    ],
)
def test_what_a_format_cannot_hold(tmp_path, values, axis, target, told):
    with pytest.raises(FileError, match=told):
        io.write(tmp_path / target, io.Data(values, "NPY", axis))


def test_pictures_change_format_with_their_numbers(tmp_path):
    values = pixels((6, 8, 4))
    Image.fromarray(values).save(tmp_path / "a.png")
    data = io.read(tmp_path / "a.png")
    io.write(tmp_path / "a.tif", data)
    io.write(tmp_path / "a.npy", data)
    np.testing.assert_array_equal(io.read(tmp_path / "a.tif").alpha, data.alpha)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), values)
    io.write(tmp_path / "b.png", io.read(tmp_path / "a.tif"))
    np.testing.assert_array_equal(io.read(tmp_path / "b.png").with_alpha(), values)
    with pytest.raises(FileError, match="no transparency"):
        io.write(tmp_path / "a.jpg", data)
    with pytest.raises(FileError, match="Leave --dtype out"):
        io.write(tmp_path / "c.tif", io.converted(data, np.dtype("float32")))


def test_conversion_rounds_and_clips_and_keeps_units():
    data = io.Data(np.array([-3.0, 1.5, 2.6, 300.0]), "NPY")
    assert io.converted(data, np.dtype("uint8")).values.tolist() == [0, 2, 3, 255]
    for bad in (np.nan, np.inf):
        with pytest.raises(FileError, match="NaN or infinity, which uint8 cannot hold"):
            io.converted(io.Data(np.array([bad]), "NPY"), np.dtype("uint8"))
    with pytest.raises(FileError, match=r"complex.*Leave --dtype out"):
        io.converted(io.Data(np.array([1j]), "NPY"), np.dtype("float32"))


@pytest.mark.parametrize("target", ["uint8", "uint16", "int16", "int32"])
@pytest.mark.parametrize("source", ["bool", "uint8", "int8", "uint32", "int64", "float16", "float32", "float64"])
def test_conversion_to_integers_is_exact_at_the_limits(source, target):
    """Python's own integers are the truth; a warning of NumPy is an error here."""
    info = np.finfo(source) if source.startswith("float") else None if source == "bool" else np.iinfo(source)
    values = np.array([0, 1] if info is None else [info.min, 0, 1, 100, info.max], dtype=source)
    low, high = np.iinfo(target).min, np.iinfo(target).max
    found = io.converted(io.Data(values, "NPY"), np.dtype(target)).values
    assert found.dtype == target
    assert found.tolist() == [min(max(int(value), low), high) for value in values.tolist()]


def test_conversion_to_smaller_floats_clips_and_keeps_infinity():
    values = np.array([1e300, -1e300, np.inf, np.nan, 0.5])
    found = io.converted(io.Data(values, "NPY"), np.dtype("float32")).values
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(found, np.array([largest, -largest, np.inf, np.nan, 0.5], np.float32))
