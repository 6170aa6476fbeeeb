"""Shows one page in a browser from this machine, for as long as somebody looks at it.

It listens at the loopback address alone, at a port and below a path that nobody can guess, and answers only what calls
it by a name of this machine: a web page elsewhere whose name was made to point here gets nothing (DNS rebinding). It
has one page and reads no file by a name from outside.
"""

from __future__ import annotations

import hmac
import secrets
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

IDLE = 300.0
"""Seconds without a request after which nobody looks any more: a browser lets a hidden tab ask once a minute."""
GRACE = 12.0
"""Seconds in which a page that said goodbye may come back, as it does when it is loaded again, or another tab ask."""
POLL = 0.5
PATIENCE = 10.0
"""Seconds that a connection may take to ask."""
LONGEST_BODY = 64
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class PageServer(ThreadingHTTPServer):
    """A server of one page.

    Args:
        html: Returns the page as it stands now.
        idle: Seconds without a request after which it ends.
        grace: Seconds after a goodbye after which it ends.
        clock: What time it is, in seconds.
    """

    daemon_threads = True
    timeout = POLL

    def __init__(
        self,
        html: Callable[[], str],
        *,
        idle: float = IDLE,
        grace: float = GRACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._html, self._idle, self._grace, self._clock = html, idle, grace, clock
        self._making = Lock()
        self._until = clock() + idle
        self.path = f"/{secrets.token_urlsafe(24)}/"
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    def handle_error(self, request: object, client_address: object) -> None:
        """Tell in a line what went wrong; that a browser left is no error."""
        del request, client_address
        error = sys.exception()
        if not isinstance(error, OSError):
            print(f"mldebug-mcp: the page could not be made ({type(error).__name__}: {error})", file=sys.stderr)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.server_port}{self.path}"

    @property
    def is_over(self) -> bool:
        """Whether nobody looks any more."""
        return self._clock() >= self._until

    def serve(self) -> None:
        """Answer until nobody looks any more."""
        while not self.is_over:
            self.handle_request()

    def page(self) -> bytes:
        """Return the page: somebody looks."""
        self._until = self._clock() + self._idle
        with self._making:
            return self._html().encode()

    def goodbye(self) -> None:
        """Take it that the page was left."""
        self._until = min(self._until, self._clock() + self._grace)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = PATIENCE
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "mldebug-mcp", ""

    def do_GET(self) -> None:
        """Answer with the page, or that it is still the one that is known."""
        if not self._may_ask():
            return
        content = self.server.page()
        version = f'"{sha256(content).hexdigest()[:32]}"'
        if self.headers.get("If-None-Match") == version:
            self._answer(HTTPStatus.NOT_MODIFIED, version=version)
        else:
            self._answer(HTTPStatus.OK, content, version=version)

    do_HEAD = do_GET  # noqa: N815 - the name that the library looks for

    def do_POST(self) -> None:
        """Take the goodbye of a page; what it says does not matter."""
        if not self._may_ask():
            return
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > LONGEST_BODY:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        self.rfile.read(int(length))
        self.server.goodbye()
        self._answer(HTTPStatus.NO_CONTENT)

    def _may_ask(self) -> bool:
        """Say whether a request is of the page's own; answer it otherwise."""
        origin = self.headers.get("Origin")
        if self.headers.get("Host") not in self.server.hosts:
            self._answer(HTTPStatus.MISDIRECTED_REQUEST)
        elif origin is not None and origin.removeprefix("http://") not in self.server.hosts:
            self._answer(HTTPStatus.FORBIDDEN)
        elif not hmac.compare_digest(self.path.encode(), self.server.path.encode()):
            self._answer(HTTPStatus.NOT_FOUND)
        else:
            return True
        return False

    def _answer(self, status: HTTPStatus, content: bytes = b"", *, version: str = "") -> None:
        self.send_response(status)
        headers = _HEADERS | ({"ETag": version} if version else {})
        if status is not HTTPStatus.NOT_MODIFIED:
            headers |= {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(content))}
        if status >= HTTPStatus.BAD_REQUEST:
            self.close_connection = True
            headers |= {"Connection": "close"}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing: the terminal belongs to the user."""
