"""The command `restore`: what it writes and prints, and what it refuses."""

import json

import numpy as np
import pytest

pytest.importorskip("typer")

from PIL import Image

import scorethresh as st
from helpers import fails, loaded

FAST = ("--steps", 2, "--no-predict", "--sigma", 3)


def picture(n=48):
    out = np.full((n, n), 60.0)
    out[n // 6 : n // 2, n // 5 : -n // 4] = 190.0
    return out


def blurred(psf, n=48):
    y = st.Blur(psf)(picture(n))
    return np.clip(y + np.random.default_rng(0).normal(0, 3, y.shape), 0, 255).round().astype(np.uint8)


def test_a_blur_by_name(run):
    y = blurred(st.gaussian_psf(1.2))
    Image.fromarray(y).save("in.png")
    code, out, err = run("restore", "in.png", "-o", "out.png", "--blur", "gaussian:1.2", *FAST)
    assert (code, err) == (0, "")
    expected = st.restore(y, st.Blur(st.gaussian_psf(1.2)), sigma=3.0, steps=2)
    assert np.array_equal(loaded("out.png"), expected)
    assert out.startswith("out.png: 38 x 38 uint8, ")
    assert "blur gaussian:1.2; noise σ = 3; 2 steps" in out
    assert "null space of A the error is unknown" in out
    run("restore", "in.png", "-o", "p.png", "--blur", "gaussian:1.2", "--periodic", *FAST)
    periodic = st.restore(y, st.Blur(st.gaussian_psf(1.2), "periodic"), sigma=3.0, steps=2)
    assert np.array_equal(loaded("p.png"), periodic)


def test_a_psf_in_a_file_is_scaled_and_said(run):
    import tifffile

    psf = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], np.uint16)
    y = blurred(psf / 16)
    Image.fromarray(y).save("in.png")
    tifffile.imwrite("psf.tif", psf)
    code, out, err = run("restore", "in.png", "-o", "out.tif", "--psf", "psf.tif", *FAST)
    assert code == 0
    assert err == "note: psf.tif sums to 16; it was divided by it, so that light is kept.\n"
    assert "blur of psf.tif" in out
    assert np.array_equal(tifffile.imread("out.tif"), st.restore(y, st.Blur(psf / 16), sigma=3.0, steps=2))


def test_a_volume_with_a_psf_of_pages(run):
    import tifffile

    psf = np.ones((3, 3, 3)) / 27
    volume = np.zeros((14, 20, 20))
    volume[4:9, 6:14, 6:14] = 100.0
    y = (st.Blur(psf)(volume) + np.random.default_rng(0).normal(0, 3, (12, 18, 18))).astype(np.float32)
    tifffile.imwrite("in.tif", y, photometric="minisblack")
    tifffile.imwrite("psf.tif", psf.astype(np.float32), photometric="minisblack")
    code, out, err = run("restore", "in.tif", "-o", "out.tif", "--psf", "psf.tif", "--volume", *FAST)
    assert (code, err) == (0, "")
    assert "12 x 18 x 18 float32" in out
    # The file holds the PSF in single precision, and rounding may choose other patches: noise of 3 is far above that.
    assert tifffile.imread("out.tif") == pytest.approx(st.restore(y, st.Blur(psf), sigma=3.0, steps=2), abs=0.3)
    # Without --volume, pages are pictures, and each takes a blur of two axes.
    code, out, _ = run("restore", "in.tif", "-o", "pages.tif", "--blur", "box:3", *FAST)
    assert code == 0
    assert "page 7 of 12" in out
    expected = st.restore(y[0], st.Blur(st.box_psf(3)), sigma=3.0, steps=2)
    assert tifffile.imread("pages.tif")[0] == pytest.approx(expected, abs=1e-3)


def test_gaps(run):
    rng = np.random.default_rng(0)
    known = rng.random((40, 40)) < 0.5
    clean = np.stack([picture(40), 200 - picture(40), 0.5 * picture(40)], axis=-1)
    y = np.clip(clean + rng.normal(0, 3, clean.shape), 0, 255).astype(np.uint8)
    Image.fromarray(y * known[..., None]).save("in.png")
    Image.fromarray(255 * known.astype(np.uint8)).save("mask.png")
    code, out, err = run("restore", "in.png", "-o", "out.png", "--mask", "mask.png", *FAST)
    assert (code, err) == (0, "")
    assert "gaps of mask.png" in out
    expected = st.restore(y, st.Mask(known), sigma=3.0, steps=2, channel_axis=-1)
    assert np.array_equal(loaded("out.png"), expected)


