"""The command line on series of volumes, pages and arrays: the output, the maps, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

import scorethresh as st
from helpers import fails


def volumes(shape=(12, 11, 6), count=12):
    rng = np.random.default_rng(0)
    clean = np.einsum("xr,yr,zr,tr->xyzt", *(rng.normal(size=(n, 2)) for n in (*shape, count)))
    return (50 * clean + 10 * rng.normal(size=clean.shape)).astype(np.float32)


def test_a_nifti_series_with_its_maps(run):
    nibabel = pytest.importorskip("nibabel")
    y = volumes()
    affine = np.diag([2.0, 2.0, 3.0, 1.0])
    nibabel.Nifti1Image(y, affine).to_filename("in.nii.gz")
    maps = ("--noise-map", "sigma.nii.gz", "--rank-map", "rank.nii.gz")
    code, out, err = run("denoise", "in.nii.gz", "-o", "out.nii.gz", "--series", *maps)
    assert (code, err) == (0, "")
    assert out.startswith("out.nii.gz: 12 x 11 x 6 x 12 float32, ")
    found = st.LowRankDenoiser().run(y)
    image = nibabel.load("out.nii.gz")
    assert np.array_equal(image.get_fdata(dtype=np.float32), found.estimate)
    assert np.array_equal(image.affine, affine)
    for name, values in (("sigma", found.sigma), ("rank", found.rank)):
        image = nibabel.load(f"{name}.nii.gz")
        assert np.array_equal(image.affine, affine)
        assert image.header.get_zooms() == (2.0, 2.0, 3.0)
        assert image.get_fdata() == pytest.approx(values, rel=1e-6)


def test_a_single_slice_keeps_its_shape(run):
    nibabel = pytest.importorskip("nibabel")
    y = volumes((20, 20, 1))
    nibabel.Nifti1Image(y, np.eye(4)).to_filename("in.nii")
    code, _, err = run("denoise", "in.nii", "-o", "out.nii", "--series", "--sigma", 10, "--noise-map", "s.nii")
    assert (code, err) == (0, "")
    assert nibabel.load("out.nii").shape == (20, 20, 1, 12)
    assert nibabel.load("s.nii").shape == (20, 20, 1)


def test_arrays_and_stacks_of_pages(run):
    import tifffile

    y = volumes()[:, :, 0]
    np.save("in.npy", y)
    assert run("denoise", "in.npy", "-o", "out.npy", "--series", "--sigma", 10, "--rank-map", "rank.npy")[0] == 0
    found = st.LowRankDenoiser(sigma=10.0).run(y)
    assert np.array_equal(np.load("out.npy"), found.estimate)
    assert np.load("rank.npy") == pytest.approx(found.rank, rel=1e-6)
    tifffile.imwrite("in.tif", np.moveaxis(y, -1, 0), photometric="minisblack")
    code, out, err = run("denoise", "in.tif", "-o", "out.tif", "--series", "--sigma", 10)
    assert (code, err) == (0, "")
    assert "12 x 12 x 11 float32" in out
    assert np.moveaxis(tifffile.imread("out.tif"), 0, -1) == pytest.approx(found.estimate, abs=1e-4)


def test_integers_may_become_floats(run):
    np.save("in.npy", np.rint(volumes()).astype(np.int16))
    assert run("denoise", "in.npy", "-o", "out.npy", "--series", "--sigma", 10, "--dtype", "float32")[0] == 0
    out = np.load("out.npy")
    assert out.dtype == np.float32
    assert not np.array_equal(out, np.rint(out))


def test_what_is_refused_writes_nothing(run):
    y = volumes()
    np.save("in.npy", y)
    np.save("few.npy", y[..., :3])
    base = ("denoise", "in.npy", "-o", "out.npy")
    fails(run(*base, "--noise-map", "s.npy"), "go with --series")
    for option in (("--choose", "bands"), ("--compare",), ("--rule", "soft"), ("--report", "a.html"), ("--jobs", 2)):
        fails(run(*base, "--series", *option), f"{option[0]} does not go with --series", "Leave")
    fails(run("denoise", "in.npy", "few.npy", "-o", "out", "--series"), "one file")
    fails(run("denoise", "few.npy", "-o", "out.npy", "--series"), "3 volumes", "5 are needed")
    fails(run(*base, "--series", "--noise-map", "out.npy"), "same name")
    fails(run(*base, "--series", "--noise-map", "nowhere/s.npy"), "there is no folder nowhere")
    fails(run(*base, "--series", "--noise-map", "s.png"), "cannot be written as PNG", "NPY")
    Path("s.npy").touch()
    fails(run(*base, "--series", "--noise-map", "s.npy"), "exists")
    assert not Path("out.npy").exists()


def test_one_picture_is_no_series(run):
    from PIL import Image

    Image.fromarray(np.zeros((8, 8), dtype=np.uint8)).save("in.png")
    fails(run("denoise", "in.png", "-o", "out.png", "--series"), "not a series")


def test_masks_and_maps_of_the_noise(run):
    y = volumes()
    mask = np.zeros(y.shape[:-1], dtype=np.uint8)
    mask[2:-2, 2:-2, 1:-1] = 1
    levels = np.full(y.shape[:-1], 10.0)
    for name, values in (("in", y), ("mask", mask), ("levels", levels)):
        np.save(f"{name}.npy", values)
    files = ("--mask", "mask.npy", "--sigma", "levels.npy")
    code, out, err = run("denoise", "in.npy", "-o", "out.npy", "--series", *files)
    assert (code, err) == (0, "")
    assert "σ = 10 (given)" in out
    expected = st.LowRankDenoiser(sigma=levels, mask=mask == 0).run(y)
    np.testing.assert_array_equal(np.load("out.npy"), expected.estimate)
    np.testing.assert_array_equal(np.load("out.npy")[mask == 0], y[mask == 0])
    np.save("mask.npy", mask[:3])
    fails(run("denoise", "in.npy", "-o", "b.npy", "--series", *files), "mask must have the shape of one volume")


def test_magnitudes_with_a_mask_and_a_map_of_levels_in_nifti(run):
    nibabel = pytest.importorskip("nibabel")
    y = np.abs(volumes() + 10j * np.random.default_rng(1).normal(size=(12, 11, 6, 12))).astype(np.float32)
    mask = np.zeros(y.shape[:-1], dtype=np.uint8)
    mask[2:] = 1
    levels = np.full(y.shape[:-1], 10.0, dtype=np.float32)
    levels[6:] = 11.0
    for name, values in (("in", y), ("mask", mask), ("levels", levels)):
        nibabel.Nifti1Image(values, np.eye(4)).to_filename(f"{name}.nii.gz")
    options = ("--series", "--noise", "rician", "--mask", "mask.nii.gz")
    given = ("--sigma", "levels.nii.gz", "--noise-map", "s.nii.gz")
    code, out, err = run("denoise", "in.nii.gz", "-o", "out.nii.gz", *options, *given)
    assert (code, err) == (0, "")
    assert "σ = 11 (given)" in out
    found = st.LowRankDenoiser(noise="rician", sigma=levels, mask=mask == 0).run(y)
    assert np.array_equal(nibabel.load("out.nii.gz").get_fdata(dtype=np.float32), found.estimate)
    assert nibabel.load("s.nii.gz").get_fdata() == pytest.approx(found.sigma)
    assert run("denoise", "in.nii.gz", "-o", "b.nii.gz", *options)[0] == 0
    blind = st.LowRankDenoiser(noise="rician", mask=mask == 0).run(y)
    assert np.array_equal(nibabel.load("b.nii.gz").get_fdata(dtype=np.float32), blind.estimate)


def test_a_failed_noise_model_writes_nothing(run):
    np.save("in.npy", volumes())
    base = ("denoise", "in.npy", "-o", "out.npy", "--series", "--rank-map", "r.npy")
    fails(run(*base, "--noise", "rician", "--sigma", 10), "magnitudes of at least 0")
    fails(run(*base, "--noise", "correlated"), "noise must be 'white', 'rician'")
    fails(run(*base, "--noise", "poisson", "--sigma", 10), "sigma goes with white or Rician noise")
    assert not Path("out.npy").exists()
    assert not Path("r.npy").exists()


def test_channels_of_a_series_one_by_one(run):
    import tifffile

    y = np.stack([np.moveaxis(volumes()[:, :, k], -1, 0) for k in range(2)], axis=1)
    tifffile.imwrite("in.tif", y, imagej=True, metadata={"axes": "TCYX"})
    options = ("--series", "--sigma", 10, "--noise-map", "s.npy")
    code, out, err = run("denoise", "in.tif", "-o", "out.tif", *options)
    assert (code, err) == (0, "")
    assert "axes TCYX" in out
    expected = [st.denoise_lowrank(y[:, k], sigma=10.0, series_axis=0) for k in range(2)]
    np.testing.assert_array_equal(tifffile.imread("out.tif"), np.stack(expected, axis=1))
    assert np.load("s.npy").shape == (2, 12, 11)


def test_slices_are_no_series_unless_they_are_called_times(run):
    import tifffile

    y = np.moveaxis(volumes()[:, :, 0], -1, 0)
    tifffile.imwrite("in.tif", y, imagej=True, metadata={"axes": "ZYX"})
    fails(
        run("denoise", "in.tif", "-o", "out.tif", "--series", "--sigma", 10), "not a series", "axes ZYX", "--axes TYX"
    )
    assert run("denoise", "in.tif", "-o", "out.tif", "--series", "--sigma", 10, "--axes", "TYX")[0] == 0
    np.testing.assert_array_equal(tifffile.imread("out.tif"), st.denoise_lowrank(y, sigma=10.0, series_axis=0))
