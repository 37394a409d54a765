"""The command line: what it writes, prints, refuses, and with which exit code."""

import io
import json
import os
import re
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from PIL import Image

import scorethresh as st
from helpers import fails, loaded, noisy_step
from scorethresh._rounding import with_error
from scorethresh.viz.report import write_report

SIGMA = 12.0
# On small arrays it is much faster than the default.
METHOD = "score"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(run):
    """The command line, with a method for thresholds that is fast on small arrays."""

    def fast(*argv):
        if argv[:1] == ("denoise",) and "--method" not in argv and len(argv) > 2:
            argv = ("denoise", "--method", METHOD, *argv[1:])
        return run(*argv)

    return fast


@pytest.fixture
def picture(here):
    Image.fromarray(noisy_step()).save(here / "in.png")
    return here / "in.png"


def coefficients():
    y = np.random.default_rng(0).normal(size=1000)
    y[:20] += 6.0
    return y


# denoise


def test_the_output_is_what_the_library_gives(run, picture):
    code, out, err = run("denoise", "in.png", "-o", "out.png", "--sigma", SIGMA)
    assert (code, err) == (0, "")
    expected = st.Denoiser(sigma=SIGMA, method=METHOD).run(noisy_step())
    np.testing.assert_array_equal(loaded("out.png"), expected.estimate)
    first, second, third, *said = out.splitlines()
    assert said == [f"  {expected.verdict}"]
    assert re.fullmatch(r"out\.png: 48 x 64 uint8, [\d.]+ s", first)
    rms = np.sqrt(expected.predicted_mse)
    times, error = f"{SIGMA / rms:.2g}", with_error(rms, expected.stderr / (2 * rms))
    assert second == f"  noise reduced {times} times, from σ = 12 (given) to an error of {error}"
    assert third == f"  predicted PSNR {expected.predicted_psnr():.1f} dB, for a range of 255"


def test_options_reach_the_denoiser(run, picture):
    options = ("--choose", "bands", "--wavelet", "db2", "--levels", 2, "--rule", "soft", "--method", "sure")
    assert run("denoise", "in.png", "-o", "out.npy", *options)[0] == 0
    expected = st.denoise(noisy_step(), choose="bands", wavelet="db2", levels=2, rule="soft", method="sure")
    np.testing.assert_array_equal(np.load("out.npy"), expected)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_strength_leaves_some_of_the_noise(run, here, dtype):
    """Against the definition, and the truth: noise and error of 48 x 64 entries vary by some percent."""
    clean = np.where(np.indices((48, 64))[-1] < 32, 60.0, 180.0)
    y = (clean + np.random.default_rng(5).normal(0, SIGMA, clean.shape)).round().astype(dtype)
    np.save("in.npy", y)
    code, out, _ = run("denoise", "in.npy", "-o", "out.npy", "--sigma", SIGMA, "--strength", 0.6, "--json")
    assert code == 0
    expected = 0.4 * y + 0.6 * st.denoise(y, sigma=SIGMA, method=METHOD).astype(float)
    mixed = np.load("out.npy")
    assert mixed.dtype == dtype
    np.testing.assert_allclose(mixed, expected, rtol=1e-6, atol=0.5 + 1e-4 if dtype == "uint8" else 0)
    told = json.loads(out)
    assert told["predicted_mse"] == pytest.approx(np.mean((mixed - clean) ** 2), rel=0.1)
    full = st.Denoiser(sigma=SIGMA, method=METHOD).run(y)
    assert told["stderr"] == pytest.approx(0.6 * full.stderr)
    fails(run("denoise", "in.npy", "-o", "no.npy", "--strength", 1.5), "--strength")


def test_colours_are_denoised_together_and_alpha_is_left_alone(run, here):
    values = np.stack([noisy_step(), noisy_step(seed=6), noisy_step(seed=7), noisy_step(seed=8)], axis=-1)
    Image.fromarray(values).save("in.png")
    assert run("denoise", "in.png", "-o", "out.png")[0] == 0
    out = loaded("out.png")
    np.testing.assert_array_equal(out[..., 3], values[..., 3])
    np.testing.assert_array_equal(out[..., :3], st.denoise(values[..., :3], channel_axis=-1, method=METHOD))


