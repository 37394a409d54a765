"""Loads the compiled loops and declares their signatures.

`hatch_build.py` compiles the C files of this folder into one shared library per level of the processor: ``loops_1``
runs everywhere; ``loops_3`` and ``loops_4`` need the instructions of x86-64-v3 and x86-64-v4. The best that this
processor can run is loaded at the first call. ctypes releases the interpreter's lock while a loop runs.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from ctypes import c_double as D
from ctypes import c_int64 as N
from ctypes import c_void_p as P
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = (4, 3, 1)
_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def _both_precisions(name: str, result: Any, *arguments: Any) -> dict[str, tuple[Any, ...]]:
    return {f"{name}_{dtype}": (result, *arguments) for dtype in ("float32", "float64")}


# Of every function: its result, then its arguments. N is an integer of 64 bits, D a double, P a pointer.
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cpu_level": (N,),
    **_both_precisions("deposit", *(N, N, P, N, P, P, P, N, P, D, N, N, N, P)),
    **_both_precisions("stein_sums", *(N, N, P, D, D, N, P, P, D, D, P)),
    "kernel_sums": (None, *(N, P, P, D, D, N, P, N, P, D, D, D, P, P, P, P, P)),
    **_both_precisions("dilated", None, *[N] * 7, P, P, P),
    "fit_mixture": (N, *(N, P, P, N, D, D, N, D, P, P, P)),
    "fit_mixture_rows": (N, *(N, N, P, D, N, D, N, D, D, D, D, P, P, P, P)),
    **_both_precisions("match_patches", None, *(N, P, P, P, N, P, N, P, N, P, P, P, P)),
    **_both_precisions("ridge_groups", None, *(N, N, P, P, P, P, P, D, D, D, N, P, N, N, P, P, P)),
    **_both_precisions("ridge_signals", None, *(N, N, N, P, P, P, D, D, N, P, P, P, P)),
    **_both_precisions("shrink_windows", None, *(N, N, N, N, P, N, P, P, P, P, D, P, P, P)),
    **_both_precisions("average_windows", None, *[N] * 5, *[P] * 6),
    **_both_precisions("sliding_dct", N, *[N] * 8, *[P] * 9, D, P, P, P),
    "symmetric_eigen": (N, *(N, N, P, P, P)),
}


def call(name: str, *arguments: int | float | NDArray[Any]) -> Any:
    """Run a loop with the interpreter's lock released, and return its result.

    Nothing is checked here: the loops read and write raw memory. Only the wrappers of this package may call it.
    """
    converted = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    return functions()[name](*converted)


@functools.cache
def functions() -> dict[str, Any]:
    """Return the loops of the best library that this processor can run, by name."""
    level = load(1)["cpu_level"]()
    return load(next(known for known in LEVELS if known == 1 or (known <= level and path_of(known).exists())))


@functools.cache
def load(level: int) -> dict[str, Any]:
    """Return the loops of the library of one level, by name."""
    path = path_of(level)
    try:
        library = ctypes.CDLL(str(path))
        loops = {name: getattr(library, name) for name in SIGNATURES}
    except (OSError, AttributeError) as error:
        remedy = "Install scorethresh again; in a checkout: pip install --editable ."
        msg = f"the compiled loops in {path} cannot be loaded ({error}). {remedy}"
        raise ImportError(msg) from error
    for name, (result, *arguments) in SIGNATURES.items():
        loops[name].restype, loops[name].argtypes = result, arguments
    return loops


def path_of(level: int) -> Path:
    """Return the library of one level: in this folder, or in the one that SCORETHRESH_KERNELS names."""
    folder = os.environ.get("SCORETHRESH_KERNELS") or Path(__file__).parent
    return Path(folder, f"loops_{level}{_SUFFIX}")
