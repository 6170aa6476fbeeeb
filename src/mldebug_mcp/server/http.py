"""The HTTP server itself: the SDK's application behind a token, in bounded time and memory, and how it ends."""

from __future__ import annotations

import hmac
import logging
import os
import threading
from types import FrameType
from typing import Any

import anyio
import h11
import uvicorn
from mcp.server import MCPServer
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from mldebug_mcp.server.listener import PATH, Listener

MAX_HEADERS = 16 * 1024
"""Bytes of the request line and headers together."""
MAX_BODY = 4 * 1024 * 1024
"""Bytes of the largest request: no argument of a tool comes near, but a long log given to explain_error."""
MAX_SESSIONS = 1000
"""Open sessions of the 2025 protocol; each ends after half an hour without a request."""
MAX_CONNECTIONS = 512
"""Half of the file descriptors that a process usually has."""
REQUEST_SECONDS = 30.0
"""In which a request must have arrived whole: who sends a byte a minute does not hold a connection."""
KEEP_ALIVE_SECONDS = 60
"""In which an idle connection is kept: longer than clients keep theirs, lest they use one that is being closed."""
END_SECONDS = 0.3
"""From the signal to the end, whatever is at work: a client may kill half a second after it."""


def serve_http(server: MCPServer[Any], listener: Listener) -> None:
    """Serve at a bound address until the process is told to stop."""
    application = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=listener.security,
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_SESSIONS,
    )
    config = configuration(TokenGate(application, listener.token))
    anyio.run(_Server(config).serve, [listener.socket])


def configuration(application: ASGIApp) -> uvicorn.Config:
    """Return how uvicorn serves an application: with limits, and without a line in the log for each stranger."""
    return uvicorn.Config(
        application,
        interface="asgi3",
        http=_BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=0,
        h11_max_incomplete_event_size=MAX_HEADERS,
    )


class TokenGate:
    """Lets requests through that carry the token; what leads nowhere is answered in a line.

    The SDK's own check of tokens belongs to OAuth: it would announce an authorization server that is not there.
    """

    def __init__(self, application: ASGIApp, token: str) -> None:
        self.application = application
        self.expected = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        refusal = self._refusal(scope) if scope["type"] != "lifespan" else None
        await (refusal or self.application)(scope, receive, send)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        # h11 counts headers only while they arrive in pieces.
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADERS:
            return PlainTextResponse("Request headers too large\n", 431)
        if scope["path"] != PATH:
            return PlainTextResponse(f"Not found: MCP is served at {PATH}\n", 404)
        if not self._has_token(scope):
            challenge = {"WWW-Authenticate": 'Bearer realm="mldebug-mcp"'}
            return PlainTextResponse("Unauthorized: send Authorization: Bearer TOKEN\n", 401, challenge)
        return None

    def _has_token(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self.expected)


class _BoundedProtocol(H11Protocol):
    """A connection that is closed when a request takes too long to arrive: uvicorn itself waits for ever."""

    _timer: Any = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - the signature of the base class
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_waiting()
        elif self._timer is None and self.timeout_keep_alive_task is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._timer = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Server(uvicorn.Server):
    """Ends soon after a signal: a tool at work in a thread cannot be stopped, and is not waited for."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        # What is cut off now is no error.
        logging.disable(logging.CRITICAL)
        last = threading.Timer(END_SECONDS, os._exit, [128 + sig])
        last.daemon = True
        last.start()
