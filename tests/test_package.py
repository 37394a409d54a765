"""The package as a whole: what importing it costs, which way its imports go, how its compiled code is kept."""

import ast
import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import scorethresh as st
from scorethresh import _native

SOURCE = Path(st.__file__).parent

# Each module may import those before it.
ORDER = [
    "_validate _native _loops _frames _progress",
    "rules cells magnitudes curve poisson transforms",
    "gaussian covariance",
    "means density clipping",
    "noise",
    "stein",
    "methods",
    "select",
    "blend prepare coefficients",
    "denoise",
    "trials",
    "plot report io estimator cli",
]
LAYER = {name: i for i, names in enumerate(ORDER) for name in names.split()}


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()


def test_imports_go_one_way():
    for path in SOURCE.rglob("*.py"):
        module = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if module == "__init__":
            continue
        tree = ast.parse(path.read_text())
        # A method `plot` may reach up to the face that draws.
        methods = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name == "plot"]
        drawing = {node for method in methods for node in ast.walk(method)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level and node not in drawing:
                inside = module == "methods" and node.level == 1
                names = [node.module] if node.module else [alias.name for alias in node.names]
                for name in [] if inside else names:
                    assert LAYER[name.split(".")[0]] <= LAYER[module], f"{module} imports {name}"


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


def test_a_warm_first_call_needs_no_compiler():
    """Neither numba nor SciPy: the loops come from their object file through llvmlite."""
    st.select_threshold(np.ones(9999), sigma=1.0, method="score")
    code = (
        "import sys, numpy, scorethresh; scorethresh.select_threshold(numpy.ones(9999), sigma=1.0, method='score');"
        f"print(*[m for m in {HEAVY} if m in sys.modules])"
    )
    assert run(code) == ["llvmlite"]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Keeps the object files of this test in a folder of its own."""
    monkeypatch.setattr(_native, "_folders", lambda: iter([tmp_path / "file" / "below", tmp_path / "cache"]))
    (tmp_path / "file").touch()
    for function in (_native._engine, _native._address):
        function.cache_clear()
    yield tmp_path / "cache"
    for function in (_native._engine, _native._address):
        function.cache_clear()


def test_compiled_loops_are_kept_and_a_damaged_file_is_made_anew(elsewhere):
    """The first folder cannot be written to; the second is used. A file cut short is not loaded."""
    expected = st.risk_curve(np.arange(5.0), [1.0], sigma=1.0, method="score").risk
    [kept] = elsewhere.iterdir()
    content = kept.read_bytes()
    for damaged in (content[:-100], b"", content[:200] + bytes([content[200] ^ 255]) + content[201:]):
        kept.write_bytes(damaged)
        _native._engine.cache_clear()
        _native._address.cache_clear()
        assert st.risk_curve(np.arange(5.0), [1.0], sigma=1.0, method="score").risk == expected
        assert [p.name for p in elsewhere.iterdir()] == [kept.name]
        assert hashlib.sha256(kept.read_bytes()[32:]).digest() == kept.read_bytes()[:32]


def test_threads_may_race_to_the_first_call():
    code = (
        "import threading, numpy, scorethresh\n"
        "y = numpy.ones(200_000)\n"
        "def work(): scorethresh.select_threshold(y, sigma=1.0)\n"
        "threads = [threading.Thread(target=work) for _ in range(6)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]; print('done')"
    )
    assert run(code) == ["done"]
