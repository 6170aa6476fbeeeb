"""Helper processes: what a stranger's file makes a library do holds up nobody, reaches nothing and leaves nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from mldebug_mcp.errors import InputError
from mldebug_mcp.sandbox import landlock, pool
from tests.hostile.files import FILES, lowered, template
from tests.hostile.yaml_texts import TEXTS
from tests.stdio_process import Process

linux = pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
MOST_MIB = 1024


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("allowed")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Process]:
    running = Process(folder)
    with running.process:
        running.start()
        yield running
        running.process.kill()


@pytest.fixture(scope="module")
def strict(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """Return a server whose calls may use little time and memory."""
    running = Process(folder, **lowered(tmp_path_factory.mktemp("python") / "lowered"))
    with running.process:
        running.start()
        yield running
        running.process.kill()


def children(process: int) -> list[int]:
    """Return the processes that a process started and that are still there."""
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def peak_mib(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def log(folder: Path, name: str = "log.jsonl") -> str:
    file = folder / name
    file.write_text("".join(f'{{"step": {step}, "loss": {4 - step / 50}}}\n' for step in range(1, 40)))
    return str(file)


def call(server: Process, tool: str, **arguments: Any) -> tuple[bool, str]:
    answer = server.ask("tools/call", name=tool, arguments=arguments)["result"]
    return bool(answer.get("isError")), answer["content"][0]["text"]


@linux
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_takes_more_than_it_may_is_refused_while_the_server_answers_others(
    strict: Process, folder: Path, name: str
) -> None:
    own = folder / name
    own.mkdir()
    tool, make = FILES[name]
    arguments = make(own)
    answer, pings = strict.ask_beside_pings("tools/call", name=tool, arguments=arguments)
    assert answer["result"]["isError"], answer
    assert re.search("was ended|alloc|not enough memory", answer["result"]["content"][0]["text"])
    assert pings > 3
    for one in children(strict.process.pid):
        assert peak_mib(one) <= MOST_MIB
    assert not call(strict, "diagnose_run", path=log(folder))[0]


@linux
def test_a_small_batch_in_json_is_read_within_the_limits(server: Process, folder: Path) -> None:
    (folder / "batch.json").write_text(json.dumps({"input_ids": [[1, 5, 6]], "labels": [[-100, 5, 6]]}))
    failed, said = call(server, "inspect_batch", path=str(folder / "batch.json"))
    assert not failed, said


@linux
def test_no_configuration_in_yaml_holds_up_a_diagnosis(server: Process, folder: Path) -> None:
    for name, text in TEXTS.items():
        (folder / "args.yaml").write_text(text)
        failed, said = call(server, "diagnose_run", path=log(folder), config=str(folder / "args.yaml"))
        assert failed is (name != "a call"), said


@linux
def test_an_archive_is_unpacked_in_a_helper_and_nothing_of_it_stays(server: Process, folder: Path) -> None:
    with zipfile.ZipFile(folder / "runs.zip", "w") as archive:
        for name in "ab":
            archive.write(log(folder), f"{name}/log.jsonl")
    failed, said = call(server, "diagnose_runs", path=str(folder / "runs.zip"))
    assert not failed
    assert "2 runs" in said
    failed, said = call(server, "diagnose_run", path=f"zip://a::{folder / 'runs.zip'}")
    assert not failed
    assert "mldebug-in-" not in said


def test_a_call_that_is_cancelled_ends_its_helper(server: Process, folder: Path) -> None:
    (folder / "cancelled").mkdir()
    call(server, "diagnose_run", path=log(folder))
    arguments = template(folder / "cancelled", rounds=3000)
    server.number += 1
    request = {"jsonrpc": "2.0", "id": server.number, "method": "tools/call"}
    server.send(json.dumps({**request, "params": {"name": "inspect_batch", "arguments": arguments}}).encode())
    (helper,) = busy(server)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": server.number}}
    server.send(json.dumps(cancel).encode())
    wait_until(lambda: helper not in children(server.process.pid))
    assert server.ask("ping")["result"] is not None


def busy(server: Process) -> list[int]:
    """Wait until a helper works, and return those that do."""

    def working() -> list[int]:
        return [one for one in children(server.process.pid) if "R" in state(one)]

    wait_until(lambda: bool(working()))
    return working()


def state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]


def wait_until(what: Callable[[], bool]) -> None:
    for _ in range(3000):
        if what():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


@linux
@pytest.mark.parametrize("ending", ["killed", "terminated", "input closed"])
def test_no_helper_and_no_file_outlives_the_server(tmp_path: Path, ending: str) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    running = Process(tmp_path, TMPDIR=str(scratch))
    with running.process:
        running.start()
        call(running, "diagnose_run", path=log(tmp_path))
        (helper,) = children(running.process.pid)
        assert list(scratch.iterdir())
        if ending == "input closed":
            assert running.process.stdin
            running.process.stdin.close()
        else:
            running.process.send_signal(signal.SIGKILL if ending == "killed" else signal.SIGTERM)
        running.process.wait(60)
        wait_until(lambda: not Path(f"/proc/{helper}").exists() or state(helper) == "Z")
        assert ending == "killed" or not list(scratch.iterdir())


@linux
def test_a_helper_gets_no_secret_of_the_environment(tmp_path: Path) -> None:
    running = Process(tmp_path, DATABASE_URL="postgres://hunter2", GITHUB_PAT="hunter2", OPENAI_KEY="hunter2")
    with running.process:
        running.start()
        call(running, "diagnose_run", path=log(tmp_path))
        (helper,) = children(running.process.pid)
        environment = Path(f"/proc/{helper}/environ").read_bytes()
        assert b"hunter2" not in environment
        assert b"HF_HUB_OFFLINE=1" in environment
        running.process.kill()


CONFINED = """
import os, socket, sys
from mldebug_mcp.sandbox.confine import confine
root, scratch, secret = sys.argv[1:]
confine([root], scratch, os.getppid())
print(open(root + "/inside.txt").read())
open(scratch + "/made", "w").write("x")
for what in (
    lambda: open(secret), lambda: os.listdir(os.path.dirname(secret)), lambda: open("/etc/passwd"),
    lambda: open(root + "/new", "w"), lambda: os.unlink(root + "/inside.txt"), lambda: os.kill(os.getppid(), 0),
    lambda: socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 5),
):
    try:
        what()
        print("done")
    except OSError:
        print("refused")
