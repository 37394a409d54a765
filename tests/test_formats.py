"""Formats with libraries of their own: what comes back, what is kept, what is refused."""

import dataclasses
import struct
import zipfile

import numpy as np
import pytest

pytest.importorskip("typer")

from PIL import Image

from scorethresh import cli, io
from scorethresh.io import FileError, ReadOptions


def pixels(shape, dtype=np.uint8):
    return np.random.default_rng(3).integers(0, np.iinfo(dtype).max, shape, dtype=dtype)


def again(path, options=ReadOptions()):  # noqa: B008
    """Read a file, write what was read beside it, and return both, read anew."""
    data = io.read(path, options)
    copy = path.with_name("copy-" + path.name)
    io.write(copy, data)
    return data, io.read(copy, options), copy


# BMP and WebP


@pytest.mark.parametrize(("name", "shape"), [("a.bmp", (5, 7)), ("a.bmp", (5, 7, 3)), ("a.webp", (5, 7, 3))])
def test_pictures_come_back_exactly(tmp_path, name, shape):
    values = pixels(shape)
    Image.fromarray(values).save(tmp_path / name, lossless=True)
    for data in again(tmp_path / name)[:2]:
        np.testing.assert_array_equal(data.values, values)
        assert data.channel_axis == (None if len(shape) == 2 else -1)


def test_bmp_keeps_its_resolution_and_has_no_opacity(tmp_path):
    Image.fromarray(pixels((5, 7))).save(tmp_path / "a.bmp", dpi=(300, 300))
    copy = again(tmp_path / "a.bmp")[2]
    with Image.open(copy) as image:
        assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
    Image.fromarray(pixels((5, 7, 4))).save(tmp_path / "a.png")
    with pytest.raises(FileError, match="no transparency"):
        io.write(tmp_path / "b.bmp", io.read(tmp_path / "a.png"))


def test_palettes_of_bmp_become_colours(tmp_path):
    palette = Image.fromarray(pixels((5, 7, 3))).quantize(8)
    palette.save(tmp_path / "a.bmp")
    np.testing.assert_array_equal(io.read(tmp_path / "a.bmp").values, np.asarray(palette.convert("RGB")))


