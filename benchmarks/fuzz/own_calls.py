"""Calls that need more than a file: pages, their server, paths, names of metrics, the wire, folders of trackers."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

from benchmarks.fuzz import seeds
from benchmarks.fuzz.promises import BrokenPromiseError, check_answer, check_text, texts
from benchmarks.fuzz.verbs import Parse, Signature, check_reply

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


def looked_at(folder: Path) -> Parse:
    """`watch`: a log that grows by pieces, is cut off, and goes on as another run."""
    from mldebug_mcp.judge.watch import Watch

    path = folder / "train.log"

    def parse(data: bytes) -> Signature:
        path.unlink(missing_ok=True)
        now = 0.0
        watch, told = Watch(path, clock=lambda: now), []
        for end in (len(data) // 3, len(data) // 2, len(data), len(data), len(data) // 4):
            path.write_bytes(data[:end] or b"\n")
            now += 400.0
            news = watch.look()
            for one in news:
                for text in texts(json.loads(one.to_json())):
                    check_text(text)
            told += [one.what for one in news]
        check_text(watch.status)
        return tuple(told), watch.finished

    return parse


def asked(folder: Path) -> Parse:
    """Search, and the explanation of an id that nobody gave."""
    from mldebug_mcp.core.errors import MLDebugError
    from mldebug_mcp.judge.search import explain, search_folklore

    del folder

    def parse(data: bytes) -> Signature:
        text = data.decode(errors="surrogateescape")
        answer = search_folklore(text, limit=1 + len(data) % 20)
        for one in texts(json.loads(answer.to_json())):
            check_text(one)
        try:
            known = bool(explain(text))
        except MLDebugError:
            known = False
        return len(answer.quotes), len(answer.entries), known

    return parse


def located(folder: Path) -> Parse:
    """The diagnosis of what a path or a URL names, in a server that may read one folder alone."""
    from mldebug_mcp.core.access import Access, confined
    from mldebug_mcp.server import calls

    calls.prepare()
    folder = folder.resolve()
    (folder / "runs.zip").write_bytes(seeds.archives()[0])

    def parse(data: bytes) -> Signature:
        path = data.decode(errors="replace").replace("FOLDER", str(folder))
        with confined(Access((str(folder),))):
            return check_reply(calls.CALLS["diagnose_run"]({"path": path}, None))

    return parse


def metric_asked(folder: Path) -> Parse:
    """`read_metric` of a good log, with the lines of the input for names and its length for the steps."""
    from mldebug_mcp.server import calls

    calls.prepare()
    log = folder / "train.jsonl"
    log.write_bytes(seeds.json_lines()[0])

    def parse(data: bytes) -> Signature:
        names = data.decode(errors="replace").split("\n")
        steps = {"first": len(data) % 7 - 1.5, "last": len(data) % 13 - 0.5} if len(data) % 3 else {}
        arguments = {"path": str(log), "names": names, "points": 4 + len(data) % 9, **steps}
        return check_reply(calls.CALLS["read_metric"](arguments, None))

    return parse


def mlflow(folder: Path) -> Parse:
    """Points and settings of an MLflow folder."""
    from mldebug_mcp.logs import read_run

    run = folder / "mlruns" / "0" / "abc"
    for part in ("metrics", "params", "tags"):
        (run / part).mkdir(parents=True)
    (run / "meta.yaml").write_text("run_id: abc\n")

    def parse(data: bytes) -> Signature:
        half = len(data) // 2
        (run / "metrics" / "loss").write_bytes(data[:half])
        (run / "metrics" / "lr").write_bytes(data[half:])
        (run / "params" / "lr").write_bytes(data[-40:])
        (run / "tags" / "mlflow.runName").write_bytes(data[:40])
        answer = read_run(folder)
        for text in (*answer.notes, *answer.series, *answer.config):
            check_text(text)
        return min(answer.records, 3), len(answer.notes)

    return parse


def probe_result(folder: Path) -> Parse:
    """What the worker of a probe leaves."""
    from mldebug_mcp.judge.probe import interpret
    from mldebug_mcp.probe.host import read_result

    path = folder / "result.json"

    def parse(data: bytes) -> Signature:
        path.write_bytes(data)
        raw = read_result(path, "python")
        raw.output = data.decode(errors="replace")
        answer = interpret(raw)
        check_answer(answer)
        return answer.verdict, len(answer.findings), len(answer.notes)

    return parse


def calls(folder: Path) -> Parse:
    """Calls of all tools over the wire; the probe's worker alone is not started."""
    import mldebug_mcp.judge.probe
    from mldebug_mcp.probe.host import RawProbe

    async def no_probe(*_: object) -> RawProbe:
        await asyncio.sleep(0)
        return RawProbe()

    vars(mldebug_mcp.judge.probe)["run_probe"] = no_probe
    for name, content in (
        ("run.jsonl", seeds.json_lines()[0]),
        ("batch.json", seeds.json_batches()[0]),
        ("config.json", seeds.configurations()[1]),
        ("oom.txt", seeds.MEMORY_TEXTS[0]),
    ):
        (folder / name).write_bytes(content)
    call, known = _client(), {one["name"] for one in seeds.CALLS}

    def parse(data: bytes) -> Signature:
        try:
            asked = json.loads(data.decode(errors="replace").encode(errors="replace"))
            name, arguments = str(asked["name"]), dict(asked["arguments"])
            name = name if name in known else seeds.CALLS[len(data) % len(seeds.CALLS)]["name"]
        except (ValueError, TypeError, KeyError, RecursionError):
            text = data[:4000].decode(errors="replace")
            name, arguments = seeds.CALLS[len(data) % len(seeds.CALLS)]["name"], {}
            arguments = {"path": text, "query": text, "text": text, "id": text, "config": text}
        return call(name, arguments)

    return parse


def _client() -> Callable[[str, dict[str, Any]], Signature]:
    from anyio.from_thread import start_blocking_portal
    from mcp import Client

    from mldebug_mcp.server import make_server

    # The manager has to live as long as what it manages: the portal ends with it.
    manager = start_blocking_portal()
    portal = manager.__enter__()
    client = portal.wrap_async_context_manager(Client(make_server())).__enter__()

    def call(name: str, arguments: dict[str, Any]) -> Signature:
        assert manager
        try:
            answer = portal.call(client.call_tool, name, arguments)
        except UnicodeError:
            return "the client cannot send it"
        told = [part.text for part in answer.content if part.type == "text"]
        for text in told:
            check_text(text[:20_000])
        if answer.is_error and told[0] == f"Error executing tool {name}":
            raise BrokenPromiseError(f"{name}: {told[0][:300]}")
        return name, answer.is_error, told[0][:40] if answer.is_error else len(told[0]) // 1000

    return call
