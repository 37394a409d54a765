"""The command line on series of volumes, pages and arrays: the output, the maps, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

import scorethresh as st
from helpers import fails
from scorethresh import cli


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command line in a folder of its own; give the exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        capsys.readouterr()
        code = cli.main([str(a) for a in argv])
        return code, *capsys.readouterr()

    return run


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
    assert out.startswith("out.nii.gz: 12 x 11 x 6 x 12 float32, sigma ")
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
    fails(run(*base, "--series", "--choose", "bands"), "--series goes with --sigma")
    fails(run(*base, "--series", "--compare"), "--series goes with --sigma")
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
