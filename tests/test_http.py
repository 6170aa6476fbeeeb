"""The server over HTTP: who may call, what is refused, and how many can call at once."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from mldebug_mcp.cli import main
from mldebug_mcp.server import http as http_module
from mldebug_mcp.server.http import DEFAULT_HOST, DEFAULT_PORT, MAX_BODY, PATH, TOKEN_VARIABLE
from tests.conftest import PATIENCE

from .http_process import LEGACY, MODERN, TOKEN, HttpServer, http_server

DOCUMENTATION = (Path(__file__).parent.parent / "docs" / "http.md").read_text(encoding="utf-8")
PUBLIC = "0.0.0.0"  # noqa: S104 - it is what is refused
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
SPOKEN = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
}
eras = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    with http_server() as running:
        yield running


def hello(server: HttpServer, **headers: str) -> httpx2.Response:
    return httpx2.post(server.url, json=HELLO, headers=AUTHORIZED | SPOKEN | headers, timeout=PATIENCE)


def raw(server: HttpServer, head: str, body: bytes = b"") -> str:
    """Send a request, perhaps only a part of one, and return the first line of the answer."""
    with socket.create_connection(server.address, timeout=PATIENCE) as connection:
        lines = [*head.splitlines(), "Host: localhost", "Content-Type: application/json"]
        connection.sendall("\r\n".join([*lines, f"Authorization: Bearer {TOKEN}", "", ""]).encode() + body)
        return connection.recv(4096).decode().split("\r\n")[0]


@eras
@pytest.mark.anyio
async def test_a_client_of_either_era_gets_a_diagnosis(server: HttpServer, examples: Path, mode: str) -> None:
    async with server.client(mode) as client:
        answer = await client.call_tool("diagnose_run", {"path": str(examples / "overfit")})
    assert answer.structured_content is not None
    assert answer.structured_content["hypotheses"][0]["cause"] == "overfitting"


@pytest.mark.anyio
async def test_the_documented_json_connects(server: HttpServer) -> None:
    found = re.search(r"```json\n(.*?)```", DOCUMENTATION, re.DOTALL)
    assert found
    entry = json.loads(found[1].replace("TOKEN", TOKEN))["mcpServers"]["mldebug"]
    assert entry["type"] == "http"
    assert httpx2.URL(entry["url"]).copy_with(port=server.address[1]) == server.url
    async with server.client(headers=entry["headers"]) as client:
        assert len((await client.list_tools()).tools) > 5


def test_the_documented_toml_names_the_address_and_the_variable_of_the_server() -> None:
    found = re.search(r"```toml\n(.*?)```", DOCUMENTATION, re.DOTALL)
    assert found
    entry = tomllib.loads(found[1])["mcp_servers"]["mldebug"]
    assert entry == {
        "url": f"http://{DEFAULT_HOST}:{DEFAULT_PORT}{PATH}",
        "bearer_token_env_var": TOKEN_VARIABLE,
    }


def test_the_documented_address_and_limits_are_those_of_the_server() -> None:
    assert f"http://{DEFAULT_HOST}:{DEFAULT_PORT}{PATH}" in DOCUMENTATION
    assert f"over {http_module.MAX_BODY >> 20} MiB" in DOCUMENTATION
    assert f"over {http_module.MAX_HEADERS >> 10} KiB" in DOCUMENTATION
    assert f"after {http_module.REQUEST_SECONDS:.0f} s" in DOCUMENTATION
    assert f"{http_module.MAX_CONNECTIONS} connections, or {http_module.MAX_SESSIONS:,} open" in DOCUMENTATION


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer wrong")],
    ],
)  # fmt: skip
def test_who_lacks_the_token_is_told_to_bring_it(server: HttpServer, headers: Any) -> None:
    pairs = [*SPOKEN.items(), *(headers.items() if isinstance(headers, dict) else headers)]
    answer = httpx2.post(f"{server.url}?token={TOKEN}", json=HELLO, headers=pairs)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert TOKEN not in answer.text


def test_the_name_of_the_scheme_may_be_written_in_any_case(server: HttpServer) -> None:
    assert hello(server, Authorization=f"bearer {TOKEN}").status_code == 200


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.example.org:80", "0.0.0.0:8765", ""])
def test_another_host_is_refused(server: HttpServer, host: str) -> None:
    assert hello(server, Host=host).status_code == 421


@pytest.mark.parametrize("origin", ["http://example.org", "null", "https://localhost.example.org", "file://"])
def test_the_page_of_another_origin_is_refused(server: HttpServer, origin: str) -> None:
    assert hello(server, Origin=origin).status_code == 403


def test_a_second_origin_is_refused_whatever_the_first_is(server: HttpServer) -> None:
    origins = [("Origin", "http://localhost:3000"), ("Origin", "http://example.org")]
    answer = httpx2.post(server.url, json=HELLO, headers=[*AUTHORIZED.items(), *SPOKEN.items(), *origins])
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "header", [{"Host": "localhost:1234"}, {"Host": "[::1]:9"}, {"Origin": "http://localhost:3000"}]
)
def test_names_of_the_loopback_are_let_in(server: HttpServer, header: dict[str, str]) -> None:
    assert hello(server, **header).status_code == 200


def test_hosts_and_origins_that_are_allowed_are_let_in() -> None:
    options = ("--allowed-host", "gpu7", "--allowed-host", "gpu8:80", "--allowed-origin", "https://example.org/")
    with http_server(*options) as server:
        statuses = [
            hello(server, **headers).status_code
            for headers in (
                {"Host": "gpu7"}, {"Host": "gpu7:99"}, {"Host": "gpu8:80"}, {"Host": "gpu8:81"},
                {"Origin": "https://example.org"}, {"Origin": "http://example.org"},
            )
        ]  # fmt: skip
    assert statuses == [200, 200, 200, 421, 200, 403]


@eras
def test_a_large_body_is_refused_before_it_is_read(server: HttpServer, mode: str) -> None:
    version = "" if mode == LEGACY else f"\nMCP-Protocol-Version: {MODERN}"
    post = f"POST /mcp HTTP/1.1{version}"
    declared = raw(server, f"{post}\nContent-Length: {10**12}", b"{")
    chunk = b"%x\r\n%s\r\n" % (MAX_BODY + 1, b" " * (MAX_BODY + 1))
    unending = raw(server, f"{post}\nTransfer-Encoding: chunked", chunk)
    assert declared.startswith("HTTP/1.1 413")
    assert unending.startswith("HTTP/1.1 413")


@pytest.mark.parametrize("port", ["5.evil.example", "5@evil.example", "5/x", "x", "123456"])
def test_what_only_begins_like_a_name_of_the_loopback_is_refused(server: HttpServer, port: str) -> None:
    assert hello(server, Origin=f"http://127.0.0.1:{port}").status_code == 403
    assert hello(server, Host=f"127.0.0.1:{port}").status_code in (400, 403)


def test_large_headers_are_refused(server: HttpServer) -> None:
    assert hello(server, Filler="x" * 20_000).status_code == 431
    assert raw(server, "GET /mcp HTTP/1.1\nFiller: " + "x" * 300_000).startswith("HTTP/1.1 400")


def test_what_is_no_request_is_answered_in_one_line(server: HttpServer) -> None:
    assert raw(server, "\x00\x01 nonsense").startswith("HTTP/1.1 400")
    for path in ("/", "/favicon.ico", "/mcp/", "/.well-known/oauth-protected-resource"):
        answer = httpx2.get(server.base + path)
        assert (answer.status_code, answer.text) == (404, "Not found: MCP is served at /mcp\n")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"[" * 100_000, b'{"id": 1}', b"\xff", b'"\\ud800"', b"1" * 9999])
@eras
def test_the_server_serves_on_after_a_hostile_body(server: HttpServer, body: bytes, mode: str) -> None:
    headers = AUTHORIZED | SPOKEN | ({} if mode == LEGACY else {"MCP-Protocol-Version": MODERN})
    assert 400 <= httpx2.post(server.url, content=body, headers=headers).status_code < 500
    assert hello(server).status_code == 200


@pytest.mark.anyio
async def test_a_connection_whose_request_does_not_arrive_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "REQUEST_SECONDS", 0.01)
    config = http_module.configuration(http_module.TokenGate(PlainTextResponse("served"), TOKEN))
    config.load()
    listening = await asyncio.get_running_loop().create_server(
        lambda: config.http_protocol_class(config=config, server_state=ServerState(), app_state={}),  # type: ignore[call-arg]
        "127.0.0.1", 0,
    )  # fmt: skip
    async with listening, asyncio.timeout(PATIENCE):
        for part in (b"", b"POST /mcp HTTP/1.1\r\nHost: loc"):
            reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
            writer.write(part)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()


@eras
@pytest.mark.anyio
async def test_a_hundred_calls_are_answered_at_once(server: HttpServer, examples: Path, mode: str) -> None:
    calls = [
        ("explain", {"id": "loss_spike"}),
        ("search_folklore", {"query": "loss spike"}),
        ("explain_error", {"text": "CUDA out of memory"}),
        ("diagnose_run", {"path": str(examples / "overfit" / "metrics.csv")}),
    ]
    async with server.client(mode) as client:
        answers = await asyncio.gather(*(client.call_tool(*calls[number % len(calls)]) for number in range(100)))
    assert [answer.is_error for answer in answers] == [False] * 100


def waiting_entry(folder: Path) -> str:
    """Return an entry of the user's that says where it runs, and then waits for a file."""
    (folder / "pipeline.py").write_text(
        "import os, pathlib, time\n"
        "here = pathlib.Path(__file__).parent\n"
        "def waits():\n"
        "    (here / 'pid').write_text(f'{os.getpid()} ')\n"
        "    while not (here / 'go').exists():\n"
        "        time.sleep(0.02)\n"
        "    raise ValueError('went on')\n"
    )
    return f"{folder / 'pipeline.py'}:waits"


