"""The package as a whole: what importing it costs, and which way its imports go."""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import scorethresh as st

SOURCE = Path(st.__file__).parent

# Each module may import those of earlier rows; inside a row there may be no cycle.
ORDER = [
    "_validate _normal _progress _threads _arrays _kernels",
    "noise.covariance noise.clipping noise.anscombe rules frames",
    "sample",
    "risk",
    "select",
    "noise",
    "denoising",
    "io viz sklearn",
    "plot report estimator",
    "cli",
]
LAYERS = {name: row for row, names in enumerate(ORDER) for name in names.split()}
# The public names: only the command line uses the package as its users do.
LAYERS[""] = len(ORDER) - 2


def module_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module):
    while module not in LAYERS:
        module = module.rpartition(".")[0]
        assert module
    return LAYERS[module]


def imports_of(path, modules):
    """Yield the modules of the package that a file imports; a method `plot` may reach up to the face that draws."""
    tree = ast.parse(path.read_text())
    package = list(path.relative_to(SOURCE).parts[:-1])
    methods = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name == "plot"]
    drawing = {node for method in methods for node in ast.walk(method)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and node not in drawing:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                deep, shallow = ".".join([*base, alias.name]), ".".join(base)
                yield deep if deep in modules else shallow


def test_imports_go_one_way():
    modules = {module_of(path): path for path in SOURCE.rglob("*.py")} | {"": SOURCE / "__init__.py"}
    graph = {name: set(imports_of(path, modules)) - {name} for name, path in modules.items() if name}
    for name, used in graph.items():
        for other in used:
            assert layer_of(other) <= layer_of(name), f"{name} imports {other}"
    # No cycle, not even inside of a layer: the sort raises if there is one.
    list(graphlib.TopologicalSorter(graph).static_order())


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()


def test_public_names_are_listed_sorted_and_documented():
    assert st.__all__ == sorted(st.__all__)
    for name in st.__all__:
        assert getattr(st, name).__doc__


def test_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert version("scorethresh") == st.__version__


HEAVY = ["matplotlib", "skimage", "scipy", "scipy.stats", "numba", "pywt", "llvmlite"]


def test_importing_is_light():
    loaded = run(f"import sys, scorethresh; print(*[m for m in {HEAVY} if m in sys.modules])")
    assert loaded == []