@pytest.mark.parametrize("name", ["in.png", "in.npy", "in.tif"])
def test_equal_channels_are_denoised_as_one(run, here, name):
    """Their noise is the same: taken for independent, most of it would stay."""
    grey = noisy_step()
    axis = 0 if name == "in.npy" else -1
    values = np.stack([grey] * 3, axis=axis)
    how = ["--channel-axis", axis] if name == "in.npy" else []
    if name == "in.png":
        Image.fromarray(values).save(name)
    elif name == "in.npy":
        np.save(name, values)
    else:
        import tifffile

        tifffile.imwrite(name, np.stack([values] * 2), photometric="rgb")
    code, out, _ = run("denoise", name, "-o", "out.npy", "--sigma", SIGMA, *how)
    assert code == 0
    assert "48 x 64 uint8" in out
    expected = np.stack([st.denoise(grey, sigma=SIGMA, method=METHOD)] * 3, axis=axis)
    np.testing.assert_array_equal(np.load("out.npy"), expected if name != "in.tif" else np.stack([expected] * 2))


def test_predictions_that_cannot_be_right_are_told(run, here):
    np.save("in.npy", np.clip(noisy_step(), 60, 180))
    code, _, err = run("denoise", "in.npy", "-o", "out.npy", "--sigma", SIGMA)
    assert code == 0
    assert "of the entries are 60 or 180" in err
    assert err.startswith("note: ")
    np.save("in.npy", np.random.default_rng(0).normal(size=(64, 64)))
    code, out, err = run("denoise", "in.npy", "-o", "low.npy", "--sigma", 2, "--choose", "bands")
    assert (code, err.count("\n")) == (0, 1)
    assert "note: The noise level is too high" in err
    assert "to an error of" in out


def test_a_float_dtype_is_not_rounded_and_an_integer_one_is(run, picture):
    assert run("denoise", "in.png", "-o", "out.npy", "--dtype", "float32")[0] == 0
    values = np.load("out.npy")
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, st.denoise(noisy_step().astype(np.float32), method=METHOD))
    assert run("denoise", "out.npy", "-o", "out.png", "--dtype", "uint16", "--sigma", 1)[0] == 0
    assert loaded("out.png").dtype == np.uint16


@pytest.mark.slow
def test_pages_one_by_one_or_as_a_volume(run, here):
    import tifffile

    stack = np.stack([noisy_step((32, 32), seed) for seed in range(4)])
    tifffile.imwrite("in.tif", stack, photometric="minisblack")
    code, out, _ = run("denoise", "in.tif", "-o", "out.tif", "--sigma", SIGMA)
    assert code == 0
    pages = [st.Denoiser(sigma=SIGMA, method=METHOD).run(page) for page in stack]
    np.testing.assert_array_equal(tifffile.imread("out.tif"), [page.estimate for page in pages])
    # The mean of independent errors.
    mse = np.mean([page.predicted_mse for page in pages])
    stderr = np.sqrt(np.sum([page.stderr**2 for page in pages])) / len(pages)
    assert f"to an error of {with_error(np.sqrt(mse), stderr / (2 * np.sqrt(mse)))}" in out
    assert out.startswith("in.tif: 4 pages, each a picture of 32 x 32 denoised by itself; if they are a volume: --axes")
    assert run("denoise", "in.tif", "-o", "volume.tif", "--volume", "--sigma", SIGMA)[0] == 0
    np.testing.assert_array_equal(tifffile.imread("volume.tif"), st.denoise(stack, sigma=SIGMA, method=METHOD))


@pytest.mark.slow
def test_sound_and_tables(run, here):
    import soundfile

    rng = np.random.default_rng(0)
    tone = 0.5 * np.sin(np.arange(4000) / 20)
    sound = np.stack([tone, -tone], axis=1) + rng.normal(0, 0.05, (4000, 2))
    soundfile.write("in.wav", sound, 8000, subtype="PCM_24")
    assert run("denoise", "in.wav", "-o", "out.wav", "--sigma", 0.05)[0] == 0
    out, rate = soundfile.read("out.wav")
    assert (rate, soundfile.info("out.wav").subtype) == (8000, "PCM_24")
    assert np.mean((out[:, 0] - tone) ** 2) < 0.2 * 0.05**2
    lines = ["t;a;b", *(f"{k};{x:.6f};{y:.6f}" for k, (x, y) in enumerate(sound))]
    (here / "in.csv").write_text("\n".join(lines))
    fails(run("denoise", "in.csv", "-o", "out.csv"), "columns t, a, b", "--column")
    assert run("denoise", "in.csv", "-o", "out.csv", "--column", "a", "--column", "3")[0] == 0
    table = np.loadtxt("out.csv", delimiter=";", skiprows=1)
    np.testing.assert_array_equal(table[:, 0], np.arange(4000))
    assert np.mean((table[:, 2] + tone) ** 2) < 0.2 * 0.05**2