def test_webp_keeps_opacity_profile_and_exif(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    values = pixels((5, 7, 4))
    Image.fromarray(values).save(tmp_path / "a.webp", lossless=True, exact=True, exif=exif, icc_profile=b"p" * 40)
    first, second, copy = again(tmp_path / "a.webp")
    np.testing.assert_array_equal(second.with_alpha(), values)
    assert first.alpha.shape == (5, 7, 1)
    with Image.open(copy) as image:
        assert image.info["icc_profile"] == b"p" * 40
        assert image.getexif()[0x0112] == 6


def test_animations_are_refused(tmp_path):
    frames = [Image.fromarray(pixels((4, 4, 3))), Image.fromarray(255 - pixels((4, 4, 3)))]
    frames[0].save(tmp_path / "a.webp", save_all=True, append_images=frames[1:])
    with pytest.raises(FileError, match="2 frames"):
        io.read(tmp_path / "a.webp")


# NPZ


def test_npz_keeps_the_other_arrays(tmp_path):
    a, b = np.arange(12.0).reshape(3, 4), np.array(["x", "y"])
    np.savez_compressed(tmp_path / "a.npz", a=a, b=b)
    with pytest.raises(FileError, match=r"2 arrays\. Choose one of a, b with --key"):
        io.read(tmp_path / "a.npz")
    with pytest.raises(FileError, match="no array 'c'"):
        io.read(tmp_path / "a.npz", ReadOptions(key="c"))
    data, _, copy = again(tmp_path / "a.npz", ReadOptions(key="a"))
    np.testing.assert_array_equal(data.values, a)
    with np.load(copy) as loaded:
        np.testing.assert_array_equal(loaded["a"], a)
        np.testing.assert_array_equal(loaded["b"], b)
    with pytest.raises(FileError, match="no numbers"):
        io.read(tmp_path / "a.npz", ReadOptions(key="b"))


def test_npz_of_one_array_needs_no_key_and_takes_any_data(tmp_path):
    np.savez(tmp_path / "a.npz", np.arange(5.0))
    np.testing.assert_array_equal(again(tmp_path / "a.npz")[1].values, np.arange(5.0))
    Image.fromarray(pixels((5, 7, 3))).save(tmp_path / "a.png")
    io.write(tmp_path / "b.npz", io.read(tmp_path / "a.png"))
    np.testing.assert_array_equal(io.read(tmp_path / "b.npz").values, pixels((5, 7, 3)))


def test_hostile_npz(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(100 << 20))
    with pytest.raises(FileError, match="decompression bomb"):
        io.read(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", a=np.array([print], dtype=object))
    with pytest.raises(FileError, match="pickled objects"):
        io.read(tmp_path / "b.npz")
    (tmp_path / "c.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(FileError, match="cannot be read as NPZ"):
        io.read(tmp_path / "c.npz")
    # The size that the archive claims is less than what it holds.
    raw = (tmp_path / "a.npz").read_bytes().replace(struct.pack("<I", 100 << 20), struct.pack("<I", 1000))
    (tmp_path / "d.npz").write_bytes(raw)
    with pytest.raises(FileError):
        io.read(tmp_path / "d.npz")


# DICOM


def dicom(path, values, *, bits=12, signed=False, photometric="MONOCHROME2"):
    pydicom = pytest.importorskip("pydicom")
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
    meta.MediaStorageSOPInstanceUID = "1.2.3"
    dataset = pydicom.dataset.Dataset()
    dataset.file_meta = meta
    dataset.SOPClassUID, dataset.SOPInstanceUID = pydicom.uid.CTImageStorage, "1.2.3"
    dataset.PatientName, dataset.PixelSpacing, dataset.ImageType = "A^B", [0.5, 0.5], ["ORIGINAL", "PRIMARY"]
    colours = 3 if photometric == "RGB" else 1
    shape = values.shape if colours == 1 else values.shape[:-1]
    if len(shape) == 3:
        dataset.NumberOfFrames = shape[0]
    dataset.Rows, dataset.Columns = shape[-2:]
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = colours, photometric
    if colours == 3:
        dataset.PlanarConfiguration = 0
    dataset.BitsAllocated = 8 * values.dtype.itemsize
    dataset.BitsStored = min(bits, dataset.BitsAllocated)
    dataset.HighBit = dataset.BitsStored - 1
    dataset.PixelRepresentation = int(signed)
    content = values.tobytes()
    dataset.PixelData = content + b"\0" * (len(content) % 2)
    dataset.save_as(path, enforce_file_format=True)
    return path


@pytest.mark.parametrize("case", ["grey", "signed", "colours", "frames", "odd"])
def test_dicom_comes_back_with_its_tags(tmp_path, case):
    pydicom = pytest.importorskip("pydicom")
    values = {
        "grey": pixels((6, 8), np.uint16) >> 4,
        "signed": (pixels((6, 8), np.int16) >> 4) - 1000,
        "colours": pixels((6, 8, 3)),
        "frames": pixels((3, 6, 8), np.uint16) >> 4,
        "odd": pixels((5, 7)),
    }[case]
    path = dicom(
        tmp_path / "a.dcm", values, signed=case == "signed", photometric="RGB" if case == "colours" else "MONOCHROME2"
    )
    first, second, copy = again(path)
    np.testing.assert_array_equal(first.values, values)
    np.testing.assert_array_equal(second.values, values)
    assert len(first.parts()) == (3 if case == "frames" else 1)
    after = pydicom.dcmread(copy)
    assert (after.PatientName, list(after.PixelSpacing)) == ("A^B", [0.5, 0.5])
    assert after.ImageType[0] == "DERIVED"
    assert after.SOPInstanceUID != "1.2.3"
    assert after.file_meta.MediaStorageSOPInstanceUID == after.SOPInstanceUID


def test_dicom_frames_may_be_a_volume(tmp_path):
    path = dicom(tmp_path / "a.dcm", pixels((3, 6, 8), np.uint16) >> 4)
    for options in (ReadOptions(volume=True), ReadOptions(axes="ZYX")):
        assert [p.shape for p in io.read(path, options).parts()] == [(3, 6, 8)]


def test_dicom_stays_within_its_bits_and_its_type(tmp_path):
    import dataclasses

    path = dicom(tmp_path / "a.dcm", pixels((6, 8), np.uint16) >> 4)
    data = io.read(path)
    io.write(tmp_path / "b.dcm", dataclasses.replace(data, values=np.full((6, 8), 60000, np.uint16)))
    assert io.read(tmp_path / "b.dcm").values.max() == 4095
    with pytest.raises(FileError, match="holds uint16, not float32"):
        io.write(tmp_path / "c.dcm", io.converted(data, np.dtype("float32")))


def test_dicom_without_a_picture_or_with_other_colours_is_refused(tmp_path):
    pydicom = pytest.importorskip("pydicom")
    path = dicom(tmp_path / "a.dcm", pixels((6, 8)))
    dataset = pydicom.dcmread(path)
    dataset.PhotometricInterpretation = "PALETTE COLOR"
    dataset.save_as(tmp_path / "b.dcm")
    with pytest.raises(FileError, match="PALETTE COLOR"):
        io.read(tmp_path / "b.dcm")
    del dataset.PixelData
    dataset.save_as(tmp_path / "c.dcm")
    with pytest.raises(FileError, match="no picture"):
        io.read(tmp_path / "c.dcm")
    (tmp_path / "d.dcm").write_bytes(b"\0" * 200)
    with pytest.raises(FileError, match="cannot be read as DICOM"):
        io.read(tmp_path / "d.dcm")


# MiniSEED


@pytest.fixture
def obspy():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("obspy")


def test_miniseed_traces_of_different_lengths(tmp_path, obspy):
    rng = np.random.default_rng(0)
    traces = [rng.integers(-1000, 1000, n).astype(np.int32) for n in (500, 700)]
    stream = obspy.Stream(
        [
            obspy.Trace(values, {"network": "XX", "station": "ABC", "channel": channel, "sampling_rate": 40.0})
            for values, channel in zip(traces, ("HHZ", "HHN"), strict=True)
        ]
    )
    stream.write(str(tmp_path / "a.mseed"), format="MSEED")
    data, second, copy = again(tmp_path / "a.mseed")
    assert sorted(part.size for part in data.parts()) == [500, 700]
    assert data.part_name(1) == "trace 2 of 2"
    np.testing.assert_array_equal(second.values, data.values)
    after = obspy.read(str(copy))
    assert {trace.stats.channel: trace.data.tolist() for trace in after} == {
        "HHZ": traces[0].tolist(),
        "HHN": traces[1].tolist(),
    }
    assert all(trace.stats.sampling_rate == 40.0 and trace.data.dtype == np.int32 for trace in after)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_miniseed_is_denoised(tmp_path, monkeypatch, obspy, dtype):
    monkeypatch.chdir(tmp_path)
    t = np.arange(2000)
    clean = 500 * np.sin(t / 50)
    noisy = (clean + np.random.default_rng(0).normal(0, 50, t.size)).astype(dtype)
    obspy.Stream([obspy.Trace(noisy)]).write("a.mseed", format="MSEED")
    assert cli.main(["denoise", "a.mseed", "-o", "b.mseed", "--sigma", "50"]) == 0
    [after] = obspy.read("b.mseed")
    assert after.data.dtype == dtype
    assert np.sqrt(np.mean((after.data - clean) ** 2)) < 20


# WFDB


@pytest.fixture
def wfdb():
    return pytest.importorskip("wfdb")


def record(wfdb, folder, name="ecg", leads=2):
    rng = np.random.default_rng(0)
    signal = np.stack([np.sin(np.arange(1500) / (20 + 9 * k)) for k in range(leads)], axis=1)
    noisy = signal + rng.normal(0, 0.1, signal.shape)
    names = ["I", "II", "III"][:leads]
    wfdb.wrsamp(
        name,
        fs=250,
        units=["mV"] * leads,
        sig_name=names,
        p_signal=noisy,
        fmt=["16"] * leads,
        comments=["a patient"],
        write_dir=str(folder),
    )
    return signal


@pytest.mark.parametrize("leads", [1, 2])
@pytest.mark.filterwarnings("ignore")  # of wfdb, about pandas
def test_a_record_is_denoised_with_its_header(tmp_path, monkeypatch, wfdb, leads):
    monkeypatch.chdir(tmp_path)
    clean = record(wfdb, tmp_path, leads=leads)
    assert cli.main(["denoise", "ecg.hea", "-o", "out.hea", "--sigma", "0.1"]) == 0
    after = wfdb.rdrecord("out")
    assert (after.fs, after.units, after.comments) == (250, ["mV"] * leads, ["a patient"])
    assert np.sqrt(np.mean((after.p_signal - clean) ** 2)) < 0.05
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ecg.dat", "ecg.hea", "out.dat", "out.hea"]


@pytest.mark.filterwarnings("ignore")  # of wfdb, about pandas
def test_an_estimate_beyond_the_recorded_range_is_cut_there(tmp_path, monkeypatch, wfdb):
    """wfdb scales a record so that its extremes fill the format; a denoised peak once was no number of it."""
    monkeypatch.chdir(tmp_path)
    clean = np.where(np.arange(2000) % 400 < 200, 1.0, -1.0)
    noisy = np.clip(clean + np.random.default_rng(0).normal(0, 0.3, 2000), -1.02, 1.02)
    wfdb.wrsamp("in", fs=250, units=["mV"], sig_name=["I"], p_signal=noisy[:, None], fmt=["16"])
    data = io.read(tmp_path / "in.hea")
    beyond = dataclasses.replace(data, values=1.1 * data.values)
    io.write(tmp_path / "out.hea", beyond)
    after = wfdb.rdrecord("out").p_signal[:, 0]
    np.testing.assert_allclose(after, np.clip(1.1 * noisy, -1.02, 1.02), atol=1e-3)


@pytest.mark.filterwarnings("ignore")  # of wfdb, about pandas
def test_a_record_is_written_whole_or_not_at_all(tmp_path, monkeypatch, capsys, wfdb):
    monkeypatch.chdir(tmp_path)
    record(wfdb, tmp_path)
    (tmp_path / "out.dat").write_bytes(b"old")
    assert cli.main(["denoise", "ecg.hea", "-o", "out.hea", "--sigma", "0.1"]) == 2
    assert "out.dat exists" in capsys.readouterr().err
    assert (tmp_path / "out.dat").read_bytes() == b"old"
    assert cli.main(["denoise", "ecg.hea", "-o", "a b.hea", "--sigma", "0.1"]) == 2
    assert "letters, digits" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ecg.dat", "ecg.hea", "out.dat"]


@pytest.mark.filterwarnings("ignore")  # of wfdb, about pandas
def test_records_that_claim_too_much_are_refused(tmp_path, wfdb):
    record(wfdb, tmp_path)
    text = (tmp_path / "ecg.hea").read_text()
    (tmp_path / "ecg.hea").write_text(text.replace(" 1500", " 150000000", 1))
    with pytest.raises(FileError, match="claims more samples"):
        io.read(tmp_path / "ecg.hea")
    (tmp_path / "ecg.hea").write_text(text.replace("ecg.dat", "../ecg.dat"))
    with pytest.raises(FileError):
        io.read(tmp_path / "ecg.hea")
