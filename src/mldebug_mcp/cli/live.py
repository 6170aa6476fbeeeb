"""What a run needs that still goes on: what is done at an alarm of `watch`, and the page that `open` shows."""

from __future__ import annotations

import hmac
import html
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from mldebug_mcp.checks.progress import has_finished
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import shorten
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.judge.watch import GOING_ON, MIN_SILENT_SECONDS
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.follow import FollowedRun
from mldebug_mcp.models.runs import News
from mldebug_mcp.report.diagnosis_html import diagnosis_html, live_html

MAX_COMMAND_SECONDS = 60.0
"""Seconds that a command may take: the watch waits for it."""
PATIENCE_FOR_WEBHOOK = 10.0
"""Seconds that a webhook may take to answer."""
MAX_ALARM_CHARACTERS = 200
_TITLE = "mldebug-mcp"
_ON_MAC = (
    "-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run",
)  # fmt: skip

Alarm = Callable[[News], None]


def running(command: str, path: str) -> Alarm:
    """Return what runs a command of the shell at an alarm.

    The alarm is its input, as a line of JSON, and stands in MLDEBUG_TEXT; the run in MLDEBUG_PATH.
    """

    def run(news: News) -> None:
        environment = os.environ | {"MLDEBUG_TEXT": news.text, "MLDEBUG_PATH": path}
        try:
            done = subprocess.run(  # noqa: S602 - the user's own command, and nothing else in it
                command,
                shell=True,
                env=environment,
                input=news.to_json(),
                text=True,
                timeout=MAX_COMMAND_SECONDS,
                check=False,
            )
            failed = f"it ended with {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            failed = f"it took more than {MAX_COMMAND_SECONDS:.0f} s"
        if failed:
            print(f"mldebug-mcp: --on-alarm {shorten(command, MAX_ALARM_CHARACTERS)}: {failed}", file=sys.stderr)

    return run


def sending(address: str, path: str) -> Alarm:
    """Return what posts an alarm to an address, as JSON.

    `text` holds the message, as Slack and Mattermost take it; `path` and `alarm` are for programs.

    Raises:
        InputError: the address is not one of http or https.
    """
    if urlsplit(address).scheme not in {"http", "https"} or not urlsplit(address).hostname:
        raise InputError(
            f"--webhook {shorten(address, MAX_ALARM_CHARACTERS)}: it takes an address that begins with https:// or http://"
        )

    def send(news: News) -> None:
        message = {
            "text": shorten(f"{path}: {news.text}", MAX_ALARM_CHARACTERS),
            "path": path,
            "alarm": json.loads(news.to_json()),
        }
        request = Request(  # noqa: S310 - its scheme was looked at
            address, json.dumps(message).encode(), {"Content-Type": "application/json", "User-Agent": _TITLE}
        )
        try:
            with urlopen(request, timeout=PATIENCE_FOR_WEBHOOK):  # noqa: S310 - as above
                pass
        except OSError as error:  # an answer that is an error is one, too
            # The address may hold a secret: only its host is shown.
            host = urlsplit(address).hostname
            print(f"mldebug-mcp: --webhook at {host}: {shorten(str(error), MAX_ALARM_CHARACTERS)}", file=sys.stderr)

    return send


def notifying(path: str) -> Alarm:
    """Return what shows an alarm on the desktop.

    Raises:
        InputError: this machine has no program that does so.
    """
    linux, mac = shutil.which("notify-send"), shutil.which("osascript")
    if linux is None and mac is None:
        raise InputError("--notify needs notify-send (Linux) or osascript (macOS); use --on-alarm COMMAND instead")

    def show(news: News) -> None:
        text = shorten(f"{path}: {news.text}", MAX_ALARM_CHARACTERS)
        # notify-send reads markup in its text.
        words = [linux, "--", _TITLE, html.escape(text)] if linux else [str(mac), *_ON_MAC, _TITLE, text]
        subprocess.run(words, timeout=MAX_COMMAND_SECONDS, check=False, capture_output=True)  # noqa: S603 - no shell

    return show


# The page of a run as it stands now: made anew when its log has grown.


class LivePage:
    """A page on a run that may still be going.

    Args:
        path: The log file or run folder, as the user named it.
        log: What reads it.
        reference: A run that went well, to compare with.
    """

    def __init__(self, path: str, log: FollowedRun, reference: Run | None = None) -> None:
        self._path, self._log, self._reference = path, log, reference
        self._come: tuple[int, float] | None = None
        self._grew = False
        self._html = ""

    def html(self) -> str:
        """Return the page, the same as before if nothing was written since."""
        try:
            run = self._log.read()
        except InputError as error:
            waiting = f"<h1>{escape(self._path)}</h1><p class=verdict>Waiting for a log: {escape(str(error))}</p>"
            return self._html if self._come is not None else live_html(self._path, [waiting])
        come = (run.records, run.last_step)
        if come != self._come:
            self._grew = self._grew or self._come is not None
            self._come = come
            self._html = self._page(run)
        return self._html

    def _page(self, run: Run) -> str:
        # The log of a run that is still going ends before its plan because it is not over.
        going_on = (self._grew or _was_just_written(expanded(self._path))) and not has_finished(run)
        answer = diagnose(run, self._reference, findings=[GOING_ON] if going_on else [])
        return diagnosis_html(answer, run, self._reference, live=True)


def _was_just_written(path: Path) -> bool:
    """Say whether a file, or one that stands in a folder, was written within the time after which a run is silent."""
    try:
        files = [entry for entry in path.iterdir() if entry.is_file()] if path.is_dir() else [path]
        return any(time.time() - file.stat().st_mtime < MIN_SILENT_SECONDS for file in files)
    except OSError:
        return False


# Shows one page in a browser from this machine, for as long as somebody looks at it.
#
# It listens at the loopback address alone, at a port and below a path that nobody can guess, and answers only what
# calls it by a name of this machine: a web page elsewhere whose name was made to point here gets nothing (DNS
# rebinding). It has one page and reads no file by a name from outside.


MAX_IDLE_SECONDS = 300.0
"""Seconds without a request after which nobody looks any more: a browser lets a hidden tab ask once a minute."""
CLOSED_PAGE_GRACE_SECONDS = 12.0
"""Seconds in which a page that was closed may come back, as it does when it is loaded again, or another tab ask."""
POLL_SECONDS = 0.5
PATIENCE_FOR_REQUEST = 10.0
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
        clock: What time it is, in seconds.
    """

    daemon_threads = True
    timeout = POLL_SECONDS

    def __init__(self, html: Callable[[], str], *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._html, self._clock = html, clock
        self._making = Lock()
        self._until = clock() + MAX_IDLE_SECONDS
        self.path = f"/{secrets.token_urlsafe(24)}/"
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    def handle_error(self, request: object, client_address: object) -> None:
        """Tell in a line what went wrong; a browser that leaves is not an error."""
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
        self._until = self._clock() + MAX_IDLE_SECONDS
        with self._making:
            return self._html().encode()

    def goodbye(self) -> None:
        """Take it that the page was left."""
        self._until = min(self._until, self._clock() + CLOSED_PAGE_GRACE_SECONDS)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = PATIENCE_FOR_REQUEST
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