def test_nothing_is_replaced_without_force(run, picture):
    before = picture.read_bytes()
    fails(run("denoise", "in.png", "-o", "in.png"), "in.png exists", "--force")
    assert picture.read_bytes() == before
    assert run("denoise", "in.png", "-o", "in.png", "--force")[0] == 0
    assert picture.read_bytes() != before


def test_an_existing_folder_takes_the_name_of_the_input(run, picture):
    (picture.parent / "out").mkdir()
    assert run("denoise", "in.png", "-o", "out")[0] == 0
    assert (picture.parent / "out" / "in.png").exists()


@pytest.mark.slow
def test_compare_tables_all_ways_and_writes_the_chosen_one(run, picture):
    code, out, _ = run("denoise", "in.png", "-o", "out.npy", "--compare", "--choose", "bands", "--sigma", SIGMA)
    assert code == 0
    for choose in ("blend", "bands", "global"):
        assert (
            f"{st.Denoiser(sigma=SIGMA, choose=choose, method=METHOD).run(noisy_step()).predicted_psnr():.2f} dB" in out
        )
    np.testing.assert_array_equal(
        np.load("out.npy"), st.denoise(noisy_step(), sigma=SIGMA, choose="bands", method=METHOD)
    )


# the report


def without_date(text):
    return re.sub(r"scorethresh, \d{4}-\d\d-\d\d \d\d:\d\d", "", text)


def page_of(y, name, part_names=(), **options):
    """Return the report that the library writes about y, or about all parts of a stack."""
    denoiser = st.Denoiser(sigma=SIGMA, method=METHOD, **options)
    found = [denoiser.run(part) for part in y] if part_names else denoiser.run(y)
    write_report("expected.html", y, denoiser, found, name=name, part_names=part_names)
    text = Path("expected.html").read_text()
    Path("expected.html").unlink()
    return without_date(text)


@pytest.mark.slow
def test_the_report_is_about_data_denoiser_and_result(run, picture):
    code, out, err = run("denoise", "in.png", "-o", "out.png", "--report", "page.html", "--sigma", SIGMA)
    assert (code, err, out.count("\n")) == (0, "", 4)
    assert without_date(Path("page.html").read_text()) == page_of(noisy_step(), "in.png")
    fails(run("denoise", "in.png", "-o", "b.png", "--report", "page.html"), "page.html exists")
    assert sorted(p.name for p in picture.parent.iterdir()) == ["in.png", "out.png", "page.html"]


@pytest.mark.slow
def test_the_report_on_a_stack_is_about_its_pages(run, here):
    import tifffile

    stack = np.stack([noisy_step((32, 40), seed) for seed in range(3)])
    tifffile.imwrite("in.tif", stack, photometric="minisblack")
    code, _, err = run("denoise", "in.tif", "-o", "out.tif", "--report", "page.html", "--sigma", SIGMA)
    assert (code, err) == (0, "")
    names = [f"page {k} of 3" for k in (1, 2, 3)]
    assert without_date(Path("page.html").read_text()) == page_of(list(stack), "in.tif", names)


@pytest.mark.slow
def test_the_report_on_a_series_of_volumes_is_about_all(run, here):
    nibabel = pytest.importorskip("nibabel")
    series = np.stack([noisy_step((20, 20, 20), seed).astype(np.float32) for seed in range(3)], axis=-1)
    nibabel.Nifti1Image(series, np.eye(4)).to_filename("in.nii")
    code, _, err = run("denoise", "in.nii", "-o", "out.nii", "--report", "page.html", "--sigma", SIGMA)
    assert (code, err) == (0, "")
    names = [f"volume {k} of 3" for k in (1, 2, 3)]
    assert without_date(Path("page.html").read_text()) == page_of(list(np.moveaxis(series, -1, 0)), "in.nii", names)


@pytest.mark.slow
def test_the_report_on_columns_is_about_all(run, here):
    columns = noisy_step((400, 2)).astype(float)
    np.savetxt("in.csv", columns, delimiter=",", header="a,b", comments="", fmt="%g")
    argv = ("denoise", "in.csv", "-o", "out.csv", "--column", "a", "--column", "b", "--sigma", SIGMA)
    code, _, err = run(*argv, "--report", "page.html")
    assert (code, err) == (0, "")
    names = ["column 1 of 2", "column 2 of 2"]
    assert without_date(Path("page.html").read_text()) == page_of(list(columns.T), "in.csv", names)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder where nobody can create files")
