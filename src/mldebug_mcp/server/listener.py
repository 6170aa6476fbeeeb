"""Where the server listens for HTTP, and who may call there.

Loopback by default, and always with a bearer token: on a shared machine every local user can reach loopback. Host and
Origin are always checked. Not covered: TLS (forward the port with ssh, or put a proxy in front) and accounts (whoever
has the token can do all that the server can).
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from mcp.server.transport_security import TransportSecuritySettings

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

PATH = "/mcp"
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
TOKEN_VARIABLE = "MLDEBUG_MCP_TOKEN"  # noqa: S105 - the name of a variable
SHORT_TOKEN = 16
"""Characters below which the user is warned that a token can be guessed; chosen by hand."""
BACKLOG = 512
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
        return socket.create_server(address, family=family, backlog=BACKLOG)
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
