"""The server: who may ask, and what is answered."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from ..._progress import share_done
from .desk import Desk, PageError
from .pages import failed_page, first_page, result_page
from .settings import Settings

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class TokenMiddleware:
    """Refuses every request whose address does not start with the token."""

    def __init__(self, app: Any, token: str) -> None:
        self.app, self.token = app, token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        first = scope.get("path", "").encode().split(b"/")[1:2] or [b""]
        if not secrets.compare_digest(first[0], self.token):
            answer = PlainTextResponse("Use the whole address that scorethresh view has printed.", 403)
            await answer(scope, receive, send)
            return
        await self.app(scope, receive, _with_headers(send))


def _with_headers(send: Any) -> Any:
    async def with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] += [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
        await send(message)

    return with_headers


def make_app(desk: Desk, token: str, *, first: str, most_bytes: int) -> Starlette:
    """Return the application.

    Parameters
    ----------
    desk : Desk
        The files.
    token : str
        What addresses must start with.
    first : str
        The key of the file to show first; empty for none.
    most_bytes : int
        The largest file that is taken from the browser.
    """

    def start(request: Request) -> Response:
        if first and "new" not in request.query_params:
            return RedirectResponse(f"result?{Settings(first).query()}", 303)
        return HTMLResponse(first_page())

    async def open_file(request: Request) -> Response:
        try:
            return PlainTextResponse(await _take(desk, request, most_bytes))
        except PageError as error:
            return PlainTextResponse(str(error), 422)

    def run(request: Request) -> Response:
        return _answered(lambda: _ran(desk, request), lambda text: PlainTextResponse(text, 422))

    def progress(request: Request) -> Response:
        share = share_done()
        return PlainTextResponse("" if share is None else f"{share:.0%}")

    def result(request: Request) -> Response:
        settings = Settings.of_query(request.query_params)
        return _answered(
            lambda: HTMLResponse(result_page(desk, settings)),
            lambda text: HTMLResponse(failed_page(desk, settings, text), 422),
        )

    def download(request: Request) -> Response:
        settings = Settings.of_query(request.query_params)

        def written() -> Response:
            path = desk.write(settings)
            name = desk.file(settings).result_name.rpartition("/")[2]
            return FileResponse(path, filename=name, background=BackgroundTask(path.unlink, missing_ok=True))

        return _answered(written, lambda text: PlainTextResponse(text, 422))

    routes = [
        Route("/", start),
        Route("/open", open_file, methods=["POST"]),
        Route("/run", run, methods=["POST"]),
        Route("/progress", progress),
        Route("/result", result),
        Route("/download", download),
    ]
    guards = [
        # A page of another name that points to this machine is refused.
        Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"], www_redirect=False),
        Middleware(TokenMiddleware, token=token),
    ]
    return Starlette(routes=[Mount(f"/{token}", routes=routes)], middleware=guards)


def _ran(desk: Desk, request: Request) -> Response:
    desk.find(Settings.of_query(request.query_params))
    return PlainTextResponse("done")


def _answered(answer: Callable[[], Response], otherwise: Callable[[str], Response]) -> Response:
    """Return the answer, or what is said instead if there is an error for the user."""
    try:
        return answer()
    except PageError as error:
        return otherwise(str(error))


async def _take(desk: Desk, request: Request, most_bytes: int) -> str:
    """Write the file in a request to the desk, and return its key."""
    file = desk.place_for(request.query_params.get("name", ""))
    msg = f"{file.name} is larger than {most_bytes >> 20} MiB. Open it by its name: scorethresh view FILE."
    claimed = Headers(scope=request.scope).get("content-length", "0")
    if claimed.isdecimal() and int(claimed) > most_bytes:
        raise PageError(msg)
    size = 0
    try:
        with open(file.path, "xb") as out:
            async for piece in request.stream():
                size += len(piece)
                if size > most_bytes:
                    raise PageError(msg)
                out.write(piece)
        return desk.add(file)
    except PageError:
        file.path.unlink(missing_ok=True)
        raise
    except OSError as error:
        file.path.unlink(missing_ok=True)
        full = f"{file.name} cannot be kept ({error.strerror}). Is the disk full?"
        raise PageError(full) from error
