"""Loads the compiled loops without importing numba.

numba needs most of a second to import and to load one of its own cached functions. So the machine code it makes of
a module such as `_loops.py` is kept as an object file, and llvmlite alone, which is ten times lighter, loads that.
numba is imported only when no object file fits this source, compiler and processor.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

_HERE = Path(__file__).parent
_DIGEST = 32


def call(name: str, *arguments: int | float | NDArray[Any]) -> int:
    """Run the loop `module.name`, with the interpreter's lock released, and return its integer result."""
    result = ctypes.c_int64(0)
    error = ctypes.c_void_p()
    converted: list[Any] = [ctypes.byref(result), ctypes.byref(error)]
    for a in arguments:
        if isinstance(a, np.ndarray):
            assert a.flags.c_contiguous
            converted.append(ctypes.c_void_p(a.ctypes.data))
        else:
            converted.append(ctypes.c_double(a) if isinstance(a, float) else ctypes.c_int64(a))
    status = ctypes.CFUNCTYPE(ctypes.c_int32)(_address(name))(*converted)
    if status:
        msg = f"the compiled loop {name} failed with status {status}"
        raise RuntimeError(msg)
    return result.value


_loading = threading.Lock()


@functools.cache
def _address(name: str) -> int:
    # functools.cache may run a function twice when threads race, and an engine that it drops takes its code along.
    with _loading:
        return int(_engine(name).get_function_address(name.partition(".")[2]))


@functools.cache
def _engine(name: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=3, jit=True)
    module, _, loop = name.partition(".")
    source = (_HERE / f"{module}.py").read_bytes()
    identity = [source, llvmlite.__version__.encode(), cpu.encode(), features.encode()]
    file = f"{name}.{hashlib.sha256(bytes(1).join(identity)).hexdigest()[:16]}.o"
    code = _load(file) or _compile(machine, module, loop, file)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _folders() -> Iterator[Path]:
    """Yield where an object file may lie: beside the bytecode, else in the user's cache."""
    yield _HERE / "__pycache__"
    with contextlib.suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scorethresh"


def _load(name: str) -> bytes | None:
    """Return the object code in the file of that name; a damaged file counts as none."""
    for folder in _folders():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            continue
        digest, code = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(code).digest() == digest:
            return code
    return None


def _compile(machine: Any, source: str, loop: str, name: str) -> bytes:
    """Return the object code of a loop, and keep it for the next process where that is possible."""
    code, symbol = importlib.import_module(f".{source}", __package__).llvm(loop)
    module = llvm.parse_assembly(code)
    # numba's wrapper reports errors to Python through symbols of its own; only the bare function is kept.
    module.get_function(symbol).linkage = "internal"
    module.get_function(symbol.removeprefix("cfunc.")).name = loop
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    compiled: bytes = machine.emit_object(module)
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(hashlib.sha256(compiled).digest() + compiled)
            os.chmod(file.name, 0o644)
            os.replace(file.name, folder / name)
            break
        except OSError:
            continue
    return compiled
