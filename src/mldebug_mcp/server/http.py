"""The HTTP server: the SDK's application behind a token, with limits on time and memory, and a quick shutdown."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import os
import re
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import anyio
import h11
import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten
from mldebug_mcp.server import endings, watch_children_without_threads

# Where the server listens for HTTP, and who may call there.
#
# Loopback by default, and always with a bearer token: on a shared machine every local user can reach loopback. Host and
# Origin are always checked. Not covered: TLS (forward the port with ssh, or put a proxy in front) and accounts (whoever
# has the token can do all that the server can).


PATH = "/mcp"
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
TOKEN_VARIABLE = "MLDEBUG_MCP_TOKEN"  # noqa: S105 - the name of a variable
SHORT_TOKEN = 16
"""Characters below which the user is warned that a token can be guessed; chosen by hand."""
MAX_WAITING_CONNECTIONS = 512
"""Connections that may wait to be accepted."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What a bearer token may hold (RFC 6750, section 2.1)."""
_HOST = re.compile(r"(?P<name>[\w.-]+|\[[\da-fA-F:.]+\])(?P<port>:(\d+|\*))?", re.ASCII)
_ORIGIN = re.compile(r"[a-z][a-z\d+.-]*://[^\s/*]+(:\*)?")


@dataclass(frozen=True, slots=True)
class Listener:
    """A bound address, and who may call there.

    Args:
        socket: Bound and listening, so that early connections wait instead of failing.
        url: The address that clients are given.
        token: What they must send.
        made: Whether the token was generated here, so that the user has to be shown it.
        warnings: What the user should know, a line each.
        security: The hosts and origins that are let in.
    """

    socket: socket.socket
    url: str
    token: str
    made: bool
    warnings: Sequence[str]
    security: TransportSecuritySettings


def listen(
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    token: str | None = None,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
) -> Listener:
    """Bind an address and decide who may call there.

    Args:
        host: An address or name of this machine.
        port: A port; 0 takes any that is free.
        token: The bearer token; by default that of the environment variable `MLDEBUG_MCP_TOKEN`, else a new one.
        allowed_hosts: Names under which clients call, with or without a port, besides those of the loopback.
        allowed_origins: Origins of web pages that may call, such as `https://example.org`.

    Raises:
        InputError: the address cannot be used, or other machines can reach it and token or allowed hosts are missing.
    """
    given = os.environ.get(TOKEN_VARIABLE) if token is None else token
    if given is not None and not _TOKEN.fullmatch(given):
        raise InputError(
            f"the token (--token or {TOKEN_VARIABLE}) must not be empty, and may hold letters, digits and -._~+/ only"
        )
    named = [_host_name(name) for name in allowed_hosts]
    family, address = _resolve(host, port)
    public = not ipaddress.ip_address(address[0]).is_loopback
    if public and (given is None or not named):
        raise InputError(_what_a_public_address_needs(host, given, named))
    security = _security([] if public else [*LOOPBACK, _bracketed(address[0])], named, allowed_origins)
    bound = _bind(host, family, address)
    return Listener(
        socket=bound,
        url=_url(named[0] if public else _bracketed(address[0]), bound.getsockname()[1]),
        token=given or secrets.token_urlsafe(32),
        made=given is None,
        warnings=_warnings(given, public),
        security=security,
    )


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    if not 0 <= port <= 65535:
        raise InputError(f"port {port}: give one from 1 to 65535, or 0 for any free port")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "not a host name"
        raise InputError(f"host {shorten(host, 80)!r}: {why}; give an address of this machine") from None
    return found[0], (str(found[4][0]), port)


def _bind(host: str, family: socket.AddressFamily, address: tuple[str, int]) -> socket.socket:
    try:
        return socket.create_server(address, family=family, backlog=MAX_WAITING_CONNECTIONS)
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else str(error)
        raise InputError(
            f"cannot listen at {shorten(host, 80)} port {address[1]} ({why}); stop what listens there, or give another "
            "--port (0: any free port)"
        ) from None


def _what_a_public_address_needs(host: str, token: str | None, named: Sequence[str]) -> str:
    missing = [*(["a token"] if token is None else []), *([] if named else ["allowed hosts"])]
    return (
        f"{host} can be reached from other machines, which requires {' and '.join(missing)}: set "
        f"{TOKEN_VARIABLE} (or --token), and --allowed-host NAME, the name that clients use; or stay at "
        f"{DEFAULT_HOST} and forward the port with ssh -L"
    )


def _host_name(given: str) -> str:
    """Return an allowed host as clients write it, or say what is wrong with it."""
    name = _bracketed(given)
    if not _HOST.fullmatch(name):
        raise InputError(f"--allowed-host {shorten(given, 80)!r}: give a name or address, such as gpu7 or gpu7:8765")
    return name


def _bracketed(name: str) -> str:
    try:
        return f"[{name}]" if ipaddress.ip_address(name).version == 6 else name
    except ValueError:
        return name


def _security(own: Sequence[str], named: Sequence[str], allowed_origins: Sequence[str]) -> TransportSecuritySettings:
    for origin in allowed_origins:
        if not _ORIGIN.fullmatch(origin.rstrip("/")):
            raise InputError(f"--allowed-origin {shorten(origin, 80)!r}: give one such as https://example.org")
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        # A name without a port stands for every port, because a tunnel has a port of its own.
        allowed_hosts=[*own, *named, *(f"{name}:*" for name in [*own, *named])],
        allowed_origins=[
            *(f"http://{name}" for name in own),
            *(f"http://{name}:*" for name in own),
            *(origin.rstrip("/") for origin in allowed_origins),
        ],
    )


def _url(name: str, port: int) -> str:
    found = _HOST.fullmatch(name)
    has_port = found is not None and found["port"] is not None and found["port"] != ":*"
    return f"http://{name.removesuffix(':*')}{'' if has_port else f':{port}'}{PATH}"


def _warnings(token: str | None, public: bool) -> list[str]:
    found = []
    if token is not None and len(token) < SHORT_TOKEN:
        found.append(f"the token is shorter than {SHORT_TOKEN} characters, so it can be guessed")
    if public:
        found.append("other machines can reach this server and nothing is encrypted; put a TLS proxy in front")
    return found


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