async def started(folder: Path) -> int:
    """Return the process of the waiting entry."""
    async with asyncio.timeout(PATIENCE):
        while not ((folder / "pid").exists() and (folder / "pid").read_text().endswith(" ")):
            await asyncio.sleep(0.02)
    return int((folder / "pid").read_text())


async def probe(client: Client, folder: Path) -> str:
    arguments = {"entry": waiting_entry(folder), "device": "cpu", "time_limit": PATIENCE}
    return str((await client.call_tool("probe_overfit", arguments)).structured_content)


@eras
@pytest.mark.anyio
async def test_a_slow_probe_does_not_hold_up_other_calls(
    server: HttpServer, tmp_path: Path, examples: Path, mode: str
) -> None:
    pytest.importorskip("torch")
    async with server.client(mode) as client, asyncio.timeout(2 * PATIENCE):
        probing = asyncio.create_task(probe(client, tmp_path))
        await started(tmp_path)
        for _ in range(5):
            answer = await client.call_tool("diagnose_run", {"path": str(examples / "overfit")})
            assert not answer.is_error
        assert not probing.done()
        (tmp_path / "go").touch()
        assert "went on" in await probing


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.anyio
async def test_a_signal_ends_the_server_with_its_number_and_the_probe_and_leaves_no_file(
    tmp_path: Path, examples: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    with http_server() as server:
        async with server.client() as client:
            probing = asyncio.create_task(probe(client, tmp_path))
            process = await started(tmp_path)
            await client.call_tool("diagnose_run", {"path": str(examples / "overfit")})
            server.process.send_signal(number)
            assert await asyncio.to_thread(server.process.wait, PATIENCE) == 128 + number
            probing.cancel()
            async with asyncio.timeout(PATIENCE):
                while Path(f"/proc/{process}").exists() or list((tmp_path / "scratch").iterdir()):
                    await asyncio.sleep(0.02)
        written = server.end()
    assert "Traceback" not in written
    assert len(written.splitlines()) == 1


def test_a_token_that_is_given_is_never_written() -> None:
    with http_server() as server:
        assert hello(server).status_code == 200
        assert hello(server, Authorization=f"Bearer {TOKEN}", Host="example.org").status_code == 421
        assert hello(server, Authorization=f"Bearer {TOKEN}+").status_code == 401
        raw(server, f"GET /mcp?{TOKEN} HTTP/1.0\nContent-Length: x")
        written = server.end()
    assert TOKEN not in written


def test_a_token_that_is_made_is_shown_once_and_opens_the_door() -> None:
    with http_server(token=None) as server:
        assert server.process.stderr
        token = server.process.stderr.readline().split("Bearer ")[1].split()[0]
        assert hello(server, Authorization=f"Bearer {token}").status_code == 200
        assert hello(server).status_code == 401
        written = server.end()
    assert len(token) >= 43
    assert token not in written


def test_the_token_can_be_given_as_an_option_and_a_short_one_is_warned_of() -> None:
    with http_server("--token", "short", token="of-the-environment") as server:
        assert hello(server, Authorization="Bearer short").status_code == 200
        assert hello(server, Authorization="Bearer of-the-environment").status_code == 401
        assert "shorter than 16" in server.end()


def refused(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["serve", *options]) == 2
    output, errors = capsys.readouterr()
    assert (output, errors.count("\n")) == ("", 1)
    assert errors.startswith("mldebug-mcp: ")
    return errors


def test_a_port_in_use_is_said_in_one_line(server: HttpServer, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "--http", "--port", str(server.address[1]))
    assert "in use" in told
    assert "--port" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--http", "--host", PUBLIC], "a token and allowed hosts"),
        (["--http", "--host", PUBLIC, "--token", "abcdefgh"], "requires allowed hosts"),
        (["--http", "--host", PUBLIC, "--allowed-host", "gpu7"], "requires a token"),
        (["--http", "--host", "::"], "a token and allowed hosts"),
        (["--http", "--host", ""], "address"),
        (["--http", "--host", "a b"], "address of this machine"),
        (["--http", "--port", "65536"], "from 1 to 65535"),
        (["--http", "--token", ""], "must not be empty"),
        (["--http", "--token", "two words"], "letters, digits"),
        (["--http", "--allowed-host", "*"], "gpu7"),
        (["--http", "--allowed-origin", "null"], "https://example.org"),
        (["--port", "80"], "add --http"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(
    options: list[str], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLDEBUG_MCP_TOKEN", raising=False)
    assert told in refused(capsys, *options)


def test_a_public_address_is_served_with_a_token_and_allowed_hosts() -> None:
    with http_server("--host", PUBLIC, "--allowed-host", "gpu7") as server:
        assert server.url.startswith("http://gpu7:")
        server.url = f"http://127.0.0.1:{server.address[1]}/mcp"
        assert hello(server, Host="gpu7").status_code == 200
        assert hello(server).status_code == 421
        assert "nothing is encrypted" in server.end()


def test_the_loopback_of_ipv6_is_served() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with http_server("--host", "::1") as server:
        assert server.url.startswith("http://[::1]:")
        assert hello(server).status_code == 200


LOST = """
import asyncio, sys
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
async def main(url, token, mode, entry):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=600) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        await client.call_tool("probe_overfit", {"entry": entry, "device": "cpu", "time_limit": 600})

asyncio.run(main(*sys.argv[1:]))
"""


@eras
@pytest.mark.anyio
async def test_a_client_that_is_lost_frees_its_probe(server: HttpServer, tmp_path: Path, mode: str) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-c", LOST, server.url, TOKEN, mode, waiting_entry(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as client:
        pid = await started(tmp_path)
        client.kill()
    async with asyncio.timeout(PATIENCE):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.05)