def test_a_report_that_cannot_be_written_is_told_before_the_output_is_written(run, picture):
    fails(run("denoise", "in.png", "-o", "out.png", "--report", "/proc/r.html"), "/proc/r.html cannot be written")
    fails(run("denoise", "in.png", "-o", "/proc/out.png"), "/proc/out.png cannot be written")
    assert [p.name for p in picture.parent.iterdir()] == ["in.png"]


def test_a_report_that_fails_late_is_told_with_what_is_written(run, picture, monkeypatch):
    """The disk is full by then, say."""
    from scorethresh.viz import report

    def fail(*_, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "report_page", fail)
    code, out, err = run("denoise", "in.png", "-o", "out.png", "--report", "page.html", "--sigma", SIGMA)
    assert code == 1
    assert out.startswith("out.png: 48 x 64 uint8")
    assert err.startswith("error: out.png is written, but the report is not: page.html cannot be written (No space")
    assert sorted(p.name for p in picture.parent.iterdir()) == ["in.png", "out.png"]


# many files


@pytest.fixture
def folder(here):
    (here / "in").mkdir()
    for k in range(3):
        Image.fromarray(noisy_step((32, 32), k)).save(here / "in" / f"{k}.png")
    (here / "in" / "notes.md").write_text("not a picture")
    return here / "in"


@pytest.mark.parametrize("inputs", [["in"], ["in/*.png"], ["in/0.png", "in/1.png", "in/2.png"]])
def test_a_folder_a_pattern_or_several_files_fill_a_folder(run, folder, inputs):
    code, out, err = run("denoise", *inputs, "-o", "made/out")
    assert (code, err) == (0, "")
    assert sorted(p.name for p in (folder.parent / "made" / "out").iterdir()) == ["0.png", "1.png", "2.png"]
    assert "3 of 3 files denoised into made/out" in out
    assert "32 x 32 uint8" in out


def test_a_file_that_fails_is_told_and_the_others_go_on(run, folder):
    (folder / "1.png").write_bytes(b"not a picture")
    (folder / "x.png").mkdir()
    code, out, err = run("denoise", "in", "-o", "out")
    assert code == 1
    assert err.count("\n") == 2
    assert err.startswith("error: in/1.png cannot be read as PNG")
    assert "in/x.png is a folder" in err
    assert "2 of 4 files denoised" in out
    assert out.count("failed") == 2
    code, _, err = run("denoise", "in/0.png", "in/2.png", "missing.png", "-o", "out")
    assert code == 1
    assert err.count("exists") == 2
    assert "missing.png does not exist" in err


def test_many_files_need_a_folder_and_names_of_their_own(run, folder):
    (folder.parent / "file.png").touch()
    fails(run("denoise", "in", "-o", "file.png"), "Name a folder")
    fails(run("denoise", "in/0*.png", "-o", "new.png"), "0.png", "Name a folder")
    fails(run("denoise", "in/0.png", "in/0.png", "-o", "out"), "two inputs are named 0.png")
    fails(run("denoise", "in", "-o", "out", "--report", "a.html"), "--report goes with one file, got 3")
    fails(run("denoise", "in/*.tif", "-o", "out"), "no file matches in/*.tif")
    (folder.parent / "empty").mkdir()
    fails(run("denoise", "empty", "-o", "out"), "nothing to denoise in empty")
    assert not (folder.parent / "out").exists()


# select and compare

FIELDS = {
    "file": str,
    "size": int,
    "sigma": float,
    "rule": str,
    "method": str,
    "threshold": float,
    "risk": float,
    "stderr": float,
    "dof": float,
    "kept": int,
    "status": str,
    "remedy": str,
}


def test_json_has_the_documented_fields(run, here):
    np.save("y.npy", coefficients())
    code, out, err = run("select", "y.npy", "--sigma", 1, "--json", "--method", "score")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert {name: type(value) for name, value in told.items()} == FIELDS
    expected = st.select_threshold(coefficients(), sigma=1.0, method="score")
    assert (told["threshold"], told["risk"], told["dof"]) == (expected.threshold, expected.risk, expected.dof)
    assert told["kept"] == np.count_nonzero(expected.estimate)
    assert told["status"] == "interior"


def test_complex_entries_are_counted_once(run, here):
    y = coefficients()
    np.save("y.npy", y + 1j * np.roll(y, 1))
    told = json.loads(run("select", "y.npy", "--sigma", 1, "--json")[1])
    assert told["size"] == y.size
    assert f"of {y.size} entries" in run("select", "y.npy", "--sigma", 1)[1]


def test_json_knows_no_infinity(run, here):
    np.save("y.npy", 0.01 * coefficients())
    told = json.loads(run("select", "y.npy", "--sigma", 1, "--json")[1], parse_constant=pytest.fail)
    assert told["status"] == "kills all"
    assert told["kept"] == 0


