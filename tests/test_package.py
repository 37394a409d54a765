"""The package as a whole: what importing it costs, and which way its imports go."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import scorethresh as st

SOURCE = Path(st.__file__).parent

# Each module may import those of earlier rows; inside a row there may be no cycle.
ORDER = [
    "_validate _containers _lazy_data _normal _rounding _progress _threads _arrays _kernels",
    "noise.covariance noise.clipping noise.bulk noise.moment_table rules frames",
    "noise",
    "sample",
    "risk",
    "select",
    "denoising",
    "inverse",
    "scale",
    "io viz sklearn",
    "plot report estimator",
    "cli",
    "__main__",
]
LAYERS = {name: row for row, names in enumerate(ORDER) for name in names.split()}
# The public names: only the command line uses the package as its users do.
LAYERS[""] = LAYERS["cli"] - 1


def module_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module):
    while module not in LAYERS:
        module = module.rpartition(".")[0]
        assert module
    return LAYERS[module]


def imports_of(path, modules):
    """Yield the modules of the package that a file imports; methods that draw may reach up to the face that does."""
    tree = ast.parse(path.read_text())
    package = list(path.relative_to(SOURCE).parts[:-1])
    methods = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name in ("plot", "_repr_html_")]
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


# Functions that turn a user's string into an object, once. Elsewhere a variant is a type.
DOORS = {
    ("_validate.py", "number"),
    ("_validate.py", "thresholds"),
    ("_validate.py", "choice"),
    ("noise/named.py", "as_noise"),
    ("risk/methods/__init__.py", "as_method"),
    ("risk/methods/score.py", "_as_jump"),
    ("rules/__init__.py", "as_rule"),
    ("select/space.py", "_axis"),
    ("select/space.py", "as_space"),
    ("select/tried.py", "data_and_thresholds"),
    ("select/threshold.py", "compare"),
}


def test_strings_become_objects_at_the_doors():
    found = set()
    for path in SOURCE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                tests = [
                    n for n in ast.walk(function) if isinstance(n, ast.Call) and "isinstance" in ast.unparse(n.func)
                ]
                if any(re.search(r"\bstr\b", ast.unparse(test)) for test in tests):
                    found.add((path.relative_to(SOURCE).as_posix(), function.name))
    assert found == DOORS


def test_private_names_stay_in_their_module():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) and node.module else []
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls"):
                names = [node.attr]
            for name in names:
                # Modules such as _validate are private to the package, not to a module.
                private = name.startswith("_") and not name.startswith("__") and ast.unparse(node) != "os._exit"
                known = isinstance(node, ast.ImportFrom) and (SOURCE / f"{name}.py").exists()
                assert not private or known, f"{path.name}:{node.lineno} uses {name}"


def test_functions_and_files_are_short():
    """A function has at most 60 lines below its docstring, a file 350 unless it says why at its top."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        tree = ast.parse(text)
        assert len(text.splitlines()) <= 350 or "350 lines" in (ast.get_docstring(tree) or ""), path
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                start = function.body[0].end_lineno if ast.get_docstring(function) else function.lineno
                assert function.end_lineno - start <= 60, f"{path.name}: {function.name}"


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()


def test_public_names_are_listed_sorted_and_documented():
    assert st.__all__ == sorted(st.__all__)
    for name in st.__all__:
        assert getattr(st, name).__doc__


def test_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert version("scorethresh") == st.__version__


HEAVY = ["matplotlib", "skimage", "sklearn", "pywt", "dask", "xarray", "zarr", "pandas", "PIL", "tifffile", "nibabel"]


def test_importing_is_light():
    loaded = run(f"import sys, scorethresh; print(*[m for m in {[*HEAVY, 'scipy']} if m in sys.modules])")
    assert loaded == []


def test_first_call_is_light():
    # scipy.stats and scipy.optimize take longer to import than the call itself.
    heavy = [*HEAVY, "scipy.stats", "scipy.optimize", "scipy.signal", "scipy.ndimage", "scipy.sparse"]
    call = "scorethresh.select_threshold(np.arange(5000.0), sigma=1.0)"
    loaded = run(f"import sys, numpy as np, scorethresh; {call}; print(*[m for m in {heavy} if m in sys.modules])")
    assert loaded == []
