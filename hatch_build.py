"""Compiles the loops in src/scorethresh/_kernels when the package is built.

pip runs it through hatchling, for wheels and for editable installs. By hand:

    python hatch_build.py                               # beside their sources, as an editable install does
    python hatch_build.py --sanitize build/sanitize     # with checks of memory and of undefined behaviour

The compiler is $CC, else cc, gcc or clang. On Windows and where there is none, it is zig from the package `ziglang`,
which pip installs for the time of the build.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # run by hand
    BuildHookInterface = object  # type: ignore[assignment,misc]

KERNELS = Path("src/scorethresh/_kernels")
ZIG = "ziglang>=0.13"

# A loop may use fused products and need not set errno or floating-point flags. Sums keep their order.
FLAGS = ["-std=c11", "-shared", "-fvisibility=hidden", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]
FAST = ["-O3", "-DNDEBUG"]
SANITIZE = ["-O1", "-g", "-Wall", "-Wextra", "-Werror"]
SANITIZE += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
# One library per level of the processor; loader.py picks one. Only the first must compile.
LEVELS = {1: "x86-64", 3: "x86-64-v3", 4: "x86-64-v4"}


def find_compiler() -> list[str] | None:
    """Return the command of the C compiler, None if there is none."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    names = [] if os.name == "nt" else ["cc", "gcc", "clang"]
    found = next(filter(None, map(shutil.which, names)), None)
    if found:
        return [found]
    return [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else None


def platform_tag() -> str:
    """Return the platform for which is built, as in the name of a wheel."""
    tag = re.sub(r"[-.]", "_", sysconfig.get_platform())
    if not tag.startswith("macosx"):
        return tag
    # A Python for both processors builds for the one that it runs on, or that $ARCHFLAGS names.
    named = re.findall(r"-arch (\w+)", os.environ.get("ARCHFLAGS", ""))
    _, major, minor, machine = tag.split("_", 3)
    machine = named[0] if len(named) == 1 else platform.machine() if machine == "universal2" else machine
    # There is no older system for the newer processor.
    return f"macosx_11_0_{machine}" if machine == "arm64" and int(major) < 11 else f"macosx_{major}_{minor}_{machine}"


def target_flags(compiler: list[str], tag: str, level: int) -> list[str]:
    """Return the flags that make a compiler build for a platform, and for every processor of that level."""
    zig = "ziglang" in compiler
    flags = [] if tag.startswith("win") else ["-fPIC"]
    if tag.startswith("macosx"):
        _, major, minor, machine = tag.split("_", 3)
        flags += ["-arch", machine, f"-mmacosx-version-min={major}.{minor}"]
    windows = {"win_amd64": "x86_64", "win_arm64": "aarch64", "win32": "x86"}
    if zig and tag in windows:
        flags += ["-target", f"{windows[tag]}-windows-gnu"]
    if is_x86_64(tag):
        flags += ["-mcpu=" + LEVELS[level].replace("-", "_") if zig else f"-march={LEVELS[level]}"]
    elif zig:
        flags += ["-mcpu=baseline"]  # otherwise zig builds for the processor at hand
    return flags


def is_x86_64(tag: str) -> bool:
    """Tell whether a platform has 64-bit processors of Intel's kind."""
    return tag.endswith(("x86_64", "amd64"))


def build(folder: Path, *, sanitize: bool = False) -> list[Path]:
    """Compile the loops into a folder and return the libraries."""
    compiler, tag, root = find_compiler(), platform_tag(), Path(__file__).parent
    if compiler is None:
        msg = "scorethresh needs a C compiler: install gcc or clang, set CC, or pip install ziglang."
        raise SystemExit(msg)
    suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    sources = sorted(str(path) for path in (root / KERNELS).glob("*.c"))
    folder.mkdir(parents=True, exist_ok=True)
    built = []
    for level, machine in LEVELS.items():
        if level > 1 and (sanitize or not is_x86_64(tag)):
            break
        library = folder / f"loops_{level}{suffix}"
        flags = FLAGS + (SANITIZE if sanitize else FAST) + target_flags(compiler, tag, level)
        more = [shlex.split(os.environ.get(name, "")) for name in ("CFLAGS", "LDFLAGS")]
        partial = library.with_suffix(".partial")
        command = [*compiler, *flags, *more[0], *sources, "-o", str(partial), *more[1], "-lm"]
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True)
        except OSError as error:
            msg = f"scorethresh cannot run the C compiler {compiler[0]}: {error}."
            raise SystemExit(msg) from error
        if done.returncode == 0:
            partial.replace(library)  # whoever has loaded the old one keeps it
            built.append(library)
        elif level == 1:
            msg = f"scorethresh could not be compiled by {shlex.join(command)}\n{done.stderr}"
            raise SystemExit(msg)
        else:
            print(f"without loops for {machine}, which {compiler[0]} does not know", file=sys.stderr)
    for other in {*folder.glob(f"loops_*{suffix}")} - {*built}:
        other.unlink()
    return built


class KernelsHook(BuildHookInterface):
    """Adds the compiled loops to a wheel, which then serves every Python 3 on one platform."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for zig where there is no compiler."""
        return [] if find_compiler() else [ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into the source tree, where editable installs look."""
        built = build(Path(self.root, KERNELS))
        build_data["artifacts"] += [path.relative_to(self.root).as_posix() for path in built]
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def main() -> None:
    """Compile by hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent / KERNELS)
    parser.add_argument("--sanitize", action="store_true", help="check memory accesses and undefined behaviour")
    arguments = parser.parse_args()
    for path in build(arguments.folder, sanitize=arguments.sanitize):
        print(path)


if __name__ == "__main__":
    main()
