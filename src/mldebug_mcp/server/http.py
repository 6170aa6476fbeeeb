"""The HTTP server: the SDK's application behind a token, with limits on time and memory, and a quick shutdown."""

from __future__ import annotations

import hmac
import logging
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import anyio
import h11
import uvicorn
from mcp.server import MCPServer
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from mldebug_mcp.server import endings, watch_children_without_threads
from mldebug_mcp.server.listener import PATH, Listener

MAX_HEADERS = 16 * 1024
"""Bytes of the request line and headers together."""
MAX_BODY = 4 * 1024 * 1024
"""Bytes of the largest request; only a long log passed to explain_error comes near."""
MAX_SESSIONS = 1000
"""Open sessions of the 2025 protocol; each ends after half an hour without a request."""
MAX_CONNECTIONS = 512
"""Half of the file descriptors that a process usually has."""
REQUEST_SECONDS = 30.0
"""Within which a request must arrive whole, so that a slow sender cannot hold a connection."""
KEEP_ALIVE_SECONDS = 60
"""For which an idle connection is kept: longer than clients keep theirs, so that they never use a closing one."""
_PLACE = re.compile(rb"null|(?:[a-zA-Z][\w+.-]*://)?(?:[\w.-]*|\[[\da-fA-F:.]*\])(?::\d{0,5})?")
"""A host or an origin. The SDK lets in whatever begins as an allowed one and a colon: http://127.0.0.1:5.example.org"""
END_SECONDS = 0.3
"""From the signal to the exit, whatever is running: some clients kill the process half a second later."""


def serve_http(server: MCPServer[Any], listener: Listener, clear: Callable[[], None]) -> int:
    """Serve at a bound address until the process is asked to stop.

    Args:
        server: What is served.
        listener: Where.
        clear: Called before the process ends, from any thread: removes what must not stay behind.

    Returns:
        The exit status: 128 and the number of the signal, like that of a program that a signal ended.
    """
    application = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=listener.security,
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_SESSIONS,
    )
    config = configuration(TokenGate(application, listener.token))
    serving = _Server(config, clear)
    watch_children_without_threads()
    try:
        anyio.run(serving.serve, [listener.socket])
    finally:
        clear()
    return serving.status


def configuration(application: ASGIApp) -> uvicorn.Config:
    """Return the settings of uvicorn: with limits, and without an access log."""
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
    """Lets through requests that carry the token, and answers all others in one line.

    The SDK's own token check is part of OAuth: it would announce an authorization server that does not exist.
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
        places = [(name, value) for name, value in scope["headers"] if name in (b"host", b"origin")]
        if len(dict(places)) < len(places) or not all(_PLACE.fullmatch(value) for _, value in places):
            return PlainTextResponse("Not one host and one origin, with at most a port each\n", 403)
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
    """Closes a connection whose request takes too long to arrive; uvicorn itself waits forever."""

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
    """Exits soon after a signal. A tool running in a thread cannot be stopped, and is not waited for."""

    def __init__(self, config: uvicorn.Config, clear: Callable[[], None]) -> None:
        super().__init__(config)
        self.clear = clear
        self.status = 0

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals that end a server. uvicorn's own way ends the process by them before anything is cleared."""
        for ending in endings():
            signal.signal(ending, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self.status:
            return
        self.status = 128 + sig
        # Calls that are cut off from here on are not worth an error message.
        logging.disable(logging.CRITICAL)
        last = threading.Timer(END_SECONDS, self._end)
        last.daemon = True
        last.start()

    def _end(self) -> None:
        self.clear()
        os._exit(self.status)
