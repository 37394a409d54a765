"""The command `view`: a page of this machine on which files are dropped and denoised."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import webbrowser
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from .. import io
from .._validate import missing_extra
from .messages import echo
from .streams import flush_stdout

File = Annotated[Path | None, typer.Argument(metavar="FILE", help="A file to open first.")]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")]
Port = Annotated[int, typer.Option(metavar="NUMBER", min=0, max=65535, help="The port; 0 takes a free one.")]
Limit = Annotated[int, typer.Option(metavar="MIB", min=1, help="Largest file that the page takes. FILE may be larger.")]


def view(file: File = None, browser: Browser = True, port: Port = 0, limit: Limit = 512) -> None:
    """Denoise on a page in the browser: drop a file, compare, change the noise model, download.

    The page is served by this machine, to this machine alone, at an address that holds a secret. Stop with Ctrl-C.
    """
    try:
        import uvicorn

        from .playground.desk import Desk, Opened
        from .playground.server import make_app
    except ModuleNotFoundError as error:
        raise missing_extra((error.name or "").partition(".")[0]) from error
    token = secrets.token_urlsafe(16)
    with io.temporary_folder() as folder, _bound(port) as listening:
        desk = Desk(folder)
        first = ""
        if file is not None:
            io.check_readable(file)
            first = desk.add(Opened(file, str(file), own=False))
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/{token}/"
        echo(f"{address}  (stop with Ctrl-C)")
        flush_stdout()
        config = uvicorn.Config(
            make_app(desk, token, first=first, most_bytes=limit << 20),
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        for name in ("SIGTERM", "SIGHUP"):  # the folder is removed on the way out
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _leave)
        if browser and _has_display():
            webbrowser.open(address)
        uvicorn.Server(config).run(sockets=[listening])


def _bound(port: int) -> socket.socket:
    """Return a socket of this machine alone."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()  # a browser that is faster than the server waits
    except OSError as error:
        listening.close()
        msg = f"--port {port} cannot be used ({error.strerror}). Leave --port out to take a free one."
        raise ValueError(msg) from error
    return listening


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _has_display() -> bool:
    """Tell whether a browser can open a window. One of the terminal would take the terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
