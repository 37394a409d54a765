"""FITS files: which image is meant, what is kept, and what is refused."""

import gzip

import numpy as np
import pytest

import scorethresh as st
from helpers import fails, noisy_step

fits = pytest.importorskip("astropy.io.fits")

FAST = ("--choose", "bands", "--sigma", 12)


def denoised(y):
    return st.denoise(y, sigma=12.0, choose="bands")


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32", "float64"])
@pytest.mark.parametrize("name", ["in.fits", "in.fits.gz"])
def test_type_and_header_are_kept(run, dtype, name):
    y = noisy_step().astype(dtype)
    image = fits.PrimaryHDU(y)
    image.header["OBJECT"] = "M 31"
    image.header["CRVAL1"] = 10.68
    image.writeto(name, checksum=True)
    code, _, err = run("denoise", name, "-o", f"out{name[2:]}", *FAST)
    assert (code, err) == (0, "")
    with fits.open(f"out{name[2:]}", checksum=True) as out:
        np.testing.assert_array_equal(out[0].data, denoised(y))
        assert out[0].data.dtype.newbyteorder("=") == dtype
        assert (out[0].header["OBJECT"], out[0].header["CRVAL1"]) == ("M 31", 10.68)
        assert "scorethresh" in str(out[0].header["HISTORY"])


def test_other_extensions_stay_as_they_are(run):
    table = fits.BinTableHDU.from_columns([fits.Column("t", "D", array=np.arange(3.0))], name="TIMES")
    science, error = noisy_step().astype(np.float32), np.full((48, 64), 3, np.float32)
    hdus = [fits.PrimaryHDU(), fits.ImageHDU(science, name="SCI"), fits.ImageHDU(error, name="ERR"), table]
    fits.HDUList(hdus).writeto("in.fits")
    fails(run("denoise", "in.fits", "-o", "out.fits"), "holds 2 images. Choose one of SCI, ERR with --key")
    fails(run("denoise", "in.fits", "-o", "out.fits", "--key", "DQ"), "no image 'DQ'", "SCI, ERR")
    assert run("denoise", "in.fits", "-o", "out.fits", "--key", "sci", *FAST)[0] == 0
    with fits.open("out.fits") as out:
        assert [hdu.name for hdu in out] == ["PRIMARY", "SCI", "ERR", "TIMES"]
        np.testing.assert_array_equal(out["SCI"].data, denoised(science))
        np.testing.assert_array_equal(out["ERR"].data, error)
        np.testing.assert_array_equal(out["TIMES"].data["t"], np.arange(3.0))


def test_scaled_values_and_blanks(run):
    """Stored as integers with a scale; BLANK pixels are missing, and come back as NaN."""
    stored = noisy_step().astype(np.int16)
    stored[3, 5] = -999
    image = fits.PrimaryHDU(stored)
    image.header["BLANK"] = -999
    image.header["BSCALE"], image.header["BZERO"] = 2.0, 10.0
    image.writeto("in.fits")
    assert run("denoise", "in.fits", "-o", "out.fits", "--choose", "bands", "--sigma", 24)[0] == 0
    y = np.where(stored == -999, np.nan, 2.0 * stored + 10).astype(np.float32)
    with fits.open("out.fits") as out:
        np.testing.assert_allclose(out[0].data, st.denoise(y, sigma=24.0, choose="bands"), rtol=1e-6)
        assert np.isnan(out[0].data[3, 5])


def test_compressed_images_and_axes_of_one_entry(run):
    y = noisy_step().astype(np.float32)
    packed = fits.CompImageHDU(y, name="SCI", compression_type="GZIP_1", quantize_level=0)
    fits.HDUList([fits.PrimaryHDU(), packed]).writeto("c.fits")
    fits.PrimaryHDU(y[None, None]).writeto("radio.fits")
    for name in ("c.fits", "radio.fits"):
        assert run("denoise", name, "-o", f"out-{name}", *FAST)[0] == 0
        with fits.open(f"out-{name}") as out:
            data = out[1].data if name == "c.fits" else out[0].data
            assert data.shape == ((48, 64) if name == "c.fits" else (1, 1, 48, 64))
            np.testing.assert_array_equal(data.squeeze(), denoised(y))


def test_what_is_no_image_is_told(run, tmp_path):
    table = fits.BinTableHDU.from_columns([fits.Column("t", "D", array=[1.0])])
    fits.HDUList([fits.PrimaryHDU(), table]).writeto("t.fits")
    fails(run("denoise", "t.fits", "-o", "out.fits"), "t.fits holds no image")
    (tmp_path / "bad.fits").write_bytes(b"SIMPLE  =                    T" + b" " * 50)
    fails(run("denoise", "bad.fits", "-o", "out.fits"), "bad.fits")
    np.save("in.npy", noisy_step())
    fails(run("denoise", "in.npy", "-o", "out.fits"), "NPY data cannot be written as FITS")


def test_a_file_that_claims_too_much_is_refused(run, tmp_path):
    cards = ["SIMPLE  =                    T", "BITPIX  =                  -64", "NAXIS   =                    2"]
    cards += [f"NAXIS{k}  =               100000" for k in (1, 2)] + ["END"]
    head = "".join(card.ljust(80) for card in cards).ljust(2880).encode()
    (tmp_path / "in.fits.gz").write_bytes(gzip.compress(head + bytes(2880)))
    fails(run("denoise", "in.fits.gz", "-o", "out.fits"), "in.fits.gz")
