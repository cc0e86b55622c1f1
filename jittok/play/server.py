"""The server of `jittok play`: a page for this machine alone.

It listens on 127.0.0.1, every request needs the key of the address, the Host header must name this machine (a web page
that resolves to 127.0.0.1 gets nothing), and the page may load nothing from elsewhere.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.errors import JittokError, missing
from jittok.play.answers import Session

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from jittok.tokenizer import Tokenizer

HERE = Path(__file__).parent
MOST_ASKED, MOST_LOADED = 16 << 20, 64 << 20
"""Bytes of a question, and of a tokenizer file."""
ASSETS = {"page.js": "text/javascript", "page.css": "text/css"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {"content-security-policy": POLICY, "cache-control": "no-store", "x-content-type-options": "nosniff",
           "referrer-policy": "no-referrer"}  # fmt: skip


def make_app(session: Session, key: str) -> Starlette:
    """The application. key: what every request must bring, in the address or the header x-key."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    def allowed(request: Request) -> bool:
        given = request.headers.get("x-key") or request.query_params.get("key", "")
        return secrets.compare_digest(given.encode(), key.encode())

    def refused() -> Response:
        return Response("the key is missing or wrong: open the address that jittok play printed", 403)

    async def index(request: Request) -> Response:
        if not allowed(request):
            return refused()
        return Response((HERE / "page.html").read_text("utf-8"), headers=HEADERS, media_type="text/html")

    async def names(request: Request) -> Response:
        return JSONResponse(session.names(), headers=HEADERS) if allowed(request) else refused()

    async def ask(request: Request) -> Response:
        if not allowed(request):
            return refused()
        body = await _body_of(request, MOST_ASKED)
        if body is None:
            return Response(f"found a question of more than {MOST_ASKED >> 20} MB, expected less", 413)
        question = _question(body)
        answer = await run_in_threadpool(session.answer, question) if question is not None else {"error": "no JSON"}
        return JSONResponse(answer, headers=HEADERS)

    async def load(request: Request) -> Response:
        if not allowed(request):
            return refused()
        body = await _body_of(request, MOST_LOADED)
        if body is None:
            return Response(f"found a file of more than {MOST_LOADED >> 20} MB, expected less", 413)
        try:
            name = await run_in_threadpool(session.load, request.query_params.get("name", ""), body)
        except (JittokError, TypeError, ValueError) as error:
            return JSONResponse({"error": str(error)}, headers=HEADERS)
        return JSONResponse({"name": name, "names": session.names()}, headers=HEADERS)

    return Starlette(
        routes=[
            Route("/", index), Route("/asset/{name}", _asset), Route("/names", names),
            Route("/ask", ask, methods=["POST"]), Route("/load", load, methods=["POST"]),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
    )  # fmt: skip


async def _body_of(request: Request, most: int) -> bytes | None:
    """The body of a request; None if it is longer than `most` bytes."""
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > most:
            return None
    return bytes(found)


async def _asset(request: Request) -> Response:
    """A file of the page."""
    from starlette.responses import Response

    name = request.path_params["name"]
    if name not in ASSETS:
        return Response("no such file", 404)
    return Response((HERE / name).read_text("utf-8"), headers=HEADERS, media_type=ASSETS[name])


def _question(body: bytes) -> Mapping[str, Any] | None:
    """A question of the page: JSON as browsers write it (strings may hold lone surrogates). None: it is no object."""
    import json

    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def serve(tokenizers: Mapping[str, Tokenizer], port: int = 0, on_ready: Callable[[str], object] = print) -> None:
    """Serve the page until it is interrupted. port: 0 takes a free one. on_ready: called with the address.

    ImportError without the extra `play`; OSError if the port is taken.
    """
    try:
        import uvicorn
    except ImportError:
        raise missing("jittok play", "starlette and uvicorn", "play") from None
    key = secrets.token_urlsafe(16)
    app = make_app(Session(tokenizers), key)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(64)  # the address is printed before the server answers
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        on_ready(f"http://127.0.0.1:{listening.getsockname()[1]}/?key={key}")
        server.run(sockets=[listening])
