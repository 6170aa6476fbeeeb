"""The server as a real process over stdio, as clients run it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PATIENCE
from tests.stdio_process import Process


@pytest.fixture
def server() -> Iterator[Process]:
    running = Process()
    with running.process:
        yield running
        running.process.kill()


def test_a_client_gets_a_diagnosis_over_stdio(server: Process, examples: Path) -> None:
    assert "loss spike" in server.start()["result"]["instructions"]
    assert {"diagnose_run", "search_folklore", "explain"} <= {
        tool["name"] for tool in server.ask("tools/list")["result"]["tools"]
    }
    answer = server.ask("tools/call", name="diagnose_run", arguments={"path": str(examples / "overfit")})
    assert answer["result"]["structuredContent"]["hypotheses"][0]["cause"] == "overfitting"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc": "2.0", "id": 2, ',
        b"",
        b"[1,2,3]",
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"explain","arguments":{"id":"\xff"}}}',
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"explain","arguments":{"id":"\\ud800"}}}',
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"\\ud800","arguments":{}}}',
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"explain","arguments":{"id":'
        + b"[" * 5000 + b"]" * 5000 + b"}}}",
        b'{"jsonrpc":"2.0","id":9,"method":"no/such"}',
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call"}',
    ],
    ids=["cut", "blank", "array", "bad utf-8", "surrogate", "surrogate name", "deep", "method", "no params"],
)  # fmt: skip
def test_the_server_serves_on_after_a_hostile_line(server: Process, line: bytes) -> None:
    server.start()
    server.send(line)
    assert server.ask("tools/list")["result"]["tools"]


def test_the_server_ends_when_its_input_ends(server: Process) -> None:
    server.start()
    assert server.process.stdin
    server.process.stdin.close()
    assert server.process.wait(PATIENCE) == 0


def test_a_client_that_ends_during_a_call_leaves_no_traceback(server: Process, examples: Path) -> None:
    server.start()
    arguments = {"path": str(examples / "loss_spike")}
    call = {"name": "diagnose_run", "arguments": arguments}
    server.send(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call}).encode())
    assert server.process.stdout
    assert server.process.stderr
    assert server.process.stdin
    server.process.stdout.close()
    server.send(b'{"jsonrpc":"2.0","id":10,"method":"ping"}')  # whose answer is written at once, to nobody
    server.process.stdin.close()
    assert server.process.wait(PATIENCE) == 0
    assert b"Traceback" not in server.process.stderr.read()


def test_the_server_ends_on_sigterm(server: Process) -> None:
    server.start()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("line", "number", "says"),
    [
        (b"hello", None, "not JSON"),
        (b'{"jsonrpc":"2.0","id":5', None, "not JSON"),
        (b"[]", None, "not a JSON-RPC 2.0 message"),
        (b'{"id":7,"method":"ping"}', 7, "jsonrpc: field required"),
        (b'{"jsonrpc":"2.0","id":"nine"}', "nine", "method: field required"),
        (b'{"jsonrpc":"2.0","id":11,"method":"tools/call","params":[1]}', 11, "params: input should be an object"),
    ],
)
def test_what_is_no_message_is_answered_with_what_is_wrong(
    server: Process, line: bytes, number: int | str | None, says: str
) -> None:
    server.start()
    server.send(line)
    assert server.process.stdout
    answer = json.loads(server.process.stdout.readline())
    assert answer["id"] == number
    assert says in answer["error"]["message"]
    assert server.ask("ping")["result"] is not None


@pytest.mark.parametrize("number", ["1.5", "1.0", "true", "null", "{}", "[1]", "1e400"])
def test_a_request_whose_id_is_no_string_or_integer_is_answered_with_what_is_wrong(
    server: Process, number: str
) -> None:
    server.start()
    server.send(b'{"jsonrpc":"2.0","id":%s,"method":"tools/list","params":{}}' % number.encode())
    assert server.process.stdout
    answer = json.loads(server.process.stdout.readline())
    assert answer["id"] is None
    assert "a string or an integer" in answer["error"]["message"]
    assert server.ask("ping")["result"] is not None


def test_a_tool_that_there_is_not_is_answered_with_those_that_there_are(server: Process) -> None:
    server.start()
    answer = server.ask("tools/call", name="x" * 100_000, arguments={})["result"]
    assert answer["isError"]
    assert "diagnose_run" in answer["content"][0]["text"]
    assert len(answer["content"][0]["text"]) < 400


def test_text_that_was_cut_inside_an_emoji_is_answered(server: Process) -> None:
    server.start()
    server.send(
        b'{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"explain_error","arguments":'
        b'{"text":"CUDA out of memory. Tried to allocate 2.00 GiB \\ud83d"}}}'
    )
    assert server.process.stdout
    answer = json.loads(server.process.stdout.readline())
    assert answer["id"] == 50
    assert "cuda_oom" in json.dumps(answer["result"])


def test_a_client_that_leaves_standard_error_unread_is_answered(server: Process) -> None:
    server.start()
    warned_of = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}'
    for _ in range(1500):  # a pipe holds the warnings of some four hundred
        server.send(warned_of)
    assert server.ask("ping")["result"] == {}
    assert server.process.stdin
    server.process.stdin.close()
    assert server.process.wait(PATIENCE) == 0