def test_select_tells_threshold_risk_dof_and_status(run, here):
    np.save("y.npy", coefficients())
    code, out, _ = run("select", "y.npy", "--sigma", 1)
    assert code == 0
    assert "3.46875 (interior)" in out
    assert "40.758" in out
    assert "30.895" in out
    assert "Check that sigma" in run("select", "y.npy", "--sigma", 100)[1]


def test_sigma_auto_is_the_median(run, here):
    np.save("y.npy", coefficients())
    told = json.loads(run("select", "y.npy", "--sigma", "auto", "--json")[1])
    assert told["sigma"] == st.estimate_sigma(coefficients())


def npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


TEXTS = {
    "npy": npy(np.array([[1.0, 5.0], [-2.0, 0.5]])),
    "lines": b"1\n5\n-2\n0.5\n",
    "ragged": b" 1.0   5.0  -2\n 0.5\n",
    "commas": b"1,5,-2,0.5",
    "rows": b"1;5\n-2;0.5\n",
    "titled": b"name,value\na,1\nb,5\nc,-2\nd,0.5\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_standard_input(run, monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(TEXTS[name])))
    told = json.loads(run("select", "-", "--sigma", 1, "--json")[1])
    expected = st.select_threshold(np.array([1.0, 5.0, -2.0, 0.5]), sigma=1.0)
    assert (told["file"], told["size"], told["threshold"]) == ("-", 4, expected.threshold)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", ["empty"]),
        (b"hello", ["no numbers"]),
        (b"a,b\n1,2\n", ["columns a, b", "--column"]),
        (b"1,2,3\n4,5\n", ["columns 1, 2, 3", "--column"]),
        (b"1\nnan\n", ["1 NaN or infinite entries of 2"]),
        (b"\x93NUMPY", ["error"]),
    ],
)
def test_bad_standard_input(run, monkeypatch, raw, words):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(raw)))
    fails(run("select", "-", "--sigma", 1), *words)


def test_compare_lists_every_method_that_treats_the_rule(run, here):
    np.save("y.npy", coefficients())
    expected = st.compare(coefficients(), sigma=1.0)
    code, out, _ = run("compare", "y.npy", "--sigma", 1)
    assert code == 0
    for name, selection in expected.items():
        assert name in out
        assert f"{selection.threshold:.6g}" in out
    told = json.loads(run("compare", "y.npy", "--sigma", 1, "--json")[1])
    assert [one["method"] for one in told] == list(expected)
    assert all(set(one) == set(FIELDS) for one in told)


def test_the_plot_shows_the_risk_and_the_histogram(run, here, monkeypatch):
    from scorethresh.viz import plot

    drawn = []
    for name in ("plot_risk", "plot_selection"):
        real = getattr(plot, name)
        monkeypatch.setattr(plot, name, lambda shown, ax, real=real: drawn.append(real(shown, ax=ax)))
    np.save("y.npy", coefficients())
    assert run("select", "y.npy", "--sigma", 1, "--plot", "out.png")[0] == 0
    assert [ax.get_ylabel() for ax in drawn] == ["risk per entry, in units of σ²", "entries per σ"]
    assert loaded("out.png").shape[0] > 100
    fails(run("select", "y.npy", "--sigma", 1, "--plot", "out.png"), "out.png exists")
    fails(run("select", "y.npy", "--sigma", 1, "--plot", "out.xyz"), "--plot", ".png or .pdf or .svg", "out.xyz")
    assert sorted(p.name for p in here.iterdir()) == ["out.png", "y.npy"]


