"""The build of the compiled loops: which compiler, which platform, and what is said if it fails."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
hatch_build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hatch_build)

posix = pytest.mark.skipif(os.name != "posix", reason="only zig is looked for on Windows")


@pytest.mark.parametrize(
    ("found", "archflags", "machine", "tag"),
    [
        ("linux-x86_64", "", "x86_64", "linux_x86_64"),
        ("win-amd64", "", "AMD64", "win_amd64"),
        ("macosx-11.0-arm64", "", "arm64", "macosx_11_0_arm64"),
        ("macosx-10.13-universal2", "", "x86_64", "macosx_10_13_x86_64"),
        ("macosx-10.13-universal2", "", "arm64", "macosx_11_0_arm64"),  # pip knows no older system of this processor
        ("macosx-10.13-universal2", "-arch x86_64", "arm64", "macosx_10_13_x86_64"),
    ],
)
def test_wheels_are_tagged_for_what_was_compiled(monkeypatch, found, archflags, machine, tag):
    monkeypatch.setattr(sysconfig, "get_platform", lambda: found)
    monkeypatch.setattr(hatch_build.platform, "machine", lambda: machine)
    monkeypatch.setenv("ARCHFLAGS", archflags)
    assert hatch_build.platform_tag() == tag


@pytest.mark.parametrize(
    "tag", ["linux_x86_64", "linux_aarch64", "macosx_11_0_arm64", "win_amd64", "win_arm64", "win32"]
)
@pytest.mark.parametrize("compiler", [["cc"], [sys.executable, "-m", "ziglang", "cc"]])
def test_nothing_is_compiled_for_the_processor_at_hand(compiler, tag):
    """zig does so unless told otherwise. On x86-64, distributors may have changed the default of other compilers."""
    flags = hatch_build.target_flags(compiler, tag, 1)
    named = [flag for flag in flags if flag.startswith(("-march=", "-mcpu="))]
    x86_64 = tag in ("linux_x86_64", "win_amd64")
    if compiler == ["cc"]:
        assert named == ["-march=x86-64"] * x86_64
    else:
        assert named == ["-mcpu=x86_64" if x86_64 else "-mcpu=baseline"]


@posix
def test_the_compiler_is_cc_or_what_is_on_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "ccache clang")
    assert hatch_build.find_compiler() == ["ccache", "clang"]
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("clang", "gcc"):  # gcc goes first
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert hatch_build.find_compiler() == [str(tmp_path / name)]
    for name in ("clang", "gcc"):
        (tmp_path / name).unlink()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert hatch_build.find_compiler() is None
    with pytest.raises(SystemExit, match="needs a C compiler: install gcc or clang, set CC, or pip install ziglang"):
        hatch_build.build(tmp_path)


@posix
def test_a_compiler_that_fails_is_named(tmp_path):
    """In one line if it cannot run; the library that was there stays."""
    (tmp_path / "loops_1.so").touch()
    for compiler, words in {"no-such-cc": "cannot run the C compiler no-such-cc", "false": "not be compiled"}.items():
        command = [sys.executable, str(ROOT / "hatch_build.py"), str(tmp_path)]
        done = subprocess.run(command, env={**os.environ, "CC": compiler}, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["loops_1.so"]


@pytest.mark.slow
@pytest.mark.skipif(hatch_build.find_compiler() is None, reason="there is no compiler")
def test_compiling_leaves_no_other_library(tmp_path):
    """Such as that of a level or a processor for which an earlier build was made."""
    suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    (tmp_path / f"loops_9{suffix}").touch()
    built = hatch_build.build(tmp_path)
    assert built[0].name == f"loops_1{suffix}"
    assert {*tmp_path.iterdir()} == {*built}
