"""Helper processes: what a stranger's file makes a library do holds up nobody, reaches nothing and leaves nothing."""

from __future__ import annotations

import asyncio
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
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.conftest import PATIENCE

pytest.importorskip("torch")
pytest.importorskip("transformers")

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.sandbox import pool
from mldebug_mcp.core.sandbox.helper import landlock_version
from tests.hostile.files import FILES, lowered, template
from tests.hostile.yaml_texts import TEXTS
from tests.stdio_process import Process, started

linux = pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
MOST_MIB = 1024


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("allowed")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Process]:
    with started(folder) as running:
        yield running


@pytest.fixture(scope="module")
def strict(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """Return a server whose calls may use little time and memory."""
    with started(folder, **lowered(tmp_path_factory.mktemp("python") / "lowered")) as running:
        yield running


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
    assert pings > 0  # how many depends on how soon the file is refused
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
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


SIGNALS = {
    "terminated": "SIGTERM",
    "interrupted": "SIGINT",
    "hung up": "SIGHUP",
    "quit": "SIGQUIT",
    "killed": "SIGKILL",
}


@linux
@pytest.mark.parametrize("ending", [*SIGNALS, "input closed"])
def test_no_helper_and_no_file_outlives_the_server(tmp_path: Path, ending: str) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with started(tmp_path, TMPDIR=str(scratch)) as running:
        call(running, "diagnose_run", path=log(tmp_path))
        (helper,) = children(running.process.pid)
        assert list(scratch.iterdir())
        if ending == "input closed":
            assert running.process.stdin
            running.process.stdin.close()
        else:
            number = getattr(signal, SIGNALS[ending])
            running.process.send_signal(number)
        status = running.process.wait(PATIENCE)
        assert status == (0 if ending == "input closed" else -number if ending == "killed" else 128 + number)
        wait_until(lambda: not Path(f"/proc/{helper}").exists() or state(helper) == "Z")
        assert ending == "killed" or not list(scratch.iterdir())


@pytest.mark.parametrize("pause", [0, 0.005, 0.02, 0.05, 0.2])
def test_a_client_that_leaves_right_after_its_first_call_leaves_no_file(tmp_path: Path, pause: float) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with started(tmp_path, TMPDIR=str(scratch)) as running:
        request = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
        call = {"name": "diagnose_run", "arguments": {"path": log(tmp_path)}}
        running.send(json.dumps({**request, "params": call}).encode())
        time.sleep(pause)
        assert running.process.stdin
        running.process.stdin.close()
        running.process.wait(PATIENCE)
        assert not list(scratch.iterdir())


@linux
def test_a_helper_that_was_ended_while_it_was_idle_is_replaced_and_the_call_made_again(
    server: Process, folder: Path
) -> None:
    call(server, "diagnose_run", path=log(folder))
    for helper in children(server.process.pid):
        os.kill(helper, signal.SIGKILL)
    failed, said = call(server, "diagnose_run", path=log(folder))
    assert not failed, said


@linux
def test_a_folder_of_very_many_runs_is_answered_with_what_was_looked_at(server: Process, folder: Path) -> None:
    one = log(folder)
    for number in range(10_000):
        run = folder / "many" / f"run{number:05}"
        run.mkdir(parents=True)
        (run / "log.jsonl").hardlink_to(one)
    failed, said = call(server, "diagnose_runs", path=str(folder / "many"))
    assert not failed, said
    assert "only the newest 200 of 10,000 runs were read" in said


@linux
def test_a_web_of_links_is_answered(server: Process, folder: Path) -> None:
    text = Path(log(folder)).read_bytes()
    web = folder / "web"
    for number in range(20):
        (web / f"run{number:02}").mkdir(parents=True)
        (web / f"run{number:02}" / "log.jsonl").write_bytes(text)
    for number in range(20):
        for other in range(20):
            (web / f"run{number:02}" / f"to{other:02}").symlink_to(f"../run{other:02}")
            (web / f"run{number:02}" / f"log{other:02}.jsonl").symlink_to(f"../run{other:02}/log.jsonl")
    for tool in ("diagnose_runs", "diagnose_run"):
        failed, said = call(server, tool, path=str(web))
        assert not failed, said


@asynccontextmanager
async def helpers_of(module: str) -> AsyncIterator[pool.Pool]:
    helpers = pool.Pool(module)
    try:
        yield helpers
    finally:
        idle = list(helpers.idle)
        helpers.close()
        for helper in idle:
            await helper.ended()


HURRIED = """
import time
from types import SimpleNamespace

from mldebug_mcp.core import limits
from mldebug_mcp.server.calls import CALLS
from mldebug_mcp.server.calls import prepare as prepare_calls

read, opened = limits.reading, []

def reading(size, file=None):
    opened.append(file)
    read(size, file)

def prepare():
    prepare_calls()
    limits.BASE_CALL_SECONDS = 90.0
    limits.SECONDS_PER_FILE = limits.SECONDS_PER_MIB = limits.SECONDS_PER_ENTRY = 0.0
    limits.reading = reading
    limits.time = SimpleNamespace(process_time=lambda: time.process_time() + len(opened), monotonic=time.monotonic)
"""
"""A helper for which opening a file takes one second, whatever the machine."""


@linux
@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["diagnose_runs", "diagnose_run"])
async def test_runs_for_which_the_time_of_a_call_is_too_short_are_said_not_to_be_looked_at(
    tmp_path: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hurried.py").write_text(HURRIED)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    for number in range(100):
        (tmp_path / "runs" / f"{number:03}").mkdir(parents=True)
        for part in range(4):
            log(tmp_path / "runs" / f"{number:03}", f"log{part}.jsonl")
    arguments = {"path": str(tmp_path / "runs"), "detail": "full"}
    async with helpers_of("hurried") as helpers:
        answer = await helpers.call(tool, {"arguments": arguments, "whole": None}, lambda _: None)
    assert any("the others were not looked at" in note for note in answer["structuredContent"]["notes"])


@linux
def test_a_helper_gets_no_secret_of_the_environment(tmp_path: Path) -> None:
    with started(tmp_path, DATABASE_URL="postgres://hunter2", GITHUB_PAT="hunter2", OPENAI_KEY="hunter2") as running:
        call(running, "diagnose_run", path=log(tmp_path))
        (helper,) = children(running.process.pid)
        environment = Path(f"/proc/{helper}/environ").read_bytes()
        assert b"hunter2" not in environment
        assert b"HF_HUB_OFFLINE=1" in environment


CONFINED = """
import os, socket, sys
from mldebug_mcp.core.sandbox.helper import confine
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
@pytest.mark.skipif(landlock_version() < 6, reason="the kernel cannot hold a process to it")
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
            with anyio.fail_after(PATIENCE):
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
        waited.append(answered.wait(PATIENCE))
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
    with anyio.fail_after(PATIENCE):
        await helper.retirement
    assert waited == [True]
    assert not Path(helper.scratch).exists()


@pytest.mark.anyio
async def test_the_server_answers_others_while_it_removes_what_a_cancelled_start_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, answered, waited = asyncio.Event(), threading.Event(), []

    async def start(*_: object, **__: object) -> None:
        begun.set()
        await anyio.sleep_forever()

    def slow(folder: str, *, ignore_errors: bool) -> None:
        waited.append(answered.wait(PATIENCE))
        rmtree(folder, ignore_errors=ignore_errors)

    rmtree = shutil.rmtree
    helpers = pool.Pool("mldebug_mcp.server.calls")
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "create_subprocess_exec", start)
        patched.setattr(shutil, "rmtree", slow)
        call = asyncio.create_task(helpers.call("diagnose_run", {}, lambda _: None))
        await begun.wait()
        call.cancel()
        await anyio.sleep(0.05)
        answered.set()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert waited == [True]
    assert not list(Path(helpers.folder).iterdir())
    helpers.close()


@linux
def test_the_server_learns_of_the_end_of_a_helper_without_a_thread_for_it(server: Process, folder: Path) -> None:
    call(server, "diagnose_run", path=log(folder))
    descriptors = Path(f"/proc/{server.process.pid}/fd").iterdir()
    assert any("pidfd" in str(descriptor.readlink()) for descriptor in descriptors)


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


@pytest.mark.anyio
async def test_calls_that_are_cancelled_before_they_start_a_helper_start_none(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    async def start(*_: object, **__: object) -> None:
        started.append(1)
        await anyio.sleep_forever()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    helpers = pool.Pool("mldebug_mcp.server.calls")
    calls = [asyncio.create_task(helpers.call("diagnose_run", {}, lambda _: None)) for _ in range(200)]
    while len(started) < pool.MAX_CALLS_AT_ONCE:
        await anyio.sleep(0.01)
    monkeypatch.setattr(pool, "START_PAUSE", PATIENCE)
    for one in calls:
        one.cancel()
        await anyio.sleep(0)
    await asyncio.gather(*calls, return_exceptions=True)
    helpers.close()
    assert len(started) == pool.MAX_CALLS_AT_ONCE


COUNTED = """
import os, sys, tempfile
if any("sandbox.helper" in word for word in sys.orig_argv):
    os.close(tempfile.mkstemp(dir={started!r})[0])
"""


@linux
def test_of_two_hundred_calls_that_are_cancelled_at_once_few_start_a_helper(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "started").mkdir()
    (tmp_path / "sitecustomize.py").write_text(COUNTED.format(started=str(tmp_path / "started")))
    named = {"name": "diagnose_run", "arguments": {"path": log(folder)}}
    calls = [{"id": number, "method": "tools/call", "params": named} for number in range(1000, 1200)]
    ends = [{"method": "notifications/cancelled", "params": {"requestId": one["id"]}} for one in calls]
    with started(folder, PYTHONPATH=os.pathsep.join([str(tmp_path), *filter(None, sys.path)])) as running:
        running.send("\n".join(json.dumps({"jsonrpc": "2.0", **one}) for one in calls + ends).encode())
        failed, said = call(running, "diagnose_run", path=log(folder))
        assert not failed, said
        assert 1 <= len(list((tmp_path / "started").iterdir())) <= 40


SLOW_IMPORT = """
import time
from importlib.machinery import SourceFileLoader
from mldebug_mcp.core import limits

load = SourceFileLoader.exec_module

def load_slowly(self, module):
    end = time.process_time() + (2.5 if module.__name__ == "scipy.stats" else 0)
    while time.process_time() < end:
        pass
    load(self, module)

SourceFileLoader.exec_module = load_slowly
limits.BASE_CALL_SECONDS, limits.SECONDS_PER_FILE = 2.0, 0.0
"""


@linux
def test_the_first_comparison_is_answered_where_its_library_takes_longer_to_import_than_a_call_may(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
    groups = {group: [log(folder, f"{group}{number}.jsonl") for number in range(2)] for group in "ab"}
    with started(folder, PYTHONPATH=os.pathsep.join([str(tmp_path), *filter(None, sys.path)])) as running:
        failed, said = call(running, "compare_runs", **groups)
        assert not failed, said


SLOW_TO_IMPORT = """
import time
end = time.process_time() + 0.6
while time.process_time() < end:
    pass
"""
IMPORTING = """
from mldebug_mcp.core import limits
def prepare():
    limits.BASE_CALL_SECONDS = 0.3

def work():
    import slow_to_import

def spin():
    while True:
        pass

CALLS = {"work": work, "spin": spin}
"""


@linux
@pytest.mark.anyio
async def test_a_call_may_import_what_takes_longer_than_the_call_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text(SLOW_TO_IMPORT)
    (tmp_path / "importing.py").write_text(IMPORTING)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    async with helpers_of("importing") as helpers:
        await helpers.call("work", {}, lambda _: None)
        with pytest.raises(InputError, match="more time than its size explains"):
            await helpers.call("spin", {}, lambda _: None)


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