# errors


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["denoise"], ["Missing argument", "INPUT", "scorethresh denoise --help"]),
        (["denoise", "in.png"], ["Missing option", "--output"]),
        (["denoise", "in.png", "-o", "out.png", "--sigm", "3"], ["No such option", "--sigma"]),
        (["denoise", "in.png", "-o", "out.png", "--sigma", "x"], ["--sigma", "x"]),
        (
            ["denoise", "in.png", "-o", "out.png", "--sigma", "-1"],
            ["--sigma must be a positive number, got '-1'", "auto"],
        ),
        (["denoise", "in.png", "-o", "out.png", "--choose", "blnd"], ["'blnd'", "Did you mean 'blend'?"]),
        (["denoise", "in.png", "-o", "out.png", "--rule", "soft"], ["--choose bands"]),
        (["denoise", "in.png", "-o", "out.png", "--dtype", "int"], ["--dtype 'int'", "uint8"]),
        (
            ["denoise", "in.png", "-o", "out.png", "--wavelet", "x"],
            ["unknown wavelet 'x'", "wavelist(kind='discrete')"],
        ),
        (["denoise", "in.png", "-o", "out"], ["out tells no format"]),
        (["denoise", "in.png", "-o", "out.wav"], ["PNG data cannot be written as WAV"]),
        (["denoise", "in.png", "-o", "out.png", "--column", "a"], ["has no columns"]),
        (["denoise", "in.png", "-o", "out.png", "--volume"], ["has no pages", "--volume"]),
        (["denoise", "in.png", "-o", "out.png", "--levels", "0"], ["--levels", "equal to 1"]),
        (["denoise", "in.png", "-o", "out.png", "--report", "page.png"], ["--report", ".html"]),
        (["denoise", "no.png", "-o", "out.png"], ["no.png does not exist"]),
        (["denoise", "in.png", "-o", "no/out.png"], ["no folder no"]),
        (["select", "no.npy"], ["no.npy does not exist"]),
        (["select", "in.png"], ["--sigma", "is missing", "--sigma auto"]),
        (["select", "in.png", "--sigma", "0"], ["--sigma must be a positive number, got '0'"]),
        (["select", "in.png", "--sigma", "1", "--method", "scor"], ["Did you mean 'score'?"]),
        (["paper"], ["repository"]),
        (["nonsense"], ["nonsense", "scorethresh --help"]),
    ],
)
def test_wrong_arguments_are_one_line_with_a_remedy(run, picture, argv, words):
    fails(run(*argv), *words)
    assert [p.name for p in picture.parent.iterdir()] == ["in.png"]


def test_a_name_with_a_dash_in_front(run, picture):
    picture.rename(picture.parent / "-x.png")
    fails(run("denoise", "-x.png", "-o", "out.png"), "./-x.png")
    assert run("denoise", "./-x.png", "-o", "./-y.png")[0] == 0
    assert run("denoise", "-o", "out.png", "--", "-x.png")[0] == 0


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a" * 9])
def test_hostile_files_leave_nothing_behind(run, here, content):
    (here / "in.png").write_bytes(content)
    fails(run("denoise", "in.png", "-o", "out.png"), "in.png cannot be read as PNG")
    assert [p.name for p in here.iterdir()] == ["in.png"]


def test_a_directory_named_png(run, here):
    (here / "in.png").mkdir()
    fails(run("denoise", "in.png", "-o", "out.png"), "in.png is a folder")


def test_debug_shows_where(run, here):
    with pytest.raises(ValueError, match="does not exist"):
        run("denoise", "no.png", "-o", "out.png", "--debug")


