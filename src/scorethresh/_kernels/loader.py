"""Loads the compiled loops without importing numba.

numba needs most of a second to import and to load one of its own cached functions. So the machine code that it makes
of `sample_loops` and `frame_loops` is kept in object files, and llvmlite alone, which is ten times lighter, loads
them. numba is imported only if no object file fits this source, compiler and processor.

An object file runs with the rights of the user. It is loaded only if this user owns both the file and its folder, and
nobody else may write to either.
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

import numpy as np
from numpy.typing import NDArray

_HERE = Path(__file__).parent
# The number of bytes of the SHA-256 digest at the start of an object file.
_DIGEST = 32
_OTHERS_MAY_WRITE = 0o022

# A fork waits until no thread loads: the child would inherit the lock, and with it the locks of imports and of LLVM,
# from a thread that it does not have.
_loading = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release)


def call(name: str, *arguments: int | float | NDArray[Any]) -> int:
    """Run the loop `module.name` with the interpreter's lock released, and return its integer result.

    Nothing is checked here: the loops read and write raw memory. Only the wrappers of this package may call it.
    """
    result = ctypes.c_int64(0)
    error = ctypes.c_void_p()
    converted: list[Any] = [ctypes.byref(result), ctypes.byref(error)]
    for a in arguments:
        if isinstance(a, np.ndarray):
            converted.append(ctypes.c_void_p(a.ctypes.data))
        else:
            converted.append(ctypes.c_double(a) if isinstance(a, float) else ctypes.c_int64(a))
    status = ctypes.CFUNCTYPE(ctypes.c_int32)(address(name))(*converted)
    if status:
        msg = f"the compiled loop {name} failed with status {status}"
        raise RuntimeError(msg)
    return result.value


@functools.cache
def address(name: str) -> int:
    """Return where the machine code of the loop `module.name` lies in memory."""
    # functools.cache may run a function twice when threads race, and an engine that it drops takes its code along.
    with _loading:
        return int(engine(name).get_function_address(name.partition(".")[2]))


@functools.cache
def engine(name: str) -> Any:
    """Return the LLVM engine that holds the machine code of the loop `module.name`."""
    import llvmlite
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=3, jit=True)
    module, _, loop = name.partition(".")
    source = (_HERE / f"{module}.py").read_bytes()
    identity = [source, llvmlite.__version__.encode(), cpu.encode(), features.encode()]
    file = f"{name}.{hashlib.sha256(bytes(1).join(identity)).hexdigest()[:16]}.o"
    code = _load(file)
    if code is None:
        code = _compile(machine, module, loop)
        any(_keep(folder, file, code) for folder in folders())
    made = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    made.add_object_file(llvm.ObjectFileRef.from_data(code))
    made.finalize_object()
    return made


def folders() -> Iterator[Path]:
    """Yield the folders in which an object file may lie: beside the bytecode, else in the user's cache."""
    yield _HERE / "__pycache__"
    with contextlib.suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scorethresh"


def _is_ours(status: os.stat_result) -> bool:
    """Tell whether this user owns a file or folder and nobody else may write to it; always true on Windows."""
    if os.name != "posix":
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_MAY_WRITE


def _load(name: str) -> bytes | None:
    """Return the object code in the first file of that name that is ours and intact, None if there is none."""
    for folder in folders():
        try:
            with open(folder / name, "rb") as file:
                # The status of the open file, not of the path, which may change in between.
                ours = _is_ours(folder.stat()) and _is_ours(os.fstat(file.fileno()))
                content = file.read() if ours else b""
        except OSError:
            continue
        digest, code = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(code).digest() == digest:
            return code
    return None


def _keep(folder: Path, name: str, code: bytes) -> bool:
    """Write object code to a file for the next process; return whether that succeeded."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(folder.stat()):
            return False
        descriptor, temporary = tempfile.mkstemp(dir=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(temporary, folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError:
        return False
    return True


def _compile(machine: Any, source: str, loop: str) -> bytes:
    """Return the object code of a loop."""
    from llvmlite import binding as llvm

    code, symbol = importlib.import_module(f".{source}", __package__).llvm(loop)
    module = llvm.parse_assembly(code)
    # numba's wrapper reports errors to Python through symbols of its own; only the bare function is kept.
    module.get_function(symbol).linkage = "internal"
    module.get_function(symbol.removeprefix("cfunc.")).name = loop
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    compiled: bytes = machine.emit_object(module)
    return compiled