def test_enlarging_keeps_opacity(run):
    y = blurred(st.box_psf(2), 25)
    alpha = np.where(np.arange(24) < 12, 255, 0).astype(np.uint8) * np.ones((24, 1), np.uint8)
    Image.fromarray(np.stack([y, y // 2, y // 3, alpha], axis=-1)).save("in.png")
    code, out, err = run("restore", "in.png", "-o", "out.png", "--upscale", 2, *FAST)
    assert (code, err) == (0, "")
    assert "48 x 48 x 3 uint8" in out
    assert "enlarged 2 times" in out
    found = loaded("out.png")
    assert np.array_equal(found[..., 3], alpha.repeat(2, 0).repeat(2, 1))
    colours = np.stack([y, y // 2, y // 3], axis=-1)
    assert np.array_equal(found[..., :3], st.restore(colours, st.Downsample(2), sigma=3.0, steps=2, channel_axis=-1))
    # A blur before sampling.
    Image.fromarray(y).save("grey.png")
    assert run("restore", "grey.png", "-o", "g.png", "--upscale", 2, "--blur", "gaussian:1", *FAST)[0] == 0
    expected = st.restore(y, st.Downsample(2, st.gaussian_psf(1)), sigma=3.0, steps=2)
    assert np.array_equal(loaded("g.png"), expected)


def test_the_size_of_a_blur_is_found(run):
    rng = np.random.default_rng(1)
    clean = np.zeros((140, 140))
    for _ in range(4000):
        (top, left), (height, width) = rng.integers(0, 140, 2), (3 / rng.uniform(0.05, 1, 2)).astype(int)
        clean[top : top + height, left : left + width] = rng.uniform(0, 200)
    y = st.Blur(st.disk_psf(3))(clean)
    np.save("in.npy", y + rng.normal(0, 2, y.shape))
    code, out, err = run("restore", "in.npy", "-o", "out.npy", "--blur", "disk:auto", *FAST)
    assert (code, err) == (0, "")
    assert "blur disk:auto, found as 3 (plausible: 3 to 3)" in out
    np.save("small.npy", y[:10, :10])
    fails(run("restore", "small.npy", "-o", "o.npy", "--blur", "disk:auto"), "needs larger data than 10 x 10")


def test_json_report_and_types(run, tmp_path):
    y = blurred(st.box_psf(3))
    Image.fromarray(y).save("in.png")
    options = ("--blur", "box:3", "--steps", 2, "--json", "--report", "r.html", "--dtype", "float32")
    code, out, err = run("restore", "in.png", "-o", "out.tif", *options)
    assert (code, err) == (0, "")
    told = json.loads(out)
    found = st.Restorer(st.Blur(st.box_psf(3)), steps=2).run(y.astype(np.float32))
    assert told["predicted_mse_of_ax"] == pytest.approx(found.predicted_mse, rel=1e-6)
    assert (told["shape"], told["dtype"], told["steps"], told["parts"]) == ([46, 46], "float32", [2], 1)
    assert told["sigma"] == pytest.approx([found.sigma])
    assert told["verdict"] == found.verdict
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count("<tr") == 1 + 2
    assert page.count('class="chosen"') == 1
    assert found.verdict.replace("'", "&#x27;") in page
    assert page.count("data:image/png;base64,") == 2
    assert run("restore", "in.png", "-o", "q.png", "--blur", "box:3", "--quiet", *FAST) == (0, "", "")


def test_what_is_refused(run, tmp_path):
    Image.fromarray(blurred(st.box_psf(3))).save("in.png")
    Image.fromarray(np.zeros((5, 5), np.uint8)).save("dark.png")
    np.save("psf3.npy", np.ones((3, 3, 3)))
    np.savetxt("in.csv", np.arange(50.0), delimiter=",")
    before = sorted(tmp_path.iterdir())

    def refused(*argv, name="out.png"):
        return run("restore", *argv, "-o", name)

    fails(refused("in.png"), "what happened to the data?", "--psf", "--mask")
    fails(refused("in.png", "--blur", "gauss:1"), "--blur takes a name and a size", "'gauss:1'")
    fails(refused("in.png", "--blur", "disk"), "--blur takes a name and a size")
    fails(refused("in.png", "--blur", "disk:3:4"), "--blur takes a name and a size")
    fails(refused("in.png", "--blur", "box:2.5"), "positive whole number, got 2.5")
    fails(refused("in.png", "--blur", "gaussian:-1"), "positive number, got -1")
    fails(refused("in.png", "--blur", "disk:3", "--mask", "dark.png"), "--blur and --mask do not go together")
    fails(refused("in.png", "--blur", "disk:auto", "--upscale", 2), "Give the size as a number")
    fails(refused("in.png", "--mask", "dark.png", "--periodic"), "--periodic goes with a blur")
    fails(refused("in.png", "--mask", "dark.png"), "mask is False everywhere")
    fails(refused("in.png", "--psf", "dark.png"), "dark.png sums to 0")
    fails(refused("in.png", "--psf", "psf3.npy"), "psf3.npy holds float64 of shape (3, 3, 3)", "2 axes")
    fails(refused("in.png", "--psf", "gone.tif"), "gone.tif does not exist")
    fails(refused("in.png", "--blur", "disk:90"), "is larger than x")
    fails(refused("in.png", "--blur", "disk:2", "--sigma", "-3"), "--sigma must be a positive number")
    fails(refused("in.png", "--blur", "disk:2", "--method", "tv"), "unknown method 'tv'")
    fails(refused("in.png", "--blur", "disk:2", "--dtype", "int7"), "unknown --dtype 'int7'")
    fails(refused("in.png", "--blur", "disk:2", "--report", "r.txt"), "--report writes files that end in .html")
    fails(refused("in.csv", "--upscale", 2, name="out.csv"), "--upscale changes the size")
    fails(refused("in.png", "--blur", "disk:2", name="in.png"), "in.png")
    assert sorted(tmp_path.iterdir()) == before  # nothing is half written
