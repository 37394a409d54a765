"""Ctrl-C: the command stops within a second, whatever it computes, and leaves no temporary file."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator

from ..io.targets import remove_temporary

# Seconds that the usual way out, by an exception, may take. Threads that compute are waited for.
PATIENCE = 0.6

# The exit code of a command that was stopped.
STOPPED = 130


@contextlib.contextmanager
def stopping_soon() -> Iterator[None]:
    """Let Ctrl-C end the process within a second while the block runs.

    Python raises `KeyboardInterrupt` in the main thread once that returns from compiled code, and then waits for the
    other threads. A thread of ours hears of the signal at once. If the process still runs after `PATIENCE` seconds,
    it removes temporary files and ends the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)
    over = threading.Event()
    before = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(ear, over), daemon=True)
    listener.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        mouth.close()
        listener.join(timeout=PATIENCE)
        ear.close()


def end_silently() -> None:
    """Let Ctrl-C end this worker process at once, without a word; its parent speaks."""
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)
    signal.signal(signal.SIGINT, _ignore)
    signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    _open_sockets.append(mouth)
    threading.Thread(target=_end_when_heard, args=(ear,), daemon=True).start()


# The ends of sockets that must stay open as long as the process lives.
_open_sockets: list[socket.socket] = []


def _ignore(number: int, frame: object) -> None:
    """Do nothing: the thread that listens ends the process."""


def _end_when_heard(ear: socket.socket) -> None:
    while heard := ear.recv(1):
        if heard[0] == signal.SIGINT:
            remove_temporary()
            os._exit(STOPPED)


def stop_children() -> None:
    """Stop worker processes, which remove what they have not finished."""
    for child in multiprocessing.active_children():
        if child.pid is not None:
            with contextlib.suppress(OSError):
                os.kill(child.pid, signal.SIGINT)


def _listen(ear: socket.socket, over: threading.Event) -> None:
    while heard := ear.recv(1):
        if heard[0] == signal.SIGINT:
            stop_children()
            if not over.wait(PATIENCE):
                remove_temporary()
                with contextlib.suppress(OSError, ValueError):
                    sys.stderr.write("stopped\n")
                    sys.stderr.flush()
                os._exit(STOPPED)