import numpy, tokenizers
"""


@linux
@pytest.mark.skipif(landlock.version() < 6, reason="the kernel cannot hold a process to it")
def test_a_helper_opens_only_the_roots_and_the_interpreter_and_reaches_no_network(tmp_path: Path) -> None:
    import socket

    root, scratch, secret = tmp_path / "root", tmp_path / "scratch", tmp_path / "secret.txt"
    root.mkdir()
    scratch.mkdir()
    (root / "inside.txt").write_text("inside")
    secret.write_text("hunter2")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = subprocess.run(
            [sys.executable, "-c", CONFINED, str(root), str(scratch), str(secret)],
            capture_output=True,
            text=True,
            env={**os.environ, "PORT": str(listening.getsockname()[1])},
            check=False,
        )
    assert done.stdout.split() == ["inside", *["refused"] * 7], done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.anyio
async def test_a_helper_that_cannot_start_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(InputError, match="no process can be started"):
        await pool.Pool("mldebug_mcp.server.calls").call("diagnose_run", {}, lambda _: None)


@pytest.mark.anyio
async def test_a_helper_that_nothing_calls_ends_and_the_next_call_gets_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.2)
    helpers = pool.Pool("mldebug_mcp.server.calls", roots=[str(tmp_path)])
    request = {"arguments": {"path": log(tmp_path)}, "whole": None}
    try:
        for _ in range(2):
            answer = await helpers.call("diagnose_run", request, lambda _: None)
            assert answer["structuredContent"]["run"]["path"].endswith("log.jsonl")
            (helper,) = helpers.idle
            assert helper.retirement is not None
            with anyio.fail_after(30):
                await helper.retirement
            assert helper.process.returncode is not None
            assert not helpers.idle
            assert not Path(helper.scratch).exists()
    finally:
        helpers.close()


@pytest.mark.anyio
async def test_the_server_answers_others_while_it_removes_what_a_helper_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, waited = threading.Event(), []

    def slow(folder: str, *, ignore_errors: bool) -> None:
        waited.append(answered.wait(20))
        rmtree(folder, ignore_errors=ignore_errors)

    rmtree = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", slow)
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.2)
    helpers = pool.Pool("mldebug_mcp.server.calls", roots=[str(tmp_path)])
    await helpers.warm()
    (helper,) = helpers.idle
    while helper in helpers.idle:
        await anyio.sleep(0.05)
    answered.set()
    assert helper.retirement is not None
    with anyio.fail_after(30):
        await helper.retirement
    assert waited == [True]
    assert not Path(helper.scratch).exists()


@pytest.mark.anyio
async def test_a_helper_that_is_called_again_and_again_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 3600)
    helpers = pool.Pool("mldebug_mcp.server.calls", roots=[str(tmp_path)])
    request = {"arguments": {"path": log(tmp_path)}, "whole": None}
    used = []
    for _ in range(3):
        await helpers.call("diagnose_run", request, lambda _: None)
        used.append(helpers.idle[0])
    helpers.close()
    await used[0].ended()
    assert len({helper.process.pid for helper in used}) == 1


HOARDING = """
def prepare():
    pass

kept = []
CALLS = {"keep": lambda size: kept.append(b"x" * size)}
"""


@linux
@pytest.mark.anyio
async def test_a_helper_that_still_holds_much_of_what_it_read_is_not_called_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hoarding.py").write_text(HOARDING)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    helpers = pool.Pool("hoarding")
    for size, stays in ((300 << 20, True), (1, True), (300 << 20, False), (1, True)):
        await helpers.call("keep", {"size": size}, lambda _: None)
        assert bool(helpers.idle) is stays
    (last,) = helpers.idle
    helpers.close()
    await last.ended()