@pytest.mark.parametrize(("module", "extra"), [("soundfile", "'.[cli]' in a checkout"), ("nibabel", "nibabel")])
def test_a_missing_library_names_the_remedy(run, here, monkeypatch, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    name = {"soundfile": "in.wav", "nibabel": "in.nii"}[module]
    (here / name).write_bytes(b"RIFF")
    fails(run("denoise", name, "-o", f"out-{name}"), f"{module} is not installed", f"pip install {extra}")


def test_a_bug_is_told_as_such(run, picture, monkeypatch):
    monkeypatch.setattr(st.Denoiser, "run", lambda *_: {}["what"])
    fails(run("denoise", "in.png", "-o", "out.png"), "unexpected KeyError", "--debug")


def test_a_bug_in_one_file_does_not_stop_the_others(run, folder, monkeypatch):
    original = st.Denoiser.run
    monkeypatch.setattr(st.Denoiser, "run", lambda self, y: original(self, y) if y[0, 0] != 7 else {}["what"])
    values = noisy_step((32, 32))
    values[0, 0] = 7
    Image.fromarray(values).save(folder / "1.png")
    code, out, err = run("denoise", "in", "-o", "out")
    assert code == 1
    assert "2 of 3" in out
    assert err.startswith("error: in/1.png: ")


# The first clears the screen, moves to the next line and writes from right to left; the second is no Unicode.
HOSTILE = ["a\n\x1b[2J\u202eb", "a\x1b[2Jb\udcff"]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
@pytest.mark.parametrize(
    "argv",
    [
        "denoise @.png -o out.png --sigma 12",
        "denoise @.jpg -o out.png",
        "denoise in.png -o @.npy --sigma 12",
        "denoise in.png -o out.png --report @.htm",
        "denoise @.tif -o out.tif --report @.html --sigma 12",
        "denoise @.png in.png -o @",
        "denoise @.png @.png -o out",
        "denoise in.png -o out.png --@",
        "denoise in.png -o out.png --levels @",
        "denoise in.png -o out.png --sigma @",
        "denoise @*.jpg -o out",
        "denoise in.csv -o out.csv --column @",
        "denoise in.csv -o out.csv",
        "select @.npy --sigma 1 --json",
        "select @.npy --sigma 1 --plot @.xyz",
        "demo -o no/@.png",
        "@",
    ],
)
@pytest.mark.slow
def test_names_that_hold_anything_do_not_reach_the_terminal(run, picture, argv, name):
    import tifffile

    (picture.parent / f"{name}.png").write_bytes(picture.read_bytes())
    (picture.parent / f"{name}.htm").touch()
    tifffile.imwrite(f"{name}.tif", np.stack([noisy_step((32, 32))] * 2), photometric="minisblack")
    np.save(f"{name}.npy", coefficients())
    Path("in.csv").write_bytes(b"\x1b[2J,b\n1,2\n")
    _, out, err = run(*(word.replace("@", name) for word in argv.split()))
    assert out + err
    for char in "\x1b\u202e\udcff":
        assert char not in out + err
    assert all(line.startswith(("error: ", "note: ")) for line in err.splitlines())


def test_being_stopped_leaves_nothing_behind(run, picture, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(st.Denoiser, "run", stop)
    assert run("denoise", "in.png", "-o", "out.png")[0] == 130
    assert [p.name for p in picture.parent.iterdir()] == ["in.png"]


# the rest


def test_help_and_version(run):
    code, out, err = run("--version")
    assert (code, out, err) == (0, f"scorethresh {st.__version__}\n", "")
    for argv in ([], ["--help"], ["denoise", "--help"], ["-h"]):
        code, out, err = run(*argv)
        assert (code, err) == (0, "")
        assert "Usage" in out


@pytest.mark.slow
def test_demo_predicts_well_and_saves_a_picture(run, here):
    code, out, _ = run("demo")
    assert code == 0
    lines = [line.split() for line in out.splitlines() if "predicted" in line]
    assert len(lines) == 2
    for words in lines:
        predicted, stderr, true = (float(words[words.index(before) + 1]) for before in ("after", "±", "predicted,"))
        assert abs(predicted - true) < 3 * stderr < true
    assert loaded("scorethresh-demo.png").shape[0] > 500
    fails(run("demo"), "scorethresh-demo.png exists")


def test_paper_runs_the_scripts_of_a_checkout_and_leaves_this_process_alone(run, here):
    scripts = here / "papers" / "score2013"
    scripts.mkdir(parents=True)
    for name in ("fig_risk", "theorem", "bandwidth"):
        (scripts / f"{name}.py").write_text("import sys\nprint(__spec__.name, *sys.argv[1:])\n")
    before = list(sys.path), {name for name in sys.modules if name.startswith("papers")}
    code, out, err = run("paper", "-o", "there")
    assert (code, err) == (0, "")
    names = [f"papers.score2013.{name}" for name in ("fig_risk", "theorem", "bandwidth")]
    assert out.splitlines() == [f"{name} --out there" for name in names]
    assert (list(sys.path), {name for name in sys.modules if name.startswith("papers")}) == before
    (scripts / "theorem.py").write_text("raise SystemExit(3)")
    code, _, err = run("paper")
    assert (code, err.count("\n")) == (1, 1)
    assert "papers/score2013/theorem.py failed with exit code 3" in err


def test_the_command_itself(picture):
    """The real entry point, in a process of its own; and without typer."""
    code = "import sys; from scorethresh.cli import main; sys.exit(main())"
    argv = [sys.executable, "-c", code, "denoise", "in.png", "-o", "out.png", "--method", METHOD, "--sigma", str(SIGMA)]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    first, again = (subprocess.run(argv, capture_output=True, text=True, check=False, env=ascii_only) for _ in range(2))
    assert (first.returncode, first.stderr) == (0, "")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == "error: out.png exists. Choose another name, or replace it with --force.\n"
    without = [sys.executable, "-c", f"import sys; sys.modules['typer'] = None; {code[12:]}"]
    bare = subprocess.run(without, capture_output=True, text=True, check=False)
    assert (bare.returncode, bare.stdout) == (2, "")
    assert "pip install '.[cli]' in a checkout" in bare.stderr
    assert "Traceback" not in bare.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.slow
def test_closed_standard_streams(picture, closed):
    command = f'exec "$0" -m scorethresh.cli "$@" {closed}'
    argv = ["sh", "-c", command, sys.executable, "denoise", "--method", METHOD, "--sigma", str(SIGMA)]
    done = subprocess.run([*argv, "in.png", "-o", "out.png"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_array_equal(loaded("out.png"), st.denoise(noisy_step(), sigma=SIGMA, method=METHOD))
    again = subprocess.run([*argv, "in.png", "-o", "out.png"], capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.startswith("" if "2>" in closed else "error: out.png exists")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.slow
def test_standard_output_that_is_full(picture, unbuffered):
    argv = ["denoise", "in.png", "-o", "out.png", "--method", METHOD, "--sigma", str(SIGMA)]
    with open("/dev/full", "w") as full:
        done = run_itself(argv, full, unbuffered)
    assert done.returncode == 1
    assert done.stderr.startswith("error: standard output cannot be written (No space left on device)")
    assert done.stderr.count("\n") == 1
    assert loaded("out.png").shape == (48, 64)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_enough_is_no_error(here, unbuffered):
    np.save("y.npy", coefficients())
    read, write = os.pipe()
    os.close(read)
    done = run_itself(["select", "y.npy", "--sigma", "1", "--method", METHOD], write, unbuffered)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def run_itself(argv, stdout, unbuffered):
    """Run the command in a process of its own; a text is written when it is printed, or at the end."""
    command = [sys.executable, "-m", "scorethresh.cli", *argv]
    env = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, env=env)


def test_warnings_for_users_are_notes_and_others_are_dropped(run, folder, monkeypatch):
    original = st.Denoiser.run

    def warn(self, y):
        for _ in range(2):
            warnings.warn("the noise is\ncorrelated", UserWarning, stacklevel=1)
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        warnings.warn("soon", DeprecationWarning, stacklevel=1)
        return original(self, y)

    monkeypatch.setattr(st.Denoiser, "run", warn)
    code, _, err = run("denoise", "in/0.png", "-o", "out.png", "--sigma", SIGMA)
    assert (code, err) == (0, "note: the noise is correlated\n")
    code, _, err = run("denoise", "in", "-o", "out", "--sigma", SIGMA)
    assert (code, err) == (0, "note: in/0.png, in/1.png, in/2.png: the noise is correlated\n")


def test_many_different_warnings_are_counted(run, picture, monkeypatch):
    original = st.Denoiser.run

    def warn(self, y):
        for k in range(50):
            warnings.warn(f"page {k}", UserWarning, stacklevel=1)
        return original(self, y)

    monkeypatch.setattr(st.Denoiser, "run", warn)
    err = run("denoise", "in.png", "-o", "out.png", "--sigma", SIGMA)[2]
    assert err.splitlines() == [*(f"note: page {k}" for k in range(5)), "note: and 45 more of this kind."]


def test_one_wide_line_of_a_table_gives_a_short_error(run, here):
    (here / "in.csv").write_text(",".join(map(str, range(100_000))))
    wide = run("denoise", "in.csv", "-o", "out.csv")
    fails(wide, "columns 1, 2, 3", "... (100000 in all)", "--column")
    assert len(wide[2]) < 300
    fails(run("denoise", "in.csv", "-o", "out.csv", "--column", "x"), "no column 'x'", "(100000 in all)")


@pytest.mark.parametrize("dtype", ["uint16", "int16", "int32", "float32"])
@pytest.mark.slow
def test_dtype_of_the_output_warns_of_nothing(here, dtype):
    """In a process of its own, whose standard error shows every warning that gets out."""
    Image.fromarray(noisy_step()).save("in.png")
    argv = ["denoise", "in.png", "-o", "out.npy", "--dtype", dtype, "--method", METHOD, "--sigma", str(SIGMA)]
    command = [sys.executable, "-W", "always", "-m", "scorethresh.cli", *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    expected = st.denoise(
        noisy_step().astype(dtype) if dtype == "float32" else noisy_step(), sigma=SIGMA, method=METHOD
    )
    np.testing.assert_array_equal(np.load("out.npy"), expected.astype(dtype))


@pytest.mark.parametrize("command", ["denoise", "restore", "view", "select", "compare", "demo", "paper"])
def test_every_option_and_every_field_is_documented(run, command):
    page = Path(__file__).parents[1] / "docs" / "cli.md"
    if not page.exists():
        pytest.skip("no documentation beside the tests")
    text = page.read_text()
    assert f"\n## {command}\n" in text
    section = text.split(f"\n## {command}\n")[1].split("\n## ")[0]
    hidden = {"--help"} | ({"--output", "--force"} if command in ("demo", "paper") else set())
    for option in set(re.findall(r"--[a-z-]+", run(command, "--help")[1])) - hidden:
        assert option in section
    if command == "select":
        for field in FIELDS:
            assert f"`{field}`" in section
