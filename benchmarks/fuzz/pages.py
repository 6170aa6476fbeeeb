"""`open` and the other pages: what a damaged log looks like in HTML, and requests to the server of a page."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from threading import Thread

from benchmarks.fuzz.oracle import BrokenPromiseError, check_text
from benchmarks.fuzz.verbs import Parse, Signature

SHOWN = "<p>what only the page says</p>"
SECONDS = 4.0
"""In which a request has to be answered or hung up on, once all of it was sent."""
REQUESTS = (
    b"GET PATH HTTP/1.1\r\nHost: HOST\r\n\r\n",
    b'GET PATH HTTP/1.1\r\nHost: HOST\r\nIf-None-Match: "abc"\r\nOrigin: http://HOST\r\n\r\n',
    b"POST PATH HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3\r\n\r\nbye",
    b"HEAD PATH HTTP/1.0\r\nHost: HOST\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\nGET PATH HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n",
)
_OURS = re.compile(r'<script(?: type="application/json")?>.*?</script>', re.DOTALL)


def live(folder: Path) -> Parse:
    """The page that `open` shows of a log, and what a notebook shows of the same."""
    from mldebug_mcp.cli.live import LivePage
    from mldebug_mcp.judge.diagnosis import diagnose
    from mldebug_mcp.logs.follow import FollowedRun
    from mldebug_mcp.report.diagnosis_html import notebook_html

    path = folder / "train.log"

    def parse(data: bytes) -> Signature:
        path.write_bytes(data)
        page = LivePage(str(path), FollowedRun(path)).html()
        check_page(page)
        run = FollowedRun(path).read()
        answer = diagnose(run)
        shown = notebook_html(answer, run)
        check_page(shown)
        return len(page) // 20_000, len(answer.findings), "<script" in shown

    return parse


def check_page(page: str) -> None:
    """Raise BrokenPromiseError unless a page is clean, and runs no script but its own."""
    for line in page.splitlines():
        check_text(line[:10_000])
    bare = _OURS.sub("", page)
    for word in ("<script", "</script", "alert(1)<"):
        if word in bare.casefold():
            raise BrokenPromiseError(f"a page with {word}")
    if page.count("<script>") > 1:
        raise BrokenPromiseError("a page with a second script that runs")


def requested(folder: Path) -> Parse:
    """The server of a page, given any bytes: it shows the page to nobody who does not know its path and name."""
    from mldebug_mcp.cli.live import PageServer

    del folder
    server = PageServer(lambda: SHOWN, clock=lambda: 0.0)
    Thread(target=server.serve, daemon=True).start()
    host = f"127.0.0.1:{server.server_port}"

    def parse(data: bytes) -> Signature:
        made = data.replace(b"PATH", server.path.encode()).replace(b"HOST", host.encode())
        with socket.create_connection(("127.0.0.1", server.server_port), SECONDS) as client:
            answer = _exchanged(client, made)
        if SHOWN.encode() in answer and not (server.path.encode() in made and host.encode() in made):
            raise BrokenPromiseError("the page was shown to somebody who does not know its path")
        return tuple(re.findall(rb"HTTP/1\.[01] (\d+)", answer))

    return parse


def _exchanged(client: socket.socket, made: bytes) -> bytes:
    """Send a request and no more after it, and return all that comes back."""
    answer = b""
    try:
        client.sendall(made)
        client.shutdown(socket.SHUT_WR)
        while piece := client.recv(65_536):
            answer += piece
    except TimeoutError:
        raise
    except OSError:  # it hung up before it had read all
        pass
    return answer
