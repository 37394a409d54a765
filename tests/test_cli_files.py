"""The command line on many files, and what it prints: folders, processes, JSON, completion, being stopped."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from PIL import Image

import scorethresh as st
from helpers import fails, noisy_step
from scorethresh._rounding import plain, with_error
from scorethresh.cli.summary import grouped_notes

SIGMA = 12.0


@pytest.fixture
def folder(tmp_path):
    """Pictures in a folder and below it, hidden ones, and notes."""
    for k, name in enumerate(["a.png", "sub/a.png", "sub/deep/b.png", ".hidden.png", ".git/c.png"]):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noisy_step(seed=k)).save(path)
    (tmp_path / "in" / "notes.txt").write_text("12 pictures\n3 are dark\n")
    return tmp_path / "in"


FAST = ("--choose", "bands", "--method", "score", "--sigma", SIGMA)


def names(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())


def test_notes_beside_pictures_are_no_table(run, folder):
    code, out, err = run("denoise", "in", "-o", "out", *FAST)
    assert code == 0
    assert names(Path("out")) == ["a.png"]
    assert err == "note: in/notes.txt: a text beside other data, left out. Name it to denoise it.\n"
    assert "1 of 1 files" in out


def test_texts_among_themselves_are_tables(run, tmp_path):
    (tmp_path / "in").mkdir()
    for k in range(2):
        np.savetxt(tmp_path / "in" / f"{k}.txt", noisy_step((200,), k))
    assert run("denoise", "in", "-o", "out", *FAST)[0] == 0
    assert names(Path("out")) == ["0.txt", "1.txt"]


def test_recursion_keeps_places_and_leaves_results_out(run, folder):
    for _ in range(2):
        code, _, _ = run("denoise", "in", "-r", "-o", "in/out", "--force", *FAST)
        assert code == 0
        assert names(Path("in/out")) == ["a.png", "sub/a.png", "sub/deep/b.png"]
    np.testing.assert_array_equal(
        np.asarray(Image.open("in/out/sub/a.png")),
        st.denoise(noisy_step(seed=1), choose="bands", method="score", sigma=SIGMA),
    )


def test_processes_give_what_one_gives(run, folder):
    (folder / "broken.png").write_bytes(b"no picture")
    one = run("denoise", "in", "-r", "-o", "one", *FAST)
    two = run("denoise", "in", "-r", "-o", "two", "--jobs", 2, *FAST)
    assert one[0] == two[0] == 1
    assert names(Path("one")) == names(Path("two")) == ["a.png", "sub/a.png", "sub/deep/b.png"]
    for name in names(Path("one")):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    assert re.sub(r"[\d.]+ s\b", "", one[1]).replace("one", "two") == re.sub(r"[\d.]+ s\b", "", two[1])
    assert one[2] == two[2]
    assert "in/broken.png cannot be read as PNG" in two[2]


@pytest.mark.parametrize("output", ["new/", "new/deep/"])
def test_an_output_that_ends_like_a_folder_becomes_one(run, folder, output):
    assert run("denoise", "in/a.png", "-o", output, *FAST)[0] == 0
    assert Path(output, "a.png").exists()


def test_a_folder_that_is_made_in_vain_is_removed(run, folder):
    (folder / "broken.png").write_bytes(b"no picture")
    fails(run("denoise", "in/broken.png", "-o", "new/deep/", *FAST), "cannot be read")
    assert not Path("new").exists()
    Path("file").touch()
    fails(run("denoise", "in/a.png", "-o", "file/deep/", *FAST), "file/deep cannot be made")


def test_quiet_prints_errors_only(run, folder):
    assert run("denoise", "in/a.png", "-o", "b.png", "--quiet", *FAST) == (0, "", "")
    assert run("denoise", "in", "-o", "out", "-q", *FAST) == (0, "", "")
    fails(run("denoise", "in/a.png", "-o", "b.png", "--quiet", *FAST), "exists")


FIELDS = {
    "input": str,
    "output": str,
    "shape": list,
    "dtype": str,
    "axes": str,
    "parts": int,
    "sigma": list,
    "sigma_given": bool,
    "predicted_mse": float,
    "stderr": float,
    "noise_reduction": float,
    "predicted_psnr": float,
    "peak": float,
    "seconds": float,
    "said": list,
    "notes": list,
    "compared": list,
}


def test_json_has_the_documented_fields(run, folder):
    code, out, err = run("denoise", "in/a.png", "-o", "b.png", "--json", *FAST)
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert {name: type(value) for name, value in told.items()} == FIELDS
    found = st.Denoiser(choose="bands", method="score", sigma=SIGMA).run(noisy_step(seed=0))
    assert (told["shape"], told["sigma"], told["peak"]) == ([48, 64], [SIGMA], 255.0)
    assert (told["predicted_mse"], told["stderr"]) == pytest.approx((found.predicted_mse, found.stderr), rel=1e-12)
    assert told["noise_reduction"] == pytest.approx(SIGMA / found.predicted_mse**0.5)
    page = Path(__file__).parents[1] / "docs" / "cli.md"
    section = page.read_text().split("### JSON of denoise")[1].split("\n## ")[0]
    for field in FIELDS:
        assert f"`{field}`" in section


def test_json_of_many_files_is_a_list(run, folder):
    (folder / "broken.png").write_bytes(b"no picture")
    code, out, err = run("denoise", "in", "-o", "out", "--json", *FAST)
    told = json.loads(out)
    assert code == 1
    assert [one["input"] for one in told] == ["in/a.png", "broken.png"]
    assert "cannot be read" in told[1]["error"]
    assert err.count("\n") == 1


def test_a_peak_is_known_for_integers_only(run):
    for dtype, expected in (("uint8", 255.0), ("uint16", None), ("float32", None)):
        np.save("a.npy", noisy_step().astype(dtype))
        out = run("denoise", "a.npy", "-o", "b.npy", "--force", "--json", *FAST)[1]
        told = json.loads(out)
        if dtype == "uint16":
            expected = float(np.ptp(np.load("b.npy")))
        assert told["peak"] == expected
        assert (told["predicted_psnr"] is None) == (expected is None)


def test_counts_have_no_level(run):
    np.save("a.npy", np.random.default_rng(0).poisson(noisy_step() / 10.0))
    out = run("denoise", "a.npy", "-o", "b.npy", "--noise", "poisson", "--choose", "bands")[1]
    reduced = re.search(r"\n  noise reduced (\S+) times, from (\S+) in the mean to an error of (\S+) ± \S+\n", out)
    times, before, after = map(float, reduced.groups())
    assert times == pytest.approx(before / after, rel=0.1)
    assert "σ" not in out


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (643.2, 98.7, "640 ± 100"),
        (643.2, 94.0, "640 ± 90"),
        (45.512, 1.23, "45.5 ± 1.2"),
        (3.7, 0.02, "3.70 ± 0.02"),
        (0.9996, 0.00096, "0.9996 ± 0.0010"),
        (12.0, 200.0, "0 ± 200"),
        (1234567.0, 12.0, "1234567 ± 12"),
        (1.2e9, 3e7, "1.20e+09 ± 3e+07"),
        (1.23e-9, 2e-11, "1.23e-09 ± 2e-11"),
        (5.0, 0.0, "5"),
        (5.0, float("inf"), "5"),
    ],
)
def test_numbers_are_rounded_to_their_error(value, error, text):
    assert with_error(value, error) == text


def test_plain_numbers():
    assert [plain(v) for v in (0.0, 12.0, 20.52, 12345.6, 0.00001234, 1.5e7, float("inf"))] == [
        *("0", "12", "20.5", "12300", "1.23e-05", "1.5e+07", "inf"),
    ]


def test_notes_are_counted():
    told = [(f"{k}.png", f"{k}% are 0.") for k in range(10, 16)]
    assert list(grouped_notes(told)) == ["10.png, 11.png, 12.png and 3 more: 10% are 0."]


# the command itself


def command(*argv, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "scorethresh", *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_the_package_runs_as_a_module():
    out, err = command("--version").communicate()
    assert (out, err) == (f"scorethresh {st.__version__}\n", "")


def test_the_shell_completes_names_of_values():
    words = "scorethresh denoise --choose "
    env = os.environ | {"_SCORETHRESH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}
    out, _ = command(env=env).communicate()
    assert out.split() == ["blend", "fast", "bands", "global"]
    out, _ = command("--help").communicate()
    assert "--install-completion" in out


@pytest.mark.parametrize("name", ["denoise", "select", "compare", "demo", "paper"])
def test_help_names_no_type_of_a_flag(run, name):
    out = run(name, "--help")[1]
    assert "--help" in out
    assert not re.search(r"<(bool|str|path|int|float)>", out)
    assert "list[" not in out


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("options", [(), ("--series",), ("--jobs", "2")])
def test_being_stopped_takes_less_than_a_second(tmp_path, options):
    """Whatever is computed: the signal comes in the middle of it."""
    y = np.random.default_rng(0).normal(size=(900, 900, 60) if "--series" in options else (3000, 3000))
    count = 2 if "--jobs" in options else 1
    for k in range(count):
        np.save(tmp_path / f"{k}.npy", y.astype(np.float32))
    files = [f"{k}.npy" for k in range(count)]
    env = os.environ | {"OMP_NUM_THREADS": "2"}
    with command("denoise", *files, "-o", "out/", "--sigma", 1, *options, cwd=tmp_path, env=env) as process:
        time.sleep(3 if count == 1 else 6)
        assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        _, err = process.communicate(timeout=20)
        # A second, and what a busy machine adds.
        assert time.monotonic() - start < 3
    assert (process.returncode, err.splitlines()[-1]) == (130, "stopped")
    time.sleep(0.5)
    assert names(tmp_path) == sorted(files)
